"""`heron trace` with endpoints keeps what they answered, and `heron replay` holds without a socket.

Planted once and caught: a trace that asks again, sources that are compared, any answers that will do, a recording that
was cut off and counts as finished.
"""

import inspect
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_kit import heron
from endpoint_kit import no_sockets, serving
from fault_server import FaultServer

from heron_env import Sweep, make, record_episode, register
from heron_env.errors import TraceError
from heron_env.injection import Fixture, serve_policy
from heron_env.lab.traces import file
from heron_env.lab.traces.recording import NAME
from heron_env.lab.traces.replaying import replay

GRID = "heron/BatteryGrid-v0"
SHORT = ["-o", "max_steps=4"]
DECLARED = "test/Declared-v0"


register(DECLARED, "heron_env:from_config")


@pytest.fixture(autouse=True)
def nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record needs no picture."""
    monkeypatch.setattr("heron_env.cli.episodes.find_spec", lambda name: None)


def middle(vector: Any) -> Any:
    return np.array([0.9 - float(vector[0])])


def declared(folder: Path, url: str) -> Path:
    """A world, one agent of which an endpoint plays."""
    engine = type(make("heron/Economy-v0").engine)
    text = (Path(inspect.getfile(engine)).parent / "economy.yaml").read_text("utf-8")
    path = folder / "world.yaml"
    path.write_text(f"{text}\nagent_injection: {{endpoints: [{{agent_id: country_1, url: '{url}'}}]}}\n", "utf-8")
    return path


def traced(out: Path, policy: object, *more: object, code: int = 0) -> Any:
    return heron("trace", GRID, "--policy", policy, *SHORT, "--out", out, *more, code=code)


@pytest.mark.parametrize("more", [(), ("--delay", 0.5, "--schedule", "loss=0.2")], ids=["ideal", "late"])
def test_a_trace_of_an_endpoint_is_replayed_without_a_socket(tmp_path: Path, more: tuple[object, ...]):
    with serve_policy(middle, make(GRID, max_steps=4)) as server:
        told = traced(tmp_path, f"{server.url}?hush", *more).stdout
    assert "answers in fixture.jsonl: " in told
    assert "hush" not in told + "".join(path.read_text() for path in tmp_path.iterdir())
    assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == [NAME]
    with no_sockets():
        assert "identical" in heron("replay", tmp_path).stdout
        assert replay(file.read(tmp_path), fixture=tmp_path / NAME).identical


def test_what_stood_in_is_replayed_too(tmp_path: Path):
    with FaultServer("refused") as dead:
        told = json.loads(traced(tmp_path, dead.url, "--json").stdout)
    assert told["answers"] == {"fallback CIRCUIT_OPEN": 2, "fallback CONNECTION": 6}
    with no_sockets():
        assert replay(tmp_path).identical


def test_thinking_is_replayed_and_only_the_source_of_an_answer_differs(tmp_path: Path):
    agents = tmp_path / "agents.yaml"
    with serving(lambda body: {"action": [0.25]}) as one, serving(lambda body: {"action": [-0.25]}) as two:
        agents.write_text(
            "agent_injection:\n  latency: {mode: virtual, mean: 0.4, ratio: 0.5}\n  endpoints:\n"
            f"    - {{agent_id: battery_1, url: '{one.url}'}}\n    - {{agent_id: battery_2, url: '{two.url}'}}\n"
        )
        traced(tmp_path / "t", agents)
    assert sorted(path.name for path in (tmp_path / "t").glob("*.jsonl")) == ["fixture-2.jsonl", NAME]
    assert any(event.kind == "Answered" for event in file.read(tmp_path / "t").events)
    with no_sockets():
        assert replay(tmp_path / "t").identical
        again = traced(tmp_path / "again", tmp_path / "t" / NAME)  # a fixture is a policy, too; and its own trace holds
        assert replay(tmp_path / "again").identical
    assert "answers in fixture.jsonl: " in again.stdout


def test_a_world_whose_own_agents_are_played_by_an_endpoint_is_replayed(tmp_path: Path):
    with serving(lambda body: {"action": [0.25]}) as endpoint:
        options, star = {"config": str(declared(tmp_path, endpoint.url))}, Star().build(None, 0)
        with pytest.raises(TraceError, match="name a file for them"):
            record_episode(DECLARED, star, options=options)
        kept = tmp_path / NAME
        episode = record_episode(DECLARED, star, options=options, t_end=2 * make("heron/Economy-v0").dt, fixture=kept)
        asked = len(endpoint.asked)
        assert len(endpoint.asked) == asked > 0
    with no_sockets():
        assert replay(episode, policies=star, fixture=kept).identical


@dataclass(frozen=True)
class Star:
    """For all but those that endpoints play."""

    def build(self, env: Any, seed: int) -> Any:
        return {"*": lambda vector: [0.1]}


@pytest.mark.filterwarnings("ignore::heron_env.errors.HeronWarning")
def test_a_world_whose_own_agents_are_played_by_an_endpoint_has_one_breaker_in_a_sweep(tmp_path: Path):
    with FaultServer("refused") as dead:
        options = {"config": str(declared(tmp_path, dead.url)), "max_steps": 3}
        result = Sweep.of(DECLARED, {"star": Star()}, [], cases=3, options=options).run(progress=False)
    found = result.point("star").external
    assert found is not None
    assert found.counts == {"fallback CIRCUIT_OPEN": 4, "fallback CONNECTION": 5}


def test_another_answer_is_a_difference(tmp_path: Path):
    with serve_policy(middle, make(GRID, max_steps=4)) as server:
        traced(tmp_path / "a", server.url)
    with serving(lambda body: {"action": [0.1 if body["decision"]["step"] < 3 else 0.2]}) as endpoint:
        traced(tmp_path / "b", endpoint.url)
    episode, other = file.read(tmp_path / "a"), file.read(tmp_path / "b")
    swapped = replace(episode, setting=replace(episode.setting, fixture=other.setting.fixture))
    done = replay(swapped, fixture=tmp_path / "b" / NAME)
    assert done.difference is not None
    assert "action" in done.difference.what or "values" in done.difference.what


def test_answers_that_are_gone_or_of_another_episode_are_refused_with_what_differs(tmp_path: Path):
    with serve_policy(middle, make(GRID, max_steps=4)) as server:
        traced(tmp_path, server.url)
        with pytest.raises(TraceError, match="name a file for them"):
            record_episode(GRID, server.url, options={"max_steps": 4})
        traced(tmp_path / "other", server.url, "--seed", 3)
    kept = tmp_path / NAME
    assert "has answers for seeds [0], none for 3" in traced(tmp_path / "x", kept, "--seed", 3, code=2).stderr
    longer = traced(tmp_path / "x", kept, "-o", "max_steps=3", code=2)
    assert "options.max_steps: 4 there, 3 asked" in longer.stderr
    assert "is asked something else" in traced(tmp_path / "x", kept, "--delay", 1, code=2).stderr
    with pytest.raises(TraceError, match="name the file of their answers"):
        replay(file.read(tmp_path))
    moved = kept.rename(tmp_path / "moved.jsonl")
    assert "are not there" in heron("replay", tmp_path, code=2).stderr
    heron("replay", tmp_path, "--fixture", moved)
    wrong = heron("replay", tmp_path, "--fixture", tmp_path / "other" / NAME, code=2)
    assert "holds other answers" in wrong.stderr


def test_a_trace_that_was_cut_off_goes_on_without_asking_again(tmp_path: Path):
    asked = []

    def brain(body: dict[str, Any]) -> Any:
        asked.append(body["decision"]["step"])
        return {"action": [0.25]}

    def failing_once(body: dict[str, Any]) -> Any:
        if body["decision"]["step"] == 2 and -1 not in asked:
            asked.append(-1)
            return 500, {}
        return brain(body)

    agents = tmp_path / "agents.yaml"
    with serving(failing_once) as endpoint:
        agents.write_text(
            f"agent_injection:\n  endpoints:\n    - {{agent_id: battery_1, url: '{endpoint.url}'}}\n"
            "  fallback: {strategy: fail}\n"
        )
        traced(tmp_path / "t", agents, code=2)
        assert [path.name for path in (tmp_path / "t").iterdir()] == ["fixture.part.jsonl"]
        traced(tmp_path / "t", agents)
    assert asked == [0, 1, -1, 2, 3]
    assert len(Fixture(tmp_path / "t" / NAME).decisions) == 4
    assert replay(tmp_path / "t").identical
