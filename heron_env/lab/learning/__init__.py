"""Training: PPO on either clock, into a run folder. Needs the extra `train`.

`heron_env.train`; torch is imported when training starts, not before, Stable-Baselines3 where it is asked for.
"""
