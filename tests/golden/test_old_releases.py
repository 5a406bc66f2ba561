"""What earlier versions left behind is read to the end, run again, and gone on with where that mixes no two laws."""

import gzip
import io
import json
import pickle
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import record_release as recorded
from cli_kit import heron
from endpoint_kit import no_sockets

from heron_env import __version__, make
from heron_env.errors import ConfigError, FixtureError, ResetNeeded, RunFolderError, TraceError
from heron_env.injection import Fixture, Recorded, Recording
from heron_env.lab import RunFolder, SweepResult, load_policy, read_sweep, report_of, train
from heron_env.lab.show.report import read_sources
from heron_env.lab.traces import file
from heron_env.lab.traces.episode import EFFECTS, Episode
from heron_env.lab.traces.perfetto import perfetto_text
from heron_env.lab.traces.replaying import replay
from heron_env.net.guard import Guard
from heron_env.serve.journal import Steps
from heron_env.serve.shelf import Shelf

RELEASES = sorted(path.parent for path in Path(__file__).parent.glob("*/made.json"))
TRACES = ["answered", "disturbed", "late", "masked", "random", "random-masked", "trained"]
BY_CHANCE = ["random", "random-masked"]
OLD_RUNS = Path(__file__).parent / "runs_of_0.2.0"
LATER_REMOVED = json.loads((OLD_RUNS / "runs.json").read_text())
"""What one episode of each returned."""
OWN = {"late": {"*": recorded.Leaning()}, "masked": {"*": recorded.Choosing()}}
CLOSE = 1e-9
"""Relative, of numbers that were made on another machine; traces of the small worlds are held to the last bit."""


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def left(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what a version left, and the working directory."""
    assert request.param.name != __version__, "an unfinished version changes: keep what it leaves when it is replaced"
    copy = tmp_path / request.param.name
    shutil.copytree(request.param, copy)
    monkeypatch.chdir(copy)
    return copy


@pytest.fixture
def made(left: Path) -> Any:
    return json.loads((left / "made.json").read_text())


def told(text: str) -> str:
    """An error on a terminal, in one line."""
    return " ".join(text.split())


def keeps(old: Any, new: Any) -> bool:
    """Is everything of `old` in `new`, which may say more?"""
    if isinstance(old, dict):
        return all(name in new and keeps(value, new[name]) for name, value in old.items())
    if isinstance(old, list):
        return len(old) == len(new) and all(map(keeps, old, new))
    return bool(old == new)


class Scripted:
    """Does again what was done, whatever it is shown."""

    def __init__(self, episode: Episode, agent: str) -> None:
        done = [event for event in episode.events if event.agent == agent and event.kind in EFFECTS]
        self.actions = [event.content["values"] for event in sorted(done, key=lambda event: event.number)]
        self.asked = -1

    def forward(self, observation: np.ndarray) -> list[float]:
        self.asked += 1
        return self.actions[min(self.asked, len(self.actions) - 1)]


def test_the_first_release_is_among_them():
    assert "0.1.0" in [path.name for path in RELEASES]


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_is_read_to_the_end(left: Path, made: Any, name: str):
    episode = file.read(f"traces/{name}")
    assert episode.setting.versions == made["versions"]
    assert len(episode.handled()) == len(episode.events) + sum(m.place is not None for m in episode.messages)
    assert all(age.oldest >= 0.0 for agent in episode.world.decides for age in episode.ages(agent))
    assert len(json.loads(perfetto_text(episode))["traceEvents"]) > len(episode.messages)
    assert report_of(read_sources([f"traces/{name}"])).pictures[0].name == "timeline"
    there = json.loads(gzip.decompress(Path(f"traces/{name}/trace.json.gz").read_bytes()))
    assert keeps(there, {**json.loads(file.as_text(episode)), "heron_env": left.name})


@pytest.mark.parametrize("name", [name for name in TRACES if name not in BY_CHANCE])
def test_a_trace_is_replayed_under_any_version(left: Path, name: str):
    with pytest.raises(TraceError, match=rf"recorded by heron_env {re.escape(left.name)}, this is .*any_version=True"):
        replay(f"traces/{name}", policies=OWN.get(name))
    with no_sockets():
        done = replay(f"traces/{name}", policies=OWN.get(name), any_version=True)
    assert done.changed["heron_env"] == (left.name, __version__)
    if name in ("disturbed", "trained"):  # machines differ in the last bits of these
        assert done.now.counts == done.recorded.counts
        for agent, earned in done.recorded.outcome.rewards.items():
            np.testing.assert_allclose(done.now.outcome.rewards[agent], earned, rtol=1e-6)
    else:
        assert done.difference is None


@pytest.mark.parametrize("name", TRACES)
def test_what_was_done_gives_the_same_numbers_again(left: Path, name: str):
    episode = file.read(f"traces/{name}")
    script = {agent: Scripted(episode, agent) for agent in episode.world.decides}
    if name == "answered":
        assert replay(f"traces/{name}", policies=script, any_version=True).difference is None
        return
    done = replay(episode, policies=script, any_version=True)
    if name == "disturbed":
        np.testing.assert_allclose([*done.now.returns.values()], [*episode.returns.values()], rtol=CLOSE)
        return
    assert done.difference is None


@pytest.mark.parametrize("name", BY_CHANCE)
def test_chance_that_draws_otherwise_now_is_named_in_a_replay(left: Path, name: str):
    done = replay(f"traces/{name}", any_version=True)
    assert done.difference is None or done.difference.what.startswith("action"), done.difference
    if done.difference is not None:
        out = heron("replay", f"traces/{name}", "--any-version", code=1).stdout
        assert f"heron_env was {left.name}, is {__version__}" in out


def test_a_fixture_answers_under_any_version_without_a_socket(left: Path):
    fixture = Fixture("fixtures/whole.jsonl")
    assert fixture.whole and len(fixture.to_adr()["payloads"]) == len(fixture.decisions) == 12
    env = make(recorded.GRID, **recorded.SHORT)
    with no_sockets():
        plain = env.run_synchronous({"*": Recorded("fixtures/whole.jsonl")}, seed=5, record=["actions", "rewards"])
        compared = env.run_synchronous({"*": Recorded("fixtures/whole.jsonl", env=env)}, seed=5)
        heron("trace", recorded.GRID, "--policy", "fixtures/whole.jsonl", "--seed", "5", "-o", "max_steps=6")
    assert compared.returns == plain.returns
    answered = [found.action[0] for found in fixture.decisions.values()]
    assert sorted(answered) == sorted(float(vector[0]) for done in plain.actions.values() for _, vector in done)


def test_a_fixture_that_was_cut_off_is_gone_on_with_only_if_asked_for(left: Path):
    cut, env = Path("fixtures/cut.jsonl"), make(recorded.GRID, **recorded.SHORT)
    before = Fixture(cut)
    assert not before.whole and len(before.decisions) == 4
    with pytest.raises(FixtureError, match="cut off; continue it first"):
        Recorded(cut)
    host = before.header.baseline_agent["host"]
    url = f"http://{host}/respond"
    refused = (
        rf"cut\.jsonl: this recording was begun by heron_env {re.escape(left.name)}, this is {re.escape(__version__)}: "
        r"install that version, choose another file, or go on with Recording\(\.\.\., any_version=True\)"
    )
    with pytest.raises(FixtureError, match=refused), Recording(url, cut, env=env) as recording:
        recording.begin(5, 0)
    with Recording(url, cut, env=env, any_version=True) as recording:
        recording.begin(5, 0)
    whole = Fixture(cut)
    assert whole.whole and whole.decisions == before.decisions and whole.header == before.header


@pytest.mark.parametrize("name", ["run", "run-sb3", "run-residual"])
def test_a_run_folder_decides_as_it_did(left: Path, made: Any, name: str):
    run = RunFolder.open(name)
    env = run.make()
    assert run.config.versions == made["versions"] and run.misfit(env) == ""
    assert len(run.curve()) >= 1 and run.weights("battery")
    assert recorded.evaluated(name) == pytest.approx(made["runs"][name], rel=1e-6)
    assert env.run_event_driven(load_policy(name, env=env), schedule=recorded.LATE, seed=5).returns


@pytest.mark.parametrize("name", LATER_REMOVED)
def test_a_run_of_what_is_no_longer_trained_plays_as_it_did(name: str):
    """VDN and QMIX, and policies that see their last observations or decisions; version 0.2.0 trained them."""
    assert recorded.evaluated(str(OLD_RUNS / name)) == pytest.approx(LATER_REMOVED[name], rel=1e-6)
    assert RunFolder.open(OLD_RUNS / name).curve()


def test_a_run_of_what_is_no_longer_trained_is_not_gone_on_with(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"that run has frames=3, augment=0, which are no longer trained; start anew"):
        train(recorded.GRID, tmp_path / "next", total_steps=32, start_from=OLD_RUNS / "run-frames")


def test_a_run_folder_is_evaluated_and_trained_on(left: Path, made: Any):
    asked = ["sweep", "run", "--cases", "1", "--axis", "act_delay=0", "--processes", "1", "--out", "swept", "--json"]
    assert "trained" in heron(*asked).stdout or "run" in heron(*asked).stdout
    still = replace(recorded.TINY, hidden=(64, 64), learning_rate=1e-30, final_learning_rate=1e-30)
    quick: dict[str, Any] = {"total_steps": 32, "validations": 1, "validation_episodes": 1, "progress": False}
    after = train(recorded.GRID, "next", start_from="run", hyperparameters=still, **quick)
    assert recorded.evaluated("next") == pytest.approx(made["runs"]["run"], rel=1e-6)
    assert after.config.versions["heron_env"] == __version__


@pytest.mark.parametrize("name", ["whole", "answered"])
def test_a_sweep_is_read(left: Path, made: Any, name: str):
    result = read_sweep(f"sweeps/{name}")
    assert recorded.returns(result) == made["sweeps"][name]
    assert result.made_by == left.name
    result.write(Path("again"))
    table = json.loads(Path("again/table.json").read_text())
    assert table["heron_env"] == left.name and len(table["rows"]) == len(result.points)


def test_a_report_of_old_folders_says_which_version_made_them(left: Path):
    heron("report", "sweeps/whole", "run", "traces/late", "--out", "page")
    page = Path("page/report.html").read_text()
    assert f"heron_env {__version__}" in page
    assert f"parts of this page were made by heron_env {left.name}" in page


@pytest.mark.parametrize("name", ["whole", "cut"])
def test_an_old_sweep_is_not_gone_on_with(left: Path, name: str):
    folder = left / "sweeps" / name
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    refused = (
        f"sweeps/{name}/sweep.json holds a sweep of heron_env {left.name}, this is {__version__}, and episodes of two "
        "versions are not mixed: install that version to resume it, or choose another folder for this one"
    )
    with pytest.raises(ConfigError, match=re.escape(refused)):
        recorded.sweep().run(f"sweeps/{name}", processes=1, progress=False)
    axes = [word for axis in ("act_delay=1", "loss=0.3", "noise=0.1") for word in ("--axis", axis)]
    words = ["sweep", recorded.GRID, "random", "run", *axes, "--cases", "3"]
    assert refused in told(heron(*words, "-o", "max_steps=6", "--out", f"sweeps/{name}", code=2).stderr)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"} == before
    if name == "whole":
        with pytest.raises(ConfigError, match=re.escape(refused)):
            read_sweep("sweeps/whole").sweep.run("sweeps/whole", processes=1, progress=False)


def test_an_old_sweep_that_is_not_finished_says_who_can_finish_it(left: Path):
    refused = (
        f"sweeps/cut: 7 of 27 episodes are done; finish it with the command that began it, and heron_env {left.name}"
    )
    with pytest.raises(RunFolderError, match=re.escape(refused)):
        read_sweep("sweeps/cut")


def test_what_is_run_now_is_of_this_version(left: Path):
    asked = read_sweep("sweeps/whole").sweep
    ran: SweepResult = asked.run(processes=1, progress=False)
    assert ran.made_by == __version__


def test_the_simulations_of_a_service_stand_where_they_stood_and_go_on(left: Path, made: Any):
    shelf = Shelf(Path("serve"), guard=Guard(loopback=True))
    stand = dict(shelf)
    assert stand.keys() == made["serve"].keys()
    for name, then in made["serve"].items():  # a later version may tell more
        assert {field: stand[name].state()[field] for field in then} == then
    assert [seat["agent_id"] for seat in shelf.find("2").injected()] == ["battery_1"]
    for name in ("1", "2"):
        assert shelf.find(name).do(Steps(steps=2))["step"] == made["serve"][name]["step"] + 2
    states = {name: simulation.state() for name, simulation in shelf}
    shelf.close()
    again = Shelf(Path("serve"), guard=Guard(loopback=True))
    assert {name: simulation.state() for name, simulation in again} == states
    again.close()


def test_a_simulation_that_leads_elsewhere_says_what_to_do(left: Path):
    journal = Path("serve/1/journal.jsonl")
    first, second, third = [json.loads(line) for line in journal.read_text().splitlines()]
    second["digest"] = first["digest"]
    journal.write_text("".join(f"{json.dumps(line)}\n" for line in (first, second, third)))
    shelf = Shelf(Path("serve"), guard=Guard())
    with pytest.raises(RunFolderError, match=r"jsonl:2: its repetition gives another result; .* or remove its folder"):
        shelf.find("1").state()
    shelf.close()


@pytest.mark.parametrize("name", ["grid", "masked", "economy", "disturbed"])
def test_a_state_is_gone_on_from(left: Path, made: Any, name: str):
    env = recorded.environments()[name]
    env.reset(seed=99)
    env.set_state(pickle.loads(Path(f"states/{name}.pkl").read_bytes()))
    now = [env.simulation.truth.tolist(), *recorded.steps(env, 2)]
    np.testing.assert_allclose(now, made["states"][name], rtol=CLOSE)


def test_a_state_with_training_delays_is_refused(left: Path):
    env = recorded.environments()["grid"]
    with pytest.raises(ConfigError, match=r"of an environment with training_delays, which are gone since 0\.3"):
        env.set_state(pickle.loads(Path("states/late.pkl").read_bytes()))


def test_a_state_of_the_event_clock_is_looked_at_and_not_gone_on_from(left: Path, made: Any):
    env = recorded.environments()["grid"]
    env.set_state(pickle.loads(Path("states/event.pkl").read_bytes()))
    assert env.simulation.truth.tolist() == made["states"]["event"][0]
    with pytest.raises(ResetNeeded, match="event-driven run used this environment last"):
        env.step({})


@pytest.mark.parametrize("way", [lambda env: env, lambda env: env.start_event_driven({"*": recorded.Leaning()})])
def test_a_pickle_is_for_the_version_that_made_it(monkeypatch: pytest.MonkeyPatch, way: Any):
    env = make(recorded.GRID, **recorded.SHORT)
    env.reset(seed=1)
    with monkeypatch.context() as patch:
        patch.setattr("heron_env.envs.snapshot.__version__", "0.1.9")
        old = pickle.dumps(way(env))
        pickle.loads(old)
    refused = f"pickled by heron_env 0.1.9, this is {re.escape(__version__)}: a pickle is for the version that made it"
    with pytest.raises(ConfigError, match=refused):
        pickle.loads(old)
    state = env.__getstate__()
    del state["heron_env"]  # as 0.1.0 had it
    with pytest.raises(ConfigError, match=r"pickled by heron_env 0\.1\.0, this is"):
        env.__setstate__(state)


class Noting(pickle.Unpickler):
    """Notes which names a pickle binds."""

    def __init__(self, data: bytes) -> None:
        self.names: set[str] = set()
        super().__init__(io.BytesIO(data))

    def find_class(self, module: str, name: str) -> Any:
        self.names.add(f"{module}.{name}")
        return super().find_class(module, name)


def test_a_state_binds_no_module_of_ours_but_that_of_disturbances(left: Path):
    bound: set[str] = set()
    for path in Path("states").iterdir():
        reader = Noting(path.read_bytes())
        reader.load()
        bound |= reader.names
    assert {name for name in bound if not name.startswith("numpy")} == {"heron_env.scheduling.disturbances.Disturbance"}
