"""The board: policies x worlds x conditions of one fixed table (zoo/board.yaml), in entries that can be played again.

An entry is a JSON file with all that its returns follow from, and the checkpoint beside it. `contradictions` says what
in it is not the board's or does not follow from its own returns; `verify_entry` plays a sample of its cases again. The
board's own entries are in the repository: a packed file a world, an entry a line.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from heron_env import registry
from heron_env.errors import ConfigError, DataError, ScheduleError
from heron_env.files.reading import first_fault, is_file, read, unpacked
from heron_env.files.writing import write
from heron_env.files.yaml_file import YamlFile
from heron_env.given import require_one_of
from heron_env.injection.contract import difference
from heron_env.lab.benchmark import NOTHING
from heron_env.lab.policies import ENDING, ENDINGS, Baseline, PolicySpec, TrainedRun, names_run
from heron_env.lab.robust_stats import LARGEST, Estimate, Intervals
from heron_env.lab.run_files import FileName
from heron_env.lab.runs import ZOO, RunFolder, open_run, shipped
from heron_env.lab.sweep.conditions import Condition
from heron_env.lab.sweep.executors import Machine
from heron_env.lab.sweep.sweep import Sweep
from heron_env.scheduling.drawn import AnySchedule, DrawnSchedule, as_dict, drawn_or_fixed
from heron_env.scheduling.timing import ScheduleConfig
from heron_env.seeding import stream

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

NONE: Final = "none"
CONDITIONS: Final = (NONE, "constant", "jitter", "bursty")
SEEDS: Final = 5
"""Trainings of each recipe."""
TOLERANCE: Final = 1e-6
"""Of a return, relative, where an entry was made on another kind of machine or with other versions."""
SAMPLE: Final = 8
"""Cases that are played again."""
PLAYED: Final = "policy"
T = TypeVar("T")
PACKED: Final = ".jsonl.gz"
OF_CHECKPOINT: Final = ("seed", "digest", "trained_under")
OWN: Final = ZOO.parents[1] / "training" / "results" / "board"
"""The board's own entries, which a wheel has not."""


def _countable(value: float) -> float:
    """A value of which there are statistics. Raises ValueError."""
    if not abs(value) <= LARGEST:
        raise ValueError(f"must be at most {LARGEST:g} in size, for statistics")
    return value


Number = Annotated[float, Field(allow_inf_nan=False), AfterValidator(_countable)]


@dataclass(frozen=True)
class BoardWorld:
    """A world of the board: baselines beside trained policies, so many test cases, amounts of what is wrong by name."""

    id: str
    options: Mapping[str, Any]
    cases: int
    rules: Sequence[str]
    conditions: Mapping[str, Mapping[str, Any]]

    def condition(self, name: str) -> Condition:
        """By its name. Raises ConfigError."""
        require_one_of(f"condition {name!r:.60} of the board", name, CONDITIONS)
        return Condition(**self.conditions[name])

    def sweep(self, policy: PolicySpec, condition: str) -> Sweep:
        """The episodes of a policy. Raises ConfigError, RunFolderError for one that does not fit."""
        options = {**self.options, "compile": True}  # plain Python gives other last bits
        return Sweep.of(self.id, {PLAYED: policy}, [self.condition(condition)], cases=self.cases, options=options)

    def facts(self, condition: str, checkpoint: RunFolder | None) -> dict[str, Any]:
        """What an entry says of where it was played, and by whom, as JSON has it."""
        env, wrong = registry.make(self.id, **self.options), self.condition(condition)
        facts: dict[str, Any] = {
            "env": self.id,
            "options": self.options,
            "condition": condition,
            "amounts": wrong.to_dict(),
        }
        facts |= {"schedule": as_dict(wrong.schedule(env)), "seed": None, "digest": None, "trained_under": None}
        if checkpoint is not None:
            under = NONE if checkpoint.schedule is None else self._named(checkpoint.schedule, env)
            facts |= {"seed": checkpoint.config.seed, "digest": checkpoint.digest(), "trained_under": under}
        return facts

    def _named(self, schedule: AnySchedule, env: HeronEnv) -> str:
        """The condition that has this schedule."""

        def timed(some: AnySchedule) -> list[tuple[int, ScheduleConfig]]:
            return [(timing.tick, replace(timing.config, tick_interval=None)) for timing in env.timings_of(some)]

        names = () if isinstance(schedule, DrawnSchedule) else CONDITIONS
        return next((n for n in names if timed(self.condition(n).schedule(env)) == timed(schedule)), "other")


@functools.cache
def board() -> dict[str, BoardWorld]:
    """The worlds that are here, by id."""
    table: dict[Any, Any] = YamlFile.read(ZOO / "board.yaml").data
    return {id: BoardWorld(id, **world) for id, world in table.items() if registry.is_here(id)}


def world_of(env_id: str) -> BoardWorld:
    """A world of the board. Raises ConfigError."""
    require_one_of(f"world {env_id!r:.60} of the board", env_id, tuple(board()))
    return board()[env_id]


def trained_name(condition: str) -> str:
    """How policies are called that PPO learned under a condition."""
    return "ppo" if condition == NONE else f"ppo-{condition}"


def stem_of(name: str, seed: int | None) -> str:
    """Of the files of a policy, without blanks: the first training seed is not said."""
    return f"{name}-seed{seed}".replace(" ", "-") if seed else name.replace(" ", "-")


class PlayedCase(BaseModel):
    """A case and what the policy earned there."""

    model_config = ConfigDict(extra="forbid", strict=True)
    seed: int
    options: dict[str, Any]
    value: Number


class BoardEntry(BaseModel):
    """ENTRY.json.

    Attributes: condition: its name; `amounts` is what it is, `schedule` what becomes of it for each agent; policy: its
        name; trainings of one recipe that differ in `seed` share it; checkpoint: the file beside this one, and `digest`
        its digest; None: a baseline of that name; trained_under: the condition that it was trained under; "other": one
        that the board has not; machine: versions and processor that decide the last bits; returns: their mean with its
        95 % interval, as of every sweep.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    schema_version: Literal[1] = 1
    env: str
    options: dict[str, Any]
    condition: str
    amounts: dict[str, Any]
    schedule: dict[str, dict[str, Any]]
    policy: str
    seed: int | None = None
    checkpoint: FileName | None = None
    digest: str | None = None
    trained_under: str | None = None
    machine: Machine
    cases: list[PlayedCase] = Field(min_length=2)
    returns: Estimate

    @property
    def values(self) -> list[float]:
        """The returns by case."""
        return [case.value for case in self.cases]

    @property
    def stem(self) -> str:
        """NAME@CONDITION, as its file is called."""
        return f"{stem_of(self.policy, self.seed)}@{self.condition}"

    def sample(self, cases: int) -> list[int]:
        """So many numbers of cases, which follow from all that the entry says: nobody chooses them alone."""
        digest = hashlib.blake2b(self.model_dump_json().encode(), digest_size=16).hexdigest()
        return sorted(stream(0, "board", digest).permutation(len(self.cases))[:cases].tolist())


def read_entry(path: str | Path) -> BoardEntry:
    """Raises DataError for what is none."""
    return _only(path, read_entries(path))


def _only(path: str | Path, entries: Sequence[T]) -> T:
    """The one in this file. Raises DataError where a packed file has several: nobody takes the first for all."""
    if len(entries) > 1:
        raise DataError(f"{path} has {len(entries)} entries of the board; one is needed, ENTRY.json")
    return entries[0]


def read_entries(path: str | Path) -> list[BoardEntry]:
    """Of ENTRY.json, or of a packed file, which has one in each line. Raises DataError for what is none."""
    try:
        data = read(path)
        texts = (unpacked(data).splitlines() or [b""]) if str(path).endswith(PACKED) else [data]
        return [BoardEntry.model_validate_json(text) for text in texts]
    except (OSError, ValueError) as error:
        why = first_fault(error) if isinstance(error, ValidationError) else error
        raise DataError(f"{path} is no entry of the board ({why}); make one with `heron board add`") from error


def packed_file(env_id: str) -> Path:
    """Of the board's own entries of a world."""
    return OWN / f"{env_id.removeprefix('heron/')}{PACKED}"


def own_entries(env_id: str) -> dict[str, BoardEntry]:
    """The board's own of a world, by names of files. Raises DataError where they are not: outside of the repository."""
    return {entry.stem: entry for entry in read_entries(packed_file(env_id))}


class Placed(NamedTuple):
    """An entry, how it is called among others, and where its checkpoint has to be; None: a baseline, or `missing`."""

    name: str
    entry: BoardEntry
    weights: Path | None

    @property
    def missing(self) -> bool:
        """Is its checkpoint nowhere?"""
        return self.entry.checkpoint is not None and self.weights is None


def placed(path: str | Path, weights: str | Path | None = None) -> Iterator[Placed]:
    """Entries of a file: ENTRY.json has its checkpoint beside it, those of packed files are shipped, or `missing`.

    `weights`: a folder of checkpoints, ENV/NAME.safetensors, which is looked into first. Raises DataError.
    """
    path = Path(path)
    packed = path.name.endswith(PACKED)
    for entry in read_entries(path):
        name = f"{entry.env}/{entry.stem}" if packed else str(path)
        folders = [] if weights is None else [Path(weights) / entry.env]
        files = [folder / str(entry.checkpoint) for folder in (*folders, ZOO / entry.env if packed else path.parent)]
        checkpoint = next(filter(is_file, files), None if packed else files[-1])
        yield Placed(name, entry, None if entry.checkpoint is None else checkpoint)


def earned(sweep: Sweep, numbers: Collection[int]) -> list[float]:
    """What the policy earns in the cases with these numbers, in their order."""
    own = [item for item in sweep.items() if item.name == PLAYED and item.number in numbers]
    items = [item for item in own if item.condition == sweep.conditions[-1]]
    records = sweep.play(items=items)
    return [records[item.key].outcome.value for item in items]


def intervals_of(cases: list[PlayedCase]) -> Intervals:
    """Figures over these cases."""
    return Intervals([sorted(case.options.items()) for case in cases])


def add_entry(policy: str, condition: str, out: str | Path, *, env: str | None = None, name: str | None = None) -> Path:
    """Play a policy over the world's cases under the condition; write the entry, and its checkpoint beside it.

    Files are OUT/ENV/NAME@CONDITION.json and OUT/ENV/NAME.safetensors; `name` is by default that of the folder or file
    without `-seedN`, or of the baseline, which takes `env`. Raises ConfigError for what the board has not,
    RunFolderError.
    """
    run = open_run(policy) if names_run(policy) else None
    world = world_of(str(env) if run is None else run.env_id)
    name = name or (policy if run is None else re.sub(rf"(-seed\d+)?({'|'.join(ENDINGS)})?$", "", Path(policy).name))
    stem, folder = stem_of(name, None if run is None else run.config.seed), Path(out) / world.id
    checkpoint = None if run is None else open_run(run.save(folder / f"{stem}{ENDING}"))
    spec = Baseline(policy) if checkpoint is None else TrainedRun(str(checkpoint.path))
    sweep = world.sweep(spec, condition)
    values = earned(sweep, range(world.cases))
    cases = [PlayedCase(seed=c.seed, options=c.options, value=v) for c, v in zip(sweep.cases, values, strict=True)]
    entry = BoardEntry(
        **world.facts(condition, checkpoint),
        policy=name,
        checkpoint=None if checkpoint is None else checkpoint.path.name,
        machine=Machine.here(),
        cases=cases,
        returns=intervals_of(cases).mean(values),
    )
    return write(folder / f"{stem}@{condition}.json", entry.model_dump_json() + "\n")


def contradictions(entry: BoardEntry, weights: Path | None) -> Iterator[str]:
    """What in an entry is not the board's, does not follow from its returns, or is not of the checkpoint there.

    Without its checkpoint, what an entry says of that is believed.
    """
    world, claims = world_of(entry.env), entry.model_dump(mode="json")
    with suppress(ScheduleError):  # earlier entries have all fields; what is no schedule differs
        claims["schedule"] = as_dict(drawn_or_fixed(claims["schedule"]))
    facts = world.facts(entry.condition, None if weights is None else open_run(weights))
    if weights is None and entry.checkpoint is not None:
        facts |= {name: claims[name] for name in OF_CHECKPOINT}
    cases = world.sweep(Baseline(NOTHING), entry.condition).cases
    claims["cases"] = [{"seed": case.seed, "options": case.options} for case in entry.cases]
    facts["cases"] = [{"seed": case.seed, "options": case.options} for case in cases]
    yield from filter(None, (difference(claims[name], fact, (name,)) for name, fact in facts.items()))
    for name, value in asdict(intervals_of(entry.cases).mean(entry.values)).items():
        if not math.isclose(claims["returns"][name], value, rel_tol=1e-12, abs_tol=1e-12):
            yield f"returns.{name}: {claims['returns'][name]!r} there, the cases give {value!r}"


@dataclass(frozen=True)
class BoardVerdict:
    """The faults, in words; the numbers of the cases played again; how this machine differs; all returns bit-equal?"""

    faults: tuple[str, ...]
    cases: tuple[int, ...]
    elsewhere: str
    exact: bool = False

    @property
    def word(self) -> str:
        """`refused`, `verified` bit for bit, `close`: in the tolerance, on another machine; or `not played`."""
        if self.faults or not self.cases:
            return "refused" if self.faults else "not played"
        return "verified" if self.exact else "close"


def verify_entry(path: str | Path, cases: int = SAMPLE, weights: str | Path | None = None) -> BoardVerdict:
    """See that an entry is the board's and follows from its returns, then play some of its cases again.

    The cases are drawn from a digest of the entry; as many as it has are all. `weights`: a folder of checkpoints,
    ENV/NAME.safetensors. Raises DataError for what is no entry, RunFolderError for a checkpoint that is missing or
    damaged.
    """
    return verified(_only(path, [*placed(path, weights)]), cases)


def verified(one: Placed, cases: int = SAMPLE) -> BoardVerdict:
    """The verdict on an entry; no case of one whose checkpoint is `missing` is played. Raises RunFolderError."""
    _, entry, weights = one
    elsewhere = Machine.here().unlike(entry.machine)
    if (faults := [*contradictions(entry, weights)]) or one.missing:
        return BoardVerdict(tuple(faults), (), elsewhere)
    sample, allowed = entry.sample(cases), TOLERANCE if elsewhere else 0.0
    spec = Baseline(entry.policy) if weights is None else TrainedRun(str(weights))
    again = [*earned(world_of(entry.env).sweep(spec, entry.condition), sample)]
    claimed = [entry.values[number] for number in sample]
    for number, claim, value in zip(sample, claimed, again, strict=True):
        if not math.isclose(claim, value, rel_tol=allowed, abs_tol=allowed):
            faults.append(f"cases[{number}].value: {claim!r} there, played again it is {value!r}")
    return BoardVerdict(tuple(faults), tuple(sample), elsewhere, exact=claimed == again)


def own_files() -> list[Path]:
    """The packed files of the board's own entries. Raises ConfigError where there are none."""
    if not (files := [file for env_id in board() if is_file(file := packed_file(env_id))]):
        raise ConfigError("the board's own entries are in the repository, not in the package: name files of entries")
    return files


def cards() -> list[dict[str, Any]]:
    """Of each shipped policy: its name, condition and seed of its training, and its size."""
    rows = list[dict[str, Any]]()
    for name, path in shipped().items():
        run = open_run(path)
        facts = world_of(run.env_id).facts(NONE, run)
        kilobytes = round(path.stat().st_size / 1000)
        rows.append({"policy": name, "trained": facts["trained_under"], "seed": facts["seed"], "kB": kilobytes})
    return rows


__all__ = ["BoardEntry", "BoardVerdict", "add_entry", "read_entry", "verify_entry"]
