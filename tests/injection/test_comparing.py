"""`compare`: another agent is asked what a recorded one was asked, and every answer, or its lack, is in the figures.

Planted once and caught: questions in any order, failures that agree, what stood in compared, distances that are no
shares, answers without their masks.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_kit import as_json, heron
from endpoint_kit import fast, no_sockets, question, serving, soc_rule
from fake_clock import FakeClock
from fault_server import FaultServer
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from heron_env import make
from heron_env.errors import ConfigError, FixtureError
from heron_env.injection import (
    Comparison,
    ConcurrencyConfig,
    Endpoint,
    ExternalPolicy,
    Fixture,
    Recorded,
    Recording,
    ScriptedPersona,
    compare,
    conversation,
    serve_policy,
)
from heron_env.injection.comparing import apart
from heron_env.injection.contract import Wire
from heron_env.injection.endpoint import Connection, client_of
from heron_env.injection.recording import Header
from heron_env.injection.setting import sha256

AGENTS = ("battery_1", "battery_2")
STEPS = 4


def halves(body: dict[str, Any]) -> dict[str, Any]:
    return {"action": [0.5 if body["decision"]["step"] % 2 else -0.5]}


def recorded(path: Path, brain: Any = halves, steps: int = STEPS, clip: bool = False, **told: Any) -> Path:
    """What two batteries were asked, together at each step."""
    with (
        serving(brain) as endpoint,
        Recording(ExternalPolicy(fast(endpoint.url, clip=clip, **told), fallback="skip"), path) as recording,
    ):
        recording.begin(7, 0)
        for number in range(steps):
            recording.answer_all([question(agent, number) for agent in AGENTS])
    return path


def against(path: Path, brain: Any, **options: Any) -> tuple[Comparison, list[dict[str, Any]]]:
    with serving(brain) as endpoint:
        return compare(path, fast(endpoint.url), **options), endpoint.asked


@pytest.mark.parametrize("tier", ["minimal", "full"])
def test_the_recorded_requests_are_sent_as_they_are_in_their_order(tmp_path: Path, tier: Any):
    path = recorded(tmp_path / "run.jsonl", privacy_tier=tier)
    found, asked = against(path, halves)
    sent = [{**body, "timeout_ms": 30_000} for body in asked]
    wanted = [each.request for each in Fixture(path).decisions.values()]
    assert sorted(sent, key=json.dumps) == sorted(wanted, key=json.dumps)
    steps = [body["decision"]["step"] for body in asked]
    assert steps == sorted(steps)  # of one moment together, and no later one before it
    assert found.privacy_tier == tier and found.whole
    assert (found.total.decisions, found.total.compared, found.total.agreement) == (2 * STEPS, 2 * STEPS, 1.0)
    assert found.total.distance == found.total.most == 0.0


def test_figures_are_by_agent_and_by_decision(tmp_path: Path):
    path = recorded(tmp_path / "run.jsonl")

    def other(body: dict[str, Any]) -> Any:
        late = body["agent_id"] == "battery_2" and body["decision"]["step"] == 3
        return {"action": [halves(body)["action"][0] - (1.0 if late else 0.25 * (body["agent_id"] == "battery_1"))]}

    found, _ = against(path, other)
    one, two = (found.agents[name] for name in AGENTS)
    assert (one.agreement, one.distance, one.most) == (0.0, 0.125, 0.125)
    assert (two.agreement, two.distance, two.most) == (0.75, 0.125, 0.5)
    assert (found.total.agreement, found.total.distance, found.total.most) == (0.375, 0.125, 0.5)
    (last,) = [point for point in found.points if point.distance == 0.5]
    assert (last.agent, last.number, last.baseline, last.answer, last.agrees) == ("battery_2", 3, [0.5], [-0.5], False)
    assert [point.number for point in found.points] == [number for number in range(STEPS) for _ in AGENTS]
    near, _ = against(path, other, within=0.125)
    assert (near.agents["battery_1"].agreement, near.agents["battery_2"].agreement) == (1.0, 0.75)


FAULTS = [
    "500 Internal Server Error",
    "truncated",
    "html",
    "NaN",
    "swapped answer",
    "401 Unauthorized",
    "more than 1 MiB",
]


def test_what_an_endpoint_fails_at_is_counted_and_the_rest_is_compared(tmp_path: Path):
    path = recorded(tmp_path / "run.jsonl", steps=7)
    faults = [fault for name in FAULTS for fault in (name, "good")]
    with FaultServer(*faults, answer=lambda body: {"action": [-0.5], "request_id": body["request_id"]}) as server:
        found = compare(path, Endpoint(server.url, concurrency=ConcurrencyConfig(max_inflight_per_endpoint=1)))
    wrong = [point for point in found.points if point.code]
    assert len(wrong) == len(FAULTS) and all(p.answer is p.distance is p.agrees is None for p in wrong)
    assert found.total.answers.counts == {
        "external": 7, "fallback INTERNAL": 1, "fallback INVALID_ACTION": 1, "fallback INVALID_REQUEST": 1,
        "fallback INVALID_RESPONSE": 3, "fallback RESPONSE_TOO_LARGE": 1,
    }  # fmt: skip
    assert found.total.compared == 7 and found.total.answers.fallback_rate == 0.5
    agreed = [point.agrees for point in found.points if point.agrees is not None]
    assert found.total.agreement == sum(agreed) / 7 and 0 < sum(agreed) < 7


def test_the_time_for_an_answer_is_that_of_the_recording(tmp_path: Path):
    path, clock = recorded(tmp_path / "run.jsonl", steps=2, timeout=3.0), FakeClock()
    with FaultServer("silence", clock=clock) as server:
        endpoint = Endpoint(server.url, timeout=3.0)
        found = compare(path, endpoint, line=Connection(endpoint, lambda endpoint: client_of(endpoint, clock)))
    assert found.total.answers.counts == {"fallback TIMEOUT": 4}
    assert (found.total.compared, found.total.agreement, found.total.distance) == (0, None, None)
    with serving(halves) as endpoint:
        compare(path, Endpoint(endpoint.url, timeout=20.0))
        assert {body["timeout_ms"] <= 3_000 for body in endpoint.asked} == {True}


def test_where_something_stood_in_for_the_recorded_agent_nothing_is_compared(tmp_path: Path):
    def sometimes(body: dict[str, Any]) -> Any:
        step = body["decision"]["step"]
        return (500, {}) if step == 1 else {"action": [9.0 if step == 2 else 0.25]}

    path = recorded(tmp_path / "run.jsonl", sometimes, clip=True)
    found, _ = against(path, lambda body: {"action": [1.0 if body["decision"]["step"] == 2 else 0.0]})
    assert (found.total.not_recorded, found.total.compared, found.total.decisions) == (2, 6, 8)
    assert [point.baseline for point in found.points[::2]] == [[0.25], None, [1.0], [0.25]]
    assert [point.agrees for point in found.points[::2]] == [False, None, True, False]
    never = recorded(tmp_path / "never.jsonl", lambda body: (500, {}))
    with no_sockets(), pytest.raises(FixtureError, match="of 8 decisions the recorded agent answered none"):
        compare(never, "http://127.0.0.1:9/")


def test_choices_are_compared_under_their_masks(tmp_path: Path):
    def env() -> Any:
        return make("heron/TrafficCorridor-v0", max_steps=6)

    world, path = env(), tmp_path / "run.jsonl"
    rule = world.benchmark().baselines(0)[world.benchmark().strongest]
    agents = [agent for agent in world.possible_agents if world.action_space(agent).shape == ()]
    with serve_policy(rule, env()) as server:
        with Recording(ExternalPolicy(fast(server.url), env=world), path) as recording:
            world.run_synchronous({**rule, **dict.fromkeys(agents, recording)}, seed=1)
        same = compare(path, fast(server.url))
    assert same.total.agreement == 1.0 and same.total.decisions > 6
    masks = [body["decision"]["action_mask"] for body in (each.request for each in Fixture(path).decisions.values())]

    def most(body: dict[str, Any]) -> Any:
        return {"action": body["decision"]["action_space"]["n"] - 1}

    found, _ = against(path, most)
    forbidden = sum(mask is not None and not mask[-1] for mask in masks)
    assert found.total.answers.counts.get("fallback INVALID_ACTION", 0) == forbidden
    assert {point.distance for point in found.points} <= {None, 0.0, 1.0}


def in_version_1(path: Path) -> Path:
    """The same recording as version 1.0 of the contract wrote it: what belongs to one choice stands in a list."""
    header, *lines, _ = (json.loads(line) for line in path.read_text().splitlines())
    header["versions"]["schema"] = "1.0"
    texts = [Header.model_validate(header).model_dump_json()]
    for line in lines:
        request = line["request"]
        decision, request["schema_version"] = request["decision"], "1.0"
        del decision["running"]
        assert isinstance(decision["action_space"]["n"], int)
        decision["action_space"]["n"] = [decision["action_space"]["n"]]
        if decision["action_mask"] is not None:
            decision["action_mask"] = [decision["action_mask"]]
        texts.append(json.dumps({**line, "sha256": sha256(request)}))
    data = "".join(f"{text}\n" for text in texts).encode()
    footer = {"count": len(lines), "sha256": hashlib.sha256(data).hexdigest()}
    path.write_bytes(data + json.dumps(footer).encode() + b"\n")
    return path


def test_a_recording_of_version_1_is_played_gone_on_with_and_compared(tmp_path: Path):
    def env() -> Any:
        return make("heron/TrafficCorridor-v0", max_steps=4)

    def played(policy: Any) -> Any:
        world = env()
        rule = world.benchmark().baselines(0)[world.benchmark().strongest]
        agents = [agent for agent in world.possible_agents if world.action_space(agent).shape == ()]
        return world.run_synchronous({**rule, **dict.fromkeys(agents, policy)} if policy else rule, seed=1)

    path, cut = tmp_path / "run.jsonl", tmp_path / "cut.jsonl"
    rule = env().benchmark().baselines(0)[env().benchmark().strongest]
    with serve_policy(rule, env()) as server:
        with Recording(ExternalPolicy(fast(server.url), env=env()), path) as recording:
            own = played(recording)
        old = in_version_1(path).read_bytes()
        assert compare(path, fast(server.url)).total.agreement == 1.0
        cut.write_bytes(b"".join(old.splitlines(keepends=True)[:4]))
        with Recording(ExternalPolicy(fast(server.url), env=env()), cut, any_version=True) as recording:
            assert played(recording).same_course(own)
    with no_sockets():
        assert played(Recorded(path)).same_course(own)
    requests = [[found.request for found in Fixture(of).decisions.values()] for of in (path, cut)]
    assert requests[0] == requests[1] and {request["schema_version"] for request in requests[1]} == {"1.0"}


WIRES = [
    Wire.of(spaces.Box(np.float32([-1, 0]), np.float32([1, 0.5]))),
    Wire.of(spaces.MultiDiscrete([2, 3])),
    Wire.of(spaces.Dict({"c": spaces.Box(-3.0, 3.0, (1,)), "d": spaces.Discrete(4)})),
    Wire.of(spaces.Discrete(5), [4.0]),
]


@given(st.sampled_from(WIRES), st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_a_distance_is_a_share_alike_from_both_sides_and_zero_for_equals(wire: Wire, u: list[float]):
    again = Wire.of_description(wire.description())
    assert again.description() == wire.description() and again.noop.tolist() == wire.noop.tolist()
    many, draws = len(wire.noop), np.minimum(u, 1 - 1e-9)
    one, other = wire.sampled(draws[:many]), wire.sampled(draws[-many:])
    there, back = apart(again, one, other), apart(wire, other, one)
    assert there.tolist() == back.tolist() and there.shape == (many,)
    assert there.min() >= 0.0 and there.max() <= 1.0
    assert (not there.any()) == (np.float32(wire.flat(one)).tolist() == np.float32(wire.flat(other)).tolist())
    assert not apart(wire, one, one).any()


def test_a_range_of_no_width_is_no_distance():
    assert apart(Wire.of(spaces.Box(1.0, 1.0, (1,))), [1.0], [1.0]).tolist() == [0.0]


def test_texts_of_a_conversation_are_equal_or_not(tmp_path: Path):
    path, room = tmp_path / "run.jsonl", conversation(["anna", "ben"], rounds=4)
    anna = ScriptedPersona(opening="Hello?", to=["ben"], otherwise=["And?"])

    def says(body: dict[str, Any]) -> Any:
        return {"response_text": f"{body['current_stimulus']} {len(body['conversation_context']['last_k_turns'])}"}

    with serving(says) as endpoint, Recording(ExternalPolicy(fast(endpoint.url), env=room, chat=True), path) as ben:
        room.run_synchronous({"anna": anna, "ben": ben}, seed=0)
    same, asked = against(path, says)
    assert (same.total.agreement, same.total.distance) == (1.0, None) and len(asked) == len(same.points) > 1
    other, _ = against(path, lambda body: {"response_text": same.points[0].baseline})
    assert 0.0 < (other.total.agreement or 0.0) < 1.0
    dumb, _ = against(path, lambda body: {"action": [0.0]})
    assert dumb.total.answers.counts == {"fallback INVALID_RESPONSE": len(asked)}


def changed(path: Path, change: Any) -> Path:
    """A cut-off fixture whose first decision somebody changed, sha256 included."""
    header, line = (json.loads(line) for line in path.read_text().splitlines()[:2])
    change(line)
    line["sha256"] = sha256(line["request"])
    path.write_text(f"{Header.model_validate(header).model_dump_json()}\n{json.dumps(line)}\n")
    return path


CHANGES: dict[str, Any] = {
    "no request of an agent": lambda line: line["request"].pop("decision"),
    "an action of another length": lambda line: line.update(action=[0.5, 0.5]),
    "an action that is none": lambda line: line.update(action=None),
    "a space of two lengths": lambda line: line["request"]["decision"]["action_space"].update(low=[]),
    "a mask of another length": lambda line: line["request"]["decision"].update(action_mask=[[1]]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_fixture_that_does_not_fit_is_refused_before_anything_is_sent(tmp_path: Path, change: str):
    path = changed(recorded(tmp_path / "run.jsonl"), CHANGES[change])
    with (
        no_sockets(),
        pytest.raises(FixtureError, match=r"'battery_1', decision 0 of episode 0: its .* compare a recording"),
    ):
        compare(path, "http://127.0.0.1:9/")


def test_a_recording_that_was_cut_off_is_compared_as_far_as_it_goes(tmp_path: Path):
    path = recorded(tmp_path / "run.jsonl")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    found, asked = against(path, halves)
    assert (found.whole, found.total.decisions, len(asked)) == (False, 3, 3)


@pytest.mark.parametrize("within", [-0.1, 1.5, float("nan"), True, "much"])
def test_a_share_is_a_share(tmp_path: Path, within: Any):
    with pytest.raises(ConfigError, match="must be a share of a number's range, from 0 to 1"):
        compare(tmp_path / "none.jsonl", "http://127.0.0.1:9/", within=within)


# The command


def test_the_command_tells_agreement_and_where_they_differ(tmp_path: Path):
    path = recorded(tmp_path / "run.jsonl")
    with serving(halves) as same:
        told = heron("compare", path, f"mine={same.url}").stdout
        assert "mine beside 127.0.0.1:" in told and "100 %" in told and "Where they differ" not in told
    with serving(soc_rule) as other:
        told = heron("compare", path, other.url).stdout
        assert "Where they differ most" in told and "[-0.5]" in told
        heron("compare", path, other.url, "--least", 0.5, code=1)
        asked = as_json("compare", path, other.url, "--within", 1.0)
    assert asked["total"]["agreement"] == 1.0 and asked["total"]["distance"] > 0.1
    assert [point["number"] for point in asked["points"]] == [number for number in range(STEPS) for _ in AGENTS]
    assert asked["agents"].keys() == {*AGENTS} and asked["total"]["answers"]["counts"] == {"external": 2 * STEPS}


def test_the_command_ends_with_1_where_an_answer_is_missing(tmp_path: Path):
    path = recorded(tmp_path / "run.jsonl")
    with FaultServer("refused") as dead:
        told = heron("compare", path, f"{dead.url}?hush", code=1).stdout
        asked = as_json("compare", path, dead.url, code=1)
    assert "fallback CONNECTION" in " ".join(told.split()) and "0 of 8" in told and "hush" not in told
    assert asked["total"]["agreement"] is None
    assert sum(asked["total"]["answers"]["counts"].values()) == 8


WRONG = {
    "no fixture": (["nowhere.jsonl", "http://127.0.0.1:9/"], "nowhere.jsonl: can't be read"),
    "no address": (["run.jsonl", "random"], "'random': is no address; write http(s)://HOST:PORT/..., or NAME=URL"),
    "a private address": (["run.jsonl", "https://192.168.0.9/"], "192.168.0.0/16"),
    "no key": (["run.jsonl", "http://127.0.0.1:9/", "--api-key-env", "NO_SUCH_KEY"], "'NO_SUCH_KEY' is not set"),
    "no share": (["run.jsonl", "http://127.0.0.1:9/", "--within", "2"], "from 0 to 1"),
}


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
):
    monkeypatch.chdir(tmp_path)
    recorded(tmp_path / "run.jsonl")
    assert message in heron("compare", *words, code=2).stderr
