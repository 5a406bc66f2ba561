"""Wrappers for other frameworks; a name imports its framework when it is first used.

Wrappers for rarer libraries are in modules of their own: `heron_env.adapters.rllib`.
"""

from heron_env.lazily import lazily

GONE = {
    "CentralCriticPolicy": "a policy class of 8 lines on HeronVecEnv(critic='central'): "
    "examples/recipes/sb3_central_critic.py",
    "MappedVecEnv": "write VecNormalize(HeronVecEnv(...)); lab.save_run(model, env, folder) keeps its statistics",
}
__getattr__, __dir__, __all__ = lazily(__name__, __file__, GONE)
