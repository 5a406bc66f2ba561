"""The record of a real run as a file that grows with it, so that what a killed hub leaves can be repeated as well (R5).

A line for each thing that came or was decided, after a digest of itself and of all lines before it: what was changed
is refused, what was cut off is missing and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heron_env import registry
from heron_env._version import __version__
from heron_env.errors import TraceError
from heron_env.files import reading
from heron_env.files.writing import Journal, compact
from heron_env.lab.runs import versions
from heron_env.lab.traces.episode import Episode, TraceSetting, identity_of, policies_of, schedule_entries
from heron_env.lab.traces.recording import record
from heron_env.scheduling.arrivals import SCHEMA, Arrivals
from heron_env.scheduling.drawn import AnySchedule

if TYPE_CHECKING:
    from heron_env.real.carrier import Carrier
    from heron_env.real.hub import RealRun

NAME: Final = "arrivals.jsonl"
DIGITS: Final = 16
"""Of a line's digest, hexadecimal."""
AGAIN: Final = "restore it, or record the run again"


class RecordFile:
    """Written by one run: `note` between its instants, `end` once it is over. Raises OSError naming the file.

    Args:
        path: is made, with its folders.
        about: what made the run, in plain values: for people and for `heron replay`.
        arrivals: of the run, as it begins: seed and places.
    """

    def __init__(self, path: str | Path, about: Mapping[str, Any], arrivals: Arrivals) -> None:
        self.path, self._digest = Path(path), ""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._journal = Journal(self.path, sync=False)
        self._answered: dict[int, int] = {}
        head = {"schema": SCHEMA, "heron_env": __version__, "seed": arrivals.seed, "places": dict(arrivals.places)}
        self._write([{**head, "about": dict(about)}])

    def note(self, carrier: Carrier, *, last: bool = False) -> None:
        """What is new since the last time; everything up to now has happened. `last`: no answer will come any more."""
        rows, carrier.log = carrier.log, []
        ids = carrier.run.env.hierarchy.ids
        for rank, answers in carrier.run.answers.recorded.items():
            place = self._answered.get(rank, 0)
            while place < len(answers) and (last or answers[place] is not None or place + 1 < len(answers)):
                answer = answers[place]
                rows.append(["answer", ids[rank], None if answer is None else asdict(answer)])
                place += 1
            self._answered[rank] = place
        if rows:
            self._write([*rows, ["through", carrier.run.context.scheduler.now]])

    def end(self, arrivals: Arrivals) -> None:
        """The run is over; its course."""
        self._write([["end", arrivals.until, dict(arrivals.course)]])
        self._journal.close()

    def _write(self, rows: list[Any]) -> None:
        lines = []
        for row in rows:
            text = compact(row)
            self._digest = chained(self._digest, text)
            lines.append(f"{self._digest} {text}\n")
        self._journal.append("".join(lines).encode())


def require_new(path: str | Path) -> None:
    """Raise TraceError where a file is already."""
    if Path(path).exists():
        raise TraceError(f"{path} exists: the record of a run is never overwritten; name another folder")


def chained(before: str, text: str) -> str:
    """The digest of a line."""
    return sha256(f"{before}{text}".encode()).hexdigest()[:DIGITS]


def read_record(path: str | Path) -> tuple[dict[str, Any], Arrivals]:
    """Read the settings of a run and its record, from a file or its folder. Raises TraceError."""
    place = Path(path) / NAME if reading.is_folder(path) else Path(path)
    try:
        head, *rows = _rows(reading.read(place).decode())
        if head["schema"] != SCHEMA:
            raise TraceError(
                f"{place} has schema version {head['schema']!r:.60}, heron_env {__version__} reads version {SCHEMA}: "
                f"install heron_env {head['heron_env']!s:.60}, which wrote it"
            )
        return dict(head["about"]), _arrivals(head, rows)
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, TraceError):
            raise
        raise TraceError(f"{place} is no record of a run ({error!s:.200}); {AGAIN}") from error


def _rows(text: str) -> Iterator[Any]:
    """Raises ValueError at a line that was changed; the last may be cut off."""
    digest, lines = "", text.splitlines()
    for number, line in enumerate(lines, 1):
        digest = chained(digest, line[DIGITS + 1 :])
        if line[: DIGITS + 1] == f"{digest} ":
            yield reading.parsed(line[DIGITS + 1 :])
        elif number < len(lines) or number == 1:
            raise ValueError(f"line {number} was changed after it was written")


def _arrivals(head: dict[str, Any], rows: list[Any]) -> Arrivals:
    from pydantic import TypeAdapter

    messages: dict[int, dict[str, Any]] = {}
    answers: dict[str, list[Any]] = {}
    begins: dict[str, list[int]] = {}
    until, course = 0, {}
    for row in rows:
        match row:
            case ["sent", id, link, ns]:
                messages[id] = {"link": link, "sent": ns, "came": []}
            case ["came", id, ns]:
                messages[id]["came"].append(ns)
            case ["answer", agent, answer]:
                answers.setdefault(agent, []).append(answer)
            case ["begins", agent, place]:
                begins.setdefault(agent, []).append(place)
            case ["through", ns]:
                until = ns
            case ["end", ended, digests]:
                until, course = ended, digests
            case _:
                raise ValueError(f"{row!r:.100} is nothing that a record holds")
    arrivals: Arrivals = TypeAdapter(Arrivals).validate_python(
        {"seed": head["seed"], "places": head["places"], "messages": messages, "answers": answers, "begins": begins,
         "until": until, "course": course}
    )  # fmt: skip
    return arrivals


def repeated(
    run: RealRun, env_id: str, options: Mapping[str, Any], policy: str, schedule: AnySchedule, t_end: float | None
) -> Episode:
    """A run as `heron trace` records one, for `heron replay` and `watch`: made by repeating it from its record.

    Raises TraceError where it does not come out the same.
    """
    env = registry.make(env_id, **options)
    setting = TraceSetting(
        env_id, dict(options), env.compiled, identity_of(policy), run.arrivals.seed, schedule_entries(schedule), t_end,
        None, versions(), data=dict(env.data_files()), arrivals=run.arrivals,
    )  # fmt: skip
    decided = {**policies_of(setting.policy, env, setting.seed), **run.arrivals.policies()}
    episode = record(env, decided, setting)
    if episode.returns != run.result.returns:
        raise TraceError("repeated from its record the run comes out otherwise; the record is kept: report this fault")
    return episode
