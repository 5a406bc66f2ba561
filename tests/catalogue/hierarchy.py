"""Bad inputs: the tree of agents, their features and what they tell each other."""

# ruff: noqa: E501 (a message is one line)

import numpy as np
from catalogue.case import Case
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
from heron_env.errors import ConfigError, FeatureError, HierarchyError, UnknownArgument


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


HIERARCHY = [
    Case(
        "two agents of one id",
        HierarchyError,
        lambda d: env(Battery("b"), Battery("b")),
        "'b'",
        "rename one",
        "two agents are called 'b': ids must be unique; rename one",
    ),
    Case(
        "one object in two places",
        HierarchyError,
        lambda d: one_object_twice(),
        "'battery_1'",
        "build one object for each",
        "agent 'battery_1' appears twice in the tree: build one object for each place",
    ),
    Case(
        "a reserved id",
        HierarchyError,
        lambda d: env(Battery("global")),
        "'global'",
        "choose another",
        "an agent can't be called 'global': that name is reserved; choose another",
    ),
    Case(
        "the id is forgotten",
        HierarchyError,
        lambda d: Zone(Battery("b")),
        "Zone(Battery('b'))",
        "write Zone(",
        "Zone(Battery('b')): the id is a non-empty string; write Zone('zone_1')",
    ),
    Case(
        "the id is a number",
        HierarchyError,
        lambda d: Battery(1),
        "Battery(1)",
        "write Battery(",
        "Battery(1): the id is a non-empty string; write Battery('battery_1')",
    ),
    Case(
        "a zone as the root",
        HierarchyError,
        lambda d: HeronEnv(Zone("z", Battery("b"))),
        "Zone('z')",
        "write SystemAgent(",
        "HeronEnv(Zone('z')): the root of the hierarchy is a SystemAgent; write SystemAgent('system_agent', *agents)",
    ),
    Case(
        "agents in a list",
        HierarchyError,
        lambda d: Zone("z", [Battery("b")]),
        "[Battery('b')]",
        "write *[...]",
        "Zone('z'): [Battery('b')] is neither an agent nor a feature; write *[...]",
    ),
    Case(
        "a class for an object",
        HierarchyError,
        lambda d: Battery("b", Charge),
        "Charge",
        "write an object",
        "Battery('b'): <class 'catalogue.small_world.Charge'> is neither an agent nor a feature; write an object, as in Charge()",
    ),
    Case(
        "a tree that serves another environment",
        HierarchyError,
        lambda d: built_twice(),
        "SystemAgent('system_agent')",
        "build its agents anew",
        "SystemAgent('system_agent') belongs to another environment already; build its agents anew for each",
    ),
    Case(
        "nobody acts",
        HierarchyError,
        lambda d: HeronEnv(SystemAgent("s", Zone("z"))),
        "nobody",
        "give an agent an `action`",
        "nobody acts: give an agent an `action`, or a coordinator a `protocol` over agents with one",
    ),
    Case(
        "a leaf with children",
        HierarchyError,
        lambda d: Battery("b", Battery("c")),
        "Battery('b')",
        "use a CoordinatorAgent",
        "Battery('b'): a field agent has no subordinates; use a CoordinatorAgent",
    ),
    Case(
        "a second system agent",
        HierarchyError,
        lambda d: SystemAgent("s", SystemAgent("t")),
        "SystemAgent('t')",
        "use a CoordinatorAgent",
        "SystemAgent('s'): SystemAgent('t') is a system agent; there is one, at the top; use a CoordinatorAgent",
    ),
    Case(
        "a protocol's class",
        ConfigError,
        lambda d: Zone("z", Battery("b"), protocol=VectorDecomposition),
        "VectorDecomposition",
        "write an object",
        "Zone('z'): protocol=<class 'heron_env.agents.vertical.VectorDecomposition'> is no protocol; write an object, as in VectorDecomposition()",
    ),
    Case(
        "a protocol's name",
        ConfigError,
        lambda d: Zone("z", Battery("b"), protocol="vector"),
        "'vector'",
        "as in VectorDecomposition()",
        "Zone('z'): protocol='vector' is no protocol; write an object, as in VectorDecomposition()",
    ),
    Case(
        "a misspelt keyword of an agent",
        UnknownArgument,
        lambda d: Zone("z", Battery("b"), protcol=Broadcast()),
        "protcol",
        "Did you mean",
        "Zone(protcol=...): no such option. Did you mean 'protocol'?",
        "protocol",
    ),
    Case(
        "subordinates by keyword",
        UnknownArgument,
        lambda d: Zone("z", subordinates=[Battery("b")]),
        "subordinates",
        "There are",
        "Zone(subordinates=...): no such option. There are agent_id, parts, protocol, exchange, policy.",
    ),
    Case(
        "action and protocol",
        ConfigError,
        lambda d: agent(CoordinatorAgent)("m", Battery("b"), protocol=Broadcast()),
        "Mine('m')",
        "remove `action` or `protocol`",
        "Mine('m'): with a protocol its action is its subordinates'; remove `action` or `protocol`",
    ),
    Case(
        "a broadcast to unequals",
        ConfigError,
        lambda d: Zone("z", Battery("b"), agent(action=Continuous(-2.0, 2.0))("c"), protocol=Broadcast()),
        "[-2.0, 2.0]",
        "use VectorDecomposition",
        "Broadcast: subordinate 1 takes [-2.0, 2.0], subordinate 0 [-1.0, 1.0] kW; all must be equal, or use VectorDecomposition",
    ),
    Case(
        "too few weights",
        ConfigError,
        lambda d: Zone("z", Battery("b"), Battery("c"), protocol=SetpointSplit([1.0])),
        "1 weights",
        "give one for each",
        "SetpointSplit: 1 weights for 2 subordinates; give one for each",
    ),
    Case(
        "weights that are words",
        ConfigError,
        lambda d: SetpointSplit(["heavy"]),
        "'heavy'",
        "must be a list of positive numbers",
        "SetpointSplit(weights=['heavy']): must be a list of positive numbers, one for each subordinate",
    ),
    Case(
        "a policy by name",
        ConfigError,
        lambda d: Battery("b", policy="greedy"),
        "'greedy'",
        "make one",
        "Battery('b', policy='greedy'): must be an object with forward(observation) or answer(asked), or a function of "
        "the vector; make one",
    ),
    Case(
        "an action that is a tuple",
        ConfigError,
        lambda d: agent(action=(-1.0, 1.0))("m"),
        "(-1.0, 1.0)",
        "write Continuous(low, high)",
        "Mine.action=(-1.0, 1.0): is no action; write Continuous(low, high), Discrete(n) or MultiDiscrete([n, m])",
    ),
    Case(
        "a split of choices",
        ConfigError,
        lambda d: Zone("z", agent(action=Discrete(3))("c"), protocol=SetpointSplit()),
        "Discrete(3)",
        "each must take one number",
        "SetpointSplit: subordinate 0 takes Discrete(3); each must take one number",
    ),
]

EXCHANGE = [
    Case(
        "an unknown topology",
        ConfigError,
        lambda d: StateShare(Charge.soc, Heard.soc, "rings"),
        "'rings'",
        "must be one of",
        "StateShare(edges='rings'): must be one of 'ring', 'star', 'full', or a list of pairs (sender id, receiver id). Did you mean 'ring'?",
        "ring",
    ),
    Case(
        "a source by name",
        FeatureError,
        lambda d: StateShare("soc", Heard.soc, "ring"),
        "'soc'",
        "as in Charge.soc",
        "StateShare(source='soc'): must be a quantity of a feature class, as in Charge.soc",
    ),
    Case(
        "into a feature that is no inbox",
        FeatureError,
        lambda d: StateShare(Charge.soc, Charge.power, "ring"),
        "Charge.power",
        "derive it from Inbox",
        "StateShare(into=Charge.power): Charge is no Inbox; derive it from Inbox, so that nothing else writes it",
    ),
    Case(
        "too few slots",
        FeatureError,
        lambda d: shared("full", *(Talker(f"b_{i}") for i in range(5))),
        "4 senders",
        "declare it with shape=(4,)",
        "Zone('z'): StateShare(Charge.soc, Heard.soc, 'full'): 'b_0' hears 4 senders, but Heard.soc has 2 slots; declare it with shape=(4,)",
    ),
    Case(
        "an unknown neighbour",
        HierarchyError,
        lambda d: shared([("b_1", "b2")]),
        "'b2'",
        "below it are",
        "Zone('z'): StateShare(Charge.soc, Heard.soc, edges: 1): the edges name 'b2', which does not exist; below it are ['b_1', 'b_2', 'b_3']. Did you mean 'b_2'?",
        "b_2",
    ),
    Case(
        "a receiver without the inbox",
        FeatureError,
        lambda d: shared("ring", Battery("b_1"), Battery("b_2")),
        "'b_1'",
        "add Heard to its `features`",
        "Zone('z'): StateShare(Charge.soc, Heard.soc, 'ring'): 'b_1' receives Heard.soc, but its features are ['Charge']; add Heard to its `features`, or give edges that leave it out",
    ),
    Case(
        "the same edge twice",
        ConfigError,
        lambda d: StateShare(Charge.soc, Heard.soc, [("a", "b"), ("a", "b")]),
        "('a', 'b')",
        "remove one",
        "StateShare(edges[1]=('a', 'b')): the same edge as edges[0]; remove one",
    ),
    Case(
        "an average into slots",
        FeatureError,
        lambda d: StateAverage(Charge.soc, Heard.soc, "ring"),
        "(2,)",
        "must be that of Charge.soc",
        "StateAverage(into=Heard.soc): its shape (2,) must be that of Charge.soc, ()",
    ),
    Case(
        "exchange by name",
        HierarchyError,
        lambda d: Zone("z", exchange="ring"),
        "'ring'",
        "as in StateShare(",
        "Zone('z'): exchange='ring': must be a horizontal protocol, as in StateShare(Charge.soc, Heard.soc, 'ring'), or several",
    ),
]
