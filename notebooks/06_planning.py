# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Plan ahead
#
# A policy may try its actions out before it decides, on a copy of the environment: looking at an environment is free,
# moving it in the middle of a run is refused. This one, in a world of three agents who spread over three places, tries
# each of its moves for four steps in which the others stay. It knows all of the truth, which no policy in the
# field does; in the event-driven clock no such snapshot is to be had.

# %%
import copy
from typing import Any

import numpy as np

import heron_env
from heron_env.errors import RunInterrupted

spread = heron_env.make("heron/Spread-v0")
model = copy.deepcopy(spread)
MOVES = np.eye(5)  # stay, or one of four directions


def looks_ahead(agent: str) -> Any:
    """A policy of one agent."""

    def decide(vector: np.ndarray) -> np.ndarray:
        now = spread.get_state()

        def worth(move: np.ndarray) -> float:
            model.set_state(now)
            return sum(model.step({agent: move})[1][agent] for _ in range(4) if model.agents)

        return max(MOVES, key=worth)

    return decide


planners = {agent: looks_ahead(agent) for agent in spread.possible_agents}
for name, policies in {"everybody stays": {"*": lambda vector: MOVES[0]}, "everybody looks ahead": planners}.items():
    print(f"{name:<24}{heron_env.team_return(spread, spread.run_synchronous(policies, seed=0)):8.2f}")

# %% [markdown]
# On the environment itself it would have cut the run short. That is told:

# %%
try:
    spread.run_synchronous({"*": lambda vector: spread.reset()})
except RunInterrupted as error:
    print(error)
