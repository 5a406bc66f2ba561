"""Bad inputs: feature classes, their quantities, and their values."""

# ruff: noqa: E501 (a message is one line)

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
    "two features of one class": (
        lambda d: Battery("b", Charge(), Charge()),
        "FeatureError: Battery('b'): «Charge» is given twice; ⟨give it once⟩",
    ),
    "a feature that is not declared": (
        lambda d: Battery("b", feature()()),
        "FeatureError: Battery('b'): «Mine» is not among its features ['Charge']; ⟨add it to `features`⟩",
    ),
    "features without a comma": (
        lambda d: agent(features=Charge)("m"),
        "FeatureError: Mine.features=<class 'catalogue.small_world.«Charge»'>: ⟨must be a tuple of feature classes⟩; write (Charge,)",
    ),
    "features by name": (
        lambda d: agent(features=("Charge",))("m"),
        "FeatureError: Mine.features[0]=«'Charge'»: ⟨must be a feature class⟩; write Price, not Price() or 'Price'",
    ),
    "a global feature that is an object": (
        lambda d: global_features((Charge(),)),
        "FeatureError: Mine.global_features[0]=«Charge(»soc=0.5, power=0.0): ⟨must be a feature class⟩; write Price, not Price() or 'Price'",
    ),
    "a global feature twice": (
        lambda d: global_features((Charge, Charge)),
        "FeatureError: Mine.global_features«[1]»=<class 'catalogue.small_world.Charge'>: there is a Charge already; ⟨name it once⟩",
    ),
    "a global feature of an owner": (
        lambda d: global_features((feature(),)),
        "FeatureError: global feature Mine: tag «'owner'» has no meaning for the row 'global', which nobody owns; ⟨use ('public',)⟩, ('system',) or () for insiders only",
    ),
    "a misspelt field at construction": (
        lambda d: Charge(sco=0.3),
        "UnknownFeature: Charge(«sco»=...): no such field; ⟨fields are⟩ ['soc', 'power']. Did you mean 'soc'?",
    ),
    "a value without its name": (
        lambda d: Charge(0.3),
        "FeatureError: Charge(«0.3»): values go by name; ⟨write soc=0.3⟩",
    ),
    "a misspelt field of set_values": (
        lambda d: Charge().set_values(pwer=1.0),
        "UnknownFeature: Charge.set_values(«pwer»=...): no such field; ⟨fields are⟩ ['soc', 'power']. Did you mean 'power'?",
    ),
    "a misspelt field with a dot": (
        lambda d: Charge().sco,
        "UnknownField: Charge has no field «'sco'»; ⟨fields are⟩ ['soc', 'power']. Did you mean 'soc'?",
    ),
    "a list for from_dict": (
        lambda d: Charge.from_dict([0.3]),
        "FeatureError: Charge.from_dict(«[0.3]»): ⟨give a mapping of the fields⟩ ['soc', 'power']",
    ),
    "a misspelt feature of a state": (
        lambda d: env().proxy.state_cache["agents"]["battery_1"].features["Chrage"],
        "UnknownFeature: no feature «'Chrage'» in this state, ⟨which has ['Charge']⟩. Did you mean 'Charge'?",
    ),
    "a feature appended twice": (
        lambda d: appended_twice(),
        "FeatureError: features.append(«Charge(soc=0.5, power=0.0)»): this state ⟨has a Charge already⟩",
    ),
    "a misspelt field of the world": (
        lambda d: env().world[Battery].Charge.pwoer,
        "UnknownFeature: Charge has no field «'pwoer'»; ⟨fields are⟩ ['soc', 'power']. Did you mean 'power'?",
    ),
    "a class that no agent has": (
        lambda d: env().world[Charge],
        "UnknownFeature: «world[Charge]»: no agent of that class; ⟨classes are⟩ ['SystemAgent', 'Zone', 'Battery'].",
    ),
}

QUANTITIES = {
    "text as a quantity": (
        lambda d: feature("str"),
        "FeatureError: «Mine.x»: a quantity is a number, not str; ⟨annotate it float, int or bool⟩ (ids and texts belong to the agent, not to its state)",
    ),
    "an array without a shape": (
        lambda d: feature(np.ndarray, x=quantity(default=[1.0, 2.0])),
        "FeatureError: Mine.x: a quantity is a number, not «ndarray»; ⟨annotate it⟩ float, int or bool (ids and texts belong to the agent, not to its state)",
    ),
    "a default outside the bounds": (
        lambda d: feature(x=quantity(default=2.0, low=0.0, high=1.0)),
        "FeatureError: Mine.«x=2.0» lies outside [0.0, 1.0]; ⟨choose a value within⟩, or declare other bounds",
    ),
    "low above high": (
        lambda d: feature(x=quantity(low=1.0, high=0.0)),
        "FeatureError: Mine.x: «low=1.0» must not exceed high=0.0; ⟨exchange or correct them⟩",
    ),
    "a bound that is a word": (
        lambda d: quantity(low="zero"),
        "FeatureError: quantity(low=«'zero'»): is no bound; ⟨give a number⟩, or leave it out for none",
    ),
    "nan as a default": (
        lambda d: feature(x=quantity(default=math.nan)),
        "FeatureError: Mine.x=«nan» lies outside [-inf, inf]; ⟨choose a value within⟩, or declare other bounds",
    ),
    "None as a default": (lambda d: feature(x=None), "FeatureError: Mine.x=«None»: ⟨expected a number⟩"),
    "half an int": (
        lambda d: feature(int, x=0.5),
        "FeatureError: Mine.x=«0.5»: this quantity is int; ⟨give a whole number⟩, or annotate float",
    ),
    "a category by name": (
        lambda d: feature(int, x=quantity(default="on", categories=("off", "on"))),
        "FeatureError: Mine.x=«'on'»: expected a number, ⟨1 for the category 'on'⟩",
    ),
    "categories in one string": (
        lambda d: quantity(categories="off,on"),
        "FeatureError: quantity(categories=«'off,on'»): must be a tuple of names; ⟨write ('off', 'on')⟩",
    ),
    "an unknown tag": (
        lambda d: feature(visibility=("pubic",)),
        "FeatureError: Mine.visibility: unknown visibility tag «'pubic'»; ⟨tags are⟩ public, owner, upper_level, system, siblings, subordinates. Did you mean 'public'?",
    ),
    "a tag without a comma": (
        lambda d: feature(visibility="owner"),
        "FeatureError: Mine.visibility: «'owner'» is a string; ⟨write a tuple⟩, ('owner',)",
    ),
    "no tags as None": (
        lambda d: feature(visibility=None),
        "FeatureError: Mine.visibility: «None» is no tuple of tags; write ('public',), or ⟨() for nobody⟩",
    ),
    "a shape that is a number": (
        lambda d: quantity(shape=3),
        "FeatureError: quantity(shape=«3»): must be a tuple of whole numbers > 0; ⟨write (3,)⟩ for a vector of 3",
    ),
    "a mark in words": (
        lambda d: quantity(foreknown="yes"),
        "FeatureError: quantity(foreknown=«'yes'»): must be True or False; ⟨write True⟩ for what is really known ahead",
    ),
    "what is observed in words": (
        lambda d: quantity(observed="no"),
        "FeatureError: quantity(observed=«'no'»): must be True or False; ⟨write False⟩ for bookkeeping that nobody observes",
    ),
    "noise in words": (
        lambda d: quantity(noisy="never"),
        "FeatureError: quantity(noisy=«'never'»): must be True or False; ⟨write False⟩ for what observation noise must not fall on",
    ),
    "a flow by number": (
        lambda d: quantity(per_step=1),
        "FeatureError: quantity(«per_step=1»): must be True or False; ⟨write True⟩ for a flow that starts each step at 0",
    ),
    "a number of categories": (
        lambda d: quantity(categories=3),
        "FeatureError: quantity(«categories=3»): must be a tuple of names; ⟨write ('off', 'on')⟩",
    ),
    "a default of another shape": (
        lambda d: feature(np.ndarray, x=quantity(default=[1.0, 2.0], shape=(3,))),
        "FeatureError: Mine.x=«[1.0, 2.0]»: ⟨expected numbers of shape (3,)⟩",
    ),
    "a field called like a method": (
        lambda d: feature(None, __annotations__={"vector": float}),
        "FeatureError: Mine.«vector»: features have a 'vector' of their own; ⟨choose another name⟩",
    ),
    "a quantity without annotation": (
        lambda d: feature(None, x=quantity(default=1.0)),
        "FeatureError: «Mine.x»: ⟨annotate the quantity⟩, x: float = quantity(...)",
    ),
    "a misspelt keyword of quantity": (
        lambda d: quantity(defualt=1.0),
        "UnknownArgument: quantity(«defualt»=...): no such option. ⟨Did you mean⟩ 'default'?",
    ),
    "a value that is a word": (lambda d: Charge(soc="half"), "FeatureError: Charge.soc=«'half'»: ⟨expected a number⟩"),
    "per cent for a share": (
        lambda d: Charge(soc=30),
        "FeatureError: Charge.soc=«30» lies outside [0.0, 1.0]; ⟨choose a value within⟩, or declare other bounds",
    ),
    "nan written to a field": (
        lambda d: setattr(Charge(), "soc", math.nan),
        "FeatureError: Charge.soc=«nan»: a quantity must be a number; ⟨check what computes it⟩",
    ),
}
