"""Recordings of external agents: a file of all questions with their answers, written, continued and played again.

A header, a line of JSON for each decision, a footer with their count and sha256. Killed at any point, a recording
leaves full lines and perhaps half a last one; without a footer it is one that was cut off, and can be continued.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Self

from pydantic import ValidationError

from heron_env._version import __version__
from heron_env.core.policy import Answer, Asked
from heron_env.errors import ConfigError, FixtureError
from heron_env.files.reading import first_fault, parsed, read
from heron_env.files.writing import Journal, compact, full_lines, lock_beside
from heron_env.given import path_of
from heron_env.injection.answers import Consulted, on_wire
from heron_env.injection.contract import FIRST_VERSION, SCHEMA_VERSION, Sha256, WireModel, difference
from heron_env.injection.endpoint import Endpoint
from heron_env.injection.policy import Due, ExternalPolicy
from heron_env.injection.questions import Questions, Telling, request_change
from heron_env.injection.setting import EnvironmentFacts, sha256
from heron_env.injection.tally import AnswerTally, ExternalAgentMetrics

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

FIXTURE_VERSION: Final = "1.0"
BEGINNING: Final = b'{"fixture_version":'
Now = Callable[[], datetime]


class Header(WireModel):
    """The first line: of which agent, environment and seed, and all that requests are made from besides questions."""

    fixture_version: Literal["1.0"]
    created_at: str
    baseline_agent: dict[str, str]
    env_id: str
    options: dict[str, Any]
    seed: int
    hashes: dict[str, Sha256]
    versions: dict[str, str]
    setting: EnvironmentFacts
    telling: Telling

    @classmethod
    def of(cls, questions: Questions, baseline: dict[str, str], seed: int, now: Now) -> Header:
        """Of a recording that begins."""
        setting = questions.setting
        return cls(
            fixture_version=FIXTURE_VERSION,
            created_at=now().astimezone(timezone.utc).isoformat(timespec="seconds"),  # noqa: UP017
            baseline_agent=baseline,
            env_id=setting.env_id,
            options=setting.options,
            seed=seed,
            hashes=_hashes(questions),
            versions={"heron_env": __version__, "schema": SCHEMA_VERSION},
            setting=setting,
            telling=questions.telling,
        )

    def resumed(self, before: Header) -> Header:
        """The same with the time, the versions and the key of a recording that was cut off."""
        telling = self.telling.model_copy(update={"key": before.telling.key})
        hashes = _hashes(Questions(self.setting, telling))
        unchanged = {"created_at": before.created_at, "versions": before.versions}
        return self.model_copy(update={**unchanged, "telling": telling, "hashes": hashes})


def _hashes(questions: Questions) -> dict[str, str]:
    personas = {name: questions.persona_hash(name) for name in questions.setting.agents}
    return {"simulation_config": questions.config_hash, **personas}


class Fixture:
    """Content of a recording. Raises FixtureError: damaged, changed, or another version; with line and remedy.

    Attributes:
        decisions: by `Consulted.key`, in their order.
        whole: True: it has a footer, so nothing is missing.
        ends: ends of its header and of each decision, bytes.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path_of(path, "fixture")
        try:
            data = read(self.path)
        except (OSError, ValueError) as error:
            raise FixtureError(f"{self.path}: can't be read ({error}); name the file of a recording") from error
        lines = data[: full_lines(data)].splitlines(keepends=True)
        if not data.startswith(BEGINNING[: len(data)]) or (lines and b'"payloads":' in lines[0]):
            adr = ", but its export by to_adr(), which isn't replayed" if b'"payloads":' in data else ""
            raise FixtureError(f"{self.path}: is no recording{adr}; record it again, or name the file of a recording")
        if not lines:
            raise FixtureError(f"{self.path}: holds no whole line, so nothing was recorded; remove it")
        self.header = self._built(Header, lines[0], 1)
        self.decisions: dict[tuple[int, str], Consulted] = {}
        self.whole, self._digest, self.ends = False, hashlib.sha256(lines[0]), [len(lines[0])]
        for number, line in enumerate(lines[1:], start=2):
            if self.whole:
                self._damaged(number, "something follows the footer")
            if line.startswith(b'{"count":'):
                self._check_footer(number, line)
            else:
                self._add(number, line)
                self.ends.append(self.ends[-1] + len(line))

    def _add(self, number: int, line: bytes) -> None:
        entry = self._parsed(line, number)
        digest = entry.pop("sha256", None) if isinstance(entry, dict) else None
        decision = self._built(Consulted, entry, number)
        if "turn_id" not in decision.request or sha256(decision.request) != digest:
            self._damaged(number, "its request is not what its sha256 says")
        if decision.key in self.decisions:
            self._damaged(number, "this decision is there twice")
        self.decisions[decision.key] = decision
        self._digest.update(line)

    def _check_footer(self, number: int, line: bytes) -> None:
        if self._parsed(line, number) != {"count": len(self.decisions), "sha256": self._digest.hexdigest()}:
            self._damaged(number, "count or sha256 of the lines before is another")
        self.whole = True

    def _parsed(self, line: bytes, number: int) -> Any:
        try:
            return parsed(line)
        except ValueError as error:
            self._damaged(number, str(error), error)

    def _built(self, model: type[WireModel], value: Any, number: int) -> Any:
        try:
            return model.model_validate(self._parsed(value, number) if isinstance(value, bytes) else value)
        except ValidationError as error:
            self._damaged(number, first_fault(error), error)
        except ValueError as error:  # of a persona, which says so itself
            self._damaged(number, str(error), error)

    def _damaged(self, number: int, why: str, cause: Exception | None = None) -> NoReturn:
        raise FixtureError(f"{self.path}:{number}: {why}; record it again, or restore the file") from cause

    def to_adr(self) -> dict[str, Any]:
        """Return all of it as one JSON object of the injection schema."""
        header = self.header
        return {
            "fixture_version": header.fixture_version,
            "created_at": header.created_at,
            "baseline_agent": {"endpoint": header.baseline_agent["host"], "model": header.baseline_agent["model"]},
            "payloads": [
                {
                    "turn_id": decision.request["turn_id"],
                    "agent_id": decision.agent,
                    "request": decision.request,
                    "baseline_response": decision.response,
                }
                for decision in self.decisions.values()
            ],
        }


class FixtureWriter:
    """A file that a recording grows in: a new one, or one that was cut off, from where it was.

    Attributes:
        header: its first line.
        done: decisions that it holds already.

    Raises FixtureError: it is finished, of something else, or another process is writing; without `any_version`, or
    another version of heron_env began it.
    """

    def __init__(self, path: Path, header: Header, *, any_version: bool = False) -> None:
        self.path, self.header, self._any_version = path, header, any_version
        self.done: dict[tuple[int, str], Consulted] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = None
        try:
            self._file = Journal(path, sync=False)
        except OSError as error:
            raise FixtureError(f"{self.path}: can't be opened ({error.strerror}); choose another file") from error
        except ValueError as error:
            raise FixtureError(f"{self.path}: {error}; choose another file") from error
        try:
            try:
                self._lock = lock_beside(path)
            except OSError as error:
                raise FixtureError(f"{self.path}: can't be locked ({error.strerror}); choose another file") from error
            if self._lock is None:
                raise FixtureError(f"{self.path}: another recording is writing here; choose another file")
            first = f"{header.model_dump_json()}\n".encode()
            length = self._continue(first)
            self._file.truncate(length)
            if not length:
                self._file.append(first)
        except BaseException:
            self._close()
            raise

    def _continue(self, first: bytes) -> int:
        """Take up what is there; the length of its whole lines."""
        self._digest, self._ends = hashlib.sha256(first), [len(first)]
        content = self._file.read(2**26)
        if not content.startswith(BEGINNING[: len(content)]):
            raise FixtureError(f"{self.path}: is no recording, and is left as it is; choose another file")
        if b"\n" not in content:  # not even the header is whole
            return 0
        before = Fixture(self.path)
        if before.whole:
            raise FixtureError(f"{self.path}: this recording is finished; choose another file, or remove it")
        then, now = before.header.versions, self.header.versions
        if then != now and not self._any_version:
            raise FixtureError(
                f"{self.path}: this recording was begun by heron_env {then.get('heron_env')}, this is "
                f"{now['heron_env']}: install that version, choose another file, or go on with "
                "Recording(..., any_version=True)"
            )
        self.header = self.header.resumed(before.header)
        where = difference(before.header.model_dump(mode="json"), self.header.model_dump(mode="json"))
        if where:
            raise FixtureError(f"{self.path}: is a recording of something else ({where}); choose another file")
        self.done, self._digest, self._ends = before.decisions, before._digest, before.ends
        return before.ends[-1]

    def add(self, decisions: Sequence[Consulted]) -> None:
        """Append a line each. Raises OSError naming the file."""
        for decision in decisions:
            line = {**decision.model_dump(mode="json"), "sha256": sha256(decision.request)}
            data = f"{compact(line)}\n".encode()
            self._file.append(data)
            self._digest.update(data)
            self._ends.append(self._ends[-1] + len(data))
            self.done[decision.key] = decision

    def keep(self, many: int) -> None:
        """Drop all decisions but the first ones. Raises OSError."""
        del self._ends[many + 1 :]
        self.done = dict(list(self.done.items())[:many])
        self._file.truncate(self._ends[-1])
        self._digest = hashlib.sha256(self._file.read(self._ends[-1]))

    def close(self, finished: bool = True) -> None:
        """Add the footer if all is there, and close; twice is harmless."""
        if self._lock is None:
            return
        try:
            if finished:
                footer = {"count": len(self.done), "sha256": self._digest.hexdigest()}
                self._file.append(f"{json.dumps(footer)}\n".encode())
        finally:
            self._close()

    def _close(self) -> None:
        file_lock, self._lock = self._lock, None
        try:
            self._file.close()
        finally:
            if file_lock is not None:
                with suppress(OSError):
                    Path(file_lock.lock_file).unlink()  # while it is held: nobody else can have taken it
                file_lock.release()


def _now() -> datetime:
    return datetime.now(timezone.utc)  # noqa: UP017  (Python 3.11 has both)


class Recording:
    """External policy that records questions and answers into a fixture; recorded ones are not asked again.

    Args:
        policy: or an Endpoint, or an address.
        path: of the fixture; `{timestamp}` in it is the time now. One that was cut off is continued, when the same
            episodes run again.
        any_version: continue also one that another version of heron_env began; every question must be the same.
        now: the time.
        options: of ExternalPolicy, for an endpoint.

    Used with `with`, or closed: then the fixture gets its footer. An error within leaves it to be continued.
    """

    def __init__(
        self,
        policy: ExternalPolicy | Endpoint | str,
        path: str | Path,
        *,
        any_version: bool = False,
        now: Now = _now,
        **options: Any,
    ) -> None:
        if not isinstance(policy, ExternalPolicy):
            policy = ExternalPolicy(policy, **options)
        elif options:
            raise ConfigError(
                f"Recording(policy, ..., {', '.join(options)}): these belong to the policy; give them there"
            )
        stamped = str(path_of(path, "Recording(path)")).replace("{timestamp}", f"{now():%Y%m%dT%H%M%SZ}")
        self.policy, self.path, self._any_version, self._now = policy, Path(stamped), any_version, now
        self._writer: FixtureWriter | None = None
        self._due: set[tuple[int, str]] = set()

    def begin(self, seed: int, episode: int) -> None:
        """Begin an episode; the first one begins the fixture."""
        self._open(seed)
        self.policy.begin(seed, episode)

    def _open(self, seed: int) -> FixtureWriter:
        if self._writer is None:
            endpoint = self.policy.endpoint
            baseline = {"host": endpoint.host, "model": endpoint.model}
            header = Header.of(self.policy.questions, baseline, seed, self._now)
            self._writer = FixtureWriter(self.path, header, any_version=self._any_version)
            header, now = self._writer.header, self.policy.questions
            version = header.versions.get("schema", FIRST_VERSION)
            if (header.telling, version) != (now.telling, now.version):  # one that was cut off goes on as it was
                self.policy.questions = Questions(now.setting, header.telling, version)
        return self._writer

    def answer(self, asked: Asked) -> Answer:
        """Answer one question."""
        return self.answer_all([asked])[0]

    def answer_all(self, asked: Sequence[Asked]) -> list[Answer]:
        """Answer questions of one instant. Raises like ExternalPolicy; FixtureError, OSError."""
        if not asked:
            return []
        writer, questions = self._open(asked[0].seed), self.policy.questions
        due = self.policy.due(asked)
        self._due.update(each.key for each in due)
        for each in due:
            if (decision := writer.done.get(each.key)) is not None:
                require_same(each, decision, self.path)
                self.policy.happened(each.asked, decision)
        writer.add(self.policy.consult([each for each in due if each.key not in writer.done]))
        return [writer.done[each.key].answer(each.asked, questions.wire(each.asked)) for each in due]

    def __deepcopy__(self, memo: dict[int, Any]) -> Recording:
        """The same: one file has one writer."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Without the open file, which stays with its process."""
        return {**self.__dict__, "_writer": None}

    def metrics(self, agent: str | None = None) -> ExternalAgentMetrics:
        """Return the figures of one agent, or of all."""
        return self.policy.metrics(agent)

    @property
    def tally(self) -> AnswerTally:
        """Return the counts of all agents."""
        return self.policy.tally

    def forget_rest(self) -> None:
        """Drop the decisions of the file after those asked until now."""
        if self._writer is not None:
            self._writer.keep(len(self._due))

    def stop(self, finished: bool = True) -> None:
        """Add the footer and close the file."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close(finished)

    def close(self, finished: bool = True) -> None:
        """Add the footer and close the file, and the connections."""
        self.stop(finished)
        self.policy.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, at: object) -> None:
        """Close; after an error it can be continued."""
        self.close(finished=kind is None)


class Recorded:
    """Policy that replays a fixture, bit for bit, without a network. (`heron_env.Recorded` replays delays.)

    Args:
        path: of a finished recording.
        env: compare also what requests say of this environment (units, personas, neighbours), instead of taking that
            from the fixture.

    Raises FixtureError: it can't be read, was cut off, or holds no answer to what is asked, with the first difference.
    """

    def __init__(self, path: str | Path, *, env: HeronEnv | None = None) -> None:
        self.fixture = fixture = Fixture(path)
        if not fixture.whole:
            raise FixtureError(f"{fixture.path}: was cut off; continue it first, with Recording and the same episodes")
        header, setting = fixture.header, fixture.header.setting
        if env is not None:
            personas = {name: facts.persona for name, facts in setting.agents.items() if name in env.hierarchy.index}
            setting = EnvironmentFacts.of(env, env_id=header.env_id, options=header.options, personas=personas)
        self.questions = Questions(setting, header.telling, header.versions.get("schema", FIRST_VERSION))

    def begin(self, seed: int, episode: int) -> None:
        """Begin an episode."""
        self.questions.begin()

    def answer(self, asked: Asked) -> Answer:
        """Return the recorded answer. Raises FixtureError."""
        due = Due(asked, self.questions)
        decision = self.fixture.decisions.get(due.key)
        if decision is None:
            raise FixtureError(
                f"{self.fixture.path}: holds no answer for {asked.agent!r}, decision {asked.number} of episode "
                f"{asked.episode}, seed {asked.seed}; record these episodes, too"
            )
        require_same(due, decision, self.fixture.path)
        self.questions.said(asked, decision.letters_of(asked))
        wire = self.questions.wire(asked)
        try:
            answer = decision.answer(asked, wire, replayed=True)
            on_wire(answer.action, wire)
            return answer
        except (KeyError, TypeError, ValueError) as error:
            raise FixtureError(
                f"{self.fixture.path}: the action of {asked.agent!r} is none; record it again"
            ) from error

    def answer_all(self, asked: Sequence[Asked]) -> list[Answer]:
        """Return the recorded answers."""
        return [self.answer(one) for one in asked]

    def to_adr(self) -> dict[str, Any]:
        """Return the fixture as one JSON object of the injection schema."""
        return self.fixture.to_adr()


def require_same(due: Due, decision: Consulted, path: Path) -> None:
    """Raise FixtureError unless the request that is due is the recorded one; it names the first difference."""
    where = request_change(decision.request, due.request)
    if where:
        query = due.asked
        raise FixtureError(
            f"{path}: {query.agent!r}, decision {query.number} of episode {query.episode}, is asked something else: "
            f"{where}; run what was recorded, or record this"
        )
