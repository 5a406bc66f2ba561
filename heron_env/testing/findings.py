"""What the checks found, one by one and as a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from heron_env.errors import CheckFailed

if TYPE_CHECKING:
    from heron_env.testing.subject import Subject


class Status(StrEnum):
    """How a check went."""

    PASSED = "passed"
    WARNING = "warning"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Remark:
    """What a check has to say: what happened, with values, and how to mend it."""

    status: Status
    what: str
    mend: str = ""


def passed(what: str) -> Remark:
    """All is well; `what` was looked at."""
    return Remark(Status.PASSED, what)


def skipped(why: str) -> Remark:
    """It could not be asked."""
    return Remark(Status.SKIPPED, why)


def failed(what: str, mend: str) -> Remark:
    """A law is broken."""
    return Remark(Status.FAILED, what, mend)


def warning(what: str, mend: str) -> Remark:
    """Legal, but it will hurt."""
    return Remark(Status.WARNING, what, mend)


@dataclass(frozen=True, slots=True)
class Check:
    """One law, checked by a function that yields remarks; without any it has passed.

    Attributes:
        name: as `only` and `--only` take it.
        ask: Subject -> remarks; its docstring states the law.
        needs: checks whose failure would make this one fail too: it is then skipped, so that causes stand out.
    """

    name: str
    ask: Callable[[Subject], Iterator[Remark]]
    needs: tuple[str, ...] = ()

    @property
    def law(self) -> str:
        """What has to hold, in a sentence without its full stop."""
        return (self.ask.__doc__ or "").partition("\n")[0].rstrip(".")


@dataclass(frozen=True, slots=True)
class Finding:
    """A remark of the check of this name."""

    check: str
    status: Status
    what: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All findings about one environment, in the order of the checks."""

    target: str
    findings: tuple[Finding, ...]

    def of(self, status: Status) -> tuple[Finding, ...]:
        """The findings of this status."""
        return tuple(finding for finding in self.findings if finding.status is status)

    @property
    def ok(self) -> bool:
        """Did nothing fail? Warnings and skipped checks do not count."""
        return not self.of(Status.FAILED)

    def raise_if_failed(self) -> None:
        """Raise CheckFailed (an AssertionError, so that a test fails) with every failure and its remedy."""
        if not self.ok:
            told = "\n".join(f"{f.check}: {f.what}\n  mend: {f.mend}" for f in self.of(Status.FAILED))
            raise CheckFailed(f"{self.target} breaks what an environment has to keep:\n{told}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        findings = [{"check": f.check, "status": f.status.value, "what": f.what, "mend": f.mend} for f in self.findings]
        return {"target": self.target, "ok": self.ok, "findings": findings}

    @property
    def summary(self) -> str:
        """`18 passed, 1 warning, 1 failed`."""
        counts = [(len(self.of(status)), status.value) for status in Status]
        return ", ".join(f"{n} {word}{'s' * (word == 'warning' and n > 1)}" for n, word in counts if n)

    def __str__(self) -> str:
        """A line per finding, remedies beneath, the sum at the end."""
        width = max((len(finding.check) for finding in self.findings), default=0)
        lines = [self.target]
        for f in self.findings:
            lines.append(f"  {f.status.value:<8} {f.check:<{width}}  {f.what}".rstrip())
            if f.mend:
                lines.append(f"  {'':<8} {'':<{width}}  mend: {f.mend}")
        return "\n".join([*lines, self.summary])
