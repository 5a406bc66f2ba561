"""`python -m benchmarks`: what it prints, what it writes, and how it talks to peers."""

import json
import shlex
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from benchmarks import figure, page, spread
from benchmarks.__main__ import app
from benchmarks.case import Role
from benchmarks.measure import Measured, Result
from benchmarks.peer_spread import EPISODE, episodes
from benchmarks.peers import PEERS, Peer, found_peers, peer_cases
from benchmarks.report import Report
from benchmarks.suite import chosen, everything
from heron_env.errors import ConfigError
from tests.bench.test_measuring import FakeClock


def run_bench(*arguments: str):
    """Run it in this process."""
    return CliRunner().invoke(app, arguments)


def curves(*sizes: int) -> list[Result]:
    """Spread with 3 agents at these sizes: ours, a ceiling, and a peer with one environment."""
    return [
        Result(
            spread.spread_name(3, lanes), "", "env-steps/CPU-s",
            [
                Measured(spread.BATCH, Role.OURS, [1e3 * lanes, 2e3 * lanes]),
                Measured(spread.C, Role.CEILING, [8e3 * lanes, 9e3 * lanes]),
                *([Measured(PEERS["mpe2"], Role.PEER, [900.0, 1100.0])] if lanes == 1 else []),
            ],
        )
        for lanes in sizes
    ]  # fmt: skip


def test_a_quick_run_prints_figures_and_ratios():
    result = run_bench("--quick", "--rounds", "1", "--only", "grid-10-parent")
    assert result.exit_code == 0, result.stderr
    words = ("BatteryGrid, 10 agents, parent, env-steps/s", "PettingZoo API", "floor: five dictionaries", "ours to it")
    assert all(word in result.stdout for word in words)


def test_json_has_the_machine_but_nobodys_name_and_no_path(tmp_path: Path):
    result = run_bench("--quick", "--only", "grid-2-parent", "--json", "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert json.loads((tmp_path / "out" / "bench.json").read_text("utf-8")) == told
    assert (told["schema_version"], told["quick"], told["rounds"], told["slice_seconds"]) == (1, True, 2, 0.05)
    assert set(told["machine"]) == {"cores", "load_before", "system", "versions", "peers", "c"}
    assert {"python", "numpy", "numba", "heron_env"} <= set(told["machine"]["versions"])
    (comparison,) = told["comparisons"]
    assert (comparison["name"], comparison["better"]) == ("grid-2-parent", "more")
    ours, floor = comparison["cases"]
    assert [len(case["rounds"]) for case in (ours, floor)] == [2, 2]
    assert [case["role"] for case in (ours, floor)] == ["ours", "floor"]
    assert 0.0 < ours["low"] <= ours["median"] <= ours["high"]
    assert comparison["ratios"][0]["of"] == ours["name"] and comparison["ratios"][0]["to"] == floor["name"]
    assert told["figure"] is None
    assert str(tmp_path) not in result.stdout and "/" not in json.dumps(told["machine"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "spraed"], "--only 'spraed': no such comparison; groups are spread, threads, grid"),
        (["--only", "spraed"], "Did you mean 'spread'?"),
        (["--only", "spread-3-1023"], "Did you mean 'spread-3-1024'?"),
        (["--peers", "nowhere", "--only", "grid"], "--peers nowhere: holds no virtual environment of a peer"),
        (["--publish", "--quick"], "--publish: the page has no figures of short rounds; leave --quick out"),
    ],
)
def test_what_is_asked_wrongly_is_told(arguments: list[str], words: str):
    result = run_bench(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


def test_names_choose_comparisons_or_groups_of_them():
    def names(*only: str, quick: bool = False) -> list[str]:
        return [comparison.name for comparison in chosen(only, quick=quick)]

    assert names("spread-3") == ["spread-3-1", "spread-3-32", "spread-3-1024", "spread-3-16384"]
    assert names("spread-3", quick=True) == ["spread-3-1", "spread-3-32", "spread-3-1024"]
    assert names("spread-3-16384", quick=True) == ["spread-3-16384"], "named in full"
    assert names("grid-10", "power-flow") == ["grid-10-parent", "grid-10-public", "power-flow-33"]
    assert names() == [comparison.name for comparison in everything()]
    assert len(names(quick=True)) < len(names())
    sizes = {f"spread-{n}-{lanes}" for n in (3, 10, 30) for lanes in (1, 32, 1024, 16384)}
    assert sizes <= set(names())


# The figure


def test_the_figure_has_a_name_for_every_line_and_words_for_those_who_cannot_see_it(tmp_path: Path):
    lines = figure.series(curves(1, 32, 1024))
    assert [size for size, _ in lines[spread.BATCH]] == [1, 32, 1024]
    drawn = figure.draw(lines)
    texts = [text.get_text() for axes in drawn.axes for text in axes.texts]
    assert sorted(texts) == sorted(figure.LOOKS[case][0] for case in lines)
    axes = drawn.axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert figure.alternative(lines) == (
        "Env-steps per CPU second by number of environments, 3 agents. heron_env: 1,500 with 1, 1,536,000 with 1,024; "
        "C loop, float32: 8,500 with 1, 8,704,000 with 1,024; MPE, PettingZoo: 1,000 with 1."
    )
    written = Report(curves(1, 32, 1024), False, 2, 0.5).write(tmp_path)
    assert [path.name for path in written] == ["bench.json", "bench.svg"]
    assert ElementTree.parse(written[1]).getroot().tag.endswith("svg")
    told = json.loads(written[0].read_text("utf-8"))
    assert told["figure"] == {"file": "bench.svg", "alternative": figure.alternative(lines)}


def test_the_page_has_the_table_of_the_committed_results():
    results = page.committed()
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.with_table(text, results) == text
    (found,) = [found for found in results["comparisons"] if found["name"] == "spread-3-32"]
    ours, ratio = found["cases"][0], next(ratio for ratio in found["ratios"] if ratio["to"] == "JaxMARL")
    row = next(line for line in text.splitlines() if line.startswith("| 3 x 32 | BatchEnv "))
    assert f"{ours['median'] / 1e6:.3g} M" in row and f" {ratio['median']:.2f}x |" in row
    ours["median"] *= 2.0
    assert page.with_table(text, results) != text


# Peers


def interpreter(folder: Path, name: str, body: str) -> Path:
    """A program in the place of a peer's Python; it never reads its arguments."""
    path = folder / name / "bin" / "python"
    path.parent.mkdir(parents=True)
    program = path.with_suffix(".py")
    program.write_text(body, encoding="utf-8")
    command = shlex.join((sys.executable, str(program)))  # a line #! takes no path with a space
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


ANSWERS = """import json, sys
print(json.dumps({"ready": True, "version": "1.0"}), flush=True)
for line in sys.stdin:
    print(json.dumps({"rate": 100.0 * float(line), "cpu": 2.0 * float(line)}), flush=True)
"""


def test_a_peer_is_asked_in_turns_and_ends_with_its_case(tmp_path: Path):
    interpreter(tmp_path, "vmas", ANSWERS)
    pythons = found_peers(tmp_path)
    assert list(pythons) == ["vmas"]
    (case,) = peer_cases(pythons, 3, 32)
    assert (case.name, case.role) == ("VMAS", Role.PEER)
    assert [case.run(seconds) for seconds in (0.5, 2.0)] == [50.0, 200.0]
    assert case.cpu() == 5.0
    peer = case.run.__self__
    assert peer.version == "1.0"
    case.close()
    assert peer._process.returncode == 0


def test_peers_have_their_own_figures_and_jax_env_is_ours_at_one_size(tmp_path: Path):
    for name in ("mpe2", "vmas", "jax"):
        interpreter(tmp_path, name, ANSWERS.replace('"1.0"', "sys.argv[-1]"))
    small, cases = (peer_cases(found_peers(tmp_path), 3, lanes) for lanes in (32, 1024))
    assert [case.name for case in small] == ["MPE in PettingZoo", "VMAS"]
    assert {case.name: case.role for case in cases} == {
        "MPE in PettingZoo": Role.PEER, "VMAS": Role.PEER, "JaxEnv": Role.OURS,
    }  # fmt: skip
    assert [case.run.__self__.version for case in cases] == ["1024"] * 3
    for case in cases:
        case.run(float(len(case.name)))
    assert [case.cpu() for case in cases] == [2.0 * len(case.name) for case in cases], "each tells its own"
    for case in (*small, *cases):
        case.close()


def test_a_peer_that_does_not_start_is_named(tmp_path: Path):
    python = interpreter(tmp_path, "jaxmarl", "raise SystemExit(3)\n")
    with pytest.raises(ConfigError, match=r"the peer 'jaxmarl' stopped with exit code 3; run peer_spread\.py by hand"):
        Peer(python, "jaxmarl", 3, 1)


def test_a_peers_rate_counts_whole_episodes_with_their_resets():
    done, clock = [], FakeClock()

    def work(name: str, seconds: float) -> None:
        done.append(name)
        clock.working(seconds)

    found = episodes(lambda number: work("step", 0.01), lambda number: work("reset", 0.25), 1.2, 1, clock)
    assert done == ["reset", *["step"] * EPISODE] * 3
    assert found == pytest.approx(3 * EPISODE / 1.5)
