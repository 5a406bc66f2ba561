"""The record of a run as a file: repeated where it is whole, up to where it was cut off, refused where it was changed.

`data/two_namespaces.jsonl` is a run between two network namespaces: hub in one, nodes in the other, and a queue of the
kernel (tc tbf, 220 kbit/s) between them.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heron_env import make
from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError, TraceError
from heron_env.real import record
from heron_env.real.what_if import WhatIf
from heron_env.scheduling.arrivals import Arrivals

FILE = Path(__file__).with_name("data") / "two_namespaces.jsonl"
RECORDED = ("rewards", "actions", "observations")
Row = list[Any]


@pytest.fixture
def env() -> HeronEnv:
    return make("heron/Spread-v0")


def rule(env: HeronEnv) -> Any:
    return dict(env.benchmark().baselines(0)["assigned landmark"])


def play(env: HeronEnv, arrivals: Any, **options: Any) -> Any:
    return env.run_event_driven(rule(env), arrivals=arrivals, t_end=1.5, record=RECORDED, **options)


def changed(path: Path, change: Callable[[list[Any]], object]) -> Path:
    """The same record with its rows changed, and all digests made anew."""
    rows = [json.loads(line[record.DIGITS + 1 :]) for line in FILE.read_text().splitlines()]
    change(rows)
    digest, lines = "", []
    for row in rows:
        text = json.dumps(row)
        digest = record.chained(digest, text)
        lines.append(f"{digest} {text}\n")
    path.write_text("".join(lines))
    return path


def test_a_run_through_a_queue_of_the_kernel_is_repeated_bit_for_bit(env: HeronEnv) -> None:
    about, arrivals = record.read_record(FILE)
    assert about["env_id"] == "heron/Spread-v0" and arrivals.until is None
    result = play(env, arrivals)
    assert result.digests(RECORDED) == arrivals.course
    delays = [ns - each.sent for each in arrivals.messages.values() for ns in each.came]
    assert min(delays) > 0 and max(delays) > 0.2e9  # the queue made a difference
    played = env.run_event_driven(arrivals.policies(), arrivals=arrivals, t_end=1.5, record=RECORDED)
    assert played.digests(RECORDED) == arrivals.course


def test_what_was_changed_is_refused(tmp_path: Path) -> None:
    lines, path = FILE.read_text().splitlines(keepends=True), tmp_path / "a.jsonl"
    for old, new in (('"agent_2 to', '"agent_1 to'), ('["came",1,', '["came",2,'), ('["through",', '["through",1')):
        where = next(k for k, line in enumerate(lines) if old in line)
        path.write_text("".join([*lines[:where], lines[where].replace(old, new), *lines[where + 1 :]]))
        with pytest.raises(TraceError, match=rf"line {where + 1} was changed after it was written.*; restore it"):
            record.read_record(path)
    path.write_text("".join(lines[:5] + lines[6:]))
    with pytest.raises(TraceError, match="line 6 was changed"):
        record.read_record(path)


REFUSED = {
    "no record": (lambda rows: rows.insert(3, ["hello"]), "is nothing that a record holds"),
    "of another version": (lambda rows: rows[0].update(schema=9), "schema version 9, heron_env .* reads version 1"),
    "an answer of words": (
        lambda rows: rows.insert(3, ["answer", "agent_0", {"asked": "now"}]),
        "is no record of a run",
    ),
    "a message that never left": (lambda rows: rows.insert(3, ["came", 4_000, 5]), "is no record of a run"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_record_is_refused(name: str, tmp_path: Path) -> None:
    change, words = REFUSED[name]
    with pytest.raises(TraceError, match=words):
        record.read_record(changed(tmp_path / "a.jsonl", change))


def of(rows: list[Any], kind: str, place: int) -> Row:
    return [row for row in rows if isinstance(row, list) and row[0] == kind][place]


NOTICED: dict[str, Callable[[list[Any]], object]] = {
    "an arrival moved": lambda rows: of(rows, "came", 0).__setitem__(2, 90_000_000),
    "an arrival dropped": lambda rows: rows.remove(of(rows, "came", 0)),
    "an arrival before its departure": lambda rows: of(rows, "came", -1).__setitem__(2, 0),
    "a departure moved": lambda rows: of(rows, "sent", 9).__setitem__(3, 1),
    "an answer at another time": lambda rows: of(rows, "answer", 0)[2].update(at=500_000_000),
    "an answer to another question": lambda rows: of(rows, "answer", 0)[2].update(asked=1),
    "an answer that never counted": lambda rows: of(rows, "answer", 0).__setitem__(2, None),
}


@pytest.mark.parametrize("name", NOTICED)
def test_a_change_with_digests_made_anew_shows(name: str, tmp_path: Path, env: HeronEnv) -> None:
    _, arrivals = record.read_record(changed(tmp_path / "a.jsonl", NOTICED[name]))
    with pytest.raises(TraceError, match=r"arrivals: .*(is another run|came out otherwise|arrives before it leaves)"):
        play(env, arrivals)


def test_another_seed_policy_schedule_or_world_shows(env: HeronEnv) -> None:
    _, arrivals = record.read_record(FILE)
    with pytest.raises(TraceError, match=re.escape("seed=1: the recorded run has the seed 0; leave seed out")):
        play(env, arrivals, seed=1)
    other = dict(env.benchmark().baselines(0)["nearest landmark"])
    with pytest.raises(TraceError, match="arrivals: "):
        env.run_event_driven(other, arrivals=arrivals, t_end=1.5)
    with pytest.raises(TraceError, match="arrivals: "):
        play(make("heron/Spread-v0", dt=0.05), arrivals)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_what_a_killed_hub_leaves_is_repeated_up_to_there(share: float, tmp_path: Path, env: HeronEnv) -> None:
    whole, data = play(env, record.read_record(FILE)[1]), FILE.read_bytes()
    path = tmp_path / "a.jsonl"
    path.write_bytes(data[: int(share * len(data))])
    _, arrivals = record.read_record(path)
    assert arrivals.until and not arrivals.course
    part = play(env, arrivals)
    assert part.end_time == arrivals.until / 1e9
    for agent, rewards in part.rewards.items():
        assert rewards == whole.rewards[agent][: len(rewards)]
        times = [time for time, _ in whole.actions[agent] if time <= part.end_time] if agent in whole.actions else []
        assert [time for time, _ in part.actions.get(agent, [])] == times


def test_with_nothing_switched_a_what_if_is_the_recorded_run(env: HeronEnv) -> None:
    _, arrivals = record.read_record(FILE)
    assert play(env, WhatIf(env, arrivals), seed=arrivals.seed).digests(RECORDED) == arrivals.course


def test_one_cause_is_switched_and_the_others_stay(env: HeronEnv) -> None:
    _, arrivals = record.read_record(FILE)
    then = play(env, arrivals)
    undone = play(env, WhatIf(env, arrivals, losses=False), seed=0)
    assert then.messages.lost > 0 == undone.messages.lost
    prompt = play(env, WhatIf(env, arrivals, losses=False, delays=0.0, thinking=0.0), seed=0)
    assert prompt.staleness["agent_0"].mean < then.staleness["agent_0"].mean / 2
    slow = play(env, WhatIf(env, arrivals, delays=2.0), seed=0)
    assert slow.staleness["agent_0"].mean > then.staleness["agent_0"].mean
    other = dict(env.benchmark().baselines(0)["nearest landmark"])
    assert env.run_event_driven(
        {**rule(env), "agent_1": other.get("agent_1", other.get("*"))}, arrivals=WhatIf(env, arrivals)
    )


def test_what_if_refuses_what_is_no_factor(env: HeronEnv) -> None:
    arrivals = Arrivals(0)
    for name, value in (("delays", -1.0), ("thinking", float("nan")), ("losses", 1)):
        with pytest.raises((ConfigError, TypeError), match=name):
            WhatIf(env, arrivals, **{name: value})
    assert replace(arrivals, seed=1).seed == 1
