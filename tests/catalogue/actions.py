"""Bad inputs: actions, their declaration, and the calls of an environment."""

import numpy as np
from catalogue.small_world import ENERGY, agent, env, step

from heron_env import Action, Continuous, Discrete, Mixed, MultiDiscrete, make

Chooser = agent(action=Discrete(3))
Both = agent(action=Mixed(Continuous(0.0, 1.0), Discrete(3)))


def step_after_the_end():
    world = env(max_steps=1)
    world.reset(seed=0)
    world.step({})
    world.step({"battery_1": 0.0})


ACTIONS = {
    "too many elements": lambda d: step({"battery_1": np.zeros(2)}),
    "nothing in it": lambda d: step({"battery_1": []}),
    "nan": lambda d: step({"battery_1": np.array([np.nan])}),
    "None": lambda d: step({"battery_1": None}),
    "infinite": lambda d: step({"battery_1": np.inf}),
    "out of range": lambda d: step({"battery_1": 5.0}),
    "a word": lambda d: step({"battery_1": "charge"}),
    "parts under other names": lambda d: step({"battery_1": {"continuous": [0.0]}}),
    "an unknown agent": lambda d: step({"batery_1": 0.0}),
    "an agent that only watches": lambda d: step({"zone_1": 0.0}),
    "actions in a list": lambda d: step([0.0, 0.0]),
    "no actions at all": lambda d: step(None),
    "a choice too high": lambda d: step({"battery_1": 3}, Chooser),
    "half a choice": lambda d: step({"battery_1": 1.5}, Chooser),
    "step before reset": lambda d: env().step({}),
    "step after the end": lambda d: step_after_the_end(),
    "a negative seed": lambda d: env().reset(seed=-1),
    "a seed that is no number": lambda d: env().reset(seed="0"),
    "options in a list": lambda d: make(ENERGY).reset(options=[172]),
    "the space of nobody": lambda d: env().action_space("batery_1"),
    "low above high": lambda d: Continuous(1.0, -1.0),
    "an unbounded action": lambda d: Continuous(-np.inf, np.inf),
    "bounds of two lengths": lambda d: Continuous([0, 0], [1, 1, 1]),
    "a no-op outside": lambda d: Continuous(-1.0, 1.0, noop=5.0),
    "no choice": lambda d: Discrete(0),
    "two and a half choices": lambda d: Discrete(2.5),
    "a no-op among no choices": lambda d: MultiDiscrete([3, 2], noop=[3, 0]),
    "numbers of categories forgotten": lambda d: Action().set_specs(dim_d=2, ncats=[3]),
    "more choices than float64 tells apart": lambda d: Discrete(2**63),
    "more elements than an action has": lambda d: Continuous(0, 1, size=10**12),
    "a dimension in words": lambda d: Action().set_specs(dim_d="two", ncats=3),
    "half a choice of categories": lambda d: Action().set_specs(dim_d=1, ncats=2.5),
    "a range of one number": lambda d: Action().set_specs(dim_c=1, range=(1.0,)),
    "choices before numbers": lambda d: Mixed(Discrete(3), Continuous(0.0, 1.0)),
    "a number after the choices": lambda d: Mixed(Continuous(0.0, 1.0), Discrete(3), Continuous(0.0, 2.0, unit="kW")),
    "mixed in mixed": lambda d: Mixed(Mixed(Continuous(0.0, 1.0), Discrete(3)), Discrete(2)),
    "a mix of nothing": lambda d: Mixed(),
    "numbers alone in a mix": lambda d: Mixed(Continuous(0.0, 1.0), Continuous(0.0, 2.0)),
    "choices alone in a mix": lambda d: Mixed(MultiDiscrete([3, 2])),
    "a number of choices in a mix": lambda d: Mixed(Continuous(0.0, 1.0), 3),
    "a list of parts in a mix": lambda d: Mixed(["up", "down"]),
    "a mixed action without its choices": lambda d: step({"battery_1": {"c": [0.5]}}, Both),
    "a mixed action without its numbers": lambda d: step({"battery_1": {"d": 1}}, Both),
    "a choice among the numbers": lambda d: step({"battery_1": {"c": [0.5, 1]}}, Both),
    "a part too many": lambda d: step({"battery_1": {"c": [0.5], "d": 1, "e": 0}}, Both),
    "a mixed action of numbers alone": lambda d: step({"battery_1": [0.5]}, Both),
    "a mixed action in the wrong order": lambda d: step({"battery_1": [2, 0.5]}, Both),
    "a list for an agent's id": lambda d: env().proxy.get_observation([]),
}
