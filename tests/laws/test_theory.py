"""The clock agrees with closed forms: ages and losses of the post office alone, and loops with dead time.

Seeds are fixed: 0, 1, ... The means over seeds lie within three standard errors of the forms.
"""

from functools import partial
from typing import Any

import numpy as np
import pytest
from laws.mutants import mutant_in, require_caught

from benchmarks import plant, post_office
from heron_env import EventScheduler, MessageBroker, ScheduleConfig
from heron_env.scheduling import links
from heron_env.testing.clock import Phase

SIZES = [(10, 2_000), pytest.param((20, 50_000), marks=pytest.mark.draw)]
"""Seeds, and updates with each."""


def check_age(name: str, size: tuple[int, int] = SIZES[0]) -> None:
    """Mean age of information."""
    config, (seeds, updates) = post_office.AGES[name], size
    ages = [post_office.mean_age(config, seed, updates) for seed in range(seeds)]
    expected = post_office.expected_age(config)
    score = post_office.standard_errors(ages, expected)
    assert abs(score) <= 3.0, f"{np.mean(ages)} s, expected {expected} s: {score} standard errors"


def check_losses(name: str, size: tuple[int, int] = SIZES[0]) -> None:
    """Share lost, and of runs of losses the mean length and its mean square."""
    loss, (seeds, updates) = post_office.LOSSES[name], size
    runs = [post_office.loss_runs(loss, seed, updates) for seed in range(seeds)]
    expected = post_office.expected_runs(loss)
    scores = post_office.standard_errors(runs, expected)
    assert np.abs(scores).max() <= 3.0, f"{np.mean(runs, axis=0)}, expected {expected}: {scores} standard errors"


def check_stability(gain: float, h: float) -> None:
    """The loop grows from the very d on from which a root lies outside of the unit circle, and as fast as that says."""
    first = plant.first_unstable(gain, h, plant.expected_growth)
    for d in range(max(0, first - 2), first + 1):
        grows, expected = plant.growth(gain, d, h), plant.expected_growth(gain, d, h)
        assert (grows > 1.0) == (d == first), f"{d} steps late it grows by {grows} a step, expected {expected}"
        if abs(expected - 1.0) < 0.03:
            assert grows == pytest.approx(expected, abs=2e-4 + 0.1 * abs(expected - 1.0))


NETWORKS = {
    "effects late": ScheduleConfig(act_delay=plant.DEAD * plant.STEP),
    "observations late": ScheduleConfig(obs_delay=plant.DEAD * plant.STEP),
    "messages late": ScheduleConfig(msg_delay=plant.DEAD / 2 * plant.STEP),
    "all late": ScheduleConfig(msg_delay=plant.STEP, obs_delay=5 * plant.STEP, act_delay=3 * plant.STEP),
}
"""Ten steps from a question to its effect."""


def check_smith(network: str = "effects late") -> None:
    """Bit for bit the response of the loop without dead time, ten steps later, and nothing before."""
    late, prompt, plain = (
        plant.course(control, schedule, h=plant.STEP, steps=200)
        for control, schedule in (
            (plant.SmithPredictor(plant.DEAD), NETWORKS[network]),
            (plant.SmithPredictor(0), ScheduleConfig()),
            (plant.PI(), ScheduleConfig()),
        )
    )
    assert late.tolist() == [0.0] * plant.DEAD + prompt[: -plant.DEAD].tolist()
    assert prompt == pytest.approx(plain, abs=1e-6), "without dead time a right model changes nothing but rounding"


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", post_office.AGES)
def test_age_of_information(name: str, size: tuple[int, int]) -> None:
    check_age(name, size)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", post_office.LOSSES)
def test_losses_and_their_runs(name: str, size: tuple[int, int]) -> None:
    check_losses(name, size)


@pytest.mark.parametrize("gain", plant.GAINS)
@pytest.mark.parametrize("h", [0.5, 0.2, *(pytest.param(h, marks=pytest.mark.draw) for h in (0.1, 0.05))])
def test_the_first_unstable_delay(gain: float, h: float) -> None:
    check_stability(gain, h)


@pytest.mark.parametrize("gain", plant.GAINS)
def test_sampled_ever_faster_it_is_the_dead_time_that_the_continuous_loop_bears(gain: float) -> None:
    for h in (0.1, 0.02, 0.01):
        last, first = (plant.dead_time(gain) / h + off for off in (-1.0, 1.0))
        assert plant.expected_growth(gain, int(last), h) < 1.0 < plant.expected_growth(gain, int(first) + 1, h)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_smith_predictor_recovers_the_response_without_dead_time(network: str) -> None:
    check_smith(network)


# Planted faults

MUTANTS: dict[str, Any] = {}
mutant = mutant_in(MUTANTS)


@mutant(MessageBroker, "behind")
def messages_overtake(original: Any) -> Any:
    return lambda self, agent, queue, arrival: arrival


@mutant(links, "deviation")
def lognormal_has_a_median_of_one(original: Any) -> Any:
    def deviation(kind: str, ratio: float, u: float) -> Any:
        spread = np.sqrt(np.log1p(ratio * ratio))
        return (1.0 + original(kind, ratio, u)) * np.exp(0.5 * spread * spread) - 1.0

    return deviation


@mutant(links.ChainState, "_state_in")
def a_chain_forgets(original: Any) -> Any:
    """Each state is drawn anew: the share lost stays."""
    return lambda self, k: int(self._chain.start[0] <= links.element(self._x, k))


@mutant(EventScheduler, "schedule")
def effects_go_before_physics(original: Any) -> Any:
    """At one instant: an effect then counts for the step that ends there."""
    return lambda self, ns, phase, *event: original(self, ns, -1 if phase == Phase.ACTION_EFFECT else phase, *event)


@mutant(links.Link, "delay")
def a_delay_lasts_a_step_more(original: Any) -> Any:
    return lambda self, nominal, *rest: original(self, nominal, *rest) + (self.timing.tick if nominal else 0)


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("messages_overtake", partial(check_age, "lognormal, loss 0, in order")),
        ("lognormal_has_a_median_of_one", partial(check_age, "lognormal, loss 0, reorder")),
        ("a_chain_forgets", partial(check_losses, "Gilbert")),
        ("a_chain_forgets", partial(check_losses, "Gilbert-Elliott")),
        ("effects_go_before_physics", partial(check_stability, 2.0, 0.2)),
        ("a_delay_lasts_a_step_more", partial(check_stability, 2.0, 0.2)),
        ("effects_go_before_physics", check_smith),
        ("a_delay_lasts_a_step_more", check_smith),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_planted_faults_are_caught(name: str, law: Any) -> None:
    require_caught(MUTANTS[name], law)
