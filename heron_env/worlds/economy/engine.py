"""The economy's engine: countries take positions in a currency whose yield depends on reserves that few can see.

With n countries, X their secret reserves, R the central bank's, r interest rate, p inflation, P positions, S economic
strength, bars for what is usual, and z a fresh uniform of mean 0 and variance 1 for each step:

    yield      q = (r - p) - (r_ - p_) + 0.08 (mean(X) / X_ - 1) + 0.04 (R / R_ - 1) + 0.01 z          1/s
    position   dP/dt = (a - P) / lag, a the action: the share of its strength that a country wants to hold (< 0: owe)
    earnings   g = P q - 0.012 P^2                                                                     1/s
    strength   dS/dt = S g;  the reward of a step is 100 times the integral of g: the strength's growth in percent
    reserves   dR/dt = 0.02 R_ mean(P) while countries trade: who buys the currency fills the bank's coffers

Once a step X, R, r and p return a fifth of their way to what is usual and are shaken. Holding costs more than
proportionally, so the best position is the expected yield / 0.024: an error in what one believes of X and R costs
money, in either direction. Everything is bounded: q to +-0.1, P by the action, the rest by the declared bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from heron_env.core.policy import AnyPolicy
from heron_env.declared.engine import Engine, Scene
from heron_env.envs.description import Benchmark, TrainingDefaults
from heron_env.files.models import NonNegative, Number, Positive
from heron_env.observability.state_models import SimulationState

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv


class ReadsReserves:
    """Rule that holds the expected value of the yield; hidden variables are assumed to have their usual values.

    Args:
        engine: whose parameters are public knowledge.
        countries: number of countries, seen or not.
    """

    def __init__(self, engine: EconomyEngine | None = None, countries: int = 4) -> None:
        self.engine, self.countries = engine or EconomyEngine(), countries

    def decide_action(self, state: SimulationState) -> float:
        """Return the share to hold, in [-1, 1]."""
        engine, world = self.engine, vars(state.global_state)
        usual = engine.usual_reserves
        shown = [vars(agent).get("secret_reserves", usual) for agent in state.agents.values()]
        expected = engine.expected(
            world.get("interest_rate", engine.usual_rate),
            world.get("inflation", engine.usual_inflation),
            usual + sum(value - usual for value in shown) / self.countries,
            world.get("central_bank_reserves", engine.usual_bank_reserves),
        )
        return held(engine, expected)


class Carry:
    """Rule that follows the difference of interest rate and inflation, which are public."""

    def __init__(self, engine: EconomyEngine | None = None) -> None:
        self.engine = engine or EconomyEngine()

    def decide_action(self, state: SimulationState) -> float:
        """Return the share to hold, in [-1, 1]."""
        engine, world = self.engine, vars(state.global_state)
        rate = world.get("interest_rate", engine.usual_rate)
        inflation = world.get("inflation", engine.usual_inflation)
        return held(engine, engine.expected(rate, inflation, engine.usual_reserves, engine.usual_bank_reserves))


def held(engine: EconomyEngine, expected: float) -> float:
    """The position that earns most at this yield: the maximum of P q - cost P^2."""
    return float(min(max(expected / (2.0 * engine.holding_cost), -1.0), 1.0))


MOST_YIELD = 0.1
"""Bound of the yield, 1/s."""
UNIT_SPREAD = np.sqrt(12.0)
"""A uniform of this width has variance 1."""
RETURN_UNIT = "percent of growth, all countries"


class EconomyEngine(Engine):
    """Engine of the economy; its parameters: usual values, sensitivities of the yield, costs, size of shocks."""

    agent_variables: ClassVar[tuple[str, ...]] = ("economic_strength", "position", "secret_reserves")
    global_variables: ClassVar[tuple[str, ...]] = ("interest_rate", "inflation", "central_bank_reserves")
    batched: ClassVar[bool] = True
    meaning: ClassVar[str] = "share of its strength that a country wants to hold in the currency; negative: owe"

    usual_rate: Number = 0.03
    usual_inflation: Number = 0.02
    usual_reserves: Positive = 50.0
    usual_bank_reserves: Positive = 500.0
    reserves_sensitivity: NonNegative = 0.08
    bank_sensitivity: NonNegative = 0.04
    shock: NonNegative = 0.01
    holding_cost: Positive = 0.012
    lag: Positive = 0.25
    inflow: NonNegative = 0.02
    persistence: NonNegative = 0.8
    spread_reserves: NonNegative = 15.0
    spread_bank: NonNegative = 100.0
    spread_rate: NonNegative = 0.003
    spread_inflation: NonNegative = 0.003

    def expected(self, rate: Any, inflation: Any, reserves: Any, bank: Any) -> Any:
        """Return the yield without the shock, 1/s, bounded; `reserves` is the countries' mean. Numbers or arrays."""
        carry = (rate - inflation) - (self.usual_rate - self.usual_inflation)
        of_countries = self.reserves_sensitivity * (reserves / self.usual_reserves - 1.0)
        of_bank = self.bank_sensitivity * (bank / self.usual_bank_reserves - 1.0)
        return np.minimum(np.maximum(carry + of_countries + of_bank, -MOST_YIELD), MOST_YIELD)

    def begin(self, scene: Scene) -> None:
        """Draw reserves, rate and inflation from their long-run distribution."""
        self._shake(scene, 1.0)

    def advance(self, scene: Scene, dt: float) -> None:
        """Move positions, pay yields, and change the bank's reserves by trading."""
        agents, world, active = scene.agents, scene.world, scene.active
        bank, reserves = world.central_bank_reserves, agents.secret_reserves.mean(axis=-1, keepdims=True)
        expected = self.expected(world.interest_rate, world.inflation, reserves, bank)
        z = UNIT_SPREAD * (scene.draw("shock") - 0.5)
        currency = np.minimum(np.maximum(expected + self.shock * z, -MOST_YIELD), MOST_YIELD)
        approach = 1.0 - np.exp(-dt / self.lag)
        wanted = np.where(active, scene.actions, agents.position)
        agents.position += approach * (wanted - agents.position)
        position = np.where(active, agents.position, 0.0)
        growth = position * currency - self.holding_cost * position**2
        agents.economic_strength *= np.exp(growth * dt)
        scene.income[...] += 100.0 * growth * dt
        bank += self.inflow * self.usual_bank_reserves * position.mean(axis=-1, keepdims=True) * dt

    def finish(self, scene: Scene) -> None:
        """Move hidden and public variables towards their usual values, with shocks."""
        agents, world, keep = scene.agents, scene.world, self.persistence
        usual = {
            "interest_rate": self.usual_rate,
            "inflation": self.usual_inflation,
            "central_bank_reserves": self.usual_bank_reserves,
        }
        agents.secret_reserves = self.usual_reserves + keep * (agents.secret_reserves - self.usual_reserves)
        for name, value in usual.items():
            column = getattr(world, name)
            column[...] = value + keep * (column - value)
        self._shake(scene, float(np.sqrt(max(0.0, 1.0 - keep**2))))

    def _shake(self, scene: Scene, scale: float) -> None:
        """Add noise of `scale` times the spread that things have in the long run."""

        def noise(name: str, spread: float, size: int) -> NDArray[np.float64]:
            return np.asarray(scale * spread * UNIT_SPREAD * (scene.draw(name, size) - 0.5))

        reserves = scene.agents.secret_reserves
        reserves += noise("secret_reserves", self.spread_reserves, reserves.shape[-1])
        for name, spread in (
            ("interest_rate", self.spread_rate),
            ("inflation", self.spread_inflation),
            ("central_bank_reserves", self.spread_bank),
        ):
            column = getattr(scene.world, name)
            column += noise(name, spread, 1)

    def policies(self, agents: int) -> Mapping[str, AnyPolicy]:
        """Return two rules: one uses public variables, one all that it observes."""

        return {"carry": Carry(self), "reserves": ReadsReserves(self, agents)}

    def kpis(self, scene: Scene) -> dict[str, float]:
        """Return mean_strength (bn) and mean_position (absolute)."""
        agents = scene.agents
        return {
            "mean_strength": float(agents.economic_strength.mean()),
            "mean_position": float(np.abs(agents.position).mean()),
        }

    def benchmark(self, env: HeronEnv) -> Benchmark:
        """Return the two rules, each followed by all countries."""
        rules = self.policies(len(env.possible_agents))
        return Benchmark(
            baselines=lambda seed: {name: {"*": rule} for name, rule in rules.items()},
            strongest="reserves",
            unit=RETURN_UNIT,
        )

    def drawing(self, axes: Any, names: Sequence[str]) -> Any:
        """Draw countries around the central bank; dashed: knowledge of the observer, "?": unknown to it."""
        from heron_env.worlds.economy.drawing import EconomyDrawing

        return EconomyDrawing(axes, self, names)

    def training_defaults(self) -> TrainingDefaults:
        """Return training without a baseline to correct."""
        return TrainingDefaults()
