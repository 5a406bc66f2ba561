"""Every error this library raises on purpose, as one tree.

HeronError
├── ConfigError (ValueError)            something was declared wrongly
│   ├── FeatureError                    a feature class or one of its quantities
│   ├── HierarchyError                  the tree of agents
│   ├── ScheduleError                   ticks, delays, times
│   ├── DataError                       a data file and its rows
│   └── RunFolderError                  a run folder that can't be read
├── RuleError (TypeError)               a rule's signature or what it returned
├── InvalidAction (ValueError)          an action outside its space
├── UnknownAgent (KeyError)             an id that is not in this environment
├── UnknownFeature (KeyError)           a feature or field that does not exist here
├── UnknownEnvironment (KeyError)       an id that is not registered
├── NoOptimum (RuntimeError)            the solver found no optimum
└── ResetNeeded (RuntimeError)          step() before reset(), or after the episode's end
"""

import difflib
from collections.abc import Iterable


class HeronError(Exception):
    """Root of the tree: catch this to catch them all."""

    def __str__(self) -> str:
        """The message as written (KeyError would show its repr)."""
        return str(self.args[0]) if self.args else ""


class ConfigError(HeronError, ValueError):
    """A declaration is wrong: the message names the culprit, its value and the remedy."""


class FeatureError(ConfigError):
    """A feature class, or a value given for one of its quantities, is wrong."""


class HierarchyError(ConfigError):
    """The tree of agents is wrong: duplicate ids, two roots, nobody to act."""


class ScheduleError(ConfigError):
    """Ticks, delays or event times are impossible."""


class DataError(ConfigError):
    """A data file is missing or one of its rows is wrong; the message has the line number."""


class RunFolderError(ConfigError):
    """A run folder is missing, incomplete or of another schema version."""


class RuleError(HeronError, TypeError):
    """A rule's signature can't be understood, or it returned something that can't be stored."""


class InvalidAction(HeronError, ValueError):
    """An action has the wrong shape, is not a number, or lies outside its space."""


class UnknownAgent(HeronError, KeyError):
    """No agent of that id in this environment."""


class UnknownFeature(HeronError, KeyError):
    """No feature or field of that name here."""


class UnknownEnvironment(HeronError, KeyError):
    """No environment is registered under that id."""


class NoOptimum(HeronError, RuntimeError):
    """HiGHS gave no optimal solution, with and without presolve; the message has its own words."""


class ResetNeeded(HeronError, RuntimeError):
    """The environment has no running episode: call reset() first."""


def did_you_mean(name: object, candidates: Iterable[object]) -> str:
    """`" Did you mean 'x'?"` for the nearest candidate, or an empty string."""
    near = difflib.get_close_matches(str(name), [str(candidate) for candidate in candidates], n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
