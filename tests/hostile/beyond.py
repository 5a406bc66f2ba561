"""Hostile calls beyond the environment: batches, adapters, worlds, graphs, grids, endpoints, the lab, the wall clock.

Entries as in `calls.py`. What needs a library that isn't installed is left out, and `missing` names it.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from calls import GOOD, GRID, GRID_POLICIES, SMALL, Entry, arguments, entry, method, small, started
from values import value

import heron_env
from heron_env import BatchEnv, ScheduleConfig, make

URL = "http://127.0.0.1:9/respond"
WORLDS: dict[str, dict[str, Any]] = {
    "heron/BatteryGrid-v0": {},
    "heron/EnergyManagement-v1": {"num_batteries": 2, "dt": 900.0, "physics_substeps": 1},
    "heron/Economy-v0": {},
    "heron/Spread-v0": {},
    "heron/Tag-v0": {},
    "heron/Adversary-v0": {},
    "heron/Push-v0": {},
    "heron/Reference-v0": {},
    "heron/SpeakerListener-v0": {},
    "heron/Crypto-v0": {},
    "heron/WorldComm-v0": {},
    "heron/TrafficCorridor-v0": {},
    "heron/GraphColoring-v0": {},
}
OF_ALL = ("max_steps", "schedule", "observability", "observe_age", "pad", "render_mode")
AMOUNTS = {"num_agents", "num_intersections", "num_batteries", "zone_size", "passive_per_zone", "physics_substeps"}
AMOUNTS |= {"nodes", "rows", "columns", "clusters", "iterations", "cycles", "episodes", "rounds", "chords", "colours"}
AMOUNTS |= {"N", "num_good", "num_adversaries", "num_obstacles", "num_food", "num_forests"}
"""More of these takes its time, and is meant to: bad ones are asked for, great ones are not."""
Build = Callable[[], Any]


def missing() -> list[str]:
    """Adapters whose library is not here."""
    named = {"torchrl": "torchrl", "benchmarl": "benchmarl", "minari": "minari", "sb3": "stable_baselines3"}
    return sorted(name for name, library in {**named, "rllib": "ray"}.items() if not _there(library))


def _there(library: str) -> bool:
    try:
        importlib.import_module(library)
    except ImportError:
        return False
    return True


def methods(label: str, build: Build, *names: str) -> dict[str, Entry]:
    """A call of each method, on an object made for it alone."""
    return {f"{label}.{name}": method(build, name) for name in names}


def public(module: str, *names: str) -> dict[str, Entry]:
    """A call of each function or class of a module."""
    home = importlib.import_module(module)
    return {f"{module.rpartition('.')[2]}.{name}": entry(getattr(home, name)) for name in names}


def entries() -> dict[str, Entry]:
    """All of them, by name."""
    found = {f"make {env_id}": world(env_id) for env_id in WORLDS}
    for part in (batches, slots, torch, parts, graphs, grids, endpoints, lab, on_the_wall):
        found |= part()
    return found


def world(env_id: str) -> Entry:
    """A registered environment with one of its options spoilt, its first episode and its state set back."""
    good = {"max_steps": 3, **WORLDS[env_id]}

    def made(draw: np.random.Generator) -> Build:
        names = [*inspect.signature(heron_env.registry.spec(env_id).factory()).parameters, *OF_ALL]
        spoilt = {names[draw.integers(len(names))]: value(draw) for _ in range(draw.integers(1, 3))}
        options = {**good, **{name: _some(name, bad) for name, bad in spoilt.items()}}
        seed = value(draw) if draw.random() < 0.2 else 0
        return lambda: make(env_id, **options).reset(seed=seed)

    return made


def _some(name: str, bad: Any) -> Any:
    return small(bad) if name in AMOUNTS else bad


def batches() -> dict[str, Entry]:
    """Batches of the event clock: compiled, whatever HERON_COMPILE says."""

    def batch() -> Any:
        return BatchEnv(GRID, 2, clock="event", compile=True, schedule=ScheduleConfig(act_delay=0.2), **SMALL)

    def begun() -> Any:
        made = batch()
        made.begin()
        return made

    def built(
        num_envs: Any = 2, seed: Any = 0, schedule: Any = None, threads: Any = 1, autoreset: Any = "same_step",
        gamma: Any = 1.0, with_state: Any = False, record: Any = (), max_steps: Any = 3,
    ) -> Any:  # fmt: skip
        made = BatchEnv(
            GRID, num_envs, clock="event", compile=True, seed=seed, schedule=schedule, threads=threads,
            autoreset=autoreset, gamma=gamma, with_state=with_state, record=record, max_steps=max_steps,
        )  # fmt: skip
        return made.begin()

    def played(draw: np.random.Generator) -> Build:
        """Right and wrong answers in turn: a wrong one changes nothing."""
        bad = value(draw)

        def play() -> None:
            lanes, twin = begun(), begun()
            for _ in range(3):
                try:
                    lanes.answer(bad)
                except heron_env.errors.HeronError:
                    pass
                else:
                    return
                rows, others = (b.answer({g: np.zeros(_shape(b, g)) for g in b.groups}) for b in (lanes, twin))
                for group in lanes.groups:
                    assert np.array_equal(rows[group].observations, others[group].observations), "a bad answer moved it"

        return play

    batch().begin()  # compiles, outside every limit of time
    names = ("reset", "answer", "results", "result", "step", "state", "infos", "training_rewards", "lane", "alive")
    return {
        "event batch": entry(built),
        **methods("event batch", begun, *names),
        "event batch, not begun": method(batch, "answer"),
        "event batch, in turn": played,
        **methods("BatchEnv", _batch, "alive", "lane", "training_rewards", "state"),
    }


def _shape(batch: Any, group: str) -> tuple[int, int]:
    rows = batch._rows
    return len(rows[group].observations), 1


def _batch() -> Any:
    made = BatchEnv(GRID, 2, **SMALL)
    made.reset(seed=0)
    return made


def slots() -> dict[str, Entry]:
    """Stable-Baselines3."""
    if not _there("stable_baselines3"):
        return {}
    from heron_env.adapters import HeronVecEnv

    def slots() -> Any:
        made = HeronVecEnv(GRID, 2, group="battery", **SMALL)
        made.reset()
        return made

    def course(draw: np.random.Generator) -> Build:
        seed, options, action = value(draw), value(draw), value(draw)
        spoilt = draw.integers(3)

        def run() -> None:
            venv = slots()
            venv.seed(seed if spoilt == 0 else 3)
            venv.set_options(options if spoilt == 1 else None)
            venv.reset()
            venv.step(action if spoilt == 2 else np.zeros((venv.num_envs, 1)))

        return run

    names = ("seed", "set_options", "step_async", "get_attr", "set_attr", "env_method", "env_is_wrapped", "has_attr")
    return {
        **methods("HeronVecEnv", slots, *names, "step_wait", "action_masks", "render", "close"),
        "HeronVecEnv, a course": course,
    }


def torch() -> dict[str, Entry]:
    """TorchRL and BenchMARL."""
    if not _there("torchrl"):
        return {}
    from heron_env.adapters import HeronTorchEnv

    def built(num_envs: Any = 2, groups: Any = None, use_mask: Any = False, with_state: Any = False,
              use_training_signal: Any = True, seed: Any = 0, others: Any = None) -> Any:  # fmt: skip
        return HeronTorchEnv(
            GRID, num_envs, groups=groups, use_mask=use_mask, with_state=with_state, seed=seed, others=others,
            use_training_signal=use_training_signal, **SMALL,
        ).reset()  # fmt: skip

    def tensors() -> Any:
        return HeronTorchEnv(GRID, 2, **SMALL)

    found = {"HeronTorchEnv": entry(built), **methods("HeronTorchEnv", tensors, "set_seed", "reset", "step", "rollout")}
    if _there("benchmarl"):
        from heron_env.adapters import HeronTask

        found["HeronTask"] = entry(HeronTask)
    return found


def parts() -> dict[str, Entry]:
    """Proxies, actions, and what is recorded of decisions."""
    from heron_env.adapters import record_decisions

    def decided(policies: Any = GRID_POLICIES, seed: Any = 0, schedule: Any = None) -> Any:
        return record_decisions(make(GRID, **SMALL), policies, seed=seed, schedule=schedule)

    found = methods(
        "proxy", lambda: started().proxy, "get_observation", "get_local_state", "get_global_states", "set_local_state",
        "set_global_state", "register_agent",
    )  # fmt: skip
    found |= methods("Action", lambda: heron_env.Action(heron_env.Continuous(-1.0, 1.0)), "set_specs", "set_values")
    found["record_decisions"] = entry(decided)
    if _there("minari"):
        from heron_env.adapters import write_minari

        found["write_minari"] = entry(write_minari)
    return found


def graphs() -> dict[str, Entry]:
    """Graph colouring: problems, solvers, the cluster agent."""
    from heron_env import dcop
    from heron_env.dcop.cluster import ClusterAgent

    @cache
    def problem() -> Any:
        return dcop.g15()

    def part() -> Any:
        return problem().part(next(iter(problem().clusters)))

    def solved(algo: Any = "dsa", seed: Any = 0, cycles: Any = 3, seconds: Any = None, hold: Any = None) -> Any:
        return dcop.solve(problem(), algo, seed=seed, cycles=_some("cycles", cycles), seconds=seconds, hold=hold)

    def agent(draw: np.random.Generator) -> Build:
        given, named = arguments(ClusterAgent, draw, skip=2)
        return lambda: ClusterAgent(problem(), next(iter(problem().clusters)), *given, **named).step()

    def seated() -> Any:
        return ClusterAgent(part())

    def best(told: Any = None, forced: Any = None, bans: Any = None) -> Any:
        return dcop.best_response(part(), {} if told is None else told, forced, bans)

    def counter(kept: Any = (), told: Any = None, forced: Any = None, bans: Any = None) -> Any:
        return dcop.counterfactuals(part(), kept, {} if told is None else told, forced, bans)

    found = public("heron_env.dcop", "Problem", "g15", "problem_of", "read_problem", "write_problem")
    for name in ("erdos_renyi", "grid", "planted", "ring_of_clusters"):
        found[f"dcop.{name}"] = modest(getattr(dcop, name))
    return found | {
        "dcop.solve": entry(solved),
        "dcop.best_response": entry(best),
        "dcop.counterfactuals": entry(counter),
        "ClusterAgent": agent,
        **methods("ClusterAgent", seated, "receive", "utility_options"),
        **methods("Problem", problem, "part", "conflicts", "cost"),
    }


def modest(function: Callable[..., Any]) -> Entry:
    """A call whose numbers are never great where a great one takes its time."""

    def made(draw: np.random.Generator) -> Build:
        given, named = arguments(function, draw)
        given = [small(one) for one in given]
        return lambda: function(*given, **{name: _some(name, one) for name, one in named.items()})

    return made


def grids() -> dict[str, Entry]:
    """Power flow."""
    from heron_env.power_flow import Feeder, Line, PowerFlow

    def flow() -> Any:
        return PowerFlow(Feeder(("busbar", "a"), (Line("busbar", "a", 0.1, 0.1),), 0.4))

    def built(draw: np.random.Generator) -> Build:
        given, named = arguments(Feeder, draw)
        threads, tolerance = (value(draw) if draw.random() < 0.3 else good for good in (1, 1e-8))
        return lambda: PowerFlow(Feeder(*given, **named), threads=small(threads), tolerance=tolerance)

    found = public("heron_env.power_flow", "Feeder", "Line", "Fixed", "Transformer")
    return found | {"PowerFlow": built, "PowerFlow.solve": method(flow, "solve")}


def endpoints() -> dict[str, Entry]:
    """External agents, none of which answers."""
    from heron_env import injection

    def served(policy: Any = "random", host: Any = "127.0.0.1", seed: Any = 0, token_env: Any = None) -> Any:
        good = make(GRID, **SMALL).benchmark().baselines(0)["random"]
        injection.serve_policy(
            good if policy == "random" else policy, make(GRID, **SMALL), host=host, seed=seed, token_env=token_env
        ).close()

    def external(draw: np.random.Generator) -> Build:
        given, named = arguments(injection.ExternalPolicy, draw)
        return lambda: injection.ExternalPolicy(*given, **named)

    names = ("AgentInjectionConfig", "ConcurrencyConfig", "Endpoint", "Fixture", "Latency", "Persona", "Recorded")
    found = public("heron_env.injection", *names, "Recording", "ScriptedPersona", "load_agents", "policies")
    return found | {
        "serve_policy": entry(served),
        "ExternalPolicy": external,
        "conversation": modest(injection.conversation),
    }


def lab() -> dict[str, Entry]:
    """What is made of results."""
    from heron_env import lab
    from heron_env.lab.sweep import executors

    @cache
    def gap() -> Any:
        return lab.Sweep.of(GRID, {"random": "random"}, [], cases=1, options=SMALL).run(processes=1)

    def on_ray(ray: Any) -> Any:
        return lab.Sweep.of(GRID, {"random": "random"}, [], cases=1, options=SMALL).run(ray=ray)

    def figure(cause: Any = "msg_delay", policies: Any = None) -> Any:
        return gap().plot(cause, policies)

    def reported(title: Any = None, facts: Any = None) -> Any:
        return lab.report_of(lab.Sources(sweeps=[gap()]), title=title, facts=facts)

    def described(options: Any = None) -> Any:
        return lab.describe_environment(GRID, SMALL if options is None else options)

    found = public("heron_env.lab", "Intervals", "load_policy", "export_onnx", "TrainedRun")
    return found | {
        "one_at_a_time": entry(lab.one_at_a_time),
        "SweepResult.plot": entry(figure),
        "report_of": entry(reported),
        "describe_environment": entry(described),
        "RunFolder.open": entry(lab.RunFolder.open),
        "Sweep.run, ray": entry(on_ray),
        "Cluster": entry(executors.RayCluster),
    }


def on_the_wall() -> dict[str, Entry]:
    """The event clock by the wall clock, so fast that nobody waits."""
    from heron_env.lab import run_real_time

    def run(
        speed: Any = 1e9, tolerance: Any = 0.01, wait_for_answers: Any = False, clock: Any = None, sleep: Any = None,
        record: Any = ("rewards",), seed: Any = 0, t_end: Any = None,
    ) -> Any:  # fmt: skip
        times = iter(range(10**6))
        return run_real_time(
            make(GRID, **SMALL), GRID_POLICIES, speed=speed, tolerance=tolerance, wait_for_answers=wait_for_answers,
            clock=clock or (lambda: float(next(times))), sleep=sleep or (lambda seconds: None), record=record,
            seed=seed, t_end=t_end,
        )  # fmt: skip

    return {"run_real_time": entry(run)}


def goods() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Good values of the names of parameters here."""
    yield from {
        "method_name": lambda: "state", "attr_name": lambda: "dt", "url": lambda: URL, "endpoint": lambda: URL,
        "buses": lambda: ("busbar", "a"), "lines": lambda: (), "base_kv": lambda: 0.4, "start": lambda: "busbar",
        "end": lambda: "a", "r": lambda: 0.1, "x": lambda: 0.1, "nodes": lambda: 8, "rows": lambda: 3,
        "columns": lambda: 3, "domain": lambda: ("red", "green", "blue"), "problem": lambda: "g15",
        "speakers": lambda: ("a", "b"), "group": lambda: "battery", "lane": lambda: 0, "mean": lambda: 1.0,
        "rating": lambda: 100.0, "text": lambda: "set b1 to red", "sender": lambda: "h",
        "recipient": lambda: "human", "address": lambda: "127.0.0.1:9", "ray": lambda: "127.0.0.1:9",
        "file": lambda: "policy.onnx",
    }.items()  # fmt: skip


for _name, _good in goods():
    GOOD.setdefault(_name, _good)
