"""MPE's particle worlds as features and rules, beside Spread; equal to mpe2's, which the tests compare them with."""

from heron_env.worlds.particles.env import ParticlesEnv, Plane
from heron_env.worlds.particles.goals import adversary, crypto, push, reference, speaker_listener
from heron_env.worlds.particles.hunting import tag, world_comm

__all__ = ["ParticlesEnv", "Plane", "adversary", "crypto", "push", "reference", "speaker_listener", "tag", "world_comm"]
