"""What a run folder, a sweep or a trace may have run: what is registered, or vouched for by name; nothing else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_kit import heron
from training_kit import trained
from unvouched import RAN

from heron_env import load_policy, make
from heron_env.errors import ConfigError, Untrusted
from heron_env.lab import RunFolder, Sweep, read_sweep, record_episode
from heron_env.lab.sweep.executors import finished
from heron_env.lab.traces import file
from heron_env.lab.traces.replaying import replay
from heron_env.trust import VARIABLE, trusting, vouched
from heron_env.worlds.economy import WORLD

OWN = "unvouched:own"
EVIL, EVIL_POLICY = "unvouched:evil", "unvouched:Evil"
SMALL = {"num_batteries": 2, "max_steps": 4}


@pytest.fixture(autouse=True)
def nothing_ran(monkeypatch: pytest.MonkeyPatch):
    RAN.clear()
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder of an environment that is not registered."""
    pytest.importorskip("stable_baselines3")
    return trained(tmp_path_factory.mktemp("run"), OWN, env_options=SMALL).path


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    Sweep.of(OWN, {"random": "random"}, [], cases=2, options=SMALL).run(folder, processes=1)
    return folder


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace")
    file.write(record_episode(OWN, "random", options=SMALL), folder)
    return folder


def naming(folder: Path, name: str, to: Path, env_id: str = EVIL, **options: Any) -> Path:
    """A copy whose environment is another."""
    for path in folder.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    text = json.loads((to / name).read_text())
    if name == "trace.json":
        text["setting"] |= {"env_id": env_id, "options": {**text["setting"]["options"], **options}}
    else:
        text["env_id" if "env_id" in text else "env"] = env_id
        text["env_options" if "env_options" in text else "options"] |= options
    (to / name).write_text(json.dumps(text))
    return to


def says_how(error: BaseException | str, name: str, source: str) -> None:
    told = str(error)
    assert source in told and repr(name) in told
    assert f"--trust {name}" in told and f"trust={name!r}" in told and f"{VARIABLE}={name}" in told


@pytest.mark.parametrize(
    "use",
    [load_policy, lambda path: RunFolder.open(path).make(), lambda path: RunFolder.open(path).env_id],
    ids=["load_policy", "make", "env_id"],
)
def test_a_run_folder_runs_nothing_that_nobody_vouched_for(run: Path, tmp_path: Path, use: Callable[[Path], Any]):
    with pytest.raises(Untrusted) as caught:
        use(naming(run, "config.json", tmp_path))
    says_how(caught.value, EVIL, str(tmp_path / "config.json"))
    assert RAN == []


@pytest.mark.parametrize("words", [("sweep", "--axis", "loss=0"), ("trace",)], ids=lambda words: words[0])
def test_no_command_runs_what_a_run_folder_names(run: Path, tmp_path: Path, words: tuple[str, ...]):
    done = heron(*words[:1], naming(run, "config.json", tmp_path), *words[1:], "--out", tmp_path / "out", code=2)
    assert len(done.stderr.splitlines()) == 1
    says_how(done.stderr, EVIL, str(tmp_path / "config.json"))
    assert RAN == [] and not (tmp_path / "out").exists()


def test_a_trace_runs_nothing_that_nobody_vouched_for(traced: Path, tmp_path: Path):
    with pytest.raises(Untrusted) as caught:
        replay(naming(traced, "trace.json", tmp_path))
    says_how(caught.value, EVIL, str(tmp_path))
    heron("replay", tmp_path, code=2)
    with pytest.raises(Untrusted):
        replay(file.read(tmp_path))
    assert RAN == []


def test_a_sweep_that_is_read_back_runs_nothing_that_nobody_vouched_for(swept: Path, tmp_path: Path):
    result = read_sweep(naming(swept, "sweep.json", tmp_path))
    assert result.point("random").values == read_sweep(swept).point("random").values
    with pytest.raises(Untrusted) as caught:
        result.sweep.run(processes=1)
    says_how(caught.value, EVIL, str(tmp_path / "sweep.json"))
    assert RAN == []


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["config.json", "sweep.json", "trace.json"])
def test_a_report_goes_without_what_it_may_not_build(run: Path, swept: Path, traced: Path, tmp_path: Path, name: str):
    pytest.importorskip("matplotlib")
    given = {"config.json": run, "sweep.json": swept, "trace.json": traced}[name]
    (tmp_path / "given").mkdir()
    heron("report", naming(given, name, tmp_path / "given"), "--out", tmp_path / "r")
    page = (tmp_path / "r" / "report.html").read_text()
    assert "Not drawn: " in page and f"--trust {EVIL}" in page
    assert RAN == []
    heron("report", given, "--trust", OWN, "--out", tmp_path / "r")
    assert "own" in RAN
    assert "Not drawn: " not in (tmp_path / "r" / "report.html").read_text()


@pytest.mark.parametrize("how", ["argument", "scope", "variable", "object"])
def test_what_is_vouched_for_is_run(run: Path, how: str, monkeypatch: pytest.MonkeyPatch):
    env = make(OWN, **SMALL)
    if how == "argument":
        policies = load_policy(run, trust=OWN)
    elif how == "scope":
        with trusting("another:one"), trusting(OWN):
            policies = load_policy(run)
        assert vouched() == frozenset()
    elif how == "variable":
        monkeypatch.setenv(VARIABLE, f"another:one, {OWN}")
        policies = load_policy(run)
    else:
        RAN.clear()
        policies = load_policy(run, env=env)
        assert RAN == []
    assert set(env.run_synchronous(policies, seed=0).returns) >= {"battery_1"}


def test_the_id_that_a_call_names_is_vouched_for_in_that_call(run: Path):
    Sweep.of(OWN, {"mine": str(run)}, [], cases=1, options=SMALL).run(processes=1)
    assert record_episode(OWN, str(run), options=SMALL).outcome.end_time > 0.0
    with pytest.raises(Untrusted):
        load_policy(run)
    with pytest.raises(Untrusted):
        Sweep.of("heron/BatteryGrid-v0", {"mine": str(run)}, [], cases=1, options=SMALL)
    Sweep.of("heron/BatteryGrid-v0", {"mine": str(run)}, [], cases=1, options=SMALL, trust=OWN).run(processes=1)


def test_the_id_that_a_command_names_is_vouched_for_in_that_command(run: Path, tmp_path: Path):
    more = ("--processes", 1, "--out", tmp_path / "out")
    heron("sweep", OWN, run, "--axis", "loss=0", "--cases", 1, *more)
    heron("sweep", run, "--trust", OWN, "--axis", "loss=0", "--cases", 1, "--processes", 1, "--out", tmp_path / "two")
    assert vouched() == frozenset()


def trusted_here(item: int) -> list[str]:
    return sorted(vouched())


@pytest.mark.e2e
def test_workers_inherit_who_is_trusted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, "by:variable")
    with trusting("by:argument"):
        found = [names for _, names in finished(trusted_here, [1, 2], 2)]
    assert found == [["by:argument", "by:variable"]] * 2


@pytest.mark.parametrize("as_file", [True, False], ids=["in a YAML file", "in the options"])
def test_a_registered_world_does_not_run_a_policy_that_a_file_s_options_name(
    traced: Path, run: Path, tmp_path: Path, as_file: bool
):
    import yaml

    world: Any = yaml.safe_load(WORLD.read_text())
    world["agents"][0]["policy"] = EVIL_POLICY
    if as_file:
        (tmp_path / "world.yaml").write_text(yaml.safe_dump(world))
        world = str(tmp_path / "world.yaml")
    of_run, of_trace = tmp_path / "r", tmp_path / "t"
    of_run.mkdir()
    of_trace.mkdir()
    options = {"env_id": "heron/Economy-v0", "config": world}
    naming(run, "config.json", of_run, **options)
    naming(traced, "trace.json", of_trace, **options)
    uses = (lambda: load_policy(of_run), lambda: replay(of_trace))
    for use in uses:
        with pytest.raises(Untrusted, match=EVIL_POLICY):
            use()
    for words in (("sweep", of_run, "--axis", "loss=0"), ("trace", of_run), ("replay", of_trace)):
        assert EVIL_POLICY in heron(*words, code=2).stderr
    assert RAN == []
    make("heron/Economy-v0", config=world)  # whoever gives the world himself may name what he likes
    assert RAN == ["Evil"]


@pytest.mark.parametrize("wrong", ["mine", "mine:", ":make", 3, ["mine:make", 3]])
def test_what_is_no_name_is_not_trusted(run: Path, wrong: Any):
    with pytest.raises(ConfigError, match="trust="):
        load_policy(run, trust=wrong)
    if isinstance(wrong, str):
        heron("replay", "nowhere", "--trust", wrong, code=2)
