"""Every episode of a study's sweeps in one file, episodes.csv.gz, of which they are read again.

    python training/episodes.py training/results/honest_gap runs/honest_gap/sweeps    # keep what is finished there

A row is an episode. Its columns:

    sweep         folder of the sweep below the study; sweep.json in it has the policies, cases, conditions and options
    policy        a training seed is a policy of its own: "trained, run 2"
    case          number of the case; sweep.json has its seed and its day
    condition     clock and causes
    value         return of the team, in the unit of the sweep, as exactly as it was measured
    course        episodes of one sweep and case with equal numbers had the same course, bit for bit
    age_p95       age of what agents saw when they decided, 95th percentile, s; empty: the clock has no delays
    latency_p95   time from a decision to its effect, 95th percentile, s; empty: as above
    notes         what the event clock noted, as a list in JSON

KPIs and the time that an episode took are not kept. Beside sweep.json lies the sweep's table.md.
"""

import argparse
import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from heron_env.files import write_all
from heron_env.lab import SweepResult, read_sweep

FILE: Final = "episodes.csv.gz"
AGAIN: Final = "again"
"""The folder in a sweep's own of what was measured again (again.py)."""
COLUMNS: Final = ("sweep", "policy", "case", "condition", "value", "course", "age_p95", "latency_p95", "notes")
SETTINGS, TABLE, JOURNAL = "sweep.json", "table.md", "results.jsonl"
Row = dict[str, str]


def rows(study: Path) -> list[Row]:
    """All that are kept; none where there is no file."""
    if not (study / FILE).is_file():
        return []
    return list(csv.DictReader(io.StringIO(gzip.decompress((study / FILE).read_bytes()).decode())))


def names(study: Path) -> list[str]:
    """Sweeps that are kept, without what was measured again."""
    return [name for name in dict.fromkeys(row["sweep"] for row in rows(study)) if not name.endswith(f"/{AGAIN}")]


def keep(study: Path, sweeps: Mapping[str, Path]) -> None:
    """Keep the episodes of finished sweeps, by name, with what each was; of others, what there was stays."""
    new = {name: list(_of_journal(name, folder)) for name, folder in sweeps.items()}
    kept = [row for row in rows(study) if row["sweep"] not in new] + [row for found in new.values() for row in found]
    kept.sort(key=lambda row: (row["sweep"], row["policy"], row["condition"], int(row["case"])))
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(kept)
    copies = {
        study / name / file: (folder / file).read_bytes()
        for name, folder in sweeps.items()
        for file in (SETTINGS, TABLE)
    }
    for path in copies:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_all({study / FILE: gzip.compress(text.getvalue().encode(), 9, mtime=0), **copies})


def _of_journal(name: str, folder: Path) -> Iterator[Row]:
    """The rows of a sweep's own journal."""
    courses: dict[tuple[int, str], int] = {}
    count: dict[int, int] = {}
    for text in (folder / JOURNAL).read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        key = (line["case"], line["course"])
        if key not in courses:
            courses[key] = count[line["case"]] = count.get(line["case"], -1) + 1
        ages = {column: "" if line[old] is None else repr(line[old]) for column, old in _AGES.items()}
        yield {
            "sweep": name, "policy": line["policy"], "case": str(line["case"]), "condition": line["condition"],
            "value": repr(line["value"]), "course": str(courses[key]), **ages, "notes": json.dumps(line["notes"]),
        }  # fmt: skip


_AGES: Final = {"age_p95": "staleness_p95", "latency_p95": "latency_p95"}


def _as_line(row: Row) -> dict[str, Any]:
    """As a journal has it."""
    ages = {old: None if row[column] == "" else float(row[column]) for column, old in _AGES.items()}
    return {
        "policy": row["policy"], "case": int(row["case"]), "condition": row["condition"], "value": float(row["value"]),
        "course": row["course"], "kpis": {}, **ages, "notes": json.loads(row["notes"]), "seconds": 0.0,
    }  # fmt: skip


def read(study: Path, name: str, again: bool = True) -> SweepResult:
    """A sweep that is kept; of a policy that was measured again, the new episodes."""
    kept = rows(study)
    wanted = [name, f"{name}/{AGAIN}"] if again else [name]
    with TemporaryDirectory() as scratch:
        folders = []
        for one in wanted:
            lines = [json.dumps(_as_line(row)) for row in kept if row["sweep"] == one]
            if lines or one == name:
                folder = Path(scratch) / one
                folder.mkdir(parents=True)
                (folder / SETTINGS).write_bytes((study / one / SETTINGS).read_bytes())
                (folder / JOURNAL).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
                folders.append(folder)
        return read_sweep(*folders)


def main() -> None:
    """Keep all finished sweeps of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="the folder that keeps them")
    parser.add_argument("sweeps", type=Path, help="a folder with the folders of the sweeps")
    given = parser.parse_args()
    found = sorted(path.parent for path in given.sweeps.rglob(TABLE) if (path.parent / JOURNAL).is_file())
    keep(given.study, {folder.relative_to(given.sweeps).as_posix(): folder for folder in found})


if __name__ == "__main__":
    main()
