"""Fixtures: what was recorded is replayed bit for bit without a socket, and whatever differs is named.

Planted once and caught: replays that compare nothing, float32 in the file, torn lines that stay, another key after a
cut, what is asked again under one id.
"""

import copy
import hashlib
import json
import pickle
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from endpoint_kit import BOX, fast, letter, no_sockets, question, serving, soc_rule
from hypothesis import given
from hypothesis import strategies as st

from heron_env import Answer, Asked, Origin, make, stream
from heron_env.errors import ConfigError, ExternalAgentError, FixtureError
from heron_env.injection import Endpoint, ExternalPolicy, Fixture, Latency, Recorded, Recording
from heron_env.injection.contract import difference

AGENTS = ("battery_1", "battery_2")


def noon() -> datetime:
    return datetime(2024, 1, 1, 12, tzinfo=timezone.utc)  # noqa: UP017


def questions(many: int, episode: int = 0, seed: int = 7) -> list[list[Asked]]:
    """By instant: both agents at each."""
    draws = stream(3, "observations", episode).random((many, len(AGENTS), 2), dtype=np.float32)
    return [
        [
            question(agent, number, vector=draws[number, place], episode=episode, seed=seed)
            for place, agent in enumerate(AGENTS)
        ]
        for number in range(many)
    ]


def run(policy: Any, instants: list[list[Asked]]) -> list[Answer]:
    policy.begin(instants[0][0].seed, instants[0][0].episode)
    return [answer for asked in instants for answer in policy.answer_all(asked)]


def same(one: list[Answer], other: list[Answer]) -> bool:
    def told(answer: Answer) -> tuple[Any, ...]:
        return np.asarray(answer.action).tobytes(), answer.letters, answer.thinking

    return list(map(told, one)) == list(map(told, other))


def sometimes(body: dict[str, Any]) -> Any:
    """A rule that fails, clips, and reasons aloud."""
    number = body["decision"]["step"]
    if number % 5 == 4:
        return 500, {}
    value = 9.0 if number % 5 == 3 else float(stream(1, body["turn_id"]).random())
    return {"action": [value], "debug": {"model": "m"}, "reasoning": "canary-thought"}


def record(path: Path, instants: list[list[Asked]], brain: Any = sometimes, **options: Any) -> list[Answer]:
    with serving(brain) as endpoint:
        told = fast(endpoint.url, clip=True, latency=Latency(mode="measured"), model="m")
        with Recording(ExternalPolicy(told, **options), path, now=noon) as recording:
            return run(recording, instants)


def test_recorded_decisions_are_replayed_bit_for_bit_without_a_socket(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    live = record(path, questions(40), lambda body: soc_rule(body) | {"reasoning": "canary-thought"})
    with no_sockets():
        replayed = run(Recorded(path), questions(40))
    assert len(replayed) == 80
    assert same(live, replayed)
    assert {answer.origin for answer in replayed} == {Origin("replay", "", 1, "CLOSED")}
    assert "canary-thought" not in path.read_text()


def test_the_file_is_as_documented(tmp_path: Path):
    path = tmp_path / "run-{timestamp}.jsonl"
    record(path, questions(2))
    path = tmp_path / "run-20240101T120000Z.jsonl"
    header, *lines, footer = [json.loads(line) for line in path.read_text().splitlines()]
    assert header["fixture_version"] == "1.0"
    assert header["created_at"] == "2024-01-01T12:00:00+00:00"
    assert header["baseline_agent"]["model"] == "m"
    assert header["baseline_agent"]["host"].startswith("127.0.0.1:")
    assert {"env_id", "options", "seed", "hashes", "versions"} <= set(header)
    keys = {"episode", "agent", "number", "request", "sha256", "response", "code", "attempts", "thinking", "latency_ms"}
    assert all(keys <= set(line) for line in lines)
    assert footer["count"] == len(lines) == 4
    adr = Recorded(path).to_adr()
    assert adr["payloads"][3]["turn_id"] == lines[3]["request"]["turn_id"]
    assert adr["payloads"][3]["baseline_response"]["action"] == lines[3]["response"]["action"]
    assert set(adr) == {"fixture_version", "created_at", "baseline_agent", "payloads"}


@pytest.mark.parametrize("cut", ["in a line", "after a line", "in the header", "after the header"])
@pytest.mark.parametrize("tier", ["basic", "minimal"])
def test_a_recording_that_was_cut_off_is_continued(tmp_path: Path, cut: str, tier: Any):
    whole, path = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    with serving(soc_rule) as endpoint:
        with Recording(ExternalPolicy(Endpoint(endpoint.url, privacy_tier=tier)), whole, now=noon) as recording:
            live = run(recording, questions(4))
        data = whole.read_bytes()
        ends = [place + 1 for place, byte in enumerate(data) if byte == 0x0A]
        path.write_bytes(
            data[: {"in a line": ends[3] + 40, "after a line": ends[3], "in the header": 9}.get(cut, ends[0])]
        )
        if "header" not in cut:
            with pytest.raises(FixtureError, match="was cut off; continue it first"):
                Recorded(path)
        endpoint.asked.clear()
        with Recording(ExternalPolicy(Endpoint(endpoint.url, privacy_tier=tier)), path, now=noon) as recording:
            again = run(recording, questions(4))
            assert recording.metrics().decisions == 8
        assert len(endpoint.asked) == (8 if "header" in cut else 5)
    assert same(live, again)
    assert same(live, run(Recorded(path), questions(4)))
    kept = [json.loads(line) for line in path.read_text().splitlines()[1:4]]
    assert "header" in cut or kept == [json.loads(line) for line in whole.read_text().splitlines()[1:4]]


def test_an_error_leaves_a_recording_that_can_be_continued(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    with serving(sometimes) as endpoint:
        with (
            pytest.raises(ExternalAgentError),
            Recording(ExternalPolicy(endpoint.url, fallback="fail"), path) as recording,
        ):
            run(recording, [one[:1] for one in questions(4)])
        assert len(Fixture(path).decisions) == 3
    assert not Fixture(path).whole


def test_several_episodes_and_seeds_are_one_fixture(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    cases = [(0, 7), (1, 7), (0, 8)]
    with serving(soc_rule) as endpoint, Recording(ExternalPolicy(endpoint.url), path) as recording:
        live = [run(recording, questions(2, *case)) for case in cases]
    recorded = Recorded(path)
    assert all(same(one, run(recorded, questions(2, *case))) for one, case in zip(live, cases, strict=True))


def test_a_recording_is_of_one_thing_and_finished_once(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    with serving(soc_rule) as endpoint:
        with Recording(endpoint.url, path) as recording:
            run(recording, questions(1))
        with pytest.raises(FixtureError, match="this recording is finished"):
            run(Recording(endpoint.url, path), questions(1))
        other = tmp_path / "other.jsonl"
        one = Recording(endpoint.url, other)
        run(one, questions(1))
        with pytest.raises(FixtureError, match="another recording is writing here"):
            run(Recording(endpoint.url, other), questions(1))
        (link := tmp_path / "link.jsonl").symlink_to(other)
        with pytest.raises(FixtureError, match="another recording is writing here"):
            run(Recording(endpoint.url, link), questions(1))
        one.close(finished=False)
        with pytest.raises(FixtureError, match="can't be locked"):  # a name that leaves no room for the lock's
            run(Recording(endpoint.url, tmp_path / f"{'x' * 245}.jsonl"), questions(1))
        with pytest.raises(FixtureError, match=r"something else \(telling\.label: \"\" there, \"b\" asked\)"):
            run(Recording(ExternalPolicy(endpoint.url, label="b"), other), questions(1))
    with pytest.raises(ConfigError, match=r"fallback.: these belong to the policy"):
        Recording(ExternalPolicy(endpoint.url), path, fallback="skip")


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"vector": np.array([0.5, 0.25], np.float32)}, r"decision\.observation\.vector\[0\]"),
        ({"time": 3.5}, r"decision\.time_s: 0\.0 there, 3\.5 asked"),
        ({"turn": 9}, r"decision\.step: 0 there, 9 asked"),
        ({"letters": (letter("zone_1", "battery_1"),)}, r"conversation_context\.last_k_turns: 0 there|last_k_turns"),
        (
            {"names": ("Charge.soc", "Charge.power")},
            "about other columns: no longer 'Charge.capacity', and now 'Charge.power'",
        ),
    ],
)
def test_the_first_difference_of_a_request_is_named(tmp_path: Path, changes: dict[str, Any], where: str):
    path = tmp_path / "run.jsonl"
    (asked,) = questions(1)
    record(path, [asked])
    with pytest.raises(FixtureError, match=where):
        run(Recorded(path), [[question(**{"vector": asked[0].vector, **changes})]])


def test_a_decision_that_was_not_recorded_is_named(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    record(path, questions(1))
    with pytest.raises(FixtureError, match=r"no answer for 'battery_1', decision 5 of episode 0, seed 7"):
        Recorded(path).answer(question(number=5))


def test_an_environment_that_tells_something_else_is_noticed(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    env = make("heron/BatteryGrid-v0")
    with serving(soc_rule) as endpoint, Recording(ExternalPolicy(endpoint.url, env=env), path) as recording:
        names = tuple(env.observation_names("battery_1"))
        asked = question(vector=np.zeros(len(names), np.float32), names=names, space=BOX)
        run(recording, [[asked]])
    assert Recorded(path, env=make("heron/BatteryGrid-v0")).answer(asked).origin.source == "replay"
    other = make("heron/BatteryGrid-v0")
    other.observation_units = lambda agent: ["MWh"] * len(names)
    with pytest.raises(FixtureError, match=r"decision\.observation\.units\[0\]: \"1\" there, \"MWh\" asked"):
        Recorded(path, env=other).answer(asked)


DAMAGE = {
    "a number of an answer": lambda lines: [lines[0], lines[1].replace(b'"action":[', b'"action":[1'), *lines[2:]],
    "a request": lambda lines: [lines[0], lines[1].replace(b'"agent_id":"battery_1"', b'"agent_id":"x"'), *lines[2:]],
    "a line is missing": lambda lines: [lines[0], *lines[2:]],
    "a line twice": lambda lines: [*lines[:2], lines[1], *lines[2:]],
    "no JSON": lambda lines: [lines[0], b"{]\n", *lines[2:]],
    "another field": lambda lines: [lines[0], lines[1].replace(b'"seed":', b'"sead":'), *lines[2:]],
    "a wrong type": lambda lines: [lines[0], lines[1].replace(b'"attempts":1', b'"attempts":"1"'), *lines[2:]],
    "another version": lambda lines: [lines[0].replace(b'"1.0"', b'"2.0"', 1), *lines[1:]],
    "something after the footer": lambda lines: [*lines, lines[1]],
    "nothing": lambda lines: [],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_fixture_is_refused_with_the_line(tmp_path: Path, damage: str):
    path = tmp_path / "run.jsonl"
    record(path, questions(2), soc_rule)
    path.write_bytes(b"".join(DAMAGE[damage](path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(FixtureError, match=r"run\.jsonl(:\d+)?: ") as caught:
        Recorded(path)
    assert any(words in str(caught.value) for words in ("record it again", "remove it"))


def test_a_fixture_that_is_none_is_refused(tmp_path: Path):
    with pytest.raises(FixtureError, match="can't be read"):
        Recorded(tmp_path / "none.jsonl")
    with pytest.raises(FixtureError, match="can't be read"):
        Recorded(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.0, -0.0, 1.0, 0.1]) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


@given(JSON, JSON)
def test_a_difference_is_found_exactly_where_there_is_one(one: Any, other: Any):
    assert difference(one, one) == ""
    differ = json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True)
    assert bool(difference(one, other)) == differ


@pytest.mark.parametrize("content", [b"my notes, one line", b"my notes\nof two lines\n", b"\x00\x01"])
def test_a_file_that_is_no_recording_is_left_as_it_is(tmp_path: Path, content: bytes):
    path = tmp_path / "notes.jsonl"
    path.write_bytes(content)
    with pytest.raises(FixtureError, match="is no recording, and is left as it is"):
        run(Recording("http://127.0.0.1:9/", path), questions(1))
    assert path.read_bytes() == content


@pytest.mark.parametrize("action", [None, "text", {"c": 1}, [[1.0], "x"]])
def test_a_forged_action_is_a_fixture_error(tmp_path: Path, action: Any):
    path = tmp_path / "run.jsonl"
    record(path, questions(1), soc_rule)
    header, line, *_ = path.read_text().splitlines()
    forged = [header, json.dumps({**json.loads(line), "action": action}, separators=(",", ":"))]
    digest = hashlib.sha256("".join(f"{one}\n" for one in forged).encode()).hexdigest()
    path.write_text("\n".join([*forged, f'{{"count": 1, "sha256": "{digest}"}}', ""]))
    path.write_text(path.read_text().replace('{"count": ', '{"count":'))
    with pytest.raises(FixtureError, match="is none; record it again"):
        run(Recorded(path), [questions(1)[0][:1]])


def test_copies_of_a_recording_write_one_file_and_pickles_open_it_anew(tmp_path: Path):
    recording = Recording("http://127.0.0.1:9/", tmp_path / "run.jsonl")
    recording.begin(7, 0)
    assert copy.deepcopy(recording) is recording
    with pytest.raises(FixtureError, match="another recording is writing here"):
        pickle.loads(pickle.dumps(recording)).begin(7, 0)
    recording.close()


def test_the_same_episode_once_more_is_answered_from_the_recording(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    with serving(soc_rule) as endpoint, Recording(endpoint.url, path) as recording:
        first = run(recording, questions(2))
        assert same(first, run(recording, questions(2)))
        assert len(endpoint.asked) == 4
    assert same(first, run(Recorded(path), questions(2)))


def test_what_is_asked_again_under_its_number_is_recorded_too(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    asked = [[question(vector=np.array([soc, 1.0], np.float32))] for soc in (0.25, 0.5, 0.75)]
    live = record(path, asked, soc_rule)
    assert same(live, run(Recorded(path), asked))
    assert len({answer.action.tobytes() for answer in live}) == 3
