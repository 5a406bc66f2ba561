"""The check of masks: their form, that they leave a choice, and that what they offer at a boundary falls there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from heron_env.core.masking import flat, parts
from heron_env.envs.base import HeronEnv
from heron_env.testing.findings import Remark, failed, passed
from heron_env.testing.subject import Subject

_FORM = "leave infos['action_mask'] to the rule action_mask: HeronEnv gives it the form that space.sample(mask) takes"


def masks(subject: Subject) -> Iterator[Remark]:
    """Masks fit their action spaces, leave a choice, and what they allow takes effect."""
    env = subject.build()
    for space in env.action_spaces.values():
        space.seed(subject.seed)
    _, infos = env.reset(seed=subject.seed)
    asked = bound = 0
    for _ in range(subject.steps):
        actions: dict[str, Any] = {}
        for agent in env.agents:
            fault, actions[agent] = _allowed(env, agent, infos[agent])
            if fault:
                yield failed(f"at step {env.simulation.step_index} the mask of {agent} {fault}", _FORM)
                return
            if "action_mask" in infos[agent] and infos[agent]["is_active"]:
                asked, bound = asked + 1, bound + int(flat(infos[agent]["action_mask"]).min() == 0)
        if not env.agents:
            break
        ranks, prompt = [env.hierarchy.index[agent] for agent in env.agents], env.training_delays is None
        _, _, _, _, infos = env.step(actions)
        refused = [rank for rank in ranks if prompt and env.simulation.mechanics.masked[rank]]
        if refused:
            yield failed(
                f"step {env.simulation.step_index} masked a choice of {env.hierarchy.ids[refused[0]]} that was offered",
                "offer what action_mask says of the observation: leave infos and observations to HeronEnv",
            )
            return
    if asked:
        yield passed(f"they forbid something in {bound / asked:.0%} of decisions")


def _allowed(env: HeronEnv, agent: str, info: Mapping[str, Any]) -> tuple[str, Any]:
    """What is wrong with the agent's mask, and an action that it allows."""
    mask, spec = info.get("action_mask"), env.simulation.specs[env.hierarchy.index[agent]]
    try:
        action = env.action_space(agent).sample(mask)
    except Exception as error:  # noqa: BLE001  Gymnasium's assertions, and whatever odd forms stumble over
        return f"does not fit its space: {error}", None
    if mask is not None and not all(flat(mask)[part].any() for part in parts(spec)):
        return "forbids everything", None
    return "", action
