"""What the particle worlds share: classes of agents for both forms of actions, and the environment around them."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from heron_env.agents.agent import FieldAgent, SystemAgent
from heron_env.core.action import Continuous, Discrete, Vector
from heron_env.core.rule import rule
from heron_env.core.world import World
from heron_env.envs.base import HeronEnv
from heron_env.envs.description import Benchmark
from heron_env.worlds.particles.bodies import MOVES, Bodies, Order, Sight, Stakes, bodies, order, sight
from heron_env.worlds.particles.policies import ByRule, Decide
from heron_env.worlds.spread.discs import FULL_FORCE, STEP

RETURN_UNIT = "sum of rewards, all agents"
R = TypeVar("R", bound="type[Particle]")


class Particle(FieldAgent):
    """An agent of a particle world, without an action; its reward is its role's.

    size: radius. accel: force of a full push, 0: it stays where it is. top: highest speed. collides: does it bounce off
    others that do?
    """

    features = (Sight, Order, Stakes)
    size: ClassVar[float] = 0.05
    accel: ClassVar[float] = FULL_FORCE
    top: ClassVar[float] = 1e9
    collides: ClassVar[bool] = False


def in_both_forms(words: int = 0) -> Callable[[R], R]:
    """Give a role two classes that act, NAMENumbers and NAMEChoices: five pushes if it moves, and so many words."""

    def decorate(role: R) -> R:
        pushes = MOVES if role.accel > 0.0 else 0
        forms = {
            "Numbers": Continuous(0.0, 1.0, size=pushes + words),
            "Choices": Discrete(max(pushes, 1) * max(words, 1)),
        }
        for form, action in forms.items():
            kept = order(action.size)
            body = {"features": (Sight, kept, Stakes), "action": action, "apply_action": staticmethod(_keeping(kept))}
            about = {"__module__": role.__module__, "__doc__": role.__doc__}
            made = type(f"{role.__name__}{form}", (role,), {**about, **body})
            setattr(sys.modules[role.__module__], made.__name__, made)
        return role

    return decorate


def _keeping(kept: Any) -> Any:
    """The rule that keeps an action as the order."""

    @rule(writes=kept.action)
    def apply_action(action: Vector) -> Any:
        """As it was given."""
        return action

    return apply_action


class Plane(SystemAgent):
    """The plane on which the bodies move."""

    features = (Bodies,)


class ParticlesEnv(HeronEnv):
    """Agents and landmarks of a particle world. Subclasses have the rules `begin` and `advance`.

    Args:
        members: role and id of each agent, and the sizes of the parts of its sight.
        landmarks: radius of each landmark, and whether agents bounce off it.
        continuous: continuous actions, else discrete ones.
        words: how many each agent can say.
        local_ratio: of agents' rewards.
        options: as for HeronEnv.
    """

    dt = STEP
    rules: Mapping[str, Decide] = {}
    """By which the groups of agents play, as a baseline."""

    def __init__(
        self, members: Sequence[tuple[type[Particle], str, Mapping[str, int]]],
        landmarks: Sequence[tuple[float, bool]], *, continuous: bool, words: int = 0, local_ratio: float = 0.5,
        **options: Any,
    ) -> None:  # fmt: skip
        self.continuous, agents = continuous, []
        self.parts = {name: parts for _, name, parts in members}
        for role, name, parts in members:
            form = getattr(sys.modules[role.__module__], f"{role.__name__}{'Numbers' if continuous else 'Choices'}")
            agents.append(form(name, sight(**parts)(), Stakes(local_ratio=local_ratio)))
        roles = [role for role, _, _ in members]
        world = bodies(len(roles) + len(landmarks), len(roles), words)(
            size=[*(role.size for role in roles), *(size for size, _ in landmarks)],
            collides=[*(float(role.collides) for role in roles), *(float(collides) for _, collides in landmarks)],
            accel=[*(role.accel for role in roles), *(0.0 for _ in landmarks)],
            top=[*(role.top for role in roles), *(0.0 for _ in landmarks)],
        )
        super().__init__(Plane("system_agent", *agents, world), **options)

    def draw_frame(self, axes: Any, world: World, observed: Any, artists: Any = None) -> Any:
        """The plane: agents, landmarks, contacts; dashed where the observing agent believes everybody."""
        from heron_env.worlds.particles.drawing import ParticlesDrawing

        return (artists or ParticlesDrawing(axes, self.system.subordinates)).show(world, observed)

    def benchmark(self) -> Benchmark:
        """One rule for each group of agents."""
        return Benchmark(baselines=lambda seed: {"rule": self._rules()}, strongest="rule", unit=RETURN_UNIT)

    def _rules(self) -> dict[str, ByRule]:
        specs, first = self.simulation.specs, {group: agents[0] for group, agents in self.group_map.items()}
        return {
            group: ByRule(decide, self.parts[first[group]], specs[self.hierarchy.index[first[group]]])
            for group, decide in self.rules.items()
        }
