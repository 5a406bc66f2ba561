"""Train one policy per group with PPO, on either clock, and leave a run folder behind.

A `TrainingPlan` settles what is trained on what, once; `Training` collects rollouts, lets the learners learn from them,
and is measured on the way; `train` writes the run folder. torch is imported when a training begins.
"""

from __future__ import annotations

import copy
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from heron_env.adapters.slots import require_critic
from heron_env.core.policy import Policies
from heron_env.envs.base import HeronEnv
from heron_env.envs.batch.rows import Rows
from heron_env.envs.description import TrainingDefaults
from heron_env.envs.hooks import has_training_rewards
from heron_env.envs.unused_rules import warn_of_unused
from heron_env.errors import ConfigError, HeronWarning, RunFolderError, did_you_mean
from heron_env.given import (
    WITHOUT_TRAINING_DELAYS,
    is_number,
    mapping,
    path_of,
    refuse_removed,
    require_one_of,
    several,
    whole,
)
from heron_env.lab import benchmark
from heron_env.lab.benchmark import NOTHING, RANDOM
from heron_env.lab.episodes import Earned, groups_apart
from heron_env.lab.learning.events import (
    LOGGERS,
    Callback,
    Logger,
    Monitor,
    PolicyUpdated,
    PolicyValidated,
    RolloutEnded,
    Stopwatch,
    TrainingEnded,
    each_of,
    opened,
    progress_csv,
    progress_line,
)
from heron_env.lab.learning.rows import Role, Scales, measure_rows, rows_of
from heron_env.lab.output import TextTable, terminal
from heron_env.lab.policies import InMemory
from heron_env.lab.remembering import RememberingPolicy, recurrent_of
from heron_env.lab.robust_stats import mean_interval, paired_difference
from heron_env.lab.run_files import GroupConfig, RunConfig, group_config
from heron_env.lab.runs import RunFolder, files_of_run, replace_run, unused, versions
from heron_env.lab.schedules import require_resolved
from heron_env.lab.sweep.conditions import SYNC, Scheduled
from heron_env.lab.sweep.study import Study
from heron_env.lab.trained import Activation, NetworkPolicy, act_of, network_of, on_vectors
from heron_env.lab.weights import packed_weights
from heron_env.registry import id_of, make
from heron_env.registry import spec as spec_of
from heron_env.scheduling.drawn import AnySchedule, DrawnSchedule, as_dict
from heron_env.scheduling.timing import ScheduleConfig
from heron_env.seeding import key
from heron_env.trust import on_behalf_of

DEFAULT = "default"
MOST, MOST_UNITS = 10**8, 10**4
FIRST_SEED, SEEDS = 10_000_000, 100_000
"""Training seeds begin here, far from those of evaluations; distance between those of two runs."""
WARM_UP_ENVS = 16
LEAST_ROLLOUTS = 4
"""A training with default settings that is shorter than one rollout is cut into so many smaller ones."""
REMOVED = {
    "trainer": (
        "leave it out; Stable-Baselines3 trains on a HeronVecEnv, and heron_env.lab.save_run(model, env, folder) makes "
        "the run folder (docs/use_with/stable_baselines3.md)"
    ),
    "training_delays": WITHOUT_TRAINING_DELAYS,
    "algorithm": "it trains with PPO alone; VDN and QMIX are in BenchMARL, on a HeronTask (docs/use_with/libraries.md)",
}
OF_VALUES = "it was of VDN and QMIX; train them with BenchMARL on a HeronTask (docs/use_with/libraries.md)"
REMOVED_SETTINGS = {
    **dict.fromkeys(("replay", "exploration", "final_epsilon", "tau", "mixer"), OF_VALUES),
    "frames": (
        "for memory write gru=...; SuperSuit's frame_stack_v1 stacks observations for other trainers, VecFrameStack "
        "those of a HeronVecEnv for Stable-Baselines3 (docs/use_with/libraries.md)"
    ),
    "augment": (
        "for memory write gru=...; a wrapper around the environment shows an agent its own last actions, for other "
        "trainers (docs/how_to/train_under_a_network.md)"
    ),
}
"""Hyperparameters of earlier versions, which run folders may have."""


@dataclass(frozen=True)
class Hyperparameters:
    """Settings of a training.

    `learning_rate` falls linearly to `final_learning_rate`, by transitions or by time, whichever is farther on.
    `log_std` is where exploration begins, in units of half the action range; None: -2 for the correction of a rule,
    where noise itself costs, and 0 for a policy that decides alone (with -2 it learned nothing on BatteryGrid: the
    noise was too small to show good from bad). `batch_size` is lowered to a divisor of a rollout; 1,024 learned
    faster per transition than 4,096 on the validation days of EnergyManagement (one seed). `activation`, "tanh" or
    "relu", follows each `hidden` layer; ReLU is 5 to 13 % faster, and five seeds on Spread leave open whether it
    learns as much.

    `gru` units remember what an agent has seen (0: nobody remembers; ages are seen with observe_age=True). All groups
    share one policy if `shared`. As many lanes as there are `twins` live the same days, with the same seeds and
    networks, and differ in what they try alone: what a decision brought is compared with what the others' brought at
    that time, so that the weather counts for none of them (an input-dependent baseline: H. Mao et al., "Variance
    Reduction for Reinforcement Learning in Input-Driven Environments", ICLR 2019).
    With `keep_best` the weights stay that earned most on the validation episodes on the way, under the schedule where
    there is one, not the last ones.
    """

    num_envs: int = 64
    n_steps: int = 96
    batch_size: int = 1024
    n_epochs: int = 5
    gamma: float = 0.99
    gae_lambda: float = 0.9
    learning_rate: float = 1e-3
    final_learning_rate: float = 1e-4
    log_std: float | None = None
    hidden: tuple[int, ...] = (64, 64)
    activation: Activation = "tanh"
    gru: int = 0
    shared: bool = False
    twins: int = 1
    keep_best: bool = False

    @refuse_removed("Hyperparameters", REMOVED_SETTINGS)
    def __new__(cls, *_: Any, **__: Any) -> Hyperparameters:
        """Raise ConfigError for one of an earlier version."""
        return super().__new__(cls)

    @classmethod
    def of(cls, env_id: str, defaults: TrainingDefaults) -> Hyperparameters:
        """Return the settings that an environment declares. Raises ConfigError for an unknown name."""
        names = [field.name for field in fields(cls)]
        for name in defaults.hyperparameters:
            if name not in names:
                raise ConfigError(
                    f"{env_id}: training_defaults() has the hyperparameter {name!r}; there are {names}."
                    f"{did_you_mean(name, names)}"
                )
        return cls(**defaults.hyperparameters)

    @classmethod
    def of_run(cls, run: RunFolder) -> Hyperparameters:
        """Read the settings of a run. Raises RunFolderError for invalid ones."""
        own = {name: value for name, value in run.config.hyperparameters.items() if name not in REMOVED_SETTINGS}
        try:
            return cls(**{**own, "hidden": tuple(own["hidden"])})
        except (KeyError, TypeError) as error:
            raise RunFolderError(
                f"{run.path / 'config.json'}: hyperparameters: {error}; restore the file, or give hyperparameters"
            ) from error

    def require_able(self) -> None:
        """Raise ConfigError for invalid settings."""
        require_one_of(f"Hyperparameters(activation={self.activation!r})", self.activation, get_args(Activation))
        counts = dict.fromkeys(("num_envs", "n_steps", "batch_size", "n_epochs"), (1, MOST))
        for name, (least, most) in {**counts, "gru": (0, MOST_UNITS), "twins": (1, self.num_envs)}.items():
            whole(getattr(self, name), f"Hyperparameters({name})", least, most)
        for units in several(self.hidden, "Hyperparameters(hidden)"):
            whole(units, "Hyperparameters(hidden)", 1, MOST)
        if self.num_envs % self.twins:
            raise ConfigError(
                f"Hyperparameters(num_envs={self.num_envs}, twins={self.twins}): num_envs must be a multiple of it"
            )
        for name in ("gamma", "gae_lambda", "learning_rate", "final_learning_rate"):
            if not (is_number(value := getattr(self, name)) and 0.0 <= value <= 1.0):
                raise ConfigError(f"Hyperparameters({name}={value!r}): must be a number between 0 and 1")
        if self.log_std is not None and not is_number(self.log_std):
            raise ConfigError(f"Hyperparameters(log_std={self.log_std!r}): must be a number, or None")


@refuse_removed("train", REMOVED)
def train(
    env_id: str | Callable[..., HeronEnv],
    run_dir: str | Path,
    *,
    total_steps: int,
    seed: int = 0,
    env_options: Mapping[str, Any] | None = None,
    training_options: Mapping[str, Any] | None = None,
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
            train together, the average of all groups. Rounded up to whole rollouts; with default hyperparameters a
            training shorter than a rollout has smaller ones, of fewer lanes.
        seed: of networks, exploration and episodes.
        env_options: of `make()`; evaluation uses them too.
        training_options: additional options while training; None: the environment's choice (often a longer step).
        schedule: train on the event clock, with these ticks, delays and losses: a ScheduleConfig, a mapping of them, or
            a DrawnSchedule, drawn for each environment and episode. Validation runs under it and on the synchronous
            clock. The run folder stores it. None: the synchronous clock.
        device: where weights are updated: "cpu" (one thread), "cuda", or "auto" (a GPU if available). Environments
            and actions are always computed on the CPU. A saved run needs no GPU. "cuda" was not measured.
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
        progress: say on stderr how many transitions will be run, show a bar in a terminal or a notebook, otherwise a
            line every 10 s; print the final table.
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
    options = mapping({} if env_options is None else env_options, "train(env_options)")
    plan = TrainingPlan(
        env_id, path_of(run_dir, "train(run_dir)"), options, training_options, residual, total_steps=total_steps,
        seed=seed, time_limit=time_limit, hyperparameters=hyperparameters, validations=validations, critic=critic,
        device=device, start_from=start_from, schedule=schedule,
    )  # fmt: skip
    former = files_of_run(plan.run_dir)
    curve, env = unused("progress", ".csv", set(former)), plan.env
    facts = {"env_id": env_id, "seed": seed, **asdict(plan.hyperparameters)}
    with ExitStack() as stack:
        stack.enter_context(watch.running())
        followers = [stack.enter_context(progress_csv(plan.run_dir / curve, scheduled=plan.schedule is not None))]
        followers += stack.enter_context(opened(loggers, plan.run_dir, facts))
        if progress:
            print(f"{env_id}: {plan}", file=sys.stderr, flush=True)
            followers.append(stack.enter_context(progress_line(env_id, watch)))
        monitor = Monitor([*followers, *callbacks], watch, time_limit)
        warn_of_unused(env.simulation)
        validation = Validation(plan, validation_episodes)
        rules, earned = _measured(plan, validation, monitor)
        with _one_thread():
            training = Training(plan, rules, validation, monitor)
            training.run()
        earned = {"trained": training.episodes, **earned}
        groups, models = training.groups()
        config = _config(plan, groups, training, earned).model_copy(update={"curve": curve})
        folder = replace_run(plan.run_dir, config, models, former)
        complete = monitor.steps >= total_steps * len(groups)
        monitor.tell(
            TrainingEnded, run=folder, reason="callback" if monitor.stopped else "steps" if complete else "time limit"
        )
    if not (monitor.updated or monitor.stopped):
        text = (
            f"train(time_limit={time_limit}): it ended before the first update of a policy (after "
            f"{monitor.steps} transitions), and nothing was learned; give more, or a smaller n_steps"
        )
        warnings.warn(text, HeronWarning, stacklevel=3)  # over `refuse_removed`
    if progress:
        for under, title in enumerate(("", ", under the schedule")):
            table = {name: both[under] for name, both in earned.items()}
            _print_baselines(table, env.hierarchy.ids[0], f"{env_id}, {validation}{title}")
    return folder


# The plan


class TrainingPlan:
    """What is trained on what: everything that `train()` is called with, the environment's defaults filled in.

    Args: as of `train()`; run_dir and env_options are a path and a dictionary.

    Attributes: env: one of those that are trained in, to look at and to validate in; training_options: what comes on
        top of env_options while training; base: name of the baseline to correct; start: the run to go on from; None:
        there is none; lanes, n_steps: of a rollout: the hyperparameters' own, fewer in a training that is shorter than
        one.

    Raises ConfigError, and what building the environment raises.
    """

    def __init__(
        self, env_id: str, run_dir: Path, env_options: dict[str, Any],
        training_options: Mapping[str, Any] | None = None, residual: str | None = DEFAULT, *, total_steps: int,
        seed: int = 0, time_limit: float | None = None,
        hyperparameters: Hyperparameters | None = None, validations: int = 0, critic: str = "local",
        device: str = "cpu", start_from: str | Path | None = None,
        schedule: AnySchedule = None,
    ) -> None:  # fmt: skip
        for name, value, least in (("total_steps", total_steps, 1), ("seed", seed, 0), ("validations", validations, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigError(f"train({name}={value!r}): must be a whole number >= {least}")
        if time_limit is not None and not time_limit > 0.0:
            raise ConfigError(f"train(time_limit={time_limit!r}): must be > 0 s, or None")
        require_critic(critic, "train")
        self.env_id, self.run_dir, self.total_steps, self.seed = env_id, run_dir, total_steps, seed
        self.time_limit, self.validations, self.critic, self.schedule = time_limit, validations, critic, schedule
        self.start, own = None, hyperparameters
        if start_from is not None:
            self.start = start = _opened(start_from, env_id, critic)
            env_options = {**start.config.env_options, **env_options}
            residual = start.config.base if residual == DEFAULT else residual
            own = hyperparameters or Hyperparameters.of_run(start)
        self.env_options = env_options
        with on_behalf_of("" if self.start is None else str(self.start.path / "config.json")):
            world = make(env_id, **env_options)
            require_trainable(world, env_id)
            if self.start is not None and own is not None:
                _require_same(self.start, world, residual, own)
            defaults = world.training_defaults() if schedule is None else world.training_defaults().scheduled()
            own_choice = training_options is None
            if training_options is None:
                training_options = {name: x for name, x in defaults.options.items() if name not in env_options}
            self.training_options = chosen = dict(training_options)
            if schedule is not None:
                _require_schedule(schedule, world)
            self.env = world if self.options == env_options else self.make()
        if schedule is not None:
            for note in require_resolved(schedule, world, self.env, chosen):
                warnings.warn(f"train(schedule=...): {note}", HeronWarning, stacklevel=4)
        self.base = defaults.base if residual == DEFAULT else residual
        if self.base is not None:
            _require_correctable(world, env_id, self.base, seed)
        self.hyperparameters = own or Hyperparameters.of(env_id, defaults if own_choice else TrainingDefaults())
        self.hyperparameters.require_able()
        self.lanes, self.n_steps = self.hyperparameters.num_envs, self.hyperparameters.n_steps
        if hyperparameters is None:
            transitions = total_steps * len(self.env.group_map)
            self.lanes, self.n_steps = _fitting(self.hyperparameters, transitions, len(self.env.possible_agents))
        self.device = _device(device)

    def make(self) -> HeronEnv:
        """An environment to train in."""
        return make(self.env_id, **self.options)

    @property
    def options(self) -> dict[str, Any]:
        """All options of that environment."""
        return {**self.env_options, **self.training_options}

    @property
    def rollout(self) -> int:
        """Transitions of all groups in a rollout."""
        return self.lanes * self.n_steps * len(self.env.possible_agents)

    def __str__(self) -> str:
        """How many transitions will be run, and in which rollouts."""
        rollouts = math.ceil(self.total_steps * len(self.env.group_map) / self.rollout)
        limit = "" if self.time_limit is None else f", {self.time_limit:g} s at the most"
        return (
            f"{rollouts * self.rollout:,} transitions, {rollouts} x {self.rollout:,} ({self.lanes} lanes, "
            f"{self.n_steps} steps, {len(self.env.possible_agents)} agents){limit}"
        )


def _fitting(settings: Hyperparameters, transitions: int, agents: int) -> tuple[int, int]:
    """Lanes and steps of a rollout, of which a training of so many transitions of all agents has at least one."""
    lanes, n_steps, twins = settings.num_envs, settings.n_steps, settings.twins
    if lanes * n_steps * agents <= transitions:
        return lanes, n_steps
    moments = max(transitions // (LEAST_ROLLOUTS * agents), 1)  # of the rollout, over all lanes
    lanes = max(moments // n_steps // twins, 1) * twins
    return lanes, max(min(n_steps, moments // lanes), 1)


def require_trainable(env: object, env_id: str) -> None:
    """Raise ConfigError for a black box."""
    if not isinstance(env, HeronEnv):
        raise ConfigError(
            f"train({env_id!r}): is a black box, {type(env).__name__}; this trainer runs the rules of a HeronEnv. "
            "Train under_network(env, ...) with any trainer of PettingZoo or Gymnasium: Stable-Baselines3, CleanRL, "
            "TorchRL, RLlib (docs/how_to/train_under_a_network.md)"
        )


def _require_correctable(env: HeronEnv, env_id: str, base: str, seed: int) -> None:
    """Raise ConfigError unless `base` is a baseline that decides on vectors, and not by chance."""
    corrected = None if base == RANDOM else benchmark.baseline(env, base, seed)
    if corrected is None:
        offered = [name for name in benchmark.baselines(env, seed) if name != RANDOM]
        raise ConfigError(
            f"train(residual={base!r}): {env_id} has the baselines {offered} to correct.{did_you_mean(base, offered)}"
        )
    for policy in corrected.values():
        on_vectors(policy)


def _require_schedule(schedule: AnySchedule, env: HeronEnv) -> None:
    """Raise ConfigError unless it is a schedule, ScheduleError unless it is of this environment's agents."""
    if not isinstance(schedule, ScheduleConfig | Mapping | DrawnSchedule):
        raise ConfigError(
            f"train(schedule={schedule!r}): must be a ScheduleConfig, a mapping of them, or a DrawnSchedule; "
            "write ScheduleConfig(msg_delay=3.0)"
        )
    env.timings_of(schedule.at(0, 0) if isinstance(schedule, DrawnSchedule) else schedule)


def _opened(start_from: str | Path, env_id: str, critic: str) -> RunFolder:
    """The run to go on from.

    Raises RunFolderError; ConfigError for another environment, algorithm or critic, or what is no longer trained.
    """
    run = RunFolder.open(start_from)
    if run.in_one_file:
        raise ConfigError(
            f"train(start_from={str(start_from)!r}): one file has no weights of what values; give the run folder"
        )
    for what, ours in (("env_id", env_id), ("algorithm", "ppo"), ("critic", critic)):
        if ours != (its := getattr(run.config, what)):
            raise ConfigError(
                f"train(start_from={str(start_from)!r}): that run has {what}={its!r}, this one {ours!r}; "
                "its weights would mean something else: give the same, or start anew"
            )
    group = next(iter(run.config.groups.values()))
    if group.frames > 1 or group.augment:
        raise ConfigError(
            f"train(start_from={str(run.path)!r}): that run has frames={group.frames}, augment={group.augment}, which "
            "are no longer trained; start anew, with Hyperparameters(gru=...) for memory"
        )
    if run.config.training_delays is not None:
        text = (
            f"train(start_from={str(run.path)!r}): that run was trained with "
            f"training_delays={run.config.training_delays}, which do not act any more: {WITHOUT_TRAINING_DELAYS}"
        )
        warnings.warn(text, HeronWarning, stacklevel=5)
    return run


def _require_same(run: RunFolder, env: HeronEnv, base: str | None, settings: Hyperparameters) -> None:
    """Raise ConfigError unless `env` has the run's groups, columns and actions, and rule and activation are its own."""
    fault = run.misfit(env)
    if not fault and base != run.config.base:
        fault = f"the run corrects {run.config.base!r}, this one {base!r}"
    its = next(iter(run.config.groups.values())).activation
    if not fault and its != settings.activation:
        fault = f"the run has activation={its!r}, this one {settings.activation!r}"
    if fault:
        raise ConfigError(
            f"train(start_from={str(run.path)!r}): {fault}; give the run's env_options, residual and activation, or "
            "start anew"
        )


def _device(name: str) -> str:
    """Where weights are improved. Raises ConfigError."""
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise ConfigError(f"training needs torch ({error}); install it: pip install 'heron_env[train]'") from error
    require_one_of(f"train(device={name!r})", name, ("cpu", "cuda", "auto"))
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "train(device='cuda'): torch finds no card here; write device='auto', which then takes the CPU, or install "
            "a torch that is built for the card"
        )
    return "cuda" if name != "cpu" and torch.cuda.is_available() else "cpu"


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


# The course


class Training:
    """PPO for all groups at once, each with a policy of its own, or one for all; measured on the way.

    Args: plan: what is trained on what; rules: the baseline to correct, by agent; empty: none; validation: episodes to
        measure on; monitor: hears what happens, and says when to stop.

    Attributes: roles, scales, learners: one of each for each policy; transitions: decisions by group; the last ones may
        not have been learned from; episodes: what the policies earned in the last validation; kept_at: transitions
        after which the weights were those that are kept; None: all of them.
    """

    def __init__(self, plan: TrainingPlan, rules: Policies, validation: Validation, monitor: Monitor) -> None:
        from heron_env.lab.learning.ppo import Learner

        self.plan, self.validation, self.monitor, settings = plan, validation, monitor, plan.hyperparameters
        env, seed = plan.env, FIRST_SEED + SEEDS * plan.seed
        policies = [[*env.group_map]] if settings.shared else [[group] for group in env.group_map]
        self.roles = [Role(env, groups, rules) for groups in policies]
        central, self._built = plan.critic == "central", list[HeronEnv]()
        if plan.start is None:
            warm_up = self._batch(min(plan.lanes, WARM_UP_ENVS), seed + SEEDS // 2)
            self.scales = measure_rows(warm_up, self.roles, seed=plan.seed, discount=settings.gamma, central=central)
        else:
            self.scales = [Scales.of(plan.start.config.groups[role.groups[0]]) for role in self.roles]
        self._source = self._batch(plan.lanes, seed)
        self._seeds = [seed + lane // settings.twins for lane in range(plan.lanes)]
        self.learners = [
            Learner(
                plan.lanes * len(role.agents), role.width, (len(env.state_names) + role.identity) * central, role.spec,
                settings, corrects=role.corrects, masked=role.choices > 0, agents=len(role.agents), device=plan.device,
                seed=key(plan.seed, "lean", *role.groups) % 2**63,
            )
            for role in self.roles
        ]  # fmt: skip
        if plan.start is not None:
            for role, learner in zip(self.roles, self.learners, strict=True):
                _load(learner.network, plan.start, role.groups[0])
        self.transitions = dict.fromkeys(env.group_map, 0)
        self._signals = {group: [0.0, 0] for group in env.group_map}
        self._width = max(role.spec.size for role in self.roles)
        self.episodes = Episodes([], [])
        self.kept_at: int | None = None
        self._best, self._best_episodes, self._best_weights = -np.inf, self.episodes, list[Any]()
        self._until, self._began, self._rate = math.inf, 0.0, settings.learning_rate
        self._rows: Rows  # set by `begin`

    def _batch(self, lanes: int, seed: int) -> Any:
        """A batch that asks in rows, of environments that are built once, for warm-up and training alike."""
        plan, waiting = self.plan, iter(tuple(self._built))

        def next_one() -> HeronEnv:
            if (env := next(waiting, None)) is None:
                self._built.append(env := plan.make())
            return env

        return rows_of(
            next_one, lanes, seed=seed, schedule=plan.schedule, gamma=plan.hyperparameters.gamma,
            with_state=plan.critic == "central" or has_training_rewards(plan.env),
        )  # fmt: skip

    def run(self) -> None:
        """Train to the plan's transitions, until it is time, or until a callback stops it."""
        plan, monitor, settings, took = self.plan, self.monitor, self.plan.hyperparameters, 0.0
        measured = [number / plan.validations for number in range(1, plan.validations)]
        monitor.begin(self.transitions, self._share)
        if plan.validations and monitor.seconds + 2.0 * monitor.reserve < monitor.limit:
            self._measure()
        self.begin()
        self._began = monitor.seconds
        self._until = monitor.limit - monitor.reserve
        while (share := self._share(start := monitor.seconds)) < 1.0 and not monitor.due(self._until - took):
            final = settings.final_learning_rate
            self._rate = final + (settings.learning_rate - final) * (1.0 - share)
            if measured and share >= measured[0]:
                measured = [later for later in measured if later > share]
                if start + monitor.reserve + took < self._until:
                    self._measure()
                    start = monitor.seconds
            self._rollout(partial(monitor.due, self._until))
            took = monitor.seconds - start
        self._measure()
        if self._best_weights:
            self.episodes = self._best_episodes
        for learner, weights in zip(self.learners, self._best_weights, strict=False):
            learner.network.load_state_dict(weights)

    def _share(self, now: float) -> float:
        """In [0, 1]: done of the transitions or of the time, whichever is farther on; `now` in s of the monitor."""
        transitions = sum(self.transitions.values()) / (self.plan.total_steps * len(self.transitions))
        return min(max(transitions, (now - self._began) / max(self._until - self._began, 1e-9)), 1.0)

    def _rollout(self, stops: Callable[[], bool]) -> None:
        """Collect a rollout, and learn from it; neither goes on when it is time to stop."""
        self.collect(stops)
        if stops():
            return
        means = {group: total / count if count else math.nan for group, (total, count) in self._signals.items()}
        self._signals = {group: [0.0, 0] for group in self._signals}
        self.monitor.tell(RolloutEnded, signals=means)
        if losses := self.learn(stops):
            self.monitor.tell(PolicyUpdated, losses=losses)

    def begin(self) -> None:
        """Begin an episode in every lane."""
        self._take(self._source.reset(self._seeds))

    def collect(self, stops: Callable[[], bool] = bool) -> None:
        """A rollout, noted by the learners; less, once `stops` says so."""
        enough = sum(self.transitions.values()) + self.plan.rollout
        while sum(self.transitions.values()) < enough and not stops():
            self._take(self._source.answer(self._decide(self._rows)))

    def learn(self, stops: Callable[[], bool] = bool) -> dict[str, dict[str, float]]:
        """Improve all policies on what was noted, until `stops` says so: the losses of each, where there are any."""
        losses = {
            "+".join(role.groups): learner.learn(self._rate, stops)
            for role, learner in zip(self.roles, self.learners, strict=True)
        }
        return {groups: {**some, "learning_rate": self._rate} for groups, some in losses.items() if some}

    def _take(self, rows: Rows) -> None:
        """What has ended, then what waits for actions."""
        self._rows = rows
        for role, scales, learner in self._students():
            for each in (rows.ended, rows):
                mine = role.part(each)
                if mine.start == mine.stop:
                    continue
                inputs, brought = role.scaled(each, scales)
                if isinstance(each, Rows):
                    learner.ask(inputs, brought)
                else:
                    learner.end(inputs, brought, each.truncated[mine] & ~each.terminated[mine])
                for group in role.groups:
                    part = slice(each.parts[group].start - mine.start, each.parts[group].stop - mine.start)
                    earned = role.earned(each)[part][~inputs.first[part]]
                    self.transitions[group] += earned.size
                    self._signals[group][0] += float(earned.sum())
                    self._signals[group][1] += earned.size

    def _decide(self, rows: Rows) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Actions of all rows."""
        actions = np.zeros((len(rows), self._width))
        for role, learner in zip(self.roles, self.learners, strict=True):
            mine = role.part(rows)
            if mine.start < mine.stop:
                outputs = learner.decide()
                actions[mine, : outputs.shape[1]] = role.act(rows, outputs)
        return actions

    def _measure(self) -> None:
        """What is earned now; the best weights are kept, if they are wanted."""
        monitor, plan = self.monitor, self.plan
        start = monitor.seconds
        self.episodes = self.validation.measure(self.policies(), monitor.tick)
        monitor.reserve = monitor.seconds - start
        root, under = map(Earned.mean, self.episodes)
        if self.validation.cases:
            monitor.tell(
                PolicyValidated, root_return=root.value, group_returns=root.by_group,
                return_under_schedule=under.value if self.episodes.under else None,
            )  # fmt: skip
        earned = (root if plan.schedule is None else under).value
        if plan.hyperparameters.keep_best and not earned <= self._best:
            self._best, self._best_episodes = earned, self.episodes
            self.kept_at = sum(self.transitions.values())
            self._best_weights = [copy.deepcopy(learner.network.state_dict()) for learner in self.learners]

    def policies(self) -> dict[str, NetworkPolicy | RememberingPolicy]:
        """The deterministic policies as they are now, by agent."""
        result: dict[str, NetworkPolicy | RememberingPolicy] = {}
        for role, scales, learner in self._students():
            weights, spec, settings = learner.network.state_dict(), role.spec, self.plan.hyperparameters
            network, log_std = network_of(weights, settings.activation)
            recurrent = recurrent_of(weights) if settings.gru else None
            for agent in role.agents:
                act = act_of(spec.low, spec.high, tuple(map(int, spec.ncats)), role.rules.get(agent))
                decides = NetworkPolicy(network, scales.obs, act, log_std=log_std)
                result[agent] = decides if recurrent is None else RememberingPolicy(decides, recurrent=recurrent)
        return result

    def groups(self) -> tuple[dict[str, GroupConfig], dict[str, bytes]]:
        """What config.json keeps of each group, and its weights as a file."""
        configs, models, activation = {}, {}, self.plan.hyperparameters.activation
        for role, scales, learner in self._students():
            for group in role.groups:
                configs[group] = group_config(
                    self.plan.env, group, scales.obs, scales.reward, state=scales.state, activation=activation
                )
                models[group] = packed_weights(learner.network.state_dict())
        return configs, models

    def _students(self) -> Iterator[tuple[Role, Scales, Any]]:
        return zip(self.roles, self.scales, self.learners, strict=True)


def _load(network: Any, run: RunFolder, group: str) -> None:
    """Put the run's actor, critic and spread into a network, read without unpickling. Raises ConfigError."""
    import torch

    try:
        network.load_state_dict({name: torch.from_numpy(array) for name, array in run.weights(group).items()})
    except RuntimeError as error:
        its = run.config.hyperparameters
        raise ConfigError(
            f"train(start_from={str(run.path)!r}): its network has hidden layers {its.get('hidden')} and "
            f"{its.get('gru', 0)} units that remember; give Hyperparameters(hidden=..., gru=...) the same, or start "
            "anew"
        ) from error


# Validation


class Episodes(NamedTuple):
    """What the validation episodes yielded on the synchronous clock, and under the schedule, if there is one."""

    sync: list[Earned]
    under: list[Earned]


class _EnoughError(Exception):
    """Ends a validation between two episodes."""


class Validation:
    """A few validation episodes in the environment of a plan, on both clocks if there is a schedule: a Study."""

    def __init__(self, plan: TrainingPlan, episodes: int) -> None:
        self.dt, self.cases = plan.env.dt, list[benchmark.Case]()
        if episodes:
            self.cases = benchmark.cases(plan.env, episodes, split="validation")
        self._study = Study(
            env=spec_of(plan.env_id), options=plan.options, policies={}, cases=self.cases, record=(),
            conditions=[SYNC] if plan.schedule is None else [SYNC, Scheduled(plan.schedule)],
        )  # fmt: skip
        if self.cases and not self.cases[0].options:
            self._study.worlds.keep(self._of({}).items()[0], plan.env)

    def _of(self, policies: Policies) -> Study:
        return replace(self._study, policies={"": InMemory(policies)})

    def measure(self, policies: Policies, stops: Callable[[], object] = bool) -> Episodes:
        """What they yield; `stops` is called before each episode, and nothing is yielded if it says so."""
        study, by_clock = self._of(policies), Episodes([], [])

        def look(_: object) -> None:
            if stops():
                raise _EnoughError

        try:
            records = study.play(progress=look)
        except _EnoughError:
            return by_clock
        for item in study.items():
            figures = records[item.key].outcome
            earned = by_clock.sync if item.condition == SYNC else by_clock.under
            earned.append(Earned(figures.value, figures.by_group))
        return by_clock

    def __str__(self) -> str:
        """`8 validation episodes at dt = 900 s`."""
        return f"{len(self.cases)} validation episodes" + (f" at dt = {self.dt:g} s" if self.cases else "")


def _measured(plan: TrainingPlan, validation: Validation, monitor: Monitor) -> tuple[Policies, dict[str, Episodes]]:
    """The rules to correct, by agent, and what each baseline earns, in a third of the time at the most."""
    offered = benchmark.baselines(plan.env, plan.seed)
    if plan.base is not None and (base := benchmark.baseline(plan.env, plan.base, plan.seed)) is not None:
        offered[plan.base] = base  # it may be named with constants
    rules = benchmark.by_agent(offered[plan.base], plan.env) if plan.base else {}
    until = monitor.seconds + (monitor.limit - monitor.seconds) / 3.0
    first = [name for name in (plan.base, RANDOM, NOTHING) if name is not None]
    earned = dict[str, Episodes]()
    for name in dict.fromkeys([*first, *offered]):
        start = monitor.seconds
        earned[name] = validation.measure(offered[name], lambda: monitor.due(until))
        monitor.reserve = max(monitor.reserve, monitor.seconds - start) if name in first else monitor.reserve
    return rules, {name: earned[name] for name in offered}


def _print_baselines(earned: Mapping[str, Sequence[Earned]], return_of: str, title: str) -> None:
    """A table of mean returns with 95 % intervals, and paired differences to doing nothing, the best first.

    Args: earned: by policy, the same episodes in the same order for all; return_of: the root of the hierarchy; title:
        above the table.
    """
    returns = {name: [episode.value for episode in episodes] for name, episodes in earned.items() if episodes}
    groups = groups_apart([episode for episodes in earned.values() for episode in episodes])
    nothing, rows = returns.get(NOTHING), []
    for name in sorted(returns, key=lambda name: -mean_interval(returns[name]).mean):
        gain = "" if nothing is None or name == NOTHING else str(paired_difference(returns[name], nothing))
        by_group = [Earned.mean(earned[name]).words(groups)] if groups else []
        rows.append([name, str(mean_interval(returns[name])), gain, *by_group])
    late = ", ".join(name for name in earned if name not in returns)
    head = [
        "policy",
        f"return of {return_of} [95 %]",
        "against doing nothing [95 %]",
        *["return of each group"][: len(groups)],
    ]
    table = TextTable(title, head, rows, note=f"Not measured, for lack of time: {late}" if late else "")
    if rows:
        terminal().print(*table.to_rich())


# The run folder


def unfinished(folder: Path) -> str:
    """What a training that was stopped leaves in its run folder."""
    begun = any(file.read_bytes().count(b"\n") > 1 for file in folder.glob("progress*.csv"))
    course = f"its course so far is in {folder}" if begun else "nothing of it is kept"
    return f"Training was not finished; {course}"


def _config(
    plan: TrainingPlan, groups: dict[str, GroupConfig], training: Training, earned: Mapping[str, Episodes]
) -> RunConfig:
    """`earned`: by policy, in validation."""
    sync, under = ({name: Earned.mean(both[i]) for name, both in earned.items() if both[i]} for i in range(2))
    monitor, settings = training.monitor, plan.hyperparameters
    return RunConfig(
        env_id=plan.env_id, env_options=plan.env_options, training_options=plan.training_options, trainer="lean",
        device=plan.device, base=plan.base, seed=plan.seed, critic=plan.critic,
        schedule=None if plan.schedule is None else as_dict(plan.schedule),
        start_from=None if plan.start is None else str(plan.start.path),
        transitions=monitor.steps, kept_at=training.kept_at, seconds=round(monitor.seconds, 1),
        compile_seconds=round(monitor.stopwatch.compiled, 1),
        deterministic=plan.time_limit is None and not monitor.stopped,
        hyperparameters={**asdict(settings), "hidden": list(settings.hidden)},
        groups=groups, return_of=plan.env.hierarchy.ids[0],
        validation={name: mean.value for name, mean in sync.items()},
        validation_under_schedule={name: mean.value for name, mean in under.items()},
        validation_by_group={name: dict(mean.by_group) for name, mean in sync.items()}, versions=versions(),
    )  # fmt: skip


__all__ = ["Hyperparameters", "train"]
