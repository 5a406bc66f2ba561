"""Training: PPO on either clock, into a run folder. Needs the extra `train`.

`train.py`: `heron_env.train`. It needs `rows.py`, decisions as rows, `ppo.py`, which learns from them, and `events.py`,
what callbacks get. torch is imported when training starts, not before.
"""
