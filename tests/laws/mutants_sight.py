"""Faults in who sees whom (V11), as they are usually written, in both clocks and in the text of compiled loops."""

from typing import Any

import numpy as np
from laws.mutants import mutant_in
from laws.uncompiled import Fault

from heron_env.engine import memory
from heron_env.envs.event.agents import AgentLoop
from heron_env.envs.lane_hooks import LaneHooks
from heron_env.envs.simulation import Simulation
from heron_env.observability.plan import ObserverView
from heron_env.scheduling import contents, sharing

SIGHT_MUTANTS: dict[str, Any] = {}
"""Faults in Python."""
COMPILED_SIGHT_MUTANTS: dict[str, Any] = {}
"""Those that only show where `sees` is compiled."""
WEIGHTY_MUTANTS: dict[str, Any] = {}
"""Those that only show where messages share a medium."""
mutant = mutant_in(SIGHT_MUTANTS)


@mutant(Simulation, "look")
def asked_a_measurement_late(original: Any) -> Any:
    """The truth of the substep before is asked about."""
    before: dict[int, Any] = {}

    def look(self: Any, row: Any = None) -> None:
        now = self.truth.copy()
        self.truth[:] = before.get(id(self), now)
        original(self, row)
        self.truth[:] = before[id(self)] = now

    return look


@mutant(Simulation, "look")
def asked_of_the_cache(original: Any) -> Any:
    """What the proxy knows is asked about, not what is."""

    def look(self: Any, row: Any = None) -> None:
        now = self.truth.copy()
        self.truth[:] = self.hooks.proxy.cache[: len(now)]
        original(self, row)
        self.truth[:] = now

    return look


@mutant(Simulation, "look")
def the_first_look_is_forgotten(original: Any) -> Any:
    """At the start of an episode nobody is asked about."""
    begun = set[int]()

    def look(self: Any, row: Any = None) -> None:
        if id(self) in begun:
            original(self, row)
        begun.add(id(self))

    return look


@mutant(AgentLoop, "receive_report")
def bits_newer_than_their_row(original: Any) -> Any:
    """Who sees a row is asked when its report comes."""

    def receive_report(self: Any, report: Any, now: int) -> None:
        simulation = self.context.simulation
        simulation.look(report.row)
        reported = simulation.model.layout.rows[report.row].reported
        report.values[reported.size :] = simulation.facts[reported.columns[reported.size :]]
        original(self, report, now)

    return receive_report


@mutant(ObserverView, "receive")
def noise_moved_by_what_is_hidden(original: Any) -> Any:
    """Only what is seen draws noise, one after another."""

    def receive(self: Any, array: Any, moment: Any) -> Any:
        hidden = sum(array[column] == 0.0 for column in self.hides[1].tolist())
        return original(self, array, moment._replace(turn=moment.turn + int(hidden)))

    return receive


@mutant(ObserverView, "as_differences")
def hidden_before_the_difference(original: Any) -> Any:
    """From the default of what is hidden the observer's own is subtracted."""

    def as_differences(self: Any, values: Any) -> Any:
        hidden = np.isnan(values[self.hides[0]])
        shown = values.copy()
        shown[self.hides[0][hidden]] = self.instead[hidden]
        return original(self, shown)

    return as_differences


@mutant(LaneHooks, "_look_at")
def asked_whom_the_row_sees(original: Any) -> Any:
    """With a row it is asked whom its agent sees, not who sees it."""
    return lambda self, lane, rank: self._ask(lane, [pair for pair in self._asked if pair[0] == rank])


compiled_mutant = mutant_in(COMPILED_SIGHT_MUTANTS)


@compiled_mutant(memory, "_asked")
def asked_the_other_way_round(original: Any) -> Any:
    """sees(world, target, observer)."""

    def asked(model: Any) -> Any:
        tables = original(model)
        return tables | {"asked": np.ascontiguousarray(tables["asked"][:, [1, 0, 2]])}

    return asked


@compiled_mutant(memory, "_asked")
def asked_of_the_agent_before(original: Any) -> Any:
    """With a row it is asked who sees the one before."""

    def asked(model: Any) -> Any:
        tables = original(model)
        return tables | {"asked_of": np.concatenate([[0], tables["asked_of"][:-1]])}

    return asked


@mutant_in(WEIGHTY_MUTANTS)(sharing, "content_size")
def a_report_weighs_its_bits(original: Any) -> Any:
    """Who sees a row is payload, too."""

    def size(message: Any, sizes: Any) -> float:
        if isinstance(message, contents.m.StateReport) and "report" not in sizes:
            return 4.0 * len(message.values)
        return float(original(message, sizes))

    return size


LEAKS: dict[str, Any] = {}
"""What is hidden shows, somehow."""
leak = mutant_in(LEAKS)


@leak(ObserverView, "receive")
def what_is_relative_shows(original: Any) -> Any:
    """Of whom nobody sees what is relative is told."""

    def receive(self: Any, array: Any, moment: Any) -> Any:
        values, places = original(self, array, moment), self.relative[0]
        values[places] = np.where(np.isnan(values[places]), array[self.columns[places]], values[places])
        return values

    return receive


@leak(ObserverView, "receive")
def noise_moved_by_what_is_unseen(original: Any) -> Any:
    """Noise depends on the numbers it falls on, seen or not."""

    def receive(self: Any, array: Any, moment: Any) -> Any:
        return original(self, array, moment._replace(turn=int(abs(array[self.columns]).sum() * 1e6)))

    return receive


SIGHT_IN_TEXT: dict[str, Fault] = {
    "boundaries_are_not_looked_at": (
        "physics",
        "failed = visit(D, SIGHT, b, b + 1, np.int64(0))",
        "failed = np.int64(0)",
    ),
    "telemetry_is_not_looked_at": (
        "physics",
        "        failed = visit(D, SIGHT, b, b + 1, failed)\n        number",
        "        number",
    ),
    "effects_are_not_looked_at": (
        "agents",
        'truth, failures = table(D, "truth"), visit(D, SIGHT_OF, b, r, failures)',
        'truth = table(D, "truth")',
    ),
    "beginnings_are_not_looked_at": ("clock", "            failed = visit(D, SIGHT, b, b + 1, failed)\n", ""),
    "a_difference_to_what_is_hidden": ("agents", "value if value == value else 0.0", "value"),
    "what_is_hidden_is_known_at_the_decision": (
        "agents",
        "            absolute[at, k - start[r]] = np.nan\n",
        "            pass\n",
    ),
    "sight_without_memory": ("agents", "        obs[at, j + k - start[r]] = cache[b, flag[k]]\n", "        pass\n"),
    "a_report_weighs_its_bits": ("broker", 'of(E, "payload")[row]', "first[row + 1] - first[row]"),
}
"""Faults in the text of the compiled event clock."""

SIGHT_IN_STEPS: dict[str, Fault] = {
    "hidden_before_the_difference": (
        "loop_kernels",
        "    for k in range(received.shape[1]):\n"
        "        out[b, k] = received[b, k]\n"
        "    for k in range(len(relative)):\n"
        "        out[b, relative[k, 0]] = received[b, relative[k, 0]] - received[b, relative[k, 1]]\n"
        "    hide(D, b, out)\n",
        "    hide(D, b, received)\n"
        "    for k in range(received.shape[1]):\n"
        "        out[b, k] = received[b, k]\n"
        "    for k in range(len(relative)):\n"
        "        out[b, relative[k, 0]] = received[b, relative[k, 0]] - received[b, relative[k, 1]]\n",
    ),
    "the_end_is_not_looked_at": (
        "step",
        '    if table(D, "phases")[KEEP_FINAL] != 0:\n        failed = visit(D, SIGHT, first, last, failed)\n',
        "",
    ),
    "nothing_is_looked_at": (
        "step",
        "    failed = visit(D, SIGHT, first, last, failed)\n    run(D, phases",
        "    run(D, phases",
    ),
    "hidden_from_lane_zero": ("loop_kernels", "if t[b, hidden[k, 1]] == 0.0:", "if t[0, hidden[k, 1]] == 0.0:"),
}
"""Faults in the text of steps that all lanes share."""
