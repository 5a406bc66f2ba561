"""The benchmark cards: training/results/card.json, and its tables in docs, from the committed results.

    python training/card.py            # write both
    python training/card.py --check    # say what differs, and end with 1 if anything does

A line is one cell of a table: policy, condition, score with its interval, and the command and commit that made it.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import episodes
import packed

from heron_env.lab import SweepResult, read_margin
from heron_env.lab.sweep.tables import to_json

ROOT: Final = Path(__file__).resolve().parent.parent
RESULTS: Final = ROOT / "training" / "results"
CARD: Final = RESULTS / "card.json"
DOCS: Final = ROOT / "docs"
SCHEMA: Final = 1
ENERGY, COLOURING = "heron/EnergyManagement-v1", "heron/GraphColoring-v0"
GAP, NETWORK = "python training/honest_gap.py", "python -m training.coloring"
MARGINS: Final = "python training/margins.py"
RULE: Final = "grid-friendly with zone feedback"
EPISODES: Final = f"honest_gap/{episodes.FILE}"
NAMES: Final = {RULE: "rule"}
DAYS, SEEDS_AND_DAYS = "95 %, t, over days", "95 %, t, over training seeds and days"
DELAYS: Final = (0.001, 1, 3, 6, 15, 30, 60, 120)
WORLDS: Final = {
    "shipped": "as shipped: telemetry every 10 s, own meter by wire",
    "no-local-rows": "own meter by message",
    "no-telemetry": "reports once a minute",
    "neither": "both",
}


@dataclass(frozen=True)
class Line:
    """One cell: `table`, `row` and `column` say where it stands, `source` which committed file it is read from."""

    table: str
    row: str
    column: str
    benchmark: str
    policy: str
    condition: str
    metric: str
    score: float
    interval: tuple[float, float] | None
    interval_of: str | None
    source: str
    command: str

    @property
    def told(self) -> str:
        """As the page shows it."""
        if self.metric.startswith("share"):
            digits = 1 if "lost" in self.metric else 0
            ends = self.interval and f" [{', '.join(f'{100 * end:.{digits}f}' for end in self.interval)}]"
            return f"{100 * self.score:.{digits}f} %{ends or ''}".replace("-0.0", "0.0")
        digits = {"EUR a day": 1, "edges in conflict, median": 0, "s, 95 % of the gain kept": 0}.get(self.metric, 2)
        ends = self.interval and f" [{', '.join(f'{end:.{digits}f}' for end in self.interval)}]"
        return f"{self.score:.{digits}f}{' s' if self.metric.startswith('s,') else ''}{ends or ''}"


@cache
def read(name: str) -> Any:
    """A committed result."""
    path = RESULTS / name
    if path.suffix == ".gz":
        return packed.load(path)
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else text


def rounded(value: float) -> float:
    """Six digits, more than any page shows; no -0."""
    return round(value, 6) + 0.0


def interval(found: Mapping[str, float]) -> tuple[float, float]:
    """Its ends."""
    return rounded(found["low"]), rounded(found["high"])


@cache
def sweep(world: str) -> SweepResult:
    """One of the gap's; of what was measured again, the new episodes."""
    return episodes.read(RESULTS / "honest_gap", world)


@cache
def sweep_rows(world: str) -> dict[tuple[str, str], Any]:
    """Rows of its table by policy and condition."""
    return {(row["policy"], row["condition"]): row for row in json.loads(to_json(sweep(world)))["rows"]}


def energy(table: str, place: tuple[str, str], key: tuple[str, str, str], what: str, metric: str) -> Iterator[Line]:
    """One cell of a sweep over test days: `what` is the name of a mean with its interval."""
    world, policy, condition = key
    if (found := sweep_rows(world).get((policy, condition))) is not None:
        said = SEEDS_AND_DAYS if found["seeds"] > 1 else DAYS
        told = f"{WORLDS[world]}, {condition}" if world in ("no-local-rows", "no-telemetry", "neither") else condition
        score, ends = rounded(found[what]["value"]), interval(found[what])
        yield Line(table, *place, ENERGY, NAMES.get(policy, policy), told, metric, score, ends, said, EPISODES, GAP)


def returns() -> Iterator[Line]:
    """EUR a day on the synchronous clock and under three networks."""
    columns = {
        "sync": "synchronous",
        "msg_delay=3 jitter=0.1": "messages 3 s, 10 % jitter",
        "msg_delay=15": "messages 15 s",
        "act_delay=60": "actions 60 s late",
    }
    for policy in ("random", "do nothing", "self-consumption", RULE, "trained", "MPC", "MPC, central"):
        label = f"{NAMES.get(policy, policy)}{', five seeds' if policy == 'trained' else ''}"
        for condition, column in columns.items():
            yield from energy("returns", (label, column), ("references", policy, condition), "mean", "EUR a day")
    optimum = statistics.fmean(case.optimum for case in sweep("references").sweep.cases if case.optimum is not None)
    name = "perfect foresight"
    yield Line(
        "returns", name, "synchronous", ENERGY, name, "sync", "EUR a day", rounded(optimum), None, None, EPISODES, GAP
    )


def lost() -> Iterator[Line]:
    """Share of the gain over doing nothing that late messages and late actions take."""
    for delay in DELAYS:
        row = "1 ms" if delay < 1 else f"{delay} s"
        for cause, words in (("msg_delay", "messages"), ("act_delay", "actions")):
            for world, policy in (("shipped", RULE), ("shipped", "MPC"), ("trained", "trained")):
                column = f"{words} late: {NAMES.get(policy, policy)}"
                key = (world, policy, f"{cause}={delay}")
                yield from energy("lost", (row, column), key, "lost", "share of the gain lost")


def measuring() -> Iterator[Line]:
    """The same in worlds that measure otherwise."""
    for world, row in WORLDS.items():
        for policy in (RULE, "MPC"):
            for delay in (0.001, 3, 15):
                amount = "1 ms" if delay < 1 else f"{delay} s"
                place = (row, f"{NAMES.get(policy, policy)}: {amount}")
                key = (world, policy, f"msg_delay={delay}")
                yield from energy("measuring", place, key, "lost", "share of the gain lost")


def margins() -> Iterator[Line]:
    """Up to which delay 95 % of the gain is kept; the ends of the interval are delays that were tried."""
    for policy in ("rule", "MPC", "trained"):
        for fault, column in (("msg_delay", "messages late by"), ("act_delay", "actions late by")):
            folder = f"margins/{policy}-{fault}"
            if not (RESULTS / folder).exists():
                continue
            found = read_margin(RESULTS / folder)
            said = f"95 %, t with Bonferroni, {max(probe.cases for probe in found.probes)} days"
            row = f"{policy}, one seed" if policy == "trained" else policy
            yield Line(
                "margins", row, column, ENERGY, policy, fault, "s, 95 % of the gain kept", found.nearest,
                (found.low, found.high), said, f"{folder}/margin.json", MARGINS,
            )  # fmt: skip


def consensus() -> Iterator[Line]:
    """How often clusters reach a consensus within 120 s."""
    file = "coloring/network.json.gz"
    cells = read(file)["cells"]
    for condition in cells["stable process"]:
        for policy in ("stable process", "patient process"):
            found = cells[policy][condition]["consensus"]
            place, said = (condition, policy), f"95 %, Wilson, {found['n']} seeds"
            score = rounded(found["share"])
            yield Line(
                "consensus", *place, COLOURING, policy, condition, "share of consensus within 120 s", score,
                interval(found), said, file, NETWORK,
            )  # fmt: skip


MEASURED = re.compile(r"(-?[\d.]+) \[(-?[\d.]+), (-?[\d.]+)\]")


def learned() -> Iterator[Line]:
    """What PPO learns, beside what needs no learning; of the table that the study wrote."""
    file = "coloring/learning.md"
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in read(file).splitlines() if "|" in line]
    head, _, *rows = lines
    for row in rows:
        policy, clock = row[:2]
        over = "over training seeds and starts" if policy.startswith("PPO") else "over starts"
        for metric in ("conflicts", "consensus"):
            found = MEASURED.fullmatch(row[head.index(metric)])
            assert found, row
            score, low, high = map(float, found.groups())
            words = {"conflicts": "conflicts left", "consensus": "share of consensus"}[metric]
            said = f"95 %, {'Wilson' if metric == 'consensus' else 't, cut at 0'}, {over}"
            place = (policy, f"{words.removeprefix('share of ')}, {clock}")
            yield Line(
                "learned", *place, COLOURING, policy, clock, words, score, (low, high), said, file, NETWORK,
            )  # fmt: skip


def solved() -> Iterator[Line]:
    """Edges left in conflict by local search, median of nine seeds, with the least and the most."""
    file = "coloring/bars.json"
    bars = {bar["name"]: bar for bar in read(file)["bars"]}
    for solver, words in (("dsa", "dsa, best of 100 cycles"), ("maxsum", "maxsum, best of 200 cycles")):
        for instance, left in bars[solver]["figures"]["left"].items():
            ends = (float(min(left)), float(max(left)))
            said, score = f"least and most of {len(left)} seeds", float(statistics.median(left))
            metric = "edges in conflict, median"
            yield Line(
                "solved", words, instance, COLOURING, solver, instance, metric, score, ends, said, file, NETWORK,
            )  # fmt: skip


TABLES: Final = {
    "science/energy_management.md": (returns, lost, margins, measuring),
    "graph_coloring.md": (consensus, learned, solved),
}


def collected() -> list[Line]:
    """All lines, from the committed results."""
    return [line for tables in TABLES.values() for table in tables for line in table()]


def git(*words: str) -> str:
    """What git says; "" where there is none, or no such commit."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def commit_of(source: str) -> str:
    """The commit that brought the file as it is."""
    return git("log", "-1", "--format=%h", "--abbrev=12", "--", f"training/results/{source}")


def table(lines: Iterable[Line], name: str) -> str:
    """The Markdown of one table."""
    mine = [line for line in lines if line.table == name]
    rows, columns = (list(dict.fromkeys(getattr(line, kind) for line in mine)) for kind in ("row", "column"))
    cells = {(line.row, line.column): line.told for line in mine}
    head = [f"| | {' | '.join(columns)} |", f"|---{'|---:' * len(columns)}|"]
    body = [f"| {row} | {' | '.join(cells.get((row, column), '') for column in columns)} |" for row in rows]
    return "\n".join([*head, *body])


def page_with(text: str, lines: list[Line]) -> str:
    """A page whose tables, between `% card NAME` and `% end of card`, are those of the lines."""
    return re.sub(
        r"^% card (\w+)\n.*?^% end of card$",
        lambda found: f"% card {found[1]}\n\n{table(lines, found[1])}\n\n% end of card",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )


def stored() -> list[dict[str, Any]]:
    """The lines of card.json."""
    return list(json.loads(CARD.read_text(encoding="utf-8"))["lines"])


def as_stored(line: Line) -> dict[str, Any]:
    """A line as JSON has it, without its commit."""
    return dict(json.loads(json.dumps(asdict(line))))


def complaints() -> Iterator[str]:
    """Where card.json differs from the results, from the pages, or names a commit that has another file."""
    found, known = [as_stored(line) for line in collected()], stored()
    bare = [{key: value for key, value in line.items() if key != "commit"} for line in known]
    for one, other in zip(found, bare, strict=False):
        if one != other:
            yield f"card.json has {other}, the results have {one}"
    if len(found) != len(bare):
        yield f"card.json has {len(bare)} lines, the results have {len(found)}"
    lines = [Line(**{**line, "interval": line["interval"] and tuple(line["interval"])}) for line in bare]
    for name in TABLES:
        page = (DOCS / name).read_text(encoding="utf-8")
        if page_with(page, lines) != page:
            yield f"docs/{name} shows other tables than card.json has"
    for source, commit in sorted({(line["source"], line["commit"]) for line in known}):
        file = f"training/results/{source}"
        there = git("rev-parse", f"{commit}:{file}")  # "" in a shallow clone, or without git
        if there and there != git("hash-object", file):
            yield f"card.json says that {file} is of {commit}, which has another one"


def write() -> None:
    """card.json and the tables of the pages."""
    lines = collected()
    commits = {source: commit_of(source) for source in {line.source for line in lines}}
    told = [as_stored(line) | {"commit": commits[line.source]} for line in lines]
    body = ",\n".join(f"  {json.dumps(line, ensure_ascii=False)}" for line in told)
    CARD.write_text(f'{{"schema": {SCHEMA}, "lines": [\n{body}\n]}}\n', encoding="utf-8")
    for name in TABLES:
        page = DOCS / name
        page.write_text(page_with(page.read_text(encoding="utf-8"), lines), encoding="utf-8")


def main() -> int:
    """Write, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    if not parser.parse_args().check:
        write()
        return 0
    found = [*complaints()]
    for complaint in found:
        print(complaint)
    print(f"{len(stored())} lines: {'differences, run python training/card.py' if found else 'all agree'}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
