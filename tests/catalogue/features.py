"""Bad inputs: feature classes, their quantities, and their values."""

import math

import numpy as np
from catalogue.small_world import Battery, Charge, agent, env, feature, tree

from heron_env import FieldAgentState, HeronEnv, quantity


def appended_twice():
    state = FieldAgentState(owner_id="b", owner_level=1)
    state.features.append(Charge())
    state.features.append(Charge())


def global_features(given):
    return type("Mine", (HeronEnv,), {"global_features": given})(tree(), max_steps=2)


FEATURES = {
    "two features of one class": lambda d: Battery("b", Charge(), Charge()),
    "a feature that is not declared": lambda d: Battery("b", feature()()),
    "features without a comma": lambda d: agent(features=Charge)("m"),
    "features by name": lambda d: agent(features=("Charge",))("m"),
    "a global feature that is an object": lambda d: global_features((Charge(),)),
    "a global feature twice": lambda d: global_features((Charge, Charge)),
    "a global feature of an owner": lambda d: global_features((feature(),)),
    "a misspelt field at construction": lambda d: Charge(sco=0.3),
    "a value without its name": lambda d: Charge(0.3),
    "a misspelt field of set_values": lambda d: Charge().set_values(pwer=1.0),
    "a misspelt field with a dot": lambda d: Charge().sco,
    "a list for from_dict": lambda d: Charge.from_dict([0.3]),
    "a misspelt feature of a state": lambda d: env().proxy.state_cache["agents"]["battery_1"].features["Chrage"],
    "a feature appended twice": lambda d: appended_twice(),
    "a misspelt field of the world": lambda d: env().world[Battery].Charge.pwoer,
    "a class that no agent has": lambda d: env().world[Charge],
}

QUANTITIES = {
    "text as a quantity": lambda d: feature("str"),
    "an array without a shape": lambda d: feature(np.ndarray, x=quantity(default=[1.0, 2.0])),
    "a default outside the bounds": lambda d: feature(x=quantity(default=2.0, low=0.0, high=1.0)),
    "low above high": lambda d: feature(x=quantity(low=1.0, high=0.0)),
    "a bound that is a word": lambda d: quantity(low="zero"),
    "nan as a default": lambda d: feature(x=quantity(default=math.nan)),
    "None as a default": lambda d: feature(x=None),
    "half an int": lambda d: feature(int, x=0.5),
    "a category by name": lambda d: feature(int, x=quantity(default="on", categories=("off", "on"))),
    "categories in one string": lambda d: quantity(categories="off,on"),
    "an unknown tag": lambda d: feature(visibility=("pubic",)),
    "a tag without a comma": lambda d: feature(visibility="owner"),
    "no tags as None": lambda d: feature(visibility=None),
    "a shape that is a number": lambda d: quantity(shape=3),
    "a mark in words": lambda d: quantity(foreknown="yes"),
    "what is relative in words": lambda d: quantity(relative="to me"),
    "a category less another": lambda d: feature(int, x=quantity(categories=("off", "on"), relative=True)),
    "a switch less another": lambda d: feature(bool, x=quantity(relative=True)),
    "what is said by name": lambda d: quantity(to_owner="agent_1"),
    "what is observed in words": lambda d: quantity(observed="no"),
    "noise in words": lambda d: quantity(noisy="never"),
    "a flow by number": lambda d: quantity(per_step=1),
    "a number of categories": lambda d: quantity(categories=3),
    "a default of another shape": lambda d: feature(np.ndarray, x=quantity(default=[1.0, 2.0], shape=(3,))),
    "a field called like a method": lambda d: feature(None, __annotations__={"vector": float}),
    "a quantity without annotation": lambda d: feature(None, x=quantity(default=1.0)),
    "a misspelt keyword of quantity": lambda d: quantity(defualt=1.0),
    "a value that is a word": lambda d: Charge(soc="half"),
    "per cent for a share": lambda d: Charge(soc=30),
    "nan written to a field": lambda d: setattr(Charge(), "soc", math.nan),
}
