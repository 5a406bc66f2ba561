"""Bad inputs: schedules, whole episodes and who decides in them."""

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
    "a schedule's time without its name": lambda d: ScheduleConfig(60.0),
    "a misspelt option of a run": lambda d: run(tend=3.0),
    "a negative delay": lambda d: ScheduleConfig(msg_delay=-1.0),
    "a delay of nan": lambda d: ScheduleConfig(act_delay=math.nan),
    "a delay with its unit": lambda d: ScheduleConfig(obs_delay="2s"),
    "no time between ticks": lambda d: ScheduleConfig(tick_interval=0.0),
    "an unknown jitter": lambda d: ScheduleConfig(jitter_type="guassian"),
    "jitter of no type": lambda d: ScheduleConfig(jitter_ratio=0.1),
    "loss above one": lambda d: ScheduleConfig(loss=10),
    "a misspelt delay": lambda d: ScheduleConfig(msg_dealy=2.0),
    "an unknown agent in a schedule": lambda d: env(schedule={"batery_1": ScheduleConfig()}),
    "a level that is not there": lambda d: env(schedule={4: ScheduleConfig()}),
    "a number for a schedule": lambda d: env(schedule={"battery": 60.0}),
    "seconds for all": lambda d: env(schedule=60.0),
    "one level twice": lambda d: env(schedule={1: ScheduleConfig(), "field": ScheduleConfig()}),
    "ticks that are no multiple of dt": lambda d: env(dt=60.0, schedule=ScheduleConfig(tick_interval=90.0)).reset(),
}

EPISODES = {
    "a reset in a policy": lambda d: meddled(lambda world: world.reset()),
    "a step in a policy": lambda d: meddled(lambda world: world.step({})),
    "a look-ahead that is not taken back": lambda d: meddled(lambda world: (world.get_state(), world.step({}))),
    "a look-ahead in the event-driven clock": lambda d: meddled(
        lambda world: (world.get_state(), world.step({})), "run_event_driven"
    ),
    "a reset between two parts of a run": reset_between,
    "a masked action in the event-driven clock": lambda d: run({"*": lambda vector: np.ma.array([0.3], mask=[True])}),
    "a masked part of an action in the synchronous clock": lambda d: env().run_synchronous(
        {"*": lambda vector: {"c": np.ma.array([0.3], mask=[True])}}
    ),
    "a disturbance that does not say how long": lambda d: disturbed(DisturbanceType("A gust.")),
    "a single event that lasts": lambda d: disturbed(DisturbanceType("A gust.", lasts=False), duration=2.0),
    "a type that lasts in words": lambda d: DisturbanceType("A gust.", lasts="no"),
    "a negative end": lambda d: run(t_end=-1),
    "an end in words": lambda d: run(t_end="60"),
    "an episode without end": lambda d: run(max_steps=None),
    "a misspelt record": lambda d: run(record=("reward",)),
    "a record without a comma": lambda d: run(record="rewards"),
    "a misspelt record of the other clock": lambda d: env().run_synchronous({"*": still}, record=("action",)),
    "a wait longer than a step": lambda d: run(wait=9.0),
    "a negative seed of an episode": lambda d: run(seed=-1),
    "policies for nobody": lambda d: run({"batery": still}),
    "a policy too few": lambda d: run({"battery_1": still}),
    "a policy for one that watches": lambda d: run({"*": still, "zone_1": still}),
    "a policy by name": lambda d: run({"*": "random"}),
    "policies that are one name": lambda d: run("random"),
    "a policy that returns nothing": lambda d: run({"*": lambda vector: None}),
    "a policy that returns too much": lambda d: run({"*": lambda vector: np.zeros(2)}),
    "an array where a trace is asked for": lambda d: env().start_event_driven(
        {"*": lambda vector: 0.0}, trace=np.zeros(2)
    ),
    "a state of another making": state_without_mark,
}
