"""Recording what an external agent is asked and answers, and playing it again without a socket."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from heron_env.core.policy import Answer, Asked
from heron_env.errors import ConfigError, FixtureError
from heron_env.given import path_of
from heron_env.injection.answers import Consulted
from heron_env.injection.endpoint import Endpoint
from heron_env.injection.fixtures import Fixture, FixtureWriter, Header, Now, difference
from heron_env.injection.metrics import ExternalAgentMetrics
from heron_env.injection.policy import Due, ExternalPolicy
from heron_env.injection.questions import Questions
from heron_env.injection.setting import Setting

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv


def _now() -> datetime:
    return datetime.now(timezone.utc)  # noqa: UP017  (Python 3.11 has both)


class Recording:
    """An external policy whose questions and answers go into a fixture; what is in it already is not asked again.

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
        """An episode begins; with the first the fixture does."""
        self._open(seed)
        self.policy.begin(seed, episode)

    def _open(self, seed: int) -> FixtureWriter:
        if self._writer is None:
            endpoint = self.policy.endpoint
            baseline = {"host": endpoint.host, "model": endpoint.model}
            header = Header.of(self.policy.questions, baseline, seed, self._now)
            self._writer = FixtureWriter(self.path, header, any_version=self._any_version)
            telling = self._writer.header.telling
            if telling != self.policy.questions.telling:  # of one that was cut off: ids go on under its key
                self.policy.questions = Questions(self.policy.questions.setting, telling)
        return self._writer

    def answer(self, asked: Asked) -> Answer:
        """The answer to one question."""
        return self.answer_all([asked])[0]

    def answer_all(self, asked: Sequence[Asked]) -> list[Answer]:
        """The answers to questions of one instant. Raises what ExternalPolicy does, FixtureError, OSError."""
        if not asked:
            return []
        writer, questions = self._open(asked[0].seed), self.policy.questions
        due = self.policy.due(asked)
        self._due.update(each.key for each in due)
        for each in due:
            if (found := writer.done.get(each.key)) is not None:
                require_same(each, found, self.path)
                self.policy.happened(each.asked, found)
        writer.add(self.policy.consult([each for each in due if each.key not in writer.done]))
        return [writer.done[each.key].answer(each.asked, questions.wire(each.asked)) for each in due]

    def __deepcopy__(self, memo: dict[int, Any]) -> Recording:
        """The same: one file has one writer."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Without the open file, which stays with its process."""
        return {**self.__dict__, "_writer": None}

    def metrics(self, agent: str | None = None) -> ExternalAgentMetrics:
        """How one agent fared, or all that asked."""
        return self.policy.metrics(agent)

    def latencies_ms(self) -> list[float]:
        """Of all decisions for which a request was sent, by all who asked."""
        return self.policy.latencies_ms()

    def forget_rest(self) -> None:
        """Drop what the file holds beyond what was asked until now, in the order of the file."""
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
    """The answers of a fixture, bit for bit; it opens no socket.

    Args:
        path: of a finished recording.
        env: compare also what requests tell of this environment (units, personas, neighbours), instead of taking that
            from the fixture.

    Raises FixtureError: it can't be read, was cut off, or holds no answer to what is asked, with the first difference.
    """

    def __init__(self, path: str | Path, *, env: HeronEnv | None = None) -> None:
        self.fixture = fixture = Fixture(path)
        if not fixture.whole:
            raise FixtureError(f"{fixture.path}: was cut off; continue it first, with Recording and the same episodes")
        header = fixture.header
        setting = header.setting
        if env is not None:
            personas = {name: facts.persona for name, facts in setting.agents.items() if name in env.hierarchy.index}
            setting = Setting.of(env, env_id=header.env_id, options=header.options, personas=personas)
        self.questions = Questions(setting, header.telling)

    def begin(self, seed: int, episode: int) -> None:
        """An episode begins."""
        self.questions.begin()

    def answer(self, asked: Asked) -> Answer:
        """The recorded answer. Raises FixtureError."""
        due = Due(asked, self.questions)
        found = self.fixture.decisions.get(due.key)
        if found is None:
            raise FixtureError(
                f"{self.fixture.path}: holds no answer for {asked.agent!r}, decision {asked.number} of episode "
                f"{asked.episode}, seed {asked.seed}; record these episodes, too"
            )
        require_same(due, found, self.fixture.path)
        self.questions.said(asked, found.letters_of(asked))
        wire = self.questions.wire(asked)
        try:
            wire.written(wire.ours(found.action))
            return found.answer(asked, wire, replayed=True)
        except (KeyError, TypeError, ValueError) as error:
            raise FixtureError(
                f"{self.fixture.path}: the action of {asked.agent!r} is none; record it again"
            ) from error

    def answer_all(self, asked: Sequence[Asked]) -> list[Answer]:
        """The recorded answers."""
        return [self.answer(one) for one in asked]

    def to_adr(self) -> dict[str, Any]:
        """The fixture in the specification's form."""
        return self.fixture.to_adr()


def require_same(due: Due, found: Consulted, path: Path) -> None:
    """Raise FixtureError unless the request that is due is the recorded one; it names the first difference."""
    where = difference(found.request, due.request)
    if where:
        asked = due.asked
        raise FixtureError(
            f"{path}: {asked.agent!r}, decision {asked.number} of episode {asked.episode}, is asked something else: "
            f"{where}; run what was recorded, or record this"
        )
