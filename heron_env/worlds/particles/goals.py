"""MPE's worlds with goals that some don't know: Adversary, Push, SpeakerListener, Reference, and Crypto."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from heron_env.core.rule import rule
from heron_env.errors import ConfigError
from heron_env.given import require_count
from heron_env.worlds.particles import bodies as of
from heron_env.worlds.particles.env import Particle, ParticlesEnv, Plane, in_both_forms, steps
from heron_env.worlds.particles.policies import Array, numbered, pairs, with_company

Seen = Mapping[str, Array]
LANDMARKS, REFERENCE_WORDS, CIPHERS = 3, 10, 4
"""Landmarks of SpeakerListener and Reference, words of Reference and of Crypto."""
FREE = (0.05, False, 1.0)
"""A landmark that nobody bounces off, somewhere in the square."""


def head_for_company(seen: Seen) -> tuple[Array, None]:
    """To the landmark that is nearest to one of the others: they know the goal."""
    return with_company(pairs(seen["landmarks"]), pairs(seen["others"])), None


def head_for_goal(seen: Seen) -> tuple[Array, None]:
    """To the goal."""
    return seen["goal"], None


def heard_of(seen: Seen) -> Array:
    """The way to the landmark that is heard of, once one is."""
    ways = numbered(pairs(seen["landmarks"]), np.minimum(seen["heard"].argmax(axis=1), LANDMARKS - 1))
    return np.where(seen["heard"].max(axis=1, keepdims=True) > 0.0, ways, 0.0)


def listen(seen: Seen) -> tuple[Array, None]:
    """Go to the landmark that is heard of."""
    return heard_of(seen), None


def speak(seen: Seen) -> tuple[None, Any]:
    """Say which landmark is the goal."""
    return None, seen["colour"].argmax(axis=1)


def guide(seen: Seen) -> tuple[Array, Any]:
    """Both."""
    return heard_of(seen), speak(seen)[1]


def overhear(seen: Seen) -> tuple[None, Any]:
    """Say what is heard."""
    return None, seen["heard"].argmax(axis=1)


def decipher(seen: Seen) -> tuple[None, Any]:
    """Say what is heard, or the other landmark where the key is the second."""
    return None, (overhear(seen)[1] + seen["key"].argmax(axis=1)) % 2


def encipher(seen: Seen) -> tuple[None, Any]:
    """Say the message, or the other landmark where the key is the second."""
    return None, (speak(seen)[1] + seen["key"].argmax(axis=1)) % 2


# Adversary


@in_both_forms()
class Intruder(Particle):
    """Wants to be at the goal, and doesn't know which landmark it is."""

    size = 0.15


@in_both_forms()
class Decoy(Particle):
    """Wants that one of the decoys is at the goal, and the intruder far from it."""

    size = 0.15


def heed_in_adversary(world: Any) -> None:
    """All push."""
    of.obey(world[Intruder].ActionInForce.action, world[Plane].Bodies, 0, 0)
    of.obey(world[Decoy].ActionInForce.action, world[Plane].Bodies, 1, 0)


def look_in_adversary(world: Any) -> None:
    """What everybody sees; how far intruder and decoys are from the goal."""
    bodies, intruder, decoys = world[Plane].Bodies, world[Intruder], world[Decoy]
    agents, entities = 1 + len(decoys.Stakes.own), bodies.x.shape[1]
    goal, nearest = agents + int(bodies.goals[0, 0]), math.inf
    of.see_ways(intruder.ParticleView.landmarks, bodies, 0, agents, entities)
    of.see_ways(intruder.ParticleView.others, bodies, 0, 0, agents)
    of.see_ways(decoys.ParticleView.goal, bodies, 1, goal, goal + 1)
    of.see_ways(decoys.ParticleView.landmarks, bodies, 1, agents, entities)
    of.see_ways(decoys.ParticleView.others, bodies, 1, 0, agents)
    intruder.Stakes.own[0] = of.apart(bodies, 0, goal)
    for i in range(1, agents):
        nearest = min(nearest, of.apart(bodies, i, goal))
    for i in range(agents - 1):
        decoys.Stakes.own[i], decoys.Stakes.others[i] = nearest, intruder.Stakes.own[0]


class AdversaryEnv(ParticlesEnv):
    """MPE's simple_adversary."""

    metadata = {**ParticlesEnv.metadata, "name": "heron/Adversary-v0"}
    rules = {"adversary": head_for_company, "agent": head_for_goal}
    begin, advance = steps(heed_in_adversary, look_in_adversary, "goal", "landmarks", "others")


def adversary(N: int = 2, continuous: bool = True, max_steps: int | None = 25, **options: Any) -> AdversaryEnv:
    """MPE's simple_adversary: decoys know which landmark is the goal, and lead an intruder, adversary_0, astray.

    N: decoys, agent_0 ... agent_{N-1}, and landmarks. Raises ConfigError; other arguments as of ParticlesEnv.
    """
    require_count(f"adversary(N={N!r:.60})", N)
    around = {"landmarks": 2 * N, "others": 2 * N}
    decoys = [(Decoy, f"agent_{i}", {"goal": 2, **around}) for i in range(N)]
    members = [(Intruder, "adversary_0", around), *decoys]
    return AdversaryEnv(members, [(0.08, False, 1.0)] * N, continuous=continuous, max_steps=max_steps, **options)


# Push


@in_both_forms()
class Shover(Particle):
    """Wants to be at the goal, which it doesn't know, in place of the runner."""

    collides = True


@in_both_forms()
class Runner(Particle):
    """Wants to be at the goal."""

    collides = True


def heed_in_push(world: Any) -> None:
    """Both push."""
    of.obey(world[Shover].ActionInForce.action, world[Plane].Bodies, 0, 0)
    of.obey(world[Runner].ActionInForce.action, world[Plane].Bodies, 1, 0)


def look_in_push(world: Any) -> None:
    """What both see, and how far they are from the goal."""
    bodies, shover, runner = world[Plane].Bodies, world[Shover], world[Runner]
    goal = 2 + int(bodies.goals[0, 0])
    of.see_own(shover.ParticleView.velocity, bodies.vx, bodies.vy, 0)
    of.see_ways(shover.ParticleView.landmarks, bodies, 0, 2, 4)
    of.see_ways(shover.ParticleView.others, bodies, 0, 0, 2)
    of.see_own(runner.ParticleView.velocity, bodies.vx, bodies.vy, 1)
    of.see_ways(runner.ParticleView.goal, bodies, 1, goal, goal + 1)
    of.see_colours(runner.ParticleView.colour, goal - 1, 1, 0.75, 0.25)
    of.see_ways(runner.ParticleView.landmarks, bodies, 1, 2, 4)
    of.see_colours(runner.ParticleView.colours, 1, 2, 0.1 + 0.8, 0.1)
    of.see_ways(runner.ParticleView.others, bodies, 1, 0, 2)
    shover.Stakes.own[0], runner.Stakes.own[0] = of.apart(bodies, 0, goal), of.apart(bodies, 1, goal)
    shover.Stakes.others[0] = runner.Stakes.own[0]


class PushEnv(ParticlesEnv):
    """MPE's simple_push."""

    metadata = {**ParticlesEnv.metadata, "name": "heron/Push-v0"}
    rules = {"adversary": head_for_company, "agent": head_for_goal}
    begin, advance = steps(heed_in_push, look_in_push, "velocity", "goal", "colour", "landmarks", "colours", "others")


def push(continuous: bool = True, max_steps: int | None = 25, **options: Any) -> PushEnv:
    """MPE's simple_push: adversary_0 pushes agent_0 away from the goal, which agent_0 alone knows.

    Raises ConfigError; arguments as of ParticlesEnv.
    """
    shover = {"velocity": 2, "landmarks": 4, "others": 2}
    runner = {"velocity": 2, "goal": 2, "colour": 3, "landmarks": 4, "colours": 6, "others": 2}
    members = [(Shover, "adversary_0", shover), (Runner, "agent_0", runner)]
    return PushEnv(members, [FREE] * 2, continuous=continuous, max_steps=max_steps, **options)


# SpeakerListener


@in_both_forms(LANDMARKS)
class SpeakerAgent(Particle):
    """Knows the goal, and can't move."""

    features = (*Particle.features, of.Speech)
    size, accel = 0.075, 0.0

    @staticmethod
    @rule
    def compute_local_reward(stakes: of.Stakes, speech: of.Speech) -> float:  # type: ignore[override]
        """The same as the listener's, less what its words cost."""
        return stakes.others - stakes.own - speech.cost * speech.says


@in_both_forms()
class Listener(Particle):
    """Must hear where to go."""

    features, shared = (*Particle.features, of.heard(LANDMARKS)), ("heard",)
    size = 0.075


def heed_in_speaker_listener(world: Any) -> None:
    """One speaks, one pushes."""
    of.obey(world[SpeakerAgent].ActionInForce.action, world[Plane].Bodies, 0, LANDMARKS)
    of.obey(world[Listener].ActionInForce.action, world[Plane].Bodies, 1, 0)


def look_in_speaker_listener(world: Any) -> None:
    """What both see and hear, and the listener's squared distance from the goal, which costs both."""
    bodies, speaker, listener = world[Plane].Bodies, world[SpeakerAgent], world[Listener]
    goal = int(bodies.goals[0, 0])
    of.see_colours(speaker.ParticleView.colour, goal, 1, 0.65, 0.15)
    of.see_own(listener.ParticleView.velocity, bodies.vx, bodies.vy, 1)
    of.see_ways(listener.ParticleView.landmarks, bodies, 1, 2, 2 + LANDMARKS)
    of.utter(speaker.Speech.words, bodies, 0)
    speaker.Stakes.own[0] = listener.Stakes.own[0] = of.square_apart(bodies, 1, 2 + goal)


class SpeakerListenerEnv(ParticlesEnv):
    """MPE's simple_speaker_listener."""

    metadata = {**ParticlesEnv.metadata, "name": "heron/SpeakerListener-v0"}
    rules = {"speaker": speak, "listener": listen}
    begin, advance = steps(
        heed_in_speaker_listener, look_in_speaker_listener, "colour", "velocity", "landmarks", shared=of.UTTERED
    )


def speaker_listener(continuous: bool = True, max_steps: int | None = 25, **options: Any) -> SpeakerListenerEnv:
    """MPE's simple_speaker_listener: speaker_0 knows the goal, and has three words; listener_0 goes there.

    Words are messages, over the speaker's link. Raises ConfigError; arguments as of ParticlesEnv, silence and
    speech_cost among them.
    """
    listener = {"velocity": 2, "landmarks": 2 * LANDMARKS, "heard": LANDMARKS}
    members = [(SpeakerAgent, "speaker_0", {"colour": LANDMARKS}), (Listener, "listener_0", listener)]
    landmarks, options = [(0.04, False, 1.0)] * LANDMARKS, {**options, "words": LANDMARKS, "max_steps": max_steps}
    channels = [("speaker_0", "listener_0")]
    return SpeakerListenerEnv(members, landmarks, continuous=continuous, channels=channels, **options)


# Reference


@in_both_forms(REFERENCE_WORDS)
class Guide(Particle):
    """Knows its mate's goal, and must hear of its own."""

    features, shared = (*Particle.features, of.Speech, of.HeardWords), ("heard",)

    @staticmethod
    @rule
    def compute_local_reward(stakes: of.Stakes, speech: of.Speech) -> float:  # type: ignore[override]
        """Minus its mate's distance from the goal that it knows of, mixed with the mean of both, less its cost."""
        mean = -(stakes.own + stakes.others) / 2.0
        earned = mean * (1.0 - stakes.local_ratio) - stakes.own * stakes.local_ratio
        return earned - speech.cost * speech.says


def heed_in_reference(world: Any) -> None:
    """Both push and speak."""
    of.obey(world[Guide].ActionInForce.action, world[Plane].Bodies, 0, REFERENCE_WORDS)


def look_in_reference(world: Any) -> None:
    """What both see and hear; how far each one's mate is from the goal that it knows of."""
    bodies, view, stakes = world[Plane].Bodies, world[Guide].ParticleView, world[Guide].Stakes
    of.see_own(view.velocity, bodies.vx, bodies.vy, 0)
    of.see_ways(view.landmarks, bodies, 0, 2, 2 + LANDMARKS)
    of.utter(world[Guide].Speech.words, bodies, 0)
    for i in range(2):
        goal = int(bodies.goals[0, i])
        of.see_colours(view.colour[i : i + 1], goal, 1, 0.75, 0.25)
        stakes.own[i] = stakes.others[1 - i] = of.apart(bodies, 1 - i, 2 + goal)


class ReferenceEnv(ParticlesEnv):
    """MPE's simple_reference."""

    metadata = {**ParticlesEnv.metadata, "name": "heron/Reference-v0"}
    rules = {"agent": guide}
    begin, advance = steps(heed_in_reference, look_in_reference, "velocity", "landmarks", "colour", shared=of.UTTERED)


def reference(
    local_ratio: float = 0.5, continuous: bool = True, max_steps: int | None = 25, **options: Any
) -> ReferenceEnv:
    """MPE's simple_reference: agent_0 and agent_1, with ten words each, must learn from each other where to go.

    local_ratio: weight of an agent's own reward, in [0, 1]. Words are messages, over the speaker's link. Raises
    ConfigError; other arguments as of ParticlesEnv, silence and speech_cost among them.
    """
    if not isinstance(local_ratio, int | float) or not 0.0 <= local_ratio <= 1.0:
        raise ConfigError(f"reference(local_ratio={local_ratio!r}): must be a number in [0, 1]")
    parts = {"velocity": 2, "landmarks": 2 * LANDMARKS, "colour": LANDMARKS, "heard": REFERENCE_WORDS}
    members = [(Guide, f"agent_{i}", parts) for i in range(2)]
    options |= {"words": REFERENCE_WORDS, "local_ratio": local_ratio, "max_steps": max_steps}
    options["channels"] = [("agent_0", "agent_1"), ("agent_1", "agent_0")]
    return ReferenceEnv(members, [FREE] * LANDMARKS, continuous=continuous, **options)


# Crypto: a word is right where it is the number of the message; the first goal is the message, the second the key


class Cipher(Particle):
    """Says something, and stays where it is."""

    accel = 0.0


@in_both_forms(CIPHERS)
class Eve(Cipher):
    """Hears Alice, and has no key. Her own error counts."""


@in_both_forms(CIPHERS)
class Bob(Cipher):
    """Hears Alice, and has her key. His error counts, and Eve's."""


@in_both_forms(CIPHERS)
class Alice(Cipher):
    """Knows message and key. The errors count as for Bob."""


def heed_in_crypto(world: Any) -> None:
    """All speak."""
    of.obey(world[Eve].ActionInForce.action, world[Plane].Bodies, 0, CIPHERS)
    of.obey(world[Bob].ActionInForce.action, world[Plane].Bodies, 1, CIPHERS)
    of.obey(world[Alice].ActionInForce.action, world[Plane].Bodies, 2, CIPHERS)


def look_in_crypto(world: Any) -> None:
    """What is heard and known, and the errors."""
    bodies, eve, bob, alice = world[Plane].Bodies, world[Eve], world[Bob], world[Alice]
    message, key = int(bodies.goals[0, 0]), int(bodies.goals[0, 1])
    of.hear(eve.ParticleView.heard, bodies, 2)
    of.hear(bob.ParticleView.heard, bodies, 2)
    of.see_colours(bob.ParticleView.key, key, 1, 1.0, 0.0)
    of.see_colours(alice.ParticleView.colour, message, 1, 1.0, 0.0)
    of.see_colours(alice.ParticleView.key, key, 1, 1.0, 0.0)
    eve.Stakes.own[0] = bob.Stakes.others[0] = alice.Stakes.others[0] = error(bodies, 0, message)
    bob.Stakes.own[0] = alice.Stakes.own[0] = error(bodies, 1, message)


def error(bodies: Any, speaker: int, message: int) -> float:
    """Squared distance of what one says from the message; 0 for nothing said."""
    total, silent = 0.0, True
    for w in range(CIPHERS):
        said = bodies.said[0, speaker * CIPHERS + w]
        silent = silent and said == 0.0
        off = said - (1.0 if w == message else 0.0)
        total += off * off
    return 0.0 if silent else total


class CryptoEnv(ParticlesEnv):
    """MPE's simple_crypto."""

    metadata = {**ParticlesEnv.metadata, "name": "heron/Crypto-v0"}
    rules = {"eve": overhear, "bob": decipher, "alice": encipher}
    begin, advance = steps(heed_in_crypto, look_in_crypto, "heard", "key", "colour")


def crypto(continuous: bool = True, max_steps: int | None = 25, **options: Any) -> CryptoEnv:
    """MPE's simple_crypto: alice_0 sends bob_0 a message in a cipher, in four words, which eve_0 receives as well.

    Raises ConfigError; arguments as of ParticlesEnv.
    """
    heard, key, colour = ({part: CIPHERS} for part in ("heard", "key", "colour"))
    members = [(Eve, "eve_0", heard), (Bob, "bob_0", key | heard), (Alice, "alice_0", colour | key)]
    return CryptoEnv(members, [FREE] * 2, continuous=continuous, words=CIPHERS, max_steps=max_steps, **options)
