"""Train one PPO policy per group and leave a run folder behind."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from heron_env.envs.overlooked import warn_of_overlooked
from heron_env.envs.training_delays import TrainingDelays
from heron_env.errors import ConfigError
from heron_env.files.writing import write
from heron_env.given import mapping, path_of
from heron_env.lab import benchmark
from heron_env.lab.benchmark import NOTHING
from heron_env.lab.learning.curve import Curve
from heron_env.lab.learning.group import GroupTraining
from heron_env.lab.learning.plan import DEFAULT, Hyperparameters, Plan, make_plan
from heron_env.lab.learning.validation import Validation, print_baselines
from heron_env.lab.progress import bar
from heron_env.lab.run_groups import GroupConfig
from heron_env.lab.runs import RunConfig, RunFolder, files_of_run, unused, versions


def train(
    env_id: str,
    run_dir: str | Path,
    *,
    total_steps: int,
    seed: int = 0,
    env_options: Mapping[str, Any] | None = None,
    training_options: Mapping[str, Any] | None = None,
    training_delays: TrainingDelays | None = None,
    residual: str | None = DEFAULT,
    time_limit: float | None = None,
    hyperparameters: Hyperparameters | None = None,
    critic: str = "local",
    start_from: str | Path | None = None,
    validations: int = 6,
    validation_episodes: int = 8,
    progress: bool = True,
) -> RunFolder:
    """Train on `env_id` and write `run_dir`; the same arguments give the same weights, unless a time limit ends it.

    One policy per group, shared by its agents; the groups are trained one after the other, those trained before acting
    beside, and for those to come the baseline that they will correct, or nothing. At the end the validation returns of
    the trained policies and of all baselines (random always among them) are printed. Test cases are not touched.
    A HeronWarning tells of what the environment's author wrote and nothing calls, and where nobody earns anything.

    Args:
        env_id: a registered environment, or "module:function" of one's own.
        run_dir: folder for the run; it takes the place of a former one there when it is finished, not before.
        total_steps: transitions of each group, one agent's step being one; rounded up to whole rollouts.
        seed: of networks, exploration and episodes.
        env_options: of `make()`; evaluation will use them too.
        training_options: on top of them while training; None: the environment's own choice (say, a coarser step).
        training_delays: how late agents see and act while training, and in the validation on the way; the run folder
            keeps them, evaluation does without.
        residual: name of the baseline that the policy corrects; None: it decides alone; "default": the environment's
            choice.
        time_limit: stop cleanly after so many seconds of training in all, if not done before.
        hyperparameters: of PPO; None: the environment's own choice, where training_options are its own, too.
        critic: "central": values are estimated from the whole state as well; what acts and is saved for acting sees
            what its agent sees, either way. "local": from that alone.
        start_from: a finished run to go on from: actor, critic and scales are its own, the optimizer begins anew. It
            must be of the same environment, critic and groups with the same columns and actions. What is not given
            here is taken from there: env_options, residual, hyperparameters; its training options are not.
        validations: how often the deterministic policy is measured on the way.
        validation_episodes: episodes of each measurement.
        progress: show a bar, where a terminal or a notebook shows it, and print the final table.

    Raises:
        RunFolderError: `start_from` is no finished run.
        ConfigError: an argument is wrong, `start_from` does not fit, or Stable-Baselines3 is missing (install the extra
            `train`).
    """
    began = time.monotonic()
    _require_training_extra()
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
    )
    env = plan.make()
    warn_of_overlooked(env)
    validation = Validation(env, plan.env_id, plan.options, validation_episodes)
    offered = benchmark.baselines(env, seed)
    rules = benchmark.by_agent(offered[plan.base], env) if plan.base else {}
    acting = {**benchmark.by_agent(offered[NOTHING], env), **rules}
    former = files_of_run(plan.run_dir)
    taken = set(former)
    curve_name = unused("progress", ".csv", taken)
    returns = {name: validation.returns(policies) for name, policies in offered.items()}
    started = time.monotonic()  # what those episodes had to compile at the first use is not the training's time
    kept: dict[str, GroupConfig] = {}
    transitions = 0
    curve = Curve(plan.run_dir / curve_name, started)
    with _one_thread():
        for number, group in enumerate(env.group_map):
            deadline = None if time_limit is None else started + time_limit * (number + 1) / len(env.group_map)
            course = GroupTraining(plan, env, group, acting, rules, validation)
            with bar(group, progress) as tell:
                course.run(curve, tell, deadline)
            kept[group] = course.config.model_copy(update={"model": unused(group, ".zip", taken)})
            write(plan.run_dir / kept[group].model, _saved(course.model))
            acting.update(course.policies())
            transitions += course.model.num_timesteps
    returns = {"trained": validation.returns(acting), **returns}
    config = _config(plan, kept, transitions, time.monotonic() - began, returns)
    folder = RunFolder(plan.run_dir, config.model_copy(update={"curve": curve_name}))
    folder.write()
    for name in former:  # only now: until then that run was whole
        (plan.run_dir / name).unlink(missing_ok=True)
    if progress:
        print_baselines(returns, title=f"{env_id}, {validation}")
    return folder


def _saved(model: Any) -> bytes:
    """The file of a Stable-Baselines3 model."""
    packed = io.BytesIO()
    model.save(packed)
    return packed.getvalue()


def _require_training_extra() -> None:
    try:
        import stable_baselines3  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"training needs Stable-Baselines3 ({error}); install it: pip install 'heron_env[train]'"
        ) from error


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
    plan: Plan, groups: dict[str, GroupConfig], transitions: int, seconds: float, returns: Mapping[str, list[float]]
) -> RunConfig:
    return RunConfig(
        env_id=plan.env_id,
        env_options=plan.env_options,
        training_options=plan.training_options,
        training_delays=plan.delays,
        base=plan.base,
        start_from=None if plan.start is None else str(plan.start.path),
        seed=plan.seed,
        transitions=transitions,
        seconds=round(seconds, 1),
        deterministic=plan.time_limit is None,
        hyperparameters={**asdict(plan.hyperparameters), "hidden": list(plan.hyperparameters.hidden)},
        critic=plan.critic,
        groups=groups,
        validation={name: float(np.mean(values)) for name, values in returns.items() if values},
        versions=versions(),
    )


__all__ = ["Hyperparameters", "train"]
