"""Bars of the solvers: what they reach on the instances, beside the proven optima and what others needed."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from heron_env import stream
from heron_env.dcop import ALGORITHMS, Problem, best_response, counterfactuals, erdos_renyi, read_problem, solve
from heron_env.files import write
from heron_env.lab.dcop_comparison import anytime_figure, compared
from heron_env.lab.figure_style import to_svg
from training.coloring.bars import Bar, Found, Setting

INSTANCES = Path(__file__).resolve().parents[1] / "instances"
NAMES = ("clu15", "clu50", "clu100", "clu500", "er100")
MOST = {
    "dsa": (100, dict(zip(NAMES, (0, 0, 1, 2, 9), strict=True))),
    "maxsum": (200, dict(zip(NAMES, (1, 3, 5, 26, 13), strict=True))),
}
"""Cycles, and the conflicts that may be left, median over the seeds."""
SEEDS = 9
ON = " / ".join(NAMES)
LARGE = {"nodes": 100_000, "cycles": 100, "seconds": 60.0, "megabytes": 1000.0, "conflicts": 7300}
TABLE = {"boundary": 10, "own": 5, "milliseconds": 50.0}


def instance(name: str) -> Problem:
    """By its name."""
    return read_problem(INSTANCES / f"{name}.json")


def local_search(algo: str) -> Any:
    """How to measure what an algorithm leaves."""
    cycles, most = MOST[algo]

    def measured(setting: Setting) -> Found:
        left = {
            name: sorted(solve(instance(name), algo, seed=seed, cycles=cycles).conflicts for seed in range(SEEDS))
            for name in NAMES
        }
        told = " / ".join(f"{median(left[name]):g} [{left[name][0]}-{left[name][-1]}]" for name in NAMES)
        return Found(told, all(median(left[name]) <= most[name] for name in NAMES), {"left": left})

    return measured


def exact(setting: Setting) -> Found:
    """Elimination where the graph allows it, CP-SAT on all."""
    figures, met = {}, True
    for name in ("clu15", "clu50", "clu100", "clu500", "er15", "er50", "er100"):
        problem = instance(name)
        assert problem.optimum is not None
        for algo in ("elimination", "cpsat"):
            if algo == "elimination" and name not in ("clu15", "clu50", "clu100"):
                continue
            found = solve(problem, algo, seconds=300.0)
            figures[f"{name} {algo}"] = {"conflicts": found.conflicts, "seconds": found.seconds}
            met = met and found.proven and found.conflicts == problem.optimum.conflicts
    slowest = {algo: max(row["seconds"] for name, row in figures.items() if algo in name) for algo in ALGORITHMS[-2:]}
    words = ", ".join(f"{algo} within {seconds:.2g} s" for algo, seconds in slowest.items())
    return Found(
        f"{'the proven optimum' if met else 'not the optimum'} in {len(figures)} of 10 runs; {words}", met, figures
    )


def against_pydcop(setting: Setting) -> Found:
    """Seconds of 100 cycles on clu100 beside pyDCOP's own figure; ours are scaled up where a run ended early."""
    peers = json.loads((INSTANCES / "peers.json").read_text(encoding="utf-8"))["rows"]
    (peer,) = (
        row for row in peers
        if row["system"].startswith("pyDCOP") and (row["algorithm"], row["instance"]) == ("dsa", "clu100")
    )  # fmt: skip
    runs = [solve(instance("clu100"), "dsa", seed=seed) for seed in range(5 * SEEDS)]
    seconds = median(100 * run.seconds / max(run.cycles, 1) for run in runs)
    ratio = peer["seconds"] / seconds
    words = f"{1e3 * seconds:.1f} ms beside {peer['seconds']:g} s: 1/{ratio:.0f}"
    return Found(words, ratio >= 50.0, {"seconds": seconds, "pydcop_seconds": peer["seconds"]})


def large(setting: Setting) -> Found:
    """In a process of its own, whose memory is looked at."""
    done = subprocess.run(
        [sys.executable, "-m", "training.coloring.solvers"], capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout)
    met = all(told[name] <= LARGE[name] for name in ("seconds", "megabytes", "conflicts"))
    size = f"{told['megabytes']:.0f} MB, {told['conflicts']:,} conflicts of {told['edges']:,} edges"
    return Found(f"{told['seconds']:.2g} s, {size}", met, told)


def table(setting: Setting) -> Found:
    """Of all colourings of ten foreign nodes for five own ones; equal to enumeration up to five foreign ones."""
    draws, seconds, wrong, compared_ = stream(0, "coloring", "table"), [], 0, 0
    for case in range(20):
        foreign = TABLE["boundary"] if case < 10 else 1 + case % 5
        own, far = [f"o{i}" for i in range(5)], [f"f{i}" for i in range(int(foreign))]
        edges = {(u, v) for i, u in enumerate(own) for v in own[i + 1 :] if draws.random() < 0.6}
        edges |= {(own[int(draws.integers(5))], node) for node in far}
        edges |= {(own[int(draws.integers(5))], node) for node in far[:3]}
        part = Problem((*own, *far), tuple(sorted(edges)), clusters={"own": tuple(own), "far": tuple(far)}).part("own")
        began = perf_counter()
        found = counterfactuals(part, far, {})
        response = found.response(dict.fromkeys(far, "green"))
        seconds += [perf_counter() - began] if foreign == TABLE["boundary"] else []
        assert set(response) == set(own)
        if foreign > 5:
            continue
        for codes in product(range(3), repeat=len(far)):
            told = {node: part.domain[code] for node, code in zip(far, codes, strict=True)}
            compared_ += 1
            wrong += int(found.net[codes] != best_response(part, told)[0])
    words = f"{1e3 * median(seconds):.1f} ms (most {1e3 * max(seconds):.1f}); {wrong} of {compared_:,} entries differ"
    return Found(words, median(seconds) <= TABLE["milliseconds"] / 1e3 and not wrong, {"seconds": seconds})


def drawn(setting: Setting) -> Found:
    """The table of `heron dcop compare` and its figure, kept beside the bars."""
    rows = compared([instance(name) for name in NAMES], cycles=100, seeds=SEEDS, seconds=120.0)
    if setting.figures is not None:
        write(setting.figures / "anytime.svg", to_svg(anytime_figure(rows), text=True))
    told = {f"{row.problem.name} {row.algo}": row.words()[2] for row in rows}
    return Found(f"{len(rows)} rows; anytime.svg", True, {"conflicts": told, "rows": [row.to_dict() for row in rows]})


def words(algo: str) -> str:
    """The value of a bar of local search."""
    return " / ".join(f"≤ {most}" for most in MOST[algo][1].values())


BARS = (
    Bar("dsa", f"dsa, best within 100 cycles, median of {SEEDS} seeds, on {ON}", words("dsa"), local_search("dsa")),
    Bar("maxsum", "maxsum, anytime best in 200 cycles, on the same", words("maxsum"), local_search("maxsum")),
    Bar("exact", "elimination on clu15, clu50, clu100; cpsat on all seven", "the proven optimum", exact),
    Bar("pydcop", "dsa, 100 cycles on clu100, algorithm time / pyDCOP's", "≤ 1/50", against_pydcop),
    Bar("large", "dsa, 100,000 variables, 250,000 edges, 100 cycles", "≤ 60 s, < 1 GB, ≤ 7,300 conflicts", large),
    Bar("table", "table of 3^10 boundary colourings, 5 own nodes; enumeration where k ≤ 5", "≤ 50 ms, equal", table),
    Bar("compare", "all algorithms on five instances", "a table and the anytime figure", drawn),
)  # fmt: skip


def main() -> None:
    """The large run, as JSON on stdout."""
    problem = erdos_renyi(LARGE["nodes"], 5.0)
    found = solve(problem, "dsa", cycles=LARGE["cycles"])
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    told = {"seconds": found.seconds, "megabytes": megabytes, "conflicts": found.conflicts, "cycles": found.cycles}
    print(json.dumps({**told, "edges": len(problem.edges)}))


if __name__ == "__main__":
    main()
