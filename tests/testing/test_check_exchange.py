"""`heron check` on agents that tell each other: an inbox is memory, what is shared is visible to the receiver."""

from typing import Any

import numpy as np
import pytest
from broken_envs import Level, Price, Reserve, Setpoint, Sound, Unit

from heron_env import (
    CoordinatorAgent,
    FeatureProvider,
    HeronEnv,
    Inbox,
    StateAverage,
    StateShare,
    SystemAgent,
    Vector,
    World,
    quantity,
    rule,
)
from heron_env.testing import Status, check_env

ASKED = ("runs", "writes", "same-seed", "parity", "honest-score", "no-leak", "foresight", "set-points", "linear-work")


class Secret(FeatureProvider):
    """Seen by its owner alone."""

    value: float = quantity(default=1.0, low=-9.0, high=9.0)
    other: float = quantity(default=2.0, low=-9.0, high=9.0)
    plan: float = quantity(default=0.0, low=0.0, high=1.0, foreknown=True)


class Heard(Inbox):
    near: np.ndarray = quantity(default=0.0, low=-5.0, high=5.0, shape=(2,))
    mean: float = quantity(default=0.0, low=-5.0, high=5.0)
    plans: np.ndarray = quantity(default=0.0, low=0.0, high=1.0, shape=(2,))


class Listener(Unit):
    """What it has heard moves it: that is physics, whoever told it."""

    features = (Level, Setpoint, Secret, Heard)

    @staticmethod
    @rule(writes=Setpoint.power)
    def apply_action(heard: Heard, action: Vector) -> float:
        return 0.5 * action[0] + 0.1 * heard.mean

    @staticmethod
    @rule(writes=(Level.value, Secret.value))
    def advance(
        level: Level, setpoint: Setpoint, secret: Secret, heard: Heard, price: Price, dt: float
    ) -> tuple[float, float]:
        pull = 0.1 * heard.near.sum() + secret.plan
        value = level.value + (setpoint.power - 0.1 * level.value + pull) * price.value * dt
        return value, secret.value + 0.01 * dt * setpoint.power


class ByHearsay(Listener):
    """Paid for what it was told."""

    @staticmethod
    @rule
    def compute_local_reward(level: Level, heard: Heard) -> float:
        return -abs(level.value - heard.mean)


class EndsByHearsay(Listener):
    """It goes when it is told so."""

    @staticmethod
    @rule
    def is_terminated(heard: Heard) -> bool:
        return heard.mean > 4.0


class Talking(Sound):
    """Units that tell each other by `edges`."""

    unit = Listener

    def __init__(self, n: int = 3, edges: Any = "ring", **options: Any) -> None:
        shared = (
            StateShare(Secret.value, Heard.near, edges),
            StateAverage(Secret.value, Heard.mean, edges),
            StateShare(Secret.plan, Heard.plans, edges),
        )
        units = [self.unit(f"unit_{i + 1}") for i in range(n)]
        zone = CoordinatorAgent("zone_1", *units, exchange=shared)
        HeronEnv.__init__(self, SystemAgent("system_agent", zone), **options)

    def finish(self, world: World) -> None:
        world[self.unit].Secret.plan[...] = world.draw("plan", (len(world[self.unit].Secret.plan),))


class Blabs(Talking):
    """Tells one unit, besides, what nobody shares."""

    def step(self, actions: Any) -> Any:
        *rest, infos = super().step(actions)
        column = self.state_names.index("unit_2.Secret.other")
        return (*rest, {a: {**info, "hint": float(self.simulation.truth[column])} for a, info in infos.items()})


class Unaveraged(Talking):
    """Tells a unit, besides, the single values of which its inbox has the mean."""

    def step(self, actions: Any) -> Any:
        *rest, infos = super().step(actions)
        column = self.state_names.index("unit_3.Secret.value")
        return (*rest, {a: {**info, "hint": float(self.simulation.truth[column])} for a, info in infos.items()})


class Hearsay(Talking):
    unit = ByHearsay


class HearsayEnds(Talking):
    unit = EndsByHearsay


@pytest.mark.parametrize("edges", ["star", [("unit_1", "unit_3"), ("unit_3", "unit_2")]], ids=["star", "own"])
def test_agents_that_tell_each_other_pass(edges: Any):
    report = check_env(Talking, only=ASKED[:-1], steps=6, options={"edges": edges})
    assert {f.status for f in report.findings} == {Status.PASSED}, str(report)


def test_all_pairs_are_legal_and_grow():
    class Ear(Inbox):
        mean: float = quantity(default=0.0, low=-5.0, high=5.0)

    class Hearer(Unit):
        features = (Level, Setpoint, Ear)

    def everyone(n: int = 3, edges: str = "full") -> HeronEnv:
        units = [Hearer(f"unit_{i + 1}") for i in range(n)]
        root = SystemAgent("system_agent", *units, exchange=StateAverage(Level.value, Ear.mean, edges))
        return type("Pairs", (Sound,), {"__init__": HeronEnv.__init__})(root)

    (finding,) = check_env(everyone, only=["linear-work"], steps=2).findings
    assert finding.status is Status.WARNING
    assert "pairs that tell each other grow faster than the agents: 6, 132, 2256" in finding.what
    assert "tell along a ring, a star or chosen pairs" in finding.mend
    (finding,) = check_env(everyone, only=["linear-work"], steps=2, options={"edges": "ring"}).findings
    assert finding.status is Status.PASSED, finding


@pytest.mark.parametrize(
    ("env", "column"), [(Blabs, "unit_2.Secret.other"), (Unaveraged, "unit_3.Secret.value")], ids=["other", "mean"]
)
def test_what_reaches_an_agent_by_another_way_than_its_inbox_is_a_leak(env: Any, column: str):
    (finding,) = check_env(env, only=["no-leak"], steps=6).findings
    assert finding.status is Status.FAILED
    assert f"unit_1 learns {column}, which is hidden from it, by info 'hint' of step()" in finding.what


@pytest.mark.parametrize(("env", "what"), [(Hearsay, "reward"), (HearsayEnds, "end")], ids=["reward", "end"])
def test_a_score_that_reads_an_inbox_is_warned_of(env: Any, what: str):
    (finding,) = check_env(env, only=["honest-score"], steps=6).findings
    assert finding.status is Status.WARNING
    assert f"unit_3's {what} depends on what its inbox holds" in finding.what
    assert "score the truth" in finding.mend


def test_a_score_from_reports_is_still_a_failure():
    class Believer(Talking):
        def finish(self, world: World) -> None:
            world.Reserve.amount[...] = abs(self.proxy.get_local_state("unit_1")["Level"][0])

    assert Reserve in Believer.global_features
    (finding,) = check_env(Believer, only=["honest-score"], steps=6).findings
    assert (finding.status, "with every report lost" in finding.what) == (Status.FAILED, True)
