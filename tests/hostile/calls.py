"""Hostile calls: every public entry, each with good values of which some are replaced by bad ones."""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from values import value
from verdict import Answer, asked

import heron_env
from heron_env import (
    Continuous,
    CoordinatorAgent,
    CustomEvent,
    Discrete,
    Disturbance,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    NoiseKey,
    ObservabilityConfig,
    ObservabilityEntry,
    ScheduleConfig,
    SystemAgent,
    TerminationConfig,
    Vector,
    VectorDecomposition,
    make,
    quantity,
    rule,
)

GRID = "heron/BatteryGrid-v0"
SMALL: dict[str, Any] = {"num_batteries": 2, "max_steps": 3}
Entry = Callable[[np.random.Generator], Callable[[], Any]]
OTHERS = {"num_envs", "max_steps", "max_cycles", "threads", "physics_substeps", "size", "ncats", "shape"}
"""What a great number fills the memory with, or computes for ever: asked with small ones."""


class Charge(FeatureProvider):
    """Energy."""

    visibility = ("public",)
    soc: float = quantity(default=0.5, low=0.0, high=1.0)


class Cell(FieldAgent):
    features = (Charge,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Charge.soc)
    def apply_action(charge: Charge, action: Vector) -> float:
        return charge.soc + 0.1 * action[0]

    @staticmethod
    @rule
    def compute_local_reward(charge: Charge) -> float:
        return charge.soc


class Switch(FieldAgent):
    """One choice of three, of which a mask forbids what it is told to."""

    features = (Charge,)
    action = Discrete(3)
    forbids: Any = None

    def action_mask(self, local_state: Any) -> Any:
        return (1, 1, 1) if self.forbids is None else self.forbids


class Block(CoordinatorAgent):
    protocol = VectorDecomposition()


def tree() -> SystemAgent:
    return SystemAgent("system_agent", Block("zone", Cell("cell_1"), Cell("cell_2")))


def world(**options: Any) -> HeronEnv:
    return HeronEnv(tree(), **{"max_steps": 3, **options})


POLICIES: dict[str, Any] = {"*": lambda vector: np.zeros(2)}
GRID_POLICIES: dict[str, Any] = {"*": lambda vector: np.zeros(1)}
GOOD: dict[str, Callable[[], Any]] = {
    "system": tree, "agent_id": lambda: "cell_9", "agent": lambda: "zone", "policies": lambda: POLICIES,
    "policy": lambda: "random", "env": lambda: GRID, "id": lambda: GRID, "env_id": lambda: GRID,
    "num_envs": lambda: 2, "low": lambda: -1.0, "high": lambda: 1.0, "n": lambda: 3, "ncats": lambda: [2, 3],
    "seed": lambda: 0, "t": lambda: 1.0, "type": lambda: "agent_crash", "payload": lambda: {"agent": "zone"},
    "doc": lambda: "It happens.", "watch": lambda: "cell_1.Charge.soc", "above": lambda: 0.9, "rate": lambda: 0.1,
    "t_end": lambda: 3.0, "make": lambda: lambda t, draw: Disturbance(t, "x"), "name": lambda: "name",
    "value": lambda: 1.0, "noise_factor": lambda: 0.1, "seed_components": lambda: NoiseKey("a", "b", "c"),
    "owner_id": lambda: "a", "owner_level": lambda: 1, "features": lambda: (Charge(),), "entries": lambda: (),
    "observer": lambda: "a", "target": lambda: "b", "level": lambda: "full", "options": dict,
    "schedule": ScheduleConfig, "termination": TerminationConfig,
    "observability": lambda: ObservabilityConfig(matrix=[ObservabilityEntry(observer="*", target="*", level="full")]),
    "actions": lambda: {"zone": [0.0, 0.0]}, "values": lambda: [1.0],
    "agent_vars": lambda: {"x": {"type": "float"}}, "global_vars": lambda: {"x": {"type": "float"}},
    "entry_point": lambda: "nowhere:nothing", "config": lambda: None, "path": lambda: "nowhere.yaml",
    "run_dir": lambda: "nowhere", "events": lambda: [CustomEvent(1.0, "x")], "autoreset": lambda: "same_step",
    "disturbances": lambda: [Disturbance(1.0, "agent_crash", {"agent": "zone", "meanwhile": "hold"}, duration=1.0)],
    "source": lambda: Charge.soc, "into": lambda: Charge.soc, "edges": lambda: "ring", "weights": lambda: [1.0, 1.0],
    "conditions": list, "cases": lambda: 1, "trace": lambda: "nowhere", "total_steps": lambda: 0,
}  # fmt: skip
INTERNAL = {
    "World", "MessageBroker", "VisibilityMatrix", "Children", "EpisodeResult", "Parent", "EventScheduler", "rule",
}  # fmt: skip
"""Public as types, or as a decorator; the library makes them from its own tables."""


def is_left_to_others(name: str, bad: Any) -> bool:
    """What another test asks for, or what would only fill the memory."""
    if name == "observed":
        return True
    great = isinstance(bad, int | float | np.number) and not isinstance(bad, bool) and abs(bad) > 50  # type: ignore[arg-type]
    return great and name in OTHERS


def arguments(
    function: Callable[..., Any], draw: np.random.Generator, skip: int = 0
) -> tuple[list[Any], dict[str, Any]]:
    """Values for a call: good ones where they are known, of which about one is replaced by a bad one."""
    given: list[Any] = []
    named: dict[str, Any] = {}
    parameters = list(inspect.signature(function).parameters.values())[skip:]
    spoilt = int(draw.integers(len(parameters))) if parameters else -1
    for number, p in enumerate(parameters):
        bad = number == spoilt or draw.random() < 0.15
        if not bad and (p.default is not p.empty or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)):
            continue
        known = GOOD.get(p.name, lambda: value(draw))
        one = value(draw) if bad else known()
        one = known() if bad and is_left_to_others(p.name, one) else one
        if p.kind is p.VAR_POSITIONAL:
            given += [one]
        elif p.kind is p.VAR_KEYWORD:
            named |= {str(k): v for k, v in one.items()} if isinstance(one, dict) else {"unknown": one}
        elif p.kind is p.KEYWORD_ONLY:
            named[p.name] = one
        else:
            given.append(one)
    return given, named


def entry(function: Callable[..., Any]) -> Entry:
    """A call of a function or class."""

    def made(draw: np.random.Generator) -> Callable[[], Any]:
        given, named = arguments(function, draw)
        return lambda: function(*given, **named)

    return made


def method(build: Callable[[], Any], name: str) -> Entry:
    """A call of a method, on an object made for it alone."""

    def made(draw: np.random.Generator) -> Callable[[], Any]:
        bound = getattr(build(), name)
        given, named = arguments(bound, draw)
        return lambda: bound(*given, **named)

    return made


def started() -> HeronEnv:
    env = world()
    env.reset(seed=0)
    return env


def switched(forbids: Any = None) -> HeronEnv:
    """One switch, whose mask answers so, in mid-episode."""
    kind = type("Told", (Switch,), {"forbids": forbids})
    env = HeronEnv(SystemAgent("system_agent", kind("cell_1")), max_steps=3)
    env.reset(seed=0)
    return env


def lights() -> HeronEnv:
    """Signals with rules for masks."""
    env = make("heron/TrafficCorridor-v0", max_steps=3)
    env.reset(seed=0)
    return env


def meddling(draw: np.random.Generator) -> Callable[[], Any]:
    """A policy that moves the environment it decides in: a run says so, or goes on as if nothing had been."""
    name, clock = ("reset", "step", "set_state")[draw.integers(3)], CLOCKS[draw.integers(2)]

    def run() -> Any:
        env = world()

        def meddles(vector: Any) -> Any:
            bound = getattr(env, name)
            given, named = arguments(bound, draw)
            bound(*given, **named)
            return np.zeros(2)

        return getattr(env, clock)({"*": meddles}, seed=0)

    return run


def spoilt_state(draw: np.random.Generator) -> Callable[[], Any]:
    """What get_state() gave, without some of it."""
    env = started()
    kept = {name: given for name, given in env.get_state().items() if draw.random() < 0.9}
    return lambda: env.set_state(kept)


def forbidding(draw: np.random.Generator) -> Callable[[], Any]:
    """A mask that is none."""
    bad = value(draw)
    return lambda: switched(bad).step({"cell_1": 1})


def _adapters() -> dict[str, Entry]:
    from heron_env.adapters.gymnasium import JointEnv, joint_vector, joint_view
    from heron_env.lab import Condition, Sweep, along, read_sweep, record_episode
    from heron_env.lab.schedules import with_settings
    from heron_env.lab.sweep.conditions import grid, parsed_axis
    from heron_env.lab.sweep.presets import preset
    from heron_env.lab.traces.replaying import replay
    from heron_env.trust import trusting

    def sweep(**options: Any) -> Any:
        return Sweep.of(
            GRID, **{"policies": {"random": "random"}, "conditions": [], "cases": 1, "options": SMALL, **options}
        )

    def recorded(
        policy: Any, seed: Any = 0, t_end: Any = None, wait: Any = None, schedule: Any = None, options: Any = None,
        disturbances: Any = (), monitors: Any = (), events: Any = (),
    ) -> Any:  # fmt: skip
        return record_episode(
            GRID, policy, seed=seed, t_end=t_end, wait=wait, schedule=schedule,
            options=SMALL if options is None else options,
            disturbances=disturbances, monitors=monitors, events=events,
        )  # fmt: skip

    def batch() -> Any:
        found = heron_env.BatchEnv(GRID, 2, **SMALL)
        found.reset(seed=0)
        return found

    def joint() -> Any:
        found = JointEnv(make(GRID, **SMALL))
        found.reset(seed=0)
        return found

    def vector() -> Any:
        found = heron_env.HeronVectorEnv(GRID, 2, **SMALL)
        found.reset(seed=0)
        return found

    found = {
        "JointEnv": entry(JointEnv),
        "joint_view": entry(joint_view),
        "joint_vector": entry(joint_vector),
        "JointEnv.reset": method(joint, "reset"),
        "JointEnv.step": method(joint, "step"),
        "BatchEnv.reset": method(batch, "reset"),
        "BatchEnv.step": method(batch, "step"),
        "HeronVectorEnv.reset": method(vector, "reset"),
        "HeronVectorEnv.step": method(vector, "step"),
        "Condition": entry(Condition),
        "preset": entry(preset),
        "read_sweep": entry(read_sweep),
        "replay": entry(replay),
        "Sweep.of": entry(
            lambda policies, conditions, cases=1, sync_only=(), options=None, trust=(): sweep(
                **{
                    "policies": policies if policies is not POLICIES else {"random": "random"},
                    "conditions": conditions,
                    "cases": cases,
                    "sync_only": sync_only,
                    "options": options or SMALL,
                    "trust": trust,
                }
            )
        ),
        "Sweep.run": lambda draw: (lambda bad: lambda: sweep().run(processes=bad))(small(value(draw))),
        "record_episode": entry(recorded),
        "along": entry(
            lambda act_delay=(0.0,), loss=(0.0,), tick_ratio=(1.0,): along(
                act_delay=act_delay, loss=loss, tick_ratio=tick_ratio
            )
        ),
        "grid": entry(
            lambda msg_delay=(0.0,), disturbances=(), noise=(0.0,): grid(
                msg_delay=msg_delay, noise=noise, disturbances=disturbances
            )
        ),
        "parsed_axis": entry(lambda text: parsed_axis(str(text))),
        "with_settings": lambda draw: (lambda bad: lambda: with_settings(None, [f"msg_delay={bad!s}"[:200]]))(
            value(draw)
        ),
        "trusting": lambda draw: (lambda bad: lambda: trusting(bad).__enter__())(value(draw)),
    }
    try:
        from heron_env.adapters import HeronVecEnv
        from heron_env.lab import train
    except ImportError:
        return found

    def trained(
        env_id: Any, run_dir: Any, total_steps: Any, seed: Any = 0, env_options: Any = None, residual: Any = "default",
        critic: Any = "local", start_from: Any = None, hyperparameters: Any = None,
    ) -> Any:  # fmt: skip
        """Never with a number of steps that is one: it would train."""
        return train(
            env_id, run_dir, total_steps=total_steps if isinstance(total_steps, str) else 0, seed=seed,
            env_options=env_options, residual=residual, critic=critic, start_from=start_from,
            hyperparameters=hyperparameters,
        )  # fmt: skip

    def slots() -> Any:
        made = HeronVecEnv(lambda: make(GRID, **SMALL), 2, group="battery")
        made.reset()
        return made

    found |= {"HeronVecEnv": entry(HeronVecEnv), "HeronVecEnv.step": method(slots, "step")}
    found["train"] = entry(trained)
    return found


def _shown() -> dict[str, Entry]:
    """What results show of themselves, and a run that is carried on."""

    @cache
    def result() -> Any:
        return world().run_synchronous(POLICIES, seed=0)

    @cache
    def gap() -> Any:
        from heron_env import Sweep

        return Sweep.of(GRID, {"random": "random"}, [], cases=1, options=SMALL).run(processes=1)

    def course() -> Any:
        return world().start_event_driven(POLICIES, seed=0)

    @cache
    def matrix() -> Any:
        return started().visibility_matrix()

    def drawn(build: Callable[[], Any]) -> Entry:
        def made(draw: np.random.Generator) -> Callable[[], Any]:
            given, named = arguments(build().plot, draw)

            def plot() -> None:
                from matplotlib import pyplot

                build().plot(*given, **named)
                pyplot.close("all")

            return plot

        return made

    return {
        "EpisodeResult.plot": drawn(result),
        "EpisodeResult._repr_html_": method(result, "_repr_html_"),
        "EpisodeResult.same_course": method(result, "same_course"),
        "SweepResult.plot": drawn(gap),
        "SweepResult._repr_html_": method(gap, "_repr_html_"),
        "visibility.plot": drawn(matrix),
        "visibility._repr_html_": method(matrix, "_repr_html_"),
        "env._repr_html_": method(started, "_repr_html_"),
        "EventRun.until": method(course, "until"),
        "EventRun.result": method(course, "result"),
        "check_env, masks": entry(lambda env, steps=3, seed=0, options=None, timeout=1.0: heron_env.check_env(
            env, steps=steps, seed=seed, options=options, timeout=timeout, only=["masks"])),
    }  # fmt: skip


def small(bad: Any) -> Any:
    """Not so many that processes are started."""
    return 1 if isinstance(bad, int | float | np.number) and bad > 1 else bad


CLOCKS = ("run_synchronous", "run_event_driven")
METHODS = (
    "reset", "step", "action_space", "observation_space", "observation_names", "observation_units", "observed_state",
    "timings_of", "set_state", "advance_step", "start_event_driven", "run_event_driven", "run_synchronous",
    "require_disturbance",
)  # fmt: skip
WORDS = (
    "heron/BatteryGrid-v0", "heron/EnergyManagement-v1", "heron/TrafficCorridor-v0", "x", "", "nowhere:nothing",
    "os:sep", ".", "/", "/dev/null", "-1", "0", "1e400", "nan", "1" + "0" * 400, "max_steps=3", "dt=nan",
    "dt=1" + "0" * 400, "dt=[]", "num_batteries=0", "num_batteries=1000000", "=", "a=b", "act_delay=0,1",
    "act_delay=x", "loss=2", "msg_delay=0.5", "field.tick_interval=0", "0,1e-9", "1,0", "random", "quick",
    "obs=1,act=0-2", "\0", "\ud800", "$x^$", "[a]", "x" * 300, "<script>", "[red]", "g15", "nowhere.yaml",
    "nowhere.jsonl", "http://127.0.0.1:9/", "policy.onnx", "é", "--", "-h", "self-consumption",
)  # fmt: skip
OPTIONS = {
    "envs": (),
    "describe": ("-o", "--svg"),
    "check": ("--env", "--only", "--steps", "--seed", "-o"),
    "sweep": ("--axis", "--preset", "--cases", "--split", "--seed", "-o", "--trust"),
    "report": ("--trust",),
    "trace": ("--policy", "--seed", "--until", "--delay", "--schedule", "--disturbances", "--window", "-o"),
    "replay": ("--policy", "--trust"),
    "train": (
        "--seed",
        "--time-limit",
        "--residual",
        "--critic",
        "--start-from",
        "-o",
    ),
    "export": ("--onnx", "--trust"),
    "run": ("--policy", "--seed", "--until", "--speed", "--schedule", "-o"),
    "dcop solve": ("--algo", "--seed", "--cycles", "--seconds"),
    "dcop compare": ("--algo", "--seeds", "--cycles", "--seconds", "--figure"),
}


def commands(draw: np.random.Generator) -> Callable[[], Any]:
    """A command line, in this process, in a folder of its own."""
    name = list(OPTIONS)[draw.integers(len(OPTIONS))]

    def word() -> str:
        return WORDS[draw.integers(len(WORDS))]

    line = [*name.split(), *(word() for _ in range(draw.integers(3)))]
    for option in OPTIONS[name]:
        if draw.random() < 0.4:
            line += [option, word()]
    line += {"train": ["--steps", "0"], "check": ["--timeout", "0"]}.get(name, [])
    line += ["--processes", "1", "-o", "max_steps=3"] if name == "sweep" else []

    def run() -> None:
        import os
        import tempfile

        from typer.testing import CliRunner

        from heron_env.cli import app

        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                done = CliRunner().invoke(app, line)
            finally:
                os.chdir(before)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code in (0, 1, 2), (line, done.output)

    return run


def entries() -> dict[str, Entry]:
    """All of them, by name."""
    found: dict[str, Entry] = {}
    for name in heron_env.__all__:
        public = getattr(heron_env, name)
        if callable(public) and name not in INTERNAL and not name.startswith("_"):
            found[name] = entry(public)
    found |= {f"env.{name}": method(started, name) for name in METHODS}
    found |= _adapters() | _shown()
    found |= {"env.set_state, spoilt": spoilt_state, "action_mask": forbidding, "a policy that meddles": meddling}
    found |= {"masked step": method(switched, "step"), "lights.step": method(lights, "step")}
    found |= {"lights.run_synchronous": method(lights, "run_synchronous")}
    found |= {f"heron {number}": commands for number in range(8)}
    import beyond
    import served

    return found | beyond.entries() | served.entries()


def called(number: int, seed: int, known: dict[str, Entry]) -> tuple[str, Answer]:
    """The `number`-th call: what was called, and what came of it."""
    draw = np.random.default_rng((seed, number))
    names = list(known)
    name = names[number % len(names)]
    made = asked(lambda: known[name](draw))
    if made.kind != "works":
        return name, made
    return name, asked(made.value)


def both_clocks(number: int, seed: int) -> tuple[str, Answer]:
    """The same hostile inputs to both clocks: they must answer alike, in words and in what comes out."""
    draw = np.random.default_rng((seed, number, 1))
    given: dict[str, Any] = {"policies": POLICIES, "seed": 0}
    for name in ("policies", "seed", "record", "disturbances"):
        if draw.random() < 0.4:
            given[name] = value(draw) if draw.random() < 0.6 else hostile(name, draw)
    answers = [
        asked(lambda clock=clock: getattr(world(), clock)(**given)) for clock in ("run_synchronous", "run_event_driven")
    ]
    sync, event = answers
    finding = next((answer for answer in answers if answer.is_finding), None)
    if finding is not None:
        return "both clocks", finding
    alike = sync.kind == event.kind and words(sync.told) == words(event.told)
    if alike and sync.kind == "works":
        alike = sync.value.same_course(event.value)
    if not alike:
        return "both clocks", Answer(
            "raw", f"{number}: sync {sync.kind} {sync.told[:90]!r}, event {event.kind} {event.told[:90]!r}"
        )
    return "both clocks", sync


def hostile(name: str, draw: np.random.Generator) -> Any:
    """Bad values of the right shape."""
    bad = value(draw)
    if name == "policies":
        return {"zone": lambda vector: bad}
    if name == "disturbances":
        try:
            return [Disturbance(bad, "agent_crash", {"agent": "zone", "meanwhile": "hold"}, duration=1.0)]
        except Exception:  # noqa: BLE001  the same call is asked for elsewhere
            return [bad]
    return [bad]


def words(told: str) -> str:
    """Without the name of the clock, and times that only one of them has."""
    return told.replace("run_event_driven", "RUN").replace("run_synchronous", "RUN")
