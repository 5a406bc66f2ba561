"""What tests of runs over real networks share: worlds, networks, and the law that a run repeats bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import pytest
from laws.checks_letters import writers
from laws.examples import TALK
from real.quick import Starter
from real.real_policies import (
    MARKET,
    Planner,
    Wave,
    grid,
    market,
    market_policies,
    markets,
    markets_policies,
    spread,
)

from heron_env import ConditionMonitor, Disturbance, EpisodeResult, HeronEnv, ScheduleConfig
from heron_env.envs.event.clock import EventRun
from heron_env.real import carried, carrier, relay
from heron_env.real.carried import built, run_carried
from heron_env.real.carrier import Carrier
from heron_env.real.hub import RealRun

RECORD = ("rewards", "actions", "observations")


class Setting(NamedTuple):
    """A world, who decides in it, and in which processes; `more`: options of the run, here and when it repeats."""

    build: Callable[..., HeronEnv]
    policies: Callable[[], Any]
    nodes: int | Sequence[Sequence[str]]
    speed: float
    more: Mapping[str, Any] = {}


TICKS = ScheduleConfig(tick_interval=0.4, phase=0.1, jitter_type="uniform", tick_jitter_ratio=0.2, on_missing="noop")
GRID = (("zone_1",), ("battery_1", "battery_2"))
MARKETS = (("office_0", "one_1"), ("office_1", "one_0"), ("two_0", "two_1"))
STORMY = replace(TALK, observe_age=True, mail="full", max_steps=6, hooks="stormy")
TALKERS = tuple(tuple(STORMY.ids[first::3]) for first in (1, 2, 3))
MONITORS = [
    ConditionMonitor(agent="gate", watch="free.Stock.value", above=0.3, preempt=True),
    ConditionMonitor(agent="office", watch="clerk_0.Stock.value", below=0.2, about=("clerk_0",)),
]
STORM = [
    Disturbance(2.3, "gust", {"what": "talker_9.Level.value", "by": 0.25}, True),
    Disturbance(3.1, "sensor_failure", {"agent": "talker_9", "mode": "freeze"}, duration=2.5),
]


def talkers(**options: Any) -> HeronEnv:
    """A world of everything: shares, letters, commands, agents that end, gusts."""
    return replace(STORMY, **options).build()


SETTINGS = {
    "spread": Setting(spread, lambda: "assigned landmark", 2, 4.0, {"schedule": ScheduleConfig(own_rows="local")}),
    "grid": Setting(grid, lambda: {"*": Wave("zone", 2)}, GRID, 30.0),
    "plans": Setting(partial(grid, max_steps=12), lambda: {"*": Planner("zone", 2)}, GRID, 30.0),
    "market": Setting(market, market_policies, MARKET, 35.0, {"monitors": MONITORS}),
    "prompt market": Setting(market, lambda: market_policies(thinking=0.0), MARKET, 35.0),
    "markets": Setting(
        partial(markets, report_interval=0.5), markets_policies, MARKETS, 20.0, {"schedule": TICKS}
    ),
}  # fmt: skip
SETTINGS["talk"] = Setting(
    talkers, lambda: writers(STORMY, STORMY.build(), thinking=0.3), TALKERS, 20.0, {"disturbances": STORM}
)
NETWORKS = {
    "udp": {"delay": 0.012, "ratio": 0.8, "loss": 0.1, "copies": 0.1},
    "tcp": {"delay": 0.008, "ratio": 0.8, "loss": 0.01, "breaks": 0.004},
    "mqtt": None,
}


class Quick:
    """Runs, and what they were inside."""

    def __init__(self, starter: Starter) -> None:
        self.starter = starter
        self.before: list[Callable[[], object]] = []
        self.inside: list[EventRun] = []

    def run(
        self, name: str, transport: str, url: str = "", *, enough: Callable[[RealRun], bool] = lambda run: True,
        **options: Any,
    ) -> RealRun:  # fmt: skip
        """One run of a setting; over MQTT with the broker at `url`.

        Laws hold at any speed; what a test needs to happen may need a slower one where the machine is busy.
        """
        fastest = options.pop("speed", SETTINGS[name].speed)
        for slower in (1.0, 3.0, 9.0):
            for each in self.before:
                each()
            run = self._run(name, transport, url, speed=fastest / slower, **dict(options))
            if enough(run):
                return run
        raise AssertionError(f"at no speed has enough happened: {run.result!r}, {run.punctuality}")

    def _run(self, name: str, transport: str, url: str, *, seed: int = 5, **options: Any) -> RealRun:
        setting = SETTINGS[name]
        env = setting.build(**options.pop("build", {}))
        if transport == "mqtt":
            options = {"network": url, "options": {"no_delay": True}} | options
        plain = "relay" not in options and not options.get("lockstep")
        if plain and (network := NETWORKS[transport]) is not None:
            options["relay"] = network | {"seed": seed}
        options = {"nodes": setting.nodes, "join_s": 20.0, **setting.more} | options
        policies = options.pop("policies", None) or setting.policies()
        return run_carried(env, policies, transport=transport, seed=seed, **options)

    def repeated(self, name: str, run: RealRun, **options: Any) -> EpisodeResult:
        """The same run from its record; everything of it is checked."""
        setting = SETTINGS[name]
        env = setting.build(**options.pop("build", {}))
        policies = built(options.pop("policies", None) or setting.policies(), env, run.arrivals.seed)
        options = {**setting.more} | options
        again = env.start_event_driven(policies, arrivals=run.arrivals, record=RECORD, **options)
        again.until(None)
        assert_equal(again, self.inside[-1], run)
        return again.result()


def assert_equal(again: EventRun, inside: EventRun, run: RealRun) -> None:
    """Bit for bit, and account for account."""
    result, first = again.result(), run.result
    assert result.rewards == first.rewards and result.returns == first.returns
    assert result.same_course(first)
    assert repr(result.staleness) == repr(first.staleness)  # nan for who never observed anything
    assert (result.messages, result.letters) == (first.messages, first.letters)
    assert first.messages.balanced() and first.letters.balanced()
    for rank, agent in enumerate(again.env.hierarchy.ids):
        assert again.context.broker.counts(rank) == inside.context.broker.counts(rank), agent
        pairs = zip(again.context.received[rank], inside.context.received[rank], strict=True)
        assert all(one[1] == other[1] and one[0].tolist() == other[0].tolist() for one, other in pairs), agent
    assert result.digests(RECORD) == first.digests(RECORD) == run.arrivals.course


def quickly(starter: Starter, monkeypatch: pytest.MonkeyPatch) -> Quick:
    """Let hubs start their processes so."""
    quick, bind = Quick(starter), Carrier.bind

    def bound(carrier: Carrier, run: EventRun) -> None:
        quick.inside.append(run)
        bind(carrier, run)

    monkeypatch.setattr(carried, "subprocess", starter)
    monkeypatch.setattr(relay, "subprocess", starter)
    monkeypatch.setattr(carrier, "LINGER_S", 0.05)
    monkeypatch.setattr(Carrier, "bind", bound)
    return quick
