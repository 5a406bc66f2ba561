"""The memory of B lanes: every array that the loops read and write, and the tables of their addresses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.core.sight import numbered
from heron_env.engine.arrays import (
    FORMS,
    LANE_ARRAYS,
    LANES,
    NUMBERS,
    PHASES,
    PLACE,
    RULED,
    WAY,
    Arrays,
    Ints,
    Published,
    address_table,
    addresses,
    zeros,
)
from heron_env.engine.model import Model
from heron_env.engine.tables import GRAIN, HIGH, LOW, AgentTables, DecisionTables, ObservationTables, runs_of

if TYPE_CHECKING:
    from heron_env.engine.vector.columns import LaneColumns

MOST_SPANS, LEAST, APART = 64, 4, 4
"""Spans of an array that tiles move, and the columns of one: blocks move fastest; smaller gaps don't count."""
BLOCK_BYTES = 1 << 19
"""Lanes go through a step together as long as their rows are no more than this: half of what a core has to itself."""


class Memory:
    """Holds the arrays. The loops know addresses only: as long as they run, this must live.

    arrays: what changes; without room for infos until `complete`. sets: two of what is handed out. at: the address of
    the table for each of the two. phases: addresses of the loops themselves. fixed: arrays that never change, by name;
    numbers: single ones. piece: (begun, length) s of what is carried out of a substep.
    """

    sets: tuple[Published, Published]

    def __init__(self, model: Model, lanes: int, tables: AgentTables) -> None:
        self.arrays = _arrays(lanes, tables, model)

    def complete(
        self, model: Model, tables: AgentTables, decisions: DecisionTables, observations: ObservationTables,
        cohorts: NDArray[np.int64], final: bool,
    ) -> None:  # fmt: skip
        """Everything else, once it is known how many infos there are. What `arrays` hold stays where it is."""
        lanes = len(self.arrays.truth)
        self.arrays = self.arrays._replace(infos=zeros((lanes, tables.infos), np.float64, f"num_envs={lanes}"))
        floats, observers = observations.floats, len(model.observers)
        self.sets = _published(lanes, floats, observers, final), _published(lanes, floats, observers, final)
        self.fixed = _fixed(model, tables, decisions, cohorts)
        self.fixed |= _asked(model) | observations.arrays | observations.of_lanes(lanes, final)
        self.phases = self.fixed["phases"] = np.zeros(len(PHASES), dtype=np.int64)
        self.redo = self.fixed["redo"] = np.zeros(lanes, dtype=np.uint8)
        self.moves, self.tile = _moves(self.arrays)
        self.fixed["moves"] = self.moves
        self.fixed["natives"] = np.zeros((0, 3), dtype=np.int64)
        rows = sum(array.nbytes for array in (*self.arrays, *self.sets[0])) // lanes
        self.numbers = numbers = {
            **_numbers(model, tables, decisions),
            "tile": self.tile,
            **dict.fromkeys(("tiles_at", "shows", "fills", "moved", "restarts"), 0),
        }
        self._block = numbers["block"] = max(LANES, BLOCK_BYTES // rows // LANES * LANES)
        self._tables = []
        for published in self.sets:
            out = {f"out_{name}": array for name, array in published._asdict().items()}
            arrays = {**self.arrays._asdict(), **self.fixed, **out}
            assert arrays.keys() == FORMS.keys() and numbers.keys() == NUMBERS.keys()
            self._tables.append(address_table(arrays, numbers))
        self.at = tuple(int(table.ctypes.data) for table in self._tables)
        self.piece = 0.0, float(numbers["dt_piece"])

    def set_phases(self, addresses: list[int], tiled: Collection[str], shows: bool) -> None:
        """The phases that a step calls; `tiled`: those that run in tiles; `shows`: observations come from there."""
        self.phases[:] = addresses
        self.tiles_at = next((k for k, place in enumerate(RULED) if PHASES[place] in tiled), len(RULED))
        self._set(tiles_at=self.tiles_at, shows=shows)

    def set_natives(self, natives: Ints, *, python: bool) -> None:
        """What follows phases, int64 `[natives, 3]`; `python`: some of it in Python, which sees all lanes at once."""
        self.fixed["natives"] = natives
        for table in self._tables:
            table[PLACE["natives"]] = addresses(FORMS, {"natives": natives})[PLACE["natives"]]
        self._set(block=len(self.arrays.truth) if python else self._block)

    def set_restarts(self, when: int) -> int:
        """What a lane does whose episode is over: arrays.DISABLED, SAME_STEP or NEXT_STEP; what it did before."""
        before = int(self._tables[0][PLACE["restarts"], 0])
        self._set(restarts=when)
        return before

    def lane_sizes(self) -> dict[str, tuple[int, int]]:
        """LaneColumns and axes of each array with a row for each environment."""
        arrays = {name: getattr(self.arrays, name) for name in LANE_ARRAYS}
        return {name: (array.size // len(array), array.ndim) for name, array in arrays.items()}

    def set_moves(self, touched: Mapping[str, LaneColumns], shows: bool) -> None:
        """What tiles move, of what their phases touch; `shows`: observations come from there."""
        touched["truth"].written[len(self.arrays.initial) :] = False  # scratch
        if shows:
            touched["truth"].take(self.fixed["columns"])
        fills, moved = list[Ints](), list[Ints]()
        for row, name in zip(self.moves, LANE_ARRAYS, strict=False):
            array, small = touched[name], row[4] == 1
            back = _spans(array.written, small)
            for first, count in back:  # small gaps between what is written go there and back, too
                array.take(np.arange(first, first + count))
            fills += [_moving(row, *span) for span in _spans(array.read, small)]
            moved += [_moving(row, *span) for span in back]
        start = len(LANE_ARRAYS)
        self._set(fills=start + len(fills), moved=start + len(fills) + len(moved))
        self.moves[start : start + len(fills) + len(moved)] = [*fills, *moved]

    def _set(self, **numbers: int) -> None:
        for table in self._tables:
            for name, value in numbers.items():
                table[PLACE[name], 0] = value

    def set_piece(self, begun: float, length: float) -> float:
        """Let physics advance by `length` s from `begun` s within the substep; the length of a whole substep, s."""
        self.piece = begun, length
        for table in self._tables:
            for name, value in (("begun", begun), ("dt_piece", length)):
                table[PLACE[name], 0] = np.float64(value).view(np.int64)
        return float(self._tables[0][PLACE["dt_physics"], 0].view(np.float64))


def _arrays(lanes: int, tables: AgentTables, model: Model) -> Arrays:
    """Behind the truth: scratch, then what is always there, 0, and 1 where anybody's vector is padded."""
    n, size, width = len(model.hierarchy), model.layout.size, model.layout.width
    constants = (0.0, 1.0) if model.plan.padding.any else (0.0,)
    shapes = {
        "truth": (lanes, width + tables.scratch + len(constants)), "initial": (size,),
        "visible": (lanes, size if tables.choices else 0), "allowed": (lanes, tables.choices),
        "infos": (lanes, 0), "actions": (lanes, tables.elements), "applied": (lanes, tables.elements),
        "training": (lanes, len(model.possible)), "ways": (lanes, WAY if "link" in model.hooks else 0),
    }  # fmt: skip
    made = {}
    for name in Arrays._fields:
        kind, axes = FORMS[name]
        made[name] = zeros(shapes.get(name, (lanes, n)[:axes]), getattr(np, kind), f"num_envs={lanes}")
    made["truth"][:, width + tables.scratch :] = constants
    made["over"][:] = made["moving"][:] = 1
    made["episodes"][:] = np.iinfo(np.uint64).max  # the first restart makes it 0
    return Arrays(**made)


def _moves(arrays: Arrays) -> tuple[Ints, int]:
    """Where each array lies in a tile (vector/tiles.py), with room for what moves; and the bytes of a tile."""
    moves, offset = np.zeros((len(LANE_ARRAYS) * (1 + 2 * MOST_SPANS), 6), dtype=np.int64), 0
    for row, name in zip(moves, LANE_ARRAYS, strict=False):
        array = getattr(arrays, name)
        width = array.nbytes // len(array)
        row[:] = PLACE[name], width, 0, 0, array.itemsize, offset
        offset += -(-width * LANES // 64) * 64
    return moves, offset


def _moving(array: Ints, first: int, count: int) -> Ints:
    """The row of `moves` for some columns of an array, of whose row there."""
    place, width, _, _, size, offset = array
    return np.array([place, width, first * size, count, size, offset + first * size * LANES])


def _spans(chosen: NDArray[np.bool_], small: bool) -> list[tuple[int, int]]:
    """First column and length of what is chosen, neighbours in one; all of it where these are too many, or bytes."""
    at = np.flatnonzero(chosen)
    runs = runs_of(at, np.diff(at) > APART)
    if len(at) and (small or len(chosen) < LEAST or len(runs) > MOST_SPANS):
        return [(0, len(chosen))]
    ends = runs.sum(axis=1)
    first = np.minimum(runs[:, 0], np.maximum(ends, LEAST) - LEAST)
    return [*zip(first.tolist(), np.maximum(ends - first, LEAST).tolist(), strict=True)]


def _published(lanes: int, floats: int, observers: int, final: bool) -> Published:
    widths = {"observations": floats, "final": floats if final else 0}
    kinds = {name: getattr(np, FORMS[f"out_{name}"][0]) for name in Published._fields}
    return Published(*(zeros((lanes, widths.get(n, observers)), k, f"num_envs={lanes}") for n, k in kinds.items()))


def _fixed(
    model: Model, tables: AgentTables, decisions: DecisionTables, cohorts: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Arrays that never change, by their names in the table."""
    layout = model.layout

    def positions(ranks: tuple[int, ...]) -> NDArray[np.uint32]:
        return tables.position[list(ranks)].astype(np.uint32)

    return {
        "tab": tables.tab, "seg": tables.seg, "gather": tables.gather, "sized": decisions.sized,
        "block_sized": np.tile(decisions.sized, LANES), "block_single": np.tile(decisions.single, LANES),
        "block_limits": np.tile(decisions.limits[[LOW, HIGH, GRAIN]], LANES),
        "who": decisions.who, "owner": decisions.owner, "single": decisions.single,
        "limits": decisions.limits, "command": decisions.command, "possible": positions(model.possible),
        "watched": positions(model.observers), "per_step": layout.per_step.astype(np.uint32), "low": layout.low,
        "high": layout.high, "integer": np.flatnonzero(layout.integer).astype(np.uint32), "coh": cohorts,
    }  # fmt: skip


def _asked(model: Model) -> dict[str, NDArray[Any]]:
    """Pairs that the hook `sees` is asked about (V11), by the target's rank, and where each target's begin."""
    sight, pairs = model.layout.sight, model.plan.asked
    rows = [] if sight is None else numbered(sight, pairs)
    return {
        "asked": np.asarray(rows, dtype=np.int64).reshape(-1, 3),
        "asked_of": np.searchsorted([target for _, target in pairs], np.arange(len(model.hierarchy) + 1)),
    }


def _numbers(model: Model, tables: AgentTables, decisions: DecisionTables) -> dict[str, float]:
    return {
        "globals": tables.global_offset, "dt_ns": model.dt_ns, "substeps": model.substeps,
        "last_step": model.last_step, "any_ends": model.any_ends, "steady": decisions.steady,
        "dt": model.dt, "dt_physics": model.dt / model.substeps,
        "dt_piece": model.dt / model.substeps, "begun": 0.0,
    }  # fmt: skip
