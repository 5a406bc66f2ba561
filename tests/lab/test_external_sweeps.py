"""Endpoints, agents.yaml and fixtures as policies of a sweep: the same comparison, and figures of how they answered.

Planted once and caught: a breaker for each episode, endpoints that workers ask, terms of the last policy, silence that
is told of every episode, a stand-in that is no fallback, percentiles rounded down, quality that is unknown told as
bad, live answers that count as repeatable, ratings that change within a case, an address in an identity, a file known
by its name alone, others that do nothing, fixtures that fit everywhere, all episodes in one file.
"""

import json
import math
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_kit import as_json, heron
from endpoint_kit import fast as at
from endpoint_kit import no_sockets, serving
from fault_server import FaultServer
from hypothesis import given, settings
from hypothesis import strategies as st

from heron_env import Answer, make
from heron_env.errors import ConfigError, FixtureError, HeronWarning
from heron_env.injection import BreakerConfig, Fixture, serve_policy
from heron_env.injection.tally import AnswerTally, metrics
from heron_env.lab import IDEAL, SYNC, Condition, Sweep, SweepResult, benchmark, finding, read_sweep
from heron_env.lab.external import AgentsFile, EndpointPolicy
from heron_env.lab.output import Progress
from heron_env.lab.policies import display_names, policy_spec
from heron_env.lab.sweep.records import Record
from heron_env.lab.sweep.results import elo
from heron_env.lab.sweep.tables import columns, lines, to_csv, to_json, to_markdown
from heron_env.registry import names_environment

GRID = "heron/BatteryGrid-v0"
OPTIONS = {"max_steps": 5}
LATE = Condition(act_delay=1.0, msg_delay=0.3)


def middle(vector: Any) -> Any:
    return np.array([0.9 - float(vector[0])])


@dataclass(frozen=True)
class Middle:
    """The same in this process."""

    def build(self, env: Any, seed: int) -> Any:
        return {"*": middle}


@dataclass(frozen=True)
class Half:
    """One battery by hand, the others as the strongest baseline has it."""

    def build(self, env: Any, seed: int) -> Any:
        strongest = benchmark.baselines(env, seed)[env.benchmark().strongest or "random"]
        return {**strongest, "battery_1": lambda vector: [0.5]}


def swept(policies: Any, *conditions: Condition, cases: int = 2, out: Path | None = None, **how: Any) -> SweepResult:
    asked = Sweep.of(GRID, policies, conditions, cases=cases, options=OPTIONS)
    return asked.run(out, **{"processes": 1, "progress": False, **how})


@pytest.fixture
def url() -> Iterator[str]:
    with serve_policy(middle, make(GRID, **OPTIONS)) as server:
        yield server.url


def rows(result: SweepResult, policy: str) -> list[dict[str, Any]]:
    return [row for row in json.loads(to_json(result))["rows"] if row["policy"] == policy]


def test_a_served_rule_earns_what_the_rule_earns_under_every_condition(url: str):
    result = swept({"served": at(url), "rule": Middle()}, IDEAL, LATE)
    for condition in (SYNC, IDEAL, LATE):
        assert result.point("served", condition).values == result.point("rule", condition).values
        assert result.improvement("served", "rule", condition).value == result.preference("served", condition) == 0.5
        assert result.elo(condition) == {"served": 1000.0, "rule": 1000.0}


@dataclass(frozen=True)
class Wordy:
    """Decides as the served rule does, in 5 words a decision."""

    def build(self, env: Any, seed: int) -> Any:
        return {"*": self}

    def answer(self, asked: Any) -> Answer:
        return Answer(middle(asked.vector), thinking=0.5, tokens=5)


def test_tokens_of_an_episode_are_told_where_answers_have_any(tmp_path: Path):
    result = swept({"wordy": Wordy(), "rule": Middle()}, IDEAL, out=tmp_path)
    assert [point.tokens for point in result.points] == [50.0, 50.0, 0.0, 0.0, 0.0]
    assert columns(result)[-1] == "tokens" and "| 50 |" in to_markdown(result)
    assert [row.get("tokens") for row in json.loads(to_json(result))["rows"]] == [50.0, 50.0, None, None, None]
    assert [point.tokens for point in read_sweep(tmp_path).points] == [50.0, 50.0, 0.0, 0.0, 0.0]
    assert "tokens" not in columns(swept({"rule": Middle()}))


@pytest.mark.filterwarnings("ignore::heron_env.errors.HeronWarning")
def test_one_breaker_holds_for_all_who_ask_at_an_address(processes: int = 1):
    with FaultServer("refused") as dead:
        policies = {"dead": at(dead.url), "same": at(dead.url, privacy_tier="full"), "random": "random"}
        result = swept(policies, processes=processes)
    told = [result.point(name).external for name in ("dead", "same")]
    counts = [sum(each.counts.get("fallback CONNECTION", 0) for each in told if each is not None)]
    assert counts == [6]  # five open it, and the sixth was on its way with the fifth: two agents ask together
    assert result.point("random").external is None


@pytest.mark.filterwarnings("ignore::heron_env.errors.HeronWarning")
def test_endpoints_are_asked_here_while_workers_run_the_others():
    asked = Sweep.of(GRID, {"dead": "http://127.0.0.1:9/", "random": "random"}, [LATE], cases=1)
    assert {item.name for item in asked.items() if item.live} == {"dead"}
    test_one_breaker_holds_for_all_who_ask_at_an_address(processes=2)


def test_one_address_is_asked_on_one_set_of_terms(url: str):
    with pytest.raises(ConfigError, match=r"two policies ask 127\.0\.0\.1:\d+ with timeout=30\.0 and 5\.0"):
        swept({"a": at(url), "b": at(url, timeout=5.0)})


def test_a_missing_key_is_said_before_anything_runs(url: str):
    with pytest.raises(ConfigError, match="'NO_SUCH_KEY_HERE' is not set"):
        swept({"a": at(url, api_key_env="NO_SUCH_KEY_HERE")})


def test_an_endpoint_that_answers_nothing_is_said_once_and_its_rows_are_marked():
    with FaultServer("refused") as dead, pytest.warns(HeronWarning, match="not one of 10 answers") as told:
        result = swept({"dead": dead.url}, IDEAL)
    assert len(told) == 1
    assert "fallback CONNECTION 6" in str(told[0].message)
    table = to_markdown(result)
    assert [line[2].endswith("*") for line in lines(result)] == [True, True, False]
    assert "marks returns with such decisions" in table
    assert "In 2 of its rows (*) a fallback" in " ".join(finding(result))


def test_rates_and_percentiles_are_those_of_all_answers():
    def brain(body: dict[str, Any]) -> Any:
        return (500, {}) if body["decision"]["step"] == 1 else {"action": [0.5]}

    with serving(brain) as endpoint:
        breaker = BreakerConfig(failure_threshold=100)
        result = swept({"ill": at(endpoint.url, breaker=breaker)})
    [row] = rows(result, "ill")
    found = row["external"]
    assert found["counts"] == {"external": 16, "fallback INTERNAL": 4}
    assert found["error_rate"] == found["fallback_rate"] == 0.2
    assert found["timeout_rate"] == 0.0
    assert found["requests"] == found["decisions"] == 20
    assert 0.0 < found["latency_p50_ms"] <= found["latency_p99_ms"]
    assert found["circuit_state"] == "CLOSED"
    assert row["deterministic"] is False


def test_quality_is_null_and_so_is_a_comparison_with_nobody(url: str):
    [row] = rows(swept({"a": at(url)}, cases=1), "a")
    unknown = ("persona_consistency", "conversation_coherence", "instruction_following")
    assert [row["external"][name] for name in (*unknown, "preference_score", "elo_rating")] == [None] * 5


def test_live_runs_are_not_said_to_be_identical_or_different(url: str):
    result = swept({"a": at(url)}, IDEAL)
    assert result.point("a", IDEAL).identical is None
    assert not any("twin" in sentence for sentence in finding(result))
    both = " ".join(finding(swept({"a": at(url), "random": "random"}, IDEAL)))
    assert "every run that asks no endpoint equals the synchronous run" in both
    assert "Its answers were live" in both


def test_a_sweep_that_was_stopped_goes_on_without_asking_again(url: str, tmp_path: Path):
    def stop(progress: Progress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    with serve_policy(middle, make(GRID, **OPTIONS)) as server:
        policies = {"a": at(server.url)}
        with pytest.raises(KeyboardInterrupt):
            swept(policies, IDEAL, out=tmp_path, progress=stop)
        before = server.served.requests
        result = swept(policies, IDEAL, out=tmp_path)
        assert (before, server.served.requests) == (10, 40)
    again = read_sweep(tmp_path)
    assert to_json(again) == to_json(result) == (tmp_path / "table.json").read_text()


def test_a_line_without_answers_is_read_and_written_as_before():
    outcome = {
        "value": 1.0, "course": "ab", "kpis": {}, "staleness_p95": None, "latency_p95": None, "notes": [],
    }  # fmt: skip
    line = {"policy": "p", "case": 0, "condition": "sync", **outcome, "seconds": 0.5}
    record = Record.from_dict(line)
    assert record.answers is None
    assert record.to_dict().keys() == line.keys()
    answered = {"counts": {"external": 3}, "requests": 3, "latencies_ms": {"1.5": 3}, "circuit": "CLOSED"}
    full = Record.from_dict({**line, "answers": {**answered, "deterministic": False}})
    assert Record.from_dict({**full.to_dict(), "staleness_p95": None, "latency_p95": None}).answers == full.answers
    with pytest.raises(ValueError, match="answers"):
        Record.from_dict({**line, "answers": {**answered, "deterministic": False, "requests": -1}})


@settings(max_examples=30)
@given(st.lists(st.floats(0.01, 40_000.0), min_size=1, max_size=60), st.integers(1, 3))
def test_percentiles_of_several_episodes_are_those_of_all_their_calls(values: list[float], parts: int):
    def answers(part: list[float]) -> AnswerTally:
        told: dict[str, int] = {}
        for value in part:
            told[f"{value:.3g}"] = told.get(f"{value:.3g}", 0) + 1
        return AnswerTally(
            counts={"external": len(part)}, requests=len(part), latencies_ms=told, circuit="CLOSED", deterministic=False
        )

    found = metrics([answers(values[start::parts]) for start in range(parts) if values[start::parts]])
    ordered = sorted(values)
    assert found is not None
    for share, value in ((0.5, found.latency_p50_ms), (0.99, found.latency_p99_ms)):
        assert value == pytest.approx(ordered[math.ceil(share * len(ordered)) - 1], rel=0.006)


def test_what_a_recording_has_a_code_of_counts_as_stood_in():
    counts = {"replay": 6, "replay CLIPPED": 1, "replay TIMEOUT": 2, "replay CIRCUIT_OPEN": 1}
    told = AnswerTally(counts=counts, requests=0, latencies_ms={}, circuit="", deterministic=True)
    found = metrics([told])
    assert found is not None
    assert (found.fallback_rate, found.error_rate, found.timeout_rate) == (0.3, 0.3, 0.2)
    assert found.latency_p50_ms is None


RETURNS = st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=6, max_size=6)


@settings(max_examples=30)
@given(st.dictionaries(st.sampled_from("abcd"), RETURNS, min_size=2))
def test_elo_keeps_its_sum_and_knows_no_order_of_policies(returns: dict[str, list[float]]):
    found = elo(returns)
    assert sum(found.values()) == pytest.approx(1000.0 * len(returns))
    assert elo(dict(reversed(returns.items()))) == pytest.approx(found)


def test_elo_is_elos():
    a, b = 1000.0, 1000.0
    for won in (1.0, 1.0, 0.0, 0.5):
        expected = 1.0 / (1.0 + math.pow(10.0, (b - a) / 400.0))
        a, b = a + 32.0 * (won - expected), b - 32.0 * (won - expected)
    assert elo({"a": [1.0, 1.0, 0.0, 1.0], "b": [0.0, 0.0, 1.0, 1.0]}) == pytest.approx({"a": a, "b": b})
    assert elo({"a": [1.0], "b": [0.0]}) == {"a": 1016.0, "b": 984.0}


def test_ratings_and_preferences_are_of_the_same_pairs(url: str):
    result = swept({"served": at(url), "random": "random"}, IDEAL, cases=3)
    told = json.loads(to_json(result))["comparisons"]
    for condition, row, one in zip(result.sweep.conditions, rows(result, "served"), told, strict=True):
        better = result.improvement("served", "random", condition)
        assert one["condition"] == condition.name
        assert row["external"]["preference_score"] == one["preferences"][0]["value"] == better.value
        values = {name: result.point(name, condition).values for name in ("served", "random")}
        assert row["external"]["elo_rating"] == one["elo"]["served"] == elo(values)["served"]
    assert "External agents" in to_markdown(result)
    assert len(next(iter(to_csv(result).splitlines())).split(",")) == len(to_csv(result).splitlines()[1].split(","))


# What is named how


def test_a_name_that_reads_like_an_address_or_a_file_is_one():
    assert isinstance(policy_spec("http://127.0.0.1:9/respond"), EndpointPolicy)
    assert not names_environment("http://127.0.0.1:9/respond")
    assert names_environment("mine:world")
    with pytest.raises(ConfigError, match="must be https"):
        policy_spec("http://agents.example.org/")


def test_nothing_after_the_port_is_ever_told(tmp_path: Path):
    spec = policy_spec("http://127.0.0.1:9/hush-1?token=hush-2")
    again = pickle.loads(pickle.dumps(spec))
    assert again == spec
    other = policy_spec("http://127.0.0.1:9/other")
    assert isinstance(spec, EndpointPolicy)
    assert isinstance(other, EndpointPolicy)
    assert spec.identity() != other.identity()
    assert "hush" not in repr(spec) + spec.identity()
    names = [*display_names(["http://127.0.0.1:9/hush-1", "random", "http://127.0.0.1:9/hush-2"])]
    assert names[:2] == ["127.0.0.1:9", "random"]
    assert names[2].startswith("127.0.0.1:9 ")
    assert "hush" not in "".join(names)


def test_an_endpoint_is_named_as_its_writer_wants():
    old, new = "http://127.0.0.1:9/old?a=http://b", "http://127.0.0.1:9/new"
    assert display_names([f"old one={old}", f"new={new}", "random"]) == {"old one": old, "new": new, "random": "random"}
    assert policy_spec(f"old={old}") == policy_spec(old) and not names_environment(f"old={old}")
    assert [*display_names([old])] == ["127.0.0.1:9"]
    for same in (["a=" + old, "a=" + new], ["a", "a=" + new], ["a=" + new, "a"], ["a=" + old, "a=" + old]):
        with pytest.raises(ConfigError, match="two policies are named 'a'"):
            display_names(same)
    for name in ("", " a", "a/b", "<b>", "a" * 41, "do nothing", "random"):
        with pytest.raises(ConfigError, match="can't be the name of an endpoint") as caught:
            policy_spec(f"{name}=http://127.0.0.1:9/hush")
        assert "hush" not in str(caught.value)


def test_the_command_takes_addresses_for_policies_and_tells_of_silence(tmp_path: Path):
    short = ["-o", "max_steps=3", "--axis", "act_delay=0", "--cases", 1, "--processes", 1]
    with FaultServer("refused") as dead:
        result = heron("sweep", GRID, f"{dead.url}?hush", "random", *short, "--out", tmp_path)
        table = as_json("sweep", GRID, dead.url, *short, "--out", tmp_path / "alone")
    assert "warning: policy '127.0.0.1:" in result.stderr
    assert "Preference and Elo" in result.stdout
    assert max(map(len, result.stdout.splitlines()[:-1])) <= 80
    assert not any(b"hush" in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert table["rows"][0]["external"]["fallback_rate"] == 1.0


WRONG = {
    "an address alone": (["sweep", "http://127.0.0.1:9/", "--axis", "loss=0"], "name an environment"),
    "a private address": (["sweep", GRID, "https://192.168.0.9/"], "192.168.0.0/16"),
    "no file": (["sweep", GRID, "nowhere.yaml"], "nowhere.yaml"),
    "no fixture": (["sweep", GRID, "nowhere.jsonl"], "no such fixture"),
    "a name twice": (["sweep", GRID, "a=http://127.0.0.1:9/", "a=http://127.0.0.1:9/b"], "two policies are named 'a'"),
    "an address for an environment": (["trace", "http://127.0.0.1:9/"], "neither a run folder nor an environment"),
}


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_in_a_line(words: list[str], message: str):
    assert message in heron(*words, code=2).stderr


# agents.yaml, and fixtures of a sweep


def written(folder: Path, url: str, more: str = "", agent: str = "battery_1") -> Path:
    path = folder / "agents.yaml"
    path.write_text(
        f"agent_injection:\n  endpoints:\n    - {{agent_id: {agent}, url: '{url}'}}\n"
        f"  concurrency: {{qps_cap: 10000}}\n{more}"
    )
    return path


def test_agents_that_a_file_does_not_name_are_played_by_the_strongest_baseline(tmp_path: Path):
    def brain(body: dict[str, Any]) -> Any:
        return {"action": [0.5]}

    with serving(brain) as endpoint:
        result = swept({"some": str(written(tmp_path, endpoint.url)), "same": Half()}, cases=1)
        assert {body["agent_id"] for body in endpoint.asked} == {"battery_1"}
    found = result.point("some").external
    assert found is not None
    assert found.counts == {"external": 5}
    assert result.point("some").values == result.point("same").values


def test_a_file_that_changed_is_another_policy(tmp_path: Path):
    spec = AgentsFile(str(written(tmp_path, "http://127.0.0.1:9/")))
    before = spec.identity()
    written(tmp_path, "http://127.0.0.1:9/", "  privacy_tier: full\n")
    assert spec.identity() != before
    with pytest.raises(ConfigError, match="Unknown agent 'batery_1'"):
        swept({"wrong": str(written(tmp_path, "http://127.0.0.1:9/", agent="batery_1"))})


def test_named_endpoints_of_two_runs_stand_in_tables_under_one_name(tmp_path: Path, url: str):
    short = ["-o", "max_steps=3", "--axis", "act_delay=0", "--cases", 1, "--processes", 1]
    names = []
    for number, address in enumerate((url, f"{url}?b")):
        told = as_json("sweep", GRID, f"mine={address}", f"other={url}?c", *short, "--out", tmp_path / str(number))
        names.append({row["policy"] for row in told["rows"]})
    assert names[0] == names[1] > {"mine", "other"}
    traced = as_json("trace", GRID, "--policy", f"mine={url}", "-o", "max_steps=3", "--out", tmp_path / "t")
    assert traced["policy"] == "mine"


def test_a_file_of_json_is_a_fixture_by_what_it_holds(tmp_path: Path, url: str):
    kept = tmp_path / "run.json"
    more = f"  benchmark: {{record: true, fixture_path: '{kept}'}}\n"
    live = swept({"one": str(written(tmp_path, url, more))}, IDEAL, cases=1)
    again = swept({"one": str(kept)}, IDEAL, cases=1)
    assert again.point("one", IDEAL).values == live.point("one", IDEAL).values
    (tmp_path / "adr.json").write_text(json.dumps(Fixture(next(tmp_path.glob("run-*.json"))).to_adr(), indent=1))
    (tmp_path / "other.json").write_text("{}")
    for name, words in (("adr", "is no recording, but its export by to_adr"), ("other", "is no recording;")):
        with pytest.raises(FixtureError, match=words):
            swept({"one": str(tmp_path / f"{name}.json")})


def test_a_recorded_sweep_is_repeated_without_a_socket(tmp_path: Path, url: str):
    kept = tmp_path / "kept" / "run.jsonl"
    more = f"  benchmark: {{record: true, fixture_path: '{kept}'}}\n"
    live = swept({"one": str(written(tmp_path, url, more))}, IDEAL, LATE)
    assert len(list(kept.parent.iterdir())) == 6
    with no_sockets():
        again = swept({"one": str(kept)}, IDEAL, LATE)
    for condition in (SYNC, IDEAL, LATE):
        assert again.point("one", condition).values == live.point("one", condition).values
        assert again.point("one", condition).deterministic
        assert not live.point("one", condition).deterministic
    assert again.point("one", IDEAL).identical is True
    found = again.point("one").external
    assert found is not None
    assert found.counts == {"replay": 10}
    assert found.latency_p50_ms is None
    with pytest.raises(FixtureError, match=r"options\.max_steps: 5 there, 4 asked"):
        Sweep.of(GRID, {"one": str(kept)}, [], cases=2, options={"max_steps": 4})
    with pytest.raises(FixtureError, match=r"was recorded in another environment \(env_id"):
        Sweep.of("heron/Spread-v0", {"one": str(kept)}, [], cases=2)
    with pytest.raises(FixtureError, match=r"has answers for seeds \[1000000\], none for 7"):
        Sweep.of(GRID, {"one": str(kept)}, [], cases=[type(live.sweep.cases[0])(7)], options=OPTIONS)
