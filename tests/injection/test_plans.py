"""Plans over HTTP: what an endpoint answers is played as the same answer in process, recorded and replayed.

Planted once and caught: masks of all rows, rows that are left out, rules that are lost, both of plan and action taken,
unknown fields taken, tiers without running, remaining without its first, float32 for float64 and the other way round,
fixtures without plans, nothing new as the no-op, what is served or stands in without running.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from cli_kit import heron
from endpoint_kit import fast, no_sockets, question, serving
from gymnasium import spaces
from plan_worlds import Integrator, Switch, feedback, integrate, line, rolled_out

from heron_env import Answer, Plan, Planned, ScheduleConfig, make, under_network
from heron_env.core.plans import ENDS, MERGES, Running
from heron_env.core.policy import Asked
from heron_env.errors import ConfigError, ExternalAgentError, FixtureError
from heron_env.injection import ExternalPolicy, Recorded, Recording, compare, serve_policy
from heron_env.injection.answers import on_wire, plan_of
from heron_env.injection.contract import Request, Wire, schema
from heron_env.injection.policy import Due
from heron_env.injection.questions import Questions, Telling
from heron_env.injection.sdk import Served
from heron_env.injection.setting import EnvironmentFacts
from heron_env.net.outcome import Code, Failure

LATE = ScheduleConfig(thinking=2.0, act_delay=1.0, obs_delay=1.0, tick_interval=2.0)
RUNNING = Running(3, 1, (np.array([0.5]), np.array([-0.25])), 1, 2, 1, 0)


def planned(vector: Any, fixed: list[float], k: int = 8) -> list[list[float]]:
    """k pushes of the rule after those that are fixed."""
    state, rows = np.asarray(vector, np.float64), list[list[float]]()
    for place in range(k + len(fixed)):
        rows.append([fixed[place] if place < len(fixed) else feedback(state)])
        state = integrate(state, rows[-1][0])
    return rows


class Local:
    """Answers as `remote` does, in this process."""

    def __init__(self, **rules: Any) -> None:
        self.rules = rules

    def answer(self, asked: Asked) -> Answer:
        if asked.turn % 3 == 2:
            return Answer(None)
        running = asked.running
        fixed = [float(action[0]) for action in running.remaining[: running.prefix]]
        fixed = [] if self.rules.get("merge") == "restart" else fixed
        return Answer(Plan(planned(asked.vector, fixed), **self.rules))


def remote(**rules: Any) -> Any:
    """The endpoint's side; at a third of the steps: nothing new."""

    def brain(body: dict[str, Any]) -> dict[str, Any]:
        decision = body["decision"]
        if decision["step"] % 3 == 2:
            return {"plan": None}
        running = decision["running"]
        fixed = [action[0] for action in running["remaining"][: running["prefix"]]]
        fixed = [] if rules.get("merge") == "restart" else fixed
        return {"plan": planned(decision["observation"]["vector"], fixed), **rules}

    return brain


def course(policy: Any, env: Any, schedule: Any = LATE) -> Any:
    return under_network(env, schedule, noop=None).run_event_driven({"*": policy}, seed=3)


RULES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"merge": merge, "end": end}, {"merge": merge, "end": end}) for merge in MERGES for end in ENDS
] + [
    ({}, {}),
    (
        {"period": 2.0, "start": 1.0, "merge": "blend", "weight": 0.25},
        {"period_s": 2.0, "start_s": 1, "merge": "blend", "weight": 0.25},
    ),
]


@pytest.mark.parametrize(("ours", "theirs"), RULES)
@pytest.mark.parametrize("tier", ["minimal", "full"])
def test_a_plan_over_http_is_played_as_in_process(ours: Any, theirs: Any, tier: Any):
    here, there = Integrator(wind=1.0), Integrator(wind=1.0)
    local = course(Local(**ours), here)
    with serving(remote(**theirs)) as endpoint:
        far = course(ExternalPolicy(fast(endpoint.url, privacy_tier=tier), fallback="fail"), there)
    assert far.same_course(local) and far.messages == local.messages and there.pushes == here.pushes
    assert len(set(here.pushes)) > 3


def test_in_an_environment_of_ours_too_and_it_is_replayed(tmp_path: Path):
    path, late = tmp_path / "run.jsonl", ScheduleConfig(thinking=0.2, act_delay=0.1)
    runs = [line().run_event_driven({"cart": Local(merge="blend")}, seed=3, schedule=late)]
    assert runs[0].plans["cart"].in_force > 3

    def single(body: dict[str, Any]) -> dict[str, Any]:
        """Our vectors are float32, and their decimals the shortest."""
        body["decision"]["observation"]["vector"] = np.float32(body["decision"]["observation"]["vector"]).tolist()
        return remote(merge="blend")(body)  # type: ignore[no-any-return]

    with serving(single) as endpoint:
        env = line()
        with Recording(ExternalPolicy(fast(endpoint.url), env=env, fallback="fail"), path) as recording:
            runs.append(env.run_event_driven({"cart": recording}, seed=3, schedule=late))
    with no_sockets():
        runs.append(line().run_event_driven({"cart": Recorded(path)}, seed=3, schedule=late))
    assert all(run.same_course(runs[0]) and run.messages == runs[0].messages for run in runs)
    assert line().run_synchronous({"cart": Local()}, seed=3).plans["cart"].sent == 20


def test_a_recorded_run_of_plans_is_replayed_bit_for_bit_without_a_socket(tmp_path: Path):
    path, live, again = tmp_path / "run.jsonl", Integrator(wind=1.0), Integrator(wind=1.0)
    with serving(remote(merge="ensemble", weight=0.1)) as endpoint:
        with Recording(ExternalPolicy(fast(endpoint.url), fallback="fail"), path) as recording:
            first = course(recording, live)
        with no_sockets():
            replayed = course(Recorded(path), again)
        assert replayed.same_course(first) and again.pushes == live.pushes
        with pytest.raises(FixtureError, match="it is a plan, and single actions are compared"):
            compare(path, fast(endpoint.url))
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:-1]]
    nothing, some = ([line for line in lines if (line["plan"]["plan"] is None) is none] for none in (True, False))
    assert all(line["response"] == {"plan": None} for line in nothing) and min(len(nothing), len(some)) > 3
    assert all(line["response"]["plan"] == line["plan"]["plan"] and line["plan"]["weight"] == 0.1 for line in some)
    assert all(line["request"]["decision"]["running"]["remaining"] for line in lines)
    damaged = path.with_name("damaged.jsonl")
    damaged.write_text(path.read_text().replace('"merge":"ensemble"', '"merge":"all"'))
    with pytest.raises(FixtureError, match=r"plan\.merge"):
        Recorded(damaged)


class Anything(gymnasium.Env[Any, Any]):
    """Takes any action of its space, and notes it."""

    observation_space = spaces.Box(-10.0, 10.0, (2, 2), np.float32)

    def __init__(self, space: Any, shown: Any = np.float32) -> None:
        self.action_space, self.shown = space, shown

    def reset(self, **of: Any) -> Any:
        super().reset(**of)
        self.done = list[Any]()
        return np.full((2, 2), 0.1, self.shown), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        self.done.append(action)
        return np.full((2, 2), 0.1, self.shown), 0.0, False, len(self.done) == 4, {}


PAIR = spaces.Dict({"c": spaces.Box(-1.0, 1.0, (2,), np.float32), "d": spaces.MultiDiscrete([2, 3])})
PLANS: dict[str, tuple[Any, list[Any], Any]] = {
    "box": (spaces.Box(-1.0, 1.0, (2,), np.float32), [[0.1, 0.2], [0.3, 0.4]], None),
    "wide box": (spaces.Box(-1.0, 1.0, (1,), np.float64), [[0.1], [0.2]], None),
    "discrete": (spaces.Discrete(3), [1, 2], 0),
    "several": (spaces.MultiDiscrete([2, 3]), [[1, 2], [0, 1]], np.zeros(2, np.int64)),
    "mixed": (PAIR, [{"c": [0.1, 0.2], "d": [1, 2]}, {"c": [0.3, 0.4], "d": [0, 0]}],
              {"c": np.zeros(2, np.float32), "d": np.zeros(2, np.int64)}),
}  # fmt: skip


def written(row: Any, space: Any) -> Any:
    """An action as it comes back from an environment that takes float32 but for the wide box."""
    if isinstance(row, dict):
        return {"c": written(row["c"], space), "d": row["d"]}
    numbers = np.float64 if space.dtype == np.float64 else np.float32
    return [float(numbers(each)) if isinstance(each, float) else each for each in row] if isinstance(row, list) else row


@pytest.mark.parametrize("shown", [np.float32, np.float64])
@pytest.mark.parametrize("name", PLANS)
def test_a_black_box_of_any_space_gets_actions_of_its_own_type(name: str, shown: Any):
    space, rows, noop = PLANS[name]
    for answer, done in (({"plan": rows}, rows), ({"action": rows[0]}, rows[:1])):
        env = Anything(space, shown)
        late = ScheduleConfig(act_delay=1.0, tick_interval=9.0)
        with serving(lambda body, answer=answer: answer) as endpoint:
            policy = ExternalPolicy(fast(endpoint.url), fallback="fail")
            under_network(env, late, noop=noop).run_event_driven({"*": policy}, seed=0)
        assert [Wire.of(space).written(action) for action in env.done[1:]] == [written(done[-1], space)] * 3
        assert np.array(endpoint.asked[0]["decision"]["observation"]["vector"], shown).tolist() == [shown(0.1)] * 4


def test_what_an_endpoint_cannot_read_is_refused_by_name():
    class Pictured(Anything):
        def reset(self, **of: Any) -> Any:
            return {"picture": super().reset(**of)[0]}, {}

    class Endless(Anything):
        def reset(self, **of: Any) -> Any:
            return np.array([[0.0, np.inf], [0.0, 0.0]]), super().reset(**of)[1]

    for env, words in (
        (Pictured(PLANS["box"][0]), "'agent' sees a dict, endpoints get numbers; put FlattenObservation around it"),
        (Endless(PLANS["box"][0]), "'agent' sees 1 as no finite number"),
    ):
        with pytest.raises(ConfigError, match=words):
            under_network(env).run_event_driven({"*": ExternalPolicy("http://127.0.0.1:9/")}, seed=0)


@pytest.mark.parametrize("tier", ["minimal", "basic", "full"])
def test_an_endpoint_reads_what_its_own_actuator_does_in_every_tier(tier: Any):
    asker = Questions(EnvironmentFacts.of(None), Telling(privacy_tier=tier))
    request = asker.request(question(running=RUNNING)).model_dump(mode="json")
    assert request["decision"]["running"] == {
        "number": 3, "index": 1, "remaining": [[0.5], [-0.25]], "age": 1, "prefix": 2, "left": 1, "delay": 0,
    }  # fmt: skip
    assert asker.request(question()).decision.running is None
    assert {"running"} <= schema()["$defs"]["Decision"]["properties"].keys()


BAD: dict[str, tuple[Any, str, str]] = {
    "no row": ({"plan": []}, "INVALID_RESPONSE", "plan"),
    "no list": ({"plan": 0.5}, "INVALID_RESPONSE", "plan"),
    "beside an action": ({"plan": [[0.5]], "action": [0.5]}, "INVALID_RESPONSE", "in the place of action"),
    "an unknown field": ({"plan": [[0.5]], "period": 1.0}, "INVALID_RESPONSE", "nothing unknown"),
    "rules without a plan": ({"action": [0.5], "merge": "drop"}, "INVALID_RESPONSE", "stand beside a plan"),
    "rules of nothing": ({"plan": None, "end": "hold"}, "INVALID_RESPONSE", "stand beside a plan"),
    "a row of two": ({"plan": [[0.5], [0.5, 0.5]]}, "INVALID_ACTION", "plan's action 1 is none of 'battery_1'"),
    "a row out of bounds": ({"plan": [[0.5], [0.0], [7.0]]}, "INVALID_ACTION", "plan's action 2 .*bounds"),
    "a row of texts": ({"plan": [["a"]]}, "INVALID_ACTION", "plan's action 0"),
    "no time": ({"plan": [[0.5]], "period_s": 0.0}, "INVALID_RESPONSE", "period_s"),
    "too short a time": ({"plan": [[0.5]], "period_s": 1e-12}, "INVALID_RESPONSE", "none that a plan can have"),
    "a time that is true": ({"plan": [[0.5]], "period_s": True}, "INVALID_RESPONSE", "period_s"),
    "a start in years": ({"plan": [[0.5]], "start_s": 1e9}, "INVALID_RESPONSE", "none that a plan can have"),
    "a start in words": ({"plan": [[0.5]], "start_s": "now"}, "INVALID_RESPONSE", "start_s"),
    "another merge": ({"plan": [[0.5]], "merge": "sum"}, "INVALID_RESPONSE", "merge"),
    "another end": ({"plan": [[0.5]], "end": "repeat"}, "INVALID_RESPONSE", "end"),
    "a weight below 0": ({"plan": [[0.5]], "weight": -1.0}, "INVALID_RESPONSE", "weight"),
    "too much weight": ({"plan": [[0.5]], "merge": "blend", "weight": 2.0}, "INVALID_RESPONSE", "none that a plan can"),
    "nothing": ({}, "INVALID_ACTION", "its action is none"),
    "null for an action": ({"action": None}, "INVALID_ACTION", "its action is none"),
}


def due(**changes: Any) -> Any:
    policy = ExternalPolicy(fast("http://127.0.0.1:9/", clip=changes.pop("clip", False)))
    return Due(question(**changes), policy.questions, policy.endpoint)


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_plan_has_the_code_of_what_is_wrong(name: str):
    answer, code, words = BAD[name]
    with pytest.raises(Failure, match=words) as caught:
        due().check(answer)
    assert caught.value.code is Code(code)


def test_what_is_left_out_or_null_is_as_plan_has_it():
    unset = dict.fromkeys(("period_s", "start_s", "merge", "end", "weight", "action", "letters", "request_id"))
    for answer in ({"plan": [[0.5]]}, {"plan": [[0.5]], **unset}):
        reading, plan = due().check(answer), Plan([[0.5]])
        found = plan_of(reading.plan, Wire.of(question().space))
        assert [getattr(found, name) for name in ("period", "start", "merge", "end", "weight")] == [
            getattr(plan, name) for name in ("period", "start", "merge", "end", "weight")
        ]
        assert reading.action is None and found.actions[0].tolist() == [0.5]
    clipped = due(clip=True).check({"plan": [[0.5], [7.0]]})
    assert clipped.plan.plan == [[0.5], [1.0]] and clipped.code == "CLIPPED"
    thought = due().check({"plan": [[0.5]], "reasoning": "canary"})
    assert "canary" not in str(thought) and thought.dropped == 1


def test_the_mask_judges_what_falls_when_it_was_asked_and_nothing_later():
    closed = {"space": spaces.Discrete(3), "mask": np.array([1, 0, 1], np.int8)}
    assert due(**closed).check({"plan": [2, 1]}).plan.plan == [2, 1]
    assert due(**closed).check({"plan": [1, 1], "start_s": 1.0}).plan.plan == [1, 1]
    with pytest.raises(Failure, match=r"plan's action 0 .*mask"):
        due(**closed).check({"plan": [1, 2]})
    env = Switch()
    with serving(lambda body: {"plan": [2, 1, 1], "end": "noop"}) as endpoint:
        policy = ExternalPolicy(fast(endpoint.url), fallback="fail")
        result = under_network(env, ScheduleConfig(tick_interval=20.0), noop=0).run_event_driven({"*": policy}, seed=0)
    assert env.taken[:4] == [2, 0, 1, 0] and result.masked["agent"] == 1


ROUNDED = Plan(np.ones((2, 1), np.float32), np.float32(0.5), 1, "blend", "noop", np.float32(0.5))


@pytest.mark.parametrize("plan", [Plan([[0.5], [0.25]]), ROUNDED, None])
def test_a_plan_of_ours_comes_back_from_the_wire_as_it_was(plan: Any):
    wire = Wire.of(question().space)
    action, written = on_wire(plan, wire)
    assert action is None and written is not None
    again = plan_of(type(written).model_validate(json.loads(written.model_dump_json())), wire)
    if plan is None:
        assert again is None
    else:
        names = ("period", "start", "merge", "end", "weight")
        assert [getattr(again, name) for name in names] == [getattr(plan, name) for name in names]
        assert np.array_equal(again.actions, plan.actions)


def test_a_local_policy_that_plans_stands_in():
    fallback = Planned(lambda seen, running=None: planned(seen, [float(a[0]) for a in running.remaining]), replan=4)
    here, there = Integrator(), Integrator()
    local = course(fallback, here)
    with serving(lambda body: (500, {})) as endpoint:
        far = course(ExternalPolicy(fast(endpoint.url), fallback=fallback), there)
    assert far.same_course(local) and len(set(there.pushes)) > 10
    rule, noted = Integrator(), list[int]()

    def reader(seen: Any, running: Any) -> Any:
        noted.append(running.number)
        return Plan(rolled_out(4)(seen))

    with serving(lambda body: (500, {})) as endpoint:
        course(ExternalPolicy(fast(endpoint.url), fallback=reader), rule)
        with pytest.raises(ConfigError, match="the local policy's action None is none of 1 finite"):
            course(ExternalPolicy(fast(endpoint.url), fallback=lambda seen: None), Integrator())
        with pytest.raises(ExternalAgentError, match="INTERNAL"):
            course(ExternalPolicy(fast(endpoint.url), fallback="fail"), Integrator())
    assert len(set(rule.pushes)) > 10 and max(noted) > 2


def test_a_served_policy_reads_what_runs_and_answers_with_a_plan():
    def grid() -> Any:
        return make("heron/BatteryGrid-v0", num_batteries=1, max_steps=4)

    noted = list[Any]()

    def plan(vector: Any, running: Any = None) -> Any:
        noted.append(running)
        return Plan([[0.5], [0.25]], merge="blend") if running.number else None

    env = grid()
    facts = EnvironmentFacts.of(env)
    for policy, agent in (
        (plan, "battery_1"),
        (Planned(lambda vector, running=None: plan(vector, running).actions), "battery_1"),
    ):
        served = Served({"*": policy}, env, 0)
        vector = env.observation_space(agent).sample()
        asked = question(
            agent,
            vector=vector,
            names=tuple(env.observation_names(agent)),
            space=env.action_space(agent),
            running=RUNNING,
        )
        body = Questions(facts, Telling()).request(asked).model_dump_json().encode()
        answer = served.respond(body)
        assert answer["plan"] == [[0.5], [0.25]] and "action" not in answer
        assert [a.tolist() for a in noted[-1].remaining] == [[0.5], [-0.25]] and noted[-1].prefix == 2
    nothing = question(agent, vector=vector, names=asked.names, space=asked.space, running=Running(number=0))
    answer = Served({"*": plan}, env, 0).respond(
        Questions(facts, Telling()).request(nothing).model_dump_json().encode()
    )
    assert answer["plan"] is None and Request.model_validate_json(body).decision.running.number == 3
    with serve_policy(plan, grid()) as server:
        assert server.url


def test_commands_ask_an_endpoint_about_an_environment_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    words, late = ["-o", "dt=0.05"], ["--axis", "thinking=0.1", "--cases", "2", "--processes", "1"]
    with serving(lambda body: {"plan": [[1.0], [-1.0]]}) as endpoint:
        heron("sweep", "gymnasium:Pendulum-v1", endpoint.url, *words, *late, "--out", "out")
        heron("trace", "gymnasium:Pendulum-v1", "--policy", endpoint.url, *words, "--out", "there")
    assert endpoint.asked[-1]["decision"]["running"]["number"] >= 0
    with no_sockets():
        heron("replay", "there", "--trust", "gymnasium:Pendulum-v1")


def test_the_example_of_openpi_plays_the_chunks_of_its_server():
    for module in ("openpi_client", "websockets", "msgpack"):
        pytest.importorskip(module)
    command = [sys.executable, str(Path(__file__).parents[2] / "examples" / "openpi_chunks.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.count("return -") == 3, done.stderr
