"""A measured network: fitted to records, kept in a file, drawn from with each cause by itself (R1)."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heron_env import ScheduleConfig, make
from heron_env.errors import ConfigError, TraceError
from heron_env.real.carried import run_carried
from heron_env.real.network import FEWEST, MOST, Bursts, Law, Network, in_runs, log_likelihood
from heron_env.scheduling.arrivals import Arrivals, Passage, RecordedAnswer
from heron_env.scheduling.messages import ObservationRequest, StateReport
from heron_env.scheduling.records import make as record_of
from heron_env.scheduling.sources import Empirical, GilbertElliott
from heron_env.scheduling.timing import END_OF_TIME
from heron_env.seeding import stream

ENV = make("heron/BatteryGrid-v0", num_batteries=3, zone_size=2, max_steps=12)
UP = "battery_1 to proxy"
BURSTS = Bursts(enter=0.04, leave=0.3, loss=0.8, outside=0.01)
EVERYTHING = ("rewards", "actions", "observations")


def law(**other: Any) -> Law:
    return Law(
        **{"messages": 100, "delays": (0.5,), "loss": 0.0, "bursts": None, "copies": 0.0, "overtakes": True} | other
    )


def network(thinking: dict[str, Any] | None = None, places: Sequence[str] = ("battery_1",), **other: Any) -> Network:
    return Network(
        schema_version=1, places={agent: agent for agent in places}, links={}, pooled=(), thinking=thinking or {},
        directions=dict.fromkeys(("up", "down", "between"), law(**other)),
    )  # fmt: skip


def spread(n: int = 200) -> tuple[float, ...]:
    return tuple(sorted(stream(0, "delays").lognormal(-1.0, 0.5, n).round(9).tolist()))


def sent(n: int, every: int = 10**9, first: int = 0) -> list[ObservationRequest]:
    """Requests of battery_1 to the proxy."""
    rank = ENV.hierarchy.index["battery_1"]
    return [record_of(ObservationRequest, (rank, i, first + i + 1, i * every, i)) for i in range(n)]


def passed(of: Network, n: int, seed: int = 1, every: int = 10**9, **options: Any) -> list[Passage]:
    delivery = of.delivery(ENV, seed, **options)
    return [Passage(UP, each.sent, tuple(sorted(delivery.times(1, each, 0)))) for each in sent(n, every)]


def recorded(*courses: Sequence[Passage], **more: Any) -> Arrivals:
    passages = [passage for course in courses for passage in course]
    return Arrivals(0, places={"battery_1": "a node"}, messages=dict(enumerate(passages, 1)), **more)


def lost(words: str) -> np.ndarray:
    return np.array([letter == "x" for letter in words], dtype=bool)


# What is drawn


@pytest.mark.parametrize("control", ["field", "zone"])
@pytest.mark.parametrize("delay", [0.03, 0.4, 1.3])
def test_one_delay_for_all_is_the_delay_of_messages_in_a_schedule(control: str, delay: float):
    env = make("heron/BatteryGrid-v0", num_batteries=3, zone_size=2, max_steps=12, control=control)
    agents, policies = env.hierarchy.ids[1:], waves(env)
    measured = network(places=agents, delays=(delay,)).delivery(env, 3)
    over = env.run_event_driven(policies, seed=1, arrivals=measured, record=EVERYTHING)
    schedule = {agent: ScheduleConfig(msg_delay=delay) for agent in agents}
    drawn = env.run_event_driven(policies, seed=1, schedule=schedule, record=EVERYTHING)
    account = "accounts of messages"  # the physics cycle's legs are no messages of a real network
    ours, theirs = (dict(result.digests(EVERYTHING), **{account: ""}) for result in (over, drawn))
    assert ours == theirs and len(ours) > 9
    assert over.end_time == 12.0 and any(action.any() for _, action in over.actions[env.possible_agents[0]])


def waves(env: Any) -> dict[str, Any]:
    def wave(size: int) -> Any:
        return lambda vector: 0.4 * np.sin(9.0 * float(vector.sum()) + np.arange(size))

    return {agent: wave(env.action_space(agent).shape[0]) for agent in env.possible_agents}


def test_what_is_drawn_is_measured_again():
    of = network(delays=spread(), loss=0.25, bursts=BURSTS, copies=0.1)
    again = Network.of([recorded(passed(of, 3_000, seed)) for seed in range(2)]).links[UP]
    delays, inside = np.array(spread()), BURSTS.enter / (BURSTS.enter + BURSTS.leave)
    assert again.messages == 6_000 and again.overtakes and set(again.delays) == set(spread())
    assert np.mean(again.delays) == pytest.approx(delays.mean(), abs=4.0 * delays.std() / 2_000**0.5)
    assert again.loss == pytest.approx(inside * 0.8 + (1.0 - inside) * 0.01, abs=0.02)
    assert again.copies == pytest.approx(0.1, abs=4.0 * (0.1 * 0.9 / 5_000) ** 0.5)
    assert again.bursts is not None
    for name, about in {"enter": 0.015, "leave": 0.06, "loss": 0.08, "outside": 0.01}.items():
        assert getattr(again.bursts, name) == pytest.approx(getattr(BURSTS, name), abs=about)
    free = Network.of([recorded(passed(of, 3_000, runs=False))]).links[UP]
    assert free.bursts is None and free.loss == pytest.approx(0.25, abs=0.03)


ALL = {"delays": spread(), "loss": 0.25, "bursts": BURSTS, "copies": 0.3}


@pytest.mark.parametrize("overtakes", [True, False])
def test_each_cause_is_switched_off_by_itself(overtakes: bool):
    of = network(**ALL, overtakes=overtakes)
    every = passed(of, 400, every=10**8)
    for off in ({"losses"}, {"copies"}, {"losses", "copies"}):
        for full, part in zip(every, passed(of, 400, every=10**8, without=off), strict=True):
            if full.came and part.came:
                assert set(full.came) <= set(part.came) or (part.came[0] in full.came and "copies" in off)
            assert len(part.came) <= 1 if "copies" in off else len(part.came) >= len(full.came)
            assert part.came if "losses" in off else bool(part.came) is bool(full.came)
    for off in ({"delays"}, {"jitter"}):
        flat = passed(of, 400, without=off)
        assert [len(each.came) for each in flat] == [len(each.came) for each in every]
        late = {ns - each.sent for each in flat for ns in each.came}
        assert late == ({1} if off == {"delays"} else {round(sum(spread()) / 200 * 1e9)})
    halves = passed(network(**ALL), 400, scale=0.5)
    for half, full in zip(halves, passed(network(**ALL), 400), strict=True):
        assert [2 * (ns - half.sent) for ns in half.came] == pytest.approx([ns - full.sent for ns in full.came], abs=2)


def test_who_asks_for_the_same_seed_gets_the_same_draws_and_messages_do_not_share_them():
    of = network(**ALL)
    assert passed(of, 300) == passed(of, 300) != passed(of, 300, seed=2)
    request = sent(1)[0]
    delivery, rank = network(delays=spread()).delivery(ENV, 1), request.agent
    report = [
        record_of(StateReport, (rank, 0, id, 0, rank, 1, 0, None, effect, None))
        for id, effect in ((2, True), (3, False), (4, False))
    ]
    first = {delivery.times(1, message, 0)[0] for message in (request, *report)}
    assert len(first) == 4
    alone = network(delays=spread()).delivery(ENV, 1)
    assert list(alone.times(1, report[1], 0)) == [*delivery_times(report[:2])[1]]


def delivery_times(messages: Sequence[Any]) -> list[Sequence[int]]:
    delivery = network(delays=spread()).delivery(ENV, 1)
    return [delivery.times(1, message, 0) for message in messages]


def test_where_nothing_overtook_nothing_overtakes_and_what_leaves_together_arrives_together():
    of = network(delays=spread(), overtakes=False)
    came = [each.came[0] for each in passed(of, 400, every=10**7)]
    assert came == sorted(came)
    delivery = of.delivery(ENV, 1)
    both = [delivery.times(1, message, 0) for message in sent(2, every=0)]
    assert both[0] == both[1]
    free = [each.came[0] for each in passed(network(delays=spread()), 400, every=10**7)]
    assert free != sorted(free)


def test_a_message_arrives_after_it_left_and_before_the_end_of_time():
    rank = ENV.hierarchy.index["battery_1"]
    late = record_of(ObservationRequest, (rank, 0, 1, END_OF_TIME - 10, 0))
    for of, more in ((network(delays=(9e9,)), {}), (network(delays=(0.0,)), {}), (network(**ALL), {"scale": 1e6})):
        for passage in passed(of, 50, **more):
            assert all(type(ns) is int and passage.sent < ns < END_OF_TIME for ns in passage.came)
        assert all(late.sent < ns < END_OF_TIME for ns in of.delivery(ENV, 1, **more).times(1, late, 0))
    thoughtful = network(thinking={"battery_1": (0.0, 9e9)}).delivery(ENV, 1)
    answers = [thoughtful.answered("battery_1", number, END_OF_TIME - 10) for number in range(9)]
    assert all(END_OF_TIME - 10 < at < END_OF_TIME and not gone for at, gone in answers)


def test_answers_take_the_measured_times_of_thinking():
    of = network(thinking={"battery_1": spread()})
    delivery = of.delivery(ENV, 1)
    took = [delivery.answered("battery_1", number, 7)[0] - 7 for number in range(2_000)]
    assert {*took} <= {round(s * 1e9) for s in spread()} and np.mean(took) == pytest.approx(
        np.mean(spread()) * 1e9, rel=0.05
    )
    assert [*delivery.thinks] == ["battery_1"] and not of.delivery(ENV, 1, without={"thinking"}).thinks
    slow, policies = network(thinking={"battery_1": (0.25,)}, delays=(0.0,)), waves(ENV)
    result = ENV.run_event_driven(policies, seed=1, arrivals=slow.delivery(ENV, 1))
    assert {round(time % 1.0, 6) for time, _ in result.actions["battery_1"]} == {0.25}


# What is fitted


@pytest.mark.parametrize("words", ["xo", "ooxxoxoo", "xxxxx", "o"])
@pytest.mark.parametrize("chain", [BURSTS, Bursts(enter=0.5, leave=0.5, loss=0.6, outside=0.3)])
def test_the_likelihood_is_the_sum_over_all_courses_of_the_chain(words: str, chain: Bursts):
    start = np.array([chain.leave, chain.enter]) / (chain.enter + chain.leave)
    moves = np.array([[1.0 - chain.enter, chain.enter], [chain.leave, 1.0 - chain.leave]])
    total = 0.0
    for states in product((0, 1), repeat=len(words)):
        of = start[states[0]] * math.prod(moves[a, b] for a, b in pairwise(states))
        for state, letter in zip(states, words, strict=True):
            loss = chain.loss if state else chain.outside
            of *= loss if letter == "x" else 1.0 - loss
        total += of
    four = chain.model_dump().values()
    assert log_likelihood([lost(words)], *four) == pytest.approx(math.log(total), rel=1e-12)
    assert log_likelihood([lost(words)] * 3, *four) == pytest.approx(3.0 * math.log(total), rel=1e-12)


def test_no_chain_of_a_grid_is_likelier_than_the_fitted_one():
    courses = [lost("oooxxxoooooooxooooxxoxxoooooooooo"), lost("ooooooooooxxxxooooooooo")]
    best = log_likelihood(courses, *Bursts.of(courses).model_dump().values())
    grid = product((0.02, 0.1, 0.3, 0.6), (0.1, 0.3, 0.6, 0.9), (0.5, 0.7, 0.9, 0.99), (0.001, 0.03, 0.1))
    assert best >= max(log_likelihood(courses, *four) for four in grid)


def test_losses_are_in_runs_where_so_few_groups_are_rarer_than_one_in_a_hundred():
    for size, count in ((9, 4), (14, 3)):
        each = [np.array(word) for word in set(product((False, True), repeat=size)) if sum(word) == count]
        groups = np.array([word[0] + (word[1:] & ~word[:-1]).sum() for word in each])
        for word, number in zip(each, groups, strict=True):
            assert in_runs([word]) is bool((groups <= number).mean() < 0.01)
    for words in ("", "o", "x", "oooo", "xxxx", "ooxoo"):
        assert not in_runs([lost(words)])
    draws = stream(1, "losses").random((1_000, 300)) < 0.1
    assert sum(in_runs([each]) for each in draws) < 20
    assert in_runs([lost("o" * 40 + "xx"), lost("x" + "o" * 60)])


def test_a_law_counts_what_was_lost_and_copied_and_whether_something_overtook():
    calm = [Passage(UP, 0, (3,)), Passage(UP, 10), Passage(UP, 20, (25, 40)), Passage(UP, 30, (31,))]
    first = Law.of([calm, calm[:1]])
    assert first == law(messages=5, delays=(1e-9, 3e-9, 3e-9, 5e-9, 20e-9), loss=0.2, copies=0.25, overtakes=False)
    assert Law.of([[*calm[:1], Passage(UP, 0, (2,))]]).overtakes
    assert Law.of([[Passage(UP, 10)]]) == law(messages=1, delays=(), loss=1.0, overtakes=False)


def test_few_messages_of_a_link_are_taken_with_those_of_its_direction():
    course = passed(network(delays=spread()), 100)
    few = [replace(passage, link="battery_2 to proxy") for passage in course[: FEWEST - 1]]
    down = [replace(passage, link="proxy to battery_2") for passage in course[:FEWEST]]
    places = {"battery_1": "a", "battery_2": "b"}
    of = Network.of([replace(recorded(course, few, down), places=places)])
    assert [*of.links] == [UP, "proxy to battery_2"] and of.pooled == ("battery_2 to proxy",)
    assert of.directions["up"].messages == 100 + FEWEST - 1 and of.directions["down"] == of.links["proxy to battery_2"]
    assert of.law("battery_2 to proxy") == of.directions["up"] and of.law(UP) == of.links[UP]
    assert of.directions["up"] == Law.of([course, few])
    with pytest.raises(ConfigError, match="no message went between"):
        of.law("battery_1 to battery_2")


def test_of_many_delays_the_order_statistics_stay_with_both_ends():
    course = [Passage(UP, 10 * i, (10 * i + 7 * i + 1,)) for i in range(10_001)]
    of = Network.of([recorded(course)]).links[UP]
    assert len(of.delays) == MOST and (of.delays[0], of.delays[-1]) == (1e-9, 70_001e-9)
    assert max(after - before for before, after in pairwise(of.delays)) == pytest.approx(7e-9 * 6, abs=1e-12)


def test_runs_are_pooled_by_who_shares_a_process_and_thinking_by_agent():
    answers = (None, RecordedAnswer(5, 105, (0.0,)), RecordedAnswer(200, 201, None), RecordedAnswer(300, 330, (1.0,)))
    course = passed(network(delays=spread()), 60)
    records = [recorded(course, answers={"battery_1": answers, "battery_2": (None,)}), recorded(course[::-1])]
    of = Network.of([records[0], replace(records[1], places={"battery_1": "another name"})])
    assert of.places == {"battery_1": "battery_1"} and of.thinking == {"battery_1": (30e-9, 100e-9)}
    assert of.links[UP].messages == 120 and of.links[UP] == Law.of([course, course])
    together = replace(records[1], places={"battery_1": "a", "battery_2": "a"})
    for refused in ([records[0], together], [], [Arrivals(0)]):
        with pytest.raises(TraceError, match="measure runs with the same nodes"):
            Network.of(refused)


def test_a_run_over_a_relay_has_the_delays_that_the_relay_makes():
    env = make("heron/BatteryGrid-v0", max_steps=8)
    policies = {"*": abs_half}
    run = run_carried(env, policies, nodes=1, relay={"delay": 0.05}, speed=10.0, seed=4)
    of = Network.of([run.arrivals])
    assert set(of.thinking) == set(env.possible_agents) == set(of.places) and set(of.directions) == {"up", "down"}
    for each in of.directions.values():
        assert each.delays[0] > 0.499 and np.median(each.delays) < 1.5 and each.loss < 0.2
    assert env.run_event_driven(policies, seed=4, arrivals=of.delivery(env, 4)).end_time == 8.0


def abs_half(vector: Any) -> list[float]:
    return [0.1]


# As a schedule


def test_a_schedule_has_the_pooled_law_of_an_agents_links():
    up = law(messages=300, delays=spread(), loss=0.1, bursts=BURSTS, copies=0.2)
    down = law(messages=100, delays=(2.0, 4.0), loss=0.5, overtakes=False)
    of = network(places=("battery_1", "battery_2", "battery_3")).model_copy(
        update={"links": {UP: up, "proxy to battery_1": down, "proxy to battery_2": down}}
    )
    schedule = of.schedule(5.0)
    config = schedule["battery_1"]
    assert [*schedule] == ["battery_1", "battery_2"] and isinstance(config.msg_delay, Empirical)
    mean = (270 * np.mean(spread()) + 50 * 3.0) / 320
    assert np.mean(config.msg_delay.delays) == pytest.approx(mean, rel=0.02) and len(config.msg_delay.delays) == 202
    assert config.loss == GilbertElliott(0.04, 0.3, 0.8, 0.01, 5.0)
    assert config.reorder
    assert schedule["battery_2"].loss == 0.5 and not schedule["battery_2"].reorder
    result = ENV.run_event_driven(waves(ENV), seed=1, schedule=schedule)
    assert result.messages.lost and result.latency["battery_1"].p95 > 0.2
    silent = of.model_copy(update={"links": {UP: law(delays=(), loss=1.0)}})
    assert silent.schedule(1.0) == {"battery_1": ScheduleConfig(loss=1.0)}


# In a file


def full_file() -> dict[str, Any]:
    of = network(thinking={"battery_1": (0.1, 1.0 / 3.0)}, **ALL)
    return json.loads(json.dumps(of.model_copy(update={"links": {UP: of.directions["up"]}}).model_dump()))


def test_a_file_gives_back_every_number(tmp_path: Path):
    of = Network.model_validate(full_file())
    of.write(tmp_path / "network.json")
    again = Network.read(tmp_path / "network.json")
    assert again == of and again.links[UP].delays == spread() and again.thinking["battery_1"][1] == 1.0 / 3.0
    again.write(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "network.json").read_bytes()
    assert passed(again, 200) == passed(of, 200)


DAMAGED: list[tuple[tuple[Any, ...], Any, str]] = [
    (("schema_version",), 2, "schema_version: must be 1, got 2"),
    (("schema_version",), None, "schema_version: must be 1"),
    (("surprise",), 1, "surprise: unknown key"),
    (("places",), {}, "places: "),
    (("places",), [], "places: must be a mapping"),
    (("places", "battery_1"), 3, "places.battery_1: must be text"),
    (("places", "battery_1"), " ", "places.battery_1: must be text without blanks"),
    (("links", UP), [], "must be a mapping"),
    (("links", "battery_9 to proxy"), "copy", "'battery_9 to proxy' is no link of an agent that has a place"),
    (("links", "battery_1"), "copy", "'battery_1' is no link"),
    (("links", UP, "delays"), [], "0 delays, loss=0.25: there are delays unless all is lost"),
    (("links", UP, "delays"), [0.1, -0.1], "delays[1]: must be >= 0, got -0.1"),
    (("links", UP, "delays"), [0.2, 0.1], "delays: must rise"),
    (("links", UP, "delays"), [0.1, "0.2"], "delays[1]: must be a number, got '0.2' (str)"),
    (("links", UP, "delays"), [9.3e9], "delays[0]: "),
    (("links", UP, "delays"), [0.1] * 2_001, "delays: "),
    (("links", UP, "delays"), 0.1, "delays: must be a list, got 0.1"),
    (("links", UP, "loss"), 1.2, "loss: "),
    (("links", UP, "loss"), 1.0, "200 delays, loss=1.0"),
    (("links", UP, "loss"), True, "loss: must be a number, got True"),
    (("links", UP, "messages"), 0, "messages: must be >= 1"),
    (("links", UP, "messages"), 1.5, "messages: must be a whole number"),
    (("links", UP, "copies"), -0.1, "copies: "),
    (("links", UP, "overtakes"), 1, "overtakes: must be true or false"),
    (("links", UP, "bursts", "leave"), 0.0, "bursts.leave: "),
    (("links", UP, "bursts", "los"), 0.5, "unknown key. Did you mean 'loss'?"),
    (("directions",), {}, "directions: "),
    (("directions", "sideways"), "copy", "sideways"),
    (("directions", "up"), "gone", "directions: 'up' is missing"),
    (("pooled",), ["proxy"], "'proxy' is no link"),
    (("thinking", "battery_1"), [], "thinking.battery_1: "),
    (("thinking", "battery_1"), [-1.0], "thinking.battery_1[0]: must be >= 0"),
    (("thinking",), "gone", "thinking: must be given"),
]


@pytest.mark.parametrize(("path", "value", "words"), DAMAGED)
def test_a_damaged_file_is_refused_with_place_and_remedy(path: tuple[str, ...], value: Any, words: str, tmp_path: Path):
    data = inside = full_file()
    for name in path[:-1]:
        inside = inside[name]
    match value:
        case "gone":
            del inside[path[-1]]
        case "copy":
            inside[path[-1]] = full_file()["directions"]["up"]
        case _:
            inside[path[-1]] = value
    require_refusal(tmp_path, json.dumps(data), words)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"schema_version": 1}', '{"schema_version": NaN}', '{"a": 1, "a": 2}', '"\\ud800"']
)
def test_what_is_no_network_is_refused(text: str, tmp_path: Path):
    require_refusal(tmp_path, text, "")
    require_refusal(tmp_path, json.dumps(full_file()).replace('"loss": 0.25', '"loss": 0.5, "loss": 0.25'), "key twice")
    require_refusal(tmp_path, json.dumps(full_file()).replace("0.25", "Infinity"), "Infinity")


def require_refusal(folder: Path, text: str, words: str) -> None:
    (folder / "network.json").write_text(text)
    with pytest.raises(TraceError) as refusal:
        Network.read(folder / "network.json")
    message = str(refusal.value)
    assert words in message and "network.json: " in message and "restore the file, or measure" in message


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(TraceError, match=r"none\.json: .*restore the file"):
        Network.read(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"without": {"loses"}}, "Did you mean 'losses'?"),
        ({"without": "losses"}, "without='losses': must be a list or tuple"),
        ({"scale": -1.0}, "scale=-1.0: must be a number from 0"),
        ({"scale": math.nan}, "scale=nan"),
        ({"seed": 0.5}, "seed=0.5: must be a whole number"),
    ],
)
def test_options_of_a_delivery_are_checked(options: dict[str, Any], words: str):
    with pytest.raises(ConfigError) as refusal:
        network().delivery(ENV, **{"seed": 1} | options)
    assert words in str(refusal.value)


def test_a_delivery_is_for_one_episode_and_for_links_that_were_measured():
    delivery, policies = network(delays=(0.1,)).delivery(ENV, 1), waves(ENV)
    ENV.run_event_driven(policies, seed=1, arrivals=delivery)
    with pytest.raises(ConfigError, match=r"for one episode; take network\.delivery"):
        ENV.run_event_driven(policies, seed=1, arrivals=delivery)
    up = network().model_copy(update={"directions": {"up": law()}})
    with pytest.raises(ConfigError, match="'proxy to battery_1': no message went down"):
        ENV.run_event_driven(policies, seed=1, arrivals=up.delivery(ENV, 1))
