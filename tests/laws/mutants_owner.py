"""Faults in who owns an environment, planted as in `mutants`."""

from typing import Any

from laws.mutants import mutant_in

from heron_env.envs import ownership
from heron_env.envs.event.clock import EventRun
from heron_env.envs.simulation import Simulation
from heron_env.envs.synchronous import SynchronousEnv

OWNER_MUTANTS: dict[str, Any] = {}
mutant = mutant_in(OWNER_MUTANTS)


@mutant(ownership.Ownership, "drive")
def anybody_drives(original: Any) -> Any:
    """Whoever calls is let through."""
    return lambda self, call, do, *args, **keywords: do(*args, **keywords)


@mutant(ownership.Ownership, "borrow")
def everything_is_lent(original: Any) -> Any:
    """A decision may step without having kept the state."""

    def borrowed(self: Any, call: str) -> Any:
        if self.lent:
            self.lent = ownership.LOOK_AHEAD | {call}
        return original(self, call)

    return borrowed


@mutant(ownership.Ownership, "require")
def nobody_looks(original: Any) -> Any:
    """After a decision nobody asks where the environment stands."""
    return lambda self, mark, who, time: None


@mutant(EventRun, "_require_mine")
def until_does_not_look(original: Any) -> Any:
    """The run takes up whatever the environment has become."""
    return lambda self, call: None


@mutant(ownership.Ownership, "arrive")
def marks_of_others_come_again(original: Any) -> Any:
    """A number from another process is given once more here."""

    def arrive(self: Any, mark: int) -> None:
        self.mark = mark

    return arrive


@mutant(SynchronousEnv, "_restore")
def a_run_is_restored_from_a_state(original: Any) -> Any:
    """The state of an event-driven run is taken for all of it."""

    def restore(env: Any, state: Any) -> None:
        original(env, state)
        env._ownership.mark = state["mark"]

    return restore


@mutant(Simulation, "state")
def a_state_is_a_view(original: Any) -> Any:
    """What was kept goes with the world."""
    return lambda self: {**original(self), "truth": self.truth}
