"""Bad inputs: building and registering environments, their settings and the limits of an episode."""

# ruff: noqa: E501 (a message is one line)

import math
import sys

import numpy as np
import pytest
from catalogue.case import Case
from catalogue.small_world import ENERGY, GRID, env, tree, written

from heron_env import BatchEnv, HeronEnv, TerminationConfig, TrainingDelays, make, register, registry
from heron_env.errors import ConfigError, FeatureError, UnknownArgument, UnknownEnvironment
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


SETTINGS = [
    Case(
        "more steps than there is time for",
        ConfigError,
        lambda d: env(max_steps=400, dt=31557600),
        "max_steps=400",
        "room for 292 steps",
        "max_steps=400 with dt=31557600.0 s: that is beyond 9.2e9 s, 292 years, where time ends (it is kept in int64 ns); there is room for 292 steps",
    ),
    Case(
        "endless steps by a great number",
        ConfigError,
        lambda d: env(max_steps=10**30),
        "max_steps=1000000000000000000000000000000",
        "room for 9223372036 steps",
        "max_steps=1000000000000000000000000000000 with dt=1.0 s: that is beyond 9.2e9 s, 292 years, where time ends (it is kept in int64 ns); there is room for 9223372036 steps",
    ),
    Case(
        "substeps that no float can hold",
        ConfigError,
        lambda d: env(physics_substeps=10**400),
        "dt=1.0",
        "one ns per substep",
        "dt=1.0 s: must be > 0 and at least one ns per substep",
    ),
    Case(
        "a limit beyond time",
        ConfigError,
        lambda d: TerminationConfig(max_sim_time=math.inf),
        "max_sim_time=inf",
        "or None",
        "TerminationConfig(max_sim_time=inf): must be below 9.2e9 s, 292 years (time is kept in int64 ns), or None",
    ),
    Case(
        "a module that can't be imported",
        ConfigError,
        lambda d: made_in(d, "raise OSError('no licence')"),
        "no licence",
        "mend that",
        "make('breaks_on_import:env'): importing 'breaks_on_import' raised OSError: no licence (at DIR/breaks_on_import.py:1); mend that, `import breaks_on_import` in Python shows all of it",
    ),
    Case(
        "an unknown environment",
        UnknownEnvironment,
        lambda d: make("heron/BateryGrid-v0"),
        "'heron/BateryGrid-v0'",
        "registered are",
        "make('heron/BateryGrid-v0'): no such environment; registered are REGISTERED, your own is 'module:function'. Did you mean 'heron/BatteryGrid-v0'?",
        "heron/BatteryGrid-v0",
    ),
    Case(
        "a misspelt option of every environment",
        UnknownArgument,
        lambda d: make(GRID, max_step=3),
        "max_step",
        "Did you mean",
        "make('heron/BatteryGrid-v0', max_step=...): no such option. Did you mean 'max_steps'?",
        "max_steps",
    ),
    Case(
        "a misspelt option of this environment",
        UnknownArgument,
        lambda d: make(GRID, num_battery=3),
        "num_battery",
        "Did you mean",
        "make('heron/BatteryGrid-v0', num_battery=...): no such option. Did you mean 'num_batteries'?",
        "num_batteries",
    ),
    Case(
        "a misspelt option of the other environment",
        ConfigError,
        lambda d: make(ENERGY, max_step=3),
        "max_step",
        "Did you mean",
        "energy_management(max_step=...): no such option. Did you mean 'max_steps'?",
        "max_steps",
    ),
    Case(
        "a misspelt keyword of HeronEnv",
        UnknownArgument,
        lambda d: HeronEnv(tree(), max_step=3),
        "max_step",
        "Did you mean",
        "HeronEnv(max_step=...): no such option. Did you mean 'max_steps'?",
        "max_steps",
    ),
    Case(
        "no batteries",
        ConfigError,
        lambda d: make(GRID, num_batteries=0),
        "num_batteries=0",
        "must be a whole number >= 1",
        "battery_grid(num_batteries=0): must be a whole number >= 1",
    ),
    Case(
        "an unknown control",
        ConfigError,
        lambda d: make(ENERGY, control="zones"),
        "'zones'",
        "must be one of",
        "control='zones': must be one of ('field', 'zone'). Did you mean 'zone'?",
        "zone",
    ),
    Case(
        "a step that does not divide the day",
        ConfigError,
        lambda d: make(ENERGY, dt=7),
        "dt=7",
        "must divide the day's 86,400 s",
        "dt=7 s must divide the day's 86,400 s, as 60, 300 and 900 do",
    ),
    Case(
        "a misspelt split",
        ConfigError,
        lambda d: make(ENERGY, split="tset"),
        "'tset'",
        "must be one of",
        "split='tset': must be one of ('train', 'validation', 'test'). Did you mean 'test'?",
        "test",
    ),
    Case(
        "a day after the last",
        ConfigError,
        lambda d: make(ENERGY, day=365),
        "365",
        "a whole number from 0",
        "day=365 must be a whole number from 0 (January 1) to 364",
    ),
    Case(
        "a price for a tariff",
        ConfigError,
        lambda d: make(ENERGY, tariff=0.3),
        "0.3",
        "write TimeOfUse(",
        "tariff=0.3: must be a TimeOfUse; write TimeOfUse(low=0.2)",
    ),
    Case(
        "a tariff over midnight",
        ConfigError,
        lambda d: TimeOfUse(low_hours=(22, 6)),
        "(22, 6)",
        "0 <= from < to <= 24",
        "tariff: low_hours=(22, 6) must be whole hours with 0 <= from < to <= 24",
    ),
    Case(
        "a price in words",
        ConfigError,
        lambda d: TimeOfUse(low="cheap"),
        "'cheap'",
        "must be a number",
        "tariff: low='cheap' EUR/kWh must be a number >= 0 and below 10",
    ),
    Case(
        "an impossible efficiency",
        FeatureError,
        lambda d: make(ENERGY, efficiency=1.5),
        "1.5",
        "choose a value within",
        "Constants.efficiency=1.5 lies outside [0.5, 1.0]; choose a value within, or declare other bounds",
    ),
    Case(
        "an id without a version",
        ConfigError,
        lambda d: register("my/Mine", tree),
        "'my/Mine'",
        "add what is missing",
        "register('my/Mine'): an id reads 'namespace/Name-v0'; add what is missing",
    ),
    Case(
        "an entry point without a colon",
        ConfigError,
        lambda d: register("my/Mine-v0", "mine.build"),
        "'mine.build'",
        "reads 'package.module:attribute'",
        "register('my/Mine-v0', 'mine.build'): a string entry point reads 'package.module:attribute'",
    ),
    Case(
        "an entry point that is a number",
        ConfigError,
        lambda d: register("my/Mine-v0", 3),
        "3",
        "name a function",
        "register('my/Mine-v0', 3): name a function that builds the environment, or a class",
    ),
    Case(
        "an id that is taken",
        ConfigError,
        lambda d: register(GRID, tree),
        repr(GRID),
        "choose another version",
        "register('heron/BatteryGrid-v0'): that id stands for 'heron_env.worlds.battery_grid:battery_grid' already; choose another version",
    ),
    Case(
        "a misspelt entry point",
        ConfigError,
        lambda d: made("heron_env.worlds.battery_grid:batery_grid"),
        "batery_grid",
        "is the module on the path",
        "make('my/Mine-v0'): can't load its entry point 'heron_env.worlds.battery_grid:batery_grid' (module 'heron_env.worlds.battery_grid' has no attribute 'batery_grid'); is the module on the path and the name right? Did you mean 'battery_grid'?",
        "battery_grid",
    ),
    Case(
        "an entry point that is text",
        ConfigError,
        lambda d: made("heron_env.worlds.battery_grid:__name__"),
        "'heron_env.worlds.battery_grid'",
        "name a function",
        "make('my/Mine-v0'): its entry point 'heron_env.worlds.battery_grid:__name__' is 'heron_env.worlds.battery_grid'; name a function or a class",
    ),
    Case(
        "no steps",
        ConfigError,
        lambda d: env(max_steps=0),
        "max_steps=0",
        "must be a whole number >= 1",
        "TerminationConfig(max_steps=0): must be a whole number >= 1, or None",
    ),
    Case(
        "steps as text",
        ConfigError,
        lambda d: env(max_steps="x"),
        "max_steps='x'",
        "must be a whole number",
        "TerminationConfig(max_steps='x'): must be a whole number >= 1, or None",
    ),
    Case(
        "endless steps",
        ConfigError,
        lambda d: env(max_steps=math.inf),
        "max_steps=inf",
        "must be a whole number",
        "TerminationConfig(max_steps=inf): must be a whole number >= 1, or None",
    ),
    Case(
        "a time limit before the start",
        ConfigError,
        lambda d: TerminationConfig(max_sim_time=-1.0),
        "-1.0",
        "must be > 0 s",
        "TerminationConfig(max_sim_time=-1.0): must be > 0 s, or None",
    ),
    Case(
        "a time limit as text",
        ConfigError,
        lambda d: TerminationConfig(max_sim_time="60"),
        "'60'",
        "must be > 0 s",
        "TerminationConfig(max_sim_time='60'): must be > 0 s, or None",
    ),
    Case(
        "an unknown mode",
        ConfigError,
        lambda d: TerminationConfig(mode="al"),
        "'al'",
        "must be 'all' or 'any'",
        "TerminationConfig(mode='al'): must be 'all' or 'any'. Did you mean 'all'?",
        "all",
    ),
    Case(
        "a misspelt limit",
        UnknownArgument,
        lambda d: TerminationConfig(max_step=3),
        "max_step",
        "Did you mean",
        "TerminationConfig(max_step=...): no such option. Did you mean 'max_steps'?",
        "max_steps",
    ),
    Case(
        "a limit that is a dictionary",
        ConfigError,
        lambda d: env(max_steps=None, termination={"max_steps": 3}),
        "{'max_steps': 3}",
        "write TerminationConfig(",
        "termination={'max_steps': 3}: must be a TerminationConfig; write TerminationConfig(...)",
    ),
    Case(
        "no time in a step",
        ConfigError,
        lambda d: env(dt=0),
        "dt=0",
        "must be > 0",
        "dt=0 s: must be > 0 and at least one ns per substep",
    ),
    Case(
        "no substeps",
        ConfigError,
        lambda d: env(physics_substeps=0),
        "physics_substeps=0",
        "must be a whole number >= 1",
        "physics_substeps=0: must be a whole number >= 1",
    ),
    Case(
        "an unknown way to draw",
        ConfigError,
        lambda d: env(render_mode="rgb_aray"),
        "'rgb_aray'",
        "must be one of",
        "render_mode='rgb_aray': must be one of ['ansi', 'rgb_array'] or None. Did you mean 'rgb_array'?",
        "rgb_array",
    ),
    Case(
        "training delays that are a number",
        ConfigError,
        lambda d: env(training_delays=2),
        "training_delays=2",
        "write TrainingDelays(observation=1, action=(0, 2))",
        "training_delays=2: must be a TrainingDelays; write TrainingDelays(observation=1, action=(0, 2))",
    ),
    Case(
        "a training delay in seconds",
        ConfigError,
        lambda d: TrainingDelays(action=0.5),
        "action=0.5",
        "whole number of control steps",
        "TrainingDelays(action=0.5): must be a whole number of control steps >= 0, or (least, most)",
    ),
    Case(
        "a range of training delays upside down",
        ConfigError,
        lambda d: TrainingDelays(observation=(3, 1)),
        "observation=(3, 1)",
        "(least, most)",
        "TrainingDelays(observation=(3, 1)): must be a whole number of control steps >= 0, or (least, most)",
    ),
    Case(
        "a misspelt training delay",
        UnknownArgument,
        lambda d: TrainingDelays(observations=1),
        "observations",
        "Did you mean",
        "TrainingDelays(observations=...): no such option. Did you mean 'observation'?",
        "observation",
    ),
    Case(
        "a variable of the system in words",
        ConfigError,
        lambda d: with_variable("HERON_COMPILE", "false"),
        "'false'",
        "0 (run them in plain Python)",
        "HERON_COMPILE='false': must be 1 (compile rules), 0 (run them in plain Python), or unset",
    ),
    Case(
        "a switch as text",
        ConfigError,
        lambda d: env(observe_age="no"),
        "'no'",
        "must be True or False",
        "observe_age='no': must be True or False",
    ),
    Case(
        "a render mode as an array",
        ConfigError,
        lambda d: env(render_mode=np.zeros(2)),
        "array([0., 0.])",
        "must be one of",
        "render_mode=array([0., 0.]): must be one of ['ansi', 'rgb_array'] or None.",
    ),
    Case(
        "a count that nobody can build",
        ConfigError,
        lambda d: make(GRID, num_batteries=10**6),
        "num_batteries=1000000",
        "take 10,000 at the most",
        "battery_grid(num_batteries=1000000): too many; take 10,000 at the most",
    ),
    Case(
        "homes that nobody can build, zone by zone",
        ConfigError,
        lambda d: make(ENERGY, passive_per_zone=10**6),
        "passive_per_zone=1000000",
        "take 5,000 at the most",
        "passive_per_zone=1000000: too many; take 5,000 at the most",
    ),
    Case(
        "lanes that no memory holds",
        ConfigError,
        lambda d: BatchEnv(GRID, 10**30),
        "num_envs=1000000000000000000000000000000",
        "take 10,000,000 at the most",
        "BatchEnv(num_envs=1000000000000000000000000000000): too many; take 10,000,000 at the most",
    ),
    Case(
        "lanes that are objects, too many of them",
        ConfigError,
        lambda d: BatchEnv(GRID, 10**6, compile=False),
        "num_envs=1000000",
        "take 100,000 at the most",
        "BatchEnv(num_envs=1000000): too many; take 100,000 at the most",
    ),
    Case(
        "a function that breaks while it builds",
        ConfigError,
        broken_inside,
        "KeyError: 'roof'",
        "mend that",
        "make('breaks_inside:env'): building it raised KeyError: 'roof' (at DIR/breaks_inside.py:2); mend that",
    ),
    Case(
        "padding that is neither on nor off",
        ConfigError,
        lambda d: env(pad="widest"),
        "'widest'",
        "must be True or False",
        "pad='widest': must be True or False",
    ),
]
