"""Many environments of one kind that step together.

`env` is BatchEnv, what users hold; `building` and `groups` say what it is made of. Engines run it behind one protocol
(`engine`): `lanes`, which go through the phases of a step together, compiled or (`plain_lanes`) in plain Python, with
their Python hooks (`hooks`, `world`), exchange, training delays (`late`), faults and options of reset; and `own_steps`,
environments that step themselves, one after the other. `deciders` stands for agents that nobody steps.
"""
