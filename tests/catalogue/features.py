"""Bad inputs: feature classes, their quantities, and their values."""

# ruff: noqa: E501 (a message is one line)

import math

import numpy as np
from catalogue.case import Case
from catalogue.small_world import Battery, Charge, agent, env, feature, tree

from heron_env import FieldAgentState, HeronEnv, quantity
from heron_env.errors import FeatureError, UnknownArgument, UnknownFeature, UnknownField


def appended_twice():
    state = FieldAgentState(owner_id="b", owner_level=1)
    state.features.append(Charge())
    state.features.append(Charge())


def global_features(given):
    return type("Mine", (HeronEnv,), {"global_features": given})(tree(), max_steps=2)


FEATURES = [
    Case(
        "two features of one class",
        FeatureError,
        lambda d: Battery("b", Charge(), Charge()),
        "Charge",
        "give it once",
        "Battery('b'): Charge is given twice; give it once",
    ),
    Case(
        "a feature that is not declared",
        FeatureError,
        lambda d: Battery("b", feature()()),
        "Mine",
        "add it to `features`",
        "Battery('b'): Mine is not among its features ['Charge']; add it to `features`",
    ),
    Case(
        "features without a comma",
        FeatureError,
        lambda d: agent(features=Charge)("m"),
        "Charge",
        "must be a tuple of feature classes",
        "Mine.features=<class 'catalogue.small_world.Charge'>: must be a tuple of feature classes; write (Charge,)",
    ),
    Case(
        "features by name",
        FeatureError,
        lambda d: agent(features=("Charge",))("m"),
        "'Charge'",
        "must be a feature class",
        "Mine.features[0]='Charge': must be a feature class; write Price, not Price() or 'Price'",
    ),
    Case(
        "a global feature that is an object",
        FeatureError,
        lambda d: global_features((Charge(),)),
        "Charge(",
        "must be a feature class",
        "Mine.global_features[0]=Charge(soc=0.5, power=0.0): must be a feature class; write Price, not Price() or 'Price'",
    ),
    Case(
        "a global feature twice",
        FeatureError,
        lambda d: global_features((Charge, Charge)),
        "[1]",
        "name it once",
        "Mine.global_features[1]=<class 'catalogue.small_world.Charge'>: there is a Charge already; name it once",
    ),
    Case(
        "a global feature of an owner",
        FeatureError,
        lambda d: global_features((feature(),)),
        "'owner'",
        "use ('public',)",
        "global feature Mine: tag 'owner' has no meaning for the row 'global', which nobody owns; use ('public',), ('system',) or () for insiders only",
    ),
    Case(
        "a misspelt field at construction",
        UnknownFeature,
        lambda d: Charge(sco=0.3),
        "sco",
        "fields are",
        "Charge(sco=...): no such field; fields are ['soc', 'power']. Did you mean 'soc'?",
        "soc",
    ),
    Case(
        "a value without its name",
        FeatureError,
        lambda d: Charge(0.3),
        "0.3",
        "write soc=0.3",
        "Charge(0.3): values go by name; write soc=0.3",
    ),
    Case(
        "a misspelt field of set_values",
        UnknownFeature,
        lambda d: Charge().set_values(pwer=1.0),
        "pwer",
        "fields are",
        "Charge.set_values(pwer=...): no such field; fields are ['soc', 'power']. Did you mean 'power'?",
        "power",
    ),
    Case(
        "a misspelt field with a dot",
        UnknownField,
        lambda d: Charge().sco,
        "'sco'",
        "fields are",
        "Charge has no field 'sco'; fields are ['soc', 'power']. Did you mean 'soc'?",
        "soc",
    ),
    Case(
        "a list for from_dict",
        FeatureError,
        lambda d: Charge.from_dict([0.3]),
        "[0.3]",
        "give a mapping of the fields",
        "Charge.from_dict([0.3]): give a mapping of the fields ['soc', 'power']",
    ),
    Case(
        "a misspelt feature of a state",
        UnknownFeature,
        lambda d: env().proxy.state_cache["agents"]["battery_1"].features["Chrage"],
        "'Chrage'",
        "which has ['Charge']",
        "no feature 'Chrage' in this state, which has ['Charge']. Did you mean 'Charge'?",
        "Charge",
    ),
    Case(
        "a feature appended twice",
        FeatureError,
        lambda d: appended_twice(),
        "Charge(soc=0.5, power=0.0)",
        "has a Charge already",
        "features.append(Charge(soc=0.5, power=0.0)): this state has a Charge already",
    ),
    Case(
        "a misspelt field of the world",
        UnknownFeature,
        lambda d: env().world[Battery].Charge.pwoer,
        "'pwoer'",
        "fields are",
        "Charge has no field 'pwoer'; fields are ['soc', 'power']. Did you mean 'power'?",
        "power",
    ),
    Case(
        "a class that no agent has",
        UnknownFeature,
        lambda d: env().world[Charge],
        "world[Charge]",
        "classes are",
        "world[Charge]: no agent of that class; classes are ['SystemAgent', 'Zone', 'Battery'].",
    ),
]

QUANTITIES = [
    Case(
        "text as a quantity",
        FeatureError,
        lambda d: feature("str"),
        "Mine.x",
        "annotate it float, int or bool",
        "Mine.x: a quantity is a number, not str; annotate it float, int or bool (ids and texts belong to the agent, not to its state)",
    ),
    Case(
        "an array without a shape",
        FeatureError,
        lambda d: feature(np.ndarray, x=quantity(default=[1.0, 2.0])),
        "ndarray",
        "annotate it",
        "Mine.x: a quantity is a number, not ndarray; annotate it float, int or bool (ids and texts belong to the agent, not to its state)",
    ),
    Case(
        "a default outside the bounds",
        FeatureError,
        lambda d: feature(x=quantity(default=2.0, low=0.0, high=1.0)),
        "x=2.0",
        "choose a value within",
        "Mine.x=2.0 lies outside [0.0, 1.0]; choose a value within, or declare other bounds",
    ),
    Case(
        "low above high",
        FeatureError,
        lambda d: feature(x=quantity(low=1.0, high=0.0)),
        "low=1.0",
        "exchange or correct them",
        "Mine.x: low=1.0 must not exceed high=0.0; exchange or correct them",
    ),
    Case(
        "a bound that is a word",
        FeatureError,
        lambda d: quantity(low="zero"),
        "'zero'",
        "give a number",
        "quantity(low='zero'): is no bound; give a number, or leave it out for none",
    ),
    Case(
        "nan as a default",
        FeatureError,
        lambda d: feature(x=quantity(default=math.nan)),
        "nan",
        "choose a value within",
        "Mine.x=nan lies outside [-inf, inf]; choose a value within, or declare other bounds",
    ),
    Case(
        "None as a default",
        FeatureError,
        lambda d: feature(x=None),
        "None",
        "expected a number",
        "Mine.x=None: expected a number",
    ),
    Case(
        "half an int",
        FeatureError,
        lambda d: feature(int, x=0.5),
        "0.5",
        "give a whole number",
        "Mine.x=0.5: this quantity is int; give a whole number, or annotate float",
    ),
    Case(
        "a category by name",
        FeatureError,
        lambda d: feature(int, x=quantity(default="on", categories=("off", "on"))),
        "'on'",
        "1 for the category 'on'",
        "Mine.x='on': expected a number, 1 for the category 'on'",
    ),
    Case(
        "categories in one string",
        FeatureError,
        lambda d: quantity(categories="off,on"),
        "'off,on'",
        "write ('off', 'on')",
        "quantity(categories='off,on'): must be a tuple of names; write ('off', 'on')",
    ),
    Case(
        "an unknown tag",
        FeatureError,
        lambda d: feature(visibility=("pubic",)),
        "'pubic'",
        "tags are",
        "Mine.visibility: unknown visibility tag 'pubic'; tags are public, owner, upper_level, system, siblings, subordinates. Did you mean 'public'?",
        "public",
    ),
    Case(
        "a tag without a comma",
        FeatureError,
        lambda d: feature(visibility="owner"),
        "'owner'",
        "write a tuple",
        "Mine.visibility: 'owner' is a string; write a tuple, ('owner',)",
    ),
    Case(
        "no tags as None",
        FeatureError,
        lambda d: feature(visibility=None),
        "None",
        "() for nobody",
        "Mine.visibility: None is no tuple of tags; write ('public',), or () for nobody",
    ),
    Case(
        "a shape that is a number",
        FeatureError,
        lambda d: quantity(shape=3),
        "3",
        "write (3,)",
        "quantity(shape=3): must be a tuple of whole numbers > 0; write (3,) for a vector of 3",
    ),
    Case(
        "a default of another shape",
        FeatureError,
        lambda d: feature(np.ndarray, x=quantity(default=[1.0, 2.0], shape=(3,))),
        "[1.0, 2.0]",
        "expected numbers of shape (3,)",
        "Mine.x=[1.0, 2.0]: expected numbers of shape (3,)",
    ),
    Case(
        "a field called like a method",
        FeatureError,
        lambda d: feature(None, __annotations__={"vector": float}),
        "vector",
        "choose another name",
        "Mine.vector: features have a 'vector' of their own; choose another name",
    ),
    Case(
        "a quantity without annotation",
        FeatureError,
        lambda d: feature(None, x=quantity(default=1.0)),
        "Mine.x",
        "annotate the quantity",
        "Mine.x: annotate the quantity, x: float = quantity(...)",
    ),
    Case(
        "a misspelt keyword of quantity",
        UnknownArgument,
        lambda d: quantity(defualt=1.0),
        "defualt",
        "Did you mean",
        "quantity(defualt=...): no such option. Did you mean 'default'?",
        "default",
    ),
    Case(
        "a value that is a word",
        FeatureError,
        lambda d: Charge(soc="half"),
        "'half'",
        "expected a number",
        "Charge.soc='half': expected a number",
    ),
    Case(
        "per cent for a share",
        FeatureError,
        lambda d: Charge(soc=30),
        "30",
        "choose a value within",
        "Charge.soc=30 lies outside [0.0, 1.0]; choose a value within, or declare other bounds",
    ),
    Case(
        "nan written to a field",
        FeatureError,
        lambda d: setattr(Charge(), "soc", math.nan),
        "nan",
        "check what computes it",
        "Charge.soc=nan: a quantity must be a number; check what computes it",
    ),
]
