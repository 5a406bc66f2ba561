"""Rules for the economy. They get the observation in object form and use what is in it."""

from __future__ import annotations

from heron_env.observability.state_models import SimulationState
from heron_env.worlds.economy.engine import EconomyEngine


class ReadsReserves:
    """Holds what the yield is expected to be worth, given all that is shown; what is hidden is taken to be usual.

    Args:
        engine: whose parameters are public knowledge.
        countries: number of countries, seen or not.
    """

    def __init__(self, engine: EconomyEngine | None = None, countries: int = 4) -> None:
        self.engine, self.countries = engine or EconomyEngine(), countries

    def decide_action(self, state: SimulationState) -> float:
        """The share to hold, in [-1, 1]."""
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
    """Follows the difference of interest rate and inflation, which everybody may know."""

    def __init__(self, engine: EconomyEngine | None = None) -> None:
        self.engine = engine or EconomyEngine()

    def decide_action(self, state: SimulationState) -> float:
        """The share to hold, in [-1, 1]."""
        engine, world = self.engine, vars(state.global_state)
        rate = world.get("interest_rate", engine.usual_rate)
        inflation = world.get("inflation", engine.usual_inflation)
        return held(engine, engine.expected(rate, inflation, engine.usual_reserves, engine.usual_bank_reserves))


def held(engine: EconomyEngine, expected: float) -> float:
    """The position that earns most at this yield: the maximum of P q - cost P^2."""
    return float(min(max(expected / (2.0 * engine.holding_cost), -1.0), 1.0))
