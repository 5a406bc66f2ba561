"""The law of slots on the event clock: environment i is `run_event_driven(seed + i)`, as one group sees it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from laws.checks_event_batch import policies_of
from laws.row_oracle import Seen, Watch

from heron_env import HeronEnv
from heron_env.adapters import HeronVecEnv

MOST = 6
"""Episodes of an environment that are compared."""


@dataclass
class Episode:
    """Of one slot: what it was shown when it decided, what each decision but the last brought, and how that ended."""

    shown: list[dict[str, Any]] = field(default_factory=list)
    gains: list[tuple[float, int, bool]] = field(default_factory=list)
    end: dict[str, Any] | None = None


class SlotPlayer:
    """Steps a HeronVecEnv in which everyone follows `policies_of`; takes note, and looks whether idle slots idle."""

    def __init__(self, build: Callable[[], HeronEnv], lanes: int, schedule: Any, group: str, **options: Any) -> None:
        env = build()
        self.policies, ids = policies_of(env), env.hierarchy.ids
        self.ranks = [ids.index(agent) for agent in env.group_map[group]]
        others = {ids[rank]: policy for rank, policy in self.policies.items() if rank not in self.ranks}
        self.venv = HeronVecEnv(
            build, lanes, clock="event", schedule=schedule, group=group, others=others, threads=1, **options
        )
        self.size = self.venv._slots.spec.size
        slots = self.venv.num_envs
        self.courses: list[dict[int, Episode]] = [{0: Episode()} for _ in range(slots)]
        self.totals: list[dict[int, dict[str, Any]]] = [{} for _ in range(lanes)]
        """By episode; one in which nobody sees anything passes within a step."""
        self.seen = self._split(self.venv.reset())
        self.infos = self.venv.reset_infos
        self.waits = self.venv.waiting.slots.copy()
        for slot in range(slots):
            assert self.waits[slot] or (self.infos[slot] == {"idle": True} and not self.seen["obs"][slot].any())
            self._note(slot, self.infos[slot])

    def _split(self, seen: Any) -> dict[str, Any]:
        seen = dict(seen) if self.venv.central else {"obs": seen}
        for name, width in self.venv.widths.items():
            assert seen[name].shape == (self.venv.num_envs, width)
        return seen

    def _note(self, slot: int, info: dict[str, Any]) -> None:
        if self.waits[slot]:
            row = {name: table[slot] for name, table in self.seen.items()}
            row |= {"time": info["time"], "number": info["number"], "mask": self.venv.action_masks()[slot]}
            self.courses[slot].setdefault(self.episode(slot), Episode()).shown.append(row)

    def episode(self, slot: int) -> int:
        """The running one of a slot."""
        return int(self.venv.batch._engine.episodes[slot // len(self.ranks)])

    def step(self) -> None:
        """One step; `nan` stands where an action must be ignored."""
        actions = np.full((self.venv.num_envs, self.size), np.nan)
        for slot in np.flatnonzero(self.waits).tolist():
            rank = self.ranks[slot % len(self.ranks)]
            actions[slot] = self.policies[rank](self.seen["obs"][slot])
        before = self.seen
        seen, rewards, dones, self.infos = self.venv.step(actions)
        self.seen, self.waits = self._split(seen), self.venv.waiting.slots.copy()
        for slot, info in enumerate(self.infos):
            self._follow(slot, float(rewards[slot]), bool(dones[slot]), info)
            self._note(slot, info)
            if not self.waits[slot]:
                expected = 0.0 if dones[slot] else before["obs"][slot]
                assert (self.seen["obs"][slot] == expected).all(), f"slot {slot} idles and is shown something new"

    def _follow(self, slot: int, reward: float, done: bool, info: dict[str, Any]) -> None:
        course, lane = self.courses[slot], slot // len(self.ranks)
        now, brought = course[max(course)], (reward, info.get("steps"), info.get("took"))
        undecided = not now.shown or now.end is not None
        if not done:
            assert (info == {"idle": True}) == (not self.waits[slot])
            assert self.waits[slot] or reward == 0.0
            if self.waits[slot] and now.shown:
                now.gains.append(brought)
        elif undecided:
            assert reward == 0.0 and info["TimeLimit.truncated"] is False and "episode" in info
        else:
            now.end = {"brought": brought, "cut": info["TimeLimit.truncated"]}
            last = info["terminal_observation"]
            now.end |= last if self.venv.central else {"obs": last}
        if "episode" in info:
            assert done, f"slot {slot}: its episode is over, and it is not done"
            course[self.episode(slot)] = Episode()
            self.totals[lane][self.episode(slot) - 1] = info["episode"]


def check_vec_env(
    build: Callable[[], HeronEnv], schedule: Any, *, group: str, seed: int = 0, lanes: int = 2, calls: int = 20,
    **options: Any,
) -> SlotPlayer:  # fmt: skip
    """What slots are shown, what their decisions bring and how they end is what the Python clock's episodes have."""
    player = SlotPlayer(build, lanes, schedule, group, seed=seed, **options)
    for _ in range(calls):
        player.step()
    for lane in range(lanes):
        env, last = build(), player.episode(lane * len(player.ranks))
        for episode in range(min(last + 1, MOST)):
            where = f"lane {lane} of {lanes}, seed {seed}, episode {episode}: "
            first = None if episode else seed + lane
            watch = Watch(env, policies_of(env), ("rewards",), seed=first, schedule=schedule)
            if total := player.totals[lane].get(episode):
                assert total["r"] == watch.result.returns[env.hierarchy.ids[0]], f"{where}{total} {watch.result}"
                assert total["l"] * env.dt_ns / 1e9 == watch.result.end_time, f"{where}{total}"
            for place, rank in enumerate(player.ranks):
                course = player.courses[lane * len(player.ranks) + place].get(episode, Episode())
                same_course(watch, rank, course, where, over=episode < last)
    return player


def same_course(watch: Watch, rank: int, course: Episode, where: str, *, over: bool) -> None:
    """Of one agent; `over`: nothing is missing."""
    agent, who = watch.agents[rank], f"{where}{watch.ids[rank]}: "
    decisions = agent.decisions if over else agent.decisions[: len(course.shown)]
    assert len(course.shown) == len(decisions), f"{who}{len(course.shown)} rows of {len(agent.decisions)} decisions"
    for row, seen in zip(course.shown, decisions, strict=True):
        same_sight(row, seen, who)
        assert (row["time"], row["number"]) == (seen.time / 1e9, seen.number), f"{who}{row}"
        assert (row["mask"] == (True if seen.mask is None else seen.mask)).all(), f"{who}mask {row['mask']}"
    later = pairwise(decisions)
    gains = [(*gain_of(agent, before.time, seen.time), True) for before, seen in later]
    assert course.gains == gains, f"{who}decisions brought {course.gains}, not {gains}"
    assert (course.end is not None) == bool(decisions) or not over, f"{who}end {course.end}"
    if course.end is not None:
        same_sight(course.end, agent.end, who)
        last, name, result = decisions[-1], watch.ids[rank], watch.result
        brought = (*gain_of(agent, last.time, agent.end.time), last.number in agent.fell)
        assert course.end["brought"] == brought, f"{who}the last decision brought {course.end}, not {brought}"
        assert course.end["cut"] == (result.truncated[name] and not result.terminated[name]), f"{who}{course.end}"


def gain_of(agent: Any, since: int, until: int) -> tuple[float, int]:
    """The training reward as slots have it, and the steps."""
    _, training, steps = agent.brought(since, until, 1.0)
    return float(np.float32(training)), steps


def same_sight(row: Any, seen: Seen | None, who: str) -> None:
    """The observation, and with a central critic the truth."""
    assert seen is not None
    assert row["obs"].tobytes() == seen.obs.tobytes(), f"{who}shows {row['obs']} for {seen.obs}"
    if "state" in row:
        assert row["state"][: len(seen.state)].tobytes() == seen.state.tobytes(), f"{who}the truth of another time"
