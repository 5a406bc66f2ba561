"""Policies that plan, for the laws: they have no memory of their own, and every bit of what they know matters."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from hypothesis import strategies as st
from strategies import Recipe, Wave

from heron_env import Answer, Asked, HeronEnv, Plan
from heron_env.core.plans import ENDS, MERGES, Running


class OnePlan:
    """What a wave decides, as a plan of one."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave

    def answer(self, asked: Asked) -> Answer:
        return Answer(Plan([self.wave(asked.vector)]))


class Rows:
    """k actions each `replan` control steps, nothing new in between; what is running goes into them."""

    def __init__(
        self, wave: Wave, k: int, replan: int, merge: Any, end: Any, start: float, period: float | None
    ) -> None:
        self.wave, self.k, self.replan = wave, k, replan
        self.rules: dict[str, Any] = {"merge": merge, "end": end, "start": start, "period": period}

    def rows(self, vector: Any, running: Running) -> list[Any]:
        place = running.index + 10 * running.number + 100 * running.age + running.prefix + 7 * running.left
        seen = [*vector, place, *np.concatenate([*running.remaining, [0.0]])]
        return [self.wave(np.array([*seen, 0.3 * j])) for j in range(self.k)]

    def answer(self, asked: Asked) -> Answer:
        if asked.number % 7 == 5:
            return Answer(self.wave(asked.vector))
        if asked.turn % self.replan:
            return Answer(None)
        return Answer(Plan(self.rows(asked.vector, asked.running), **self.rules))

    def __call__(self, vector: Any, running: Running) -> Plan:
        return Plan(self.rows(vector, running), **self.rules)


@dataclass(frozen=True)
class Planning(Recipe):
    """A world whose agents plan. `form`: "one", a plan of each action; "function", or "rows"."""

    form: str = "rows"
    k: int = 3
    replan: int = 2
    merge: str = "drop"
    end: str = "hold"
    start: float = 0.0
    period: float | None = None

    def policies(self, env: HeronEnv) -> Any:
        waves = super().policies(env)
        if self.form == "one":
            return {name: OnePlan(wave) for name, wave in waves.items()}
        rules: dict[str, Any] = {"merge": self.merge, "end": self.end, "start": self.start * self.dt}
        rules["period"] = None if self.period is None else self.period * self.dt
        planning = {name: Rows(wave, self.k, self.replan, **rules) for name, wave in waves.items()}
        if self.form == "rows":
            return planning
        return {name: lambda vector, running, rows=rows: rows(vector, running) for name, rows in planning.items()}


def planning(recipe: Recipe, **rules: Any) -> Planning:
    """The same world with agents that plan."""
    return Planning(**{field.name: getattr(recipe, field.name) for field in fields(Recipe)}, **rules)


@st.composite
def planners(draw: st.DrawFn, recipe: Recipe, whole_steps: bool = False) -> Planning:
    """The same with rules of any kind; with `whole_steps` no action of a plan begins within a step."""
    return planning(
        recipe,
        form=draw(st.sampled_from(["rows", "function"])),
        k=draw(st.integers(1, 6)),
        replan=draw(st.integers(1, 4)),
        merge=draw(st.sampled_from(MERGES)),
        end=draw(st.sampled_from(ENDS)),
        start=draw(st.sampled_from([0.0, 0.0, 2.0, -1.0] if whole_steps else [0.0, 0.0, 2.0, -1.0, 0.5])),
        period=draw(st.sampled_from([None, None, 2.0] if whole_steps else [None, None, 0.5, 2.0])),
    )
