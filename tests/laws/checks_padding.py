"""Padding changes how wide vectors are, and nothing else: each begins with what it is without, bit for bit."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from laws.checks import RECORD
from small_worlds import LawEnv
from strategies import Recipe, Wave

from heron_env.core.hierarchy import name_stem

Widths = dict[str, int]


def widths(env: LawEnv) -> Widths:
    """Of what each agent sees."""
    return {agent: len(env.observation_names(agent)) for agent in env.hierarchy.ids}


def tails(recipe: Recipe) -> dict[str, np.ndarray]:
    """What must come after each agent's own numbers: zeros up to the widest of its kind, then the mask."""
    env = replace(recipe, pad=False).build()
    own = widths(env)

    def kind(agent: str) -> tuple[Any, ...]:
        names, space = env.observation_names(agent), env.observation_space(agent)
        mine = [i for i, name in enumerate(names) if name.count(".") == 1 and not name.startswith("age.")]
        acts = env.simulation.model.specs[env.hierarchy.index[agent]].describe()
        return name_stem(agent), acts, *[(names[i], space.low[i], space.high[i]) for i in mine]

    found = {}
    for agent, width in own.items():
        like = [own[other] for other in own if kind(other) == kind(agent)]
        missing = max(like) - width if len(set(like)) > 1 else None
        parts = [] if missing is None else [np.zeros(missing), np.ones(width), np.zeros(missing)]
        found[agent] = np.concatenate([np.zeros(0), *parts]).astype(np.float32)
    return found


def check_padding(recipe: Recipe, schedule: Any = None, seed: int = 0, **happenings: Callable[[], Any]) -> int:
    """In both clocks; how many vectors with something behind them were compared. The event clock has
    the schedule, and `happenings`."""
    bare, padded = (replace(recipe, pad=pad).build() for pad in (False, True))
    own, expected, compared = widths(bare), tails(recipe), 0
    for agent, width in own.items():
        assert padded.observation_names(agent)[:width] == bare.observation_names(agent)
        assert padded.observation_space(agent).shape == (width + len(expected[agent]),)
        units = bare.observation_units(agent) + ["1"] * len(expected[agent])
        assert padded.observation_units(agent) == units, f"{agent}'s units differ"
    for clock in ("run_synchronous", "run_event_driven"):
        told: dict[str, Any] = {}
        if clock == "run_event_driven":
            told = {"schedule": schedule, **{name: make() for name, make in happenings.items()}}
        mine, theirs = (
            getattr(env, clock)(looking(env, own), seed=seed, record=RECORD, **told) for env in (padded, bare)
        )
        assert padded.simulation.truth.tobytes() == bare.simulation.truth.tobytes(), f"{clock}: the truth differs"
        for part in ("rewards", "terminated", "truncated"):
            assert getattr(mine, part) == getattr(theirs, part), f"{clock}: {part} differ"
        assert mine.observations.keys() == theirs.observations.keys()
        for agent, shown in theirs.observations.items():
            space = padded.observation_space(agent)
            for (time, vector), (then, alone) in zip(mine.observations[agent], shown, strict=True):
                where = f"{clock}: what {agent} sees at {time} s"
                assert time == then and vector.dtype == np.float32
                assert vector[: own[agent]].tobytes() == alone.tobytes(), where
                assert vector[own[agent] :].tobytes() == expected[agent].tobytes(), where + ": what pads it"
                compared += len(expected[agent]) > 0
                fits = bare.observation_space(agent).contains(alone)
                assert space.contains(vector) or not fits, where + ": its bounds"
    return compared


def looking(env: LawEnv, own: Widths) -> dict[str, Any]:
    """Policies that look at their agents' own numbers, and at every bit of these."""
    specs, index = env.simulation.model.specs, env.hierarchy.index

    def on_own(agent: str) -> Callable[[np.ndarray], np.ndarray]:
        wave = Wave(agent, specs[index[agent]])
        return lambda vector: wave(vector[: own[agent]])

    return {agent: on_own(agent) for agent in env.possible_agents}
