"""Training: PPO of Stable-Baselines3 on a group of agents, into a run folder. Needs the extra `train`.

`from heron_env.learning.ppo import train`; torch is imported when training starts, not before.
"""
