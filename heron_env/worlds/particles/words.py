"""`heron/Reference-v0`, `heron/SpeakerListener-v0` and `heron/Crypto-v0`: MPE's worlds in which agents must talk."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from heron_env.core.rule import rule
from heron_env.core.world import World
from heron_env.errors import ConfigError
from heron_env.given import require_switch
from heron_env.worlds.particles.bodies import (
    Stakes,
    apart,
    move,
    obey,
    place,
    see_colours,
    see_own,
    see_ways,
    square_apart,
    written,
)
from heron_env.worlds.particles.env import Particle, ParticlesEnv, Plane, in_both_forms
from heron_env.worlds.particles.policies import Array, numbered, pairs

LANDMARKS = 3
"""Of Reference and SpeakerListener, and the basic colours."""
REFERENCE_WORDS, CRYPTO_WORDS = 10, 4


@in_both_forms(REFERENCE_WORDS)
class Guide(Particle):
    """Knows its mate's goal, and needs to hear of its own."""

    @staticmethod
    @rule
    def compute_local_reward(stakes: Stakes) -> float:
        """Minus its mate's distance from the goal that it knows of, mixed with the team's mean."""
        mean = -(stakes.own + stakes.others) / 2.0
        return mean * (1.0 - stakes.local_ratio) - stakes.own * stakes.local_ratio


@in_both_forms(LANDMARKS)
class Speaker(Particle):
    """Knows the goal, and can't move."""

    size, accel = 0.075, 0.0

    @staticmethod
    @rule
    def compute_local_reward(stakes: Stakes) -> float:
        """Minus the listener's squared distance from the goal."""
        return -stakes.own


@in_both_forms()
class Listener(Particle):
    """Must hear where to go."""

    size = 0.075

    @staticmethod
    @rule
    def compute_local_reward(stakes: Stakes) -> float:
        """As the speaker's."""
        return -stakes.own


class Cipher(Particle):
    """Says what it takes the message for: the number of a landmark. It stays where it is."""

    accel = 0.0

    @staticmethod
    @rule
    def compute_local_reward(stakes: Stakes) -> float:
        """Eve's error minus Bob's: squared distances of their words from the message, 0 for who says nothing."""
        return stakes.others - stakes.own


@in_both_forms(CRYPTO_WORDS)
class Eve(Cipher):
    """Hears Alice, and has no key: nobody else's error counts for her."""


@in_both_forms(CRYPTO_WORDS)
class Bob(Cipher):
    """Hears Alice, and has her key."""


@in_both_forms(CRYPTO_WORDS)
class Alice(Cipher):
    """Knows message and key."""


def guide(seen: Mapping[str, Array]) -> tuple[Array, Array]:
    """Say which landmark is the mate's; go to the one that is heard of, once one is."""
    return _heard_of(seen), seen["colour"].argmax(axis=1)


def speak(seen: Mapping[str, Array]) -> tuple[None, Array]:
    """Say which landmark it is."""
    return None, seen["colour"].argmax(axis=1)


def listen(seen: Mapping[str, Array]) -> tuple[Array, None]:
    """Go to the landmark that is heard of, once one is."""
    return _heard_of(seen), None


def _heard_of(seen: Mapping[str, Array]) -> Array:
    heard = seen["heard"]
    ways = numbered(pairs(seen["landmarks"]), np.minimum(heard.argmax(axis=1), LANDMARKS - 1))
    return np.where(heard.max(axis=1, keepdims=True) > 0.0, ways, 0.0)


def overhear(seen: Mapping[str, Array]) -> tuple[None, Array]:
    """Say what is heard."""
    return None, seen["heard"].argmax(axis=1)


def decipher(seen: Mapping[str, Array]) -> tuple[None, Array]:
    """Say what is heard, the other landmark where the key is the second."""
    return None, (seen["heard"].argmax(axis=1) + seen["key"].argmax(axis=1)) % 2


def encipher(seen: Mapping[str, Array]) -> tuple[None, Array]:
    """Say the message, the other landmark where the key is the second."""
    return None, (seen["colour"].argmax(axis=1) + seen["key"].argmax(axis=1)) % 2


class ReferenceEnv(ParticlesEnv):
    """MPE's simple_reference."""

    metadata = {**ParticlesEnv.metadata, "name": "heron/Reference-v0"}
    rules = {"agent": guide}

    @staticmethod
    @rule
    def begin(world: World) -> None:
        """Everybody lies somewhere, and looks around."""
        place(world, world[Plane].Bodies, 2, 1.0)
        confer(world)

    @staticmethod
    @rule(writes=written("velocity", "landmarks", "colour", "heard"))
    def advance(world: World, dt: float) -> None:
        """One substep, then look around."""
        obey(world[Guide].Order.action, world[Plane].Bodies, 0, REFERENCE_WORDS)
        move(world[Plane].Bodies, dt)
        confer(world)


def confer(world: Any) -> None:
    """What both see and hear in Reference; how far each one's mate is from the goal that it knows of."""
    bodies, sight, stakes = world[Plane].Bodies, world[Guide].Sight, world[Guide].Stakes
    see_own(sight.velocity, bodies.vx[0], bodies.vy[0], 0)
    see_ways(sight.landmarks, bodies, 0, 2, 2 + LANDMARKS)
    for i in range(2):
        goal = int(bodies.goals[0, i])
        see_colours(sight.colour[i : i + 1], goal, 1, 0.75, 0.25)
        hear(sight.heard[i : i + 1], bodies, 1 - i)
        stakes.own[i] = stakes.others[1 - i] = apart(bodies, 1 - i, 2 + goal)


def hear(rows: Any, bodies: Any, speaker: int) -> None:
    """The words of one speaker into `rows` `[n, words]`."""
    words = rows.shape[1]
    for i in range(len(rows)):
        for w in range(words):
            rows[i, w] = bodies.said[0, speaker * words + w]


class SpeakerListenerEnv(ParticlesEnv):
    """MPE's simple_speaker_listener."""

    metadata = {**ParticlesEnv.metadata, "name": "heron/SpeakerListener-v0"}
    rules = {"speaker": speak, "listener": listen}

    @staticmethod
    @rule
    def begin(world: World) -> None:
        """Everybody lies somewhere, and looks around."""
        place(world, world[Plane].Bodies, 2, 1.0)
        direct(world)

    @staticmethod
    @rule(writes=written("colour", "velocity", "landmarks", "heard"))
    def advance(world: World, dt: float) -> None:
        """One substep, then look around."""
        bodies = world[Plane].Bodies
        obey(world[Speaker].Order.action, bodies, 0, LANDMARKS)
        obey(world[Listener].Order.action, bodies, 1, 0)
        move(bodies, dt)
        direct(world)


def direct(world: Any) -> None:
    """What both see and hear in SpeakerListener, and how far the listener is from the goal."""
    bodies, speaker, listener = world[Plane].Bodies, world[Speaker], world[Listener]
    goal = int(bodies.goals[0, 0])
    see_colours(speaker.Sight.colour, goal, 1, 0.65, 0.15)
    see_own(listener.Sight.velocity, bodies.vx[0], bodies.vy[0], 1)
    see_ways(listener.Sight.landmarks, bodies, 1, 2, 2 + LANDMARKS)
    hear(listener.Sight.heard, bodies, 0)
    speaker.Stakes.own[0] = listener.Stakes.own[0] = square_apart(bodies, 1, 2 + goal)


class CryptoEnv(ParticlesEnv):
    """MPE's simple_crypto: the first goal is the message, the second one the key."""

    metadata = {**ParticlesEnv.metadata, "name": "heron/Crypto-v0"}
    rules = {"eve": overhear, "bob": decipher, "alice": encipher}

    @staticmethod
    @rule
    def begin(world: World) -> None:
        """Message and key are drawn; nobody has spoken."""
        place(world, world[Plane].Bodies, 3, 1.0)
        whisper(world)

    @staticmethod
    @rule(writes=written("heard", "key", "colour"))
    def advance(world: World, dt: float) -> None:
        """One substep, in which all speak."""
        bodies = world[Plane].Bodies
        obey(world[Eve].Order.action, bodies, 0, CRYPTO_WORDS)
        obey(world[Bob].Order.action, bodies, 1, CRYPTO_WORDS)
        obey(world[Alice].Order.action, bodies, 2, CRYPTO_WORDS)
        whisper(world)


def whisper(world: Any) -> None:
    """What is heard and known in Crypto, and the errors."""
    bodies, eve, bob, alice = world[Plane].Bodies, world[Eve], world[Bob], world[Alice]
    message, key = int(bodies.goals[0, 0]), int(bodies.goals[0, 1])
    hear(eve.Sight.heard, bodies, 2)
    hear(bob.Sight.heard, bodies, 2)
    see_colours(bob.Sight.key, key, 1, 1.0, 0.0)
    see_colours(alice.Sight.colour, message, 1, 1.0, 0.0)
    see_colours(alice.Sight.key, key, 1, 1.0, 0.0)
    eve.Stakes.own[0] = bob.Stakes.others[0] = alice.Stakes.others[0] = error(bodies, 0, message)
    bob.Stakes.own[0] = alice.Stakes.own[0] = error(bodies, 1, message)


def error(bodies: Any, speaker: int, message: int) -> float:
    """Squared distance of what one says from the message; 0 for nothing said."""
    total, silent = 0.0, True
    for w in range(CRYPTO_WORDS):
        said = bodies.said[0, speaker * CRYPTO_WORDS + w]
        silent = silent and said == 0.0
        off = said - (1.0 if w == message else 0.0)
        total += off * off
    return 0.0 if silent else total


def reference(
    local_ratio: float = 0.5, continuous: bool = True, max_steps: int | None = 25, **options: Any
) -> ReferenceEnv:
    """MPE's simple_reference: two agents, each of which must hear from the other where to go.

    Args:
        local_ratio: weight of an agent's own reward, in [0, 1]; the rest is the team's mean.
        continuous: numbers in [0, 1], five pushes (stay, left, right, down, up) and ten words; False: one choice,
            direction + 5 word.
        max_steps: steps an episode.
        options: of HeronEnv.

    Raises ConfigError naming the argument and its value.
    """
    if not isinstance(local_ratio, int | float) or not 0.0 <= local_ratio <= 1.0:
        raise ConfigError(f"reference(local_ratio={local_ratio!r}): must be a number in [0, 1]")
    require_switch(f"reference(continuous={continuous!r:.60})", continuous)
    parts = {"velocity": 2, "landmarks": 2 * LANDMARKS, "colour": LANDMARKS, "heard": REFERENCE_WORDS}
    members = [(Guide, f"agent_{i}", parts) for i in range(2)]
    landmarks = [(0.05, False)] * LANDMARKS
    options |= {"words": REFERENCE_WORDS, "local_ratio": local_ratio, "max_steps": max_steps}
    return ReferenceEnv(members, landmarks, continuous=continuous, **options)


def speaker_listener(continuous: bool = True, max_steps: int | None = 25, **options: Any) -> SpeakerListenerEnv:
    """MPE's simple_speaker_listener: speaker_0 knows the goal, listener_0 goes there.

    Args:
        continuous: numbers in [0, 1], three words or five pushes; False: one word, or one of five directions.
        max_steps: steps an episode.
        options: of HeronEnv.

    Raises ConfigError naming the argument and its value.
    """
    require_switch(f"speaker_listener(continuous={continuous!r:.60})", continuous)
    listener = {"velocity": 2, "landmarks": 2 * LANDMARKS, "heard": LANDMARKS}
    members = [(Speaker, "speaker_0", {"colour": LANDMARKS}), (Listener, "listener_0", listener)]
    landmarks, words = [(0.04, False)] * LANDMARKS, LANDMARKS
    return SpeakerListenerEnv(members, landmarks, continuous=continuous, words=words, max_steps=max_steps, **options)


def crypto(continuous: bool = True, max_steps: int | None = 25, **options: Any) -> CryptoEnv:
    """MPE's simple_crypto: alice_0 tells bob_0 a message in a cipher, which eve_0 hears as well.

    Args:
        continuous: four words, numbers in [0, 1]; False: one word.
        max_steps: steps an episode.
        options: of HeronEnv.

    Raises ConfigError naming the argument and its value.
    """
    require_switch(f"crypto(continuous={continuous!r:.60})", continuous)
    n = CRYPTO_WORDS
    members = [
        (Eve, "eve_0", {"heard": n}),
        (Bob, "bob_0", {"key": n, "heard": n}),
        (Alice, "alice_0", {"colour": n, "key": n}),
    ]
    return CryptoEnv(members, [(0.05, False)] * 2, continuous=continuous, words=n, max_steps=max_steps, **options)
