"""The law of the compiled event clock: lane i of a batch is the run of the Python clock with seed + i, bit for bit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from laws.checks_clock import as_bytes
from laws.row_oracle import Watch, same_course, same_rows
from laws.uncompiled import Fault, planted, uncompiled
from strategies import Recipe, Wave

from heron_env import BatchEnv, EpisodeResult, HeronEnv, Rows
from heron_env.engine.event import forms as f

RECORD = ("rewards", "actions", "observations")
KEPT = (*RECORD, "ages", "messages")
MOST = 8
"""Episodes of a lane that are compared, where it goes on by itself."""
Policies = Mapping[int, Callable[[Any], Any]]


@dataclass
class Course:
    """What a batch told: every row and end, by lane, and the lanes' results, truth and knowledge at the end."""

    rows: list[list[dict[str, Any]]]
    ends: list[list[dict[str, Any]]]
    results: list[EpisodeResult]
    truth: np.ndarray[Any, Any]
    cache: np.ndarray[Any, Any]


def policies_of(env: HeronEnv) -> Policies:
    """A sensitive policy for each agent that decides, by rank."""
    ids, specs = env.hierarchy.ids, env.simulation.model.specs
    return {rank: Wave(ids[rank], specs[rank]) for rank in env.simulation.model.possible}


class Player:
    """Lanes whose rows are answered by `policies_of`, and who notes what they tell.

    `text`: by the clock's own text in Python; `fault`: planted there, or in what is Python anyway.
    """

    def __init__(
        self, make: Callable[[], HeronEnv], lanes: int, schedule: Any, *, seed: int, text: bool = False,
        fault: Fault | None = None, **options: Any,
    ) -> None:  # fmt: skip
        with planted(fault):
            self.batch: Any = BatchEnv(
                make, lanes, seed=seed, clock="event", schedule=schedule, **{"record": KEPT} | options
            )
        env = self.batch.env
        if text:
            self.batch._lanes._clock = uncompiled(self.batch._lanes, fault)
        self.policies, self.specs = policies_of(env), env.simulation.model.specs
        self.widths = {rank: env.simulation.model.plan.size(rank) for rank in self.policies}
        self.size = max(self.specs[rank].size for rank in self.policies)
        self.rows: list[list[dict[str, Any]]] = [[] for _ in range(lanes)]
        self.ends: list[list[dict[str, Any]]] = [[] for _ in range(lanes)]
        self.calls = 0

    def actions(self, rows: Rows) -> np.ndarray[Any, Any]:
        """Takes note of rows, and answers them."""
        self.calls += 1
        episodes = self.batch._lanes.steps.episodes
        for found, part in ((self.ends, rows.ended), (self.rows, rows)):
            note(found, part, self.widths, episodes, self.calls)
        asked = set(zip(rows.lane.tolist(), rows.rank.tolist(), strict=True))
        assert len(asked) == len(rows), "an agent stands twice in one call"
        actions = np.zeros((len(rows), self.size))
        for n, rank in enumerate(rows.rank.tolist()):
            actions[n, : self.specs[rank].size] = self.policies[rank](rows.obs[n, : self.widths[rank]])
        return actions


def play(
    make: Callable[[], HeronEnv], schedule: Any, *, seed: int, lanes: int, episodes: int = 1, text: bool = False,
    fault: Fault | None = None, **options: Any,
) -> Course:  # fmt: skip
    """Run lanes for some episodes each, one after another."""
    player = Player(make, lanes, schedule, seed=seed, text=text, fault=fault, autoreset="disabled", **options)
    batch = player.batch
    for _ in range(episodes):
        player.rows, player.ends = [[] for _ in range(lanes)], [[] for _ in range(lanes)]
        rows = batch.begin()
        while len(actions := player.actions(rows)):
            rows = batch.answer(actions)
        for lane in range(lanes):
            no_slot_is_lost(batch._lanes.memory, lane)
    return Course(player.rows, player.ends, batch.results(), batch.truth.copy(), batch.cache.copy())


def check_on_and_on(
    build: Callable[[], HeronEnv] | Recipe, schedule: Any = None, *, seed: int = 0, lanes: int = 2, calls: int = 30,
    resets: Mapping[int, tuple[bool, ...]] | None = None, **options: Any,
) -> Player:  # fmt: skip
    """Lanes go on by themselves from episode to episode; rows and ends are those of the Python clock's episodes.

    `resets`: before which calls which lanes are told to begin anew, by a pattern that repeats. No calls after MOST
    episodes of a lane.
    """
    make = build.build if isinstance(build, Recipe) else build
    player, resets = Player(make, lanes, schedule, seed=seed, autoreset="same_step", **options), resets or {}
    batch, torn = player.batch, set[tuple[int, int]]()
    rows = batch.begin()
    for call in range(calls):
        if batch._lanes.steps.episodes.max() > MOST:
            break
        actions = player.actions(rows)
        if call in resets:
            mask = np.resize(np.array(resets[call]), lanes)
            torn |= {(lane, int(batch._lanes.steps.episodes[lane])) for lane in np.flatnonzero(mask).tolist()}
            for lane in np.flatnonzero(~mask).tolist():  # what waits there will be asked once more
                player.rows[lane] = [row for row in player.rows[lane] if row["call"] < player.calls]
            rows = batch.reset(mask=mask)
        else:
            rows = batch.answer(actions)
    player.actions(rows)
    for lane in range(lanes):
        env, last = make(), int(batch._lanes.steps.episodes[lane])
        where = f"lane {lane} of {lanes}, seed {seed}, "
        mine, results = player.rows[lane], list[EpisodeResult]()
        for episode in range(min(last, MOST) + 1):
            watch = Watch(env, policies_of(env), RECORD, seed=None if episode else seed + lane, schedule=schedule)
            if episode < last and (lane, episode) not in torn:
                results.append(watch.result)
            for rank in watch.agents:
                course = [row for row in mine if row["rank"] == rank and row["episode"] == episode]
                ends = [end for end in player.ends[lane] if end["rank"] == rank and end_of(end, mine) == episode]
                assert len(ends) <= 1, f"{where}episode {episode}: {len(ends)} ends"
                partly = episode == last or (lane, episode) in torn
                same_course(
                    watch, rank, course, ends[0] if ends else None, options.get("gamma", 1.0),
                    f"{where}episode {episode}: ", partly=partly,
                )  # fmt: skip
                if ends:
                    assert course[-1]["call"] < ends[0]["call"], f"{where}an end is told before its decision"
        if results and last <= MOST:
            same_results(batch.result(lane), results[-1], where)
    return player


def no_slot_is_lost(memory: Any, lane: int) -> None:
    """In a lane whose decisions have all been told, the slots that are not free are those that events need."""
    a, sizes = memory.arrays, memory.sizes
    size, numbers = int(sizes[f.HEAP_SIZE]), a["lane"][lane]
    needed: dict[str, set[int]] = {"report_slot": set(), "view_slot": set(), "parcel": set()}
    events = [(what & 255, (what >> 8 & 0xFFFFFF) - 1) for what in
              a["heap"][lane * size : lane * size + int(numbers[f.TOP]), 2].tolist()]  # fmt: skip
    parcels = int(sizes[f.PARCEL_SLOTS])
    for p, row in enumerate(a["parcel"][lane * parcels : (lane + 1) * parcels].tolist()):
        if row[f.USES] > 0:
            needed["parcel"].add(p)
            if not row[f.P_STATE] & f.GONE:
                events.append((row[f.P_KIND], row[f.P_SLOT]))
    for kind, slot in events:
        if slot >= 0 and kind not in (f.OFFER, f.TOKEN):
            reports = kind in (f.REPORT, f.EFFECT_REPORT, f.SHARE)
            needed["report_slot" if reports else "view_slot"].add(slot)
    for name, place, link, first, left in (
        ("parcel", f.PARCEL_SLOTS, f.CHAIN, f.FREE_PARCEL, f.PARCELS_LEFT),
        ("report_slot", f.REPORT_SLOTS, f.CHAIN, f.FREE_REPORT, f.REPORTS_LEFT),
        ("view_slot", f.VIEW_SLOTS, f.CHAIN, f.FREE_VIEW, f.VIEWS_LEFT),
    ):
        free, slot, all_of_them = list[int](), int(numbers[first]), int(sizes[place])
        for _ in range(int(numbers[left])):
            free.append(slot)
            slot = int(a[name][lane * all_of_them + slot, link])
        whole = sorted([*free, *needed[name]])
        assert whole == list(range(all_of_them)), f"{name}: {len(free)} free, {sorted(needed[name])} of {all_of_them}"


def end_of(end: Any, rows: list[Any]) -> int:
    """Of which episode an end is: that of its agent's last decision before."""
    return max(row["episode"] for row in rows if row["rank"] == end["rank"] and row["call"] < end["call"])


def note(found: list[list[Any]], rows: Any, widths: Mapping[int, int], episodes: Any, call: int) -> None:
    """Each row goes to its lane; what lies beyond an observation is 0. They are sorted by group, lane and rank."""
    for part in rows.parts.values():
        order = list(zip(rows.lane[part].tolist(), rows.rank[part].tolist(), strict=True))
        assert order == sorted(order), "rows of a group are not sorted by lane and rank"
    names = [name for name in type(rows).__slots__ if name not in ("parts", "ended", "lane")]
    for n, lane in enumerate(rows.lane.tolist()):
        row = {name: None if (column := getattr(rows, name)) is None else column[n] for name in names}
        width = widths[int(row["rank"])]
        assert not row["obs"][width:].any(), "an observation goes on behind its end"
        found[lane].append(row | {"obs": row["obs"][:width], "episode": int(episodes[lane]), "call": call})


def check_event_batch(
    build: Callable[[], HeronEnv] | Recipe, schedule: Any = None, *, seed: int = 0, lanes: int = 2, episodes: int = 1,
    **options: Any,
) -> Course:  # fmt: skip
    """Every lane yields what the Python clock does: scores, ends, actions, what was shown, ages, accounts and truth.

    `episodes`: the last of so many is compared; options are those of the batch.
    """
    make = build.build if isinstance(build, Recipe) else build
    course = play(make, schedule, seed=seed, lanes=lanes, episodes=episodes, **options)
    for lane, mine in enumerate(course.results):
        env = make()
        chosen = {env.hierarchy.ids[rank]: policy for rank, policy in policies_of(env).items()}
        for episode in range(episodes - 1):
            env.run_event_driven(chosen, seed=seed + lane if episode == 0 else None, schedule=schedule, record=())
        first = seed + lane if episodes == 1 else None
        watch = Watch(env, policies_of(env), RECORD, seed=first, schedule=schedule)
        theirs = watch.result
        where = f"lane {lane} of {lanes}, seed {seed}: "
        layout = env.simulation.model.layout
        names = [*layout.full_names, *(f"who is in sight {i}" for i in range(layout.width - layout.size))]
        same_results(mine, theirs, where)
        for name, array, other in (
            ("truth", course.truth[lane], env.simulation.truth),
            ("cache", course.cache[lane], env.proxy.cache),
        ):
            differ = np.flatnonzero(array.view(np.int64) != other.view(np.int64))
            told = [(names[i], array[i], other[i]) for i in differ[:5]]
            assert not told, f"{where}at the end the {name} is not the Python clock's: {told}"
        same_rows(watch, course.rows[lane], course.ends[lane], options.get("gamma", 1.0), where)
    return course


def same_results(mine: EpisodeResult, theirs: EpisodeResult, where: str) -> None:
    """Bit for bit."""
    for name in ("rewards", "actions", "observations", "terminated", "truncated", "end_time", "masked", "notes",
                 "cancelled_effects", "unfinished_effects"):  # fmt: skip
        a, b = as_bytes(getattr(mine, name)), as_bytes(getattr(theirs, name))
        assert a == b, f"{where}{name} differ:\n{getattr(mine, name)}\n{getattr(theirs, name)}"
    for name in ("staleness", "latency", "messages", "media"):  # nan is equal to itself here
        a, b = repr(getattr(mine, name)), repr(getattr(theirs, name))
        assert a == b, f"{where}{name} differ:\n{a}\n{b}"
