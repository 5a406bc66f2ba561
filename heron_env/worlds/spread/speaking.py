"""Spread with mates="share": agents that decide in each step whether they tell the others where they are.

Who speaks raises `Voice.says`, and at the end of the step its place leaves for each of the others (law V10). What they
heard last stands in their `Heard`; of each other they see nothing else. Before anybody has spoken, everybody is
believed to be in the middle.
"""

from functools import cache
from typing import Any

import numpy as np

from heron_env.agents.horizontal import Inbox, StateShare
from heron_env.core.action import Continuous, Discrete, Vector
from heron_env.core.feature import FeatureProvider, quantity
from heron_env.core.rule import rule
from heron_env.worlds.spread.discs import (
    DIRECTIONS,
    FAR,
    FULL_FORCE,
    Chooser,
    Contact,
    Disc,
    Force,
    Landscape,
    Position,
    Pusher,
    Team,
    Velocity,
)

PUSHES = len(DIRECTIONS)
SHARE = "share"
"""The value of `mates`."""


class DiscVoice(FeatureProvider):
    """What an agent says of itself, and what that costs.

    shared `[2]`: where it said last that it is; it remembers that. place `[2]`: where it is at the end of the step,
    which it shares. says: 1 from a decision to speak until the messages have left. cost: of a message to one of the
    hearers, of whom there are so many. sent: messages in this episode.
    """

    feature_name = "Voice"
    shared: np.ndarray = quantity(shape=(2,), low=-FAR, high=FAR)
    place: np.ndarray = quantity(shape=(2,), low=-FAR, high=FAR, to_owner=False)
    says: float = quantity(default=0.0, low=0.0, high=1.0, observed=False)
    cost: float = quantity(default=0.0, low=0.0, high=1e6, observed=False)
    hearers: float = quantity(default=0.0, low=0.0, high=1e6, observed=False)
    sent: float = quantity(default=0.0, low=0.0, high=1e15, observed=False)


class HeardPlaces(Inbox):
    """Where each of the others said last that it is; `heard(n)` has the quantity `places` `[n - 1, 2]`."""

    feature_name = "Heard"


@cache
def heard(n: int) -> Any:
    """The inbox of one of `n` agents; a single one has a place for nobody, which it does not observe."""
    places = quantity(shape=(max(n - 1, 1), 2), low=-FAR, high=FAR, observed=n > 1)
    names = {"__module__": __name__, "__doc__": HeardPlaces.__doc__, "feature_name": "Heard", "places": places}
    return type(f"Heard{n}", (HeardPlaces,), {**names, "__annotations__": {"places": np.ndarray}})


def __getattr__(name: str) -> Any:
    """`Heard3`: by this name copies and pickles of environments find their features."""
    number = name.removeprefix("Heard")
    if number != name and number.isdigit():
        return heard(int(number))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def ear_and_voice(n: int, cost: float) -> tuple[FeatureProvider, ...]:
    """Of one of `n` agents, for whom a message to one of the others costs so much."""
    voice: Any = DiscVoice
    return heard(n)(), voice(cost=cost, hearers=n - 1.0)


def shares(n: int) -> StateShare:
    """Everybody tells all others where it is, when it says so."""
    return StateShare(DiscVoice.place, heard(n).places, "full", when=DiscVoice.says)


class SpeakingDisc(Disc):
    """Has a voice, and pays for what it says."""

    features = (Velocity, Position, Landscape, HeardPlaces, DiscVoice, Force, Contact)  # type: ignore[assignment]

    @staticmethod
    @rule
    def compute_local_reward(contact: Contact, team: Team, voice: DiscVoice) -> float:  # type: ignore[override]
        """As for a disc, less the cost of the messages that leave now."""
        earned = -team.distance * (1.0 - contact.local_ratio) - contact.others * contact.local_ratio
        return earned - voice.cost * voice.hearers * voice.says


class SpeakingPusher(SpeakingDisc, Pusher):
    """Five pushes, and a number in [-1, 1]: above 0 it speaks."""

    action = Continuous([*[0.0] * PUSHES, -1.0], 1.0)

    @staticmethod
    @rule(writes=(Force.x, Force.y, DiscVoice.says))
    def apply_action(action: Vector) -> tuple[float, float, float]:  # type: ignore[override]
        """Set the force; opposite pushes cancel."""
        return FULL_FORCE * (action[2] - action[1]), FULL_FORCE * (action[4] - action[3]), 1.0 * (action[5] > 0.0)


class SpeakingChooser(SpeakingDisc, Chooser):
    """One of five directions in silence, or, from the fifth choice on, the same while it speaks."""

    action = Discrete(2 * PUSHES)

    @staticmethod
    @rule(writes=(Force.x, Force.y, DiscVoice.says))
    def apply_action(action: Vector) -> tuple[float, float, float]:  # type: ignore[override]
        """All the force in one direction."""
        says = 1.0 * (action[0] >= PUSHES)
        choice = action[0] - PUSHES * says
        right = FULL_FORCE * (choice == 2.0) - FULL_FORCE * (choice == 1.0)
        up = FULL_FORCE * (choice == 4.0) - FULL_FORCE * (choice == 3.0)
        return right, up, says


def note(discs: Any) -> None:
    """What leaves now: where everybody is; who speaks remembers it."""
    position, voice = discs.Position, discs.Voice
    for i in range(len(position.x)):
        voice.place[i, 0], voice.place[i, 1] = position.x[i], position.y[i]
        if voice.says[i] >= 0.5:
            voice.shared[i, 0], voice.shared[i, 1] = position.x[i], position.y[i]
            voice.sent[i] += voice.hearers[i]
