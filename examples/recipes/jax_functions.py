"""JAX: an environment of rules as pure functions, for jit, vmap and scan: four environments step in one program."""

# needs: heron_env[jax]

from importlib.metadata import version

import jax
import jax.numpy as jnp

from heron_env.adapters.jax import JaxEnv

jax.config.update("jax_enable_x64", True)  # before the first environment: draws are made of 64-bit keys
print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "jax", "numpy")))

env = JaxEnv("heron/BatteryGrid-v0", num_batteries=2, max_steps=8)
states, first = jax.vmap(env.begin)(jnp.arange(4, dtype=jnp.uint64))  # a seed for each of four environments


def turn(states, number):
    """One step of all environments; an episode that ends begins anew in the same step."""
    actions = {"battery": jnp.full((4, 2, 1), 0.5)}
    states, result = jax.vmap(env.step)(states, actions)
    return states, result.rewards["battery"]


states, rewards = jax.jit(lambda states: jax.lax.scan(turn, states, jnp.arange(20)))(states)
env.raise_errors(states)
print(f"result: rewards {rewards.shape}: steps, environments, agents; in sum {rewards.sum():.2f}")
