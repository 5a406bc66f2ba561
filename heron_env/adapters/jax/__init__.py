"""JAX: environments in rules as pure functions."""

from heron_env.adapters.jax.env import JaxEnv, State, Step

__all__ = ["JaxEnv", "State", "Step"]
