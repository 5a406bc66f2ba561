"""Bad inputs: actions, their declaration, and the calls of an environment."""

# ruff: noqa: E501 (a message is one line)

import numpy as np
from catalogue.case import Case
from catalogue.small_world import ENERGY, agent, env, step

from heron_env import Action, Continuous, Discrete, MultiDiscrete, make
from heron_env.errors import ConfigError, InvalidAction, ResetNeeded, UnknownAgent

Chooser = agent(action=Discrete(3))


def step_after_the_end():
    world = env(max_steps=1)
    world.reset(seed=0)
    world.step({})
    world.step({"battery_1": 0.0})


ACTIONS = [
    Case(
        "too many elements",
        InvalidAction,
        lambda d: step({"battery_1": np.zeros(2)}),
        "2 elements",
        "reshape it",
        "action of 'battery_1' has 2 elements, expected 1: [-1.0, 1.0] kW; reshape it",
    ),
    Case(
        "nothing in it",
        InvalidAction,
        lambda d: step({"battery_1": []}),
        "0 elements",
        "reshape it",
        "action of 'battery_1' has 0 elements, expected 1: [-1.0, 1.0] kW; reshape it",
    ),
    Case(
        "nan",
        InvalidAction,
        lambda d: step({"battery_1": np.array([np.nan])}),
        "[nan]",
        "give numbers",
        "action of 'battery_1': [nan] lies outside [-1.0, 1.0] kW; give numbers (None counts as nan)",
    ),
    Case(
        "None",
        InvalidAction,
        lambda d: step({"battery_1": None}),
        "[nan]",
        "None counts as nan",
        "action of 'battery_1': [nan] lies outside [-1.0, 1.0] kW; give numbers (None counts as nan)",
    ),
    Case(
        "infinite",
        InvalidAction,
        lambda d: step({"battery_1": np.inf}),
        "[inf]",
        "clip it",
        "action of 'battery_1': [inf] lies outside [-1.0, 1.0] kW; clip it, or rescale your policy",
    ),
    Case(
        "out of range",
        InvalidAction,
        lambda d: step({"battery_1": 5.0}),
        "[5.0]",
        "clip it, or rescale your policy",
        "action of 'battery_1': [5.0] lies outside [-1.0, 1.0] kW; clip it, or rescale your policy",
    ),
    Case(
        "a word",
        InvalidAction,
        lambda d: step({"battery_1": "charge"}),
        "'charge'",
        "expected [-1.0, 1.0] kW",
        "action of 'battery_1': 'charge' is not numeric; expected [-1.0, 1.0] kW",
    ),
    Case(
        "parts under other names",
        InvalidAction,
        lambda d: step({"battery_1": {"continuous": [0.0]}}),
        "['continuous']",
        "name its parts 'c'",
        "action of 'battery_1' has the keys ['continuous']; name its parts 'c' (numbers) and 'd' (choices)",
    ),
    Case(
        "an unknown agent",
        UnknownAgent,
        lambda d: step({"batery_1": 0.0}),
        "'batery_1'",
        "this env has",
        "step() got an action for 'batery_1'; this env has ['system_agent', 'zone_1', 'battery_1', 'battery_2']. Did you mean 'battery_1'?",
        "battery_1",
    ),
    Case(
        "an agent that only watches",
        InvalidAction,
        lambda d: step({"zone_1": 0.0}),
        "'zone_1'",
        "leave it out",
        "action of 'zone_1': it takes no action; leave it out",
    ),
    Case(
        "actions in a list",
        InvalidAction,
        lambda d: step([0.0, 0.0]),
        "[0.0, 0.0]",
        "write {'battery_1': action}",
        "step([0.0, 0.0]): must map agents to actions; write {'battery_1': action}",
    ),
    Case(
        "no actions at all",
        InvalidAction,
        lambda d: step(None),
        "None",
        "write {'battery_1': action}",
        "step(None): must map agents to actions; write {'battery_1': action}",
    ),
    Case(
        "a choice too high",
        InvalidAction,
        lambda d: step({"battery_1": 3}, Chooser),
        "[3.0]",
        "count from 0",
        "action of 'battery_1': [3.0] is no choice in Discrete(3); count from 0",
    ),
    Case(
        "half a choice",
        InvalidAction,
        lambda d: step({"battery_1": 1.5}, Chooser),
        "[1.5]",
        "count from 0",
        "action of 'battery_1': [1.5] is no choice in Discrete(3); count from 0",
    ),
    Case(
        "step before reset",
        ResetNeeded,
        lambda d: env().step({}),
        "step()",
        "call reset() first",
        "step(): no episode is running; call reset() first",
    ),
    Case(
        "step after the end",
        ResetNeeded,
        lambda d: step_after_the_end(),
        "step()",
        "call reset() first",
        "step(): no episode is running; call reset() first",
    ),
    Case(
        "a negative seed",
        ConfigError,
        lambda d: env().reset(seed=-1),
        "-1",
        "a seed is a whole number >= 0",
        "reset(seed=-1): a seed is a whole number >= 0",
    ),
    Case(
        "a seed that is no number",
        ConfigError,
        lambda d: env().reset(seed="0"),
        "'0'",
        "a seed is a whole number",
        "reset(seed='0'): a seed is a whole number >= 0",
    ),
    Case(
        "options in a list",
        ConfigError,
        lambda d: make(ENERGY).reset(options=[172]),
        "[172]",
        "write {'day': 172}",
        "reset(options=[172]): must be a mapping; write {'day': 172}",
    ),
    Case(
        "the space of nobody",
        UnknownAgent,
        lambda d: env().action_space("batery_1"),
        "'batery_1'",
        "this env has",
        "action_space() got 'batery_1'; this env has ['system_agent', 'zone_1', 'battery_1', 'battery_2']. Did you mean 'battery_1'?",
        "battery_1",
    ),
    Case(
        "low above high",
        ConfigError,
        lambda d: Continuous(1.0, -1.0),
        "low=1.0",
        "low <= high",
        "Continuous(low=1.0, high=-1.0): bounds must be finite vectors with low <= high",
    ),
    Case(
        "an unbounded action",
        ConfigError,
        lambda d: Continuous(-np.inf, np.inf),
        "inf",
        "must be finite",
        "Continuous(low=-inf, high=inf): bounds must be finite vectors with low <= high",
    ),
    Case(
        "bounds of two lengths",
        ConfigError,
        lambda d: Continuous([0, 0], [1, 1, 1]),
        "[1, 1, 1]",
        "bounds must be",
        "Continuous(low=[0, 0], high=[1, 1, 1]): bounds must be finite vectors with low <= high",
    ),
    Case(
        "a no-op outside",
        ConfigError,
        lambda d: Continuous(-1.0, 1.0, noop=5.0),
        "noop=5.0",
        "the no-op within",
        "Continuous(low=-1.0, high=1.0, noop=5.0): bounds must be finite vectors with low <= high, the no-op within",
    ),
    Case(
        "no choice",
        ConfigError,
        lambda d: Discrete(0),
        "[0]",
        "needs >= 1 category",
        "MultiDiscrete([0], noop=[0]): needs >= 1 category each and a no-op among them",
    ),
    Case(
        "two and a half choices",
        ConfigError,
        lambda d: Discrete(2.5),
        "2.5",
        "needs >= 1 category",
        "MultiDiscrete([2.5], noop=[0]): needs >= 1 category each and a no-op among them",
    ),
    Case(
        "a no-op among no choices",
        ConfigError,
        lambda d: MultiDiscrete([3, 2], noop=[3, 0]),
        "[3, 0]",
        "a no-op among them",
        "MultiDiscrete([3, 2], noop=[3, 0]): needs >= 1 category each and a no-op among them",
    ),
    Case(
        "numbers of categories forgotten",
        ConfigError,
        lambda d: Action().set_specs(dim_d=2, ncats=[3]),
        "[3]",
        "give 2 numbers",
        "Action.set_specs(dim_d=2, ncats=[3]): give 2 numbers of categories",
    ),
]
