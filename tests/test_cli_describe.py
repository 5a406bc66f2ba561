"""`heron describe`: text, JSON and pictures of an environment."""

import json
import re
import subprocess
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest
from cli_kit import as_json, heron

from heron_env import (
    Continuous,
    CoordinatorAgent,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Inbox,
    ScheduleConfig,
    StateShare,
    SystemAgent,
    VectorDecomposition,
    make,
    quantity,
    register,
)
from heron_env.lab import describe_environment
from heron_env.lab.show.description import MOST_LINES, AgentDescription, tree_lines
from heron_env.lab.show.tree import MOST_LINES as MOST_DRAWN
from heron_env.lab.show.tree import description_figure
from heron_env.observability.drawing import shares

GRID, ENERGY, RING = "heron/BatteryGrid-v0", "heron/EnergyManagement-v1", "test/Ring-v0"

MATRIX = """
matrix:
  - [battery_1, battery_2, insider, 0.1]
  - [zone_1, battery_1, external, 0.3]
default: {level: unaware}
"""


class Charge(FeatureProvider):
    visibility = ("owner", "upper_level")
    soc: float = quantity(default=0.5, low=0.0, high=1.0)


class Heard(Inbox):
    soc: float = quantity(default=0.5, low=0.0, high=1.0, shape=(2,))


class Battery(FieldAgent):
    features = (Charge, Heard)
    action = Continuous(-1.0, 1.0)


def ring(n: int = 4, edges: str = "ring") -> HeronEnv:
    """Batteries in a ring, commanded by their zone."""
    if edges == "full":
        return full(n)
    share = StateShare(Charge.soc, Heard.soc, "ring")
    return city(Battery, n, share)


def full(n: int) -> HeronEnv:
    """All pairs."""

    class Everyone(Inbox):
        soc: float = quantity(default=0.5, low=0.0, high=1.0, shape=(n - 1,))

    Everyone.feature_name = "Heard"
    kind = type("Battery", (FieldAgent,), {"features": (Charge, Everyone), "action": Continuous(-1.0, 1.0)})
    return city(kind, n, StateShare(Charge.soc, Everyone.soc, "full"))


def city(kind: type[FieldAgent], n: int, share: StateShare) -> HeronEnv:
    batteries = (kind(f"battery_{i + 1}") for i in range(n))
    zone = CoordinatorAgent("zone_1", *batteries, protocol=VectorDecomposition(), exchange=share)
    schedule = {
        "*": ScheduleConfig(tick_interval=1.0, msg_delay=0.2, act_delay=0.1),
        "zone_1": ScheduleConfig(tick_interval=2.0, obs_delay=0.5),
    }
    return HeronEnv(SystemAgent("system_agent", zone), max_steps=3, schedule=schedule)


@pytest.fixture(autouse=True, scope="module")
def registered():
    register(RING, ring)


describe, told = partial(heron, "describe"), partial(as_json, "describe")


def flat(text: str) -> str:
    """All on one line, single spaces."""
    return re.sub(r"\s+", " ", text)


def test_json_has_what_the_environment_is():
    d = told(RING)
    assert set(d) == {
        "id", "summary", "options", "dt", "physics_substeps", "report_interval", "state_size", "possible_agents",
        "group_map", "agents", "groups", "exchange", "seen",
    }  # fmt: skip
    zone = next(agent for agent in d["agents"] if agent["id"] == "zone_1")
    assert zone == {
        "id": "zone_1",
        "parent": "system_agent",
        "depth": 1,
        "level": 2,
        "role": "decides",
        "tick_interval": 2.0,
        "phase": 0.0,
        "delays": {"obs_delay": 0.5, "act_delay": 0.0, "msg_delay": 0.0},
        "commands": "VectorDecomposition",
        "exchange": ["StateShare(Charge.soc, Heard.soc, 'ring')"],
        "own_rows": "proxy",
    }
    assert len(d["exchange"]) == 8
    assert d["exchange"][0] == {
        "sender": "battery_4", "receiver": "battery_1", "what": "Charge.soc", "into": "Heard.soc",
    }  # fmt: skip
    assert set(d["seen"]) == {"by", "columns", "critic", "shares"}
    assert (d["seen"]["by"], d["seen"]["columns"], d["seen"]["critic"]) == ("tags", 12, "critic")


def test_json_has_the_shares_of_the_visibility_matrix():
    env = make(ENERGY)
    expected = [asdict(share) for share in shares(env.visibility_matrix().plan, "critic", env.groups)]
    assert told(ENERGY)["seen"]["shares"] == expected
    assert {"observers": "battery", "owners": "zone", "name": "Zone.power", "seen": 6, "of": 12, "low": 0.0,
            "high": 0.0, "relation": "parent"} in expected  # fmt: skip


def test_text_tells_levels_ticks_delays_protocols_and_who_sees_what_by_group():
    shown = describe(RING).stdout
    for line in (
        "zone_1                 level 2  decides, every 2 s, observation 0.5 s; commands by VectorDecomposition; "
        "below it StateShare(Charge.soc, Heard.soc, 'ring')",
        "battery_1            level 1  obeys, every 1 s, action 0.1 s, message 0.2 s; hears battery_4, battery_2",
        "system_agent             level 3  watches",
    ):
        assert f"{line}\n" in shown
    shown = flat(describe(ENERGY).stdout)
    for line in (
        "Who sees what, by the features' tags",
        "system_agent zone, its children exact Zone.*",
        "zone (2) itself exact Zone.* battery, its children (6 of 12) exact Charge.*, Meter.*, Setpoint.p",
        "global exact Tariff.*, Clock.*",
        "critic all exact 257 columns, bookkeeping included",
    ):
        assert line in shown


def test_text_tells_inboxes_and_who_tells_whom():
    shown = flat(describe(RING).stdout)
    assert (
        "battery (4) itself exact Charge.soc, Heard.soc battery, its siblings told Charge.soc into Heard.soc" in shown
    )
    assert "Heard.soc[0] 1 0 1 told by battery_4.Charge.soc Heard.soc[1] 1 0 1 told by battery_2.Charge.soc" in shown
    columns = told(RING)["groups"]["battery"]["observation"]
    assert [column["told"] for column in columns] == [
        "", "told by battery_4.Charge.soc", "told by battery_2.Charge.soc"
    ]  # fmt: skip
    assert "told" not in describe(GRID).stdout
    many = flat(describe(RING, "-o", "n=9", "-o", "edges=full").stdout)
    assert "battery_1 level 1 obeys, every 1 s, action 0.1 s, message 0.2 s; hears battery_2, battery_3, bat" in many
    assert "hears battery_2, battery_3, battery_4, battery_5 and 4 more" in many


def test_the_matrix_says_what_neighbours_tell():
    matrix = make(RING).visibility_matrix()
    told = {sight.column: sight.told for sight in matrix.row("battery_1", hidden=True) if sight.told}
    assert told == {
        "battery_1.Heard.soc[0]": "told by battery_4.Charge.soc",
        "battery_1.Heard.soc[1]": "told by battery_2.Charge.soc",
        "battery_2.Charge.soc": "told into Heard.soc",
        "battery_4.Charge.soc": "told into Heard.soc",
    }
    assert not any(sight.told for sight in matrix.row("critic"))
    assert matrix.level_of("battery_1", "battery_2.Charge.soc") is None, "to be told is not to see"


@pytest.mark.parametrize(("n", "edges"), [(4, "ring"), (3, "full"), (90, "ring")])
def test_the_picture_draws_inboxes_and_edges(n: int, edges: str):
    description, matrix = describe_environment(RING, {"n": n, "edges": edges})
    figure = description_figure(description, matrix)
    seen = figure.subfigs[1].axes[0]
    (dots,) = (line for line in seen.lines if line.get_label() == "told into its inbox")
    note = " ".join(seen.xaxis.label.get_text().split())
    assert (
        "Told by neighbours: Charge.soc into Heard.soc. Inboxes (memory, no fact about the world): Heard.soc." in note
    )
    places = set(zip(*(values.tolist() for values in dots.get_data()), strict=True))
    if n == 90:
        assert len(places) == 1, "one cell for the whole group"
        assert "and 79 pairs of neighbours, not drawn" in words(figure), "those whose agents are folded"
        return
    names = list(matrix.columns)
    expected = {
        (names.index(f"{e.sender}.Charge.soc") + 0.5, matrix.observers.index(e.receiver) + 0.5)
        for e in description.exchange
    }
    assert places == expected


def test_what_is_known_ahead_is_marked_and_explained():
    shown = flat(describe(ENERGY).stdout)
    assert "global.Tariff.next_price EUR/kWh 0 10 foreknown" in shown
    assert "Charge.soc 1 0 1 Charge.capacity" in shown
    assert shown.count("foreknown: may depend on the future, because it is known ahead") == 1
    columns = {column["name"]: column["foreknown"] for column in told(ENERGY)["groups"]["battery"]["observation"]}
    assert columns["Forecast.surplus_rest"] is columns["zone_1.Zone.excess_rest"] is True
    assert columns["Charge.soc"] is columns["zone_1.Zone.power"] is False
    assert "foreknown" not in describe(GRID).stdout
    for options in ({}, {"num_batteries": 40}):
        note = flat(" ".join(words(description_figure(*describe_environment(ENERGY, options)))))
        (marked,) = re.findall(r"Known ahead \(foreknown\): ([^,]+(?:, [A-Z][\w.]+)*)\.", note)
        assert {"Forecast.surplus_rest", "Zone.excess_rest", "Tariff.price"} < set(marked.split(", "))
        assert "Charge.soc" not in marked
    assert "foreknown" not in " ".join(words(description_figure(*describe_environment(GRID, {}))))


def test_a_matrix_from_a_file_is_told_with_its_noise(tmp_path: Path):
    path = tmp_path / "matrix.yaml"
    path.write_text(MATRIX, encoding="utf-8")
    option = ("-o", f"observability={path}")
    shown = flat(describe(GRID, *option).stdout)
    assert "Who sees what, by an observability matrix" in shown
    assert "who sees of how what system_agent nothing zone battery, its children noise 0.3 BatteryChargeF" in shown
    assert "battery, its children exact BatteryChargeFeature.capacity" in shown, "it bears no noise"
    assert "battery:1, its siblings noise 0.1 BatteryChargeFeature.soc" in shown
    d = told(GRID, *option)
    assert d["seen"]["by"] == "matrix"
    assert {(s["observers"], s["owners"]): s["high"] for s in d["seen"]["shares"] if s["name"].endswith("soc")} == {
        ("zone", "battery"): 0.3, ("battery:1", "itself"): 0.0, ("battery", "itself"): 0.0,
        ("battery", "battery:1"): 0.1, ("critic", "battery"): 0.0, ("critic", "battery:1"): 0.0,
    }  # fmt: skip


def test_a_matrix_that_is_not_enabled_is_told_as_full_observability(tmp_path: Path):
    path = tmp_path / "matrix.yaml"
    path.write_text("enabled: false\nmatrix:\n  - [battery_1, battery_2, unaware, 0.0]\n", encoding="utf-8")
    option = ("-o", f"observability={path}", "-o", "scope=owner")
    assert "Who sees what, by full observability: the matrix is not enabled" in flat(describe(GRID, *option).stdout)
    d, tags = told(GRID, *option), told(GRID, "-o", "scope=owner")
    assert (d["seen"]["by"], tags["seen"]["by"]) == ("everything", "tags")
    sizes = [{name: len(group["observation"]) for name, group in each["groups"].items()} for each in (tags, d)]
    assert sizes[1]["battery"] > sizes[0]["battery"], "observation sizes change"
    assert "full observability" in " ".join(words(description_figure(*describe_environment(GRID, {
        "observability": str(path)
    }))))  # fmt: skip


def test_large_environments_are_summarised():
    shown = describe(GRID, "-o", "num_batteries=300", "-o", "zone_size=10").stdout
    assert len(shown.splitlines()) < 260
    assert all(words in shown for words in ("and 5 more", "and 25 more", "more; --json has them all"))


def agents(zones: int, each: int) -> list[AgentDescription]:
    def one(name: str, parent: str | None, depth: int) -> AgentDescription:
        return AgentDescription(name, parent, depth, 3 - depth, "watches", 1.0, 0.0, {}, "", [])

    found = [one("top", None, 0)]
    for z in range(zones):
        found += [one(f"zone_{z}", "top", 1), *(one(f"b_{z}_{i}", f"zone_{z}", 2) for i in range(each))]
    return found


@pytest.mark.parametrize(("zones", "each"), [(0, 0), (3, 5), (4, 9), (10, 10), (1000, 3), (2, 500), (1, 39)])
def test_the_tree_is_short_and_counts_everybody(zones: int, each: int):
    lines = tree_lines(agents(zones, each), MOST_DRAWN)
    assert len(lines) <= MOST_DRAWN
    assert len(tree_lines(agents(zones, each))) <= MOST_LINES
    shown = [line.agent for line in lines if line.agent is not None]
    assert shown[0].id == "top"
    for number, line in enumerate(lines):
        parent = None if line.parent is None else lines[line.parent].agent
        if line.agent is not None:
            assert line.agent.parent == (None if parent is None else parent.id)
        assert line.left_out != 1, "one more is shown, not counted"
        assert line.parent is None or line.parent < number
    for number, line in enumerate(lines):
        children = [below for below in lines if below.parent == number]
        if line.agent is not None:
            expected = zones if line.agent.id == "top" else each if line.agent.depth == 1 else 0
            assert sum(below.left_out or 1 for below in children) == expected


@pytest.mark.parametrize("name", ["tree.svg", "tree.png"])
def test_the_picture_is_written(tmp_path: Path, name: str):
    path = tmp_path / "new" / name
    result = describe(RING, f"--{path.suffix[1:]}", path, "--json")
    assert json.loads(result.stdout)["id"] == RING
    assert f"picture: {path}" in result.stderr
    start = path.read_bytes()[:8]
    assert start == (b"\x89PNG\r\n\x1a\n" if name.endswith("png") else b"<?xml ve")
    assert path.stat().st_size > 20_000


def test_the_picture_is_the_same_in_another_process(tmp_path: Path):
    here, there = tmp_path / "here.svg", tmp_path / "there.svg"
    describe(GRID, "--svg", here)
    command = [sys.executable, "-m", "heron_env", "describe", GRID, "--svg", str(there), "--json"]
    subprocess.run(command, check=True, capture_output=True, env={"PYTHONHASHSEED": "1"})
    assert here.read_bytes() == there.read_bytes()
    assert b"<dc:date>" not in here.read_bytes()


def words(figure) -> list[str]:
    """All texts of a figure."""
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text)]


def test_the_picture_has_tree_and_matrix():
    from matplotlib.patches import FancyArrowPatch

    description, matrix = describe_environment(RING, {})
    figure = description_figure(description, matrix)
    tree, seen = (part.axes[0] for part in figure.subfigs)
    shown = [text.get_text() for text in tree.texts]
    assert [shown.count(f"battery_{i}") for i in (1, 2, 3, 4)] == [1] * 4
    for text in (
        "level",
        "ticks",
        "every 2 s",
        "observation 0.5 s",
        "action 0.1 s, message 0.2 s",
        "obeys",
        "commands",
    ):
        assert text in shown
    arcs = [patch for patch in tree.patches if isinstance(patch, FancyArrowPatch)]
    assert len(arcs) == 4, "a ring of four: each pair once, with two heads"
    commanded = [line for line in tree.lines if line.get_color() == "#E69F00"]
    assert len(commanded) == 4
    assert [label.get_text() for label in seen.get_yticklabels()][-1] == "critic: state()"
    assert "Who sees what, by the features' tags" in words(figure)


@pytest.mark.parametrize(
    ("env", "options"),
    [(GRID, {}), (GRID, {"num_batteries": 10}), (ENERGY, {}), (RING, {"n": 12}), (GRID, {"num_batteries": 200})],
    ids=str,
)
def test_no_words_overlap_in_the_picture(env: str, options: dict[str, int]):
    figure = description_figure(*describe_environment(env, options))
    figure.draw_without_rendering()
    for part in figure.subfigs:
        axes = part.axes[0]
        legend = axes.get_legend()
        texts = [*axes.texts, *(legend.get_texts() if legend else []), axes.title, axes._left_title]
        texts += [*axes.get_yticklabels(), *axes.get_xticklabels(), axes.xaxis.label] if axes.axison else []
        boxes = [(t.get_text(), t.get_window_extent()) for t in texts if t.get_text()]
        for i, (name, box) in enumerate(boxes):
            assert box.x0 >= 0.0
            assert box.x1 <= figure.bbox.x1 + 1.0, name
            for other, box2 in boxes[i + 1 :]:
                assert not box.overlaps(box2), f"{name} lies on {other}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--svg", "tree.png"), "error: --svg 'tree.png': the name must end with .svg"),
        (("--png", "tree"), "error: --png 'tree': the name must end with .png"),
        (("--png", "/dev/null/tree.png"), "error: /dev/null/tree.png: can't write the picture"),
        (("-o", "observability=/nowhere.yaml"), "/nowhere.yaml"),
    ],
)
def test_wrong_files_are_told(arguments: tuple[str, ...], message: str):
    result = describe(GRID, *arguments, code=2)
    assert result.stdout == ""
    assert message in result.stderr


def test_the_generated_source_is_shown_on_request():
    told = describe(GRID, "--generated").stdout
    compile(told, "generated", "exec")
    assert "def Battery_apply_action(" in told and "Agents" not in told
