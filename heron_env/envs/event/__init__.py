"""The event-driven clock.

`clock` owns the heap and hands out events; `physics` is the world's half, `agents` the agents' half, `context` what
both share. Events of many agents at one time are handled together: `groups` finds them, `crews` handles them as arrays.
"""
