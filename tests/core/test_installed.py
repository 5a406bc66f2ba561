"""Environments of installed packages: known by their entry points, imported where one is made, no danger to others."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_kit import as_json, heron
from refusing import refuses

import heron_env
from heron_env import registry
from heron_env.errors import ConfigError, UnknownEnvironment, Untrusted
from heron_env.testing import check_env

OTHER = "heron/BatteryGrid-v0"
ID = "couriers/Couriers-v0"
WORLD = """
from heron_env.worlds.battery_grid import battery_grid

def make(**options):
    \"\"\"Couriers deliver parcels.\"\"\"
    return battery_grid(**options)
"""
REGISTERS = f"""{WORLD}
from heron_env import register
register({ID!r}, make, num_batteries=3)
register("couriers/Two-v0", make)
"""
Install = Callable[..., Path]


def installed(folder: Path, name: str, entries: str, code: str = WORLD, module: str = "", version: str = "0.1") -> Path:
    """What pip leaves of a package in a folder of the path."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[heron_env.envs]\n{entries}\n")
    (folder / f"{module or name}.py").write_text(code)
    return folder


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a package for the length of a test; what it registers is forgotten then."""
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    monkeypatch.setattr(registry, "_register_with_frameworks", lambda id: None)
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "site")
    before = set(sys.modules)
    yield lambda *words, **how: installed(tmp_path / "site", *words, **how)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def test_an_id_of_an_installed_package_is_known_and_the_package_is_imported_where_it_is_made(install: Install):
    install("couriers", f"{ID} = couriers:make [fast]")
    assert heron_env.registered()[-1] == ID and registry.is_here(ID)
    assert {"id": ID, "summary": "of the package couriers 0.1"} in as_json("envs")
    assert f"Did you mean '{ID}'?" in heron("train", "couriers/Courier-v0", code=2).stderr
    assert "couriers" not in sys.modules
    assert heron_env.make(ID, num_batteries=3).possible_agents[-1] == "battery_3"
    assert as_json("describe", ID)["summary"] == "Couriers deliver parcels."
    assert check_env(ID, only=["builds"]).ok


def test_a_file_may_name_what_is_installed_and_nothing_that_lies_in_the_working_directory(
    install: Install, monkeypatch: pytest.MonkeyPatch
):
    folder = install("couriers", f"{ID} = couriers:make")
    assert registry.spec(ID, "config.json").make().possible_agents
    del sys.modules["couriers"]
    monkeypatch.chdir(folder)
    with pytest.raises(UnknownEnvironment):
        registry.spec(ID, "config.json")
    assert ID not in heron_env.registered() and "couriers" not in sys.modules


def test_what_a_package_registers_when_it_is_imported_is_no_second_declaration(install: Install):
    install("couriers", f"{ID} = couriers:make", REGISTERS)
    assert len(heron_env.make(ID).possible_agents) == 2
    assert len(heron_env.make(ID).possible_agents) == 3, "by now it is imported, and registered with an option"
    assert registry.installed() == ({}, {}) and heron_env.registered().count(ID) == 1


BROKEN = {
    "no id": ("couriers = couriers:make", "an id reads 'namespace/Name-v0'; add what is missing"),
    "no attribute": (
        "a/A-v0 = couriers",
        "'couriers' builds nothing; write a function, a class or 'package.module:attribute'",
    ),
    "removed": ("heron/EnergyManagement-v0 = couriers:make", "that id was removed; choose another version"),
    "shipped": (
        f"{OTHER} = couriers:make",
        "'heron_env.worlds.battery_grid:battery_grid' has that id, too; uninstall one, or choose another id",
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_entry_point_is_named_and_breaks_no_other(install: Install, how: str):
    entry, why = BROKEN[how]
    name, _, value = entry.partition(" = ")
    install("couriers", f"{entry}\n{ID} = couriers:make")
    told = f"couriers 0.1, entry point {value!r} in heron_env.envs: {why}"
    assert heron("envs").stderr == f"warning: {told}\n"
    assert [entry["id"] for entry in as_json("envs")].count(name) == (how == "shipped")
    assert heron_env.make(ID) and heron_env.make(OTHER)
    if how == "no attribute":
        with refuses(ConfigError, f"make({name!r}): {told}"):
            heron_env.make(name)


def test_two_packages_of_one_id_are_named_and_neither_is_taken(install: Install):
    install("couriers", f"{ID} = couriers:make\ncouriers/Own-v0 = couriers:make")
    install("parcels", f"{ID} = parcels:make\nparcels/Own-v0 = parcels:make", version="2.0")
    with pytest.raises(ConfigError) as caught:
        heron_env.make(ID)
    assert "couriers 0.1" in str(caught.value) and "parcels 2.0" in str(caught.value)
    assert str(caught.value).endswith(" has that id, too; uninstall one, or choose another id")
    assert heron_env.make("couriers/Own-v0") and heron_env.make("parcels/Own-v0")
    assert ID not in heron_env.registered()


@pytest.mark.parametrize(
    ("first", "second"), [("couriers", "couriers"), ("my_grid", "My-Grid"), ("my.grid", "my_grid")]
)
def test_a_second_one_of_a_name_lies_behind_the_first(install: Install, tmp_path: Path, first: str, second: str):
    install(first, f"{ID} = couriers:make", version="0.2")
    sys.path.append(str(installed(tmp_path / "behind", second, "couriers/Old-v0 = couriers:make")))
    specs, faults = registry.installed()
    assert (list(specs), faults, specs[ID].package) == ([ID], {}, f"{first} 0.2")


def test_entry_points_that_can_not_be_read_are_named(install: Install):
    install("broken", "what is this", version="3")
    install("couriers", f"{ID} = couriers:make")
    assert heron_env.make(ID)
    (fault,) = registry.installed()[1].values()
    assert fault.startswith("broken: its entry points can't be read (") and fault.endswith("); install it anew")


def test_a_package_that_can_not_be_imported_is_named_with_its_entry_point(install: Install):
    install("couriers", f"{ID} = couriers:make", "import no_such_module")
    told = (
        f"make('{ID}') of couriers 0.1, entry point 'couriers:make' in heron_env.envs: can't load its entry point "
        "'couriers:make' (No module named 'no_such_module'); is the module on the path and the name right?"
    )
    with refuses(ConfigError, told):
        heron_env.make(ID)
    assert heron("describe", ID, code=2).stderr == f"error: {told}\n"


@pytest.mark.e2e
def test_a_module_before_the_id_is_imported_and_registers_it(install: Install):
    install("couriers", "", REGISTERS)
    assert heron_env.make(f"couriers:{ID}").possible_agents[-1] == "battery_3", "the registered option"
    del sys.modules["couriers"]
    assert as_json("describe", f"couriers:{ID}", "-o", "num_batteries=2")["summary"] == "Couriers deliver parcels."
    assert check_env(f"couriers:{ID}", only=["builds", "processes"], steps=2).ok
    with pytest.raises(UnknownEnvironment, match="Did you mean 'couriers/Couriers-v0'"):
        heron_env.make("couriers:couriers/Courier-v0")
    told = heron("describe", "couriers:couriers/Courier-v0", code=2).stderr
    assert (
        told.endswith("couriers.py'> was imported, and registers no 'couriers/Courier-v0'\n") and "\n" not in told[:-1]
    )
    with refuses(ConfigError, "make('nowhere:a/A-v0'): can't import 'nowhere' (No module named 'nowhere'); "
                 "is it on the path?"):  # fmt: skip
        heron_env.make("nowhere:a/A-v0")


def test_a_module_before_the_id_is_imported_for_no_file_that_nobody_vouched_for(install: Install):
    name = f"couriers:{ID}"
    install("couriers", "", REGISTERS)
    with pytest.raises(Untrusted, match=f"say --trust {name}"):
        registry.spec(name, "config.json").make()
    assert "couriers" not in sys.modules
    with heron_env.trust.trusting(name):
        assert registry.spec(name, "config.json").make()


@pytest.mark.parametrize("named", [ID, f"couriers:{ID}"])
def test_it_is_trained_and_run_again_by_its_name(install: Install, tmp_path: Path, named: str):
    pytest.importorskip("torch")
    install("couriers", f"{ID} = couriers:make", REGISTERS)
    run = tmp_path / "run"
    heron("train", named, "--steps", 64, "--out", run, "-o", "max_steps=4")
    assert json.loads((run / "config.json").read_text())["env_id"] == named
    trust = ["--trust", named] if ":" in named else []
    short = ("--cases", 1, "--axis", "act_delay=0", "--processes", 1, "--json", "--out", tmp_path / "swept")
    heron("sweep", run, *trust, *short)
    if trust:
        assert f"--trust {named}" in heron("sweep", run, *short, code=2).stderr
    assert os.environ.get("HERON_TRUST") is None
