"""Names of environments, here and in the registries of PettingZoo and Gymnasium."""

import re
import shelve
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import gymnasium
import pettingzoo
import pytest
from refusing import refuses

import heron_env
from heron_env import registry
from heron_env.errors import ConfigError, FeatureError, HeronWarning, UnknownEnvironment
from heron_env.worlds import battery_grid

OURS = ["heron/BatteryGrid-v0", "heron/EnergyManagement-v1"]


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is forgotten after it, everywhere."""
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    yield
    for known in (gymnasium.registry, pettingzoo.parallel_registry, pettingzoo.aec_registry):
        for name in [name for name in known if name.startswith("test/")]:
            del known[name]


def test_both_environments_are_known_here_and_in_both_frameworks():
    assert heron_env.registered()[:2] == OURS
    for name in OURS:
        assert name in gymnasium.registry
        assert name in pettingzoo.parallel_registry
        assert name in pettingzoo.aec_registry


def test_the_frameworks_build_the_same_environment():
    parallel = pettingzoo.make("parallel", OURS[0], num_batteries=3)
    assert parallel.possible_agents == ["battery_1", "battery_2", "battery_3"]
    aec = pettingzoo.make("aec", OURS[0], num_batteries=3)
    assert aec.possible_agents == parallel.possible_agents
    joint = gymnasium.make(OURS[0], disable_env_checker=True)
    assert joint.observation_space.shape == (8,)


def test_make_builds_with_options_and_max_cycles_means_max_steps():
    assert heron_env.make(OURS[0], max_steps=7).termination.max_steps == 7
    assert heron_env.make(OURS[0], max_cycles=7).termination.max_steps == 7


def test_registered_options_count_unless_make_gives_others(forget: None):
    heron_env.register("test/Grid-v3", battery_grid.battery_grid, num_batteries=3)
    assert len(heron_env.make("test/Grid-v3").possible_agents) == 3
    assert len(heron_env.make("test/Grid-v3", num_batteries=4).possible_agents) == 4
    assert pettingzoo.make("parallel", "test/Grid-v3").possible_agents[-1] == "battery_3"


def test_an_entry_point_is_imported_only_when_it_is_made(forget: None):
    heron_env.register("test/Lost-v0", "no.such.module:env")
    message = (
        "make('test/Lost-v0'): can't load its entry point 'no.such.module:env' (No module named 'no'); "
        "is the module on the path and the name right?"
    )
    with refuses(ConfigError, message):
        heron_env.make("test/Lost-v0")


def test_the_same_definition_may_be_registered_again_another_not(forget: None):
    def define() -> object:
        def storage() -> None: ...

        return storage

    heron_env.register("test/Twice-v0", define())
    again = define()
    heron_env.register("test/Twice-v0", again)
    assert registry.spec("test/Twice-v0").entry_point is again
    message = f"register('test/Twice-v0'): that id stands for {again!r} already; choose another version"
    with refuses(ConfigError, message):
        heron_env.register("test/Twice-v0", battery_grid.battery_grid)
    with refuses(ConfigError, message):
        heron_env.register("test/Twice-v0", define(), size=3)


@pytest.mark.parametrize("name", ["Storage-v0", "my/Storage", "my/Storage-vx", "", 3])
def test_an_id_has_a_namespace_and_a_version(name: object):
    with refuses(ConfigError, f"register({name!r}): an id reads 'namespace/Name-v0'; add what is missing"):
        heron_env.register(name, battery_grid.battery_grid)


def test_an_environment_of_ones_own_needs_no_registration():
    name = "heron_env.worlds.battery_grid:battery_grid"
    assert heron_env.make(name, num_batteries=3).possible_agents == ["battery_1", "battery_2", "battery_3"]
    assert registry.spec(name).id == name and name not in heron_env.registered()
    assert registry.is_here(name) and registry.is_here("heron/BatteryGrid-v0")
    assert not any(map(registry.is_here, ("nowhere:env", "nobody/Registered-v0", ":x")))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere:env", "No module named 'nowhere'"),
        ("heron_env.registry:mak", "module 'heron_env.registry' has no attribute 'mak'"),
        ("shelve:mak", f"module 'shelve' has no attribute 'mak' in {shelve.__file__}"),
        (":env", "Empty module name"),
        (".nowhere:env", "Empty module name"),
    ],
)
def test_an_environment_of_ones_own_that_is_not_there_is_told(name: str, why: str):
    with pytest.raises(ConfigError, match=re.escape(f"make({name!r}): can't load its entry point {name!r} ({why})")):
        heron_env.make(name)


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("math.no_such_thing", AttributeError, "raised AttributeError: module 'math' has no attribute 'no_such_thing'"),
        ("int('three')", ValueError, "raised ValueError: invalid literal for int"),
        ("raise SystemExit(3)", SystemExit, "raised SystemExit: 3"),
        ("raise FeatureError('low above high')", FeatureError, "^low above high$"),
    ],
)
def test_what_a_module_itself_gets_wrong_is_not_hidden(
    line: str, error: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "wrong_inside.py").write_text(f"import math\nfrom heron_env.errors import FeatureError\n{line}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=message) as caught:
        heron_env.make("wrong_inside:env")
    assert issubclass(error, ConfigError) or type(caught.value.__cause__) is error
    assert issubclass(error, ConfigError) or "wrong_inside.py:3)" in str(caught.value)


REMOVED, REASON = "heron/EnergyManagement-v0", "removed. Its meters showed the coming minute"


@pytest.mark.parametrize(
    "ask",
    [
        heron_env.make,
        registry.spec,
        registry.make_aec,
        partial(pettingzoo.make, "parallel"),
        partial(pettingzoo.make, "aec"),
        gymnasium.make,
    ],
)
@pytest.mark.filterwarnings("ignore:.*out of date")  # Gymnasium's own remark
def test_a_removed_id_says_why_wherever_it_is_asked_for(ask):
    with pytest.raises(UnknownEnvironment, match=REASON):
        ask(REMOVED)


def test_a_removed_id_is_not_listed_and_not_given_again():
    assert registry.is_here(REMOVED), "make() knows what became of it"
    assert REMOVED not in heron_env.registered()
    with refuses(ConfigError, f"register({REMOVED!r}): that id was removed; choose another version"):
        heron_env.register(REMOVED, battery_grid.battery_grid)


@pytest.fixture
def shadowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """A module on Python's path and another one of its name in the working folder: both files."""
    installed, ours = tmp_path / "site" / "grid_of_two.py", tmp_path / "work" / "grid_of_two.py"
    for file, batteries in ((installed, 3), (ours, 2)):
        file.parent.mkdir()
        words = f"battery_grid(num_batteries={batteries}, **options)"
        text = f"from heron_env.worlds.battery_grid import battery_grid\ndef make(**options):\n    return {words}\n"
        file.write_text(text + "def own(**options):\n    return make(**options)\n" * (file is ours))
    monkeypatch.syspath_prepend(str(installed.parent))
    monkeypatch.chdir(ours.parent)
    yield installed, ours
    sys.modules.pop("grid_of_two", None)


def test_a_module_that_hides_a_file_of_the_working_folder_is_named(shadowed: tuple[Path, Path]):
    installed, ours = shadowed
    words = f"'grid_of_two' is {installed}, not what lies in this folder; grid_of_two.py:"
    with pytest.warns(HeronWarning, match=re.escape(f"make('grid_of_two:make'): {words}make names the one here")):
        assert len(heron_env.make("grid_of_two:make").possible_agents) == 3
    with pytest.raises(
        ConfigError, match=re.escape(f"no attribute 'own' in {installed}; {words}own names the one here")
    ):
        heron_env.make("grid_of_two:own")
    with pytest.raises(ConfigError, match=re.escape(f"is not a package; {words[:20]}")):
        heron_env.make("grid_of_two.inner:own")
    assert len(heron_env.make("grid_of_two.py:own").possible_agents) == 2
    (ours.parent / "grid_of_two").mkdir()
    ours.rename(ours.parent / "grid_of_two" / "__init__.py")
    with pytest.warns(HeronWarning, match=re.escape("not what lies in this folder; rename the one here")):
        heron_env.make("grid_of_two:make")


def test_a_module_of_the_working_folder_that_is_imported_is_no_other(
    shadowed: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(str(shadowed[1].parent))
    assert len(heron_env.make("grid_of_two:own").possible_agents) == 2
