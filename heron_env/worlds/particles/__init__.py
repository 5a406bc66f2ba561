"""MPE's particle worlds as features and rules, beside Spread; equal to mpe2's, which the tests compare them with.

Each takes the options of its function here; `num_...` are mpe2's.
"""

from heron_env.worlds.particles.env import Particle, ParticlesEnv, Plane
from heron_env.worlds.particles.goals import AdversaryEnv, PushEnv, adversary, push
from heron_env.worlds.particles.tag import TagEnv, tag
from heron_env.worlds.particles.words import (
    CryptoEnv,
    ReferenceEnv,
    SpeakerListenerEnv,
    crypto,
    reference,
    speaker_listener,
)
from heron_env.worlds.particles.world_comm import WorldCommEnv, world_comm

__all__ = [
    "AdversaryEnv",
    "CryptoEnv",
    "Particle",
    "ParticlesEnv",
    "Plane",
    "PushEnv",
    "ReferenceEnv",
    "SpeakerListenerEnv",
    "TagEnv",
    "WorldCommEnv",
    "adversary",
    "crypto",
    "push",
    "reference",
    "speaker_listener",
    "tag",
    "world_comm",
]
