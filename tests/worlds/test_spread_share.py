"""Spread's mates who decide when they tell where they are: what is heard, what it costs, and how it is counted."""

import re
from functools import partial
from typing import Any

import numpy as np
import pytest
from laws.checks_event_batch import check_event_batch
from learned_communication_worlds import world as scheming

import heron_env
from heron_env import ScheduleConfig
from heron_env.errors import ConfigError
from heron_env.lab import benchmark
from heron_env.worlds.spread.discs import Disc
from worlds.batches import batch_is_its_lanes

make = partial(heron_env.make, "heron/Spread-v0", mates="share", compile=False)
SPEAK, SILENT = [0.0, 0.0, 0.7, 0.2, 0.0, 1.0], [0.0, 0.0, 0.7, 0.2, 0.0, -1.0]
ROUGH = ScheduleConfig(
    obs_delay=0.03, act_delay=0.06, msg_delay=0.05, jitter_type="lognormal", jitter_ratio=0.8, loss=0.2
)


def places(env: Any) -> np.ndarray:
    position = env.world[Disc].Position
    return np.stack([position.x, position.y], axis=-1)


def heard(env: Any, seen: Any, agent: str) -> list[float]:
    """What it heard of the others, `[n - 1, 2]` in a row."""
    return [x for name, x in zip(env.observation_names(agent), seen[agent], strict=True) if name.startswith("Heard")]


def own_words(env: Any, seen: Any, agent: str) -> list[float]:
    return [x for name, x in zip(env.observation_names(agent), seen[agent], strict=True) if "shared" in name]


def always(action: Any, _: Any) -> Any:
    return action


def test_an_agent_is_seen_where_it_said_last_that_it_is_and_by_nothing_else():
    env = make()
    seen, _ = env.reset(seed=3)
    assert not any("agent_" in name for name in env.observation_names("agent_0"))
    assert heard(env, seen, "agent_0") == [0.0] * 4
    last = np.zeros((3, 2))
    for speakers in ((), (1,), (0, 2), (), (1, 2)):
        seen, *_ = env.step({f"agent_{i}": SPEAK if i in speakers else SILENT for i in range(3)})
        last[list(speakers)] = places(env)[list(speakers)]
        for i in range(3):
            assert heard(env, seen, f"agent_{i}") == np.delete(last, i, axis=0).astype(np.float32).ravel().tolist()
            assert own_words(env, seen, f"agent_{i}") == last[i].astype(np.float32).tolist()


@pytest.mark.parametrize("continuous", [True, False])
def test_who_always_speaks_is_known_as_in_spread(continuous: bool):
    """After the first step the rule decides as with exact mates, up to what float32 leaves out."""
    env, exact = make(continuous=continuous), heron_env.make("heron/Spread-v0", continuous=continuous, compile=False)
    first = {env: [0.0] * 5 + [1.0], exact: [0.0] * 5} if continuous else {env: 5, exact: 0}
    rule, seen, earned = {}, {}, {}
    for each in (env, exact):
        rule[each] = benchmark.baselines(each)["assigned landmark"]["*"]
        each.reset(seed=5)
        seen[each], *_ = each.step(dict.fromkeys(each.agents, first[each]))
    for _ in range(10):
        for each in (env, exact):
            actions = {agent: rule[each].forward_batch(vector[None])[0] for agent, vector in seen[each].items()}
            seen[each], earned[each], *_ = each.step(actions)
        assert earned[env] == pytest.approx(earned[exact], abs=1e-4)


def test_a_message_is_counted_and_paid_for_by_its_sender():
    free, dear = make(), make(speech_cost=0.25)
    rng, spoken = np.random.default_rng(1), np.zeros(3)
    for env in (free, dear):
        env.reset(seed=2)
    for _ in range(8):
        speaks = rng.random(3) < 0.4
        spoken += speaks
        actions = {f"agent_{i}": SPEAK if speaks[i] else SILENT for i in range(3)}
        _, mine, *_ = free.step(actions)
        _, theirs, *_ = dear.step(actions)
        assert [mine[a] - theirs[a] for a in free.agents] == pytest.approx((0.25 * 2 * speaks).tolist())
    assert free.kpis()["messages"] == dear.kpis()["messages"] == 2 * spoken.sum()


def test_counts_of_a_run_have_the_messages():
    env, lossy = make(), ScheduleConfig(loss=0.3)
    runs = [env.run_event_driven({"*": partial(always, action)}, seed=0, schedule=lossy) for action in (SILENT, SPEAK)]
    quiet, loud = (run.messages for run in runs)
    assert loud.balanced() and runs[0].kpis["messages"] == 0.0
    assert loud.sent - quiet.sent == runs[1].kpis["messages"] > 0
    assert loud.lost > quiet.lost


@pytest.mark.parametrize("options", [{}, {"continuous": False, "num_agents": 2}, {"num_agents": 1}], ids=str)
def test_without_delay_both_clocks_are_one(options: dict[str, Any]):
    env = make(**options, speech_cost=0.1)
    rule = benchmark.baselines(env)["assigned landmark"]
    assert env.run_synchronous(rule, seed=6).same_course(env.run_event_driven(rule, seed=6))


@pytest.mark.e2e
@pytest.mark.parametrize("continuous", [True, False])
def test_batches_are_their_lanes_and_the_compiled_clock_is_the_python_clock(continuous: bool):
    options = {"mates": "share", "continuous": continuous, "speech_cost": 0.1}
    batch_is_its_lanes("heron/Spread-v0", **options, max_steps=4, compile=True)
    build = partial(heron_env.make, "heron/Spread-v0", **options, compile=True)
    check_event_batch(build, ROUGH, seed=11, lanes=3, episodes=2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"speech_cost": -0.1}, "spread(speech_cost=-0.1): must be a number >= 0"),
        ({"speech_cost": "free"}, "spread(speech_cost='free'): must be a number >= 0"),
        (
            {"mates": "exact", "speech_cost": 1.0},
            "spread(speech_cost=1.0): speaking is decided with mates='share' alone",
        ),
    ],
)
def test_a_price_must_be_one_and_have_something_to_buy(options: dict[str, Any], words: str):
    with pytest.raises(ConfigError, match=f"^{re.escape(words)}"):
        make(**options)


@pytest.mark.parametrize(
    ("scheme", "rate", "least", "most"),
    [("always", 0.0, 150, 150), ("never", 0.0, 0, 0), ("periodic", 5.0, 30, 30), ("random", 0.4, 40, 80),
     ("trigger", 0.2, 2, 100)],
)  # fmt: skip
def test_the_recipe_s_schemes_speak_as_often_as_they_say(scheme: str, rate: float, least: int, most: int):
    """Whatever the policy wants; the trigger, until what was shared is near."""
    env = scheming(scheme=scheme, rate=rate, compile=False)
    result = env.run_synchronous({"*": partial(always, SPEAK if scheme == "never" else SILENT)}, seed=0)
    assert least <= result.kpis["messages"] <= most
    voice, here = env.world[Disc].Voice, places(env)
    if scheme == "trigger":
        assert (np.hypot(*(voice.shared - here).T) <= rate).all()
