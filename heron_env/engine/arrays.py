"""The arrays of B environments of one hierarchy, as compiled loops find them: by name, in one table of addresses.

The address of that table (int64 `[fields, 3]`: address, rows, columns) is all that a loop is given: one number instead
of sixty arrays, and no reference counts. Who holds the table holds the arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heron_env.errors import ConfigError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]


class Arrays(NamedTuple):
    """What changes, a row for each lane; agents by position (breadth first), action elements by rank."""

    truth: Floats
    """`[B, >= layout.width]`: the columns of the layout, who sees whom (V11); behind them scratch."""
    actions: Floats
    """`[B, elements]`. In: what agents are given; never changed but by `restart`, which writes no-ops."""
    applied: Floats
    """`[B, elements]`: actions in force, as rules read them."""
    source_in: Bytes
    """`[B, n]`. In: 0 nothing, else the code of decisions.Source that the decision gets."""
    source: Bytes
    """`[B, n]`. Out: code of the last decision (decisions.Source)."""
    alive: Bytes
    """`[B, n]`."""
    steps: Ints
    """`[B]`: control steps of the running episode."""
    seeds: NDArray[np.uint64]
    """`[B]`."""
    episodes: NDArray[np.uint64]
    """`[B]`; `restart` adds 1."""
    rewards: Floats
    """`[B, n]`, of the last step."""
    terminated: Bytes
    """`[B, n]`, in the last step."""
    truncated: Bytes
    """`[B, n]`, in the last step."""
    over: Bytes
    """`[B]`: no episode runs; nothing moves in the lane until it restarts."""
    ended: Bytes
    """`[B]`: the episode ended in the last step; a restart leaves it. Before the phase `end`: a rule ends somebody."""
    infos: Floats
    """`[B, k]`: numbers of get_local_info; a restart computes them, too."""
    returns: Floats
    """`[B, n]`: sum of rewards of the running episode."""
    last_returns: Floats
    """`[B, n]`: of the last episode that ended."""
    last_length: Ints
    """`[B]`: its control steps."""
    chosen: Bytes
    """`[B]`: which lanes begin an episode in this step, or in a restart."""
    moving: Bytes
    """`[B]`: 0 between a lane's substeps on the event clock; physics and hooks in Python are called of the others."""
    substep: Ints
    """`[B]`: number of the substep that is under way, or was last."""
    acting: Bytes
    """`[B, n]`. In: whose masks `offer` makes."""
    error: Ints
    """`[B]`: 0, or what was refused (lane_errors.py)."""
    initial: Floats
    """`[layout.size]`: what a restart writes into the truth."""
    visible: Floats
    """`[B, layout.size]`, or `[B, 0]` without masks. In: what agents see of themselves, which masks read."""
    allowed: Bytes
    """`[B, choices]`. Out: masks, of the agents with such a rule by rank."""
    masked: Bytes
    """`[B, n]`. Out: whose last effect had a choice that was forbidden then."""
    training: Floats
    """`[B, agents that may decide]`. Out: what compiled `training_rewards` say of the last step."""
    ways: Floats
    """`[B, WAY]`, or `[B, 0]` without the rule `link`. Out: what it said last; ASKED: of these `ends` it has yet to say
    it, else 0."""


class Published(NamedTuple):
    """What is handed out: two sets in turn, so that the last one stays as it is for one step more."""

    observations: NDArray[np.float32]
    """`[B, F]`: the observers' vectors side by side."""
    rewards: Floats
    """`[B, P]`, by observer."""
    terminated: NDArray[np.bool_]
    """`[B, P]`."""
    truncated: NDArray[np.bool_]
    """`[B, P]`."""
    final: NDArray[np.float32]
    """`[B, F]`: last observation of the lanes whose episode ended; `[B, 0]` if not asked for."""


FORMS: dict[str, tuple[str, int]] = {
    "truth": ("float64", 2), "actions": ("float64", 2), "applied": ("float64", 2),
    "source_in": ("uint8", 2), "source": ("uint8", 2), "alive": ("uint8", 2),
    "steps": ("int64", 1), "seeds": ("uint64", 1), "episodes": ("uint64", 1),
    "rewards": ("float64", 2), "terminated": ("uint8", 2), "truncated": ("uint8", 2),
    "over": ("uint8", 1), "ended": ("uint8", 1), "infos": ("float64", 2),
    "returns": ("float64", 2), "last_returns": ("float64", 2), "last_length": ("int64", 1),
    "chosen": ("uint8", 1), "moving": ("uint8", 1), "substep": ("int64", 1),
    "acting": ("uint8", 2), "error": ("int64", 1), "initial": ("float64", 1),
    "visible": ("float64", 2), "allowed": ("uint8", 2), "masked": ("uint8", 2), "training": ("float64", 2),
    "ways": ("float64", 2),
    # handed out
    "out_observations": ("float32", 2), "out_rewards": ("float64", 2),
    "out_terminated": ("bool_", 2), "out_truncated": ("bool_", 2), "out_final": ("float32", 2),
    "phases": ("int64", 1), "natives": ("int64", 2),
    # of the hierarchy, never changed: agents (tables.py), decisions, observations
    "tab": ("uint32", 2), "seg": ("uint32", 2), "gather": ("uint32", 1),
    "block_sized": ("uint8", 1), "block_single": ("float32", 2), "block_limits": ("float64", 2),
    "sized": ("uint8", 1), "who": ("int64", 2), "owner": ("uint32", 1), "single": ("float32", 2),
    "limits": ("float64", 2), "command": ("uint32", 1),
    "possible": ("uint32", 1), "per_step": ("uint32", 1), "low": ("float64", 1), "high": ("float64", 1),
    "integer": ("uint32", 1), "coh": ("int64", 2),
    "columns": ("uint32", 1), "runs": ("uint32", 2), "watched": ("uint32", 1),
    "asked": ("int64", 2), "asked_of": ("int64", 1),
    "hidden": ("uint32", 2), "instead": ("float32", 1), "flags": ("uint32", 2),
    "relative": ("uint32", 2), "received": ("float64", 2), "received_final": ("float64", 2),
    "noise_at": ("uint32", 1), "noise_columns": ("uint32", 1), "noise_keys": ("uint64", 1),
    "noise_reach": ("float64", 1), "noise_low": ("float64", 1), "noise_high": ("float64", 1),
    "noise_law": ("uint8", 1), "noise_cache": ("uint64", 2), "noise_moments": ("uint64", 2),
    # of tiles (vector/tiles.py)
    "moves": ("int64", 2), "redo": ("uint8", 1),
}  # fmt: skip
"""Element type and number of axes of every array in the table."""
NUMBERS: dict[str, str] = {
    "globals": "int64", "dt_ns": "int64", "substeps": "int64", "last_step": "int64", "any_ends": "int64",
    "steady": "int64", "block": "int64", "dt": "float64", "dt_physics": "float64", "dt_piece": "float64",
    "begun": "float64", "tile": "int64", "tiles_at": "int64", "shows": "int64", "fills": "int64", "moved": "int64",
    "restarts": "int64",
}  # fmt: skip
"""Single numbers in the table, behind the arrays, and their type."""
PLACE = {name: k for k, name in enumerate([*FORMS, *NUMBERS])}
"""Row of each in the table."""
ROWS = len(PLACE)
LANES = 8
"""Environments that go through a phase together where it is compiled for vectors."""
LANE_ARRAYS = tuple(name for name in Arrays._fields if name != "initial")
"""Those with a row for each environment."""
FACTOR, CHANCE, ASKED, WAY = range(4)
"""Columns of `ways`: the factor on a delay, the chance of a loss."""
DISABLED, SAME_STEP, NEXT_STEP = range(3)
"""What `restarts` says of a lane whose episode is over: it waits, begins the next one at once, or in its next step."""
PHASES = (
    "check", "decide", "affect", "clear", "before_physics", "physics", "close", "end", "finish", "deliver", "at_close",
    "keep_final", "add_noise_to_final", "begin_episodes", "begin", "publish", "publish_others", "add_noise",
    "apply", "offer", "sight", "sight_of", "link", "step", "tiles", "vector_affect", "vector_clear", "vector_physics",
    "vector_close", "vector_finish",
)  # fmt: skip
(CHECK, DECIDE, AFFECT, CLEAR, BEFORE_PHYSICS, PHYSICS, CLOSE, END, FINISH, DELIVER, AT_CLOSE, KEEP_FINAL,
 ADD_NOISE_TO_FINAL, BEGIN_EPISODES, BEGIN, PUBLISH, PUBLISH_OTHERS, ADD_NOISE, APPLY, OFFER, SIGHT, SIGHT_OF, LINK,
 STEP, TILES, VECTOR_AFFECT, VECTOR_CLEAR, VECTOR_PHYSICS, VECTOR_CLOSE,
 VECTOR_FINISH) = range(len(PHASES))  # fmt: skip
"""Places of the phases' addresses in `phases`, in the order of a step (step.py); some have none, and are followed."""
PYTHON = len(PHASES)
"""Added to the place of what follows a phase in Python."""
RULED = (AFFECT, CLEAR, PHYSICS, CLOSE)
"""Those that rules make, in their order; neighbours among them may run as tiles, and with CLOSE also FINISH."""


def ranks_of(ends: int) -> tuple[int, int]:
    """Sender and receiver of a message, the proxy -1, by the number that stands for both: never 0."""
    return (ends >> 32) - 1, (ends & 0xFFFFFFFF) - 1


def address_table(arrays: Mapping[str, NDArray[Any]], numbers: Mapping[str, float]) -> Ints:
    """int64 `[fields, 3]`: address, rows and columns of each array, then the numbers' bits.

    What is not given is 0, for code that does not ask for it.
    """
    bits = np.zeros((len(NUMBERS), 3), dtype=np.int64)
    for row, (name, kind) in zip(bits, NUMBERS.items(), strict=True):
        row[0] = np.array([numbers.get(name, 0)], dtype=kind).view(np.int64)[0]
    return np.concatenate([addresses(FORMS, arrays), bits])


def addresses(forms: Mapping[str, tuple[str, int]], arrays: Mapping[str, NDArray[Any]]) -> Ints:
    """int64 `[forms, 3]`: address, rows and columns of each array, in the order of `forms`; 0 of what is not given."""
    table = np.zeros((len(forms), 3), dtype=np.int64)
    places = {name: place for place, name in enumerate(forms)}
    for name, array in arrays.items():
        row, (kind, axes) = table[places[name]], forms[name]
        assert array.dtype == np.dtype(getattr(np, kind)) and array.ndim == axes and array.flags.c_contiguous, name
        row[:] = array.ctypes.data, len(array), array.shape[-1]
    return table


def zeros(shape: tuple[int, ...], kind: Any, purpose: str) -> NDArray[Any]:
    """np.zeros. Raises ConfigError with the bytes where the machine has not that much; `purpose`: what needs them."""
    try:
        return np.zeros(shape, dtype=kind)
    except (MemoryError, ValueError, OverflowError) as error:
        size = math.prod(shape) * np.dtype(kind).itemsize
        raise ConfigError(
            f"{purpose}: one of its arrays takes {size:,} bytes, more than there are; ask for less"
        ) from error
