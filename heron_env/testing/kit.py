"""The kit itself: all checks in their order, and `check_env`, which asks them one after another."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from traceback import extract_tb
from typing import Any

from heron_env.envs.settings import is_count
from heron_env.errors import ConfigError, HeronError, did_you_mean
from heron_env.given import is_finite, is_one_of, mapping, require_switch, several, whole
from heron_env.testing import beginning, cost, declarations, determinism, foresight, interface, leaks, parity, shortcuts
from heron_env.testing.check import (
    Broken,
    Check,
    CheckReport,
    Finding,
    Remark,
    Status,
    Subject,
    Target,
    failed,
    resolve,
    skipped,
)

SEEDED = ("same-seed",)
KIT = Path(__file__).parent
CHECKS: tuple[Check, ...] = (
    Check("builds", declarations.builds),
    Check("runs", declarations.runs),
    Check("spaces", declarations.declared_spaces),
    Check("groups", declarations.groups),
    Check("rules", declarations.rules),
    Check("pettingzoo", interface.pettingzoo, ("spaces",)),
    Check("observations", interface.observations),
    Check("actions", interface.actions),
    Check("infos", interface.infos),
    Check("masks", interface.masks),
    Check("ends", interface.ends),
    Check("render", interface.render),
    Check("bounds", declarations.bounds),
    Check("writes", declarations.writes),
    Check("same-seed", determinism.same_seed),
    Check("reset", determinism.reset_is_total, SEEDED),
    Check("processes", determinism.processes, SEEDED),
    Check("parity", parity.parity, (*SEEDED, "writes")),
    Check("compiled", parity.executions, (*SEEDED, "writes")),
    Check("honest-score", leaks.honest_score, (*SEEDED, "writes")),
    Check("no-leak", leaks.no_leak, SEEDED),
    Check("foresight", foresight.foresight, (*SEEDED, "writes")),
    Check("first-observation", beginning.first_observation, SEEDED),
    Check("shortcuts", shortcuts.shortcuts, (*SEEDED, "writes")),
    Check("set-points", parity.setpoints, (*SEEDED, "parity")),
    Check("copies", parity.copies, (*SEEDED, "reset")),
    Check("linear-work", cost.linear_work),
)
FIRST = ("builds", "runs")
"""Where one of these failed, nothing else can be asked."""


def check_env(
    target: Target, *, seed: int = 0, steps: int = 24, only: Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None, extra: Sequence[Check] = (), timeout: float = 60.0, strict: bool = False,
    progress: Callable[[str], None] | None = None,
) -> CheckReport:  # fmt: skip
    """Run the conformance checks on an environment. Each failure explains how to fix it.

    Args:
        target: an id, "module:attribute" (a HeronEnv class or a function that builds one), such a class or function,
            or a HeronEnv. With a built environment, checks that need a second process are skipped.
        seed: of all episodes.
        steps: length of the rollouts, control steps.
        only: names of checks, as in `CHECKS`; None: all.
        options: of the factory.
        extra: additional checks, which run last.
        timeout: for other processes, s.
        strict: treat warnings as failures.
        progress: called with the name of each check before it runs.

    Returns:
        A report with a finding for each check; `report.ok` is True if no check failed.

    Raises ConfigError (or UnknownEnvironment) for wrong arguments. Errors of the environment become findings.

    >>> check_env("heron/BatteryGrid-v0", only=["spaces"], steps=5).ok
    True
    """
    added = _validated(steps, extra, timeout, progress)
    require_switch(f"check_env(strict={strict!r:.60})", strict)
    seed = whole(seed, "check_env(seed)")
    checks = _chosen((*CHECKS, *added), None if only is None else several(only, "check_env(only)"))
    options = mapping({} if options is None else options, "check_env(options)")
    subject = replace(resolve(target, options), seed=seed, steps=int(steps), timeout=timeout)
    findings: list[Finding] = []
    for check in checks:
        if progress is not None:
            progress(check.name)
        findings += _ask(check, subject, {f.check for f in findings if f.status is Status.FAILED})
    if strict:
        findings = [replace(f, status=Status.FAILED) if f.status is Status.WARNING else f for f in findings]
    return CheckReport(subject.name, tuple(findings))


def _validated(steps: Any, extra: Any, timeout: Any, progress: Any) -> tuple[Any, ...]:
    """The extra checks; raises ConfigError where an argument is wrong."""
    if not is_count(steps) or steps < 2:
        raise ConfigError(f"check_env(steps={steps!r}): must be a whole number >= 2")
    added = several(extra, "check_env(extra)")
    if not all(isinstance(check, Check) for check in added):
        raise ConfigError(f"check_env(extra={extra!r:.200}): must be a sequence of Check(name, ask)")
    if not is_finite(timeout) or not timeout > 0:
        raise ConfigError(f"check_env(timeout={timeout!r:.60}): must be a number > 0, s")
    if not (progress is None or callable(progress)):
        raise ConfigError(f"check_env(progress={progress!r:.60}): must be a function of a check's name, or None")
    return added


def _chosen(checks: tuple[Check, ...], only: Sequence[str] | None) -> tuple[Check, ...]:
    names = [check.name for check in checks]
    for name in only or ():
        if not is_one_of(name, names):
            raise ConfigError(f"check_env(only={name!r}): no such check; there are {names}.{did_you_mean(name, names)}")
    return tuple(check for check in checks if only is None or check.name in only)


def _ask(check: Check, subject: Subject, broken: set[str]) -> list[Finding]:
    """The findings of one check; of several, those that passed are left out."""
    cause = next((name for name in (*FIRST, *check.needs) if name in broken), None)
    remarks = [skipped(f"mend '{cause}' first, which may be the cause here too")] if cause else _answers(check, subject)
    worse = [remark for remark in remarks if remark.status is not Status.PASSED]
    if worse:
        return [Finding(check.name, r.status, r.what, r.mend) for r in worse]
    details = "".join(f" ({remark.what})" for remark in remarks)
    return [Finding(check.name, Status.PASSED, check.law + details)]


def _answers(check: Check, subject: Subject) -> list[Remark]:
    """What the check says; if it breaks off, that is a finding."""
    remarks: list[Remark] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `runs` and `pettingzoo` record theirs
            for remark in check.ask(subject):
                remarks.append(remark)
            return remarks
    except Broken as law:
        return [*remarks, failed(*law.args)]
    except HeronError as error:
        return [failed(f"{type(error).__name__}: {error}", "the message says how; it came while asking this")]
    except Exception as error:  # noqa: BLE001  a check that crashes is a finding, never a traceback
        return [
            failed(
                f"{type(error).__name__}: {error}{_where(error)}",
                "an environment answers without exceptions: mend the place that is named",
            )
        ]


def _where(error: Exception) -> str:
    """The innermost place of the traceback outside the kit, in words."""
    frames = [f for f in extract_tb(error.__traceback__) if not Path(f.filename).is_relative_to(KIT)]
    return f" (in {frames[-1].name}, {Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
