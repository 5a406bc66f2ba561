"""Bad inputs: schedules, whole episodes and who decides in them."""

# ruff: noqa: E501 (a message is one line)

import math

import numpy as np
from catalogue.case import Case
from catalogue.small_world import env, tree

from heron_env import Disturbance, DisturbanceType, HeronEnv, ScheduleConfig
from heron_env.errors import ConfigError, InvalidAction, RunInterrupted, ScheduleError, UnknownAgent, UnknownArgument


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


SCHEDULES = [
    Case(
        "a schedule's time without its name",
        ConfigError,
        lambda d: ScheduleConfig(60.0),
        "60.0",
        "values go by name",
        "ScheduleConfig(60.0): values go by name; write ScheduleConfig(tick_interval=..., ...)",
    ),
    Case(
        "a misspelt option of a run",
        UnknownArgument,
        lambda d: run(tend=3.0),
        "tend",
        "Did you mean",
        "run_event_driven(tend=...): no such option. Did you mean 't_end'?",
        "t_end",
    ),
    Case(
        "a negative delay",
        ScheduleError,
        lambda d: ScheduleConfig(msg_delay=-1.0),
        "msg_delay=-1.0",
        "must be 0 or more",
        "ScheduleConfig(msg_delay=-1.0): must be 0 or more, in seconds",
    ),
    Case(
        "a delay of nan",
        ScheduleError,
        lambda d: ScheduleConfig(act_delay=math.nan),
        "act_delay=nan",
        "must be finite",
        "ScheduleConfig(act_delay=nan): must be finite",
    ),
    Case(
        "a delay with its unit",
        ScheduleError,
        lambda d: ScheduleConfig(obs_delay="2s"),
        "'2s'",
        "must be a number",
        "ScheduleConfig(obs_delay='2s'): must be a number, got str",
    ),
    Case(
        "no time between ticks",
        ScheduleError,
        lambda d: ScheduleConfig(tick_interval=0.0),
        "0.0",
        "must be at least 1e-9 seconds",
        "ScheduleConfig(tick_interval=0.0): must be at least 1e-9 seconds; None means the env's dt",
    ),
    Case(
        "an unknown jitter",
        ScheduleError,
        lambda d: ScheduleConfig(jitter_type="guassian"),
        "'guassian'",
        "must be one of",
        "ScheduleConfig(jitter_type='guassian'): must be one of 'none', 'uniform', 'gaussian', 'lognormal'. Did you mean 'gaussian'?",
        "gaussian",
    ),
    Case(
        "jitter of no type",
        ScheduleError,
        lambda d: ScheduleConfig(jitter_ratio=0.1),
        "0.1",
        "needs jitter_type",
        "ScheduleConfig(jitter_ratio=0.1): needs jitter_type='uniform', 'gaussian' or 'lognormal'",
    ),
    Case(
        "loss above one",
        ScheduleError,
        lambda d: ScheduleConfig(loss=10),
        "10",
        "must be between 0 and 1",
        "ScheduleConfig(loss=10): must be between 0 and 1",
    ),
    Case(
        "a misspelt delay",
        UnknownArgument,
        lambda d: ScheduleConfig(msg_dealy=2.0),
        "msg_dealy",
        "Did you mean",
        "ScheduleConfig(msg_dealy=...): no such option. Did you mean 'msg_delay'?",
        "msg_delay",
    ),
    Case(
        "an unknown agent in a schedule",
        ScheduleError,
        lambda d: env(schedule={"batery_1": ScheduleConfig()}),
        "'batery_1'",
        "groups are",
        "schedule['batery_1']: no such agent, group or level; groups are ['battery', 'system_agent', 'zone'], levels 1, 2, 3 or 'field', 'coordinator', 'system', and '*' means all. Did you mean 'battery_1'?",
        "battery_1",
    ),
    Case(
        "a level that is not there",
        ScheduleError,
        lambda d: env(schedule={4: ScheduleConfig()}),
        "schedule[4]",
        "levels 1, 2, 3",
        "schedule[4]: no such agent, group or level; groups are ['battery', 'system_agent', 'zone'], levels 1, 2, 3 or 'field', 'coordinator', 'system', and '*' means all.",
    ),
    Case(
        "a number for a schedule",
        ScheduleError,
        lambda d: env(schedule={"battery": 60.0}),
        "60.0",
        "write ScheduleConfig(",
        "schedule['battery']=60.0: must be a ScheduleConfig, got float; write ScheduleConfig(tick_interval=...)",
    ),
    Case(
        "seconds for all",
        ScheduleError,
        lambda d: env(schedule=60.0),
        "60.0",
        "must be a ScheduleConfig",
        "schedule=60.0: must be a ScheduleConfig, a mapping of them, or None, got float",
    ),
    Case(
        "one level twice",
        ScheduleError,
        lambda d: env(schedule={1: ScheduleConfig(), "field": ScheduleConfig()}),
        "'field'",
        "keep one",
        "schedule['field']: the entry 1 means the same level; keep one",
    ),
    Case(
        "ticks that are no multiple of dt",
        ScheduleError,
        lambda d: env(dt=60.0, schedule=ScheduleConfig(tick_interval=90.0)).reset(),
        "90.0",
        "Use 120.0",
        "agent 'battery_1': tick_interval=90.0 s is not a whole multiple of the env's dt=60.0 s, which the synchronous clock needs. Use 120.0, change dt, or give this schedule to run_event_driven() only",
    ),
]

EPISODES = [
    Case(
        "a reset in a policy",
        RunInterrupted,
        lambda d: meddled(lambda world: world.reset()),
        "reset()",
        "copy.deepcopy(env)",
        "reset(): called inside run_synchronous() of the same environment; plan on a copy, made before: model = copy.deepcopy(env); model.set_state(env.get_state()) brings it here",
    ),
    Case(
        "a step in a policy",
        RunInterrupted,
        lambda d: meddled(lambda world: world.step({})),
        "step()",
        "copy.deepcopy(env)",
        "step(): called inside run_synchronous() of the same environment; plan on a copy, made before: model = copy.deepcopy(env); model.set_state(env.get_state()) brings it here, or keep the state first: state = env.get_state(), and env.set_state(state) after the steps",
    ),
    Case(
        "a look-ahead that is not taken back",
        RunInterrupted,
        lambda d: meddled(lambda world: (world.get_state(), world.step({}))),
        "'battery_1'",
        "env.set_state(state)",
        "run_synchronous(): the decision of 'battery_1' at t=0.0 s left the environment elsewhere; end a look-ahead with env.set_state(state), the state that env.get_state() gave in this decision, or plan on a copy, made before: model = copy.deepcopy(env); model.set_state(env.get_state()) brings it here",
    ),
    Case(
        "a look-ahead in the event-driven clock",
        RunInterrupted,
        lambda d: meddled(lambda world: (world.get_state(), world.step({})), "run_event_driven"),
        "step()",
        "copy.deepcopy(env)",
        "step(): called inside run_event_driven() of the same environment; plan on a copy, made before: model = copy.deepcopy(env)",
    ),
    Case(
        "a reset between two parts of a run",
        RunInterrupted,
        reset_between,
        "t=2.0 s",
        "copy.deepcopy(env)",
        "until(): since this run was at t=2.0 s, its environment was reset, restored or used by another run; use a copy for that: copy.deepcopy(env)",
    ),
    Case(
        "a masked action in the event-driven clock",
        InvalidAction,
        lambda d: run({"*": lambda vector: np.ma.array([0.3], mask=[True])}),
        "'battery_1'",
        "fill it",
        "action of 'battery_1' is a masked array; fill it: values.filled(0.0)",
    ),
    Case(
        "a masked part of an action in the synchronous clock",
        InvalidAction,
        lambda d: env().run_synchronous({"*": lambda vector: {"c": np.ma.array([0.3], mask=[True])}}),
        "'battery_1'",
        "fill it",
        "action of 'battery_1' is a masked array; fill it: values.filled(0.0)",
    ),
    Case(
        "a disturbance that does not say how long",
        ConfigError,
        lambda d: disturbed(DisturbanceType("A gust.")),
        "duration=None",
        "DisturbanceType(lasts=False)",
        "disturbance 'gust' at t=1.0 s with duration=None: this type lasts: give it a duration=... in s, or declare the type of single events: DisturbanceType(lasts=False)",
    ),
    Case(
        "a single event that lasts",
        ConfigError,
        lambda d: disturbed(DisturbanceType("A gust.", lasts=False), duration=2.0),
        "duration=2.0",
        "leave duration out",
        "disturbance 'gust' at t=1.0 s with duration=2.0: this type is a single event: leave duration out, or declare the type with DisturbanceType(lasts=True)",
    ),
    Case(
        "a type that lasts in words",
        ConfigError,
        lambda d: DisturbanceType("A gust.", lasts="no"),
        "'no'",
        "False for single events",
        "DisturbanceType(lasts='no'): must be True, or False for single events",
    ),
    Case(
        "a negative end",
        ScheduleError,
        lambda d: run(t_end=-1),
        "t_end=-1",
        "must be 0 or more",
        "t_end=-1: must be 0 or more, in seconds",
    ),
    Case(
        "an end in words",
        ScheduleError,
        lambda d: run(t_end="60"),
        "t_end='60'",
        "must be a number",
        "t_end='60': must be a number, got str",
    ),
    Case(
        "an episode without end",
        ConfigError,
        lambda d: run(max_steps=None),
        "run_event_driven()",
        "give t_end, max_steps",
        "run_event_driven(): nothing ends this episode; give t_end, max_steps, or an is_terminated rule",
    ),
    Case(
        "a misspelt record",
        ConfigError,
        lambda d: run(record=("reward",)),
        "'reward'",
        "choose among",
        "record=('reward',): 'reward' can't be recorded; choose among ('rewards', 'actions', 'observations'). Did you mean 'rewards'?",
        "rewards",
    ),
    Case(
        "a record without a comma",
        ConfigError,
        lambda d: run(record="rewards"),
        "'rewards'",
        "give a tuple",
        "record='rewards': give a tuple of 'rewards', 'actions', 'observations', or () for nothing",
    ),
    Case(
        "a misspelt record of the other clock",
        ConfigError,
        lambda d: env().run_synchronous({"*": still}, record=("action",)),
        "'action'",
        "choose among",
        "record=('action',): 'action' can't be recorded; choose among ('rewards', 'actions', 'observations'). Did you mean 'actions'?",
        "actions",
    ),
    Case(
        "a wait longer than a step",
        ScheduleError,
        lambda d: run(wait=9.0),
        "wait=9.0",
        "must lie in (0, dt=1.0]",
        "wait=9.0: must lie in (0, dt=1.0] s, with a nanosecond for each substep",
    ),
    Case(
        "a negative seed of an episode",
        ConfigError,
        lambda d: run(seed=-1),
        "-1",
        "a whole number >= 0",
        "reset(seed=-1): a seed is a whole number >= 0",
    ),
    Case(
        "policies for nobody",
        UnknownAgent,
        lambda d: run({"batery": still}),
        "'batery'",
        "there are",
        "policies: 'batery' is neither an agent nor a group; there are ['system_agent', 'zone', 'battery', 'zone_1', 'battery_1', 'battery_2']. Did you mean 'battery'?",
        "battery",
    ),
    Case(
        "a policy too few",
        ConfigError,
        lambda d: run({"battery_1": still}),
        "['battery_2']",
        "give one by id",
        "no policy for ['battery_2']: give one by id, by group ['system_agent', 'zone', 'battery'] or for '*'",
    ),
    Case(
        "a policy for one that watches",
        ConfigError,
        lambda d: run({"*": still, "zone_1": still}),
        "'zone_1'",
        "remove it",
        "policies['zone_1']: 'zone_1' has no action to decide; remove it",
    ),
    Case(
        "a policy by name",
        ConfigError,
        lambda d: run({"*": "random"}),
        "'random'",
        "a policy has forward(observation)",
        "policies['*']='random': a policy has forward(observation), decide_action(state) or answer(asked), or is "
        "a function of the vector",
    ),
    Case(
        "policies that are one name",
        ConfigError,
        lambda d: run("random"),
        "'random'",
        "write {'*': policy}",
        "policies='random': must be a mapping; write {'*': policy} for one that all share",
    ),
    Case(
        "a policy that returns nothing",
        InvalidAction,
        lambda d: run({"*": lambda vector: None}),
        "[nan]",
        "give numbers",
        "action of 'battery_1': [nan] lies outside [-1.0, 1.0] kW; give numbers (None counts as nan)",
    ),
    Case(
        "a policy that returns too much",
        InvalidAction,
        lambda d: run({"*": lambda vector: np.zeros(2)}),
        "2 elements",
        "reshape it",
        "action of 'battery_1' has 2 elements, expected 1: [-1.0, 1.0] kW; reshape it",
    ),
    Case(
        "an array where a trace is asked for",
        ConfigError,
        lambda d: env().start_event_driven({"*": lambda vector: 0.0}, trace=np.zeros(2)),
        "array([0., 0.])",
        "must be True or False",
        "trace=array([0., 0.]): must be True or False",
    ),
    Case(
        "a state of another making",
        ConfigError,
        state_without_mark,
        "lacks ['mark']",
        "give what get_state()",
        "set_state(): the state lacks ['mark']; give what get_state() of an equal environment returned",
    ),
]
