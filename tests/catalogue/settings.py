"""Bad inputs: building and registering environments, their settings and the limits of an episode."""

# ruff: noqa: E501 (a message is one line)

import math
import sys

import numpy as np
import pytest
from catalogue.small_world import ENERGY, GRID, env, tree, written

from heron_env import BatchEnv, HeronEnv, TerminationConfig, TrainingDelays, make, register, registry
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
    "more steps than there is time for": (
        lambda d: env(max_steps=400, dt=31557600),
        "ConfigError: «max_steps=400» with dt=31557600.0 s: that is beyond 9.2e9 s, 292 years, where time ends (it is kept in int64 ns); there is ⟨room for 292 steps⟩",
    ),
    "endless steps by a great number": (
        lambda d: env(max_steps=10**30),
        "ConfigError: «max_steps=1000000000000000000000000000000» with dt=1.0 s: that is beyond 9.2e9 s, 292 years, where time ends (it is kept in int64 ns); there is ⟨room for 9223372036 steps⟩",
    ),
    "substeps that no float can hold": (
        lambda d: env(physics_substeps=10**400),
        "ConfigError: «dt=1.0» s: must be > 0 and at least ⟨one ns per substep⟩",
    ),
    "a limit beyond time": (
        lambda d: TerminationConfig(max_sim_time=math.inf),
        "ConfigError: TerminationConfig(«max_sim_time=inf»): must be below 9.2e9 s, 292 years (time is kept in int64 ns), ⟨or None⟩",
    ),
    "a module that can't be imported": (
        lambda d: made_in(d, "raise OSError('no licence')"),
        "ConfigError: make('breaks_on_import:env'): importing 'breaks_on_import' raised OSError: «no licence» (at DIR/breaks_on_import.py:1); ⟨mend that⟩, `import breaks_on_import` in Python shows all of it",
    ),
    "an unknown environment": (
        lambda d: make("heron/BateryGrid-v0"),
        "UnknownEnvironment: make(«'heron/BateryGrid-v0'»): no such environment; ⟨registered are⟩ REGISTERED, your own is 'module:function'. Did you mean 'heron/BatteryGrid-v0'?",
    ),
    "a misspelt option of every environment": (
        lambda d: make(GRID, max_step=3),
        "UnknownArgument: make('heron/BatteryGrid-v0', «max_step»=...): no such option. ⟨Did you mean⟩ 'max_steps'?",
    ),
    "a misspelt option of this environment": (
        lambda d: make(GRID, num_battery=3),
        "UnknownArgument: make('heron/BatteryGrid-v0', «num_battery»=...): no such option. ⟨Did you mean⟩ 'num_batteries'?",
    ),
    "a misspelt option of the other environment": (
        lambda d: make(ENERGY, max_step=3),
        "ConfigError: energy_management(«max_step»=...): no such option. ⟨Did you mean⟩ 'max_steps'?",
    ),
    "a misspelt keyword of HeronEnv": (
        lambda d: HeronEnv(tree(), max_step=3),
        "UnknownArgument: HeronEnv(«max_step»=...): no such option. ⟨Did you mean⟩ 'max_steps'?",
    ),
    "no batteries": (
        lambda d: make(GRID, num_batteries=0),
        "ConfigError: battery_grid(«num_batteries=0»): ⟨must be a whole number >= 1⟩",
    ),
    "an unknown control": (
        lambda d: make(ENERGY, control="zones"),
        "ConfigError: control=«'zones'»: ⟨must be one of⟩ ('field', 'zone'). Did you mean 'zone'?",
    ),
    "a step that does not divide the day": (
        lambda d: make(ENERGY, dt=7),
        "ConfigError: «dt=7» s ⟨must divide the day's 86,400 s⟩, as 60, 300 and 900 do",
    ),
    "a misspelt split": (
        lambda d: make(ENERGY, split="tset"),
        "ConfigError: split=«'tset'»: ⟨must be one of⟩ ('train', 'validation', 'test'). Did you mean 'test'?",
    ),
    "a day after the last": (
        lambda d: make(ENERGY, day=365),
        "ConfigError: day=«365» must be ⟨a whole number from 0⟩ (January 1) to 364",
    ),
    "a price for a tariff": (
        lambda d: make(ENERGY, tariff=0.3),
        "ConfigError: tariff=«0.3»: must be a TimeOfUse; ⟨write TimeOfUse(⟩low=0.2)",
    ),
    "a tariff over midnight": (
        lambda d: TimeOfUse(low_hours=(22, 6)),
        "ConfigError: tariff: low_hours=«(22, 6)» must be whole hours with ⟨0 <= from < to <= 24⟩",
    ),
    "a price in words": (
        lambda d: TimeOfUse(low="cheap"),
        "ConfigError: tariff: low=«'cheap'» EUR/kWh ⟨must be a number⟩ >= 0 and below 10",
    ),
    "an impossible efficiency": (
        lambda d: make(ENERGY, efficiency=1.5),
        "FeatureError: Constants.efficiency=«1.5» lies outside [0.5, 1.0]; ⟨choose a value within⟩, or declare other bounds",
    ),
    "an id without a version": (
        lambda d: register("my/Mine", tree),
        "ConfigError: register(«'my/Mine'»): an id reads 'namespace/Name-v0'; ⟨add what is missing⟩",
    ),
    "an entry point without a colon": (
        lambda d: register("my/Mine-v0", "mine.build"),
        "ConfigError: register('my/Mine-v0'): «'mine.build'» builds nothing; ⟨write a function, a class or 'package.module:attribute'⟩",
    ),
    "an entry point that is a number": (
        lambda d: register("my/Mine-v0", 3),
        "ConfigError: register('my/Mine-v0'): «3» builds nothing; ⟨write a function, a class or 'package.module:attribute'⟩",
    ),
    "an id that is taken": (
        lambda d: register(GRID, tree),
        "ConfigError: register(«'heron/BatteryGrid-v0'»): that id stands for 'heron_env.worlds.battery_grid:battery_grid' already; ⟨choose another version⟩",
    ),
    "a misspelt entry point": (
        lambda d: made("heron_env.worlds.battery_grid:batery_grid"),
        "ConfigError: make('my/Mine-v0'): can't load its entry point 'heron_env.worlds.battery_grid:«batery_grid»' (module 'heron_env.worlds.battery_grid' has no attribute 'batery_grid'); ⟨is the module on the path⟩ and the name right? Did you mean 'battery_grid'?",
    ),
    "an entry point that is text": (
        lambda d: made("heron_env.worlds.battery_grid:__name__"),
        "ConfigError: make('my/Mine-v0'): its entry point 'heron_env.worlds.battery_grid:__name__' is «'heron_env.worlds.battery_grid'»; ⟨name a function⟩ or a class",
    ),
    "no steps": (
        lambda d: env(max_steps=0),
        "ConfigError: TerminationConfig(«max_steps=0»): ⟨must be a whole number >= 1⟩, or None",
    ),
    "steps as text": (
        lambda d: env(max_steps="x"),
        "ConfigError: TerminationConfig(«max_steps='x'»): ⟨must be a whole number⟩ >= 1, or None",
    ),
    "endless steps": (
        lambda d: env(max_steps=math.inf),
        "ConfigError: TerminationConfig(«max_steps=inf»): ⟨must be a whole number⟩ >= 1, or None",
    ),
    "a time limit before the start": (
        lambda d: TerminationConfig(max_sim_time=-1.0),
        "ConfigError: TerminationConfig(max_sim_time=«-1.0»): ⟨must be > 0 s⟩, or None",
    ),
    "a time limit as text": (
        lambda d: TerminationConfig(max_sim_time="60"),
        "ConfigError: TerminationConfig(max_sim_time=«'60'»): ⟨must be > 0 s⟩, or None",
    ),
    "an unknown mode": (
        lambda d: TerminationConfig(mode="al"),
        "ConfigError: TerminationConfig(mode=«'al'»): ⟨must be 'all' or 'any'⟩. Did you mean 'all'?",
    ),
    "a misspelt limit": (
        lambda d: TerminationConfig(max_step=3),
        "UnknownArgument: TerminationConfig(«max_step»=...): no such option. ⟨Did you mean⟩ 'max_steps'?",
    ),
    "a limit that is a dictionary": (
        lambda d: env(max_steps=None, termination={"max_steps": 3}),
        "ConfigError: termination=«{'max_steps': 3}»: must be a TerminationConfig; ⟨write TerminationConfig(⟩...)",
    ),
    "no time in a step": (lambda d: env(dt=0), "ConfigError: «dt=0» s: ⟨must be > 0⟩ and at least one ns per substep"),
    "no substeps": (
        lambda d: env(physics_substeps=0),
        "ConfigError: «physics_substeps=0»: ⟨must be a whole number >= 1⟩",
    ),
    "an unknown way to draw": (
        lambda d: env(render_mode="rgb_aray"),
        "ConfigError: render_mode=«'rgb_aray'»: ⟨must be one of⟩ ['ansi', 'rgb_array'] or None. Did you mean 'rgb_array'?",
    ),
    "training delays that are a number": (
        lambda d: env(training_delays=2),
        "ConfigError: «training_delays=2»: must be a TrainingDelays; ⟨write TrainingDelays(observation=1, action=(0, 2))⟩",
    ),
    "a training delay in seconds": (
        lambda d: TrainingDelays(action=0.5),
        "ConfigError: TrainingDelays(«action=0.5»): must be a ⟨whole number of control steps⟩ >= 0, or (least, most)",
    ),
    "a range of training delays upside down": (
        lambda d: TrainingDelays(observation=(3, 1)),
        "ConfigError: TrainingDelays(«observation=(3, 1)»): must be a whole number of control steps >= 0, or ⟨(least, most)⟩",
    ),
    "a misspelt training delay": (
        lambda d: TrainingDelays(observations=1),
        "UnknownArgument: TrainingDelays(«observations»=...): no such option. ⟨Did you mean⟩ 'observation'?",
    ),
    "a variable of the system in words": (
        lambda d: with_variable("HERON_COMPILE", "false"),
        "ConfigError: HERON_COMPILE=«'false'»: must be 1 (compile rules), ⟨0 (run them in plain Python)⟩, or unset",
    ),
    "a switch as text": (lambda d: env(observe_age="no"), "ConfigError: observe_age=«'no'»: ⟨must be True or False⟩"),
    "a render mode as an array": (
        lambda d: env(render_mode=np.zeros(2)),
        "ConfigError: render_mode=«array([0., 0.])»: ⟨must be one of⟩ ['ansi', 'rgb_array'] or None.",
    ),
    "a count that nobody can build": (
        lambda d: make(GRID, num_batteries=10**6),
        "ConfigError: battery_grid(«num_batteries=1000000»): too many; ⟨take 10,000 at the most⟩",
    ),
    "homes that nobody can build, zone by zone": (
        lambda d: make(ENERGY, passive_per_zone=10**6),
        "ConfigError: «passive_per_zone=1000000»: too many; ⟨take 5,000 at the most⟩",
    ),
    "lanes that no memory holds": (
        lambda d: BatchEnv(GRID, 10**30),
        "ConfigError: BatchEnv(«num_envs=1000000000000000000000000000000»): too many; ⟨take 10,000,000 at the most⟩",
    ),
    "lanes that are objects, too many of them": (
        lambda d: BatchEnv(GRID, 10**6, compile=False),
        "ConfigError: BatchEnv(«num_envs=1000000»): too many; ⟨take 100,000 at the most⟩",
    ),
    "a function that breaks while it builds": (
        broken_inside,
        "ConfigError: make('breaks_inside:env'): building it raised «KeyError: 'roof'» (at DIR/breaks_inside.py:2); ⟨mend that⟩",
    ),
    "padding that is neither on nor off": (
        lambda d: env(pad="widest"),
        "ConfigError: pad=«'widest'»: ⟨must be True or False⟩",
    ),
}
