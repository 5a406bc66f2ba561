"""What batches of both clocks have, and what they are built from: checked arguments, and the environments."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.lane_groups import Bools, Decider, Group, group_named, groups_of
from heron_env.envs.ownership import Ownership
from heron_env.errors import ConfigError, HeronError, InvalidAction, RuleError
from heron_env.given import require_count
from heron_env.registry import make

if TYPE_CHECKING:
    from heron_env.envs.batch.lanes import LaneEngine

MOST_LANES = 10_000_000
MOST_THREADS = 4096
MOST_COPIES = 100_000
"""Environments that run one by one; each is an object of its own."""


class Batch:
    """`num_envs` lanes of one environment, and who drives them; see BatchEnv for the attributes."""

    _engine: LaneEngine

    def __init__(self, env: HeronEnv, num_envs: int, autoreset: str, seed: Any) -> None:
        self.env, self.num_envs, self.autoreset, self._seed = env, num_envs, autoreset, as_seed(seed)
        self._ownership = Ownership("batch", "BatchEnv(...), with the same arguments")
        self._groups = groups_of(env, num_envs)
        self.groups = dict(env.group_map)
        first = {name: agents[0] for name, agents in self.groups.items()}
        self.observation_spaces = {name: env.observation_space(agent) for name, agent in first.items()}
        self.action_spaces = {name: env.action_space(agent) for name, agent in first.items()}
        self._started = np.zeros(num_envs, dtype=bool)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Raises ConfigError: machine code and its memory are of one process."""
        raise ConfigError("a BatchEnv can't be copied or pickled; build another with the same arguments")

    @property
    def over(self) -> Bools:
        """Lanes whose episode ended in the last step, bool `[B]`."""
        return read_only(self._engine.over)

    @property
    def steps(self) -> NDArray[np.int64]:
        """Steps of each lane's running episode, `[B]`."""
        return read_only(self._engine.steps)

    @property
    def returns(self) -> NDArray[np.float64]:
        """Sum of rewards in each lane's last complete episode, `[B, all agents]` in the order of `env.hierarchy`."""
        return read_only(self._engine.last_returns)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Steps of each lane's last complete episode, `[B]`."""
        return read_only(self._engine.last_length)

    def alive(self, group: str) -> Bools:
        """Which agents of a group have not ended, `[B, agents]`."""
        return self._engine.alive(group_named(self._groups, group, "alive() got"))

    def lane(self, number: int) -> HeronEnv:
        """Return the environment of one lane, to read: `.world`, `.state()`, `.kpis()`. The batch moves it.

        Raises ConfigError for a missing lane; so do its `step` and `get_state`.
        """
        return self._engine.lane(number_of_lane(number, self.num_envs))

    def _mask(self, mask: Any) -> Bools:
        """The lanes that a reset is for; None: all. Raises ConfigError."""
        if mask is None:
            return np.ones(self.num_envs, dtype=bool)
        lanes = as_array(mask, ConfigError, "reset(mask=...)")
        if lanes.shape != (self.num_envs,) or lanes.dtype != np.bool_:
            raise ConfigError(
                f"reset(mask=...): has shape {lanes.shape} and type {lanes.dtype}; "
                f"give booleans of shape {(self.num_envs,)}"
            )
        return lanes


def counted(name: str, value: Any, most: int = MOST_LANES) -> int:
    """The whole number from 1 on that a batch can be built with. Raises ConfigError."""
    count = int(value) if isinstance(value, np.integer) else value
    require_count(f"BatchEnv({name}={value!r:.60})", count, 1, most)
    return int(count)


def as_seed(seed: Any) -> int:
    """The seed. Raises ConfigError."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ConfigError(f"seed={seed!r:.200}: must be a whole number >= 0")
    return int(seed)


def as_array(values: Any, error: type[HeronError] = InvalidAction, what: str = "the actions") -> NDArray[Any]:
    """An array of them, as numpy has it. Raises `error` for what has no shape."""
    try:
        return np.asarray(values)
    except Exception as fault:  # whatever an object's own __array__ raises, too
        kind = type(values).__name__
        raise error(f"{what}: no array can be made of {kind} ({fault}); give numbers, in rows of one length") from fault


def seeds_of(seed: Any, usual: int, lanes: int) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The seed of each lane, uint64 `[lanes]`, and where it was given; elsewhere it is `usual` + lane.

    `seed`: a number for lane 0 and the next ones for the others, or one or None for each. Raises ConfigError.
    """
    each = np.arange(lanes, dtype=np.uint64) + np.uint64(as_seed(usual) % 2**64)
    if seed is None:
        return each, np.zeros(lanes, dtype=bool)
    if isinstance(seed, int | np.integer):
        return np.arange(lanes, dtype=np.uint64) + np.uint64(as_seed(seed) % 2**64), np.ones(lanes, dtype=bool)
    values = as_array(seed, ConfigError, "reset(seed=...)")
    if values.dtype.kind == "f":  # numpy makes floats of whole numbers where one of them is beyond int64
        values = np.array(seed, dtype=object)
    explicit = np.ones(values.shape, dtype=bool)
    if values.dtype == object:
        explicit = np.array([one is not None for one in values.ravel()], dtype=bool).reshape(values.shape)
    numbers = values[explicit]
    all_integers = numbers.dtype.kind in "iu" and (numbers >= 0).all()
    if values.shape == (lanes,) and (all_integers or all(map(_is_seed, numbers.tolist()))):
        each[explicit] = numbers.astype(np.uint64)
        return each, explicit
    raise ConfigError(f"reset(seed={seed!r:.200}): give a whole number >= 0, or {lanes} of them, each below 2**64")


def _is_seed(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= int(value) < 2**64


def number_of_lane(number: Any, lanes: int) -> int:
    """The lane, counted from the end where it is negative. Raises ConfigError."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not -lanes <= number < lanes:
        raise ConfigError(f"lane({number!r:.60}): there are the lanes 0 to {lanes - 1}")
    return int(number) % lanes


def require_rewards(values: Any, shape: tuple[int, int], source: str) -> None:
    """Raise RuleError unless these are numbers `[lanes, possible agents]`."""
    if np.shape(values) != shape:
        raise RuleError(
            f"{source} returned the shape {np.shape(values)}, expected {shape}: (lanes, possible agents); "
            "return one number for each"
        )


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that nobody can write through."""
    view = array.view()
    view.flags.writeable = False
    return view


def builder_of(env: Any, options: dict[str, Any]) -> Callable[[], HeronEnv]:
    """What gives the environment: a function, or one that always returns the same environment."""
    if isinstance(env, str):
        return lambda: make(env, **options)
    if isinstance(env, HeronEnv):
        if options:
            raise ConfigError(
                f"BatchEnv: options {sorted(options)} go with an id or a function; build the env with them"
            )
        return lambda: env
    if not callable(env):
        raise ConfigError(f"BatchEnv({env!r}): give a registered id, an environment, or a function that builds one")
    return lambda: require_env(called(f"BatchEnv({env!r:.200})", env, options), env)


def called(call: str, function: Callable[..., Any], options: dict[str, Any], args: Sequence[Any] = ()) -> Any:
    """What it returns. Raises ConfigError where it can't be called so; what goes wrong within it is its own."""
    try:
        return function(*args, **options)
    except (TypeError, ValueError) as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:
            raise ConfigError(f"{call}: can't be called with options {list(options)}: {error}") from error
        raise


def require_env(made: Any, maker: Any) -> HeronEnv:
    """Raise ConfigError unless this is an environment."""
    if not isinstance(made, HeronEnv):
        raise ConfigError(f"BatchEnv({maker!r}): returned {made!r:.60}; let it return a HeronEnv")
    return made


def make_lanes(
    env: HeronEnv, groups: Mapping[str, Group], deciders: Sequence[Decider], lanes: int,
    build: Callable[[], HeronEnv], threads: int | None, *, final: bool = False,
) -> LaneEngine:  # fmt: skip
    """So many lanes of `env`: compiled, or in plain Python with an environment each, which `build` gives.

    Raises ConfigError for more of these than fit into memory.
    """
    log = logging.getLogger("heron_env")
    if env.simulation.compiled and steps_as_usual(env):
        from heron_env.envs.batch.lanes import CompiledLanes

        if threads is not None and threads > 1 and (hooks := sorted(type(env).python_hooks())):
            names = ", ".join(f"{name}()" for name in hooks)
            log.warning(
                "BatchEnv(threads=%d): %s of %s are Python, so one thread runs all; write them as world rules",
                threads, names, type(env).__name__,
            )  # fmt: skip
        return CompiledLanes(env, groups, deciders, lanes, threads, final)
    counted("num_envs", lanes, MOST_COPIES)
    usual = steps_as_usual(env)
    if lanes > 1 and (hint := why_slow(env, usual)):
        log.warning("BatchEnv: %s; %d run one by one", hint, lanes)
    more = (build() for _ in range(lanes - 1))
    envs = [env, *(copy.deepcopy(env) if another is env else another for another in more)]
    from heron_env.envs.batch.plain_lanes import OwnSteps, PlainLanes

    return (PlainLanes if usual else OwnSteps)(env, groups, deciders, envs, final)


def steps_as_usual(env: HeronEnv) -> bool:
    """Has its class no step() of its own?"""
    return type(env).step is HeronEnv.step and type(env).advance_step is HeronEnv.advance_step


def why_slow(env: HeronEnv, usual: bool) -> str:
    """Why a batch that could have been compiled isn't; empty if that was asked for."""
    imperative = next((agent for agent in env.hierarchy.agents if agent.is_imperative), None)
    if imperative is not None:
        return f"{type(imperative).__name__} has methods where rules could stand"
    return "" if usual else f"{type(env).__name__} has a step() of its own"
