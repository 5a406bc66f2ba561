"""The bars: how fast is fast enough, each with the figure of this run that it judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import adapters, alone, event_batch, events, grid, learning, observing, power_flow, spread, sweeps
from benchmarks.case import Role
from benchmarks.measure import Result
from benchmarks.peers import JAX_ENV, PEERS

Results = Mapping[str, Result]
"""By name of the comparison."""
Figure = Callable[[Results], float | None]


@dataclass(frozen=True)
class Bar:
    """What must be reached.

    Attributes:
        words: what is judged.
        needed: the bar.
        unit: of both figures: "x" for times as fast, "%" for a share.
        figure: what this run reached; None where it was not measured.
        most: the figure must be at most the bar.
        peers: the comparison with other libraries that it judges; those are left undecided on a disturbed machine.
    """

    words: str
    needed: float
    unit: str
    figure: Figure
    most: bool = False
    peers: str = ""


@dataclass(frozen=True)
class Judged:
    """A bar and what was reached; `met` is None where nothing was measured, or what was decides nothing."""

    bar: Bar
    reached: float | None
    decided: bool = True

    @property
    def met(self) -> bool | None:
        """Was the bar met?"""
        if self.reached is None or not self.decided:
            return None
        return self.reached <= self.bar.needed if self.bar.most else self.reached >= self.bar.needed

    @property
    def share(self) -> float | None:
        """Of what is needed; 1 or more: met."""
        if self.reached is None:
            return None
        return self.bar.needed / self.reached if self.bar.most else self.reached / self.bar.needed

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "bar": self.bar.words,
            "needed": self.bar.needed,
            "unit": self.bar.unit,
            "better": "less" if self.bar.most else "more",
            "reached": self.reached,
            "met": self.met,
            "decided": self.decided,
        }


def judge(results: Sequence[Result]) -> list[Judged]:
    """All bars on these results."""
    by_name = {result.name: result for result in results}
    return [
        Judged(bar, bar.figure(by_name), bar.peers not in by_name or by_name[bar.peers].decides) for bar in all_bars()
    ]


def all_bars() -> list[Bar]:
    """In the order of the table."""
    return [*_spread(), *_grid(), *_events(), *_event_batch(), *_sweeps(), *_adapters(), *_rest()]


def figure(comparison: str, case: str) -> Figure:
    """The median of a case."""

    def read(results: Results) -> float | None:
        found = results[comparison].case(case) if comparison in results else None
        return None if found is None else found.spread.median

    return read


def fact(comparison: str, name: str) -> Figure:
    """A fact that the first case which has it tells."""

    def read(results: Results) -> float | None:
        cases = results[comparison].cases if comparison in results else ()
        return next((case.facts[name] for case in cases if name in case.facts), None)

    return read


def times(one: Figure, other: Figure) -> Figure:
    """Their product; None where one of them is missing."""

    def read(results: Results) -> float | None:
        factors = (one(results), other(results))
        return None if None in factors else factors[0] * factors[1]  # type: ignore[operator]

    return read


def spent(work: float, rate: Figure) -> Figure:
    """What so much work takes at this rate."""

    def read(results: Results) -> float | None:
        found = rate(results)
        return None if found is None else work / found

    return read


def share(comparison: str, case: str, of: str, scale: float = 1.0) -> Figure:
    """The median over the rounds of a case relative to another."""

    def read(results: Results) -> float | None:
        found = results[comparison].ratio(case, of) if comparison in results else None
        return None if found is None else scale * found.median

    return read


def to_best(comparison: str, case: str, role: Role, scale: float = 1.0) -> Figure:
    """The median over the rounds of a case relative to the best of a role."""

    def read(results: Results) -> float | None:
        best = results[comparison].best(role) if comparison in results else None
        return None if best is None else share(comparison, case, best.name, scale)(results)

    return read


def _spread() -> list[Bar]:
    bars = [
        Bar(
            f"Spread, {n} agents, {lanes:,} environments: to the best peer", 10.0, "x",
            to_best(spread.spread_name(n, lanes), spread.BATCH, Role.PEER), peers=spread.spread_name(n, lanes),
        )
        for n in spread.AGENTS for lanes in spread.LANES if 32 <= lanes <= spread.PEERS_UP_TO[n]
    ]  # fmt: skip
    single = share(spread.spread_name(3, 1), spread.SINGLE, PEERS["mpe2"])
    bars.append(Bar("Spread, 3 agents, PettingZoo API: to MPE", 10.0, "x", single, peers=spread.spread_name(3, 1)))
    for n in (3, 10):
        to_c = share(spread.spread_name(n, 1024), spread.BATCH, spread.C, 100.0)
        bars.append(Bar(f"Spread, {n} agents, 1,024 environments: of the C loop", 40.0, "%", to_c))
    name = spread.spread_name(*JAX_ENV)
    to_jaxmarl = share(name, PEERS["jax"], PEERS["jaxmarl"])
    return [*bars, Bar("JaxEnv, Spread, 3 agents, 1,024: to JaxMARL", 4.0, "x", to_jaxmarl, peers=name)]


def _grid() -> list[Bar]:
    bars = [
        Bar(
            f"BatteryGrid, {n:,} agents, parent scope: of five dictionaries", 50.0, "%",
            share(f"grid-{n}-parent", grid.SINGLE, grid.DICTIONARIES, 100.0),
        )
        for n in (10, 100, 1000)
    ]  # fmt: skip
    return [
        *bars,
        Bar("BatteryGrid, 1,000 agents, public", 100.0, "env-steps/s", figure("grid-1000-public", grid.SINGLE)),
        Bar(
            "BatteryGrid, 10 agents, 1,024 environments, public", 8e6, "agent-steps/s",
            figure("grid-batch-public", grid.BATCH),
        ),
        Bar(
            "BatteryGrid, 10 agents, 1,024 environments, public: of the hand-fused loop", 40.0, "%",
            to_best("grid-batch-public", grid.BATCH, Role.CEILING, 100.0),
        ),
    ]  # fmt: skip


def _events() -> list[Bar]:
    needed = {"parent": (150e3, 12e3), "public": (100e3, 10e3)}
    bars: list[Bar] = []
    for scope in events.SCOPES:
        each, ticks = needed[scope]
        for n in events.SIZES:
            name, words = f"events-jitter-{n}-{scope}", f"Event clock, {n:,} agents, {scope}"
            clock = figure(name, events.CLOCK)
            bars += [
                Bar(f"{words}, jitter and loss", each, "events/s", clock),
                Bar(f"{words}, jitter and loss", ticks, "agent-ticks/s", times(clock, fact(name, events.TICKS))),
                Bar(f"{words}, trace on: of off", 80.0, "%", share(name, events.TRACED, events.CLOCK, 100.0)),
            ]
    return bars


def _event_batch() -> list[Bar]:
    compiled, python = event_batch.COMPILED, event_batch.PYTHON
    bars = []
    for name, words, steps, ratio in (
        ("jitter-dt", "jitter and loss, telemetry once a step", 150_000.0, 40.0),
        ("steady-dt", "loss, telemetry once a step", 250_000.0, None),
        ("jitter-defaults", "jitter and loss, its defaults", 40_000.0, 25.0),
    ):
        at = f"eventbatch-{name}"
        bars.append(Bar(f"Event batch, {words}: env-steps per CPU s", steps, "", figure(at, compiled)))
        if ratio is not None:
            bars.append(Bar(f"Event batch, {words}: to the Python clock", ratio, "x", share(at, compiled, python)))
    for dt, needed in ((900, 85.0), (60, 80.0)):
        at = f"learning-network-{dt}"
        made = share(at, learning.UNDER, learning.WITHOUT, 100.0)
        bars.append(Bar(f"PPO under the network, steps of {dt} s: of the synchronous rate", needed, "%", made))
    for scope, needed in (("parent", 4e6), ("public", 1e6)):
        at = f"eventbatch-phase-1000-{scope}"
        bars.append(
            Bar(f"Event batch in phase, 1,000 agents, {scope}: events per CPU s", needed, "", figure(at, compiled))
        )
    return bars


def _sweeps() -> list[Bar]:
    most = {"rule": {"dt": 15.0, "defaults": 40.0}, "trained": {"dt": 35.0, "defaults": 60.0}}
    bars = []
    for policy, needed in most.items():
        for telemetry, seconds in needed.items():
            at, words = sweeps.sweep_name(policy, telemetry), f"Sweep, {policy}, telemetry: {telemetry}"
            rate = figure(at, sweeps.LANES)
            bars += [
                Bar(f"{words}: 1,000 days", seconds, "CPU-s", spent(1000.0, rate), most=True),
                Bar(f"{words}: to the Python clock", 25.0, "x", share(at, sweeps.LANES, sweeps.PYTHON)),
            ]
    return bars


def _adapters() -> list[Bar]:
    most = {adapters.VECTOR: (3.0, 1.5, 1.5), adapters.SLOTS: (4.0, 1.5, 1.5)}
    return [
        Bar(
            f"Spread, 3 agents, {lanes:,} environment{'s' * (lanes > 1)}: BatchEnv to {adapter}", needed, "x",
            share(f"adapters-{lanes}", adapters.BATCH, adapter), most=True,
        )
        for adapter, bars in most.items() for lanes, needed in zip(adapters.LANES, bars, strict=True)
    ]  # fmt: skip


def _rest() -> list[Bar]:
    return [
        Bar(
            "Observation loop: of copying memory", 50.0, "%",
            to_best("observation-kernel", observing.GATHER, Role.FLOOR, 100.0),
        ),
        Bar(
            "Observation loop with noise, the full law: of copying memory", 35.0, "%",
            to_best("observation-kernel", observing.LAW, Role.FLOOR, 100.0),
        ),
        Bar("One observer's objects", 5e-3, "CPU-s", figure("observation-objects", observing.ONE), most=True),
        Bar("All observers' objects", 0.1, "CPU-s", figure("observation-objects", observing.ALL), most=True),
        Bar("All observers' vectors", 0.1, "CPU-s", figure("observation-objects", observing.ALL_VECTORS), most=True),
        Bar("EnergyManagement, 20 batteries", 5e3, "env-steps/s", figure("energy-single", grid.SINGLE)),
        Bar("EnergyManagement, batch, 1 substep", 8e6, "agent-steps/s", figure("energy-batch", grid.BATCH)),
        Bar(
            "Power flow, 33 buses, 4,096 scenarios: to the best library", 8.0, "x",
            to_best(power_flow.NAME, power_flow.THREADS, Role.PEER), peers=power_flow.NAME,
        ),
        Bar("SB3 PPO on Spread", 2e4, "env-steps/s", figure("learning-ppo", learning.MANY)),
        Bar("import heron_env", 0.6, "CPU-s", figure("startup-import", alone.IMPORT), most=True),
    ]  # fmt: skip
