"""What a check is: it is given a subject, an environment to build and examine, and yields what it found."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from heron_env import registry
from heron_env.envs.base import HeronEnv
from heron_env.envs.exchange import Exchange
from heron_env.errors import CheckFailed, ConfigError, did_you_mean
from heron_env.registry import imported_module


@dataclass(frozen=True, slots=True)
class Check:
    """One law with a function that checks it; no remark: passed.

    Attributes:
        name: as `only` and `--only` take it.
        ask: Subject -> remarks; its docstring states the law.
        needs: checks that must pass first; else this one is skipped.
    """

    name: str
    ask: Callable[[Subject], Iterator[Remark]]
    needs: tuple[str, ...] = ()

    @property
    def law(self) -> str:
        """The law as a sentence, without its full stop."""
        return (self.ask.__doc__ or "").partition("\n")[0].rstrip(".")


class Status(StrEnum):
    """Outcome of a check."""

    PASSED = "passed"
    WARNING = "warning"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Remark:
    """Remark of a check: what happened, with values, and how to fix it."""

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


class Broken(Exception):
    """A law is broken, and the check ends there: what happened, and how to mend it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check, with its remark."""

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
        """Return the findings of this status."""
        return tuple(finding for finding in self.findings if finding.status is status)

    @property
    def ok(self) -> bool:
        """Did nothing fail? Warnings and skipped checks do not count."""
        return not self.of(Status.FAILED)

    def raise_if_failed(self) -> None:
        """Raise CheckFailed (an AssertionError, so that a test fails) with every failure and its remedy."""
        if not self.ok:
            failures = "\n".join(f"{f.check}: {f.what}\n  mend: {f.mend}" for f in self.of(Status.FAILED))
            raise CheckFailed(f"{self.target} breaks what an environment has to keep:\n{failures}")

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


Target = str | HeronEnv | Callable[..., HeronEnv]


@dataclass(frozen=True)
class Subject:
    """Environment under test, with the settings of the checks.

    Attributes:
        name: as the user gave it.
        factory: builds a fresh environment; takes `options` and more.
        reference: "module:attribute" of the factory, None if another process can't import it, for `no_reference`.
        options: of the factory.
        seed: of all episodes.
        steps: length of a rollout in control steps.
        timeout: for other processes, s.
    """

    name: str
    factory: Callable[..., HeronEnv]
    reference: str | None = None
    no_reference: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    steps: int = 24
    timeout: float = 60.0

    def build(self, **more: Any) -> HeronEnv:
        """Build a fresh environment."""
        return self.factory(**{**self.options, **more})


def in_python(env: HeronEnv, *, compile: bool = False) -> HeronEnv:
    """The same environment, its rules in plain Python, so that a check can step in between; or compiled."""
    if env.compiled != compile:
        state, env._compile = env.get_state(), compile
        env._build()
        env.set_state(state)
    return env


def silenced(env: HeronEnv) -> HeronEnv:
    """The same environment, in which nobody tells anybody anything: inboxes keep what they hold.

    What a protocol shares is visible to its receiver, and what agents do with it is physics: checks of what else
    reaches an agent, or its score, look without it.
    """
    simulation = env.simulation
    simulation.exchange = Exchange((), simulation.model.layout, env.hierarchy)
    return env


def resolve(target: Target, options: Mapping[str, Any]) -> Subject:
    """The subject behind an id, "module:attribute", factory or environment.

    Raises ConfigError or UnknownEnvironment where the target is none of them, ConfigError for an unknown option.
    """
    chosen = dict(options)
    if isinstance(target, HeronEnv):
        return _of_instance(target, f"{type(target).__name__} object", chosen)
    if isinstance(target, str):
        spec = registry.spec(target).resolved()
        if spec.entry_point == target:
            factory = load(target)
            if isinstance(factory, HeronEnv):
                return _of_instance(factory, target, chosen)
            return _accepting(Subject(target, factory, target, options=chosen))
        if "max_cycles" in chosen:
            chosen["max_steps"] = chosen.pop("max_cycles")
        chosen = {**spec.options, **chosen}
        if isinstance(spec.entry_point, str):
            return _accepting(Subject(target, load(spec.entry_point), spec.entry_point, options=chosen))
        return _accepting(Subject(target, spec.entry_point, *importable(spec.entry_point), options=chosen))
    if callable(target):
        name = getattr(target, "__qualname__", repr(target))
        return _accepting(Subject(name, target, *importable(target), options=chosen))
    raise ConfigError(
        f"check_env({target!r}): give an id, 'module:attribute', a function that builds the environment, or one"
    )


def _of_instance(env: HeronEnv, name: str, options: dict[str, Any]) -> Subject:
    if options:
        raise ConfigError(f"check_env({name}, options={options!r}): it is built already; give a factory")
    why = "an environment that is built already can't be built again elsewhere; give its id or factory"
    return Subject(name, lambda: copy.deepcopy(env), None, why)


def _accepting(subject: Subject) -> Subject:
    """The subject, if its factory takes its options."""
    accepted = parameters_of(subject.factory)
    if accepted is None or any(p.kind is p.VAR_KEYWORD for p in accepted.values()):
        return subject
    for name in subject.options:
        if name not in accepted:
            near = did_you_mean(name, accepted)
            raise ConfigError(f"{subject.name} has no option {name!r}; it takes {list(accepted)}.{near}")
    return subject


def load(reference: str) -> Any:
    """The factory, class or environment at "module:attribute". Raises ConfigError."""
    name, _, attribute = reference.partition(":")
    if name.endswith(".py"):
        raise ConfigError(f"{reference!r}: name the module, not its file: {name[:-3].replace('/', '.')}:{attribute}")
    try:
        module = imported_module(name, repr(reference))
    except ImportError as error:
        raise ConfigError(f"{reference!r}: can't import {name!r} ({error}); is its folder on the path?") from error
    if not hasattr(module, attribute):
        near = did_you_mean(attribute, [public for public in vars(module) if not public.startswith("_")])
        raise ConfigError(f"{reference!r}: {name} has no {attribute!r}.{near}")
    factory = getattr(module, attribute)
    if not callable(factory) and not isinstance(factory, HeronEnv):
        raise ConfigError(f"{reference!r} is {factory!r}; name a HeronEnv class, or a function that builds one")
    return factory


def importable(factory: Callable[..., Any]) -> tuple[str | None, str]:
    """("module:attribute", "") if another process can import it, else (None, why not)."""
    module, name = getattr(factory, "__module__", None), getattr(factory, "__qualname__", "")
    if module == "__main__":
        return None, f"{name} is defined in __main__ (a script or notebook), which another process can't import"
    if not module or not name or "<" in name:
        return None, f"{name or factory!r} is defined inside a function, so another process can't import it"
    named: Any = sys.modules.get(module)
    for part in name.split("."):
        named = getattr(named, part, None)
    if named is not factory:
        return None, f"{module}:{name} is another object by now, so another process can't import it"
    return f"{module}:{name}", ""


def parameters_of(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter] | None:
    """What the factory takes, by name; None where it does not say (some builtins)."""
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError, OverflowError):
        return None


def required(factory: Callable[..., Any]) -> list[str]:
    """Names of the arguments without which the factory can't be called."""
    parameters = (parameters_of(factory) or {}).values()
    return [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.default is p.empty]
