"""What the particle worlds share: classes of agents for both forms of actions, and the environment around them."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from heron_env.agents.agent import FieldAgent, SystemAgent
from heron_env.agents.horizontal import StateShare
from heron_env.core.action import Continuous, Discrete, Vector
from heron_env.core.feature import FeatureProvider
from heron_env.core.quantity import Quantity
from heron_env.core.rule import rule
from heron_env.core.world import World
from heron_env.envs.base import HeronEnv
from heron_env.envs.description import Benchmark
from heron_env.errors import ConfigError
from heron_env.given import require_price, require_switch
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
    """Give a role two classes that act, NAMENumbers and NAMEChoices: five pushes if it moves, and so many words.

    A role with a Speech has a third one, NAMEQuiet: choices with one more word, the last, which says nothing.
    """

    def decorate(role: R) -> R:
        pushes, speaks = of.MOVES if role.accel > 0.0 else 0, of.Speech in role.features
        moves = max(pushes, 1)
        forms = {"Numbers": Continuous(0.0, 1.0, size=pushes + words), "Choices": Discrete(moves * max(words, 1))}
        forms |= {"Quiet": Discrete(moves * (words + 1))} if speaks else {}
        for form, action in forms.items():
            kept = of.action_in_force(action.size)
            first, end = (pushes, 0) if form == "Numbers" else (0, moves * words)
            made = {
                of.ActionInForce: kept,
                **({of.Speech: of.speech(words), of.HeardWords: of.heard(words)} if words else {}),
            }
            features = tuple(made.get(feature, feature) for feature in role.features)
            apply_action = _speaking(kept, first, end) if speaks else _acting(kept)
            body = {"features": features, "action": action}
            body |= {"apply_action": staticmethod(apply_action), "__module__": role.__module__, "__doc__": role.__doc__}
            setattr(sys.modules[role.__module__], role.__name__ + form, type(role.__name__ + form, (role,), body))
        return role

    return decorate


def _acting(kept: Any) -> Any:
    """The rule of those that only push, or whose words are not messages."""

    @rule(writes=kept.action)
    def apply_action(action: Vector) -> Any:
        """Keep it as it was given."""
        return action

    return apply_action


def _speaking(kept: Any, first: int, end: int) -> Any:
    """The rule of those whose words are messages: numbers from `first` on, or choices below `end`."""

    @rule(writes=(kept.action, of.Speech.says))
    def apply_action(action: Vector, speech: of.Speech) -> Any:
        """Keep it as it was given; is anything said?"""
        said = action[0] < end
        if end == 0:
            for w in range(first, len(action)):
                said = said or action[w] > 0.0
        return action, 1.0 if said or speech.silence == 0.0 else 0.0

    return apply_action


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
        channels: pairs (speaker, listener) between which words are messages, by their own links.
        silence: who says nothing there sends nothing, which costs nothing, and its last words stay; choices have one
            more word, the last, for it. False: words leave with each action; words all 0 mean nothing.
        speech_cost: what such a message costs its speaker, >= 0.
        options: as for HeronEnv.

    Raises ConfigError naming the argument and its value.
    """

    dt = STEP
    rules: Mapping[str, Decide] = {}
    """By which the groups of agents play, as a baseline."""

    def __init__(
        self, members: Sequence[tuple[type[Particle], str, Mapping[str, int]]],
        landmarks: Sequence[tuple[float, bool, float]], *, continuous: bool = True, words: int = 0,
        local_ratio: float = 0.5, channels: Sequence[tuple[str, str]] = (), silence: bool = False,
        speech_cost: float = 0.0, **options: Any,
    ) -> None:  # fmt: skip
        mine = type(self).__name__
        require_switch(f"{mine}(continuous={continuous!r:.60})", continuous)
        require_switch(f"{mine}(silence={silence!r:.60})", silence)
        require_price(f"{mine}(speech_cost={speech_cost!r:.60})", speech_cost)
        if not channels and (silence or speech_cost):
            raise ConfigError(f"{mine}: here words are no messages; leave out silence and speech_cost")
        self.parts, agents = {name: parts for _, name, parts in members}, []
        voice = [of.speech(words)(silence=float(silence), cost=float(speech_cost))] if channels else []
        for role, name, parts in members:
            forms = ["Numbers"] if continuous else ["Quiet", "Choices"] if silence else ["Choices"]
            found = [getattr(sys.modules[role.__module__], role.__name__ + form, None) for form in forms]
            form = next((kind for kind in found if kind), role)
            own = {part: size for part, size in parts.items() if part not in role.shared}
            features = [of.particle_view(**own)(), of.Stakes(local_ratio=local_ratio)]
            agents.append(form(name, *features, *(voice if of.Speech in role.features else [])))
        kinds = [(role.size, role.collides, 1.0, role.accel, role.top) for role, _, _ in members]
        kinds += [(*landmark, 0.0, 0.0) for landmark in landmarks]
        fields = ("size", "collides", "reach", "accel", "top")
        columns = dict(zip(fields, np.array(kinds, dtype=np.float64).T, strict=True))
        world = of.bodies(len(kinds), len(agents), words)(agents=[len(agents)], **columns)
        exchange = (
            [StateShare(of.speech(words).words, of.heard(words).words, channels, when=of.Speech.says)]
            if channels
            else ()
        )
        super().__init__(Plane("system_agent", *agents, world, exchange=exchange), **options)

    def draw_frame(self, axes: Any, world: World, observed: Any, artists: Any = None) -> Any:
        """Draw agents, landmarks and contacts; dashed: places that the observing agent knows."""
        from heron_env.worlds.particles.drawing import ParticlesDrawing

        return (artists or ParticlesDrawing(axes, self.system.subordinates)).show(world, observed)

    def benchmark(self) -> Benchmark:
        """Return one rule for each group of agents."""
        specs, index = self.simulation.model.specs, self.hierarchy.index
        first = {group: agents[0] for group, agents in self.group_map.items()}
        play = {g: ByRule(decide, self.parts[first[g]], specs[index[first[g]]]) for g, decide in self.rules.items()}
        return Benchmark(baselines=lambda seed: {"rule": play}, strongest="rule", unit="sum of rewards, all agents")
