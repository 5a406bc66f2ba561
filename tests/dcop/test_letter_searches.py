"""Searches that write letters (training/reproductions): what a late letter changes, and what it never does.

Planted once and caught: moving whatever neighbours gain, not waiting for late gains.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heron_env.seeding import stream
from training import packed
from training.reproductions import ca_dcop
from training.reproductions.ca_dcop import CONDITIONS, LOSS, NONE, members
from training.reproductions.ca_dcop_report import complete, markdown
from training.reproductions.dcops import FAMILIES, Dcop, drawn
from training.reproductions.letters_world import LettersWorld, Player
from training.reproductions.searches import OFFERING, SEARCHES, Member

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
AGENTS, STEPS, NUMBER = 6, 160, 5
LATE = [name for name in CONDITIONS if name != LOSS]
Assignments = list[NDArray[np.int64]]


class Run:
    """A search on one small problem: costs at each boundary, assignments at the end of each turn, the world."""

    def __init__(self, search: str, condition: str, family: str = "dense", number: int = 0) -> None:
        schedule, loss = CONDITIONS[condition]
        self.problem = drawn(family, number, AGENTS)
        self.env = LettersWorld(self.problem, loss=loss, max_steps=STEPS)
        self.members: dict[str, Member] = members(self.problem, self.env.names, search)
        self.result = self.env.run_event_driven(self.members, seed=number, schedule=schedule)
        self.costs = -np.array([reward for _, reward in self.result.rewards["judge"]])

    @property
    def turns(self) -> Assignments:
        """As far as all have come; those without a neighbour have no turns, and keep their value."""
        last = self.last
        ends = [member.history for member in self.members.values() if member.neighbours]
        many = min(map(len, ends))
        rows = [
            m.history[:many] if m.neighbours else [x] * many for m, x in zip(self.members.values(), last, strict=True)
        ]
        return [np.array(turn) for turn in zip(*rows, strict=True)]

    @property
    def last(self) -> NDArray[np.int64]:
        """What all have in the end."""
        return self.env.world[Player].Variable.value.astype(np.int64)


def require_falling(costs: Any) -> None:
    assert (np.diff(costs) <= 0).all(), f"the cost rises: {costs}"


def require_falling_turns(run: Run) -> None:
    assert len(run.turns) >= 2
    require_falling([run.costs[0], *map(run.problem.cost, run.turns)])


kept = cache(Run)
"""Without planted faults a run is the same each time."""


@pytest.mark.parametrize("condition", LATE)
@pytest.mark.parametrize("search", SEARCHES)
def test_no_turn_raises_the_cost_however_late_letters_are(search: str, condition: str) -> None:
    require_falling_turns(kept(search, condition))


@pytest.mark.parametrize("condition", LATE)
def test_under_mgm_the_cost_rises_at_no_moment(condition: str) -> None:
    require_falling(kept("MGM", condition).costs)


def test_both_of_a_pair_move_at_once_under_mgm2_where_letters_take_no_time() -> None:
    require_falling(kept("MGM-2", NONE).costs)


def test_where_one_of_a_pair_hears_later_the_clock_shows_half_a_move() -> None:
    """Nothing promises that half of a move lowers the cost; the turns above never raise it."""
    rises = [(np.diff(kept("MGM-2", "uniform, 0 to 8", "sparse", number).costs) > 0).any() for number in range(6)]
    assert any(rises)


@pytest.mark.parametrize("search", SEARCHES)
def test_latency_changes_when_and_never_what(search: str) -> None:
    require_same_turns(search, kept)


def require_same_turns(search: str, run: Callable[..., Run]) -> None:
    plain = run(search, NONE).turns
    for condition in LATE[1:]:
        late = run(search, condition).turns
        assert 2 <= len(late) < len(plain)
        assert np.array_equal(plain[: len(late)], late)


def test_a_letter_that_takes_four_units_is_read_five_after_it_was_written() -> None:
    plain, late = kept("MGM", NONE), kept("MGM", "always 4")
    assert len({*late.costs}) > 2
    assert np.array_equal(late.costs[:: 4 + 1], plain.costs[: STEPS // (4 + 1)])


# Where they end


def better(problem: Dcop, x: NDArray[np.int64], many: int) -> bool:
    """Could so many agents, neighbours or not, lower the cost together? Every assignment is tried."""
    for agents in combinations(range(problem.agents), many):
        for values in product(range(problem.values), repeat=many):
            other = x.copy()
            other[[*agents]] = values
            if problem.cost(other) < problem.cost(x):
                return True
    return False


def test_what_counts_as_an_optimum_is_one() -> None:
    found = set()
    for family, draw in product(FAMILIES, range(8)):
        problem = drawn(family, 3, 5)
        x = stream(draw, "x").integers(problem.values, size=5)
        for _ in range(3):  # a random assignment is hardly ever an optimum: let it fall
            for i in range(5):
                x[i] = problem.alone(x, i).argmin()
            one, two = problem.one_opt(x), problem.two_opt(x)
            assert (one, two) == (not better(problem, x, 1), not better(problem, x, 1) and not better(problem, x, 2))
            found.add((one, two))
    assert found == {(True, True), (True, False), (False, False)}


@pytest.mark.parametrize(("search", "many"), [("MGM", 1), ("MGM-2", 2), ("LAMDLS-2", 2)])
def test_it_ends_where_so_many_agents_gain_nothing(search: str, many: int) -> None:
    for family in FAMILIES:
        run = kept(search, NONE, family)
        require_falling_turns(run)
        require_optimum(run, many)


def require_optimum(run: Run, many: int) -> None:
    assert not any(better(run.problem, run.last, k) for k in range(1, many + 1)), "they could gain"


def test_mgm_ends_where_two_would_gain() -> None:
    """Or the test above could not tell MGM from the others."""
    assert any(better((run := kept("MGM", NONE, "dense", number)).problem, run.last, 2) for number in range(6))


# MGM-2 once more, in one place


def plain_mgm2(problem: Dcop, start: NDArray[np.int64], names: list[str], seed: int) -> Iterator[NDArray[np.int64]]:
    """Assignments after each turn: all gains by trying, everything at once, nobody writes."""
    x, draws = start.copy(), [stream(seed, "ca_dcop", name) for name in names]
    everyone = [i for i in range(len(names)) if problem.near[i]]

    def gain(agents: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        found = tuple(int(x[i]) for i in agents), problem.cost(x)
        for values in product(range(problem.values), repeat=len(agents)):
            other = x.copy()
            other[[*agents]] = values
            if problem.cost(other) < found[1]:
                found = values, problem.cost(other)
        return problem.cost(x) - found[1], found[0]

    while True:
        asks = {}
        for i in everyone:
            if draws[i].random() < OFFERING:
                asks[i] = [*problem.near[i]][draws[i].integers(len(problem.near[i]))]
        groups = {i: (i,) for i in everyone}
        for j in everyone:
            offering = [i for i in asks if asks[i] == j and j not in asks]
            if offering:
                i = max(offering, key=lambda i: (gain((j, i))[0], -i))
                groups[i] = groups[j] = (j, i)
        gains = {i: gain(groups[i]) for i in everyone}
        wins = {
            i: gains[i][0] > 0
            and all((gains[i][0], -i) > (gains[k][0], -k) for k in problem.near[i] if k not in groups[i])
            for i in everyone
        }
        moves = {
            i: v for g in {*groups.values()} if all(wins[i] for i in g) for i, v in zip(g, gains[g[0]][1], strict=True)
        }
        for i, value in moves.items():
            x[i] = value
        yield x.copy()


@pytest.mark.parametrize("family", FAMILIES)
def test_letters_without_latency_do_what_a_plain_loop_does(family: str) -> None:
    run = Run("MGM-2", NONE, family, NUMBER)
    turns = run.turns
    run.env.run_event_driven(members(run.problem, run.env.names, ca_dcop.NOTHING), seed=NUMBER, t_end=1.0)
    start = run.last
    for turn, expected in zip(turns, plain_mgm2(run.problem, start, run.env.names, NUMBER), strict=False):
        assert np.array_equal(turn, expected)
    assert len(turns) > 10 and not np.array_equal(turns[-1], start)


# Loss


@pytest.mark.parametrize("search", SEARCHES)
def test_who_waits_for_a_lost_letter_waits_for_ever_and_the_clock_goes_on(search: str) -> None:
    run = kept(search, LOSS)
    assert run.result.letters.lost > 0 and run.result.letters.balanced()
    assert len(run.costs) == STEPS, "the episode ends all the same"
    assert len({*run.costs[STEPS // 2 :]}) == 1
    assert len(run.turns) < len(kept(search, NONE).turns) / 2


# The study


def test_the_command_goes_on_where_it_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ca_dcop, "CELLS", [("sparse", NONE)])
    command = ["--out", str(tmp_path), "--problems", "2", "--seeds", "1"]
    ca_dcop.main(command)
    assert len(capsys.readouterr().out.splitlines()) == 5
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert written.keys() == {ca_dcop.FILE, "table.md", "ca_dcop.svg"}
    ca_dcop.main(command)
    assert capsys.readouterr().out == "", "nothing is run again"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == written
    runs = packed.load(tmp_path / ca_dcop.FILE)["sparse"][NONE]
    starts = {search: [costs[0] for costs in of["costs"]] for search, of in runs.items()}
    assert len({*map(tuple, starts.values())}) == 1, "all begin alike"
    assert all(len({*costs}) == 1 for costs in runs["do nothing"]["costs"])
    assert runs["MGM-2"]["optimal"] == [True, True] and runs["random"]["optimal"] == [False, False]


def test_a_difference_is_paired_by_problem_and_a_cost_is_a_share_of_its_start() -> None:
    def runs(*ends: int) -> dict[str, list[Any]]:
        whole = {
            "mean": [float(end) for end in ends],
            "costs": [[start, end] for start, end in zip(STARTS, ends, strict=True)],
        }
        return whole | {name: [0] * len(ends) for name in ("reached", "optimal", "rises", "letters")}

    STARTS = (100, 100, 200, 200)
    found = {
        "dense": {
            "late": {"MGM": runs(80, 80, 80, 80), "MGM-2": runs(50, 70, 160, 80), "LAMDLS-2": runs(40, 60, 140, 60)}
        }
    }
    lines = markdown(found, seeds=2).splitlines()
    assert lines[4] == (
        "| dense, late | 60.0 [-194.1, 314.1] | 60.0 [60.0, 60.0] | 50.0 [50.0, 50.0] | -10.0 [-10.0, -10.0] |"
    )


def test_the_page_and_the_table_say_what_was_measured() -> None:
    kept_table = (ROOT / ca_dcop.OUT / "table.md").read_text("utf-8")
    assert kept_table == markdown(complete(packed.load(ROOT / ca_dcop.OUT / ca_dcop.FILE)), ca_dcop.SEEDS)
    page = (ROOT / "docs" / "science" / "reproductions.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if re.match(r"\| (sparse|dense|colouring), ", line)]
    assert len(rows) > 5 and {*rows} <= {*kept_table.splitlines()}
