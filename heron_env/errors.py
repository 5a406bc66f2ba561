"""All errors of this library, as one tree.

HeronError
├── ConfigError (ValueError)            something was declared wrongly
│   ├── FeatureError                    a feature class or one of its quantities
│   ├── HierarchyError                  the tree of agents
│   ├── ScheduleError                   ticks, delays, times
│   ├── DataError                       a data file and its rows
│   ├── DeclarationError                a configuration: one or several of its values, each with its path
│   ├── UnknownArgument (TypeError)     a keyword that a constructor or make() does not know
│   ├── RunFolderError                  a run folder that can't be read
│   ├── TraceError                      a recorded episode that can't be read or run again
│   ├── FixtureError                    recorded answers of external agents that can't be read, or don't fit
│   └── Untrusted                       a file names code that is not trusted
├── RuleError (TypeError)               a rule's signature or what it returned
├── InvalidAction (ValueError)          an action outside its space
├── UnknownAgent (KeyError)             an id that is not in this environment
├── UnknownFeature (KeyError)           a feature or field that does not exist here
│   └── UnknownField (AttributeError)   the same, asked for with a dot
├── UnknownEnvironment (KeyError)       an id that is not registered
├── RemovedName (ImportError)           a public name of an earlier version; names its replacement
├── NoOptimum (RuntimeError)            the solver found no optimum
├── WorkerLost (RuntimeError)           a worker process was killed
├── ExternalAgentError (RuntimeError)   an endpoint gave no valid answer, and the fallback is `fail`
├── CheckFailed (AssertionError)        an environment breaks a law that `heron check` asks about
├── ResetNeeded (RuntimeError)          step() before reset(), or after the episode's end
└── RunInterrupted (RuntimeError)       other code moved the environment of a run, or tried to

HeronWarning (UserWarning): legal, but probably not intended.
"""

import difflib
import functools
import inspect
import math
import reprlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

__all__ = [
    "CheckFailed", "ConfigError", "DataError", "DeclarationError", "ExternalAgentError", "FeatureError", "FixtureError",
    "HeronError", "HeronWarning", "HierarchyError", "InvalidAction", "NoOptimum", "RemovedName", "ResetNeeded",
    "RuleError", "RunFolderError", "RunInterrupted", "ScheduleError", "TraceError", "UnknownAgent", "UnknownArgument",
    "UnknownEnvironment", "UnknownFeature", "UnknownField", "Untrusted", "WorkerLost",
]  # fmt: skip

T = TypeVar("T", bound=Callable[..., Any])
MOST_NAMES = 12
"""In a message."""


class HeronError(Exception):
    """Root of the tree: catch this to catch them all."""

    def __str__(self) -> str:
        """The message as written (KeyError would show its repr)."""
        return str(self.args[0]) if self.args else ""


class HeronWarning(UserWarning):
    """Legal, but probably not intended; the message has the remedy."""


class ConfigError(HeronError, ValueError):
    """A declaration is wrong: the message names the culprit, its value and the remedy."""


class FeatureError(ConfigError):
    """A feature class, or a value given for one of its quantities, is wrong."""


class HierarchyError(ConfigError):
    """The tree of agents is wrong: duplicate ids, two roots, no agent that acts."""


class ScheduleError(ConfigError):
    """Ticks, delays or event times are impossible."""


class DataError(ConfigError):
    """A data file is missing or one of its rows is wrong; the message has the line number."""


class Problem(NamedTuple):
    """One mistake in a configuration: the path to it, what is wrong, and file:line where it came from a file."""

    path: tuple[str | int, ...]
    message: str
    source: str = ""

    def __str__(self) -> str:
        """`file.yaml:12: matrix[0].noise: must be >= 0, got -0.1`, without the parts that are empty."""
        return ": ".join(part for part in (self.source, path_text(self.path), self.message) if part)


class DeclarationError(ConfigError):
    """One or several values of a configuration are wrong; a line for each of `problems`."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        """Path and message of each problem, one a line."""
        return "\n".join(map(str, self.problems))


class UnknownArgument(ConfigError, TypeError):
    """A keyword that is not among the `known` ones; `called` is how the call begins: `quantity(`."""

    def __init__(self, called: str, name: str = "", known: Iterable[str] = ()) -> None:
        self.called, self.name, self.known = called, name, tuple(known)
        super().__init__(called, name, self.known)

    def __str__(self) -> str:
        """With the nearest name, or all of them."""
        if not self.name:  # Gymnasium raises errors anew with a text of its own
            return self.called
        near = did_you_mean(self.name, self.known) or f" There are {', '.join(self.known)}."
        return f"{self.called}{self.name}=...): no such option.{near}"


class RunFolderError(ConfigError):
    """A run folder is missing, incomplete or of another schema version."""


class TraceError(ConfigError):
    """A recorded episode can't be written, read or run again here."""


class FixtureError(ConfigError):
    """Recorded answers of external agents can't be written, read, or don't fit what is asked now."""


class Untrusted(ConfigError):
    """A file names code that is neither registered nor trusted: see `heron_env.trust`."""


class RuleError(HeronError, TypeError):
    """A rule's signature can't be understood, or it returned something that can't be stored."""


class InvalidAction(HeronError, ValueError):
    """An action has the wrong shape, is not a number, or lies outside its space."""


class UnknownAgent(HeronError, KeyError):
    """No agent of that id in this environment."""


class UnknownFeature(HeronError, KeyError):
    """No feature or field of that name here."""


class UnknownField(UnknownFeature, AttributeError):
    """No field of that name, where it was written as an attribute: `charge.sco`."""


class UnknownEnvironment(HeronError, KeyError):
    """No environment is registered under that id."""


class RemovedName(HeronError, ImportError):
    """A public name of an earlier version; the message names its replacement."""


class WorkerLost(HeronError, RuntimeError):
    """A worker process was killed; finished episodes are kept."""


class ExternalAgentError(HeronError, RuntimeError):
    """An endpoint gave no valid answer, and the fallback is "fail"."""


class NoOptimum(HeronError, RuntimeError):
    """HiGHS found no optimal solution, with and without presolve; the message has its reason."""


class CheckFailed(HeronError, AssertionError):
    """An environment fails conformance checks; the message has each failure and its remedy."""


class ResetNeeded(HeronError, RuntimeError):
    """The environment has no running episode: call reset() first."""


class RunInterrupted(HeronError, RuntimeError):
    """The environment of a run was moved by other code, or would be; the message names the copy to use."""


def did_you_mean(name: object, candidates: Iterable[object]) -> str:
    """`" Did you mean 'x'?"` for the nearest candidate, or an empty string."""
    text, least = ("none", 1.0) if name is None else (str(name), 0.6)  # None is near 'none' only, not 'zone'
    near = difflib.get_close_matches(text, [str(candidate) for candidate in candidates], n=1, cutoff=least)
    return f" Did you mean {near[0]!r}?" if near else ""


def changed_names(before: Sequence[str], now: Sequence[str]) -> str:
    """`"no longer 'a', and now 'b'"`, or "in another order"; an empty string where nothing differs."""
    if [*before] == [*now]:
        return ""
    there, here = set(before), set(now)
    parts = [
        ("no longer", [name for name in before if name not in here]),
        ("and now", [name for name in now if name not in there]),
    ]
    return ", ".join(f"{what} {listed_names(names)}" for what, names in parts if names) or "in another order"


def listed_names(names: Sequence[str]) -> str:
    """`'a', 'b' and 3 more`."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(map(repr, names[:MOST_NAMES])) + more


def checked_keywords(target: T) -> T:
    """A function, or a class for its constructor, that raises UnknownArgument for an unknown keyword.

    More values without a name than it takes raise ConfigError. Calls cost a little more: not for what runs in every
    step.
    """
    function = vars(target)["__init__"] if isinstance(target, type) else target
    parameters = inspect.signature(function).parameters
    known = [name for name in parameters if name != "self"]
    kinds = [parameter.kind for parameter in parameters.values()]
    nameless = len(kinds) - kinds.count(inspect.Parameter.KEYWORD_ONLY)
    most = math.inf if inspect.Parameter.VAR_POSITIONAL in kinds else nameless

    @functools.wraps(function)
    def checked(*args: Any, **keywords: Any) -> Any:
        called = type(args[0]).__name__ if args and function.__name__ == "__init__" else function.__name__
        for name in keywords:
            if name not in known:
                raise UnknownArgument(f"{called}(", name, known)
        if len(args) > most:
            raise values_go_by_name(called, args[nameless], [*parameters][nameless:])
        return function(*args, **keywords)

    if not isinstance(target, type):
        return cast(T, checked)
    setattr(target, "__init__", checked)  # noqa: B010  (a type checker forbids the assignment)
    return target


def values_go_by_name(called: str, value: object, names: Iterable[str]) -> ConfigError:
    """The error of a call that gives `value` without one of the `names` (at least one)."""
    first, *rest = names
    words = f"{first}=...{', ...' if rest else ''}"
    return ConfigError(f"{called}({reprlib.repr(value)}): values go by name; write {called}({words})")


def ended_in(call: str, error: BaseException) -> str:
    """`the last step() ended in ValueError: its words`: why no episode is running."""
    return f"the last {call} ended in {type(error).__name__}: {error!s:.200}"


def path_text(path: Iterable[str | int]) -> str:
    """`matrix[0].noise`; a key that is no plain word is quoted: `agent_vars['two words']`."""
    text = ""
    for part in path:
        plain = isinstance(part, str) and part.isidentifier()
        text += (f".{part}" if text else str(part)) if plain else f"[{part!r}]"
    return text
