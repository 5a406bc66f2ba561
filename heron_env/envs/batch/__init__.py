"""Many environments of one kind that step together.

`env` is BatchEnv, what users hold; `building` and `lane_groups` say what it is made of. Engines run it behind one
protocol (`engine`): `lanes`, which go through the phases of a step together, compiled or (`plain_lanes`) in plain
Python, with their Python hooks (`lane_hooks`, `world`), and `faults`.
Environments that step themselves, one after the other, are in `plain_lanes`, too. `deciders` stands for agents that
nobody steps.
"""
