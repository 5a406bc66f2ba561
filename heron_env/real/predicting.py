"""What policies will earn over a measured network: event-driven episodes on the same seeds, before anything is real."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np

from heron_env.core.policy import Policies
from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError
from heron_env.given import mapping, require_switch, require_type, several, whole
from heron_env.lab.benchmark import NOTHING, SPLITS, baselines
from heron_env.lab.episodes import team_return
from heron_env.lab.output import TextTable, with_unit
from heron_env.lab.robust_stats import LEVEL, Estimate, Intervals
from heron_env.real.network import Network
from heron_env.scheduling.drawn import AnySchedule

Returns = tuple[float, ...]
MEASURED, SYNCHRONOUS = "measured", "synchronous"
CERTAIN: Final = 0.999
"""A higher probability is none that so few figures tell."""


class Pair(NamedTuple):
    """Two policies over the network.

    Attributes:
        difference: of their mean returns, paired by seed.
        probability: that the mean of `better` is the higher one, by Student's t of the differences: the posterior under
            a flat prior, and one minus the p-value of one side.
        decided: is the difference none of chance, at 5 % for all pairs together? (S. Holm, "A simple sequentially
            rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979)
    """

    better: str
    worse: str
    difference: Estimate
    probability: float
    decided: bool

    def __str__(self) -> str:
        """A sentence."""
        chance = f"{100.0 * min(self.probability, CERTAIN):.1f} %{' at least' if self.probability > CERTAIN else ''}"
        end = "" if self.decided else "; not decided"
        return f"{self.better!r} earns {self.difference} more than {self.worse!r} (probability {chance}){end}"


@dataclass(frozen=True)
class Prediction:
    """Prediction of returns; intervals are of 95 % over the seeds, and take the measured network as exact.

    Attributes:
        seeds: of the episodes, the same for all.
        returns: of the team, by policy and then by what was run: "measured", over the network; "synchronous"; and by
            each cause that was switched off. By seed each.
        nothing: of doing nothing on the synchronous clock, over which policies gain.
        unit: of returns.
    """

    seeds: tuple[int, ...]
    returns: Mapping[str, Mapping[str, Returns]]
    nothing: Returns
    unit: str

    def mean(self, policy: str, run: str = MEASURED) -> Estimate:
        """Return the mean return."""
        return Intervals(self.seeds).mean(self.returns[policy][run])

    def lost(self, policy: str) -> Estimate:
        """Return the share of its gain that the network takes; nan without a confirmed gain."""
        measured, synchronous = self.returns[policy][MEASURED], self.returns[policy][SYNCHRONOUS]
        return Intervals(self.seeds).share(np.subtract(synchronous, measured), np.subtract(synchronous, self.nothing))

    def costs(self, policy: str) -> dict[str, Estimate]:
        """Return by cause how much more the policy earns without it; they need not add up."""
        returns, figures = self.returns[policy], Intervals(self.seeds)
        causes = [run for run in returns if run not in (MEASURED, SYNCHRONOUS)]
        return {cause: figures.difference(returns[cause], returns[MEASURED]) for cause in causes}

    @property
    def pairs(self) -> list[Pair]:
        """Return all pairs of policies, the better one first."""
        from scipy.special import stdtr

        ranked, rows = sorted(self.returns, key=lambda policy: -self.mean(policy).value), []
        for better, worse in combinations(ranked, 2):
            apart = np.subtract(self.returns[better][MEASURED], self.returns[worse][MEASURED])
            mean, error = float(apart.mean()), float(apart.std(ddof=1)) / math.sqrt(len(apart))
            t = mean / error if error else math.inf * mean if mean else 0.0
            rows.append((better, worse, Intervals(self.seeds).mean(apart), float(stdtr(len(apart) - 1, t))))
        decided, left = set[tuple[str, str]](), len(rows)
        for better, worse, _, probability in sorted(rows, key=lambda row: -row[3]):
            if 2.0 * (1.0 - probability) > (1.0 - LEVEL) / left:
                break
            decided.add((better, worse))
            left -= 1
        return [Pair(*row, row[:2] in decided) for row in rows]

    def __str__(self) -> str:
        """A table, and a sentence for each pair."""
        causes = [*dict.fromkeys(cause for policy in self.returns for cause in self.costs(policy))]
        head = ["policy", with_unit("return", self.unit), "synchronous", "lost of gain", *(f"{c} cost" for c in causes)]
        rows = [
            [
                policy, f"{self.mean(policy)}", f"{self.mean(policy, SYNCHRONOUS).value:.2f}",
                self.lost(policy).percent(), *map(str, self.costs(policy).values()),
            ]
            for policy in self.returns
        ]  # fmt: skip
        title = f"Over the measured network, {len(self.seeds)} seeds, 95 % intervals"
        return "\n".join([title, "", TextTable(title, head, rows).to_markdown(), "", *map(str, self.pairs)])

    def to_dict(self) -> dict[str, Any]:
        """For JSON: settings and figures."""
        figures = {
            policy: {
                "return": self.mean(policy).to_dict(), "lost": self.lost(policy).to_dict(),
                "costs": {cause: cost.to_dict() for cause, cost in self.costs(policy).items()},
            }
            for policy in self.returns
        }  # fmt: skip
        pairs = [{**pair._asdict(), "difference": pair.difference.to_dict()} for pair in self.pairs]
        return {**vars(self), "policies": figures, "pairs": pairs}


def predict(
    env: HeronEnv, policies: Mapping[str, Policies], network: Network, *, seeds: Sequence[int] | int = 96,
    schedule: AnySchedule = None, causes: bool = True,
) -> Prediction:  # fmt: skip
    """Predict the returns of policies over a measured network.

    Args:
        env: with the ticks of the real runs, and without delays.
        policies: by name of each, as of `run_event_driven`.
        network: `Network.of(records)` or `Network.read(path)`.
        seeds: two or more, or how many of those that training does not use.
        schedule: of the real runs: ticks, `own_rows`, ...; None: the environment's own.
        causes: also predict the cost of delays, losses and thinking, with as many episodes each.

    Raises ConfigError; what an episode raises.

    Example: `print(predict(env, {"mine": mine, "rule": rule}, Network.read("network.json")))`.
    """
    require_switch(f"causes={causes!r:.60}", causes)
    require_type(f"network={network!r:.60}", network, Network, "a Network, as Network.read(path)")
    if not mapping(policies, "policies"):
        raise ConfigError("policies={}: there is none to predict; name one, as {'mine': {'*': policy}}")
    if isinstance(seeds, int):
        seeds = range(SPLITS["test"], SPLITS["test"] + whole(seeds, "seeds", 2, 100_000))
    numbers = tuple(whole(seed, "seeds: one", -(2**63)) for seed in several(seeds, "seeds"))
    if len(numbers) < 2 or len(set(numbers)) < len(numbers):
        raise ConfigError(f"seeds={numbers!r:.200}: must be two or more, each once")

    def over(chosen: Policies, *without: str) -> Returns:
        def one(seed: int) -> float:
            delivery = network.delivery(env, seed, without=without)
            return team_return(
                env, env.run_event_driven(chosen, seed=seed, arrivals=delivery, schedule=schedule, record=())
            )

        return tuple(map(one, numbers))

    def synchronous(chosen: Policies) -> Returns:
        return tuple(team_return(env, env.run_synchronous(chosen, seed=seed, record=())) for seed in numbers)

    laws = [*network.links.values(), *network.directions.values()]
    measured = {"delays": True, "losses": any(law.loss for law in laws), "thinking": bool(network.thinking)}
    off = [cause for cause, was in measured.items() if was and causes]
    predicted = {
        name: {
            MEASURED: over(chosen), SYNCHRONOUS: synchronous(chosen),
            **{cause: over(chosen, cause) for cause in off},
        }
        for name, chosen in policies.items()
    }  # fmt: skip
    return Prediction(numbers, predicted, synchronous(baselines(env)[NOTHING]), env.benchmark().unit)
