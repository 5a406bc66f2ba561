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
# # Planning on a copy of the environment
#
# A policy can try its actions on a copy of the environment before it decides. It may read the environment during a run,
# but it may not step or reset it. In `heron/Spread-v0` three agents spread over three places. Here each agent tries
# each of its moves for four steps while the others stay. This policy uses the complete true state, which no deployed
# policy has. On the event-driven clock no such snapshot exists.

# %%
import copy
from typing import Any

import numpy as np

import heron_env
from heron_env.errors import RunInterrupted

spread = heron_env.make("heron/Spread-v0")
model = copy.deepcopy(spread)
MOVES = np.eye(5)  # stay, or one of four directions


def planner(agent: str) -> Any:
    """A policy of one agent that plans four steps ahead."""

    def decide(vector: np.ndarray) -> np.ndarray:
        now = spread.get_state()

        def value(move: np.ndarray) -> float:
            model.set_state(now)
            return sum(model.step({agent: move})[1][agent] for _ in range(4) if model.agents)

        return max(MOVES, key=value)

    return decide


planners = {agent: planner(agent) for agent in spread.possible_agents}
for name, policies in {"all agents stay": {"*": lambda vector: MOVES[0]}, "all agents plan": planners}.items():
    print(f"{name:<24}{heron_env.team_return(spread, spread.run_synchronous(policies, seed=0)):8.2f}")

# %% [markdown]
# If a policy resets or steps the environment itself, the run stops with an error:

# %%
try:
    spread.run_synchronous({"*": lambda vector: spread.reset()})
except RunInterrupted as error:
    print(error)
