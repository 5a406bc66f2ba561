"""Train one policy per group with PPO, on either clock, and leave a run folder behind."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from heron_env.core.policy import Policies
from heron_env.envs.base import HeronEnv
from heron_env.envs.training_delays import TrainingDelays
from heron_env.envs.unused_rules import warn_of_unused
from heron_env.errors import ConfigError, HeronWarning
from heron_env.given import mapping, path_of, refuse_removed, require_one_of
from heron_env.lab import benchmark
from heron_env.lab.benchmark import NOTHING, RANDOM
from heron_env.lab.episodes import Earned
from heron_env.lab.learning.events import Callback, Monitor, Stopwatch, TrainingEnded
from heron_env.lab.learning.logs import LOGGERS, Logger, each_of, opened, progress_csv, progress_line
from heron_env.lab.learning.plan import DEFAULT, Hyperparameters, Plan, make_plan
from heron_env.lab.learning.validation import Episodes, Validation, print_baselines
from heron_env.lab.policies import Baseline
from heron_env.lab.run_files import GroupConfig
from heron_env.lab.runs import RunConfig, RunFolder, files_of_run, replace_run, unused, versions
from heron_env.registry import id_of
from heron_env.scheduling.drawn import AnySchedule, as_dict

REMOVED = {
    "trainer": (
        "leave it out; Stable-Baselines3 trains on a HeronVecEnv, and heron_env.lab.save_run(model, env, folder) makes "
        "the run folder (docs/use_with/stable_baselines3.md)"
    ),
    "algorithm": "it trains with PPO alone; VDN and QMIX are in BenchMARL, on a HeronTask (docs/use_with/benchmarl.md)",
}


@refuse_removed("train", REMOVED)
def train(
    env_id: str | Callable[..., HeronEnv],
    run_dir: str | Path,
    *,
    total_steps: int,
    seed: int = 0,
    env_options: Mapping[str, Any] | None = None,
    training_options: Mapping[str, Any] | None = None,
    training_delays: TrainingDelays | None = None,
    schedule: AnySchedule = None,
    device: str = "cpu",
    residual: str | None = DEFAULT,
    time_limit: float | None = None,
    hyperparameters: Hyperparameters | None = None,
    critic: str = "local",
    start_from: str | Path | None = None,
    validations: int = 6,
    validation_episodes: int = 8,
    progress: bool = True,
    logger: Logger | Sequence[Logger] | None = None,
    callbacks: Callback | Sequence[Callback] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> RunFolder:
    """Train policies on an environment and write a run folder.

    There is one policy for each group, shared by its agents; all groups are trained together. At the end the validation
    returns of the trained policies and of all baselines (always with random) are printed. Test cases are not used. The
    same arguments give the same weights, unless there is a time limit. A HeronWarning names functions of the
    environment that are never called, and warns if no agent earns a reward.

    Args:
        env_id: a registered environment, or "module:function" of your own, or that function: the run folder names it.
        run_dir: folder for the run. It replaces an older run there when it has finished.
        total_steps: transitions of each group. One step of one agent is one (with a schedule: one decision). If groups
            train together, the average of all groups. Rounded up to whole rollouts.
        seed: of networks, exploration and episodes.
        env_options: of `make()`; evaluation uses them too.
        training_options: additional options while training; None: the environment's choice (often a longer step).
        training_delays: delays of observations and actions in training and in validation during it. The run folder
            stores them; evaluation does not use them.
        schedule: train on the event clock, with these ticks, delays and losses: a ScheduleConfig, a mapping of them, or
            a DrawnSchedule, drawn for each environment and episode. Validation runs under it and on the synchronous
            clock. The run folder stores it. None: the synchronous clock. Excludes training_delays.
        device: where weights are updated: "cpu" (one thread), "cuda", or "auto" (a card if there is one). Environments
            and actions are always computed on the CPU. A saved run needs no card. "cuda" was not measured yet.
        residual: name of the baseline that the policy corrects; None: it decides alone; "default": the environment's
            choice.
        time_limit: stop after so many seconds. Compilation does not count; the evaluation of baselines does, and gets
            at most a third.
        hyperparameters: None: the environment's choice, if training_options are its choice, too.
        critic: "central": it also sees the whole state; the actor does not. "local": only the observation.
        start_from: a finished run to continue from. Its actor, critic and scales are used; the optimizer starts anew.
            Environment, critic, groups, columns and actions must be the same. Arguments that are not given
            are taken from it: env_options, residual, hyperparameters; training options are not.
        validations: how often the deterministic policy is evaluated after the start, including once at the end.
        validation_episodes: episodes of each evaluation.
        progress: show a bar in a terminal or a notebook, otherwise a line on stderr every 10 s; print the final table.
        logger: "csv" (figures.csv in the run folder), "tensorboard" or "wandb" (folders of these names; wandb is
            offline unless WANDB_MODE is set), a function of (step, figures), or several. It gets the `figures` of every
            event; step counts transitions of all groups.
        callbacks: a function of one `TrainingEvent`, or several. Returning False stops the training. An exception ends
            it, and the folder then has progress.csv and no new run.
        clock: s, for the time limit and all recorded times.

    Returns:
        The run: `run.config` has the validation returns, `run.policies()` the trained policies.

    Raises:
        RunFolderError: `start_from` is no finished run.
        ConfigError: an argument is wrong, `start_from` does not fit, or a package is missing (install the extra
            `train`).

    >>> train("heron/BatteryGrid-v0", "runs/grid", total_steps=100_000)  # doctest: +SKIP
    """
    watch = Stopwatch(clock)
    loggers = each_of("logger", logger, 2, f"one of {tuple(LOGGERS)}, or a function of (step, figures)", LOGGERS)
    callbacks = each_of("callbacks", callbacks, 1, "a function of one event")
    env_id = id_of(env_id, "train(env_id)")
    plan = make_plan(
        env_id,
        path_of(run_dir, "train(run_dir)"),
        mapping({} if env_options is None else env_options, "train(env_options)"),
        training_options,
        residual,
        total_steps=total_steps,
        seed=seed,
        time_limit=time_limit,
        hyperparameters=hyperparameters,
        validations=validations,
        critic=critic,
        delays=training_delays,
        start_from=start_from,
        schedule=schedule,
    )
    _require_training_extra()
    plan = replace(plan, device=_device(device))
    former = files_of_run(plan.run_dir)
    curve = unused("progress", ".csv", set(former))
    with ExitStack() as stack:
        stack.enter_context(watch.running())
        followers = [stack.enter_context(progress_csv(plan.run_dir / curve, scheduled=plan.schedule is not None))]
        followers += stack.enter_context(opened(loggers, plan))
        if progress:
            followers.append(stack.enter_context(progress_line(env_id, watch)))
        monitor = Monitor([*followers, *callbacks], watch, time_limit)
        env = plan.make()
        warn_of_unused(env.simulation)
        validation = Validation(env, plan.env_id, plan.options, validation_episodes, plan.schedule)
        done, earned = _trained(plan, env, validation, monitor)
        root = env.hierarchy.ids[0]
        config = _config(plan, dict(done.configs), done, monitor, earned, root).model_copy(update={"curve": curve})
        folder = replace_run(plan.run_dir, config, done.models, former)
        whole = done.transitions >= plan.total_steps * len(done.configs)
        monitor.tell(
            TrainingEnded, run=folder, reason="callback" if monitor.stopped else "steps" if whole else "time limit"
        )
    if not (monitor.updated or monitor.stopped):
        text = (
            f"train(time_limit={time_limit}): it ended before the first update of a policy (after "
            f"{done.transitions} transitions), and nothing was learned; give more, or a smaller n_steps"
        )
        warnings.warn(text, HeronWarning, stacklevel=3)  # over `refuse_removed`
    if progress:
        print_baselines({name: both.sync for name, both in earned.items()}, root, title=f"{env_id}, {validation}")
        under = {name: both.under for name, both in earned.items()}
        print_baselines(under, root, title=f"{env_id}, {validation}, under the schedule")
    return folder


class Done(NamedTuple):
    """What a trainer leaves behind: by group what config.json keeps and the model file; what the policies earned."""

    configs: Sequence[tuple[str, GroupConfig]]
    models: Mapping[str, bytes]
    episodes: Episodes
    transitions: int
    kept_at: int | None = None


def _trained(plan: Plan, env: HeronEnv, validation: Validation, monitor: Monitor) -> tuple[Done, dict[str, Episodes]]:
    """Measure the baselines, and train; what was earned, by policy."""
    offered = benchmark.baselines(env, plan.seed)
    if plan.base is not None:
        offered[plan.base] = Baseline(plan.base).build(env, plan.seed)  # it may be named with constants
    rules = benchmark.by_agent(offered[plan.base], env) if plan.base else {}
    until = monitor.seconds + (monitor.limit - monitor.seconds) / 3.0
    first = [name for name in (plan.base, RANDOM, NOTHING) if name is not None]
    measured = dict[str, Episodes]()
    for name in dict.fromkeys([*first, *offered]):
        start = monitor.seconds
        measured[name] = validation.measure(offered[name], lambda: monitor.due(until))
        monitor.reserve = max(monitor.reserve, monitor.seconds - start) if name in first else monitor.reserve
    with _one_thread():
        done = _together(plan, env, rules, validation, monitor)
    return done, {"trained": done.episodes, **{name: measured[name] for name in offered}}


def _together(plan: Plan, env: HeronEnv, rules: Policies, validation: Validation, monitor: Monitor) -> Done:
    """Train all groups at once."""
    from heron_env.lab.learning.row_training import RowTraining

    course = RowTraining(plan, env, rules, validation)
    course.run(monitor)
    models = {group: course.weights(group) for group in course.configs}
    return Done([*course.configs.items()], models, course.episodes, monitor.steps, course.kept_at)


def _require_training_extra() -> None:
    try:
        import_module("torch")
    except ImportError as error:
        raise ConfigError(f"training needs torch ({error}); install it: pip install 'heron_env[train]'") from error


def _device(wanted: str) -> str:
    """Where weights are improved. Raises ConfigError."""
    import torch

    require_one_of(f"train(device={wanted!r})", wanted, ("cpu", "cuda", "auto"))
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "train(device='cuda'): torch finds no card here; write device='auto', which then takes the CPU, or install "
            "a torch that is built for the card"
        )
    return "cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu"


@contextmanager
def _one_thread() -> Iterator[None]:
    """Small networks are fastest on one torch thread, and sums are then added up in one order."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _config(
    plan: Plan,
    groups: dict[str, GroupConfig],
    done: Done,
    monitor: Monitor,
    earned: Mapping[str, Episodes],
    return_of: str,
) -> RunConfig:
    """`earned`: by policy, in validation."""
    sync, under = ({name: Earned.mean(both[i]) for name, both in earned.items() if both[i]} for i in range(2))
    return RunConfig(
        env_id=plan.env_id,
        env_options=plan.env_options,
        training_options=plan.training_options,
        trainer="lean",
        device=plan.device,
        training_delays=plan.delays,
        schedule=None if plan.schedule is None else as_dict(plan.schedule),
        base=plan.base,
        start_from=None if plan.start is None else str(plan.start.path),
        seed=plan.seed,
        transitions=done.transitions,
        kept_at=done.kept_at,
        seconds=round(monitor.seconds, 1),
        compile_seconds=round(monitor.stopwatch.compiled, 1),
        deterministic=plan.time_limit is None and not monitor.stopped,
        hyperparameters={**asdict(plan.hyperparameters), "hidden": list(plan.hyperparameters.hidden)},
        critic=plan.critic,
        groups=groups,
        return_of=return_of,
        validation={name: mean.value for name, mean in sync.items()},
        validation_under_schedule={name: mean.value for name, mean in under.items()},
        validation_by_group={name: dict(mean.by_group) for name, mean in sync.items()},
        versions=versions(),
    )


__all__ = ["Hyperparameters", "train"]
