"""Many environments of one kind that step together.

`env` is BatchEnv, what users hold; `building` and `groups` say what it is made of. Two engines run it behind one
protocol (`engine`): `lanes`, compiled, with its Python hooks (`hooks`, `world`), exchange, training delays (`late`) and
options of reset; and `copies`, one environment after the other. `deciders` stands for agents that nobody steps.
"""
