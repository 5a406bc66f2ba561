"""The block `agent_injection:`: the specification's keys, every mistake with file and line, and what becomes of it."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_kit import heron
from endpoint_kit import question, serving

from heron_env import from_config, make
from heron_env.errors import ConfigError, DeclarationError
from heron_env.injection import ExternalPolicy, Recorded, Recording, load_agents, policies
from heron_env.testing import Source
from heron_env.testing import inspect as inspected

ADR = """\
simulation:
  name: "Agent Benchmark"
  agent_injection:
    endpoints:
      - agent_id: "lisa"
        url: "https://my-agent.example.com/respond"
        api_key_env: "MY_AGENT_API_KEY"
        timeout_seconds: 30
        privacy_tier: "basic"
    circuit_breaker:
      failure_threshold: 5
      half_open_probe_interval_seconds: 30
      success_threshold: 2
    concurrency:
      max_inflight_per_endpoint: 10
      qps_cap: 100
    fallback:
      strategy: "simulated_agent"
    benchmark:
      record: true
      fixture_path: "./benchmarks/run-{timestamp}.json"
"""


def block(*endpoints: str, more: str = "") -> str:
    return "agent_injection:\n  endpoints:\n" + "".join(f"    - {{{entry}}}\n" for entry in endpoints) + more


def test_the_specifications_own_file_is_read():
    from heron_env.declared.configuration import injection_of
    from heron_env.files.yaml_file import YamlFile

    config = injection_of(YamlFile.parse(ADR, "agents.yaml"))
    assert config.endpoints[0].agent_id == "lisa"
    assert config.endpoints[0].api_key_env == "MY_AGENT_API_KEY"
    assert config.circuit_breaker.half_open_probe_interval_seconds == 30.0
    assert config.concurrency.qps_cap == 100
    assert config.benchmark.record
    assert config.fallback.strategy == "simulated_agent"


LOCAL = "url: 'http://127.0.0.1:9/'"
WRONG = {
    "a key in clear": (block(f"agent_id: a, {LOCAL}, api_key: sk-hush"), 3, "write api_key_env"),
    "a key for its name": (block(f"agent_id: a, {LOCAL}, api_key_env: sk-hush"), 3, "environment variable in"),
    "a number for its name": (block(f"agent_id: a, {LOCAL}, api_key_env: 778899"), 3, "environment variable in"),
    "a password in the url": (block("agent_id: a, url: 'https://u:hush@x.org/'"), 3, "user name, password"),
    "http": (block("agent_id: a, url: 'http://agents.example.org/'"), 3, "must be https"),
    "a private address": (block("agent_id: a, url: 'https://192.168.0.9/'"), 3, "192.168.0.0/16"),
    "no url": (block("agent_id: a"), 3, "must be given"),
    "an unknown tier": (block(f"agent_id: a, {LOCAL}, privacy_tier: ful"), 3, "Did you mean 'full'?"),
    "an unknown key": (block(f"agent_id: a, {LOCAL}, timeout: 3"), 3, "unknown key"),
    "a negative timeout": (block(f"agent_id: a, {LOCAL}, timeout_seconds: -1"), 3, "must be > 0"),
    "an agent twice": (block(f"agent_id: a, {LOCAL}", f"agent_id: a, {LOCAL}"), 4, "see endpoints[0]"),
    "two timeouts at one url": (
        block(f"agent_id: a, {LOCAL}", f"agent_id: b, {LOCAL}, timeout_seconds: 3"), 4, "must be 30.0 as for the other",
    ),
    "no endpoint": ("agent_injection: {endpoints: []}", 1, "at least one endpoint"),
    "an unknown strategy": (block(f"agent_id: a, {LOCAL}", more="  fallback: {strategy: fale}"), 4, "mean 'fail'?"),
    "a trait": (block(f"agent_id: a, {LOCAL}", more="  personas: {a: {name: A, traits: {calm: 2}}}"), 4, "from 0 to 1"),
    "tokens without a rate": (
        block(f"agent_id: a, {LOCAL}", more="  latency: {mode: tokens}"), 4, "must be given with mode 'tokens'",
    ),
    "a rate without tokens": (
        block(f"agent_id: a, {LOCAL}", more="  latency: {tokens_per_second: 50}"), 4, "and only then",
    ),
    "half an inflight": (block(f"agent_id: a, {LOCAL}", more="  concurrency: {qps_cap: 0}"), 4, "must be >= 1"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", WRONG)
def test_every_mistake_is_told_with_file_and_line(tmp_path: Path, mistake: str):
    text, line, words = WRONG[mistake]
    path = tmp_path / "agents.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(DeclarationError) as caught:
        load_agents(path)
    assert f"agents.yaml:{line}: " in str(caught.value)
    assert words in str(caught.value)
    assert "hush" not in str(caught.value) and "778899" not in str(caught.value)
    assert words.split(" '")[0] in heron("check", path, code=2).stderr.replace("\n", " ")


def test_validate_tells_what_the_block_says(tmp_path: Path):
    path = tmp_path / "agents.yaml"
    path.write_text(block(f"agent_id: battery, {LOCAL}"), "utf-8")
    assert "battery: http://127.0.0.1:9, tier basic" in heron("check", path).output
    heron("check", path, "--env", "heron/BatteryGrid-v0")
    path.write_text(block(f"agent_id: batery, {LOCAL}"), "utf-8")
    told = heron("check", path, "--env", "heron/BatteryGrid-v0", code=2).stderr
    assert "agents.yaml:3: " in told and "Did you mean 'battery'?" in told


def test_agents_of_one_endpoint_share_a_policy_and_a_group_may_be_named(tmp_path: Path):
    env = make("heron/BatteryGrid-v0", num_batteries=3)
    path = tmp_path / "agents.yaml"
    other = "agent_id: battery_2, url: 'http://127.0.0.1:9/', privacy_tier: full"
    path.write_text(block(f"agent_id: battery, {LOCAL}", other), "utf-8")
    chosen = policies(path, env)
    assert sorted(chosen) == ["battery_1", "battery_2", "battery_3"]
    assert chosen["battery_1"] is chosen["battery_3"]
    assert chosen["battery_2"] is not chosen["battery_1"]
    assert chosen["battery_2"].line is chosen["battery_1"].line
    assert chosen["battery_2"].endpoint.privacy_tier == "full"
    with pytest.raises(DeclarationError, match="Unknown agent 'lisa'"):
        path.write_text(block(f"agent_id: lisa, {LOCAL}"), "utf-8")
        policies(path, env)
    with pytest.raises(DeclarationError, match=r"'system_agent'\. There are battery_1"):
        path.write_text(block(f"agent_id: system_agent, {LOCAL}"), "utf-8")
        policies(path, env)


FIRST = "country_1"


@pytest.fixture(scope="module")
def economy() -> str:
    """The text of a declared world, without the block."""
    made = make("heron/Economy-v0")
    return (Path(inspect.getfile(type(made.engine))).parent / "economy.yaml").read_text("utf-8")


def injected(folder: Path, world: str, url: str, more: str = "") -> Any:
    path = folder / "world.yaml"
    path.write_text(world + "\n" + block(f"agent_id: {FIRST}, url: '{url}'", more=more), "utf-8")
    return from_config(path)


def test_a_world_with_the_block_has_external_policies_and_nobody_else_changes(tmp_path: Path, economy: str):
    with serving(lambda body: {"action": [0.25]}) as endpoint:
        env = injected(tmp_path, economy, endpoint.url)
        first, *others = env.possible_agents
        agents = {agent.agent_id: agent for agent in env.hierarchy.agents}
        assert isinstance(agents[first].policy, ExternalPolicy)
        assert agents[first].injected
        assert not any(agents[other].injected for other in others)
        assert agents[first].policy.questions.setting.agents[first].units


def test_the_callers_own_policy_wins_by_name_or_group_and_the_star_does_not(tmp_path: Path, economy: str):
    env = injected(tmp_path, economy, "http://127.0.0.1:9/")
    first, *others = env.possible_agents
    group = next(name for name, members in env.groups.items() if first in members)
    mine, star = (lambda vector: [0.0]), (lambda vector: [1.0])
    for given in ({"*": star, first: mine}, {"*": star, group: mine}):
        did = env.run_synchronous(given, seed=0, record=("actions",)).actions[first]
        assert {action.item() for _, action in did} == {0.0}, "what the caller's own policy decides"
    env.run_synchronous({"*": mine}, seed=0)
    sources = inspected(env).sources
    assert sources[first] is Source.FALLBACK, "its own policy was asked, and found nobody"
    assert {sources[other] for other in others} == {Source.EXPLICIT}, "the star decides for the others"


def test_a_recorded_world_is_finished_when_it_is_closed(tmp_path: Path, economy: str):
    fixture = tmp_path / "fixtures" / "run.jsonl"
    with serving(lambda body: {"action": [0.25]}) as endpoint:
        more = f"  benchmark: {{record: true, fixture_path: '{fixture.as_posix()}'}}\n"
        env = injected(tmp_path, economy, endpoint.url, more)
        policy = env.hierarchy.agents[env.hierarchy.index[FIRST]].policy
        assert isinstance(policy, Recording)
        names = tuple(env.observation_names(FIRST))
        asked = question(FIRST, names=names, vector=np.zeros(len(names), np.float32))
        policy.begin(7, 0)
        live = policy.answer(asked)
        env.close()
    assert Recorded(fixture).answer(asked).action.tolist() == live.action.tolist()


def test_a_world_names_its_own_agents(tmp_path: Path, economy: str):
    path = tmp_path / "world.yaml"
    path.write_text(economy + "\n" + block(f"agent_id: {FIRST}x, {LOCAL}"), "utf-8")
    with pytest.raises(ConfigError, match=r"world\.yaml:\d+: agent_injection\.endpoints\[0\]\.agent_id: Unknown agent"):
        from_config(path)
