"""Bad inputs: schedules, whole episodes and who decides in them."""

# ruff: noqa: E501 (a message is one line)

import math

import numpy as np
from catalogue.small_world import env, tree

from heron_env import Disturbance, DisturbanceType, HeronEnv, ScheduleConfig


def still(vector):
    return np.zeros(1)


def run(policies=None, max_steps=3, **options):
    return env(max_steps=max_steps).run_event_driven({"*": still} if policies is None else policies, **options)


def state_without_mark(folder):
    world = env()
    world.reset(seed=0)
    state = world.get_state()
    del state["mark"]
    world.set_state(state)


def detached():
    import pickle

    started = env().start_event_driven({"*": still})
    pickle.loads(pickle.dumps(started)).until(None)


def meddled(meddle, clock="run_synchronous"):
    """A run whose policy does something with its environment."""
    world = env()
    getattr(world, clock)({"*": lambda vector: (meddle(world), still(vector))[1]})


def reset_between(folder):
    world = env()
    started = world.start_event_driven({"*": still})
    started.until(2.0)
    world.reset()
    started.until(None)


def disturbed(kind, **options):
    """A gust, in an environment that knows them as `kind`."""
    gusty = type("Gusty", (HeronEnv,), {"disturbance_types": {"gust": kind}})(tree(), max_steps=3)
    gusty.run_synchronous({"*": still}, disturbances=[Disturbance(1.0, "gust", **options)])


SCHEDULES = {
    "a schedule's time without its name": (
        lambda d: ScheduleConfig(60.0),
        "ConfigError: ScheduleConfig(«60.0»): ⟨values go by name⟩; write ScheduleConfig(tick_interval=..., ...)",
    ),
    "a misspelt option of a run": (
        lambda d: run(tend=3.0),
        "UnknownArgument: run_event_driven(«tend»=...): no such option. ⟨Did you mean⟩ 't_end'?",
    ),
    "a negative delay": (
        lambda d: ScheduleConfig(msg_delay=-1.0),
        "ScheduleError: ScheduleConfig(«msg_delay=-1.0»): ⟨must be 0 or more⟩, in seconds",
    ),
    "a delay of nan": (
        lambda d: ScheduleConfig(act_delay=math.nan),
        "ScheduleError: ScheduleConfig(«act_delay=nan»): ⟨must be finite⟩",
    ),
    "a delay with its unit": (
        lambda d: ScheduleConfig(obs_delay="2s"),
        "ScheduleError: ScheduleConfig(obs_delay=«'2s'»): ⟨must be a number⟩, got str",
    ),
    "no time between ticks": (
        lambda d: ScheduleConfig(tick_interval=0.0),
        "ScheduleError: ScheduleConfig(tick_interval=«0.0»): ⟨must be at least 1e-9 seconds⟩; None means the env's dt",
    ),
    "an unknown jitter": (
        lambda d: ScheduleConfig(jitter_type="guassian"),
        "ScheduleError: ScheduleConfig(jitter_type=«'guassian'»): ⟨must be one of⟩ 'none', 'uniform', 'gaussian', 'lognormal'. Did you mean 'gaussian'?",
    ),
    "jitter of no type": (
        lambda d: ScheduleConfig(jitter_ratio=0.1),
        "ScheduleError: ScheduleConfig(jitter_ratio=«0.1»): ⟨needs jitter_type⟩='uniform', 'gaussian' or 'lognormal'",
    ),
    "loss above one": (
        lambda d: ScheduleConfig(loss=10),
        "ScheduleError: ScheduleConfig(loss=«10»): ⟨must be between 0 and 1⟩",
    ),
    "a misspelt delay": (
        lambda d: ScheduleConfig(msg_dealy=2.0),
        "UnknownArgument: ScheduleConfig(«msg_dealy»=...): no such option. ⟨Did you mean⟩ 'msg_delay'?",
    ),
    "an unknown agent in a schedule": (
        lambda d: env(schedule={"batery_1": ScheduleConfig()}),
        "ScheduleError: schedule[«'batery_1'»]: no such agent, group or level; ⟨groups are⟩ ['battery', 'system_agent', 'zone'], levels 1, 2, 3 or 'field', 'coordinator', 'system', and '*' means all. Did you mean 'battery_1'?",
    ),
    "a level that is not there": (
        lambda d: env(schedule={4: ScheduleConfig()}),
        "ScheduleError: «schedule[4]»: no such agent, group or level; groups are ['battery', 'system_agent', 'zone'], ⟨levels 1, 2, 3⟩ or 'field', 'coordinator', 'system', and '*' means all.",
    ),
    "a number for a schedule": (
        lambda d: env(schedule={"battery": 60.0}),
        "ScheduleError: schedule['battery']=«60.0»: must be a ScheduleConfig, got float; ⟨write ScheduleConfig(⟩tick_interval=...)",
    ),
    "seconds for all": (
        lambda d: env(schedule=60.0),
        "ScheduleError: schedule=«60.0»: ⟨must be a ScheduleConfig⟩, a mapping of them, or None, got float",
    ),
    "one level twice": (
        lambda d: env(schedule={1: ScheduleConfig(), "field": ScheduleConfig()}),
        "ScheduleError: schedule[«'field'»]: the entry 1 means the same level; ⟨keep one⟩",
    ),
    "ticks that are no multiple of dt": (
        lambda d: env(dt=60.0, schedule=ScheduleConfig(tick_interval=90.0)).reset(),
        "ScheduleError: agent 'battery_1': tick_interval=«90.0» s is not a whole multiple of the env's dt=60.0 s, which the synchronous clock needs. ⟨Use 120.0⟩, change dt, or give this schedule to run_event_driven() only",
    ),
}

EPISODES = {
    "a reset in a policy": (
        lambda d: meddled(lambda world: world.reset()),
        "RunInterrupted: «reset()»: called inside run_synchronous() of the same environment; plan on a copy, made before: model = ⟨copy.deepcopy(env)⟩; model.set_state(env.get_state()) brings it here",
    ),
    "a step in a policy": (
        lambda d: meddled(lambda world: world.step({})),
        "RunInterrupted: «step()»: called inside run_synchronous() of the same environment; plan on a copy, made before: model = ⟨copy.deepcopy(env)⟩; model.set_state(env.get_state()) brings it here, or keep the state first: state = env.get_state(), and env.set_state(state) after the steps",
    ),
    "a look-ahead that is not taken back": (
        lambda d: meddled(lambda world: (world.get_state(), world.step({}))),
        "RunInterrupted: run_synchronous(): the decision of «'battery_1'» at t=0.0 s left the environment elsewhere; end a look-ahead with ⟨env.set_state(state)⟩, the state that env.get_state() gave in this decision, or plan on a copy, made before: model = copy.deepcopy(env); model.set_state(env.get_state()) brings it here",
    ),
    "a look-ahead in the event-driven clock": (
        lambda d: meddled(lambda world: (world.get_state(), world.step({})), "run_event_driven"),
        "RunInterrupted: «step()»: called inside run_event_driven() of the same environment; plan on a copy, made before: model = ⟨copy.deepcopy(env)⟩",
    ),
    "a reset between two parts of a run": (
        reset_between,
        "RunInterrupted: until(): since this run was at «t=2.0 s», its environment was reset, restored or used by another run; use a copy for that: ⟨copy.deepcopy(env)⟩",
    ),
    "a masked action in the event-driven clock": (
        lambda d: run({"*": lambda vector: np.ma.array([0.3], mask=[True])}),
        "InvalidAction: action of «'battery_1'» is a masked array; ⟨fill it⟩: values.filled(0.0)",
    ),
    "a masked part of an action in the synchronous clock": (
        lambda d: env().run_synchronous({"*": lambda vector: {"c": np.ma.array([0.3], mask=[True])}}),
        "InvalidAction: action of «'battery_1'» is a masked array; ⟨fill it⟩: values.filled(0.0)",
    ),
    "a disturbance that does not say how long": (
        lambda d: disturbed(DisturbanceType("A gust.")),
        "ConfigError: disturbance 'gust' at t=1.0 s with «duration=None»: this type lasts: give it a duration=... in s, or declare the type of single events: ⟨DisturbanceType(lasts=False)⟩",
    ),
    "a single event that lasts": (
        lambda d: disturbed(DisturbanceType("A gust.", lasts=False), duration=2.0),
        "ConfigError: disturbance 'gust' at t=1.0 s with «duration=2.0»: this type is a single event: ⟨leave duration out⟩, or declare the type with DisturbanceType(lasts=True)",
    ),
    "a type that lasts in words": (
        lambda d: DisturbanceType("A gust.", lasts="no"),
        "ConfigError: DisturbanceType(lasts=«'no'»): must be True, or ⟨False for single events⟩",
    ),
    "a negative end": (lambda d: run(t_end=-1), "ScheduleError: «t_end=-1»: ⟨must be 0 or more⟩, in seconds"),
    "an end in words": (lambda d: run(t_end="60"), "ScheduleError: «t_end='60'»: ⟨must be a number⟩, got str"),
    "an episode without end": (
        lambda d: run(max_steps=None),
        "ConfigError: «run_event_driven()»: nothing ends this episode; ⟨give t_end, max_steps⟩, or an is_terminated rule",
    ),
    "a misspelt record": (
        lambda d: run(record=("reward",)),
        "ConfigError: record=(«'reward'»,): 'reward' can't be recorded; ⟨choose among⟩ ('rewards', 'actions', 'observations', 'frames'). Did you mean 'rewards'?",
    ),
    "a record without a comma": (
        lambda d: run(record="rewards"),
        "ConfigError: record=«'rewards'»: ⟨give a tuple⟩ of 'rewards', 'actions', 'observations', 'frames', or () for nothing",
    ),
    "a misspelt record of the other clock": (
        lambda d: env().run_synchronous({"*": still}, record=("action",)),
        "ConfigError: record=(«'action'»,): 'action' can't be recorded; ⟨choose among⟩ ('rewards', 'actions', 'observations', 'frames'). Did you mean 'actions'?",
    ),
    "a wait longer than a step": (
        lambda d: run(wait=9.0),
        "ScheduleError: «wait=9.0»: ⟨must lie in (0, dt=1.0]⟩ s, with a nanosecond for each substep",
    ),
    "a negative seed of an episode": (
        lambda d: run(seed=-1),
        "ConfigError: reset(seed=«-1»): a seed is ⟨a whole number >= 0⟩",
    ),
    "policies for nobody": (
        lambda d: run({"batery": still}),
        "UnknownAgent: policies: «'batery'» is neither an agent nor a group; ⟨there are⟩ ['system_agent', 'zone', 'battery', 'zone_1', 'battery_1', 'battery_2']. Did you mean 'battery'?",
    ),
    "a policy too few": (
        lambda d: run({"battery_1": still}),
        "ConfigError: no policy for «['battery_2']»: ⟨give one by id⟩, by group ['system_agent', 'zone', 'battery'] or for '*'",
    ),
    "a policy for one that watches": (
        lambda d: run({"*": still, "zone_1": still}),
        "ConfigError: policies[«'zone_1'»]: 'zone_1' has no action to decide; ⟨remove it⟩",
    ),
    "a policy by name": (
        lambda d: run({"*": "random"}),
        "ConfigError: policies['*']=«'random'»: ⟨a policy has forward(observation)⟩, decide_action(state) or answer(asked), or is a function of the vector",
    ),
    "policies that are one name": (
        lambda d: run("random"),
        "ConfigError: policies=«'random'»: must be a mapping; ⟨write {'*': policy}⟩ for one that all share",
    ),
    "a policy that returns nothing": (
        lambda d: run({"*": lambda vector: None}),
        "InvalidAction: action of 'battery_1': «[nan]» lies outside [-1.0, 1.0] kW; ⟨give numbers⟩ (None counts as nan)",
    ),
    "a policy that returns too much": (
        lambda d: run({"*": lambda vector: np.zeros(2)}),
        "InvalidAction: action of 'battery_1' has «2 elements», expected 1: [-1.0, 1.0] kW; ⟨reshape it⟩",
    ),
    "an array where a trace is asked for": (
        lambda d: env().start_event_driven({"*": lambda vector: 0.0}, trace=np.zeros(2)),
        "ConfigError: trace=«array([0., 0.])»: ⟨must be True or False⟩",
    ),
    "a state of another making": (
        state_without_mark,
        "ConfigError: set_state(): the state «lacks ['mark']»; ⟨give what get_state()⟩ of an equal environment returned",
    ),
}
