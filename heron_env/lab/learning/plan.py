"""What is to be trained on what: the caller's wishes, completed by the environment's own defaults."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args

from heron_env.adapters.slots import require_critic
from heron_env.envs.base import HeronEnv
from heron_env.envs.description import TrainingDefaults
from heron_env.envs.training_delays import TrainingDelays
from heron_env.errors import ConfigError, HeronWarning, RunFolderError, did_you_mean
from heron_env.given import is_number, refuse_removed, require_one_of, several, whole
from heron_env.lab import benchmark
from heron_env.lab.learning.resolution import require_resolved
from heron_env.lab.runs import RunFolder
from heron_env.lab.trained import Activation, on_vectors
from heron_env.registry import make
from heron_env.scheduling.drawn import AnySchedule, DrawnSchedule
from heron_env.scheduling.timing import ScheduleConfig
from heron_env.trust import on_behalf_of


def open_run(start_from: str | Path, env_id: str, critic: str) -> RunFolder:
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
    return run


def require_same(run: RunFolder, env: HeronEnv, base: str | None, settings: Hyperparameters) -> None:
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


def load_weights(policy: Any, run: RunFolder, group: str) -> None:
    """Put the run's actor, critic and spread into a network, read without unpickling.

    Raises ConfigError.
    """
    import torch

    try:
        policy.load_state_dict({name: torch.from_numpy(array) for name, array in run.weights(group).items()})
    except RuntimeError as error:
        its = run.config.hyperparameters
        raise ConfigError(
            f"train(start_from={str(run.path)!r}): its network has hidden layers {its.get('hidden')} and "
            f"{its.get('gru', 0)} units that remember; give Hyperparameters(hidden=..., gru=...) the same, or start "
            "anew"
        ) from error


DEFAULT = "default"
MOST, MOST_UNITS = 10**8, 10**4
DELAYS = "training_delays"
OF_VALUES = "it was of VDN and QMIX; train them with BenchMARL on a HeronTask (docs/use_with/benchmarl.md)"
REMOVED = {
    **dict.fromkeys(("replay", "exploration", "final_epsilon", "tau", "mixer"), OF_VALUES),
    "frames": (
        "for memory write gru=...; SuperSuit's frame_stack_v1 stacks observations for other trainers, VecFrameStack "
        "those of a HeronVecEnv for Stable-Baselines3 (docs/use_with/supersuit.md)"
    ),
    "augment": (
        "for memory write gru=...; a wrapper around the environment shows an agent its own last actions, for other "
        "trainers (docs/how_to/remedies.md)"
    ),
}
"""Hyperparameters of earlier versions, which run folders may have."""


@dataclass(frozen=True)
class Hyperparameters:
    """Of a training.

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

    @refuse_removed("Hyperparameters", REMOVED)
    def __new__(cls, *_: Any, **__: Any) -> Hyperparameters:
        """Raise ConfigError for one of an earlier version."""
        return super().__new__(cls)

    @classmethod
    def of(cls, env_id: str, defaults: TrainingDefaults) -> Hyperparameters:
        """Those that an environment is best trained with. Raises ConfigError for a name that there is not."""
        names = [field.name for field in fields(cls)]
        for name in defaults.hyperparameters:
            if name not in names:
                raise ConfigError(
                    f"{env_id}: training_defaults() has the hyperparameter {name!r}; there are {names}."
                    f"{did_you_mean(name, names)}"
                )
        return cls(**defaults.hyperparameters)

    def first_log_std(self, corrects: bool) -> float:
        """Where exploration begins, for a policy that corrects a rule or one that decides alone."""
        if self.log_std is not None:
            return self.log_std
        return -2.0 if corrects else 0.0


@dataclass(frozen=True)
class Plan:
    """What is trained on what: everything that `train()` was asked for, with the environment's defaults filled in."""

    env_id: str
    run_dir: Path
    env_options: dict[str, Any]
    training_options: dict[str, Any]
    base: str | None
    total_steps: int
    seed: int
    time_limit: float | None
    hyperparameters: Hyperparameters
    validations: int
    critic: str = "local"
    delays: TrainingDelays | None = None
    start: RunFolder | None = None
    schedule: AnySchedule = None
    device: str = "cpu"

    def make(self) -> HeronEnv:
        """An environment to train on."""
        return make(self.env_id, **self.options)

    @property
    def options(self) -> dict[str, Any]:
        """All options of that environment."""
        late = {} if self.delays is None else {DELAYS: self.delays}
        return {**self.env_options, **self.training_options, **late}


def make_plan(
    env_id: str,
    run_dir: Path,
    env_options: dict[str, Any],
    training_options: Mapping[str, Any] | None,
    residual: str | None,
    *,
    total_steps: int,
    seed: int,
    time_limit: float | None,
    hyperparameters: Hyperparameters | None,
    validations: int,
    critic: str = "local",
    delays: TrainingDelays | None = None,
    start_from: str | Path | None = None,
    schedule: AnySchedule = None,
) -> Plan:
    """Fill in the environment's defaults. Raises ConfigError."""
    _require_numbers({"total_steps": (total_steps, 1), "seed": (seed, 0), "validations": (validations, 0)}, time_limit)
    require_critic(critic, "train")
    _require_delays(delays, env_options)
    start = None if start_from is None else open_run(start_from, env_id, critic)
    if start is not None:
        env_options = {**start.config.env_options, **env_options}
        residual = start.config.base if residual == DEFAULT else residual
        hyperparameters = hyperparameters or _settings(start)
    with on_behalf_of("" if start is None else str(start.path / "config.json")):
        env = make(env_id, **env_options)
    require_trainable(env, env_id)
    if start is not None:
        require_same(start, env, residual, hyperparameters or _settings(start))
    defaults = env.training_defaults() if schedule is None else env.training_defaults().scheduled()
    chosen = (
        {k: v for k, v in defaults.options.items() if k not in env_options}
        if training_options is None
        else dict(training_options)
    )
    delays = chosen.pop(DELAYS, None) if delays is None else delays
    if schedule is not None:
        _require_schedule(schedule, delays, env)
        with on_behalf_of("" if start is None else str(start.path / "config.json")):
            trained_in = make(env_id, **{**env_options, **chosen}) if chosen else env
        for note in require_resolved(schedule, env, trained_in, chosen):
            warnings.warn(f"train(schedule=...): {note}", HeronWarning, stacklevel=4)
    base = defaults.base if residual == DEFAULT else residual
    if base is not None:
        _require_correctable(env, env_id, base, seed)
    settings = hyperparameters or Hyperparameters.of(
        env_id, defaults if training_options is None else TrainingDefaults()
    )
    _require_able(settings)
    return Plan(
        env_id, run_dir, env_options, chosen, base, total_steps, seed, time_limit, settings, validations, critic,
        delays, start, schedule,
    )  # fmt: skip


def require_trainable(env: object, env_id: str) -> None:
    """Raise ConfigError for a black box."""
    if not isinstance(env, HeronEnv):
        raise ConfigError(
            f"train({env_id!r}): is a black box, {type(env).__name__}; this trainer runs the rules of a HeronEnv. "
            "Train under_network(env, ...) with any trainer of PettingZoo or Gymnasium: Stable-Baselines3, CleanRL, "
            "TorchRL, RLlib (docs/recipes/under_network.md)"
        )


def _require_numbers(numbers: Mapping[str, tuple[object, int]], time_limit: float | None) -> None:
    """Raise ConfigError for one that is no whole number of at least so much, and for a time limit that is none."""
    for name, (value, least) in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(f"train({name}={value!r}): must be a whole number >= {least}")
    if time_limit is not None and not time_limit > 0.0:
        raise ConfigError(f"train(time_limit={time_limit!r}): must be > 0 s, or None")


def _require_delays(delays: object, env_options: Mapping[str, Any]) -> None:
    """Raise ConfigError for what are none, or stand among the options that evaluation uses too."""
    if DELAYS in env_options:
        raise ConfigError(
            f"train(env_options=...): {DELAYS} are of training alone; write train({DELAYS}={env_options[DELAYS]!r})"
        )
    if not isinstance(delays, TrainingDelays | None):
        raise ConfigError(f"train(training_delays={delays!r}): must be a TrainingDelays, or None")


def _require_correctable(env: HeronEnv, env_id: str, base: str, seed: int) -> None:
    """Raise ConfigError unless `base` is a baseline that decides on vectors, and not by chance."""
    corrected = None if base == benchmark.RANDOM else benchmark.baseline(env, base, seed)
    if corrected is None:
        offered = [name for name in benchmark.baselines(env, seed) if name != benchmark.RANDOM]
        raise ConfigError(
            f"train(residual={base!r}): {env_id} has the baselines {offered} to correct.{did_you_mean(base, offered)}"
        )
    for policy in corrected.values():
        on_vectors(policy)


def _require_schedule(schedule: AnySchedule, delays: TrainingDelays | None, env: HeronEnv) -> None:
    """Raise ConfigError unless it is a schedule and alone, ScheduleError unless it is of this environment's agents."""
    if delays is not None:
        raise ConfigError(
            f"train(schedule=..., training_delays={delays!r}): delays of the synchronous clock exclude a schedule of "
            "the event clock; give one of them"
        )
    if not isinstance(schedule, ScheduleConfig | Mapping | DrawnSchedule):
        raise ConfigError(
            f"train(schedule={schedule!r}): must be a ScheduleConfig, a mapping of them, or a DrawnSchedule; "
            "write ScheduleConfig(msg_delay=3.0)"
        )
    env.timings_of(schedule.at(0, 0) if isinstance(schedule, DrawnSchedule) else schedule)


def _require_able(settings: Hyperparameters) -> None:
    """Raise ConfigError for what can't be trained with."""
    require_one_of(f"Hyperparameters(activation={settings.activation!r})", settings.activation, get_args(Activation))
    bounds = {
        **dict.fromkeys(("num_envs", "n_steps", "batch_size", "n_epochs"), (1, MOST)),
        "gru": (0, MOST_UNITS),
        "twins": (1, settings.num_envs),
    }
    for name, (least, most) in bounds.items():
        whole(getattr(settings, name), f"Hyperparameters({name})", least, most)
    for units in several(settings.hidden, "Hyperparameters(hidden)"):
        whole(units, "Hyperparameters(hidden)", 1, MOST)
    if settings.num_envs % settings.twins:
        raise ConfigError(
            f"Hyperparameters(num_envs={settings.num_envs}, twins={settings.twins}): num_envs must be a multiple of it"
        )
    for name in ("gamma", "gae_lambda", "learning_rate", "final_learning_rate"):
        if not (is_number(value := getattr(settings, name)) and 0.0 <= value <= 1.0):
            raise ConfigError(f"Hyperparameters({name}={value!r}): must be a number between 0 and 1")
    if settings.log_std is not None and not is_number(settings.log_std):
        raise ConfigError(f"Hyperparameters(log_std={settings.log_std!r}): must be a number, or None")


def _settings(run: RunFolder) -> Hyperparameters:
    """Those of the run. Raises RunFolderError where they are none."""
    kept = {name: value for name, value in run.config.hyperparameters.items() if name not in REMOVED}
    try:
        return Hyperparameters(**{**kept, "hidden": tuple(kept["hidden"])})
    except (KeyError, TypeError) as error:
        raise RunFolderError(
            f"{run.path / 'config.json'}: hyperparameters: {error}; restore the file, or give hyperparameters"
        ) from error
