"""Drawn schedules: each field a pure function of (seed, episode, entry, field); all that may come is legal."""

import json
import re
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from heron_env import DrawnSchedule, ScheduleConfig, make
from heron_env.errors import ConfigError, ScheduleError
from heron_env.lab.schedules import with_settings
from heron_env.lab.traces.episode import schedule_entries, schedule_of
from heron_env.scheduling.drawn import drawn_or_fixed
from heron_env.scheduling.media import Medium, Reliable, tcp
from heron_env.seeding import key, uniform

GRID = "heron/BatteryGrid-v0"
WILD = {
    "*": {"msg_delay": "0-10", "loss": "[0, 0.1, 0.2]", "jitter_type": "lognormal", "jitter_ratio": "0-0.5"},
    "field": {"act_delay": "lognormal(60, 0.5)", "on_missing": "[hold, noop]"},
}


def law(text: Any) -> Any:
    """What is drawn where a schedule says so."""
    return DrawnSchedule(msg_delay=text).entries["*"]["msg_delay"]


def values(schedule: DrawnSchedule, who: str, name: str, count: int = 2000) -> list[Any]:
    return [getattr(schedule.at(3, episode)[who], name) for episode in range(count)]


def test_a_draw_is_keyed_by_seed_episode_entry_and_field() -> None:
    """The published form: another program draws the same network."""
    u = uniform(key(7, 2, "schedule", "field", "act_delay"))
    assert DrawnSchedule({"field": {"act_delay": "5-25"}}).at(7, 2)["field"].act_delay == 5.0 + 20.0 * u
    assert DrawnSchedule({1: {"act_delay": "5-25"}}).at(7, 2)["field"].act_delay == 5.0 + 20.0 * u
    assert (
        DrawnSchedule(loss=[0, 0.1, 0.3]).at(7, 2)["*"].loss
        == [0, 0.1, 0.3][int(3 * uniform(key(7, 2, "schedule", "*", "loss")))]
    )


@given(st.permutations(sorted(WILD)), st.lists(st.tuples(st.integers(0, 2**63), st.integers(0, 10**6)), max_size=6))
def test_neither_the_order_of_entries_nor_of_asking_shows(order: list[str], moments: list[tuple[int, int]]) -> None:
    one, other = DrawnSchedule(WILD), DrawnSchedule({who: dict(reversed(WILD[who].items())) for who in order})
    forwards = [one.at(*moment) for moment in moments]
    assert [other.at(*moment) for moment in reversed(moments)] == forwards[::-1]


def test_another_entry_or_field_moves_no_draw() -> None:
    small = DrawnSchedule({"field": {"act_delay": "lognormal(60, 0.5)"}})
    whole = DrawnSchedule(WILD)
    assert values(small, "field", "act_delay", 50) == values(whole, "field", "act_delay", 50)


def test_every_part_of_the_key_gives_draws_of_its_own() -> None:
    def drawn(who: str, name: str, seed: int = 0) -> list[float]:
        schedule = DrawnSchedule({who: {name: "0-1"}})
        return [getattr(schedule.at(seed, episode)[who], name) for episode in range(400)]

    columns = [drawn("a", "loss"), drawn("b", "loss"), drawn("a", "min_delay"), drawn("a", "loss", 1)]
    assert abs(np.corrcoef(columns) - np.eye(4)).max() < 0.25


def test_distributions_are_what_they_are_called() -> None:
    schedule = DrawnSchedule(msg_delay="2-10", act_delay="lognormal(60, 0.5)", loss=[0.0, 0.1, 0.4])
    assert stats.kstest(values(schedule, "*", "msg_delay"), stats.uniform(2, 8).cdf).pvalue > 1e-3
    s = np.sqrt(np.log(1.25))
    law = stats.lognorm(s=s, scale=60 * np.exp(-s * s / 2))
    assert abs(law.mean() - 60.0) < 1e-9 and abs(law.std() / law.mean() - 0.5) < 1e-9
    assert stats.kstest(values(schedule, "*", "act_delay"), law.cdf).pvalue > 1e-3
    _, counts = np.unique(values(schedule, "*", "loss"), return_counts=True)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_what_is_fixed_stays_and_what_is_left_out_is_the_default() -> None:
    drawn = DrawnSchedule({"*": {"msg_delay": "1-2"}, "field": ScheduleConfig(act_delay=4.0)}).at(0, 0)
    assert drawn["field"] == ScheduleConfig(act_delay=4.0)
    rest = {field.name for field in fields(ScheduleConfig)} - {"msg_delay"}
    assert all(getattr(drawn["*"], name) == getattr(ScheduleConfig(), name) for name in rest)


@given(st.integers(0, 2**53 - 1), st.integers(1, 1000))
def test_a_choice_is_always_one_of_its_values(bits: int, count: int) -> None:
    choice = law(list(range(count)))
    assert choice.at(bits * 2.0**-53) in range(count)
    assert choice.at(1.0 - 2.0**-53) == count - 1


@given(st.one_of(st.integers(0, 2**53 - 1), st.integers(2**53 - 9, 2**53 - 1)), st.floats(0, 1), st.floats(0, 1))
def test_no_value_lies_beyond_the_extremes(bits: int, a: float, b: float) -> None:
    for text in (f"{min(a, b)}-{max(a, b)}", "lognormal(60, 2)", "lognormal(1, 0)"):
        least, most = law(text).extremes
        assert least <= law(text).at(bits * 2.0**-53) <= most


# What is written


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(1e-300, 1e3), st.floats(0, 5))
def test_texts_read_back_to_the_last_bit(low: float, width: float, mean: float, ratio: float) -> None:
    schedule = DrawnSchedule(msg_delay=f"{low}-{low + width}", act_delay=f"lognormal({mean}, {ratio})")
    evenly, lognormal = (schedule.entries["*"][name] for name in ("msg_delay", "act_delay"))
    assert (evenly.low, evenly.high, lognormal.mean, lognormal.ratio) == (low, low + width, mean, ratio)
    assert DrawnSchedule.from_dict(json.loads(json.dumps(schedule.to_dict()))) == schedule


def test_a_run_folder_gives_the_schedule_back() -> None:
    for schedule in (DrawnSchedule(WILD), {"field": ScheduleConfig(loss=0.5)}, {"*": ScheduleConfig()}):
        assert schedule_of(json.loads(json.dumps(schedule_entries(schedule)))) == schedule
    assert schedule_of(schedule_entries(None)) is None
    assert hash(DrawnSchedule(WILD)) == hash(DrawnSchedule(WILD))
    assert DrawnSchedule(WILD) != DrawnSchedule(loss="0-1")
    assert eval(repr(DrawnSchedule(WILD))) == DrawnSchedule(WILD)


def test_a_value_that_may_not_come_is_named() -> None:
    for wrong, told in [
        ({"loss": "0-1.5"}, "loss='0.0-1.5' can be 1.5: ScheduleConfig(loss=1.5): must be between 0 and 1"),
        ({"loss": "lognormal(0.1, 1)"}, "loss='lognormal(0.1, 1.0)' can be"),
        ({"msg_delay": "lognormal(1e8, 9)"}, "must be below 9.2e9 seconds"),
        ({"msg_delay": [1, -2]}, "can be -2: ScheduleConfig(msg_delay=-2): must be 0 or more"),
        ({"msg_delay": "10-0"}, "msg_delay='10.0-0.0': must be two finite numbers, the smaller one first"),
        ({"msg_delay": "0-1e999"}, "must be two finite numbers"),
        ({"msg_delay": "lognormal(0, 1)"}, "must be the mean, above 0"),
        ({"msg_delay": "lognormal(nan, 1)"}, "both finite"),
        ({"msg_delay": "lognormal(3)"}, "or one that is drawn: '0-10' (uniform), 'lognormal(3, 0.5)'"),
        ({"msg_delay": "lognormal(a, b)"}, "must be two numbers, as lognormal(3, 0.5)"),
        ({"msg_delay": "[1, 2"}, "the list has no end; close it with ]"),
        ({"msg_delay": []}, "nothing to choose from"),
        ({"msg_delay": [law("0-1")]}, "a choice is among fixed values"),
        (
            {"msg_delay": "-5-10"},
            "msg_delay='-5.0-10.0' can be -5.0: ScheduleConfig(msg_delay=-5.0): must be 0 or more",
        ),
        ({"msg_delay": "5-"}, "must be a number, got str; or a file of delays, latency.csv; or one that is drawn"),
        ({"msg_delay": float("nan")}, "must be finite"),
        ({"msg_delay": [1, float("nan")]}, "can be nan: ScheduleConfig(msg_delay=nan): must be finite"),
        ({"tick_interval": "0-5"}, "tick_interval='0.0-5.0' can be 0.0"),
        ({"jitter_type": "[none, uniform]", "jitter_ratio": "0-0.3"}, "needs jitter_type="),
        ({"jitter_type": "[uniform, gausian]"}, "Did you mean 'gaussian'?"),
        ({"reorder": [True, 1]}, "can be 1: ScheduleConfig(reorder=1): must be True or False"),
        ({"msg_dely": "0-1"}, "no field 'msg_dely'; fields are"),
    ]:
        with pytest.raises(ScheduleError, match=re.escape(told)) as error:
            DrawnSchedule({"field": wrong})
        assert "schedule['field']" in str(error.value)


def test_entries_are_a_mapping_of_keys_to_fields() -> None:
    for entries, told in [
        ({1: {}, "field": {}}, "another entry means the same level"),
        ({4: {}}, "a key is an agent, group, level (1 to 3) or '*'"),
        ({"field": 3}, "must be a mapping of fields to values"),
        ([], "must be a mapping"),
        (None, "give entries by key, or fields of everyone"),
    ]:
        with pytest.raises(ScheduleError, match=re.escape(told)):
            DrawnSchedule(entries)


# Episodes


def test_a_run_has_what_its_seed_and_episode_draw() -> None:
    drawn = DrawnSchedule({"*": {"msg_delay": "0-1", "loss": "0-0.3"}, "field": {"act_delay": "0-2"}})
    env, plain = make(GRID, num_batteries=2, max_steps=4), make(GRID, num_batteries=2, max_steps=4)

    def steady(vector: Any) -> Any:
        return np.array([0.3])

    found = [env.run_event_driven({"*": steady}, seed=seed, schedule=drawn) for seed in (5, None, 6)]
    wanted = [
        plain.run_event_driven({"*": steady}, seed=seed, schedule=drawn.at(*moment))
        for seed, moment in ((5, (5, 0)), (None, (5, 1)), (6, (6, 0)))
    ]
    assert [(r.actions, r.messages) for r in found] == [(r.actions, r.messages) for r in wanted]
    assert len({str(r.messages) for r in found}) == 3
    own = make(GRID, num_batteries=2, max_steps=4, schedule=drawn)
    assert own.run_event_driven({"*": steady}, seed=5).actions == wanted[0].actions
    assert own.run_event_driven({"*": steady}).actions == wanted[1].actions
    assert own.timings[1].msg == 500_000_000, "the nominal one"


def test_the_ticks_of_an_environments_own_schedule_are_fixed() -> None:
    drawn = DrawnSchedule(tick_interval="[1, 2]", msg_delay="0-0.1")
    with pytest.raises(ScheduleError, match=r"tick_interval=\[1, 2\]: the environment's own schedule is the synch"):
        make(GRID, num_batteries=2, schedule=drawn)
    env = make(GRID, num_batteries=2, max_steps=4)
    counts = {
        seed: len(
            env.run_event_driven({"*": lambda v: np.array([0.0])}, seed=seed, schedule=drawn).actions["battery_1"]
        )
        for seed in range(8)
    }
    assert counts == {seed: 4 if drawn.at(seed, 0)["*"].tick_interval == 1 else 2 for seed in range(8)}
    assert len(set(counts.values())) == 2


def test_a_bad_seed_or_key_is_refused_before_anything_moves() -> None:
    env = make(GRID, num_batteries=2, max_steps=4)
    with pytest.raises(ConfigError, match="a seed is a whole number"):
        env.run_event_driven({}, seed=-1, schedule=DrawnSchedule(loss="0-1"))
    with pytest.raises(ScheduleError, match="no such agent, group or level"):
        env.run_event_driven({}, seed=3, schedule=DrawnSchedule({"batery_1": {"loss": "0-1"}}))
    assert (env._seed, env._episode) == (None, -1)


# Words and files


def test_words_of_the_command_line_may_be_drawn() -> None:
    told = with_settings({1: ScheduleConfig(tick_interval=2.0)}, ["msg_delay=0-10", "system.loss=[0, 0.1]"])
    assert isinstance(told, DrawnSchedule)
    assert set(told.entries) == {"field", "*", "system"}
    assert told.entries["field"]["tick_interval"] == 2.0
    assert {values["msg_delay"] for values in told.to_dict().values()} == {"0.0-10.0"}
    assert told.to_dict()["system"]["loss"] == [0, 0.1]
    again = with_settings(told, ["field.act_delay=60"])
    assert again.entries["field"] == told.entries["field"] | {"act_delay": 60}
    assert isinstance(with_settings(None, ["on_missing=[hold, noop]"]), DrawnSchedule)
    assert with_settings(None, ["on_missing=noop"]) == {"*": ScheduleConfig(on_missing="noop")}


GOOD = """\
"*": {msg_delay: 0-10, jitter_type: lognormal}
field:
  act_delay: lognormal(60, 0.5)
  loss: [0, 0.1]
3: {on_missing: noop}
"""


def test_a_file_has_the_fields_by_agent_group_and_level(tmp_path: Any) -> None:
    path = tmp_path / "net.yaml"
    path.write_text(GOOD)
    told = with_settings(None, [str(path), "jitter_ratio=0.1"])
    assert isinstance(told, DrawnSchedule)
    common = {field.name: field.default for field in fields(ScheduleConfig)} | {
        "msg_delay": "0.0-10.0", "jitter_type": "lognormal", "jitter_ratio": 0.1,
    }  # fmt: skip
    assert told.to_dict() == {
        "*": common,
        "field": common | {"act_delay": "lognormal(60.0, 0.5)", "loss": [0, 0.1]},
        "system": common | {"on_missing": "noop"},
    }


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("field:\n  loss: 0-2\n", 2, "can be 2.0"),
        ("field:\n  act_dely: 3\n", 2, "field.act_dely: no such field"),
        ("'*': {loss: 0.1}\nfield:\n  jitter_ratio: 0.1\n", 3, "needs jitter_type="),
        ("'*':\n  msg_delay: 9-1\n", 2, "the smaller one first"),
        ("'*':\n  msg_delay: soon\n", 2, "must be a number, got str"),
        ("field: {}\nmsg_delay: 3\n", 2, "for everyone write '*': {msg_delay: 3}"),
        ("7: {loss: 0}\n", 1, "a key is an agent, group, level"),
        ("field:\n  loss: 0\n  loss: 1\n", 3, "Duplicate key 'loss'"),
        ("field: [\n", 2, "is no valid YAML"),
        ("- 1\n", 1, "must hold a mapping"),
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_line(tmp_path: Any, text: str, line: int, told: str) -> None:
    path = tmp_path / "net.yaml"
    path.write_text(text)
    with pytest.raises(ScheduleError, match=re.escape(told)) as error:
        with_settings(None, [str(path)])
    assert f"{path}:{line}" in str(error.value)


def test_the_last_word_on_a_field_counts_and_is_blamed() -> None:
    assert with_settings(None, ["loss=0.1", "loss=0.2"]) == {"*": ScheduleConfig(loss=0.2)}
    with pytest.raises(ScheduleError, match=r"^--schedule 'loss=7'"):
        with_settings(None, ["loss=0.1", "loss=7"])


def test_a_file_that_is_not_there_is_named(tmp_path: Any) -> None:
    with pytest.raises(ScheduleError, match="no such file"):
        with_settings(None, [str(tmp_path / "none.yaml")])


def test_a_record_of_an_episode_under_a_drawn_schedule_runs_again(tmp_path: Any) -> None:
    from heron_env import record_episode
    from heron_env.lab.traces import file
    from heron_env.lab.traces.replaying import replay

    drawn = DrawnSchedule(msg_delay="0-1", loss="0-0.3")
    episode = record_episode(GRID, "random", seed=4, options={"num_batteries": 2, "max_steps": 3}, schedule=drawn)
    assert replay(file.write(episode, tmp_path)).difference is None
    assert DrawnSchedule({e["key"]: {k: v for k, v in e.items() if k != "key"} for e in episode.setting.schedule}) == (
        drawn
    )


# Media and transports

RADIO = {"name": "radio", "rate": "500-2000", "overhead": 20, "order": "priority"}
SHARED = {"*": {"medium": RADIO, "transport": "tcp"}, "system": {"medium": RADIO, "priority": -1}}


def test_a_rate_is_keyed_by_the_medium_and_the_same_in_all_entries_with_it() -> None:
    u = uniform(key(7, 2, "schedule", "radio", "medium.rate"))
    drawn = DrawnSchedule(SHARED).at(7, 2)
    radio = Medium("radio", rate=500.0 + 1500.0 * u, overhead=20, order="priority")
    assert drawn == {
        "*": ScheduleConfig(medium=radio, **tcp()), "system": ScheduleConfig(medium=radio, priority=-1)
    }  # fmt: skip
    assert DrawnSchedule(SHARED).nominal()["system"].medium == replace(radio, rate=1250.0)


def test_a_list_of_media_is_a_choice_and_equal_lists_choose_alike() -> None:
    several = [{"name": "radio", "rate": 100}, {"name": "radio", "rate": 900}, {"name": "cable", "duplex": True}]
    schedule = DrawnSchedule({"*": {"medium": several}, "field": {"medium": several}})
    assert len(set(values(schedule, "*", "medium", 50))) == 3
    assert values(schedule, "*", "medium", 50) == values(schedule, "field", "medium", 50)


def test_media_of_one_name_that_could_differ_in_an_episode_are_refused() -> None:
    for other in (RADIO | {"rate": "500-2001"}, RADIO | {"rate": 700}, [RADIO | {"rate": 3}, {"name": "cable"}]):
        with pytest.raises(ScheduleError, match=r"two media 'radio', with rate=.* and rate=.*; give both the same"):
            DrawnSchedule({"*": {"medium": RADIO}, "field": {"medium": other}})
    DrawnSchedule({"*": {"medium": RADIO}, "field": {"medium": RADIO | {"name": "cable"}}})


def test_media_and_transports_read_back_from_json() -> None:
    drawn = DrawnSchedule(SHARED | {"field": {"medium": [RADIO | {"rate": 3, "name": "a"}, None], "keep": None}})
    assert DrawnSchedule.from_dict(json.loads(json.dumps(drawn.to_dict()))) == drawn
    fixed = {"*": ScheduleConfig(medium=Medium(sizes={"reply": 8}), keep=2, transport=Reliable(rto=0.0, tries=2))}
    assert schedule_of(json.loads(json.dumps(schedule_entries(fixed)))) == fixed


def test_whole_numbers_that_are_drawn_stay_whole() -> None:
    schedule = DrawnSchedule(keep=[1, 2, 5], priority=[0, 1], medium={"order": "priority"})
    assert schedule.nominal()["*"].keep == 3 and schedule.nominal()["*"].priority == 0
    assert set(values(schedule, "*", "keep", 50)) == {1, 2, 5}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"keep": 1}, r"keep=1\): needs a medium or a transport"),
        ({"keep": [1, 2], "medium": [None, {}]}, r"medium=\[None, \{\}\] can be None, keep=\[1, 2\] can be 1"),
        ({"lifespan": "0-2", "medium": {}}, r"lifespan='0.0-2.0' can be 0.0: .*must be above 0"),
        ({"priority": [0, 1], "medium": {}}, r"priority=\[0, 1\] can be 1: .*needs a medium with order='priority'"),
        ({"loss": "0.5-1", "transport": {}}, r"loss='0.5-1.0' can be 1.0: .*nothing would ever arrive"),
        ({"medium": "radio"}, r"medium='radio': must be a mapping of its fields"),
        ({"medium": {"rat": 3}}, r"medium=Medium\('rat'=...\): no such field.*'rate'"),
        ({"medium": {"rate": "0-5"}}, r"medium=Medium\(rate=0.0\): must be bytes a second, above 0"),
        ({"medium": {"rate": "1-5", "limit": -1}}, r"medium=Medium\(limit=-1\): must be bytes"),
        ({"transport": "udp"}, r"transport='udp': must be tcp, or a mapping"),
        ({"transport": {"tries": 0}}, r"transport=Reliable\(tries=0\): must be 1 to 1000"),
        ({"duplicate": 0.1}, r"duplicate=0.1: is gone .*Reliable\(rto=0.0, tries=2\)"),
    ],
)
def test_what_media_and_transports_forbid_is_named(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ScheduleError, match=r"^schedule\['\*'\]: .*" + words):
        DrawnSchedule({"*": fields})
    DrawnSchedule({"*": {"loss": 1.0, "transport": {"tries": 3}}, "field": {"keep": 1, "transport": "tcp"}})


def test_a_duplicate_of_0_in_what_is_stored_is_read(tmp_path: Any) -> None:
    for none in (0, 0.0):
        assert drawn_or_fixed({"*": {"duplicate": none, "loss": 0.1}}) == {"*": ScheduleConfig(loss=0.1)}
    path = tmp_path / "net.yaml"
    path.write_text('"*": {duplicate: 0.0, loss: 0.1}\n')
    assert with_settings(None, [str(path)]) == {"*": ScheduleConfig(loss=0.1)}
    path.write_text('"*":\n  loss: 0.1\n  duplicate: 0.1\n')
    with pytest.raises(ScheduleError, match=r"net.yaml:3: .*duplicate: is gone .*and pays for it"):
        with_settings(None, [str(path)])


def test_a_file_has_media_and_transports(tmp_path: Any) -> None:
    path = tmp_path / "radio.yaml"
    path.write_text(
        '"*":\n  medium: {name: radio, rate: 500-2000, overhead: 20, order: priority}\n  transport: tcp\n'
        "system: {priority: -1, transport: null, "
        "medium: {name: radio, rate: 500-2000, overhead: 20, order: priority}}\n"
        "field: {transport: {rto: 0.1, gaps: true}, keep: 2, medium: {name: cable, rate: .inf, sizes: {reply: 8}}}\n"
    )
    found = with_settings(None, [str(path)])
    assert isinstance(found, DrawnSchedule)
    field, radio = found.at(3, 0)["field"], DrawnSchedule(SHARED).at(3, 0)["*"].medium
    assert field.medium == Medium("cable", sizes={"reply": 8}) and field.keep == 2
    assert field.transport == Reliable(rto=0.1, gaps=True)
    assert found.at(3, 0)["system"] == ScheduleConfig(priority=-1, medium=radio)
    path.write_text('"*":\n  loss: 0.1\n  keep: 0\n  transport: tcp\n')
    with pytest.raises(ScheduleError, match=r"radio.yaml:3: .*keep=0\): must be a whole number"):
        with_settings(None, [str(path)])


def test_media_and_transports_are_written_on_the_command_line() -> None:
    lines = ['medium={"name": "radio", "rate": "500-2000", "overhead": 20, "order": "priority"}', "transport=tcp"]
    found = with_settings(None, [*lines, "system.priority=-1", "system.transport=null"])
    assert isinstance(found, DrawnSchedule) and found.at(7, 2) == DrawnSchedule(SHARED).at(7, 2)
    with pytest.raises(ScheduleError, match=r"^--schedule 'transport=udp': .*must be tcp"):
        with_settings(None, ["transport=udp"])
