"""The hooks: physics, exogenous values, faults and rewards of an environment's own, and what it says of itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import FieldAgent
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout
from heron_env.core.rule import RuleSpec, rule_spec
from heron_env.core.world import World, cohort_of
from heron_env.engine.binding import FAILURES, ended_in
from heron_env.engine.model import Native
from heron_env.envs.description import Benchmark, TrainingDefaults
from heron_env.errors import ConfigError, RuleError, UnknownAgent, UnknownFeature, did_you_mean
from heron_env.scheduling.disturbances import BUILT_IN, Disturbance, DisturbanceType

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from heron_env.pictures.course import PictureSeries
    from heron_env.pictures.frames import ObservedWorld
    from heron_env.scheduling.events import Following, Happening

IMPERATIVE = ("simulate", "global_state_to_env_state", "run_simulation", "env_state_to_global_state")
WORLD_HOOKS = ("begin", "advance", "finish")
COMPILABLE = (*WORLD_HOOKS, "training_rewards", "sees", "link")
"""Those that may be world rules, or there as compiled code as well."""
HOOKS = (
    *WORLD_HOOKS, "kpis", "training_defaults", "benchmark", "data_files", "local_time", "scene", "draw_frame",
    "picture_series", "disturbance_sets", "training_rewards", "training_signal", "sees", "link", "disturb", "uphold",
    "require_disturbance", "happen", *IMPERATIVE,
)  # fmt: skip
"""Everything that an environment may override; what most do first."""
NATIVE = "__heron_native__"
PROXY = -1
"""The proxy as sender or receiver of a message."""
F = TypeVar("F", bound=Callable[..., Any])


class Hooks:
    """All hooks, doing nothing: override what is needed. Those from `kpis` on say how it is judged and trained on.

    Physics between agents goes into `advance`, or, in the imperative style, into `run_simulation` and
    the two translations around it (dictionaries are built each substep then: slow).

    These, `sees`, `link` and `training_rewards` may be world rules, `@staticmethod @rule def advance(world, dt)`,
    compiled with the agents' rules; one that declares what it writes, `@rule(writes=Price.value)`, writes nothing
    else, and only that is clipped afterwards. Otherwise they are called for one environment at a time, or, in a class
    that says `batched = True`, once for all environments of a batch: columns are then `[B, n]`, globals `[B, 1]`. A
    hook with tables of its own, which no rule can hold, may be there as compiled code as well: `natively`.
    """

    batched: bool = False

    simulation: Any
    """The one world of this environment, envs.simulation.Simulation, which has the environment in turn."""
    possible_agents: list[str]
    _simulates: bool = False
    reset_options: tuple[str, ...] | None
    """Names in `reset(options=)` that the class understands beside "disturbances"; others are refused. None: any, as of
    a class with a reset() of its own that does not say."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Does the class use imperative physics, or a reset() of its own?"""
        super().__init_subclass__(**kwargs)
        if "reset" in vars(cls) and "reset_options" not in vars(cls):
            cls.reset_options = None
        cls._simulates = any(getattr(cls, name) is not getattr(Hooks, name) for name in IMPERATIVE)
        for name in COMPILABLE:
            require_static(cls, name)
        for name in HOOKS:
            require_parameters(cls, name, Hooks)

    @classmethod
    def world_rules(cls) -> dict[str, Callable[..., Any]]:
        """Return the world rules among `COMPILABLE`, by name."""
        return {name: getattr(cls, name) for name in COMPILABLE if rule_spec(getattr(cls, name)) is not None}

    @classmethod
    def python_hooks(cls) -> tuple[str, ...]:
        """Names of the hooks among `begin`, `advance`, `finish` and `sees` that run in Python."""
        names = (*WORLD_HOOKS, "sees")
        own = [name for name in names if getattr(cls, name) is not getattr(Hooks, name)]
        own += ["advance"] if cls._simulates and "advance" not in own else []
        own = [name for name in own if not is_native(getattr(cls, name))]
        return tuple(name for name in names if name in own and name not in cls.world_rules())

    def run_hook(self, name: str, world: World, *more: float) -> None:
        """Call `begin`, `advance` or `finish`. Raises RuleError with the user's line where a world rule fails."""
        hook = getattr(self, name)
        try:
            hook(world, *more)
        except FAILURES as error:
            if rule_spec(hook) is None:
                raise
            raise ended_in(f"{type(self).__name__}.{name}", hook, error) from error

    def called_in_python(self, compiled: bool = True) -> frozenset[str]:
        """Return the overridden `begin`, `advance`, `finish`, `sees` that run in Python.

        `compiled=False`: rules and native ones, too.
        """

        def runs(name: str) -> bool:
            hook = getattr(self, name)
            idle = getattr(hook, "__func__", hook) is getattr(Hooks, name)
            return not (idle or (compiled and is_native(hook))) or (name == "advance" and self._simulates)

        names = (*WORLD_HOOKS, "sees")
        return frozenset(filter(runs, names)) - (self.world_rules().keys() if compiled else set())

    def native_loops(self, lanes: int = 1) -> tuple[Native, ...]:
        """Return the compiled loops of hooks that are marked `natively`."""
        marked = (getattr(getattr(self, name), NATIVE, None) for name in COMPILABLE)
        return tuple(native for loops in marked if loops for native in loops(self, lanes))

    def begin(self, world: World) -> None:
        """Draw initial states and first exogenous values, at reset. `world.draw` is keyed by seed and episode."""

    def advance(self, world: World, dt: float) -> None:
        """Advance physics between agents by `dt` s: each substep, after the agents' own `advance`."""
        if self._simulates:
            self._write_back(self.simulate(self._global_state()))

    def finish(self, world: World) -> None:
        """Set the next exogenous values: once a step, after rewards and ends; `world.time` is the step's end."""

    disturbance_types: Mapping[str, DisturbanceType] = {}
    """The types of disturbances that `disturb` and `uphold` know, by name."""

    def disturb(self, world: World, disturbance: Disturbance) -> None:
        """Begin a disturbance: write its immediate effect into the truth.

        `world.time` is the last step boundary, `disturbance.t` its own time. What lasts belongs into `uphold`.
        """

    def uphold(self, world: World, disturbances: Sequence[Disturbance]) -> None:
        """Write the effects of all lasting disturbances in force, in the order of their beginning, into the truth.

        Asked when one begins or ends (then it is not among them), and after each `finish` while there are any: give
        every quantity that any of your types touches its undisturbed value first.
        """

    def require_disturbance(self, disturbance: Disturbance) -> None:
        """Raise ConfigError for an impossible disturbance, before a run begins. Extend it to check values."""
        types = {**BUILT_IN, **self.disturbance_types}
        if not isinstance(disturbance, Disturbance):
            raise ConfigError(f"{disturbance!r:.200} is no Disturbance; write Disturbance(t, type, payload)")
        if disturbance.type not in types:
            near = did_you_mean(disturbance.type, types)
            raise ConfigError(
                f"disturbance {disturbance.type!r} at t={disturbance.t!r} s: {type(self).__name__} knows the types "
                f"{list(types)}.{near}"
            )
        types[disturbance.type].require(disturbance)

    def happen(self, world: World, event: Happening) -> Iterable[Following] | None:
        """Handle a CustomEvent or an arrived CustomMessage: write the truth, return events that follow."""
        raise ConfigError(
            f"{type(event).__name__} {event.type!r}: {type(self).__name__} has no happen(world, event); write one"
        )

    def sees(self, world: World, observer: int, target: int) -> bool:
        """Does an agent see another one now, such as within a radius? (V11; without this hook: all that is visible.)

        Asked whenever the target is measured, of the truth of that instant: `world.time` is the last boundary. It reads
        alone, and can only hide what visibility shows; hidden quantities have their default. Both are places in the
        columns of their classes, `world[W].Place.x[observer]`: `@staticmethod @rule(of=W)`, or of=(Observers, Targets);
        left out, the only class of field agents. Never asked of oneself, other classes and the world's own quantities.
        """
        return True

    def link(self, world: World, sender: int, receiver: int) -> tuple[float, float]:
        """Return the effect of the state on a message (radio range, congestion): (factor on delay, chance of loss).

        Asked, in the event-driven clock, when a message departs, an observation when it is gathered; on top of what the
        schedule says of its link. A delay of 0 stays 0. Sender and receiver are ranks (`hierarchy.ids[rank]`), the
        proxy is -1. Factors are clipped to 0 to 1e6, chances to 0 to 1. A world rule, `@staticmethod @rule
        def link(world, sender, receiver)`, reads alone, at `world.time` of the last boundary; event batches need one.
        """
        return 1.0, 0.0

    def training_rewards(self, world: World) -> NDArray[np.float64] | None:
        """Return training rewards of the last step, `[possible agents]`; None: the rewards themselves.

        Asked after `finish`. In a batch `[B, possible agents]`, before lanes that have ended start anew. It may be a
        world rule, `@staticmethod @rule def training_rewards(world)`, which writes nothing: on the event clock a method
        stops all lanes at each boundary.
        """
        return None

    def training_signal(self) -> dict[str, float]:
        """Return `training_rewards` by agent, or the rewards of the last step."""
        own = self.training_rewards(self.simulation.world)
        if own is not None:
            return dict(zip(self.possible_agents, own.tolist(), strict=True))
        index = self.simulation.model.hierarchy.index
        return {agent: self.simulation.last_rewards[index[agent]] for agent in self.possible_agents}

    def kpis(self) -> dict[str, float]:
        """Return figures of the episode so far, computed from the truth."""
        return {}

    def benchmark(self) -> Benchmark:
        """Return baselines, held-out cases and optima; missing ones: random actions, no-ops, plain seeds."""
        return Benchmark()

    def training_defaults(self) -> TrainingDefaults:
        """Return the settings for training here."""
        return TrainingDefaults()

    def data_files(self) -> Mapping[str, str]:
        """Return the SHA-256 by name of each data file, so that a replay can compare them."""
        return {}

    def local_time(self, time: float) -> str:
        """Return the date and time of day `time` s after the episode began; "": there is none."""
        return ""

    def scene(self, agent: str) -> Mapping[str, Any]:
        """Return what the page of a person's seat draws: only what this agent may know, with places in its vector.

        `{"kind": "table"}`: numbers by name, a field for each part of the action. `{"kind": "graph"}`: as
        GraphColoring's; see `docs/external_agents.md`.
        """
        return {"kind": "table", "title": agent}

    def draw_frame(self, axes: Axes, world: World, observed: ObservedWorld | None, artists: Any = None) -> Any:
        """Draw the world at one moment, for `render()`, films and `heron watch`; by default every agent's quantities.

        Args:
            axes: empty at the first frame, and yours: limits, ticks, a title. The time is written beside it.
            world: the truth at that moment, with `world.time` in s. Read it alone: the environment may already be at a
                later time.
            observed: what one agent knows at that moment, nan where it knows nothing; None: of nobody. Draw it as a
                ghost beside the truth, or not.
            artists: None at the first frame: draw, and return what later frames change. Then: what you returned. Update
                it in place and return it: to draw anew takes ten times as long.

        What changes is drawn over what does not; above both, what has a zorder of 10 or more. Text that changes costs
        most.
        """
        from heron_env.pictures.quantities import draw_quantities

        return draw_quantities(self, axes, world, observed, artists)

    def picture_series(self) -> Sequence[PictureSeries]:
        """Return the panels of an episode's picture in reports; none: what the first agent sees first."""
        return ()

    def disturbance_sets(self) -> Mapping[str, Callable[[int], list[Disturbance]]]:
        """Return sets of disturbances for sweeps and traces, by name: seed -> those of one episode.

        One called "all" is what `heron sweep --preset faults` asks for.
        """
        return {}

    def simulate(self, global_state: dict[str, Any]) -> dict[str, Any]:
        """Advance imperative physics: called each substep if it or one of its three parts is overridden."""
        return self.env_state_to_global_state(self.run_simulation(self.global_state_to_env_state(global_state)))

    def global_state_to_env_state(self, global_state: dict[str, Any]) -> Any:
        """Read the input from `{"agent_states": {id: {Feature: {field: value}}}, "global": {Feature: ...}}`."""
        return global_state

    def run_simulation(self, env_state: Any) -> Any:
        """Advance the simulation by one substep."""
        return env_state

    def env_state_to_global_state(self, env_state: Any) -> dict[str, Any]:
        """Return new values in the form of `global_state`; missing ones stay as they were."""
        return env_state  # type: ignore[no-any-return]

    def _global_state(self) -> dict[str, Any]:
        truth, rows = self.simulation.truth, self.simulation.model.layout.rows
        features = {row.owner_id: row.describe(truth[row.slice])["features"] for row in rows}
        shared = features.pop(rows[-1].owner_id)
        return {"agent_states": features, "global": shared}

    def _write_back(self, updated: dict[str, Any]) -> None:
        """Physics reads the truth and writes the truth within one instant, so no update is lost."""
        rows = {row.owner_id: row for row in self.simulation.model.layout.rows}
        if not isinstance(updated, Mapping) or updated.keys() - {"agent_states", "global"}:
            shown = [*updated] if isinstance(updated, Mapping) else updated
            raise RuleError(f"simulate() returned {shown!r}; return a dictionary with 'agent_states', 'global' or both")
        owners = {**updated.get("agent_states", {}), "global": updated.get("global", {})}
        for owner_id, features in owners.items():
            if owner_id not in rows:
                raise UnknownAgent(
                    f"simulate() returned a state for {owner_id!r}; this env has {list(rows)[:12]}."
                    f"{did_you_mean(owner_id, rows)}"
                )
            by_name = {feature.feature_name: feature for feature in rows[owner_id].features}
            for name, values in features.items():
                if name not in by_name:
                    raise UnknownFeature(
                        f"simulate() returned a feature {name!r} of {owner_id!r}, which has {list(by_name)}."
                        f"{did_you_mean(name, by_name)}"
                    )
                rows[owner_id].window(self.simulation.truth, by_name[name]).set_values(**values)


OVERRIDABLE: Mapping[str, Callable[..., Any]] = {name: getattr(Hooks, name) for name in HOOKS}
"""The functions of `HOOKS`, doing nothing."""


def natively(loops: Callable[[Any, int], Iterable[Native]]) -> Callable[[F], F]:
    """Mark a hook that also is there as compiled code, which `loops(environment, lanes)` gives.

    A subclass that overrides the method has its own again, in Python.
    """

    def mark(hook: F) -> F:
        setattr(hook, NATIVE, loops)
        return hook

    return mark


def is_native(hook: Callable[..., Any]) -> bool:
    """Is this marked `natively`?"""
    return hasattr(hook, NATIVE)


def has_training_rewards(env: Hooks) -> bool:
    """Does its class say what trainers should use instead of the rewards?"""
    names = ("training_rewards", "training_signal")
    return any(getattr(type(env), name) is not getattr(Hooks, name) for name in names)


def trains_compiled(env: Hooks) -> bool:
    """Is what trainers use instead of the rewards compiled where the rules are?"""
    hook = env.training_rewards
    own = type(env).training_signal is not Hooks.training_signal
    return not own and (is_native(hook) or rule_spec(hook) is not None)


def who_sees_whom(hooks: Hooks, hierarchy: Hierarchy) -> tuple[list[int], list[int]] | None:
    """Ranks of observers and targets of the hook `sees`, each of one class; None without the hook.

    Raises ConfigError where nobody says which classes they are.
    """
    cls = type(hooks)
    if cls.sees is Hooks.sees and "sees" not in vars(hooks):
        return None
    spec, kinds = rule_spec(hooks.sees), list(dict.fromkeys(type(agent) for agent in hierarchy.agents))
    classes = () if spec is None else spec.of
    if not classes:
        classes = tuple(kind for kind in kinds if issubclass(kind, FieldAgent))
        if len(classes) != 1:
            raise ConfigError(
                f"{cls.__name__}.sees: which agents see each other? The classes of field agents are "
                f"{[kind.__name__ for kind in classes]}; write @staticmethod @rule(of=CLASS) def sees(world, observer, "
                "target), or of=(OBSERVERS, TARGETS)"
            )
    named = [kinds[cohort_of(kinds, each)] for each in classes]
    ranks = [[r for r, agent in enumerate(hierarchy.agents) if type(agent) is kind] for kind in named]
    return ranks[0], ranks[-1]


def has_link_rule(hooks: Hooks) -> bool:
    """Does the environment have the hook `link`?"""
    return type(hooks).link is not Hooks.link or "link" in vars(hooks)


def links_compiled(hooks: Hooks) -> bool:
    """Is the hook `link` a world rule?"""
    return rule_spec(type(hooks).link) is not None and "link" not in vars(hooks)


def require_numbers(layout: Layout, row: NDArray[np.float64], where: str, time: float) -> None:
    """Raise RuleError where quantities of a truth `[columns]` are nan; `where`: after what, `time`: of it, s."""
    if bad := layout.bad_columns(row):
        raise RuleError(f"{where} at t={time} s these quantities are nan: {', '.join(bad[:5])}; check the physics")


def require_static(cls: type, name: str) -> None:
    """Raise RuleError for a world rule that is a method, or has other parameters."""
    if rule_spec(getattr(cls, name)) is None:
        return
    where = f"{cls.__name__}.{name}"
    called = {
        "advance": "(world, dt)", "sees": "(world, observer, target)", "link": "(world, sender, receiver)",
    }.get(name, "(world)")  # fmt: skip
    if (of := cast(RuleSpec, rule_spec(getattr(cls, name))).of) and name != "sees":
        raise RuleError(f"{where}: rule(of={of!r}) is for the hook sees(world, observer, target) alone; leave it out")
    if not isinstance(inspect.getattr_static(cls, name), staticmethod):
        raise RuleError(f"{where} is a world rule and a method; write @staticmethod @rule def {name}{called}")
    if len(inspect.signature(getattr(cls, name)).parameters) != called.count(",") + 1:
        raise RuleError(f"{where} is a world rule of other parameters; write def {name}{called}")


def require_parameters(cls: type, name: str, base: type) -> None:
    """Raise RuleError for a hook that can't be called like that of `base`."""
    hook, parameters = inspect.getattr_static(cls, name), inspect.signature(getattr(base, name)).parameters
    if not callable(getattr(cls, name)):
        raise RuleError(f"{cls.__name__}.{name}={hook!r}: is no function; write def {name}({', '.join(parameters)})")
    try:
        signature = inspect.signature(getattr(cls, name))
    except (TypeError, ValueError):  # written in C, it does not tell
        return
    values = [*parameters][1:] if isinstance(hook, staticmethod | classmethod) else [*parameters]
    names = [*signature.parameters]
    try:
        signature.bind(*values)
        if names != values and sorted(names) == sorted(values):
            raise TypeError("they are given by position, in another order")
    except TypeError as error:
        raise RuleError(
            f"{cls.__name__}.{name}({', '.join(names)}): {error}; write def {name}({', '.join(parameters)})"
        ) from error


def require_options(options: object, env: Hooks) -> None:
    """Raise ConfigError unless these are options of reset(): None, or a mapping of names that the class understands."""
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError(f"reset(options={options!r}): must be a mapping {{name: value}}, or None")
    if not options or env.reset_options is None:
        return
    names = (*env.reset_options, "disturbances")
    for name in options:
        if name not in names and name != "options":  # PettingZoo's own API tests pass {"options": 1} to anybody
            raise ConfigError(
                f"reset(options={{{name!r:.60}: ...}}): {type(env).__name__} understands "
                f"{', '.join(map(repr, names))}; leave it out, or name it in reset_options of the class whose reset() "
                f"reads it.{did_you_mean(name, names)}"
            )
