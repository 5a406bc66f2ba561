"""The cluster agent: hears, solves its own nodes beside what it was told, and reports what it did and why."""

from __future__ import annotations

import logging
from collections import UserDict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple, TypeVar

import numpy as np

from heron_env.dcop.cluster.view import (
    UNCLEAR,
    Choice,
    Heard,
    Option,
    Past,
    Reason,
    StepReport,
    View,
    remembered,
    statements,
)
from heron_env.dcop.problem import Assignment, Part, Problem, spelled
from heron_env.dcop.responses import counterfactuals
from heron_env.errors import ConfigError, did_you_mean
from heron_env.given import is_finite, is_one_of, mapping, require_switch, require_type, several, whole
from heron_env.seeding import stream

V = TypeVar("V")


class _ByNode(UserDict[str, V]):
    """Setting a node that could not stand there, or a colour that is none, raises ConfigError."""

    def __init__(self, what: str, nodes: Iterable[str], domain: tuple[str, ...], given: Mapping[str, Any]) -> None:
        self._what, self._nodes, self._domain = what, tuple(nodes), domain
        super().__init__(mapping(given, what))

    def __setitem__(self, node: str, value: Any) -> None:
        if node not in self._nodes:
            near = did_you_mean(node, self._nodes) or f" There are {', '.join(self._nodes) or 'none'}."
            raise ConfigError(f"{self._what}[{node!r:.60}]: is no node that could stand there.{near}")
        self.data[node] = value

    def _colour(self, node: str, written: Any) -> str:
        colour = spelled(self._domain, written) if isinstance(written, str) else None
        if colour is None:
            raise ConfigError(f"{self._what}[{node!r:.60}]={written!r:.60}: must be one of {', '.join(self._domain)}")
        return colour


class Colours(_ByNode[str]):
    """A colour by node."""

    def __setitem__(self, node: str, value: str) -> None:
        super().__setitem__(node, self._colour(node, value))


class Forbidden(_ByNode[frozenset[str]]):
    """Several colours by node."""

    def __setitem__(self, node: str, value: Iterable[str]) -> None:
        colours = several(value, f"{self._what}[{node!r:.60}]")
        super().__setitem__(node, frozenset(self._colour(node, colour) for colour in colours))


LOG: Final = logging.getLogger("heron_env.dcop")
LOGGED: Final = 10
LISTED_WHOLE: Final = 10
"""Boundary nodes up to which all colourings are listed."""
MOST: Final = 1_000
"""Listed of more of them, the best ones; the current one is always among them."""


def options(view: View, recipient: str, actual: Assignment) -> list[Option]:
    """One for each colouring of the recipient's nodes that I border, the best first.

    Least penalty, then highest combined score, then product order; the current one last among equals. All come from
    one elimination. A score is the sum over nodes of `scores` of their colours; mine is of one of my best responses.

    Args:
        view: what I know and may do.
        recipient: the cluster that the letter is for.
        actual: my colours, whose penalty the current colouring carries.

    Raises:
        ConfigError: I border none of its nodes, or so many that the table would be too large.
    """
    part = view.part
    kept = part.foreign_boundary(recipient)
    if not kept:
        near = ", ".join(dict.fromkeys(part.owners.values())) or "nobody"
        raise ConfigError(f"utility_options({recipient!r:.60}): {part.cluster} shares no edge with it, but with {near}")
    table = counterfactuals(part, kept, view.told, view.bound, view.banned)
    shape, score = table.net.shape, np.array([part.scores.get(colour, 0.0) for colour in part.domain])
    mine = score[table.responses].sum(axis=0)
    theirs = score[np.indices(shape, dtype=np.int8).reshape(len(kept), -1)].sum(axis=0)
    penalty, combined, current = table.penalty.flatten(), mine + theirs, -1
    if all(node in view.told for node in kept):
        current = int(np.ravel_multi_index([part.domain.index(view.told[node]) for node in kept], shape))
        penalty[current] = part.conflict_penalty * len(view.conflicts(actual))
    order = np.lexsort((np.arange(penalty.size) == current, -combined, penalty))
    if len(kept) > LISTED_WHOLE and order.size > MOST:
        missed = current >= 0 and current not in order[:MOST]
        order = np.append(order[: MOST - 1], current) if missed else order[:MOST]
    configurations = [
        {node: part.domain[code] for node, code in zip(kept, codes, strict=True)}
        for codes in np.stack(np.unravel_index(order, shape), axis=1).tolist()
    ]
    figures = (column[order].tolist() for column in (penalty, mine, theirs, combined))
    found = [Option(*row) for row in zip(configurations, *figures, (order == current).tolist(), strict=True)]
    for told in [one.configuration for one in found[:LOGGED]] if LOG.isEnabledFor(logging.INFO) else ():
        LOG.info("%s: If %s changes to %s, I could do %s", part.cluster, recipient, dict(told), table.response(told))
    return found


PROCESSES: Final = ("stable", "seed")
ALGORITHMS: Final = ("greedy", "exhaustive")
EXACT: Final = ("maxsum", "dsa", "mgm", "elimination", "cpsat")
"""Algorithms of `solve`, for whole problems."""
NEAR: Final = 1e-3
"""So much may a satisfied agent's colours cost more than its best response."""


class _Move(NamedTuple):
    """What a process decided, why, by what, and the view by which the agent is satisfied or not."""

    colours: Mapping[str, str]
    why: str
    by: Reason
    goal: View


def _part_of(problem: Problem | Part, cluster: str | None) -> Part:
    """The cluster's part of the problem. Raises ConfigError where there is none, or nothing to colour in it."""
    require_type(f"ClusterAgent({problem!r:.60})", problem, (Problem, Part), "a Problem or a Part")
    if isinstance(problem, Problem):
        problem = problem.part(str(cluster))
    elif not (cluster is None or is_one_of(cluster, [problem.cluster])):
        raise ConfigError(f"ClusterAgent(..., {cluster!r:.60}): the part is of {problem.cluster!r}")
    if not problem.nodes:
        raise ConfigError(f"ClusterAgent(..., {problem.cluster!r}): the cluster owns no node; there is none to colour")
    return problem


def _check_words(**words: str) -> None:
    """Raise ConfigError for a process or an algorithm that there is not."""
    for name, word in words.items():
        known = PROCESSES if name == "process" else ALGORITHMS
        if not is_one_of(word, known):
            near = did_you_mean(word, known) or f" There are {', '.join(known)}."
            if is_one_of(word, EXACT):
                near = " One cluster's nodes are solved by 'exhaustive', which finds the best colours of all."
            raise ConfigError(f"ClusterAgent({name}={word!r:.60}): is no {name}.{near}")


def _check_numbers(*, snap_threshold: float, p: float) -> None:
    """Raise ConfigError for a threshold or a probability that is none."""
    for name, value, most, span in (
        ("snap_threshold", snap_threshold, float("inf"), ">= 0"), ("p", p, 1.0, "from 0 to 1"),
    ):  # fmt: skip
        if isinstance(value, bool) or not is_finite(value) or not 0 <= value <= most:
            raise ConfigError(f"ClusterAgent({name}={value!r:.60}): must be a number {span}")


class ClusterAgent:
    """Agent that colours one cluster's nodes, step by step.

    Args:
        problem: the whole one, of which nothing but the cluster's part is kept, or that part.
        cluster: its name; a part has it already.
        process: "stable": forced colours stay until released or replaced, and it moves to a best response with
            probability `p` if that is strictly better; "seed": the process of the original study, which searches
            greedily from scratch and forgets forced colours after a step.
        algorithm: of the seed process, "greedy" or "exhaustive".
        snap_threshold: the seed process takes its best response if nothing changed and more than this is gained.
        start: own node to its first colour; others have the domain's first, fixed nodes theirs.
        p: of the stable process.
        sideways: of the stable process: with conflicts left and nothing better, does it move with probability `p` to
            another best response of equal cost?
        seed: of its draws, which are keyed by (seed, cluster, step).

    Attributes; changes to the mappings take effect at once:
        assignments: own node to its colour.
        beliefs: foreign node at the boundary to its colour; one that was not reported is missing.
        forced: own node to the colour that somebody ordered.
        fixed: own node to the colour that it keeps whatever is ordered.
        forbidden: own node to colours that it does not take unless forced, fixed, or without another one.
        history: a `Past` of each step.
        unknown: how many statements were about nodes or colours that this cluster does not know.
        unclear: how many sentences were not understood, or not as a whole.

    Raises:
        ConfigError: an argument makes no sense.
    """

    def __init__(
        self,
        problem: Problem | Part,
        cluster: str | None = None,
        *,
        process: Literal["stable", "seed"] = "stable",
        algorithm: Literal["greedy", "exhaustive"] = "greedy",
        snap_threshold: float = 5.0,
        start: Mapping[str, str] | None = None,
        p: float = 1.0,
        sideways: bool = False,
        seed: int = 0,
    ) -> None:
        part = _part_of(problem, cluster)
        _check_words(process=process, algorithm=algorithm)
        _check_numbers(snap_threshold=snap_threshold, p=p)
        require_switch(f"ClusterAgent(sideways={sideways!r:.60})", sideways)
        self.part, self.process, self.algorithm = part, process, algorithm
        self.snap_threshold, self.p, self.sideways = snap_threshold, p, sideways
        self._seed, self._free = whole(seed, "seed"), replace(part, fixed={})
        own, domain = part.nodes, part.domain
        self.fixed = Colours("fixed", own, domain, part.fixed)
        self.forced = Colours("forced", own, domain, {})
        self.forbidden = Forbidden("forbidden", own, domain, {})
        self.beliefs = Colours("beliefs", part.owners, domain, {})
        first = dict.fromkeys(own, domain[0])
        self.assignments = Colours(
            "start", own, domain, {**first, **mapping({} if start is None else start, "start"), **part.fixed}
        )
        self.history: list[Past] = []
        self.unknown = self.unclear = 0

    def receive(self, text: str, sender: str = "") -> tuple[Heard, ...]:
        """Take orders, reports, bans and releases from a text; return those understood, and unclear sentences."""
        if not isinstance(text, str):
            raise ConfigError(f"receive({text!r:.60}): must be a text; what is typed goes into `beliefs` or `forced`")
        found = tuple(statements(text, self.part))
        for one in found:
            self._take(one, sender)
        return found

    def _take(self, one: Heard, sender: str) -> None:
        node, own = one.node, one.node in self.part.nodes
        if one.kind == "unknown":
            self.unknown += 1
            LOG.info("%s: %s named %r and %r; one is unknown", self.part.cluster, sender, node, one.colour)
        elif one.kind == "unclear":
            self.unclear += 1
            self._log("%s%s", UNCLEAR, one.text)
        elif own and node in self.fixed and one.kind != "tell":
            words = "%s: WARNING: refused to %s %s for %s: it is fixed to %s"
            LOG.warning(words, self.part.cluster, one.kind, node, sender or "somebody", self.fixed[node])
        elif one.kind == "force" and own:
            self.forced[node] = one.colour
        elif one.kind == "forbid":
            self.forbidden[node] = {*self.forbidden.get(node, ()), one.colour}
        elif one.kind == "release":
            self.forced.pop(node, None)
            self.forbidden.pop(node, None)
        elif not own:
            self.beliefs[node] = one.colour

    def utility_options(self, recipient: str) -> list[Option]:
        """Return alternatives if the recipient's nodes had other colours, the best first; see `options`."""
        return options(self._view(self.forced), recipient, self.assignments)

    def step(self) -> StepReport:
        """Choose colours for all own nodes, take them, and report."""
        before, view = dict(self.assignments), self._view(self.forced)
        self._log("Known boundary colors: %s", view.told)
        if not view.told:
            self._log("WARNING: No known boundary colors")
        if self.process == "seed":
            move = self._from_scratch(view, before)
        else:
            move = self._onwards(view, before)
            self._log_change(view, before, move.colours)
            self._log("%s", move.why)
        self.assignments.update(move.colours)
        report = self._report(view, before, move)
        self.history.append(remembered(self.history, report))
        return report

    def _view(self, forced: Mapping[str, str]) -> View:
        forced = {node: colour for node, colour in forced.items() if node not in self.fixed}
        return View(self._free, dict(self.beliefs), forced, dict(self.fixed), dict(self.forbidden))

    def _from_scratch(self, view: View, before: Mapping[str, str]) -> _Move:
        """Step of the original study: the best response is taken if nothing else happened and much is gained."""
        by: Reason = "greedy" if self.algorithm == "greedy" else "best"
        wanted = view.greedy[0] if by == "greedy" else view.best[0]
        self._log_change(view, before, wanted)
        self.forced.clear()
        if view.forced:
            self._log("Clearing forced_local_assignments: %s", view.forced)
            why = "Skipping snap: forced assignments just applied (respecting human intent)"
            view = self._view({})
        elif wanted != before:
            why = "Skipping snap: greedy just found new solution (trusting its choice)"
        else:
            now, least = view.net(wanted), view.net(view.best[0])
            if now > least + self.snap_threshold:
                why = f"Snapping: significant improvement available (pen {now} -> {least})"
                wanted, by = view.best[0], "snap"
            else:
                why = f"Skipping snap: improvement too small (pen {now} -> {least}, threshold={self.snap_threshold})"
        self._log("%s", why)
        if by == "snap":
            self._log("Snapped to best local assignment")
        return _Move(wanted, why, by, view)

    def _onwards(self, view: View, before: Mapping[str, str]) -> _Move:
        """The stable process: orders at once; what is strictly better with probability p, or sideways."""
        had = {**before, **view.bound}
        draws = stream(self._seed, "cluster agent", self.part.cluster, len(self.history))
        moves, now, best = draws.random() < self.p, view.net(had), view.best[0]
        least = view.net(best)
        if not view.obeys(had):
            return _Move(best, "moved: a colour is forbidden", "best", view)
        if least < now:
            why = f"better: net {now} -> {least}"
            return _Move(best, f"moved, {why}", "best", view) if moves else _Move(had, f"waited, {why}", "kept", view)
        others = view.others(had, draws) if self.sideways and moves and view.conflicts(had) else []
        if others:
            other = others[int(draws.integers(len(others)))]
            return _Move(other, f"moved sideways: net stays {now}", "best", view)
        return _Move(had, f"stayed: nothing is better than net {now}", "kept", view)

    def _report(self, view: View, before: Mapping[str, str], move: _Move) -> StepReport:
        goal, colours, (greedy, tables) = move.goal, dict(move.colours), view.greedy
        conflicts, net = goal.conflicts(colours), goal.net(colours)
        penalty = self.part.conflict_penalty * len(conflicts)
        satisfied = not conflicts and net <= goal.net(goal.best[0]) + NEAR
        for own, other in conflicts:
            if other in goal.told:
                self._log("BOUNDARY CONFLICT: %s(%s) <-> %s(%s)", own, colours[own], other, goal.told[other])
        if conflicts:
            self._log("Not satisfied: penalty=%s > 0", penalty)
        self._log("Satisfied: %s", satisfied)
        nodes = {}
        for node, colour in colours.items():
            chosen: Reason = "kept" if colour == before[node] else move.by
            reason: Reason = "fixed" if node in self.fixed else "forced" if node in view.forced else chosen
            costs = tables[node] if move.by == "greedy" else goal.penalties(node, colours)
            nodes[node] = Choice(colour, reason, costs)
            self._log("%s: %s (%s) of %s", node, colour, reason, costs)
        return StepReport(
            self.part.cluster, len(self.history), before, colours, colours != before, view.forced, move.by == "snap",
            move.why, satisfied, penalty, conflicts, net, len(self.part.owners) - len(goal.told), nodes, greedy,
            goal.told,
        )  # fmt: skip

    def _log_change(self, view: View, before: Mapping[str, str], wanted: Mapping[str, str]) -> None:
        if wanted != before:
            self._log("Updated assignments from %s to %s", before, wanted)
        else:
            self._log("Assignments unchanged: %s", before)
            if conflicts := len(view.conflicts(wanted)):
                penalty = self.part.conflict_penalty * conflicts
                self._log("WARNING: Assignments didn't change despite penalty=%s", penalty)

    def _log(self, words: str, *values: Any) -> None:
        LOG.info(f"%s: {words}", self.part.cluster, *values)
