"""Bad inputs: actions, their declaration, and the calls of an environment."""

# ruff: noqa: E501 (a message is one line)

import numpy as np
from catalogue.small_world import ENERGY, agent, env, step

from heron_env import Action, Continuous, Discrete, Mixed, MultiDiscrete, make

Chooser = agent(action=Discrete(3))
Both = agent(action=Mixed(Continuous(0.0, 1.0), Discrete(3)))
MIX = "needs numbers (Continuous), then choices (Discrete, MultiDiscrete): ⟨write Mixed(Continuous(low, high), Discrete(n))⟩; of one kind alone, Continuous([low, low], [high, high]) or MultiDiscrete([n, m])"


def step_after_the_end():
    world = env(max_steps=1)
    world.reset(seed=0)
    world.step({})
    world.step({"battery_1": 0.0})


ACTIONS = {
    "too many elements": (
        lambda d: step({"battery_1": np.zeros(2)}),
        "InvalidAction: action of 'battery_1' has «2 elements», expected 1: [-1.0, 1.0] kW; ⟨reshape it⟩",
    ),
    "nothing in it": (
        lambda d: step({"battery_1": []}),
        "InvalidAction: action of 'battery_1' has «0 elements», expected 1: [-1.0, 1.0] kW; ⟨reshape it⟩",
    ),
    "nan": (
        lambda d: step({"battery_1": np.array([np.nan])}),
        "InvalidAction: action of 'battery_1': «[nan]» lies outside [-1.0, 1.0] kW; ⟨give numbers⟩ (None counts as nan)",
    ),
    "None": (
        lambda d: step({"battery_1": None}),
        "InvalidAction: action of 'battery_1': «[nan]» lies outside [-1.0, 1.0] kW; give numbers (⟨None counts as nan⟩)",
    ),
    "infinite": (
        lambda d: step({"battery_1": np.inf}),
        "InvalidAction: action of 'battery_1': «[inf]» lies outside [-1.0, 1.0] kW; ⟨clip it⟩, or rescale your policy",
    ),
    "out of range": (
        lambda d: step({"battery_1": 5.0}),
        "InvalidAction: action of 'battery_1': «[5.0]» lies outside [-1.0, 1.0] kW; ⟨clip it, or rescale your policy⟩",
    ),
    "a word": (
        lambda d: step({"battery_1": "charge"}),
        "InvalidAction: action of 'battery_1': «'charge'» is not numeric; ⟨expected [-1.0, 1.0] kW⟩",
    ),
    "parts under other names": (
        lambda d: step({"battery_1": {"continuous": [0.0]}}),
        "InvalidAction: action of 'battery_1' has the keys «['continuous']»; ⟨name its parts 'c'⟩ (numbers) and 'd' (choices)",
    ),
    "an unknown agent": (
        lambda d: step({"batery_1": 0.0}),
        "UnknownAgent: step() got an action for «'batery_1'»; ⟨this env has⟩ ['system_agent', 'zone_1', 'battery_1', 'battery_2']. Did you mean 'battery_1'?",
    ),
    "an agent that only watches": (
        lambda d: step({"zone_1": 0.0}),
        "InvalidAction: action of «'zone_1'»: it takes no action; ⟨leave it out⟩",
    ),
    "actions in a list": (
        lambda d: step([0.0, 0.0]),
        "InvalidAction: step(«[0.0, 0.0]»): must map agents to actions; ⟨write {'battery_1': action}⟩",
    ),
    "no actions at all": (
        lambda d: step(None),
        "InvalidAction: step(«None»): must map agents to actions; ⟨write {'battery_1': action}⟩",
    ),
    "a choice too high": (
        lambda d: step({"battery_1": 3}, Chooser),
        "InvalidAction: action of 'battery_1': «[3.0]» is no choice in Discrete(3); ⟨count from 0⟩",
    ),
    "half a choice": (
        lambda d: step({"battery_1": 1.5}, Chooser),
        "InvalidAction: action of 'battery_1': «[1.5]» is no choice in Discrete(3); ⟨count from 0⟩",
    ),
    "step before reset": (
        lambda d: env().step({}),
        "ResetNeeded: «step()»: no episode is running; ⟨call reset() first⟩",
    ),
    "step after the end": (
        lambda d: step_after_the_end(),
        "ResetNeeded: «step()»: no episode is running; ⟨call reset() first⟩",
    ),
    "a negative seed": (
        lambda d: env().reset(seed=-1),
        "ConfigError: reset(seed=«-1»): ⟨a seed is a whole number >= 0⟩",
    ),
    "a seed that is no number": (
        lambda d: env().reset(seed="0"),
        "ConfigError: reset(seed=«'0'»): ⟨a seed is a whole number⟩ >= 0",
    ),
    "options in a list": (
        lambda d: make(ENERGY).reset(options=[172]),
        "ConfigError: reset(options=«[172]»): must be a mapping; ⟨write {'day': 172}⟩",
    ),
    "the space of nobody": (
        lambda d: env().action_space("batery_1"),
        "UnknownAgent: action_space() got «'batery_1'»; ⟨this env has⟩ ['system_agent', 'zone_1', 'battery_1', 'battery_2']. Did you mean 'battery_1'?",
    ),
    "low above high": (
        lambda d: Continuous(1.0, -1.0),
        "ConfigError: Continuous(«low=1.0», high=-1.0): bounds must be finite vectors with ⟨low <= high⟩",
    ),
    "an unbounded action": (
        lambda d: Continuous(-np.inf, np.inf),
        "ConfigError: Continuous(low=-«inf», high=inf): bounds ⟨must be finite⟩ vectors with low <= high",
    ),
    "bounds of two lengths": (
        lambda d: Continuous([0, 0], [1, 1, 1]),
        "ConfigError: Continuous(low=[0, 0], high=«[1, 1, 1]»): ⟨bounds must be⟩ finite vectors with low <= high",
    ),
    "a no-op outside": (
        lambda d: Continuous(-1.0, 1.0, noop=5.0),
        "ConfigError: Continuous(low=-1.0, high=1.0, «noop=5.0»): bounds must be finite vectors with low <= high, ⟨the no-op within⟩",
    ),
    "no choice": (
        lambda d: Discrete(0),
        "ConfigError: Discrete«(0,» noop=0): ⟨needs a whole number >= 1⟩ of categories each, and a no-op among them; write Discrete(3), or MultiDiscrete([3, 2])",
    ),
    "two and a half choices": (
        lambda d: Discrete(2.5),
        "ConfigError: Discrete(«2.5», noop=0): ⟨needs a whole number >= 1⟩ of categories each, and a no-op among them; write Discrete(3), or MultiDiscrete([3, 2])",
    ),
    "a no-op among no choices": (
        lambda d: MultiDiscrete([3, 2], noop=[3, 0]),
        "ConfigError: MultiDiscrete([3, 2], noop=«[3, 0]»): needs a whole number >= 1 of categories each, and ⟨a no-op among them⟩; write Discrete(3), or MultiDiscrete([3, 2])",
    ),
    "numbers of categories forgotten": (
        lambda d: Action().set_specs(dim_d=2, ncats=[3]),
        "ConfigError: Action.set_specs(dim_d=2, ncats=«[3]»): ⟨give 2 numbers⟩ of categories",
    ),
    "more choices than float64 tells apart": (
        lambda d: Discrete(2**63),
        "ConfigError: Discrete(«9223372036854775808», noop=0): ⟨at most 2**53⟩ categories each, more can't be told apart in float64",
    ),
    "more elements than an action has": (
        lambda d: Continuous(0, 1, size=10**12),
        "ConfigError: Continuous(): «size=1000000000000»: must be a whole number ⟨from 1 to 1000000⟩",
    ),
    "a dimension in words": (
        lambda d: Action().set_specs(dim_d="two", ncats=3),
        "ConfigError: Action.set_specs(): «dim_d='two'»: must be ⟨a whole number⟩ from 0 to 1000000",
    ),
    "half a choice of categories": (
        lambda d: Action().set_specs(dim_d=1, ncats=2.5),
        "ConfigError: Action.set_specs(): «ncats=2.5»: must be ⟨a list or tuple⟩",
    ),
    "a range of one number": (
        lambda d: Action().set_specs(dim_c=1, range=(1.0,)),
        "ConfigError: Action.set_specs(«range=(1.0,)»): must be ⟨a pair (low, high)⟩",
    ),
    "choices before numbers": (
        lambda d: Mixed(Discrete(3), Continuous(0.0, 1.0)),
        f"ConfigError: Mixed(«Discrete(3)», [0.0, 1.0]): {MIX}",
    ),
    "a number after the choices": (
        lambda d: Mixed(Continuous(0.0, 1.0), Discrete(3), Continuous(0.0, 2.0, unit="kW")),
        f"ConfigError: Mixed([0.0, 1.0], Discrete(3), «[0.0, 2.0] kW»): {MIX}",
    ),
    "mixed in mixed": (
        lambda d: Mixed(Mixed(Continuous(0.0, 1.0), Discrete(3)), Discrete(2)),
        f"ConfigError: Mixed(«[0.0, 1.0] and Discrete(3)», Discrete(2)): {MIX}",
    ),
    "a mix of nothing": (
        lambda d: Mixed(),
        f"ConfigError: «Mixed()»: {MIX}",
    ),
    "numbers alone in a mix": (
        lambda d: Mixed(Continuous(0.0, 1.0), Continuous(0.0, 2.0)),
        f"ConfigError: Mixed(«[0.0, 1.0], [0.0, 2.0]»): {MIX}",
    ),
    "choices alone in a mix": (
        lambda d: Mixed(MultiDiscrete([3, 2])),
        f"ConfigError: Mixed(«MultiDiscrete([3, 2])»): {MIX}",
    ),
    "a number of choices in a mix": (
        lambda d: Mixed(Continuous(0.0, 1.0), 3),
        f"ConfigError: Mixed([0.0, 1.0], «3»): {MIX}",
    ),
    "a list of parts in a mix": (
        lambda d: Mixed(["up", "down"]),
        f"ConfigError: Mixed(«['up', 'down']»): {MIX}",
    ),
    "a mixed action without its choices": (
        lambda d: step({"battery_1": {"c": [0.5]}}, Both),
        "InvalidAction: action of 'battery_1' has «0 elements in 'd'», expected 1: [0.0, 1.0] and Discrete(3); ⟨give {'c': numbers, 'd': choices}⟩",
    ),
    "a mixed action without its numbers": (
        lambda d: step({"battery_1": {"d": 1}}, Both),
        "InvalidAction: action of 'battery_1' has «0 elements in 'c'», expected 1: [0.0, 1.0] and Discrete(3); ⟨give {'c': numbers, 'd': choices}⟩",
    ),
    "a choice among the numbers": (
        lambda d: step({"battery_1": {"c": [0.5, 1]}}, Both),
        "InvalidAction: action of 'battery_1' has «2 elements in 'c'», expected 1: [0.0, 1.0] and Discrete(3); ⟨give {'c': numbers, 'd': choices}⟩",
    ),
    "a part too many": (
        lambda d: step({"battery_1": {"c": [0.5], "d": 1, "e": 0}}, Both),
        "InvalidAction: action of 'battery_1' has the keys «['c', 'd', 'e']»; ⟨name its parts 'c' (numbers) and 'd' (choices)⟩",
    ),
    "a mixed action of numbers alone": (
        lambda d: step({"battery_1": [0.5]}, Both),
        "InvalidAction: action of 'battery_1' has «1 elements», expected 2: [0.0, 1.0] and Discrete(3); ⟨reshape it⟩",
    ),
    "a mixed action in the wrong order": (
        lambda d: step({"battery_1": [2, 0.5]}, Both),
        "InvalidAction: action of 'battery_1': «[0.5]» is no choice in [0.0, 1.0] and Discrete(3); ⟨count from 0⟩",
    ),
    "a list for an agent's id": (
        lambda d: env().proxy.get_observation([]),
        "UnknownAgent: get_observation() got «[]»; ⟨this proxy knows⟩ ['system_agent', 'zone_1', 'battery_1', 'battery_2'].",
    ),
}
