"""Faults in who owns an environment, planted as in `mutants`."""

import threading
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
def threads_look_alike(original: Any) -> Any:
    """What is lent to a decision is lent to every thread."""

    def borrowed(self: Any, call: str) -> Any:
        self.thread = threading.get_ident()
        return original(self, call)

    return borrowed


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


@mutant(ownership.Ownership, "move")
def marks_are_counted(original: Any) -> Any:
    """The mark is the number of steps since the start: a state that was restored gives the same again."""

    def move(self: Any, torn: str | None = None) -> None:
        self.mark += 1
        self.torn = self.torn if torn is None else torn

    return move


@mutant(ownership.Ownership, "arrive")
def marks_of_others_come_again(original: Any) -> Any:
    """A number from another process is given once more here."""

    def arrive(self: Any, mark: int) -> None:
        self.mark = mark

    return arrive


@mutant(ownership.Ownership, "moved_by")
def torn_steps_never_were(original: Any) -> Any:
    """Only a step that came to its end moves the mark."""

    def moved_by(self: Any, step: Any, *args: Any) -> Any:
        done = step(*args)
        self.move()
        return done

    return moved_by


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


@mutant(SynchronousEnv, "_restore")
def the_ended_are_still_named(original: Any) -> Any:
    """`agents` is not brought back."""

    def restore(env: Any, state: Any) -> None:
        now = env.agents
        original(env, state)
        env.agents = now

    return restore
