"""JAX: environments in rules as pure functions."""

from heron_env.adapters.jax.env import EnvState, JaxEnv, Step

__all__ = ["EnvState", "JaxEnv", "Step"]
