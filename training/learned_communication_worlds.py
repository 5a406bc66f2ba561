"""Spread in which a scheme, and not the agents, decides when they tell where they are; for learned_communication.py."""

import math
from typing import Any

from heron_env import FeatureProvider, Vector, World, quantity, rule
from heron_env.worlds.spread.discs import FULL_FORCE, WRITTEN, Disc, Force, Team, look, move
from heron_env.worlds.spread.env import SpeakingSpreadEnv, add_up
from heron_env.worlds.spread.speaking import DiscVoice, SpeakingDisc, SpeakingPusher, note

SCHEMES = ("policy", "always", "never", "random", "periodic", "trigger", "chance", "threshold")
FARTHEST = 0.6
"""Largest threshold that a policy may set."""


class Scheme(FeatureProvider):
    """Who decides; with what probability, every how many steps, or beyond what distance from what was shared last.

    chance: what the policy sets: a probability, or a share of the largest threshold.
    """

    kind: float = quantity(low=0.0, high=len(SCHEMES) - 1.0, observed=False)
    rate: float = quantity(low=0.0, high=1e3, observed=False)
    chance: float = quantity(low=0.0, high=1.0, observed=False)


class Schemed(SpeakingPusher):
    """An agent with a scheme."""

    features = (*SpeakingDisc.features, Scheme)

    @staticmethod
    @rule(writes=(Force.x, Force.y, DiscVoice.says, Scheme.chance))
    def apply_action(action: Vector) -> tuple[float, float, float, float]:  # type: ignore[override]
        """As without a scheme; the last number is a chance to speak, or a threshold, too."""
        right, up = FULL_FORCE * (action[2] - action[1]), FULL_FORCE * (action[4] - action[3])
        return right, up, 1.0 * (action[5] > 0.0), (action[5] + 1.0) / 2.0


class SchemedSpread(SpeakingSpreadEnv):
    """The scheme raises and lowers voices at the end of each step, before messages leave."""

    kinds = (Schemed, Schemed)

    def __init__(self, num_agents: int, *, scheme: str = "policy", rate: float = 0.0, **options: Any) -> None:
        self._scheme = {"kind": float(SCHEMES.index(scheme)), "rate": rate}
        super().__init__(num_agents, **options)

    def more(self) -> tuple[Any, ...]:
        """A scheme, too."""
        return (*super().more(), Scheme(**self._scheme))

    @staticmethod
    @rule(writes=(*WRITTEN, DiscVoice.says))
    def advance(world: World, dt: float) -> None:
        """As without a scheme; where the policy sets a chance, it is drawn who speaks."""
        discs = world[Disc]
        move(discs, dt)
        look(discs, world.Landmarks, world.Team)
        drawn = world.draw("chance", len(discs.Voice.says))
        for i in range(len(drawn)):
            if discs.Scheme.kind[i] == 6.0:
                discs.Voice.says[i] = 1.0 if drawn[i] < discs.Scheme.chance[i] else 0.0

    @staticmethod
    @rule(
        writes=(Team.distance_sum, Team.contact_sum, DiscVoice.says, DiscVoice.place, DiscVoice.shared, DiscVoice.sent)
    )
    def finish(world: World) -> None:
        """As without a scheme, which overrules the agents."""
        discs = world[Disc]
        scheme, voice, position = discs.Scheme, discs.Voice, discs.Position
        drawn = world.draw("speak", len(position.x))
        for i in range(len(position.x)):
            kind, rate = scheme.kind[i], scheme.rate[i]
            if kind == 1.0:
                voice.says[i] = 1.0
            elif kind == 2.0:
                voice.says[i] = 0.0
            elif kind == 3.0:
                voice.says[i] = 1.0 if drawn[i] < rate else 0.0
            elif kind == 4.0:
                turn = world.step + i * rate / len(position.x)
                voice.says[i] = 1.0 if math.floor((turn + 1.0) / rate) > math.floor(turn / rate) else 0.0
            elif kind == 5.0 or kind == 7.0:
                bound = rate if kind == 5.0 else FARTHEST * scheme.chance[i]
                x, y = position.x[i] - voice.shared[i, 0], position.y[i] - voice.shared[i, 1]
                voice.says[i] = 1.0 if math.sqrt(x * x + y * y) > bound else 0.0
        add_up(world.Team, discs.Contact)
        note(discs)


def world(num_agents: int = 3, local_ratio: float = 0.5, max_steps: int = 25, **options: Any) -> SchemedSpread:
    """Spread with mates="share"; scheme: one of SCHEMES; rate: its probability, period in steps, or distance."""
    return SchemedSpread(
        num_agents, continuous=True, local_ratio=local_ratio, mates="share", max_steps=max_steps, **options
    )
