"""JAX: PPO in the form of PureJaxRL: environments, network and updates are one jit(scan(...)); Adam is optax's."""

# pip install heron_env[jax] optax

from importlib.metadata import version
from itertools import pairwise

import jax
import jax.numpy as jnp
import optax

from heron_env.adapters.jax import JaxEnv

jax.config.update("jax_enable_x64", True)
print("versions:", *(f"{name}=={version(name)}" for name in ("heron_env", "jax", "optax")))
LANES, STEPS, UPDATES, EPOCHS, GAMMA, LAMBDA, SPREAD = 256, 25, 200, 8, 0.95, 0.95, 0.3
env, adam = JaxEnv("heron/Spread-v0", dtype="float32"), optax.adam(1e-3)


def network(net, seen):
    """The actor's means and the critic's value."""
    told = jnp.tanh(jnp.tanh(seen @ net[0]) @ net[1]) @ net[2]
    return 0.5 + told[..., :5], 10.0 * told[..., 5]


def step(net, carry, key):
    """One control step of all environments."""
    (state, seen), (mean, value) = carry, network(net, carry[1])
    action = mean + SPREAD * jax.random.normal(key, mean.shape, jnp.float32)
    state, told = jax.vmap(env.step)(state, {"agent": jnp.clip(action, 0.0, 1.0)})
    row = (seen, action, mean, value, told.rewards["agent"], ~told.truncated["agent"])
    return (state, told.observations["agent"]), row


def loss(net, seen, action, before, gain, aim):
    """PPO's, clipped."""
    mean, value = network(net, seen)
    ratio = jnp.exp((((action - before) ** 2 - (action - mean) ** 2) / (2 * SPREAD**2)).sum(-1))
    return 0.005 * ((value - aim) ** 2).mean() - jnp.minimum(ratio * gain, jnp.clip(ratio, 0.8, 1.2) * gain).mean()


def update(carry, key):
    """A rollout, then a few steps of gradient descent on it."""
    net, moments, now = carry
    now, (seen, action, mean, value, reward, on) = jax.lax.scan(
        lambda c, k: step(net, c, k), now, jax.random.split(key, STEPS)
    )
    follow = jnp.concatenate([value[1:], network(net, now[1])[1][None]])
    apart = reward + GAMMA * on * follow - value
    gain = jax.lax.scan(
        lambda g, x: (x[0] + GAMMA * LAMBDA * x[1] * g,) * 2, 0.0 * value[0], (apart, on), reverse=True
    )[1]
    for _ in range(EPOCHS):
        slope = jax.grad(loss)(net, seen, action, mean, (gain - gain.mean()) / gain.std(), gain + value)
        change, moments = adam.update(slope, moments)
        net = optax.apply_updates(net, change)
    return (net, moments, now), reward.sum((0, 2)).mean()


keys, sizes = jax.random.split(jax.random.key(0), 4), (18, 64, 64, 6)
net = [jax.random.normal(k, ab, jnp.float32) / ab[0] ** 0.5 for k, ab in zip(keys, pairwise(sizes), strict=False)]
state, told = jax.vmap(env.begin)(jnp.arange(LANES, dtype=jnp.uint64))
start = (net, adam.init(net), (state, told.observations["agent"]))
returns = jax.jit(lambda start: jax.lax.scan(update, start, jax.random.split(keys[3], UPDATES)))(start)[1]
print(f"result: random weights {returns[0]:.1f}, PPO {returns[-10:].mean():.1f}, of {UPDATES * LANES * STEPS:,} steps")
