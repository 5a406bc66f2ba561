"""MPE's particle worlds as features and rules, `heron/Tag-v0` and others; equal to mpe2's, which tests compare with.

Each takes the options of its function here; `num_...` are mpe2's.
"""

from heron_env.worlds.particles.env import Particle, ParticlesEnv, Plane
from heron_env.worlds.particles.tag import TagEnv, tag

__all__ = ["Particle", "ParticlesEnv", "Plane", "TagEnv", "tag"]
