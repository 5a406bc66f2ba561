"""Who sees what, as an object and as a picture: against V1 tested pair by pair, and the picture against the object."""

import math
import re
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.checks_cost import lines_run
from small_worlds import Price

from heron_env import (
    Continuous,
    CoordinatorAgent,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    SystemAgent,
    VisibilityMatrix,
    make,
    quantity,
)
from heron_env.errors import ConfigError, FeatureError, UnknownAgent, UnknownFeature
from heron_env.observability import visibility
from heron_env.observability.drawing import Share, shares
from heron_env.observability.visibility import Sight
from heron_env.pictures.palette import EXACT_COLOUR, HIDDEN_COLOUR, NOISE_COLOURS, Palette


def shares_of(matrix: VisibilityMatrix) -> list[Share]:
    """Who sees what, by the stems of names."""
    return shares(matrix.plan, matrix.critic)


class Charge(FeatureProvider):
    visibility = ("owner", "upper_level")
    soc: float = quantity(default=0.5, low=0.0, high=1.0, visibility=("public",))
    capacity: float = quantity(default=5.0, low=0.0, high=9.0, noisy=False)
    cells: np.ndarray = quantity(shape=(2,), low=-1.0, high=1.0)
    on: bool = True
    ledger: float = quantity(observed=False, visibility=("public",))


class Talk(FeatureProvider):
    visibility = ("siblings", "subordinates", "system")
    word: int = quantity(low=0, high=9)
    soc: float = quantity(low=0.0, high=1.0)


class Tip(FeatureProvider):
    visibility = ("system",)
    hint: float = quantity(low=0.0, high=1.0)
    mood: float = quantity(low=0.0, high=1.0, visibility=())


FEATURES = (Charge, Talk)
GLOBALS = (Price, Tip)


class Leaf(FieldAgent):
    features = FEATURES
    action = Continuous(-1.0, 1.0)


class Node(CoordinatorAgent):
    features = FEATURES


class Top(SystemAgent):
    features = (Talk,)


class World(HeronEnv):
    global_features = GLOBALS


AGENTS = ("top", "node_1", "leaf_1", "leaf_2", "node_2", "leaf_3")
PARENT = {"node_1": "top", "leaf_1": "node_1", "leaf_2": "node_1", "node_2": "top", "leaf_3": "node_2"}
FACTORS = (0.0, 0.05, 0.1, 0.3, 1.0)


def world(**options: Any) -> World:
    nodes = Node("node_1", Leaf("leaf_1"), Leaf("leaf_2")), Node("node_2", Leaf("leaf_3"))
    return World(Top("top", *nodes), max_steps=2, **options)


def features_of(owner: str) -> tuple[type[FeatureProvider], ...]:
    return GLOBALS if owner == "global" else (Talk,) if owner == "top" else FEATURES


def tags_of(feature: type[FeatureProvider], q: Any) -> tuple[str, ...]:
    return tuple(feature.visibility if q.visibility is None else q.visibility)


def by_tags(observer: str, owner: str, feature: type[FeatureProvider], q: Any) -> float:
    """V3, one tag after the other."""
    if not q.observed:
        return math.nan
    related = {
        "public": True,
        "owner": observer == owner,
        "system": observer == "top",
        "upper_level": PARENT.get(owner) == observer,
        "siblings": observer != owner and PARENT.get(observer, 1) == PARENT.get(owner, 2),
        "subordinates": PARENT.get(observer) == owner,
    }
    return 0.0 if any(related[tag] for tag in tags_of(feature, q)) else math.nan


def by_matrix(config: dict[str, Any], observer: str, owner: str, feature: type[FeatureProvider], q: Any) -> float:
    """V1 and V2, from the configuration as a user writes it."""
    if not q.observed:
        return math.nan
    if observer == owner:
        return 0.0
    said = next((row for row in config["matrix"] if (row["observer"], row["target"]) == (observer, owner)), None)
    level, factor = (said or config["default"])["level"], (said or config["default"])["noise"]
    name, listed = f"{feature.__name__}.{q.name}", config["variable_visibility"]
    external = name in listed["external"] or ("public" in tags_of(feature, q) and name not in listed["internal"])
    if level == "unaware" or (level == "external" and not external):
        return math.nan
    return factor if q.noisy and q.kind in ("float", "int") else 0.0


def brute(judge: Callable[..., float]) -> dict[tuple[str, str], float]:
    """(observer, column) -> factor, nan for hidden: every pair, every element."""
    found = {}
    for observer in AGENTS:
        for owner in (*AGENTS, "global"):
            for feature in features_of(owner):
                for q in feature.quantities.values():
                    for place in [f"[{i}]" for i in range(q.size)] if q.shape else [""]:
                        column = f"{owner}.{feature.__name__}.{q.name}{place}"
                        found[observer, column] = judge(observer, owner, feature, q)
    return found


def require_equal(matrix: VisibilityMatrix, expected: dict[tuple[str, str], float]) -> None:
    """Dense form, rows and single questions all say what the pairs say; the critic sees all."""
    dense = matrix.to_dense()
    assert dense.shape == (len(AGENTS) + 1, len(matrix.columns))
    assert dense.dtype == np.float64
    for y, observer in enumerate(AGENTS):
        row = {sight.column: sight.factor for sight in matrix.row(observer)}
        whole = {sight.column: sight for sight in matrix.row(observer, hidden=True)}
        assert set(whole) == set(matrix.columns)
        for x, column in enumerate(matrix.columns):
            factor = expected[observer, column]
            np.testing.assert_equal(dense[y, x], factor)
            np.testing.assert_equal(row.get(column, math.nan), factor)
            np.testing.assert_equal(whole[column].factor, factor)
            assert whole[column].hidden == math.isnan(factor)
            assert matrix.level_of(observer, column) == (None if math.isnan(factor) else factor)
    assert dense[-1].tolist() == [0.0] * len(matrix.columns)


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    """Small random matrices, as users write them."""
    levels, factors = st.sampled_from(["unaware", "external", "insider"]), st.sampled_from(FACTORS)
    pairs = [(a, b) for a in AGENTS for b in (*AGENTS, "global") if a != b]
    laws = st.sampled_from(["multiplicative", "additive"])
    rows = [
        {"observer": a, "target": b, "level": draw(levels), "noise": draw(factors), "law": draw(laws)}
        for a, b in draw(st.lists(st.sampled_from(pairs), unique=True, max_size=8))
    ]
    names = ["Charge.soc", "Charge.cells", "Charge.on", "Talk.word", "Talk.soc", "Price.value", "Tip.mood"]
    listed = {name: draw(st.sampled_from(["external", "internal", ""])) for name in names}
    return {
        "matrix": rows,
        "default": {"level": draw(levels), "noise": draw(factors), "law": draw(laws)},
        "variable_visibility": {
            kind: [name for name, said in listed.items() if said == kind] for kind in ("external", "internal")
        },
    }


def test_tags_are_told_as_the_pairs_have_it():
    require_equal(world().visibility_matrix(), brute(by_tags))


@settings(max_examples=40, deadline=None)
@given(configs())
def test_a_matrix_is_told_as_the_pairs_have_it(config: dict[str, Any]):
    require_equal(world(observability=config).visibility_matrix(), brute(lambda *pair: by_matrix(config, *pair)))


@settings(max_examples=15, deadline=None)
@given(configs())
def test_a_matrix_that_is_not_enabled_shows_everything_that_is_observed(config: dict[str, Any]):
    matrix = world(observability={**config, "enabled": False}).visibility_matrix()
    require_equal(matrix, brute(lambda observer, owner, feature, q: 0.0 if q.observed else math.nan))
    assert "by full observability>" in repr(matrix)
    for sight in matrix.row("top", hidden=True):
        assert sight.reason in ("own", "not enabled", "bookkeeping")


@settings(max_examples=15, deadline=None)
@given(configs())
def test_a_row_has_the_columns_and_the_law_of_the_observation(config: dict[str, Any]):
    env = world(observability=config)
    for observer in AGENTS:
        row = env.visibility_matrix().row(observer)
        assert [s.column.removeprefix(f"{observer}.") for s in row] == env.observation_names(observer)
        for sight in row:
            said = {(r["observer"], r["target"]): r for r in config["matrix"]}.get(
                (observer, sight.owner), config["default"]
            )
            assert sight.law == (said["law"] if sight.factor else "multiplicative")


EXAMPLE = {
    "matrix": [["leaf_1", "leaf_2", "insider", 0.1], ["leaf_1", "node_1", "unaware", 0.0]],
    "default": {"level": "external", "noise": 0.05},
}


def reasons(matrix: VisibilityMatrix, observer: str) -> dict[str, tuple[str, str]]:
    """Level and reason of each column."""
    return {sight.column: (sight.level, sight.reason) for sight in matrix.row(observer, hidden=True)}


def test_every_column_has_its_reason_by_the_matrix():
    matrix = world(observability=EXAMPLE).visibility_matrix()
    assert reasons(matrix, "critic")["leaf_1.Charge.ledger"] == ("critic", "critic")
    expected = {
        "leaf_1.Charge.cells[0]": ("insider", "own"),
        "leaf_2.Charge.cells[1]": ("insider", "row matrix[0]"),
        "node_1.Charge.soc": ("unaware", "row matrix[1]"),
        "leaf_3.Charge.soc": ("external", "default"),
        "leaf_1.Charge.ledger": ("insider", "bookkeeping"),
    }
    assert expected.items() <= reasons(matrix, "leaf_1").items()


def test_every_column_has_its_reason_by_the_tags():
    matrix = world().visibility_matrix()
    expected = {
        "leaf_1": {
            "leaf_1.Charge.on": "own", "leaf_1.Talk.word": "no tag", "leaf_2.Charge.soc": "tag public",
            "leaf_2.Talk.word": "tag siblings", "node_1.Talk.word": "tag subordinates", "leaf_2.Charge.on": "no tag",
        },
        "node_1": {"leaf_1.Charge.on": "tag upper_level", "leaf_1.Charge.ledger": "bookkeeping"},
        "top": {"top.Talk.word": "own", "leaf_1.Talk.word": "tag system", "global.Tip.mood": "no tag"},
    }  # fmt: skip
    for observer, columns in expected.items():
        found = reasons(matrix, observer)
        assert {column: found[column] for column in columns} == {c: ("tags", why) for c, why in columns.items()}


def test_several_tags_are_all_named():
    class Both(FeatureProvider):
        visibility = ("upper_level", "system")
        x: float = 0.0

    class Simple(FieldAgent):
        features = (Both,)
        action = Continuous(-1.0, 1.0)

    matrix = HeronEnv(SystemAgent("top", Simple("leaf")), max_steps=1).visibility_matrix()
    assert matrix.row("top") == [Sight("leaf.Both.x", "leaf", "tags", 0.0, "multiplicative", "tag upper_level, system")]


def test_the_critic_is_the_last_row_and_its_columns_are_those_of_the_state():
    env = world(observability=EXAMPLE)
    matrix = env.visibility_matrix()
    assert matrix.observers == (*env.hierarchy.ids, "critic")
    assert matrix.targets == (*env.hierarchy.ids, "global")
    assert list(matrix.columns) == env.state_names
    assert [sight.column for sight in matrix.row("critic")] == env.state_names
    assert {(s.factor, s.reason) for s in matrix.row("critic")} == {(0.0, "critic")}
    assert any(s.column.endswith("ledger") for s in matrix.row("critic"))


def test_an_agent_may_be_called_critic():
    class Simple(FieldAgent):
        features = (Talk, Charge)
        action = Continuous(-1.0, 1.0)

    matrix = HeronEnv(SystemAgent("top", Simple("critic"), Simple("leaf")), max_steps=1).visibility_matrix()
    assert matrix.observers == ("top", "critic", "leaf", "critic (state)")
    assert {s.reason for s in matrix.row("critic")} == {"own", "tag siblings", "tag public"}
    assert {s.reason for s in matrix.row("critic (state)")} == {"critic"}


def test_a_field_is_named_as_one_likes():
    sees = world(observability=EXAMPLE).visibility_matrix().level_of
    assert sees("leaf_1", "leaf_2", "capacity") == 0.0
    assert sees("leaf_1", "leaf_2", "Charge.soc") == 0.1
    assert sees("leaf_1", "leaf_2", "Charge.cells") == sees("leaf_1", "leaf_2", "cells[1]") == 0.1
    assert sees("leaf_1", "global", "value") == 0.05


def test_wrong_names_are_told():
    for ask, error, message in [
        (("leaf_9", "leaf_1", "soc"), UnknownAgent, "visibility_matrix() got 'leaf_9'; this env has"),
        (("leaf_1", "leaf_9", "soc"), UnknownAgent, "visibility_matrix() got 'leaf_9'; this env has"),
        (("leaf_1", "leaf_2", "wrd"), UnknownFeature, "got field 'wrd' of 'leaf_2', which has ['Charge.soc', "),
        (("leaf_1", "leaf_2", "cells[2]"), UnknownFeature, "Did you mean 'cells["),
        (("leaf_1", "leaf_2", "soc"), FeatureError, "occurs 2 times; name one of ['Charge.soc', 'Talk.soc']"),
        (("leaf_1", "Charge.soc"), UnknownFeature, "got 'Charge.soc': a column is agent.Feature.field."),
    ]:
        with pytest.raises(error, match=re.escape(message)):
            world().visibility_matrix().level_of(*ask)


def test_it_says_what_it_is():
    assert repr(world().visibility_matrix()) == "<VisibilityMatrix: 6 agents and the critic x 45 columns, by tags>"
    assert repr(world(observability=EXAMPLE).visibility_matrix()).endswith("by 2 rows of a matrix, else external>")


def test_the_dense_form_is_refused_where_it_is_too_large(monkeypatch: pytest.MonkeyPatch):
    matrix = world().visibility_matrix()
    assert visibility.MOST_CELLS == 10**7
    monkeypatch.setattr(visibility, "MOST_CELLS", 7 * 45)
    assert matrix.to_dense().size == 7 * 45
    monkeypatch.setattr(visibility, "MOST_CELLS", 7 * 45 - 1)
    with pytest.raises(
        ConfigError, match=r"7 observers x 45 columns are 315 cells, more than 314; ask for single rows with row\("
    ):
        matrix.to_dense()


def test_single_rows_are_given_where_the_dense_form_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(visibility, "MOST_CELLS", 20_000)
    matrix = make("heron/BatteryGrid-v0", num_batteries=100, scope="owner").visibility_matrix()
    with pytest.raises(ConfigError, match=r"112 observers x 200 columns are 22,400 cells, more than 20,000"):
        matrix.to_dense()
    assert [s.column for s in matrix.row("battery_7")] == [
        "battery_7.BatteryChargeFeature.soc", "battery_7.BatteryChargeFeature.capacity",
    ]  # fmt: skip


@pytest.mark.parametrize("matrix", [None, EXAMPLE], ids=["tags", "matrix"])
def test_the_work_is_linear_and_none_is_done_for_pairs_before_they_are_asked_for(matrix: dict[str, Any] | None):
    def grid(n: int) -> HeronEnv:
        rows = [[f"zone_{z + 1}", f"battery_{10 * z + 1}", "insider", 0.1] for z in range(n // 10)]
        told = None if matrix is None else {"matrix": rows, "default": {"level": "unaware"}}
        return make("heron/BatteryGrid-v0", num_batteries=n, scope="parent", observability=told)

    few, many = grid(50), grid(200)
    built = [lines_run(env.visibility_matrix) for env in (few, many)]
    assert built[1] < 4.5 * built[0]
    rows = [lines_run(lambda env=env: env.visibility_matrix().row("zone_1")) for env in (few, many)]
    assert rows[1] < 4.5 * rows[0]
    whole = [lines_run(lambda env=env: shares_of(env.visibility_matrix())) for env in (few, many)]
    assert whole[1] < 4.5 * whole[0]


def test_shares_count_what_the_dense_form_has():
    env = world(observability=EXAMPLE)
    matrix = env.visibility_matrix()
    dense, columns = matrix.to_dense(), matrix.columns
    groups = {
        "top": ["top"],
        "node": ["node_1", "node_2"],
        "leaf": ["leaf_1", "leaf_2", "leaf_3"],
        "global": ["global"],
    }
    group_of = {agent: group for group, agents in groups.items() for agent in agents}
    cells: dict[tuple[str, str, str], list[float]] = {}
    for y, observer in enumerate(AGENTS):
        for x, column in enumerate(columns):
            owner, name = column.split(".", 1)
            owners = "itself" if owner == observer else group_of[owner]
            cells.setdefault((group_of[observer], owners, name.partition("[")[0]), []).append(float(dense[y, x]))
    told = {(s.observers, s.owners, s.name): s for s in shares_of(matrix) if s.observers != "critic"}
    assert set(told) == {key for key, factors in cells.items() if not all(map(math.isnan, factors))}
    for key, share in told.items():
        seen = [factor for factor in cells[key] if not math.isnan(factor)]
        assert (share.seen, share.of) == (len(seen), len(cells[key]))
        assert (share.low, share.high) == (min(seen), max(seen))
    critic = [s for s in shares_of(matrix) if s.observers == "critic"]
    assert sum(s.seen for s in critic) == len(columns)


@pytest.mark.parametrize(("share", "relation"), [(("battery", "itself"), ""), (("zone", "battery"), "child")])
def test_shares_name_the_relation_where_it_is_one(share: tuple[str, str], relation: str):
    told = shares_of(make("heron/BatteryGrid-v0", num_batteries=4, zone_size=2, scope="parent").visibility_matrix())
    found = [s for s in told if (s.observers, s.owners) == share]
    assert [(s.relation, s.name) for s in found] == [
        (relation, f"BatteryChargeFeature.{name}") for name in ("soc", "capacity")
    ]
    public = shares_of(make("heron/BatteryGrid-v0", num_batteries=4, zone_size=2).visibility_matrix())
    assert {s.relation for s in public if s.observers == s.owners == "battery"} == {""}, "siblings and others"
    assert Share("battery", "battery", "BatteryChargeFeature.soc", 12, 12, 0.0, 0.0) in public


# The picture


def meshes(figure: Any) -> list[Any]:
    return [m for m in figure.axes[0].collections if type(m).__name__ == "QuadMesh"]


def registered_order(matrix: VisibilityMatrix) -> list[int]:
    """Columns as the picture has them: owners in registration order, then global."""
    return sorted(range(len(matrix.columns)), key=lambda i: (int(matrix.layout.owner_of[i]), i))


MANY = {
    "matrix": [["leaf_1", b, "insider", 0.01 * 2**i] for i, b in enumerate(("leaf_2", "leaf_3", "node_1", "node_2"))]
    + [["leaf_2", b, "insider", 0.3 * 2**i] for i, b in enumerate(("leaf_1", "leaf_3", "node_1", "node_2"))]
}


@pytest.mark.parametrize("config", [None, EXAMPLE, MANY], ids=["tags", "matrix", "many factors"])
def test_the_picture_shows_the_dense_form_and_in_its_colours(config: dict[str, Any] | None):
    from matplotlib.colors import to_rgb

    matrix = world(observability=config).visibility_matrix()
    figure = matrix.plot()
    figure.draw_without_rendering()
    agents, critic = meshes(figure)
    drawn = np.concatenate([np.ma.filled(mesh.get_array(), np.nan).reshape(-1, 45) for mesh in (agents, critic)])
    dense = matrix.to_dense()[:, registered_order(matrix)]
    np.testing.assert_array_equal(drawn, dense)
    faces = np.concatenate([mesh.to_rgba(mesh.get_array()).reshape(-1, 45, 4) for mesh in (agents, critic)])[..., :3]
    assert np.allclose(faces[np.isnan(dense)], to_rgb(HIDDEN_COLOUR))
    assert np.allclose(faces[dense == 0.0], to_rgb(EXACT_COLOUR))
    shown = {factor: {tuple(face) for face in faces[dense == factor]} for factor in np.unique(dense[dense > 0.0])}
    assert all(len(colours) == 1 for colours in shown.values())
    kinds = {*(next(iter(c)) for c in shown.values()), to_rgb(HIDDEN_COLOUR), to_rgb(EXACT_COLOUR)}
    assert len(kinds) == len(shown) + 2, "each factor has a colour of its own"


def test_the_colours_differ_in_lightness_too():
    from matplotlib.colors import to_rgb

    lightness = [float(np.dot(to_rgb(c), (0.2126, 0.7152, 0.0722))) for c in (HIDDEN_COLOUR, *NOISE_COLOURS)]
    assert lightness == sorted(lightness, reverse=True)
    assert min(a - b for a, b in pairwise(lightness)) > 0.05


@pytest.mark.parametrize("factors", [[], [0.1], [0.01, 0.02, 0.5], [0.01 * 1.5**i for i in range(12)]])
def test_a_palette_tells_every_factor_from_exact(factors: list[float]):
    palette = Palette(np.array([0.0, *factors, np.nan]))
    assert palette.of(0.0) == EXACT_COLOUR
    assert len({tuple(palette.of(factor)) for factor in factors}) == len(factors)


def test_rows_own_cells_and_the_critic_are_marked():
    figure = world(observability=EXAMPLE).visibility_matrix().plot(title="Seen")
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [*AGENTS, "critic: state()"]
    heights = axes.get_yticks()
    assert np.diff(heights)[:-1].tolist() == [1.0] * 5
    assert heights[-1] - heights[-2] > 1.4, "the critic's row stands apart"
    frames = [(p.get_x(), p.get_y(), p.get_width()) for p in axes.patches if not p.get_fill()]
    widths = [2, 8, 8, 8, 8, 8]
    assert frames == [(sum(widths[:i]), i, w) for i, w in enumerate(widths)]
    assert [t.get_text() for t in axes.texts] == [*AGENTS, "global"]
    assert axes.get_title(loc="left") == "Seen"
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["exact", "noise 0.05", "noise 0.1", "hidden", "its own"]


def test_additive_noise_is_hatched():
    config = {
        "matrix": [{"observer": "leaf_1", "target": "leaf_2", "level": "insider", "noise": 0.1, "law": "additive"}]
    }
    axes = world(observability=config).visibility_matrix().plot().axes[0]
    hatched = [(p.get_x(), p.get_y(), p.get_width()) for p in axes.patches if p.get_hatch()]
    assert hatched == [(18, 2, 1), (20, 2, 2), (24, 2, 2)], "soc, cells, word and soc; capacity and on bear no noise"
    assert "noise: share of the range" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_rows_can_be_chosen_and_axes_given():
    from matplotlib.figure import Figure

    matrix = world().visibility_matrix()
    figure = Figure()
    axes = figure.subplots()
    assert matrix.plot(axes, observers=["leaf_2", "node_1"]) is figure
    assert [label.get_text() for label in axes.get_yticklabels()] == ["leaf_2", "node_1"]
    (mesh,) = meshes(figure)
    drawn = np.ma.filled(mesh.get_array(), np.nan).reshape(2, -1)
    np.testing.assert_array_equal(drawn, matrix.to_dense()[[3, 1]][:, registered_order(matrix)])
    with pytest.raises(UnknownAgent, match="'leaf_9'"):
        matrix.plot(observers=["leaf_9"])


def test_no_names_overlap_with_sixty_agents():
    matrix = make("heron/BatteryGrid-v0", num_batteries=60, zone_size=10, scope="parent").visibility_matrix()
    figure = matrix.plot()
    figure.draw_without_rendering()
    axes = figure.axes[0]
    for texts in (axes.get_yticklabels(), axes.texts):
        boxes = [text.get_window_extent() for text in texts]
        assert len(boxes) >= 60
        assert not any(a.overlaps(b) for a, b in pairwise(boxes))
        assert all(figure.bbox.fully_containsx(b.x0) and figure.bbox.fully_containsy(b.y1) for b in boxes)


def test_large_environments_are_drawn_by_groups_and_say_so():
    matrix = make("heron/BatteryGrid-v0", num_batteries=100, zone_size=10, scope="parent").visibility_matrix()
    axes = matrix.plot().axes[0]
    assert [t.get_text() for t in axes.get_yticklabels()] == [
        "system_agent", "zone (10)", "battery (100)", "critic: state()",
    ]  # fmt: skip
    assert "By groups of agents" in axes.get_xlabel()
    filled = {(p.get_x(), p.get_y()): p.get_width() for p in axes.patches if p.get_facecolor()[:3] < (0.5, 0.5, 0.9)}
    assert filled == {(0, 1.0): 0.1, (1, 1.0): 0.1, (0, 3.6): 1.0, (1, 3.6): 1.0}
    assert [t.get_text() for t in axes.texts] == ["10%", "10%", "battery"]


def test_chosen_rows_of_a_large_environment_are_single_agents():
    matrix = make("heron/BatteryGrid-v0", num_batteries=100, zone_size=10, scope="parent").visibility_matrix()
    axes = matrix.plot(observers=["zone_2", "battery_7"]).axes[0]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["zone_2", "battery_7"]
    filled = {(p.get_x(), p.get_y()): p.get_width() for p in axes.patches if p.get_facecolor()[:3] < (0.5, 0.5, 0.9)}
    assert filled == {(0, 0.0): 0.1, (1, 0.0): 0.1}, "a tenth of the batteries; of itself is not told"


def test_groups_whose_names_stand_for_something_else_are_told_apart():
    class Simple(FieldAgent):
        features = (Talk,)
        action = Continuous(-1.0, 1.0)

    matrix = World(SystemAgent("top", *(Simple(f"{n}_1") for n in ("critic", "global", "itself"))), max_steps=1)
    told = shares_of(matrix.visibility_matrix())
    assert {share.observers for share in told} == {
        "top", "critic (agents)", "global (agents)", "itself (agents)", "critic",
    }  # fmt: skip
    assert {s.name for s in told if (s.observers, s.owners) == ("critic", "global")} == {
        "Price.value", "Tip.hint", "Tip.mood",
    }  # fmt: skip
    assert {(s.owners, s.of) for s in told if s.observers == "critic (agents)" and s.name == "Talk.soc"} == {
        ("global (agents)", 1), ("itself (agents)", 1),
    }  # fmt: skip


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"pictures need matplotlib: pip install 'heron_env\[plots\]'"):
        world().visibility_matrix().plot()
