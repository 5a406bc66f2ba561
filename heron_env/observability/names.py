"""Where an observability configuration meets a world: its agents and variables must exist there."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from heron_env.core.layout import GLOBAL
from heron_env.errors import ConfigError, DeclarationError, Problem, did_you_mean
from heron_env.observability.config import ObservabilityConfig, VariableVisibilityConfig

MOST_LISTED = 8
"""Known names that an error lists; the rest is counted."""


def require_known(
    config: ObservabilityConfig,
    *,
    agents: Sequence[str],
    agent_variables: Mapping[str, str | None],
    global_variables: Mapping[str, str | None],
) -> None:
    """Check every name of `config` against a world.

    Both mappings go from "Feature.field" to the visibility that the variable's own definition declares: "external",
    "internal", or None where it says nothing. Raises DeclarationError with all unknown or ambiguous names.
    """
    problems = [*_unknown_agents(config, agents), *_misnamed_variables(config, {**agent_variables, **global_variables})]
    if GLOBAL in agents:
        message = f"an agent is called {GLOBAL!r}, which stands for the environment's variables; rename it"
        problems.insert(0, Problem((), message))
    if problems:
        raise DeclarationError(problems)


def resolve(name: str, known: Iterable[str]) -> str:
    """The qualified name, "Feature.field", that `name` (a field or a qualified name) stands for among `known`.

    Raises ConfigError for a name that is unknown, or that occurs in several features.

    >>> resolve("soc", ["Charge.soc", "Charge.capacity"])
    'Charge.soc'
    """
    qualified = list(dict.fromkeys(known))
    if name in qualified:
        return name
    found = [candidate for candidate in qualified if candidate.partition(".")[2] == name]
    if len(found) > 1:
        raise ConfigError(f"the variable {name!r} occurs more than once; write {' or '.join(map(repr, found))}")
    if not found:
        fields = [] if "." in name else [candidate.partition(".")[2] for candidate in qualified]
        raise ConfigError(f"Unknown variable {name!r}.{remedy(name, [*fields, *qualified], qualified)}")
    return found[0]


def external_among(known: Mapping[str, bool], listed: VariableVisibilityConfig) -> set[str]:
    """The external variables (V2): listed so, or in neither list and so by their own definition.

    `known` goes from "Feature.field" to what the definition says. Raises ConfigError as `resolve` does.
    """
    shown, hidden = ({resolve(name, known) for name in names} for names in (listed.external, listed.internal))
    return ({name for name, external in known.items() if external} - hidden) | shown


def remedy(name: str, candidates: Iterable[str], known: Iterable[str]) -> str:
    """The nearest candidate, else what there is: at most a few of `known`."""
    near = did_you_mean(name, candidates)
    if near:
        return near
    listed = list(dict.fromkeys(known))
    more = f" and {len(listed) - MOST_LISTED} more" if len(listed) > MOST_LISTED else ""
    return f" Known: {', '.join(listed[:MOST_LISTED]) or 'none'}{more}"


def _unknown_agents(config: ObservabilityConfig, agents: Sequence[str]) -> Iterator[Problem]:
    """A problem for every observer and target of the matrix that is not among `agents`."""
    known, targets = set(agents), [*agents, GLOBAL]
    for index, row in enumerate(config.matrix):
        if row.observer not in known:
            words = f"Unknown observer {row.observer!r}.{remedy(row.observer, agents, agents)}"
            yield Problem(("matrix", index, "observer"), words)
        if row.target not in known and row.target != GLOBAL:
            words = f"Unknown target {row.target!r}.{remedy(row.target, targets, targets)}"
            yield Problem(("matrix", index, "target"), words)


def _misnamed_variables(config: ObservabilityConfig, declared: Mapping[str, str | None]) -> Iterator[Problem]:
    """A problem for every listed variable that is unknown, ambiguous, listed twice, or declared to be the contrary."""
    first: dict[str, tuple[str, int]] = {}
    for key in ("external", "internal"):
        for index, name in enumerate(getattr(config.variable_visibility, key)):
            path = ("variable_visibility", key, index)
            try:
                qualified = resolve(name, declared)
            except ConfigError as error:
                yield Problem(path, str(error))
                continue
            earlier, place = first.setdefault(qualified, (key, index))
            if earlier != key:
                yield Problem(path, f"Variables cannot be both external and internal: {qualified}; keep one of the two")
            elif place != index:
                yield Problem(path, f"Duplicate variable {qualified!r}, see {key}[{place}]; keep one")
            contrary = declared[qualified]
            if contrary not in (None, key):
                words = f"{name!r} is listed as {key}, but its own definition says {contrary}; change one of the two"
                yield Problem(path, words)
