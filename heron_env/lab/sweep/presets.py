"""Presets: sweeps with a name. Delays are in units of the control step dt where nothing else is said.

An effect is timed to dt / substeps: delays below that show nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError, did_you_mean
from heron_env.given import is_one_of
from heron_env.lab.sweep.conditions import IDEAL, Condition, along, coalitions, grid, one_at_a_time, unique
from heron_env.scheduling.sources import GilbertElliott

P_BAD: Final = (0.01, 0.08)
P_GOOD: Final = (0.08, 0.5)
LOSS_BAD: Final = (0.9, 1.0)
LOSS_GOOD: Final = (0.0, 0.02)
ONE_WAY: Final = (0.1, 0.4)
"""In-flight communication, direct air to ground and by satellite: least and greatest of each parameter of bursty
losses, and of the one-way delay in s. Quoted at second hand: a public description of experiments ("pos2") has these
ranges from the thesis of F. Michel (UCLouvain). The setting is that of F. Michel, Q. De Coninck, O. Bonaventure,
"QUIC-FEC: Bringing the benefits of Forward Erasure Correction to QUIC", IFIP Networking 2019. Losses come in bursts of
1 / p_good messages in the mean, 2 to 12.5.
"""


def in_flight_losses(period: float) -> GilbertElliott:
    """Losses with the middle of each range, 13.6 % in the mean.

    Args:
        period: s. The published chain moves with every packet: give the time from message to message of a link.
    """
    p_bad, p_good, loss_bad, loss_good = (
        round(0.5 * (low + high), 6) for low, high in (P_BAD, P_GOOD, LOSS_BAD, LOSS_GOOD)
    )
    return GilbertElliott(p_bad, p_good, loss_bad, loss_good, period)


ENERGY: Final = "heron/EnergyManagement-v1"


@dataclass(frozen=True)
class Preset:
    """A named sweep.

    Attributes: summary: what it is, in one line; conditions: from the control step in s; cases: how many, unless
        somebody says otherwise; env_id: where it runs unless another environment is named; options: of that
        environment; others keep theirs.
    """

    name: str
    summary: str
    conditions: Callable[[float], list[Condition]]
    cases: int = 5
    env_id: str = ENERGY
    options: Mapping[str, Any] = field(default_factory=dict)

    def conditions_in(self, env: Any) -> list[Condition]:
        """Those of an environment; in a black box nobody measures anew, so they have no noise."""
        conditions = self.conditions(env.dt)
        return unique(each.but(noise=0.0) for each in conditions) if not isinstance(env, HeronEnv) else conditions


def realistic(dt: float) -> Condition:
    """Six causes together, each as a control system over a radio network may have it."""
    return Condition(obs_delay=0.1 * dt, msg_delay=0.1 * dt, act_delay=0.5 * dt, jitter=0.2, loss=0.05, noise=0.1)


def _delays(dt: float) -> list[Condition]:
    return along(act_delay=(0.0, dt / 2, dt, 2 * dt))


def _quick(dt: float) -> list[Condition]:
    return unique([*one_at_a_time(realistic(dt)), *along(act_delay=(dt,))])


def _reference(dt: float) -> list[Condition]:
    act = [x * dt for x in (0.0, 0.1, 0.25, 0.5, 1.0)]
    message = [x * dt for x in (0.0, 0.05, 0.1, 0.5, 1.0)]
    jitter, ratio = (0.0, 0.05, 0.1, 0.2, 0.3), (1.0, 4.0, 16.0, 48.0)
    return unique(
        [
            IDEAL,
            *along(act_delay=act, msg_delay=message, jitter=jitter, tick_ratio=ratio),
            *grid(act_delay=act, jitter=jitter),
            *grid(msg_delay=message, tick_ratio=ratio),
        ]
    )


def _scada(dt: float) -> list[Condition]:
    whole = Condition(
        obs_delay={"field": 0.3},
        msg_delay={"field": 0.05, "coordinator": 0.1, "system": 0.2},
        jitter={"field": 0.1, "coordinator": 0.05, "system": 0.02},
        tick_ratio={"field": 1.0 / dt, "coordinator": 60.0 / dt, "system": 300.0 / dt},
    )
    return one_at_a_time(whole)


def _bursts(dt: float) -> list[Condition]:
    losses = in_flight_losses(dt)
    late = 0.5 * sum(ONE_WAY)
    return [IDEAL, *along(loss=(round(losses.mean, 6), losses)), Condition(loss=losses, msg_delay=late)]


def _faults(dt: float) -> list[Condition]:
    network = realistic(dt)
    return [network, Condition(synchronous=True, disturbances="all"), network.but(disturbances="all")]


PRESETS: Final = {
    preset.name: preset
    for preset in (
        Preset("delays", "actions that are late by 0, 1/2, 1 and 2 control steps", _delays, cases=10),
        Preset("quick", "each of six causes alone, and all together; half a minute", _quick, cases=3),
        Preset(
            "reference",
            "action and message delay, jitter, tick ratio, action delay x jitter, message delay x tick ratio",
            _reference,
        ),
        Preset(
            "scada",
            "30 minutes of a control room: field every second, coordinators every minute, system every 5 minutes",
            _scada,
            options={"dt": 1.0, "physics_substeps": 20, "max_steps": 1800},
        ),
        Preset(
            "decomposition",
            "every subset of six causes: exact Shapley values of the gap",
            lambda dt: coalitions(realistic(dt)),
        ),
        Preset(
            "bursts",
            "losses of a link to an aeroplane, in bursts and, as many, one by one; with its delay",
            _bursts,
            cases=10,
        ),
        Preset(
            "faults",
            "network, faults, both and neither: do they make each other worse?",
            _faults,
            cases=10,
        ),
    )
}


def preset(name: str) -> Preset:
    """The preset of that name. Raises ConfigError with the nearest one."""
    if not is_one_of(name, PRESETS):
        raise ConfigError(f"preset {name!r}: must be one of {list(PRESETS)}.{did_you_mean(name, PRESETS)}")
    return PRESETS[name]
