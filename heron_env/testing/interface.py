"""Checks of what `reset` and `step` take and give: PettingZoo's own tests, observations, actions, infos, ends."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from heron_env.core.masking import flat
from heron_env.envs.base import HeronEnv
from heron_env.envs.termination import TerminationConfig
from heron_env.errors import InvalidAction, UnknownAgent
from heron_env.testing.findings import Remark, failed, passed, warning
from heron_env.testing.probes import choices, extremes, noops, specs, waves
from heron_env.testing.subject import Subject

CYCLES = 10


def pettingzoo(subject: Subject) -> Iterator[Remark]:
    """PettingZoo's own tests pass, in parallel and agent by agent."""
    from pettingzoo import test as theirs  # neither typed nor exported
    from pettingzoo.utils.conversions import parallel_to_aec

    api_test, parallel_api_test, state_test = (
        getattr(theirs, name) for name in ("api_test", "parallel_api_test", "state_test")
    )

    def as_aec() -> Any:
        return parallel_to_aec(subject.build())

    tests: list[tuple[str, Callable[[], Any]]] = [
        ("parallel_api_test", lambda: parallel_api_test(subject.build(), num_cycles=CYCLES)),
        ("state_test", lambda: state_test(as_aec(), subject.build(), num_cycles=2)),
    ]
    if all(env_space.shape != (0,) for env_space in subject.build().observation_spaces.values()):
        tests.append(("api_test", lambda: api_test(as_aec(), num_cycles=CYCLES)))  # it refuses empty observations
    for name, test in tests:
        problem, said = quietly(test)
        if problem is not None:
            yield failed(
                f"{name}: {type(problem).__name__}: {problem}",
                "PettingZoo's word; reset() and step() as HeronEnv has them pass it, so look at what overrides them",
            )
            return
        if said:
            yield warning(f"{name}: {said[0]}", "PettingZoo's advice; harmless where you mean it so")
    yield passed(", ".join(name for name, _ in tests))


def quietly(test: Callable[[], Any], package: str = "pettingzoo") -> tuple[Exception | None, list[str]]:
    """Run a test of another package, which prints and warns: (what it raised, the package's own warnings)."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            test()
        except Exception as error:  # noqa: BLE001  whatever it is, it becomes a finding
            return error, []
    told = [w for w in caught if package in Path(w.filename).parts and issubclass(w.category, UserWarning)]
    return None, list(dict.fromkeys(re.sub(r"\x1b\[\d+m", "", str(w.message)) for w in told))


def observations(subject: Subject) -> Iterator[Remark]:
    """Observations are fresh float32 vectors in their spaces, for exactly the living."""
    env = subject.build()
    policies, (seen, _) = waves(env), env.reset(seed=subject.seed)
    kept = {agent: (vector, vector.copy()) for agent, vector in seen.items()}
    alive = list(env.agents)
    for step in range(subject.steps + 1):
        fault = _fault_of_observations(env, seen, alive)
        if fault:
            yield failed(f"after step {step} {fault}", "leave observations to HeronEnv: show more by visibility tags")
            return
        alive = list(env.agents)
        if not alive or step == subject.steps:
            break
        seen, rewards, terminated, truncated, infos = env.step(choices(env, policies, seen))
        results: dict[str, Any] = {
            "rewards": rewards,
            "terminations": terminated,
            "truncations": truncated,
            "infos": infos,
        }
        for name, given in results.items():
            if list(given) != alive:
                yield failed(
                    f"{name} of step {step + 1} are of {list(given)}, alive were {alive}",
                    "give each agent that was alive before the step its value, in their order",
                )
                return
    changed = [agent for agent, (vector, copy) in kept.items() if vector.tobytes() != copy.tobytes()]
    if changed:
        yield failed(f"the first observation of {changed[0]} was overwritten later", "return a fresh array each time")


def _fault_of_observations(env: HeronEnv, seen: Mapping[str, Any], alive: list[str]) -> str:
    if list(seen) != alive:
        return f"observations are of {list(seen)}, alive were {alive}"
    for agent, vector in seen.items():
        space, names = env.observation_space(agent), env.observation_names(agent)
        if not isinstance(vector, np.ndarray) or vector.dtype != np.float32 or vector.shape != space.shape:
            told = f"{vector.dtype} {vector.shape}" if isinstance(vector, np.ndarray) else type(vector).__name__
            return f"the observation of {agent} is {told}, its space float32 {space.shape}"
        out = np.flatnonzero(~((vector >= space.low) & (vector <= space.high)))
        if len(out):
            i = out[0]
            return f"{agent} sees {names[i]}={float(vector[i])!r} outside [{space.low[i]}, {space.high[i]}]"
    return "" if env.state_space.contains(env.state()) else "state() lies outside state_space"


def actions(subject: Subject) -> Iterator[Remark]:
    """Sampled actions are taken, wrong ones refused before anything has changed."""
    env = subject.build()
    env.reset(seed=subject.seed)
    before = _standing(env)
    for agent, spec in specs(env).items():
        wrong = [np.full(spec.size, np.nan), np.zeros(spec.size + 1)]
        if spec.dim_c:
            wrong.append(np.concatenate([spec.high + 1.0, spec.noop[spec.dim_c :]]))
        if spec.dim_d:
            wrong.append(np.concatenate([spec.noop[: spec.dim_c], spec.ncats]))
        for action in wrong:
            try:
                env.step({agent: action})
            except InvalidAction:
                if _standing(env) == before:
                    continue
                yield failed(f"step() refused {action.tolist()} of {agent}, but things had changed", _ACTIONS)
                return
            yield failed(f"step() took {action.tolist()} of {agent}, whose action is {spec.describe()}", _ACTIONS)
            return
    with contextlib.suppress(UnknownAgent):
        env.step({"nobody at all": 0})
        yield failed("step() took an action of 'nobody at all'", _ACTIONS)
        return
    for agent, space in env.action_spaces.items():
        space.seed(subject.seed)
        if agent in env.agents:
            env.step({agent: space.sample()})


_ACTIONS = "let HeronEnv.step check the actions: hand them on to super().step(actions) as they came"


def _standing(env: HeronEnv) -> tuple[bytes, int]:
    return env.simulation.truth.tobytes(), env.simulation.step_index


def infos(subject: Subject) -> Iterator[Remark]:
    """Infos are numbers, of fixed names and shapes within a group."""
    env = subject.build()
    group_of = {agent: name for name, group in env.group_map.items() for agent in group}
    policies, (seen, found) = waves(env), env.reset(seed=subject.seed)
    kinds: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {}
    for step in range(subject.steps + 1):
        when = f"at step {step}" if step else "at reset"
        for agent, info in found.items():
            info = {**info, "action_mask": flat(info["action_mask"])} if "action_mask" in info else info
            for name, value in info.items():
                if np.asarray(value).dtype.kind not in "buif":
                    yield failed(
                        f"infos[{agent!r}][{name!r}] {when} is {value!r}, no number: frameworks that stack infos crash",
                        "put words into env.last_decisions or kpis(), and a number or code into infos",
                    )
                    return
            shapes = {name: np.shape(value) for name, value in info.items()}
            first, known = kinds.setdefault(group_of[agent], (f"{agent} at reset", shapes))
            if shapes != known:
                told = sorted(shapes.keys() ^ known.keys()) or [n for n in shapes if shapes[n] != known[n]]
                yield failed(
                    f"infos[{agent!r}] {when} differs from that of {first} in {told}",
                    "give all agents of a group the same names and shapes each time; 0 or nan where there is nothing",
                )
                return
        if not env.agents:
            break
        seen, _, _, _, found = env.step(choices(env, policies, seen))


def ends(subject: Subject) -> Iterator[Remark]:
    """A limit of steps truncates, does not terminate, and nobody comes back."""
    limit, env = 3, subject.build()
    env.termination = env.simulation.termination = TerminationConfig(max_steps=limit, mode=env.termination.mode)
    env.reset(seed=subject.seed)
    policies = noops(env)
    for step in range(1, limit + 1):
        before = list(env.agents)
        if not before:
            break
        _, _, terminated, truncated, _ = env.step({a: policies[a](None) for a in before})
        ended = [a for a in before if terminated[a] or truncated[a]]
        if env.agents != [a for a in before if a not in ended]:
            yield failed(f"after step {step} ended {ended}, but agents are {env.agents}", _ENDS)
            return
        if step == limit and not all(truncated[a] for a in before):
            told = [a for a in before if not truncated[a]]
            yield failed(f"max_steps={limit} is reached, and {told} are not truncated", _ENDS)
            return
    if env.agents:
        yield failed(f"max_steps={limit} is reached, and {env.agents} go on", _ENDS)
        return
    ways = (noops, waves, lambda env: extremes(env, 0), lambda env: extremes(env, 1))
    lengths = {_terminated_at(subject, way) for way in ways}
    if len(lengths) == 1 and (length := lengths.pop()) is not None:
        yield warning(
            f"whatever agents do, all are terminated after step {length}: learners take that for a real end",
            "if it is a time limit, use max_steps or is_truncated instead of is_terminated",
        )


_ENDS = "leave `agents` and the time limit to HeronEnv: set max_steps, and end agents by is_terminated or is_truncated"


def _terminated_at(subject: Subject, way: Callable[[HeronEnv], Mapping[str, Any]]) -> int | None:
    """The step at which a rule ended everyone, without a limit, under policies made by `way`."""
    env = subject.build()
    env.termination = env.simulation.termination = TerminationConfig(mode=env.termination.mode)
    policies, (seen, _) = way(env), env.reset(seed=subject.seed)
    terminated: Mapping[str, bool] = {}
    for step in range(subject.steps):
        if not env.agents:
            return step if terminated and all(terminated.values()) else None
        seen, _, terminated, _, _ = env.step(choices(env, policies, seen))
    return None


def render(subject: Subject) -> Iterator[Remark]:
    """Each render mode gives what its name promises."""
    modes = subject.build().metadata.get("render_modes", [])
    for mode in modes:
        env = subject.build()
        env.render_mode = mode
        env.reset(seed=subject.seed)
        shown = env.render()
        image = isinstance(shown, np.ndarray) and shown.ndim == 3 and shown.shape[2] == 3 and shown.dtype == np.uint8
        if (mode == "ansi" and not isinstance(shown, str)) or (mode == "rgb_array" and not image):
            told = f"{shown.dtype} {shown.shape}" if isinstance(shown, np.ndarray) else type(shown).__name__
            wanted = "a string" if mode == "ansi" else "a uint8 array [height, width, 3]"
            yield failed(f"render() in mode {mode!r} gave {told}", f"return {wanted}")
            return
    yield passed(", ".join(modes))
