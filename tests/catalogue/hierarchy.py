"""Bad inputs: the tree of agents, their features and what they tell each other."""

# ruff: noqa: E501 (a message is one line)

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
    "two agents of one id": (
        lambda d: env(Battery("b"), Battery("b")),
        "HierarchyError: two agents are called «'b'»: ids must be unique; ⟨rename one⟩",
    ),
    "one object in two places": (
        lambda d: one_object_twice(),
        "HierarchyError: agent «'battery_1'» appears twice in the tree: ⟨build one object for each⟩ place",
    ),
    "a reserved id": (
        lambda d: env(Battery("global")),
        "HierarchyError: an agent can't be called «'global'»: that name is reserved; ⟨choose another⟩",
    ),
    "the id is forgotten": (
        lambda d: Zone(Battery("b")),
        "HierarchyError: «Zone(Battery('b'))»: the id is a non-empty string; ⟨write Zone(⟩'zone_1')",
    ),
    "the id is a number": (
        lambda d: Battery(1),
        "HierarchyError: «Battery(1)»: the id is a non-empty string; ⟨write Battery(⟩'battery_1')",
    ),
    "a zone as the root": (
        lambda d: HeronEnv(Zone("z", Battery("b"))),
        "HierarchyError: HeronEnv(«Zone('z')»): the root of the hierarchy is a SystemAgent; ⟨write SystemAgent(⟩'system_agent', *agents)",
    ),
    "agents in a list": (
        lambda d: Zone("z", [Battery("b")]),
        "HierarchyError: Zone('z'): «[Battery('b')]» is neither an agent nor a feature; ⟨write *[...]⟩",
    ),
    "a class for an object": (
        lambda d: Battery("b", Charge),
        "HierarchyError: Battery('b'): <class 'catalogue.small_world.«Charge»'> is neither an agent nor a feature; ⟨write an object⟩, as in Charge()",
    ),
    "a tree that serves another environment": (
        lambda d: built_twice(),
        "HierarchyError: «SystemAgent('system_agent')» belongs to another environment already; ⟨build its agents anew⟩ for each",
    ),
    "nobody acts": (
        lambda d: HeronEnv(SystemAgent("s", Zone("z"))),
        "HierarchyError: «nobody» acts: ⟨give an agent an `action`⟩, or a coordinator a `protocol` over agents with one",
    ),
    "a leaf with children": (
        lambda d: Battery("b", Battery("c")),
        "HierarchyError: «Battery('b')»: a field agent has no subordinates; ⟨use a CoordinatorAgent⟩",
    ),
    "a second system agent": (
        lambda d: SystemAgent("s", SystemAgent("t")),
        "HierarchyError: SystemAgent('s'): «SystemAgent('t')» is a system agent; there is one, at the top; ⟨use a CoordinatorAgent⟩",
    ),
    "a protocol's class": (
        lambda d: Zone("z", Battery("b"), protocol=VectorDecomposition),
        "ConfigError: Zone('z'): protocol=<class 'heron_env.agents.vertical.«VectorDecomposition»'> is no protocol; ⟨write an object⟩, as in VectorDecomposition()",
    ),
    "a protocol's name": (
        lambda d: Zone("z", Battery("b"), protocol="vector"),
        "ConfigError: Zone('z'): protocol=«'vector'» is no protocol; write an object, ⟨as in VectorDecomposition()⟩",
    ),
    "a misspelt keyword of an agent": (
        lambda d: Zone("z", Battery("b"), protcol=Broadcast()),
        "UnknownArgument: Zone(«protcol»=...): no such option. ⟨Did you mean⟩ 'protocol'?",
    ),
    "subordinates by keyword": (
        lambda d: Zone("z", subordinates=[Battery("b")]),
        "UnknownArgument: Zone(«subordinates»=...): no such option. ⟨There are⟩ agent_id, parts, protocol, exchange, policy.",
    ),
    "action and protocol": (
        lambda d: agent(CoordinatorAgent)("m", Battery("b"), protocol=Broadcast()),
        "ConfigError: «Mine('m')»: with a protocol its action is its subordinates'; ⟨remove `action` or `protocol`⟩",
    ),
    "a broadcast to unequals": (
        lambda d: Zone("z", Battery("b"), agent(action=Continuous(-2.0, 2.0))("c"), protocol=Broadcast()),
        "ConfigError: Broadcast: subordinate 1 takes «[-2.0, 2.0]», subordinate 0 [-1.0, 1.0] kW; all must be equal, or ⟨use VectorDecomposition⟩",
    ),
    "too few weights": (
        lambda d: Zone("z", Battery("b"), Battery("c"), protocol=SetpointSplit([1.0])),
        "ConfigError: SetpointSplit: «1 weights» for 2 subordinates; ⟨give one for each⟩",
    ),
    "weights that are words": (
        lambda d: SetpointSplit(["heavy"]),
        "ConfigError: SetpointSplit(weights=[«'heavy'»]): ⟨must be a list of positive numbers⟩, one for each subordinate",
    ),
    "a policy by name": (
        lambda d: Battery("b", policy="greedy"),
        "ConfigError: Battery('b', policy=«'greedy'»): must be an object with forward(observation) or answer(asked), or a function of the vector; ⟨make one⟩",
    ),
    "an action that is a tuple": (
        lambda d: agent(action=(-1.0, 1.0))("m"),
        "ConfigError: Mine.action=«(-1.0, 1.0)»: is no action; ⟨write Continuous(low, high)⟩, Discrete(n), MultiDiscrete([n, m]) or Mixed(...)",
    ),
    "a split of choices": (
        lambda d: Zone("z", agent(action=Discrete(3))("c"), protocol=SetpointSplit()),
        "ConfigError: SetpointSplit: subordinate 0 takes «Discrete(3)»; ⟨each must take one number⟩",
    ),
}

EXCHANGE = {
    "an unknown topology": (
        lambda d: StateShare(Charge.soc, Heard.soc, "rings"),
        "ConfigError: StateShare(edges=«'rings'»): ⟨must be one of⟩ 'ring', 'star', 'full', or a list of pairs (sender id, receiver id). Did you mean 'ring'?",
    ),
    "a source by name": (
        lambda d: StateShare("soc", Heard.soc, "ring"),
        "FeatureError: StateShare(source=«'soc'»): must be a quantity of a feature class, ⟨as in Charge.soc⟩",
    ),
    "into a feature that is no inbox": (
        lambda d: StateShare(Charge.soc, Charge.power, "ring"),
        "FeatureError: StateShare(into=«Charge.power»): Charge is no Inbox; ⟨derive it from Inbox⟩, so that nothing else writes it",
    ),
    "too few slots": (
        lambda d: shared("full", *(Talker(f"b_{i}") for i in range(5))),
        "FeatureError: Zone('z'): StateShare(Charge.soc, Heard.soc, 'full'): 'b_0' hears «4 senders», but Heard.soc has 2 slots; ⟨declare it with shape=(4,)⟩",
    ),
    "an unknown neighbour": (
        lambda d: shared([("b_1", "b2")]),
        "HierarchyError: Zone('z'): StateShare(Charge.soc, Heard.soc, edges: 1): the edges name «'b2'», which does not exist; ⟨below it are⟩ ['b_1', 'b_2', 'b_3']. Did you mean 'b_2'?",
    ),
    "a receiver without the inbox": (
        lambda d: shared("ring", Battery("b_1"), Battery("b_2")),
        "FeatureError: Zone('z'): StateShare(Charge.soc, Heard.soc, 'ring'): «'b_1'» receives Heard.soc, but its features are ['Charge']; ⟨add Heard to its `features`⟩, or give edges that leave it out",
    ),
    "the same edge twice": (
        lambda d: StateShare(Charge.soc, Heard.soc, [("a", "b"), ("a", "b")]),
        "ConfigError: StateShare(edges[1]=«('a', 'b')»): the same edge as edges[0]; ⟨remove one⟩",
    ),
    "an average into slots": (
        lambda d: StateAverage(Charge.soc, Heard.soc, "ring"),
        "FeatureError: StateAverage(into=Heard.soc): its shape «(2,)» ⟨must be that of Charge.soc⟩, ()",
    ),
    "exchange by name": (
        lambda d: Zone("z", exchange="ring"),
        "HierarchyError: Zone('z'): exchange=«'ring'»: must be a horizontal protocol, ⟨as in StateShare(⟩Charge.soc, Heard.soc, 'ring'), or several",
    ),
}
