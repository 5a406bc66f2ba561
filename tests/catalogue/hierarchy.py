"""Bad inputs: the tree of agents, their features and what they tell each other."""

import numpy as np
from catalogue.small_world import Battery, Charge, Zone, agent, env, tree

from heron_env import (
    Broadcast,
    Continuous,
    CoordinatorAgent,
    Discrete,
    HeronEnv,
    Inbox,
    SetpointSplit,
    StateAverage,
    StateShare,
    SystemAgent,
    VectorDecomposition,
    quantity,
)


class Heard(Inbox):
    """Slots for two neighbours."""

    soc: np.ndarray = quantity(default=0.0, low=0.0, high=1.0, shape=(2,))


class Talker(Battery):
    """Hears others."""

    features = (Charge, Heard)


def shared(edges, *talkers, **options):
    talkers = talkers or tuple(Talker(f"b_{i}") for i in (1, 2, 3))
    exchange = (
        edges if isinstance(edges, str) and edges == "text" else StateShare(Charge.soc, Heard.soc, edges, **options)
    )
    return HeronEnv(SystemAgent("s", Zone("z", *talkers, exchange=exchange)), max_steps=3)


def built_twice():
    root = tree()
    HeronEnv(root, max_steps=3)
    return HeronEnv(root, max_steps=3)


def one_object_twice():
    battery = Battery("battery_1")
    return env(battery, battery)


HIERARCHY = {
    "two agents of one id": lambda d: env(Battery("b"), Battery("b")),
    "one object in two places": lambda d: one_object_twice(),
    "a reserved id": lambda d: env(Battery("global")),
    "the id is forgotten": lambda d: Zone(Battery("b")),
    "the id is a number": lambda d: Battery(1),
    "a zone as the root": lambda d: HeronEnv(Zone("z", Battery("b"))),
    "agents in a list": lambda d: Zone("z", [Battery("b")]),
    "a class for an object": lambda d: Battery("b", Charge),
    "a tree that serves another environment": lambda d: built_twice(),
    "nobody acts": lambda d: HeronEnv(SystemAgent("s", Zone("z"))),
    "a leaf with children": lambda d: Battery("b", Battery("c")),
    "a second system agent": lambda d: SystemAgent("s", SystemAgent("t")),
    "a protocol's class": lambda d: Zone("z", Battery("b"), protocol=VectorDecomposition),
    "a protocol's name": lambda d: Zone("z", Battery("b"), protocol="vector"),
    "a misspelt keyword of an agent": lambda d: Zone("z", Battery("b"), protcol=Broadcast()),
    "subordinates by keyword": lambda d: Zone("z", subordinates=[Battery("b")]),
    "action and protocol": lambda d: agent(CoordinatorAgent)("m", Battery("b"), protocol=Broadcast()),
    "a broadcast to unequals": lambda d: Zone(
        "z", Battery("b"), agent(action=Continuous(-2.0, 2.0))("c"), protocol=Broadcast()
    ),
    "too few weights": lambda d: Zone("z", Battery("b"), Battery("c"), protocol=SetpointSplit([1.0])),
    "weights that are words": lambda d: SetpointSplit(["heavy"]),
    "a policy by name": lambda d: Battery("b", policy="greedy"),
    "an action that is a tuple": lambda d: agent(action=(-1.0, 1.0))("m"),
    "a split of choices": lambda d: Zone("z", agent(action=Discrete(3))("c"), protocol=SetpointSplit()),
}

EXCHANGE = {
    "an unknown topology": lambda d: StateShare(Charge.soc, Heard.soc, "rings"),
    "a source by name": lambda d: StateShare("soc", Heard.soc, "ring"),
    "into a feature that is no inbox": lambda d: StateShare(Charge.soc, Charge.power, "ring"),
    "too few slots": lambda d: shared("full", *(Talker(f"b_{i}") for i in range(5))),
    "an unknown neighbour": lambda d: shared([("b_1", "b2")]),
    "a receiver without the inbox": lambda d: shared("ring", Battery("b_1"), Battery("b_2")),
    "the same edge twice": lambda d: StateShare(Charge.soc, Heard.soc, [("a", "b"), ("a", "b")]),
    "an average into slots": lambda d: StateAverage(Charge.soc, Heard.soc, "ring"),
    "exchange by name": lambda d: Zone("z", exchange="ring"),
}
