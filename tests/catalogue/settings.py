"""Bad inputs: building and registering environments, their settings and the limits of an episode."""

import math
import sys

import numpy as np
import pytest
from catalogue.small_world import ENERGY, GRID, env, tree, written

from heron_env import BatchEnv, HeronEnv, TerminationConfig, make, register, registry
from heron_env.worlds.energy_management.calendar import TimeOfUse


def made(entry_point, id="my/Mine-v0"):
    """Register, build, and forget again."""
    try:
        return registry.EnvironmentSpec(id, entry_point, {}).make()
    finally:
        registry._registry.pop(id, None)


def with_variable(name, value):
    """An environment is built while the variable has this value."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(name, value)
        env()


def made_in(folder, source):
    """An environment of a module in the folder."""
    written(folder, "breaks_on_import.py", source)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        return make("breaks_on_import:env")


def broken_inside(folder):
    """An environment of a module whose function raises."""
    written(folder, "breaks_inside.py", "def env():\n    return {}['roof']\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        try:
            return make("breaks_inside:env")
        finally:
            sys.modules.pop("breaks_inside", None)


SETTINGS = {
    "more steps than there is time for": lambda d: env(max_steps=400, dt=31557600),
    "endless steps by a great number": lambda d: env(max_steps=10**30),
    "substeps that no float can hold": lambda d: env(physics_substeps=10**400),
    "a limit beyond time": lambda d: TerminationConfig(max_sim_time=math.inf),
    "a module that can't be imported": lambda d: made_in(d, "raise OSError('no licence')"),
    "an unknown environment": lambda d: make("heron/BateryGrid-v0"),
    "a misspelt option of every environment": lambda d: make(GRID, max_step=3),
    "a misspelt option of this environment": lambda d: make(GRID, num_battery=3),
    "a misspelt option of the other environment": lambda d: make(ENERGY, max_step=3),
    "a misspelt keyword of HeronEnv": lambda d: HeronEnv(tree(), max_step=3),
    "no batteries": lambda d: make(GRID, num_batteries=0),
    "an unknown control": lambda d: make(ENERGY, control="zones"),
    "a step that does not divide the day": lambda d: make(ENERGY, dt=7),
    "a misspelt split": lambda d: make(ENERGY, split="tset"),
    "a day after the last": lambda d: make(ENERGY, day=365),
    "a price for a tariff": lambda d: make(ENERGY, tariff=0.3),
    "a tariff over midnight": lambda d: TimeOfUse(low_hours=(22, 6)),
    "a price in words": lambda d: TimeOfUse(low="cheap"),
    "an impossible efficiency": lambda d: make(ENERGY, efficiency=1.5),
    "an id without a version": lambda d: register("my/Mine", tree),
    "an entry point without a colon": lambda d: register("my/Mine-v0", "mine.build"),
    "an entry point that is a number": lambda d: register("my/Mine-v0", 3),
    "an id that is taken": lambda d: register(GRID, tree),
    "a misspelt entry point": lambda d: made("heron_env.worlds.battery_grid:batery_grid"),
    "an entry point that is text": lambda d: made("heron_env.worlds.battery_grid:__name__"),
    "no steps": lambda d: env(max_steps=0),
    "steps as text": lambda d: env(max_steps="x"),
    "endless steps": lambda d: env(max_steps=math.inf),
    "a time limit before the start": lambda d: TerminationConfig(max_sim_time=-1.0),
    "a time limit as text": lambda d: TerminationConfig(max_sim_time="60"),
    "an unknown mode": lambda d: TerminationConfig(mode="al"),
    "a misspelt limit": lambda d: TerminationConfig(max_step=3),
    "a limit that is a dictionary": lambda d: env(max_steps=None, termination={"max_steps": 3}),
    "no time in a step": lambda d: env(dt=0),
    "no substeps": lambda d: env(physics_substeps=0),
    "an unknown way to draw": lambda d: env(render_mode="rgb_aray"),
    "training delays": lambda d: env(training_delays=2),
    "a variable of the system in words": lambda d: with_variable("HERON_COMPILE", "false"),
    "a switch as text": lambda d: env(observe_age="no"),
    "a render mode as an array": lambda d: env(render_mode=np.zeros(2)),
    "a count that nobody can build": lambda d: make(GRID, num_batteries=10**6),
    "homes that nobody can build, zone by zone": lambda d: make(ENERGY, passive_per_zone=10**6),
    "lanes that no memory holds": lambda d: BatchEnv(GRID, 10**30),
    "lanes that are objects, too many of them": lambda d: BatchEnv(GRID, 10**6, compile=False),
    "a function that breaks while it builds": broken_inside,
    "padding that is neither on nor off": lambda d: env(pad="widest"),
}
