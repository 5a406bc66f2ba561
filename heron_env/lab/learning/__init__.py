"""Training: PPO of Stable-Baselines3 on a group of agents, into a run folder. Needs the extra `train`.

`heron_env.train`; torch is imported when training starts, not before.
"""
