"""The cluster agent: hears, solves its own nodes beside what it was told, and reports what it did and why."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from heron_env.dcop.cluster.hearing import UNCLEAR, Heard, heard
from heron_env.dcop.cluster.live import Colours, Forbidden
from heron_env.dcop.cluster.options import options
from heron_env.dcop.cluster.report import Choice, Option, Past, Reason, StepReport, remembered
from heron_env.dcop.cluster.view import View
from heron_env.dcop.problem import Part, Problem
from heron_env.errors import ConfigError, did_you_mean
from heron_env.given import is_finite, is_one_of, mapping, require_switch, require_type, whole
from heron_env.seeding import stream

LOG: Final = logging.getLogger("heron_env.dcop")
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
        require_type(f"ClusterAgent({problem!r:.60})", problem, (Problem, Part), "a Problem or a Part")
        if isinstance(problem, Problem):
            problem = problem.part(str(cluster))
        elif not (cluster is None or is_one_of(cluster, [problem.cluster])):
            raise ConfigError(f"ClusterAgent(..., {cluster!r:.60}): the part is of {problem.cluster!r}")
        if not problem.nodes:
            raise ConfigError(
                f"ClusterAgent(..., {problem.cluster!r}): the cluster owns no node; there is none to colour"
            )
        for name, word, known in (("process", process, PROCESSES), ("algorithm", algorithm, ALGORITHMS)):
            if not is_one_of(word, known):
                near = did_you_mean(word, known) or f" There are {', '.join(known)}."
                if is_one_of(word, EXACT):
                    near = " One cluster's nodes are solved by 'exhaustive', which finds the best colours of all."
                raise ConfigError(f"ClusterAgent({name}={word!r:.60}): is no {name}.{near}")
        infinity = float("inf")
        for name, value, most in (("snap_threshold", snap_threshold, infinity), ("p", p, 1.0)):
            if isinstance(value, bool) or not is_finite(value) or not 0 <= value <= most:
                span = ">= 0" if most == infinity else "from 0 to 1"
                raise ConfigError(f"ClusterAgent({name}={value!r:.60}): must be a number {span}")
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
        self.assignments = Colours(
            "start", own, domain, {**first, **mapping({} if start is None else start, "start"), **problem.fixed}
        )
        self.history: list[Past] = []
        self.unknown = self.unclear = 0

    def receive(self, text: str, sender: str = "") -> tuple[Heard, ...]:
        """Take orders, reports, bans and releases from a text; returns what was said, unclear sentences too."""
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
        """What if the recipient's nodes had other colours, the best first. Order and errors are those of `options`."""
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
        """The specification's process: the best response is taken if nothing else happened and much is gained."""
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
