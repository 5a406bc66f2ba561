"""The event-driven clock.

`clock` owns the heap and hands out events; `physics` is the world's half, `agents` the agents' half, `context` what
both share.
"""
