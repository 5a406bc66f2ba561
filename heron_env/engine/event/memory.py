"""The memory of the compiled event clock: its arrays, and how they grow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.engine.arrays import addresses, zeros
from heron_env.engine.event import forms as f

SPARE = 24
"""Events, reports and observations for which there is room at first, beyond what one event may need."""
PLACE = {name: place for place, name in enumerate(f.FORMS)}
GROWING = {
    f.HEAP_SHORT: (f.HEAP_SIZE, ("heap",)),
    f.REPORTS_SHORT: (f.REPORT_SLOTS, ("report_slot", "report")),
    f.VIEWS_SHORT: (f.VIEW_SLOTS, ("view_slot", "view", "view_as_of", "decision", "view_mask", "view_state")),
}
"""By what is short: the place of its size in `law`, and the arrays that hold as many rows for each lane."""


class EventMemory:
    """Holds the arrays by their names (forms.FORMS); `at` is the address of their table, new whenever some have grown.

    Args:
        lanes: how many.
        fixed: tables of the hierarchy and the schedules.
        law: single numbers, int64 `[LAW_NUMBERS]`, but for sizes.
        reals: likewise, float64.
        columns: of the truth; states: of what a critic is shown, or 0. drawn: are there other schedules to come?
    """

    def __init__(
        self, lanes: int, fixed: Mapping[str, NDArray[Any]], law: NDArray[np.int64], reals: NDArray[np.float64],
        *, columns: int, states: int, drawn: bool = False,
    ) -> None:  # fmt: skip
        self.lanes = lanes
        doubles = drawn or bool((fixed["odds"][:, f.DUPLICATE] > 0.0).any())
        ranks, edges = int(law[f.RANKS]), len(fixed["edge"])
        rows = int((np.diff(fixed["first_told"]) > 0).sum())
        law[f.NEED_HEAP] = (1 + doubles) * (rows + edges + 2 * ranks) + ranks + 4
        law[f.NEED_REPORTS] = (1 + doubles) * (rows + edges + 1) + doubles * (ranks + 1)
        law[f.NEED_VIEWS] = 2
        law[f.HEAP_SIZE], law[f.REPORT_SLOTS] = law[f.NEED_HEAP] + SPARE, law[f.NEED_REPORTS] + SPARE
        law[f.VIEW_SLOTS] = 2 * int(law[f.DECIDERS]) + SPARE
        sources = int(np.diff(fixed["first_source"]).max(initial=1))
        widest = max(int(np.diff(fixed["first_told"]).max(initial=1)), *fixed["edge"][:, f.EDGE_SIZE].tolist(), 1)
        records = (ranks + 3, int(law[f.ACTION_WIDTH]) + 5, sources + 3, int(law[f.OBS_WIDTH]) + 4)
        law[f.NEED_LOG] = 2 * max(records) if law[f.KEEPS] & ~f.KEEP_MESSAGES else 0
        law[f.LOG_SIZE] = 32 * law[f.NEED_LOG]
        self.law = law
        deciders, heard = int(law[f.DECIDERS]), int(fixed["edge"][:, f.EDGE_SIZE].sum())
        chains = f.SOURCED_FIELDS * ranks if len(fixed["sources"]) else 0
        masks = len(fixed["masks"]) // max(deciders, 1)
        state = states if law[f.WITH_STATE] else 0
        shapes: dict[str, tuple[int, ...]] = {
            "lane": (lanes, f.LANE_NUMBERS), "key": (lanes, ranks), "cache": (lanes, columns),
            "version": (lanes, ranks + 1), "as_of": (lanes, ranks + 1), "ended_sums": (lanes, len(fixed["sums"])),
            "decided": (lanes, ranks), "last_effect": (lanes, ranks), "acted": (lanes, ranks),
            "queue": (lanes, f.QUEUES * ranks), "member": (lanes, ranks), "lived": (lanes, ranks),
            "how": (lanes, ranks), "masked": (lanes, ranks), "ring": (lanes * int(law[f.RING]), columns),
            "ring_version": (lanes, int(law[f.RING])), "scratch": (lanes, int(law[f.OBS_WIDTH])), "kept": (lanes, 0),
            "chain_last": (lanes, chains), "chain_state": (lanes, chains),
            "heard": (lanes, heard), "newest": (lanes, edges), "training": (lanes, deciders), "since": (lanes, sources),
            "decider": (lanes * deciders, f.DECIDER_NUMBERS), "earned": (lanes * deciders, f.DECIDER_FLOATS),
            "end_obs": (2 * lanes * deciders, int(law[f.OBS_WIDTH])), "end_state": (2 * lanes * deciders, state),
            "heap": (lanes * int(law[f.HEAP_SIZE]), 3), "log": (lanes, int(law[f.LOG_SIZE])),
            "report_slot": (lanes * int(law[f.REPORT_SLOTS]), f.REPORT_NUMBERS),
            "report": (lanes * int(law[f.REPORT_SLOTS]), widest),
            "view_slot": (lanes * int(law[f.VIEW_SLOTS]), f.VIEW_NUMBERS),
            "view": (lanes * int(law[f.VIEW_SLOTS]), int(law[f.OBS_WIDTH])),
            "view_as_of": (lanes * int(law[f.VIEW_SLOTS]), sources),
            "decision": (lanes * int(law[f.VIEW_SLOTS]), int(law[f.ACTION_WIDTH]) + 2),
            "view_mask": (lanes * int(law[f.VIEW_SLOTS]), masks),
            "view_state": (lanes * int(law[f.VIEW_SLOTS]), state),
            "counts": (lanes, 2 * int(fixed["group"].max(initial=0) + 1)),
        }  # fmt: skip
        self.arrays: dict[str, NDArray[Any]] = {"law": law, "reals": reals, **fixed}
        for name, shape in shapes.items():
            self.arrays[name] = zeros(shape, getattr(np, f.FORMS[name][0]), f"num_envs={lanes}")
        self.widths = {"obs": int(law[f.OBS_WIDTH]), "mask": masks, "state": state, "action": int(law[f.ACTION_WIDTH])}
        self.bind()
        self.hand_out(0)
        self.arrays["lane"][:, f.STATUS] = f.RESTING

    def bind(self) -> None:
        """Note where the arrays are now."""
        self._table = addresses(f.FORMS, self.arrays)
        self.at = int(self._table.ctypes.data)

    def _bind_again(self, arrays: dict[str, NDArray[Any]]) -> None:
        """The same for some that are new."""
        self.arrays |= arrays
        for name, array in arrays.items():
            self._table[PLACE[name]] = array.ctypes.data, len(array), array.shape[-1]

    def hand_out(self, rows: int) -> None:
        """Fresh arrays for so many rows and ends together, which their receiver keeps."""
        w = self.widths
        made: dict[str, NDArray[Any]] = {
            "row": np.zeros((rows, f.ROW_NUMBERS), dtype=np.int64), "row_earned": np.zeros((rows, 3)),
            "row_obs": np.empty((rows, w["obs"]), dtype=np.float32), "row_mask": np.empty((rows, w["mask"]), np.uint8),
            "row_state": np.empty((rows, w["state"]), dtype=np.float32), "answer": np.zeros((rows, w["action"])),
        }  # fmt: skip
        self._bind_again(made)

    def grow(self, short: int, steps: NDArray[np.int64]) -> None:
        """Twice the room of what is `short` (bits), in every lane; what is there stays where it is.

        `steps`: so many were in each lane's episode, int64 `[lanes]`.
        """
        if short & f.RING_SHORT:
            self._widen_ring(steps)
        for bit, (size, names) in GROWING.items():
            if short & bit:
                before = int(self.law[size])
                self.law[size] = 2 * before
                for name in names:
                    old = self.arrays[name]
                    new = zeros((self.lanes, 2 * before, old.shape[1]), old.dtype, f"num_envs={self.lanes}")
                    new[:, :before] = old.reshape(self.lanes, before, -1)
                    self.arrays[name] = new.reshape(2 * before * self.lanes, -1)
                self._free(bit, before)
        self.bind()

    def _widen_ring(self, steps: NDArray[np.int64]) -> None:
        """The truth at a boundary, whose news is under way, lies where its number modulo the size says."""
        before, columns = int(self.law[f.RING]), self.arrays["ring"].shape[1]
        old, versions = self.arrays["ring"].reshape(self.lanes, before, columns), self.arrays["ring_version"]
        asked = f"num_envs={self.lanes}"
        new = zeros((self.lanes, 2 * before, columns), np.float64, asked)
        kept = zeros((self.lanes, 2 * before), np.int64, asked)
        for back in range(1, before + 1):
            lanes = np.flatnonzero(steps >= back)
            number = steps[lanes] - back
            new[lanes, number % (2 * before)] = old[lanes, number % before]
            kept[lanes, number % (2 * before)] = versions[lanes, number % before]
        self.law[f.RING] = 2 * before
        self.arrays["ring"], self.arrays["ring_version"] = new.reshape(-1, columns), kept

    def _free(self, bit: int, before: int) -> None:
        """Slots from `before` on come before the others that are free."""
        links = {f.REPORTS_SHORT: ("report_slot", f.LINK, f.FREE_REPORT, f.REPORTS_LEFT),
                 f.VIEWS_SHORT: ("view_slot", f.CHAIN, f.FREE_VIEW, f.VIEWS_LEFT)}  # fmt: skip
        if bit in links:
            name, link, first, left = links[bit]
            slots, lane = self.arrays[name].reshape(self.lanes, 2 * before, -1), self.arrays["lane"]
            slots[:, before:, link] = np.arange(before + 1, 2 * before + 1)
            slots[:, -1, link] = lane[:, first]
            lane[:, first] = before
            lane[:, left] += before
