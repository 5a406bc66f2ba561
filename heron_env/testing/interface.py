"""Checks of what `reset` and `step` take and give: observations, actions, masks, infos, ends, PettingZoo's tests."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from heron_env.core.masking import flat, parts
from heron_env.core.world import World
from heron_env.envs.base import HeronEnv
from heron_env.envs.settings import TerminationConfig
from heron_env.errors import InvalidAction, UnknownAgent
from heron_env.pictures.frames import ObservedWorld, WorldPicture
from heron_env.testing.check import Broken, Remark, Subject, failed, passed, skipped, warning
from heron_env.testing.rollouts import choices, extremes, noops, specs, waves

CYCLES = 10


def pettingzoo(subject: Subject) -> Iterator[Remark]:
    """PettingZoo's own tests pass, in parallel and agent by agent."""
    tests: dict[str, Callable[[Any], Any]] = {
        "parallel_api_test": lambda test: test(begun(subject), num_cycles=CYCLES),
        "state_test": lambda test: test(as_aec(subject), begun(subject), num_cycles=2),
    }
    if all(space.shape != (0,) for space in subject.build().observation_spaces.values()):
        tests["api_test"] = lambda test: test(as_aec(subject), num_cycles=CYCLES)  # it refuses empty observations
    mixed = any(isinstance(space, spaces.Dict) for space in subject.build().action_spaces.values())
    for name, run in tests.items():
        problem, messages = pettingzoos_own(name, run)
        if problem:
            raise Broken(
                problem,
                "PettingZoo's word; reset() and step() as HeronEnv has them pass it, so look at what overrides them",
            )
        messages = [text for text in messages if not (mixed and "spaces.box or" in text)]
        if messages:
            yield warning(f"{name}: {messages[0]}", "PettingZoo's advice; harmless where you mean it so")
    yield passed(", ".join(tests))


def begun(subject: Subject) -> Any:
    """A fresh environment in an episode of the check's seed: PettingZoo resets without one."""
    env = subject.build()
    env.reset(seed=subject.seed)
    return env


def as_aec(subject: Subject) -> Any:
    """The same in PettingZoo's agent-by-agent form."""
    from pettingzoo.utils.conversions import parallel_to_aec

    return parallel_to_aec(begun(subject))


def pettingzoos_own(name: str, run: Callable[[Any], Any]) -> tuple[str, list[str]]:
    """Run PettingZoo's test of this name: (how it failed, "" if it passed; its warnings)."""
    from pettingzoo import test as theirs  # neither typed nor exported

    problem, messages = quietly(lambda: run(getattr(theirs, name)))
    return f"{name}: {type(problem).__name__}: {problem}" if problem is not None else "", messages


def quietly(test: Callable[[], Any], package: str = "pettingzoo") -> tuple[Exception | None, list[str]]:
    """Run a test of another package, which prints and warns: (what it raised, the package's own warnings)."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            test()
        except Exception as error:  # noqa: BLE001  whatever it is, it becomes a finding
            return error, []
    folder = Path(str(import_module(package).__file__)).parent
    own = [w for w in caught if Path(w.filename).is_relative_to(folder) and issubclass(w.category, UserWarning)]
    return None, list(dict.fromkeys(re.sub(r"\x1b\[\d+m", "", str(w.message)) for w in own))


def observations(subject: Subject) -> Iterator[Remark]:
    """Observations are fresh float32 vectors in their spaces, for exactly the living."""
    env = subject.build()
    policies, (views, _) = waves(env), env.reset(seed=subject.seed)
    first = {agent: (vector, vector.copy()) for agent, vector in views.items()}
    alive = list(env.agents)
    for step in range(subject.steps + 1):
        fault = _fault_of_observations(env, views, alive)
        if fault:
            raise Broken(f"after step {step} {fault}", "leave observations to HeronEnv: show more by visibility tags")
        alive = list(env.agents)
        if not alive or step == subject.steps:
            break
        views, rewards, terminated, truncated, infos = env.step(choices(env, policies, views))
        results: dict[str, Any] = {
            "rewards": rewards,
            "terminations": terminated,
            "truncations": truncated,
            "infos": infos,
        }
        for name, result in results.items():
            if list(result) != alive:
                raise Broken(
                    f"{name} of step {step + 1} are of {list(result)}, alive were {alive}",
                    "give each agent that was alive before the step its value, in their order",
                )
    changed = [agent for agent, (vector, copy) in first.items() if vector.tobytes() != copy.tobytes()]
    if changed:
        yield failed(f"the first observation of {changed[0]} was overwritten later", "return a fresh array each time")


def _fault_of_observations(env: HeronEnv, views: Mapping[str, Any], alive: list[str]) -> str:
    if list(views) != alive:
        return f"observations are of {list(views)}, alive were {alive}"
    for agent, vector in views.items():
        space, names = env.observation_space(agent), env.observation_names(agent)
        if not isinstance(vector, np.ndarray) or vector.dtype != np.float32 or vector.shape != space.shape:
            return f"the observation of {agent} is {_kind(vector)}, its space float32 {space.shape}"
        out = np.flatnonzero(~((vector >= space.low) & (vector <= space.high)))
        if len(out):
            i = out[0]
            return f"{agent} sees {names[i]}={float(vector[i])!r} outside [{space.low[i]}, {space.high[i]}]"
    return "" if env.state_space.contains(env.state()) else "state() lies outside state_space"


def _kind(value: Any) -> str:
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__


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
    policies, (views, by_agent) = waves(env), env.reset(seed=subject.seed)
    kinds: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {}
    for step in range(subject.steps + 1):
        when = f"at step {step}" if step else "at reset"
        for agent, info in by_agent.items():
            info = {**info, "action_mask": flat(info["action_mask"])} if "action_mask" in info else info
            for name, value in info.items():
                if np.asarray(value).dtype.kind not in "buif":
                    yield failed(
                        f"infos[{agent!r}][{name!r}] {when} is {value!r}, no number: frameworks that stack infos crash",
                        "put words into env.last_decisions or kpis(), and a number or code into infos",
                    )
                    return
            shapes = {name: np.shape(value) for name, value in info.items()}
            first, expected = kinds.setdefault(group_of[agent], (f"{agent} at reset", shapes))
            if shapes != expected:
                names = sorted(shapes.keys() ^ expected.keys()) or [n for n in shapes if shapes[n] != expected[n]]
                yield failed(
                    f"infos[{agent!r}] {when} differs from that of {first} in {names}",
                    "give all agents of a group the same names and shapes each time; 0 or nan where there is nothing",
                )
                return
        if not env.agents:
            break
        views, _, _, _, by_agent = env.step(choices(env, policies, views))


def masks(subject: Subject) -> Iterator[Remark]:
    """Masks fit their action spaces, leave a choice, and what they allow takes effect."""
    env = subject.build()
    for space in env.action_spaces.values():
        space.seed(subject.seed)
    _, infos = env.reset(seed=subject.seed)
    decisions = restricted = 0
    forbidden: dict[str, int] = {}  # whose no-op, and when first
    for _ in range(subject.steps):
        actions: dict[str, Any] = {}
        for agent in env.agents:
            fault, actions[agent] = _allowed(env, agent, infos[agent])
            if fault:
                raise Broken(f"at step {env.simulation.step_index} the mask of {agent} {fault}", _FORM)
            if "action_mask" in infos[agent] and infos[agent]["is_active"]:
                decisions += 1
                restricted += int(flat(infos[agent]["action_mask"]).min() == 0)
                if not _allows_noop(env, agent, infos[agent]["action_mask"]):
                    forbidden.setdefault(agent, env.simulation.step_index)
        if not env.agents:
            break
        ranks = [env.hierarchy.index[agent] for agent in env.agents]
        _, _, _, _, infos = env.step(actions)
        refused = [rank for rank in ranks if env.simulation.lane.masked[rank]]
        if refused:
            raise Broken(
                f"step {env.simulation.step_index} masked a choice of {env.hierarchy.ids[refused[0]]} that was offered",
                "offer what action_mask says of the observation: leave infos and observations to HeronEnv",
            )
    if decisions:
        yield passed(f"they forbid something in {restricted / decisions:.0%} of decisions")
    if forbidden:
        agent, step = next(iter(forbidden.items()))
        yield warning(
            f"at step {step} the mask of {agent} forbids its no-op, which takes effect all the same where a forbidden "
            "choice is asked for, or none",
            "name a choice that is always allowed: Discrete(n, noop=...)",
        )


_FORM = "leave infos['action_mask'] to the rule action_mask: HeronEnv gives it the form that space.sample(mask) takes"


def _allows_noop(env: HeronEnv, agent: str, mask: Any) -> bool:
    spec, flags = env.simulation.model.specs[env.hierarchy.index[agent]], flat(mask)
    return all(flags[part][int(choice)] for part, choice in zip(parts(spec), spec.noop[spec.dim_c :], strict=True))


def _allowed(env: HeronEnv, agent: str, info: Mapping[str, Any]) -> tuple[str, Any]:
    """What is wrong with the agent's mask, and an action that it allows."""
    mask, spec = info.get("action_mask"), env.simulation.model.specs[env.hierarchy.index[agent]]
    try:
        action = env.action_space(agent).sample(mask)
    except Exception as error:  # noqa: BLE001  Gymnasium's assertions, and whatever odd forms stumble over
        return f"does not fit its space: {error}", None
    if mask is not None and not all(flat(mask)[part].any() for part in parts(spec)):
        return "forbids everything", None
    return "", action


def ends(subject: Subject) -> Iterator[Remark]:
    """A limit of steps truncates, does not terminate, and nobody comes back."""
    limit, env = 3, subject.build()
    env.termination = TerminationConfig(max_steps=limit, mode=env.termination.mode)
    env.simulation.end_by(env.termination)
    env.reset(seed=subject.seed)
    policies = noops(env)
    for step in range(1, limit + 1):
        before = list(env.agents)
        if not before:
            break
        _, _, terminated, truncated, _ = env.step({a: policies[a](None) for a in before})
        ended = [a for a in before if terminated[a] or truncated[a]]
        if env.agents != [a for a in before if a not in ended]:
            raise Broken(f"after step {step} ended {ended}, but agents are {env.agents}", _ENDS)
        if step == limit and not all(truncated[a] for a in before):
            others = [a for a in before if not truncated[a]]
            raise Broken(f"max_steps={limit} is reached, and {others} are not truncated", _ENDS)
    if env.agents:
        raise Broken(f"max_steps={limit} is reached, and {env.agents} go on", _ENDS)
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
    env.termination = TerminationConfig(mode=env.termination.mode)
    env.simulation.end_by(env.termination)
    policies, (views, _) = way(env), env.reset(seed=subject.seed)
    terminated: Mapping[str, bool] = {}
    for step in range(subject.steps):
        if not env.agents:
            return step if terminated and all(terminated.values()) else None
        views, _, terminated, _, _ = env.step(choices(env, policies, views))
    return None


def render(subject: Subject) -> Iterator[Remark]:
    """Each render mode gives what its name promises."""
    modes = subject.build().metadata.get("render_modes", [])
    if find_spec("matplotlib") is None:
        yield skipped("rgb_array: pictures need matplotlib, the extra `plots`")
        modes = [mode for mode in modes if mode != "rgb_array"]
    for mode in modes:
        env = subject.build()
        env.render_mode = mode
        env.reset(seed=subject.seed)
        picture = env.render()
        image = isinstance(picture, np.ndarray) and picture.shape[2:] == (3,) and picture.dtype == np.uint8
        if (mode == "ansi" and not isinstance(picture, str)) or (mode == "rgb_array" and not image):
            wanted = "a string" if mode == "ansi" else "a uint8 array [height, width, 3]"
            raise Broken(f"render() in mode {mode!r} gave {_kind(picture)}", f"return {wanted}")
        if mode == "rgb_array":
            nothing = World(env.simulation.model.layout, np.full_like(env.simulation.truth, np.nan))
            unaware = ObservedWorld(env.possible_agents[0], {}, {}, nothing)
            WorldPicture(env.draw_frame).image(env.world, unaware)  # an agent that knows nothing yet
    yield passed(", ".join(modes))
