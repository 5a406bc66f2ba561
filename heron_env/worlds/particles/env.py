"""What the particle worlds share: classes of agents for both forms of actions, and the environment around them."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from heron_env.agents.agent import FieldAgent, SystemAgent
from heron_env.core.action import Continuous, Discrete, Vector
from heron_env.core.feature import FeatureProvider
from heron_env.core.quantity import Quantity
from heron_env.core.rule import rule
from heron_env.core.world import World
from heron_env.envs.base import HeronEnv
from heron_env.envs.description import Benchmark
from heron_env.given import require_switch
from heron_env.worlds.particles import bodies as of
from heron_env.worlds.particles.policies import ByRule, Decide
from heron_env.worlds.spread.discs import FULL_FORCE, STEP

R = TypeVar("R", bound="type[Particle]")


class Particle(FieldAgent):
    """An agent of a particle world, without an action; other roles than those with a goal have rewards of their own.

    size: radius. accel: force of a full push, 0: it stays where it is. top: highest speed. collides: does it bounce off
    others that do? shared: parts of its view that come from features that agents share, and not from ParticleView.
    """

    features: ClassVar[Sequence[type[FeatureProvider]]] = (of.ParticleView, of.ActionInForce, of.Stakes)
    size: ClassVar[float] = 0.05
    accel: ClassVar[float] = FULL_FORCE
    top: ClassVar[float] = 1e9
    collides: ClassVar[bool] = False
    shared: ClassVar[Sequence[str]] = ()

    @staticmethod
    @rule
    def compute_local_reward(stakes: of.Stakes) -> float:
        """How much nearer it is to its goal than the others."""
        return stakes.others - stakes.own


def in_both_forms(words: int = 0) -> Callable[[R], R]:
    """Give a role two classes that act, NAMENumbers and NAMEChoices: five pushes if it moves, and so many words."""

    def decorate(role: R) -> R:
        pushes = of.MOVES if role.accel > 0.0 else 0
        choices = max(pushes, 1) * max(words, 1)
        forms = {"Numbers": Continuous(0.0, 1.0, size=pushes + words), "Choices": Discrete(choices)}
        for form, action in forms.items():
            kept = of.action_in_force(action.size)

            @rule(writes=kept.action)
            def apply_action(action: Vector) -> Any:
                """Keep it as it was given."""
                return action

            features = tuple(kept if feature is of.ActionInForce else feature for feature in role.features)
            body = {"features": features, "action": action}
            body |= {"apply_action": staticmethod(apply_action), "__module__": role.__module__, "__doc__": role.__doc__}
            setattr(sys.modules[role.__module__], role.__name__ + form, type(role.__name__ + form, (role,), body))
        return role

    return decorate


class Plane(SystemAgent):
    """The plane on which the bodies move."""

    features = (of.Bodies,)


def steps(
    heed: Callable[[Any], None], look: Callable[[Any], None], *parts: str, shared: Sequence[Quantity] = ()
) -> tuple[Any, Any]:
    """The rules `begin` and `advance` of a scenario.

    heed: lets bodies obey. look: fills Stakes and ParticleView, which has these parts, and what agents share.
    """

    @rule
    def begin(world: World) -> None:
        """Everybody lies somewhere, and looks around."""
        of.place(world, world[Plane].Bodies)
        look(world)

    @rule(writes=(*of.written(*parts), *shared))
    def advance(world: World, dt: float) -> None:
        """One substep, then look around."""
        heed(world)
        of.move(world[Plane].Bodies, dt)
        look(world)

    return staticmethod(begin), staticmethod(advance)


class ParticlesEnv(HeronEnv):
    """Agents and landmarks of a particle world; scenarios have `begin, advance = steps(...)`, and `rules`.

    Args:
        members: role and id of each agent, and the sizes of the parts of its view.
        landmarks: radius of each landmark, whether agents bounce off it, and how far out it may lie.
        continuous: numbers in [0, 1], pushes (stay, left, right, down, up), then words; False: a choice, of a
            direction, a word, or both: direction + 5 word.
        words: how many each agent can say.
        local_ratio: weight of an agent's own reward, where the team's is mixed in.
        options: as for HeronEnv.

    Raises ConfigError naming the argument and its value.
    """

    dt = STEP
    rules: Mapping[str, Decide] = {}
    """By which the groups of agents play, as a baseline."""

    def __init__(
        self, members: Sequence[tuple[type[Particle], str, Mapping[str, int]]],
        landmarks: Sequence[tuple[float, bool, float]], *, continuous: bool = True, words: int = 0,
        local_ratio: float = 0.5, **options: Any,
    ) -> None:  # fmt: skip
        require_switch(f"{type(self).__name__}(continuous={continuous!r:.60})", continuous)
        self.parts, agents = {name: parts for _, name, parts in members}, []
        for role, name, parts in members:
            form = getattr(sys.modules[role.__module__], role.__name__ + ("Numbers" if continuous else "Choices"), role)
            own = {part: size for part, size in parts.items() if part not in role.shared}
            agents.append(form(name, of.particle_view(**own)(), of.Stakes(local_ratio=local_ratio)))
        kinds = [(role.size, role.collides, 1.0, role.accel, role.top) for role, _, _ in members]
        kinds += [(*landmark, 0.0, 0.0) for landmark in landmarks]
        fields = ("size", "collides", "reach", "accel", "top")
        columns = dict(zip(fields, np.array(kinds, dtype=np.float64).T, strict=True))
        world = of.bodies(len(kinds), len(agents), words)(agents=[len(agents)], **columns)
        super().__init__(Plane("system_agent", *agents, world), **options)

    def draw_frame(self, axes: Any, world: World, observed: Any, artists: Any = None) -> Any:
        """The plane: agents, landmarks, contacts; dashed where the observing agent believes everybody."""
        from heron_env.worlds.particles.drawing import ParticlesDrawing

        return (artists or ParticlesDrawing(axes, self.system.subordinates)).show(world, observed)

    def benchmark(self) -> Benchmark:
        """One rule for each group of agents."""
        specs, index = self.simulation.model.specs, self.hierarchy.index
        first = {group: agents[0] for group, agents in self.group_map.items()}
        play = {g: ByRule(decide, self.parts[first[g]], specs[index[first[g]]]) for g, decide in self.rules.items()}
        return Benchmark(baselines=lambda seed: {"rule": play}, strongest="rule", unit="sum of rewards, all agents")
