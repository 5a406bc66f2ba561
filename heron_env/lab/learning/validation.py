"""What policies earn on validation episodes, and the table that compares them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from heron_env.core.policy import Policies
from heron_env.envs.base import HeronEnv
from heron_env.lab import benchmark
from heron_env.lab.benchmark import NOTHING
from heron_env.lab.episodes import Earned, groups_apart
from heron_env.lab.output import terminal
from heron_env.lab.robust_stats import mean_interval, paired_difference
from heron_env.lab.sweep.conditions import IDEAL
from heron_env.lab.sweep.play import can_play, play_lanes
from heron_env.registry import make
from heron_env.scheduling.drawn import AnySchedule


class Episodes(NamedTuple):
    """What the validation episodes yielded on the synchronous clock, and under the schedule, if there is one."""

    sync: list[Earned]
    under: list[Earned]


def unfinished(folder: Path) -> str:
    """What a training that was stopped leaves in its run folder."""
    begun = any(file.read_bytes().count(b"\n") > 1 for file in folder.glob("progress*.csv"))
    course = f"its course so far is in {folder}" if begun else "nothing of it is kept"
    return f"Training was not finished; {course}"


class Validation:
    """A few validation episodes of an environment, built once.

    Args:
        env: any environment of the kind; says which cases there are.
        env_id, options: how the environments are built, before the cases' own options.
        episodes: how many; 0: none.
        schedule: of the event clock, for `under_schedule`; a DrawnSchedule is drawn for each episode by its seed.
    """

    def __init__(
        self, env: HeronEnv, env_id: str, options: Mapping[str, Any], episodes: int, schedule: AnySchedule = None
    ) -> None:
        self._cases = benchmark.cases(env, episodes, split="validation") if episodes else []
        self.runs = [(make(env_id, **{**options, **case.options}), case.seed) for case in self._cases]
        self._lanes = make(env_id, **options) if self.runs and schedule is not None else None
        self.schedule = schedule

    def measure(self, policies: Policies, stops: Callable[[], object]) -> Episodes:
        """What they yield on both clocks; `stops` is asked before each episode, and nothing is yielded if it is so."""
        found = Episodes(self.returns(policies, stops), self.under_schedule(policies, stops))
        wanted = len(self.runs), len(self.runs) * (self._lanes is not None)
        return found if (len(found.sync), len(found.under)) == wanted else Episodes([], [])

    def returns(self, policies: Policies, stops: Callable[[], object] = bool) -> list[Earned]:
        """What each episode yields without a network.

        In the synchronous clock, or, where lanes are compiled anyhow, on them at zero delay: the same to the last bit.
        """
        if self._lanes is not None and self._plays(policies):
            return self._played(policies, IDEAL.schedule(self._lanes))
        return [
            Earned.of(env, env.run_synchronous(policies, seed=seed, record=()))
            for env, seed in takewhile(lambda _: not stops(), self.runs)
        ]

    def under_schedule(self, policies: Policies, stops: Callable[[], object] = bool) -> list[Earned]:
        """The same in the event clock under the schedule; nothing where there is none."""
        if self._lanes is None:
            return []
        if self._plays(policies):
            return self._played(policies, self.schedule)
        return [
            Earned.of(env, env.run_event_driven(policies, seed=seed, schedule=self.schedule, record=()))
            for env, seed in takewhile(lambda _: not stops(), self.runs)
        ]

    def _plays(self, policies: Policies) -> bool:
        options = {name for case in self._cases for name in case.options}
        return self._lanes is not None and can_play(self._lanes, policies, options)

    def _played(self, policies: Policies, schedule: AnySchedule) -> list[Earned]:
        assert self._lanes is not None
        batch = play_lanes(self._lanes, self._cases, [policies] * len(self._cases), schedule)
        return [Earned.of(self._lanes, result) for result in batch.results()]

    def __str__(self) -> str:
        """`8 validation episodes at dt = 900 s`."""
        return f"{len(self.runs)} validation episodes" + (f" at dt = {self.runs[0][0].dt:g} s" if self.runs else "")


def print_baselines(earned: Mapping[str, Sequence[Earned]], return_of: str, title: str = "") -> None:
    """Print a table of mean returns with 95 % intervals, and paired differences to doing nothing, the best first.

    Args:
        earned: by policy, the same episodes in the same order for all.
        return_of: the root of the hierarchy.
        title: above the table.
    """
    from rich.table import Table

    if not any(len(episodes) for episodes in earned.values()):
        return
    returns = {name: [episode.value for episode in episodes] for name, episodes in earned.items() if episodes}
    groups = groups_apart([episode for episodes in earned.values() for episode in episodes])
    table = Table("policy", title=title or None)
    table.add_column(f"return of {return_of} [95 %]", justify="right")
    table.add_column("against doing nothing [95 %]", justify="right")
    if groups:
        table.add_column("return of each group")
    for name in sorted(returns, key=lambda name: -mean_interval(returns[name]).mean):
        gain = paired_difference(returns[name], returns[NOTHING]) if NOTHING in returns and name != NOTHING else None
        beside = [Earned.mean(earned[name]).words(groups)] if groups else []
        table.add_row(name, str(mean_interval(returns[name])), "" if gain is None else str(gain), *beside)
    terminal().print(table)
    if len(returns) < len(earned):
        terminal().print(f"Not measured, for lack of time: {', '.join(name for name in earned if name not in returns)}")
