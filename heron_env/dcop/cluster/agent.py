"""The cluster agent: hears, solves its own nodes beside what it was told, and reports what it did and why."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from heron_env.dcop.cluster.hearing import Heard, heard
from heron_env.dcop.cluster.live import Colours, Forbidden
from heron_env.dcop.cluster.options import options
from heron_env.dcop.cluster.report import Choice, Option, Past, Reason, StepReport
from heron_env.dcop.cluster.view import Penalties, View
from heron_env.dcop.problem import Part, Problem
from heron_env.errors import ConfigError, did_you_mean
from heron_env.given import is_finite, require_switch, whole
from heron_env.seeding import stream

LOG: Final = logging.getLogger("heron_env.dcop")
NEAR: Final = 1e-3
"""So much may a satisfied agent's colours cost more than its best response."""


@dataclass
class _Move:
    """What a process decided."""

    colours: Mapping[str, str]
    why: str
    by: Reason
    goal: View
    """What it is satisfied by, or not."""
    snapped: bool = False
    tables: Mapping[str, Penalties] | None = None
    """Penalties at the time of each choice; None: beside the final colours of the others."""


class ClusterAgent:
    """Colours one cluster's nodes, step by step.

    Args:
        problem: the whole one, of which nothing but the cluster's part is kept, or that part.
        cluster: whose; a part tells it.
        process: "stable": forced colours stay until released or replaced, and it moves to a best response with
            probability `p` if that is strictly better; "seed": the process of the specification, which searches
            greedily from scratch and forgets forced colours after a step.
        algorithm: of the seed process, "greedy" or "exhaustive".
        snap_threshold: the seed process takes its best response if nothing changed and more than this is gained.
        start: own node to its first colour; others have the domain's first, fixed nodes theirs.
        p: of the stable process.
        sideways: of the stable process: with conflicts left and nothing better, does it move with probability `p` to
            another best response of equal cost?
        seed: of its draws, which are keyed by (seed, cluster, step).

    Attributes, live mappings all:
        assignments: own node to its colour.
        beliefs: foreign node at the boundary to its colour; one that nobody told is missing.
        forced: own node to the colour that somebody ordered.
        fixed: own node to the colour that it keeps whatever is ordered.
        forbidden: own node to colours that it does not take unless forced, fixed, or without another one.
        history: a `Past` of each step.
        unknown: how much was said of nodes or colours that this cluster does not know.

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
        if isinstance(problem, Problem):
            problem = problem.part(str(cluster))
        elif cluster not in (None, problem.cluster):
            raise ConfigError(f"ClusterAgent(..., {cluster!r:.60}): the part is of {problem.cluster!r}")
        _require("process", process, ("stable", "seed"))
        _require("algorithm", algorithm, ("greedy", "exhaustive"))
        for name, value, most in (("snap_threshold", snap_threshold, float("inf")), ("p", p, 1.0)):
            if isinstance(value, bool) or not is_finite(value) or not 0 <= value <= most:
                raise ConfigError(f"ClusterAgent({name}={value!r:.60}): must be a number from 0 to {most}")
        require_switch(f"ClusterAgent(sideways={sideways!r:.60})", sideways)
        self.part, self.process, self.algorithm = problem, process, algorithm
        self.snap_threshold, self.p, self.sideways = snap_threshold, p, sideways
        self._seed, self._free = whole(seed, "seed"), replace(problem, fixed={})
        own, domain = problem.nodes, problem.domain
        self.fixed = Colours("fixed", own, domain, problem.fixed)
        self.forced = Colours("forced", own, domain, {})
        self.forbidden = Forbidden("forbidden", own, domain, {})
        self.beliefs = Colours("beliefs", problem.owners, domain, {})
        first = dict.fromkeys(own, domain[0])
        self.assignments = Colours("start", own, domain, {**first, **(start or {}), **problem.fixed})
        self.history: list[Past] = []
        self.unknown = 0

    def receive(self, text: str, sender: str = "") -> tuple[Heard, ...]:
        """Take orders, reports, bans and releases from a text, and tell what was understood."""
        if not isinstance(text, str):
            raise ConfigError(f"receive({text!r:.60}): must be a text; what is typed goes into `beliefs` or `forced`")
        found = tuple(heard(text, self.part))
        for one in found:
            self._take(one, sender)
        return found

    def _take(self, one: Heard, sender: str) -> None:
        node, own = one.node, one.node in self.part.nodes
        if one.kind == "unknown":
            self.unknown += 1
            LOG.info("%s: %s named %r and %r; one is unknown", self.part.cluster, sender, node, one.colour)
        elif own and node in self.fixed and one.kind != "tell":
            words = "%s: WARNING: refused to %s %s for %s: it is fixed to %s"
            LOG.warning(words, self.part.cluster, one.kind, node, sender or "somebody", self.fixed[node])
        elif one.kind == "force" and own:
            self.forced[node] = one.colour
        elif one.kind == "forbid" and own:
            self.forbidden[node] = {*self.forbidden.get(node, ()), one.colour}
        elif one.kind == "release":
            self.forced.pop(node, None)
            self.forbidden.pop(node, None)
        elif not own and one.kind != "forbid":
            self.beliefs[node] = one.colour

    def utility_options(self, recipient: str) -> list[Option]:
        """What if the recipient's nodes had other colours: one for each colouring, the best first; see `options`.

        Raises:
            ConfigError: no edge leads to it, or too many of its nodes are at the boundary.
        """
        return options(self._view(self.forced), recipient, self.assignments)

    def step(self) -> StepReport:
        """Choose colours for all own nodes, take them, and report."""
        before, told, step = dict(self.assignments), dict(self.beliefs), len(self.history)
        forced = {node: colour for node, colour in self.forced.items() if node not in self.fixed}
        self._log("Known boundary colors: %s", told)
        if not told:
            self._log("WARNING: No known boundary colors")
        view = self._view(forced)
        wanted, tables = view.greedy()
        if self.process == "seed":
            move = self._seed_move(view, before, forced, wanted)
            move.tables = tables if move.by == "greedy" and not move.snapped else None
        else:
            move = self._stable_move(view, before, step)
            self._log_change(view, before, move.colours)
            self._log("%s", move.why)
        self.assignments.update(move.colours)
        report = self._report(move, before, wanted, forced)
        self.history.append(Past.after(self.history, report))
        return report

    def _view(self, forced: Mapping[str, str]) -> View:
        return View(self._free, dict(self.beliefs), {**forced, **self.fixed}, dict(self.forbidden))

    def _seed_move(
        self, view: View, before: Mapping[str, str], forced: Mapping[str, str], greedy: Mapping[str, str]
    ) -> _Move:
        """The specification's: from scratch, then the best response if nothing else happened and much is gained."""
        by: Reason = "greedy" if self.algorithm == "greedy" else "best"
        wanted = greedy if by == "greedy" else view.best[0]
        self._log_change(view, before, wanted)
        if self.forced:
            self._log("Clearing forced_local_assignments: %s", forced)
            self.forced.clear()
        free = self._view({}) if forced else view
        if forced:
            why = "Skipping snap: forced assignments just applied (respecting human intent)"
        elif wanted != before:
            why = "Skipping snap: greedy just found new solution (trusting its choice)"
        else:
            now, best = free.net(wanted), free.net(free.best[0])
            pens = f"(pen {now} -> {best}"
            if now > best + self.snap_threshold:
                why = f"Snapping: significant improvement available {pens})"
                self._log("%s", why)
                self._log("Snapped to best local assignment")
                return _Move(free.best[0], why, "snap", free, snapped=True)
            why = f"Skipping snap: improvement too small {pens}, threshold={self.snap_threshold})"
        self._log("%s", why)
        return _Move(wanted, why, by, free)

    def _stable_move(self, view: View, before: Mapping[str, str], step: int) -> _Move:
        """Orders at once; then with probability p to what is strictly better, or sideways out of a conflict."""
        had = {**before, **view.bound}
        best, draws = view.best[0], stream(self._seed, "cluster agent", self.part.cluster, step)
        now, then = view.net(had), view.net(best)
        if not view.obeys(had):
            return _Move(best, "moved: a colour is forbidden", "best", view)
        moves = draws.random() < self.p
        if then < now:
            why = f"better: net {now} -> {then}"
            return _Move(best, f"moved, {why}", "best", view) if moves else _Move(had, f"waited, {why}", "kept", view)
        if self.sideways and moves and view.conflicts(had):
            others = view.others(had, draws)
            if others:
                other = others[int(draws.integers(len(others)))]
                return _Move(other, f"moved sideways: net stays {now}", "best", view)
        return _Move(had, f"stayed: nothing is better than net {now}", "kept", view)

    def _report(
        self, move: _Move, before: Mapping[str, str], greedy: Mapping[str, str], forced: Mapping[str, str]
    ) -> StepReport:
        goal, colours = move.goal, dict(move.colours)
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
            kept: Reason = "kept" if colour == before[node] else move.by
            reason: Reason = "fixed" if node in self.fixed else "forced" if node in forced else kept
            nodes[node] = Choice(colour, reason, (move.tables and move.tables[node]) or goal.penalties(node, colours))
            self._log("%s: %s (%s) of %s", node, colour, reason, nodes[node].penalties)
        return StepReport(
            self.part.cluster, len(self.history), before, colours, colours != before, forced, move.snapped, move.why,
            satisfied, penalty, conflicts, net, len(self.part.owners) - len(goal.told), nodes, greedy, goal.told,
        )  # fmt: skip

    def _log_change(self, view: View, before: Mapping[str, str], wanted: Mapping[str, str]) -> None:
        if wanted != before:
            self._log("Updated assignments from %s to %s", before, wanted)
            return
        self._log("Assignments unchanged: %s", before)
        penalty = self.part.conflict_penalty * len(view.conflicts(wanted))
        if penalty > 0:
            self._log("WARNING: Assignments didn't change despite penalty=%s", penalty)

    def _log(self, words: str, *values: Any) -> None:
        LOG.info(f"%s: {words}", self.part.cluster, *values)


def _require(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        near = did_you_mean(value, known) or f" There are {', '.join(known)}."
        raise ConfigError(f"ClusterAgent({name}={value!r:.60}): is none.{near}")
