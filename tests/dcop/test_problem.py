"""Problems: what they cost, what a cluster may know of them, their files, and what is wrong told by its path."""

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron_env.dcop import Problem, erdos_renyi, g15, grid, planted, problem_of, read_problem, ring50, ring_of_clusters
from heron_env.dcop import write_problem as write
from heron_env.errors import ConfigError, DeclarationError

INSTANCES = Path(__file__).parents[2] / "training" / "instances"
NAMES = ("clu15", "clu50", "clu100", "clu500", "er15", "er50", "er100")


def paths_of(error: DeclarationError) -> list[tuple[object, ...]]:
    return [problem.path for problem in error.problems]


def test_an_edge_whose_ends_are_equal_costs_the_penalty_and_a_gain_is_taken_off():
    problem = Problem(
        ("a", "b", "c"), (("a", "b"), ("b", "c")), conflict_penalty=4.0, preferences={"a": {"RED": 1.5, "blue": -1.0}}
    )
    assert problem.conflicts({"a": "red", "b": "red", "c": "red"}) == 2
    assert problem.cost({"a": "red", "b": "red", "c": "red"}) == 2 * 4.0 - 1.5
    assert problem.cost({"a": "blue", "b": "red", "c": "green"}) == 1.0


def test_the_start_is_the_first_colour_but_for_fixed_nodes():
    start = g15(fixed={"h3": "GREEN"}).start()
    assert start["h3"] == "green"
    assert {colour for node, colour in start.items() if node != "h3"} == {"red"}


def test_the_study_graph_is_as_published():
    problem = g15()
    assert (len(problem.nodes), len(problem.edges), problem.domain) == (15, 23, ("red", "green", "blue"))
    assert list(problem.clusters) == ["Human", "Agent1", "Agent2"]
    across = {frozenset(edge) for edge in problem.edges if problem.owner(edge[0]) != problem.owner(edge[1])}
    told = [("h1", "a2"), ("h4", "a4"), ("h4", "a5"), ("h2", "b2"), ("h5", "b2")]
    assert across == {frozenset(edge) for edge in told}
    assert problem.scores == {"blue": 1.0, "green": 2.0, "red": 3.0}
    assert g15(fixed="default").fixed == {"h3": "green", "a1": "green", "b4": "green"}


def test_a_part_holds_nothing_beyond_the_boundary():
    problem = g15()
    part = problem.part("Agent2")
    assert part.nodes == ("b1", "b2", "b3", "b4", "b5")
    assert part.owners == {"h2": "Human", "h5": "Human"}
    assert part.outer == (("b2", "h2"), ("b2", "h5"))
    beyond = set(problem.nodes) - {*part.nodes, *part.owners}
    assert not [node for node in beyond if node in repr(part)]
    assert problem.neighbouring("Human") == ("Agent1", "Agent2")
    assert problem.neighbouring("Agent2") == ("Human",)
    assert problem.boundary("Human", "Agent2") == ("h2", "h5")
    assert problem.foreign_boundary("Human") == ("a2", "a4", "a5", "b2")


def test_all_mistakes_are_told_at_once_with_their_paths():
    with pytest.raises(DeclarationError) as caught:
        Problem(
            nodes=("a", "b", "b", 3),  # type: ignore[arg-type]
            edges=(("a", "b"), ("b", "a"), ("a", "x"), ("a", "a"), ("a",)),  # type: ignore[arg-type]
            clusters={"A": ("a", "z"), "B": ("a",)},
            fixed={"a": "purple", "q": "red"},
            preferences={"a": {"red": float("nan"), "mauve": 1.0}},
            scores={"red": "much"},  # type: ignore[dict-item]
            conflict_penalty=0.0,
        )
    assert paths_of(caught.value) == [
        ("nodes", 2), ("nodes", 3), ("conflict_penalty",), ("edges", 1), ("edges", 2), ("edges", 3), ("edges", 4),
        ("clusters", "A", 1), ("clusters", "B", 0), ("fixed", "a"), ("fixed", "q"), ("preferences", "a", "red"),
        ("preferences", "a", "mauve"), ("scores", "red"),
    ]  # fmt: skip


def test_colours_that_differ_in_case_only_are_refused():
    with pytest.raises(ConfigError, match="differ in their case"):
        Problem(("a",), (), domain=("red", "Red"))


def test_what_changes_the_costs_drops_the_known_optimum():
    assert g15(conflict_penalty=3.0).optimum is not None
    assert g15(fixed="default").optimum is None


def test_a_problem_goes_to_other_processes():
    assert pickle.loads(pickle.dumps(ring50())) == ring50()


@pytest.mark.parametrize("name", NAMES)
def test_the_instances_have_a_witness_of_their_optimum(name: str):
    problem = read_problem(INSTANCES / f"{name}.json")
    assert problem.optimum is not None and problem.optimum.proven and problem.optimum.witness is not None
    assert problem.conflicts(problem.optimum.witness) == problem.optimum.conflicts


@pytest.mark.parametrize("name", ["clu15.yaml", "clu50.yaml", "clu15.col"])
def test_other_formats_hold_the_same_graph(name: str):
    other, ours = read_problem(INSTANCES / name), read_problem(INSTANCES / f"{name.partition('.')[0]}.json")
    assert other.ends.tolist() == ours.ends.tolist()
    assert other.conflict_penalty == ours.conflict_penalty


def test_every_problem_survives_its_file(tmp_path: Path):
    problem = g15(fixed="default", preferences={"a1": {"red": 0.25}}, conflict_penalty=2.5)
    assert read_problem(write(problem, tmp_path / "p.json")) == problem
    assert read_problem(write(ring50(), tmp_path / "r.json")) == ring50()
    again = read_problem(write(ring50(), tmp_path / "r.yaml"))
    assert again == ring50().having(optimum=None)


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip),
        min_size=2, max_size=6, unique=True,
    )
)  # fmt: skip
def test_any_names_survive_our_file(tmp_path_factory: pytest.TempPathFactory, names: list[str]):
    problem = Problem(tuple(names), ((names[0], names[-1]),), clusters={names[0]: tuple(names[:2])}, name="any")
    assert read_problem(write(problem, tmp_path_factory.mktemp("p") / "p.json")) == problem


def mended(path: Path, old: str, new: str) -> str:
    """What the reader says of a file in which something was changed."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        read_problem(path)
    return str(caught.value)


def test_a_mistake_in_a_file_is_told_with_its_line(tmp_path: Path):
    def fresh(ending: str) -> Path:
        return write(g15(), tmp_path / f"p{ending}")

    assert f"{tmp_path / 'p.json'}:11: edges[0]: 'h9' is no node" in mended(
        fresh(".json"), '["h1", "h2"]', '["h9", "h2"]'
    )
    assert "p.json:5: domain[1]: 'red' stands there twice" in mended(fresh(".json"), '"green"', '"red"')
    assert "p.json:3: is no JSON" in mended(fresh(".json"), '"format": 1', '"format" 1')
    assert "its keys are" in mended(fresh(".json"), '"scores"', '"score"')
    assert "its witness has" in mended(fresh(".json"), '"bgr', '"rgr')
    assert "p.yaml:22: constraints.k0: 'h9' is no node" in mended(fresh(".yaml"), "10.0 if h1 ==", "10.0 if h9 ==")
    assert "p.yaml:22: constraints.k0: must be" in mended(fresh(".yaml"), "10.0 if h1 == h2", "h1 + h2")
    assert "give all constraints the same cost" in mended(fresh(".yaml"), "10.0 if h1", "7 if h1")
    dimacs = tmp_path / "p.col"
    dimacs.write_text("p edge 3 2\ne 1 2\ne 2 4\n")
    with pytest.raises(ConfigError, match=r"p\.col:3: 2-4 is no edge"):
        read_problem(dimacs)
    for number, line in ((1, "p edge"), (2, "e 1"), (2, "e 1 two"), (2, "e 1 " + "9" * 5000)):
        dimacs.write_text("p edge 3 2\n" * (number - 1) + line)
        with pytest.raises(ConfigError, match=rf"p\.col:{number}: '{line[:50]}.* has no whole numbers where") as caught:
            read_problem(dimacs)
        assert len(str(caught.value)) < 500


def test_what_is_no_problem_is_refused_by_name(tmp_path: Path):
    for name, content in {"p.json": "[]", "p.yaml": "a: 1", "p.txt": ""}.items():
        (tmp_path / name).write_text(content)
        with pytest.raises(ConfigError, match=name):
            read_problem(tmp_path / name)
    with pytest.raises(ConfigError, match=r"missing\.json"):
        problem_of(str(tmp_path / "missing.json"))
    with pytest.raises(ConfigError, match="fixed nodes have no place"):
        write(g15(fixed="default"), tmp_path / "p.yaml")


def test_files_are_small_enough_to_read(tmp_path: Path):
    path = write(g15(), tmp_path / "p.json")
    assert json.loads(path.read_text())["nodes"] == list(g15().nodes)
    assert max(map(len, path.read_text().splitlines())) < 160


@given(st.integers(3, 12), st.integers(0, 5), st.integers(0, 3))
def test_a_ring_has_its_edges_and_neighbours(clusters: int, seed: int, chords: int):
    chords = min(chords, clusters * (clusters - 3) // 2)
    problem = ring_of_clusters(clusters, seed=seed, chords=chords)
    assert len(problem.nodes) == 5 * clusters
    assert len(problem.edges) == 6 * clusters + 2 * (clusters + chords)
    assert all(len(problem.neighbouring(owner)) >= 2 for owner in problem.clusters)
    assert problem == ring_of_clusters(clusters, seed=seed, chords=chords)


@given(st.integers(8, 60), st.integers(0, 9), st.sampled_from([2, 3, 5]))
def test_a_planted_graph_knows_its_witness(nodes: int, seed: int, colours: int):
    problem = planted(nodes, 3.0, colours=colours, seed=seed)
    assert problem.optimum is not None and problem.optimum.witness is not None
    assert len(problem.edges) == round(1.5 * nodes)
    assert problem.conflicts(problem.optimum.witness) == 0


def test_generators_draw_the_edges_they_are_asked_for():
    assert len(erdos_renyi(200, 5.0, seed=1).edges) == 500
    assert erdos_renyi(200, seed=1).edges != erdos_renyi(200, seed=2).edges
    assert len(erdos_renyi(5, 4.0).edges) == 10  # all there are
    assert len(grid(3, 4).edges) == 17
    for wrong in (
        lambda: erdos_renyi(5, 4.5),
        lambda: planted(4, 9.0),
        lambda: ring_of_clusters(2),
        lambda: grid(0, 1),
    ):
        with pytest.raises(ConfigError):
            wrong()
