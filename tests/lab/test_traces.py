"""Recorded episodes: whole, exact, the same again, and drawn by the rules of those who read the drawings."""

import json
import math
import re
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli_kit import as_json, heron
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.trace_event_format import faults
from laws.examples import ENDING
from strategies import Recipe, recipes, schedules

from heron_env import ConditionMonitor, Disturbance, ScheduleConfig, __version__, make
from heron_env.envs.event import context
from heron_env.errors import ConfigError, ScheduleError, TraceError, UnknownEnvironment, Untrusted
from heron_env.lab import benchmark, draw, record_episode
from heron_env.lab.schedules import with_settings
from heron_env.lab.show.courses import episode_verdict, trace_part
from heron_env.lab.traces import file
from heron_env.lab.traces.episode import Episode, PolicyIdentity, TraceSetting, plain, schedule_entries
from heron_env.lab.traces.lanes import lanes, spans
from heron_env.lab.traces.perfetto import perfetto_text
from heron_env.lab.traces.recording import record
from heron_env.lab.traces.replaying import first_difference, rebuilt, replay
from heron_env.lab.traces.timeline import legible
from heron_env.scheduling.messages import ActionCommand, CycleToken, LetterUnderWay, ObservationCopy, SharedState
from heron_env.testing import clock

GRID, ENERGY = "heron/BatteryGrid-v0", "heron/EnergyManagement-v1"
OPTIONS = {"num_batteries": 3, "max_steps": 5}
LOSSY = ScheduleConfig(
    msg_delay=0.1, obs_delay=0.05, act_delay=0.3, jitter_type="lognormal", jitter_ratio=0.2, loss=0.15
)
SLOW = ScheduleConfig(msg_delay=0.4, obs_delay=0.9, act_delay=2.5)


def recorded(schedule=LOSSY, **options) -> Episode:
    return record_episode(GRID, "random", seed=3, schedule=schedule, options={**OPTIONS, **options})


@pytest.fixture(scope="module")
def episode() -> Episode:
    return recorded()


@pytest.fixture(scope="module")
def run():
    """The same episode, not recorded."""
    env = make(GRID, **OPTIONS)
    return env.run_event_driven(benchmark.baselines(env, 3)["random"], seed=3, schedule=LOSSY)


# What is in a record


def test_the_record_has_what_the_run_without_one_yields(episode: Episode, run):
    outcome = episode.outcome
    assert outcome.rewards == run.rewards
    assert outcome.actions == {a: [(t, values.tolist()) for t, values in done] for a, done in run.actions.items()}
    assert (outcome.terminated, outcome.truncated, outcome.end_time) == (run.terminated, run.truncated, run.end_time)
    assert episode.returns == run.returns


def test_every_copy_of_every_message_is_there(episode: Episode, run):
    counts, booked = episode.counts, run.messages
    assert min(counts[fate] for fate in ("delivered", "lost", "in flight")) > 0
    assert counts["delivered"] + counts["second copy"] == booked.delivered
    assert (counts["lost"], counts["in flight"]) == (booked.lost, booked.in_flight)
    assert len({m.id for m in episode.messages}) == booked.sent
    for m in episode.messages:
        assert (m.arrives is None) == (m.fate == "lost")
        assert m.arrives is None or m.arrives >= m.sent
        assert (m.place is None) == (m.fate != "delivered")


def test_causes_lead_back_to_a_tick_or_to_physics(episode: Episode):
    handled = episode.handled()
    assert list(range(len(handled))) == sorted(handled)
    for m in episode.messages:
        assert m.cause < (len(handled) if m.place is None else m.place)
        assert m.cause >= 0
    replies = [m for m in episode.messages if m.kind == "ObservationReply"]
    assert replies
    for reply in replies:
        request = handled[reply.cause]
        assert (request.kind, request.agent, request.number) == ("ObservationRequest", reply.agent, reply.number)
        tick = handled[request.cause]
        assert (tick.kind, tick.agent, tick.number) == ("AgentTick", reply.agent, reply.number)


def test_the_ages_are_those_of_the_result(episode: Episode, run):
    for agent in episode.world.decides:
        ages = [age for seen in episode.ages(agent) for age in seen.by_source.values()]
        assert type(run.staleness[agent]).of(ages) == run.staleness[agent]
        assert all(seen.oldest == max(seen.by_source.values()) for seen in episode.ages(agent))


def test_every_class_of_messages_has_a_sender_and_a_receiver():
    known = {*context.TO_PROXY, *context.FROM_PROXY, *context.TO_CHILD, SharedState, LetterUnderWay, CycleToken}
    assert set(clock.Message.__subclasses__()) - {ObservationCopy, ActionCommand} <= known  # those are of black boxes


def test_a_zone_commands_its_batteries():
    commands = [m for m in recorded(control="zone").messages if m.kind == "Command"]
    assert {(m.sender, m.receiver) for m in commands} == {("zone_1", f"battery_{i}") for i in (1, 2, 3)}


def test_the_columns_are_named_as_the_values_that_travel():
    told = record_episode("heron/Spread-v0", "random", seed=3, options={"mates": "message", "max_steps": 2})
    first = next(m for m in told.messages if m.kind == "ObservationReply")
    received = dict(zip(told.world.columns[first.agent], map(float, first.content["vector"]), strict=True))
    env = make("heron/Spread-v0", mates="message")
    env.reset(seed=3)
    true = dict(zip(env.simulation.model.layout.full_names, env.simulation.truth, strict=True))
    for name in ("agent_1.Position.y", "agent_2.Position.x"):
        assert received[name] == true[name] != 0.0


# On disk


@pytest.mark.parametrize("value", [0.1, -0.0, 5e-324, 1.7976931348623157e308, math.nan, -math.inf])
def test_a_float_is_read_back_to_the_last_bit(value: float):
    alone, within = json.loads(json.dumps(plain((value, np.array([value])), "here")))
    assert repr(float(alone)) == repr(float(within[0])) == repr(value)


def test_other_values_are_what_they_were_and_what_has_no_exact_form_is_refused_by_name():
    values = [2**70, True, None, "word", {"a": [1, -2]}]
    assert json.loads(json.dumps(plain(values, "here"))) == values
    with pytest.raises(TraceError, match=r"^payload\['who'\]\[1\] is a set, which a recorded episode can't hold"):
        plain({"who": [1, {2}]}, "payload")


def test_a_file_is_read_back_equal_and_has_the_same_bytes_each_time(episode: Episode, tmp_path: Path):
    path = file.write(episode, tmp_path)
    assert path.name == "trace.json"
    assert file.read(path) == file.read(tmp_path) == episode
    assert file.as_text(recorded()) == path.read_text(encoding="utf-8")


def test_a_big_file_is_packed(episode: Episode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file.write(episode, tmp_path)
    monkeypatch.setattr(file, "BIG", 1000)
    path = file.write(episode, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name] == ["trace.json.gz"]
    assert file.read(tmp_path) == episode
    assert path.read_bytes() == file.write(recorded(), tmp_path).read_bytes()
    assert path.read_bytes()[4:8] == bytes(4)  # no time of writing


def test_what_a_browser_opens_is_never_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file, "BIG", 10)
    heron("trace", GRID, *TRACE, "--out", tmp_path)
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {"trace.json.gz", "perfetto.json.gz", "timeline.svg"}


# Again


@pytest.fixture
def data(episode: Episode) -> dict:
    """The document, to be spoilt."""
    return json.loads(file.as_text(episode))


def spoilt(data: dict, folder: Path) -> Path:
    (folder / "trace.json").write_text(json.dumps(data), encoding="utf-8")
    return folder


def test_an_episode_comes_out_the_same_again(episode: Episode):
    done = replay(episode)
    assert done.identical and done.changed == {} and done.now == episode


def nudged(values: list, place: int) -> None:
    values[place] = math.nextafter(values[place], 9.0)


def a_reward(data):
    nudged(data["outcome"]["rewards"]["battery_2"][2], 1)
    return 3.0, "battery_2", "reward: value"


def an_action(data):
    done = data["outcome"]["actions"]["battery_3"][1]
    nudged(done[1], 0)
    return done[0], "battery_3", "action: values[0]"


def an_end(data):
    data["outcome"]["truncated"]["zone_1"] = False
    return 5.0, "zone_1", "truncated"


def a_message(data, kind: str, agent: str) -> dict:
    return next(m for m in data["messages"] if (m["kind"], m["agent"], m["fate"]) == (kind, agent, "delivered"))


def a_sight(data):
    reply = a_message(data, "ObservationReply", "battery_1")
    reply["content"]["vector"][2] += 1e-7
    what = f"ObservationReply {reply['number']}: vector[2] (battery_2.BatteryChargeFeature.soc)"
    return reply["arrives"] / 1e9, "battery_1", what


def an_arrival(data):
    reply = a_message(data, "StateReport", "battery_3")
    reply["sent"] -= 1
    return reply["arrives"] / 1e9, "battery_3", f"StateReport {reply['number']}: sent"


def a_zero_with_a_sign(data):
    data["outcome"]["rewards"]["battery_1"][0][1] *= -0.0
    return 1.0, "battery_1", "reward: value"


def two_of_which_the_earlier_counts(data):
    data["outcome"]["rewards"]["battery_1"][4][1] = 7.0
    return a_reward(data)


def a_message_that_was_lost_and_now_comes(data):
    lost = next(m for m in data["messages"] if m["fate"] == "lost")
    data["messages"].remove(lost)
    return lost["sent"] / 1e9, lost["agent"], f"{lost['kind']} {lost['number']}, lost"


@pytest.mark.parametrize("spoil", [
    a_reward, an_action, an_end, a_sight, an_arrival, a_zero_with_a_sign, two_of_which_the_earlier_counts,
    a_message_that_was_lost_and_now_comes,
])  # fmt: skip
def test_the_first_difference_is_named(data: dict, tmp_path: Path, spoil):
    expected = spoil(data)
    found = replay(spoilt(data, tmp_path)).difference
    assert found is not None and (found.time, found.agent, found.what) == expected
    assert json.dumps(found.recorded) != json.dumps(found.now)
    assert (found.recorded == "nothing") is (spoil is a_message_that_was_lost_and_now_comes)


def test_disturbances_and_monitors_happen_again(tmp_path: Path):
    crash = Disturbance(1.5, "agent_crash", {"agent": "battery_2"}, duration=2.0)
    watch = ConditionMonitor(
        agent="battery_1", watch="battery_1.BatteryChargeFeature.soc", above=0.4, about=("battery_1",)
    )
    given = {"disturbances": [crash], "monitors": [watch]}
    found = record_episode(GRID, "random", seed=3, schedule=SLOW, options=OPTIONS, **given)
    assert {"Disturbed", "ActionEffect"} <= {event.kind for event in found.events}
    assert any(m.kind == "ObservationPush" for m in found.messages)
    assert file.read(file.write(found, tmp_path)) == found
    assert replay(tmp_path).identical
    assert list(faults(json.loads(perfetto_text(found)))) == []
    assert "observation push" in perfetto_text(found)
    data = json.loads(file.as_text(found))
    del next(event for event in data["events"] if event["kind"] == "Disturbed")["content"]["disturbance"]["duration"]
    with pytest.raises(TraceError, match="is a disturbance without a duration"):
        file.read(spoilt(data, tmp_path))
    by_hand = ConditionMonitor(agent="battery_1", when=lambda world: True)
    with pytest.raises(TraceError, match=r"ConditionMonitor\.when is a function, which a recorded episode can't hold"):
        record_episode(GRID, "random", options=OPTIONS, monitors=[by_hand])


DAY = {"dt": 900.0, "physics_substeps": 2}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a recorded day with failed sensors and crashes, and what the command said."""
    out = tmp_path_factory.mktemp("faulty")
    asked = ("--disturbances", "sensors", "--disturbances", "crashes", "--delay", "450", "--seed", "2")
    options = [word for name, value in DAY.items() for word in ("-o", f"{name}={value}")]
    return out, heron("trace", ENERGY, "--policy", "tariff", *asked, *options, "--out", out).stdout


def test_sets_of_disturbances_are_drawn_with_the_seed_and_happen_again(faulty: tuple[Path, str]):
    out, told = faulty
    env = make(ENERGY, **DAY)
    drawn = [d for name in ("sensors", "crashes") for d in env.disturbance_sets()[name](2)]
    kept = file.read(out).setting.disturbances
    assert [Disturbance(**entry) for entry in kept] == drawn
    first = drawn[0]
    begin, end = (f"{t:.4f}".rstrip("0").rstrip(".") for t in (first.t, first.t + first.duration))
    assert f"disturbance sensor_failure (agent {first.payload['agent']}, mode {first.payload['mode']})" in told
    assert f": {begin} to {end} s (" in told
    same = env.run_event_driven(
        benchmark.baselines(env, 2)["tariff"], seed=2, schedule=ScheduleConfig(act_delay=450.0), disturbances=drawn
    )
    assert file.read(out).outcome.rewards == same.rewards
    assert replay(out).identical


def test_a_disturbance_is_a_span_with_its_name_in_a_lane_of_its_own(faulty: tuple[Path, str]):
    episode = file.read(faulty[0])
    kept = [Disturbance(**entry) for entry in episode.setting.disturbances]
    document = json.loads((faulty[0] / "perfetto.json").read_text("utf-8"))
    assert list(faults(document)) == []
    names = {e["tid"]: e["args"]["name"] for e in document["traceEvents"] if e["name"] == "thread_name"}
    lane = [e for e in document["traceEvents"] if e["ph"] == "X" and names[e["tid"]].startswith("disturbances")]
    drawn = {(e["ts"], e["ts"] + e["dur"]) for e in lane if e["cat"] == "span" and "crash" in e["name"]}
    crashes = [d for d in kept if d.type == "agent_crash"]
    assert drawn == {(int(d.t * 1e6), int(min(d.t + d.duration, 86400.0) * 1e6)) for d in crashes} != set()
    assert {e["cat"] for e in lane} == {"span", "moment"}

    first = min(kept, key=lambda d: d.t)
    assert lanes(episode)[:3] == ["disturbances", "physics", "proxy"]
    assert legible(episode, None)[0] == first.t // 900.0 * 900e9 > 0
    payload = ", ".join(f"{name} {value}" for name, value in first.payload.items())
    assert f"beginning of {first.type} ({payload})" in {value for e in lane for value in e["args"].values()}
    assert "disturbance" in legend_texts(draw(episode))
    assert "disturbances" not in lanes(recorded())


def test_a_set_that_is_not_there_is_refused_and_nothing_is_written(tmp_path: Path):
    wrong = heron("trace", ENERGY, "--disturbances", "crash", "--out", tmp_path, code=2)
    assert "no set of disturbances 'crash'; this environment has ['derating'" in wrong.stderr
    assert "Did you mean 'crashes'?" in wrong.stderr
    none = heron("trace", GRID, "--disturbances", "crash", "--out", tmp_path, code=2)
    assert "no set of disturbances 'crash'; this environment has none" in none.stderr
    assert [*tmp_path.iterdir()] == []


def test_policies_of_ones_own_are_given_again():
    given = {"*": lambda vector: np.sin(vector[:1])}
    own = record_episode(GRID, given, seed=1, options=OPTIONS)
    with pytest.raises(TraceError, match="give the same ones"):
        replay(own)
    assert replay(own, policies=given).identical
    other = replay(own, policies={"*": lambda vector: np.cos(vector[:1])}).difference
    assert other is not None and (other.time, other.what) == (0.0, "action: values[0]")


def test_an_episode_of_another_version_is_refused_unless_asked_for(episode: Episode):
    old = replace(episode, setting=replace(episode.setting, versions={"heron_env": "0.0.1", "numpy": "1"}))
    with pytest.raises(TraceError, match=rf"recorded by heron_env 0\.0\.1, this is {re.escape(__version__)}: install"):
        replay(old)
    done = replay(old, any_version=True)
    assert done.identical
    assert done.changed["heron_env"] == ("0.0.1", __version__)


def test_what_is_gone_is_told(episode: Episode, tmp_path: Path):
    def other(**changes) -> Episode:
        return replace(episode, setting=replace(episode.setting, **changes))

    gone = str(tmp_path / "gone")
    for trace, options, error, words in [
        (other(policy=PolicyIdentity("run", gone, "00")), {}, TraceError,
         f"run folder '{gone}' that decided in this episode does not exist; copy it"),
        (episode, {"policy": gone}, TraceError, "this episode was not recorded with a file or folder"),
        (other(policy=PolicyIdentity("baseline", "randm")), {}, ConfigError, "Did you mean 'random'"),
        (other(env_id="heron/EnergyManagement-v0"), {}, UnknownEnvironment, "Its meters showed the coming minute"),
    ]:  # fmt: skip
        with pytest.raises(error, match=words):
            replay(trace, **options)


def test_rules_run_compiled_again_if_they_were(episode: Episode, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("HERON_COMPILE")
    assert make(GRID, **OPTIONS).compiled
    assert not rebuilt(episode.setting).compiled


@settings(max_examples=10)
@given(recipe=recipes(), data=st.data())
def test_any_world_is_recorded_whole_and_drawn_by_the_rules(recipe: Recipe, data):
    schedule = data.draw(schedules(recipe.ids))
    found = _of_a_world(recipe, schedule)
    assert first_difference(found, _of_a_world(recipe, schedule)) is None
    with tempfile.TemporaryDirectory() as folder:
        assert first_difference(file.read(file.write(found, folder)), found) is None
    assert list(faults(json.loads(perfetto_text(found)))) == []
    draw(found)


def _of_a_world(recipe: Recipe, schedule) -> Episode:
    env = recipe.build(schedule)
    setting = TraceSetting(
        "any/World-v0", {}, env.compiled, PolicyIdentity("given", ""), 5, schedule_entries(schedule), 6.0, None, {}
    )
    return record(env, recipe.policies(env), setting)


def test_what_the_ended_would_have_done_is_told_as_cancelled():
    found = _of_a_world(ENDING, ScheduleConfig(act_delay=1.5, msg_delay=0.1))
    marked = [event for event in found.events if event.cancelled]
    assert {event.kind for event in marked} == {"AgentTick", "ActionEffect"}
    assert found.outcome.cancelled_effects >= sum(event.kind == "ActionEffect" for event in marked) > 0
    assert found.outcome.unfinished_effects > 0
    in_vain = [span for span in spans(found) if span.doing == "acting in vain"]
    assert len(in_vain) == sum(event.kind == "ActionEffect" for event in marked)
    document = perfetto_text(found)
    assert all(words in document for words in ("cancelled action effect", "cancelled agent tick", "acting in vain"))
    effects = {(t, agent) for t, agent in marks(draw(found), "action takes effect")}
    assert effects.isdisjoint((event.t / 1e9, event.agent) for event in marked)


# Schedules in words


def test_fields_of_a_schedule_are_set_for_all_or_for_some():
    own = {"field": ScheduleConfig(tick_interval=2.0, act_delay=1.0)}
    given = ["act_delay=3", "jitter_type=uniform", "jitter_ratio=0.1", "zone_1.loss=0.5", "own_rows=local"]
    told = with_settings(own, given)
    common = {"act_delay": 3, "jitter_type": "uniform", "jitter_ratio": 0.1, "own_rows": "local"}
    assert told == {
        "field": ScheduleConfig(tick_interval=2.0, **common),
        "*": ScheduleConfig(**common),
        "zone_1": ScheduleConfig(loss=0.5, **common),
    }
    assert with_settings(own, []) is own


@pytest.mark.parametrize(("wrong", "words"), [
    ("act_dely=3", "act_dely.*Did you mean"), ("act_delay", "act_delay"), ("=3", "=3"), ("loss=2", "loss"),
    ("zone_1.act_delay=soon", "act_delay"), ("act_delay=-inf", "must be finite"), ("act_delay=NaN", "must be finite"),
])  # fmt: skip
def test_a_wrong_field_of_a_schedule_is_named(wrong: str, words: str):
    with pytest.raises(ScheduleError, match=words) as error:
        with_settings(None, [wrong])
    assert ("Did you mean" in str(error.value)) == (wrong == "act_dely=3")


# Perfetto


@pytest.mark.parametrize(
    ("schedule", "control"),
    [(None, "field"), (LOSSY, "zone"), (SLOW, "zone"), (replace(LOSSY, reorder=True, loss=1.0), "field")],
)
def test_perfetto_gets_a_valid_document(schedule, control: str):
    found = recorded(schedule, control=control)
    document = json.loads(perfetto_text(found))
    assert list(faults(document)) == []
    counts = found.counts
    by_phase = {ph: [e for e in document["traceEvents"] if e["ph"] == ph] for ph in "MXCsfi"}
    assert len(by_phase["s"]) == len(by_phase["f"]) == counts["delivered"] + counts["second copy"]
    assert len(by_phase["i"]) == counts["lost"] + counts["in flight"]
    assert len([e for e in by_phase["i"] if e["name"].startswith("lost: ")]) == counts["lost"]
    named = {e["args"]["name"] for e in by_phase["M"] if e["name"] == "thread_name"}
    assert {"physics", "proxy", *found.world.agents} <= named
    ages = [(a, seen.t // 1000, seen.oldest) for a in found.world.decides for seen in found.ages(a)]
    assert sorted((e["name"], e["ts"], e["args"]["s"]) for e in by_phase["C"]) == sorted(ages)


def test_the_spans_go_from_request_to_observation_to_effect(episode: Episode):
    exact = recorded(ScheduleConfig(msg_delay=0.1, obs_delay=0.05, act_delay=0.3))
    mine = [(s.doing, s.start, s.end) for s in spans(exact) if s.who == "battery_2" and s.number == 2]
    ms = 1_000_000
    assert mine == [
        ("waiting", 2000 * ms, 2250 * ms),
        ("gathering", 2100 * ms, 2150 * ms),
        ("acting", 2250 * ms, 2550 * ms),
    ]
    doing = {span.doing for span in spans(episode)}
    assert doing == {"waiting", "waiting in vain", "acting", "gathering"}


@pytest.mark.parametrize(("which", "change"), [
    ({"ph": "s"}, {"ts": 4_000_000}),  # an arrow that begins after its end
    ({"ph": "X"}, {"dur": -(10**9)}),
    ({"ph": "f", "id": 1}, {"id": 0}),  # an arrow with two ends
    ({"ph": "f"}, {"tid": 1000}),  # off its lane
    ({"name": "waiting"}, {"dur": 10}),  # slices of a thread must nest
    ({"ph": "f"}, {"bp": ""}),
    ({"name": "thread_name"}, {"name": "other"}),
    ({"name": "waiting"}, {"ph": "B"}),
    ({"ph": "C"}, {"ts": 0.5}),
])  # fmt: skip
def test_a_planted_fault_of_the_document_is_found(episode: Episode, which: dict, change: dict):
    document = json.loads(perfetto_text(episode))
    entry = next(e for e in document["traceEvents"] if which.items() <= e.items())
    entry.update({name: entry[name] + value if name == "dur" else value for name, value in change.items()})
    assert list(faults(document)) != []


# The figure


def legend_texts(figure) -> set[str]:
    return {text.get_text() for legend in figure.legends for text in legend.get_texts()}


def rows(figure) -> list[str]:
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def marks(figure, label: str) -> list[tuple[float, str]]:
    """Where the marks of this entry of the legend are: time, lane."""
    offsets = [point for marked in figure.axes[0].collections if marked.get_label() == label
               for point in marked.get_offsets().tolist()]  # fmt: skip
    return [(t, rows(figure)[round(y)]) for t, y in offsets]


def test_a_line_goes_from_lane_to_lane_and_from_time_to_time(episode: Episode):
    figure = draw(episode)
    row = {lane: y for y, lane in enumerate(rows(figure))}
    lines = [line.tolist() for each in figure.axes[0].collections if each.get_label() == "observation: request, reply"
             for line in each.get_segments()]  # fmt: skip
    assert lines == [
        [[m.sent / 1e9, row[m.sender]], [m.arrives / 1e9, row[m.receiver]]]
        for m in episode.messages
        if m.fate in ("delivered", "second copy") and m.kind in ("ObservationRequest", "ObservationReply")
    ]
    assert figure.axes[0].get_xlim() == (0.0, 5.0)


def test_marks_and_bars_are_where_things_happen(episode: Episode):
    figure = draw(episode)
    ticks = {(e.t / 1e9, e.agent) for e in episode.events if e.kind == "AgentTick"}
    assert ticks and {*marks(figure, "agent tick")} == ticks
    lost = {(m.sent / 1e9, m.sender) for m in episode.messages if m.fate == "lost"}
    assert lost and {*marks(figure, "sends a message that is lost")} == lost
    (bars,) = [each for each in figure.axes[0].containers if each.get_label() == "action delayed (act_delay)"]
    drawn = {(round(bar.get_x(), 6), round(bar.get_x() + bar.get_width(), 6)) for bar in bars}
    assert drawn == {(round(s.start / 1e9, 6), round(s.end / 1e9, 6)) for s in spans(episode) if s.doing == "acting"}


def test_the_legend_stays_within_the_figure(episode: Episode):
    figure = draw(episode)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box, page = legend.get_window_extent(), figure.bbox
    assert page.x0 <= box.x0 < box.x1 <= page.x1 and page.y0 <= box.y0 < box.y1 <= figure.axes[0].bbox.y0


def test_a_long_episode_with_many_agents_is_shown_in_part():
    many = recorded(num_batteries=20, max_steps=20)
    (picture,) = trace_part(many).blocks
    assert "of 20 s, and the first 12 of 23 agents. Messages: " in picture.caption
    assert len(rows(picture.drawing)) == 13 and picture.inches < 7.0 and len(picture.svg) < 200_000
    assert "It shows 7.5 to 9 s of 20 s" in trace_part(many, (7.5, 9.0)).blocks[0].alternative
    with pytest.raises(ConfigError, match="the episode ended at 20 s; start earlier"):
        draw(many, (20.0, 21.0))
    with pytest.raises(ConfigError, match=r"--window 7.5,7.5: must be 1e-9 s long at least"):
        draw(many, (7.5, 7.5 + 1e-10))
    with pytest.raises(ConfigError, match="the episode ended as it began: there is nothing to show"):
        draw(record_episode(GRID, "random", t_end=0.0, options=OPTIONS))


# The commands


TRACE = ("--policy", "random", "--seed", "3", "-o", "num_batteries=3", "-o", "max_steps=5", "--delay", "0.3")


def test_the_commands_record_draw_and_replay(tmp_path: Path):
    out = tmp_path / "out"
    said = heron("trace", GRID, *TRACE, "--window", "1,2", "--out", out).stdout
    assert "return of battery_1" in said and "heron replay" in said
    assert (out / "timeline.svg").read_text("utf-8").endswith("</svg>\n")
    told = as_json("trace", GRID, *TRACE, "--schedule", "msg_delay=0.1", "--until", "4", "--out", out)
    assert {name: Path(path).name for name, path in told["files"].items()} == {
        "trace": "trace.json", "perfetto": "perfetto.json", "timeline": "timeline.svg",
    }  # fmt: skip
    assert all(Path(path).stat().st_size > 1000 for path in told["files"].values())
    assert (told["end_time"], told["seed"], told["policy"]) == (4.0, 3, "random")
    episode = file.read(out)
    assert episode.returns == told["returns"]
    assert episode.setting.schedule == schedule_entries(ScheduleConfig(msg_delay=0.1, act_delay=0.3))

    assert as_json("replay", out) == {
        "identical": True, "difference": None, "changed": {}, **{k: v for k, v in told.items() if k != "files"},
    }  # fmt: skip
    assert heron("replay", out).stdout.startswith("identical: ")

    data = json.loads((tmp_path / "out" / "trace.json").read_text("utf-8"))
    time, agent, what = a_reward(data)
    spoilt(data, tmp_path)
    found = heron("replay", tmp_path, code=1).stdout
    assert found.startswith(f"first difference: at {time} s, {agent}, {what}: recorded ")
    assert as_json("replay", tmp_path, code=1)["difference"]["agent"] == agent


def test_what_is_neither_a_run_nor_an_environment_is_told():
    for asked, message in {
        "runs/nowhere": "'runs/nowhere': neither a run folder nor an environment (`heron envs` lists them)",
        "heron/BateryGrid-v0": "Did you mean 'heron/BatteryGrid-v0'?",
        "nowhere:env": "No module named 'nowhere'",
    }.items():
        assert message in heron("trace", asked, code=2).stderr


def test_an_environment_of_ones_own_is_recorded_and_run_again(tmp_path: Path):
    own = "heron_env.worlds.battery_grid:battery_grid"
    heron("trace", own, "-o", "max_steps=3", "--out", tmp_path)
    with pytest.raises(Untrusted, match=r"--trust heron_env\.worlds.battery_grid:battery_grid"):
        replay(tmp_path)
    assert replay(tmp_path, trust=own).identical


def test_a_record_is_kept_where_nothing_can_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("heron_env.cli.episodes.find_spec", lambda name: None)
    done = heron("trace", GRID, *TRACE, "--out", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"trace.json", "perfetto.json"}
    assert "heron_env[plots]" in done.stdout


# Media


def test_a_record_under_a_busy_medium_is_written_read_shown_and_runs_again(tmp_path: Path) -> None:
    network = tmp_path / "radio.yaml"
    network.write_text(
        '"*": {loss: 0-0.1, keep: 2, medium: {name: radio, rate: 150-200, overhead: 20}, transport: {rto: 0.1}}\n'
    )
    out = tmp_path / "trace"
    words = ["trace", GRID, "--schedule", network, "-o", "num_batteries=3", "-o", "max_steps=5", "--out", out]
    summary, text = as_json(*words), heron(*words).stdout
    episode = file.read(out)
    (use,) = episode.outcome.media.values()
    assert use.busy > 0.9 and use.refused > 0.0 and summary["media"]["radio"]["busy"] == use.busy
    assert f"medium radio: busy {100 * use.busy:.0f} % of the time, {use.refused:,.0f} bytes refused" in text
    counts = episode.counts
    assert counts["discarded"] == sum(m.arrives is None and m.fate == "discarded" for m in episode.messages) > 0
    assert f"{counts['discarded']} discarded" in text
    assert any(m.fate == "in flight" and m.arrives is None for m in episode.messages), "what waits has no arrival"
    assert {event.kind for event in episode.events} >= {"Transmit"}
    assert "identical" in heron("replay", out).stdout
    tiles = {tile.label: tile.value for tile in episode_verdict(episode)}
    assert tiles["Medium radio"] == f"{100 * use.busy:.0f} % busy"


def test_without_media_a_record_says_nothing_of_them(episode: Episode) -> None:
    assert not episode.outcome.media and '"media"' not in file.as_text(episode)
    assert not any(tile.label.startswith("Medium") for tile in episode_verdict(episode))
