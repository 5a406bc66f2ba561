"""Horizontal protocols: who hears whom in which slot, and every way to declare one wrongly."""

import copy
from typing import Any

import numpy as np
import pytest
from refusing import refuses

from heron_env import (
    Continuous,
    CoordinatorAgent,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Inbox,
    StateAverage,
    StateShare,
    SystemAgent,
    Vector,
    quantity,
    rule,
)
from heron_env.agents.horizontal import HorizontalProtocol
from heron_env.errors import ConfigError, FeatureError, HierarchyError, RuleError


class Charge(FeatureProvider):
    soc: float = quantity(default=0.5, low=0.0, high=1.0)
    flows: np.ndarray = quantity(shape=(3,))
    ledger: float = quantity(observed=False)


class Heard(Inbox):
    one: float = quantity(default=-1.0)
    two: np.ndarray = quantity(default=-1.0, shape=(2,))
    three: np.ndarray = quantity(default=-1.0, shape=(3,))
    pairs: np.ndarray = quantity(default=-1.0, shape=(2, 3))


class Talker(FieldAgent):
    features = (Charge, Heard)
    action = Continuous(-1.0, 1.0)


class Mute(FieldAgent):
    """Hears, but has nothing to share."""

    features = (Heard,)


ABC = ("a", "b", "c")


def env_of(*agents: Any, exchange: Any) -> HeronEnv:
    return HeronEnv(SystemAgent("system", *agents, exchange=exchange), max_steps=9)


def talkers(n: int = 3) -> list[Talker]:
    return [Talker(f"t_{i}", Charge(soc=i / 10)) for i in range(1, n + 1)]


def heard(exchange: HorizontalProtocol, n: int) -> list[list[float]]:
    """What t_1 to t_n, of soc .1, .2, ..., have in the quantity `into` after a step."""
    env = env_of(*talkers(n), exchange=exchange)
    env.reset(seed=0)
    env.step({})
    values = (getattr(agent.state.features[Heard], exchange.into.name) for agent in env.hierarchy.agents[1:])
    return [np.atleast_1d(value).tolist() for value in values]


def pairs(edges: Any, ids: Any, **options: Any) -> str:
    """`ba` means: a hears b."""
    return " ".join(a + b for a, b in StateShare(Charge.soc, Heard.two, edges, **options).pairs(ids))


@pytest.mark.parametrize(
    ("edges", "ids", "expected"),
    [
        ("ring", "abcd", "da ba ab cb bc dc cd ad"),
        ("ring", "abc", "ca ba ab cb bc ac"),
        ("ring", "ab", "ba ab"),
        ("ring", "a", ""),
        ("ring", "", ""),
        ("star", "abc", "ba ca ab ac"),
        ("star", "a", ""),
        ("star", "", ""),
        ("full", "abc", "ba ca ab cb ac bc"),
        ("full", "a", ""),
        ([("c", "a"), ["b", "a"]], "abc", "ca ba"),
        ([], "abc", ""),
    ],
)
def test_who_hears_whom(edges: Any, ids: str, expected: str):
    assert pairs(edges, list(ids)) == expected


def test_a_star_has_the_hub_it_is_given():
    assert pairs("star", ABC, hub="b") == "ab cb ba bc"


def test_slots_are_in_the_order_of_the_edges():
    assert heard(StateShare(Charge.soc, Heard.two, "ring"), 3) == [[0.3, 0.2], [0.1, 0.3], [0.2, 0.1]]
    assert heard(StateShare(Charge.soc, Heard.two, "ring"), 2) == [[0.2, -1.0], [0.1, -1.0]]
    edges = [("t_3", "t_1"), ("t_1", "t_2"), ("t_2", "t_1")]
    assert heard(StateShare(Charge.soc, Heard.two, edges), 3) == [[0.3, 0.2], [0.1, -1.0], [-1.0, -1.0]]


def test_slots_without_a_sender_keep_their_default():
    star = [[0.1, 0.3, 0.4], [0.2, -1.0, -1.0], [0.2, -1.0, -1.0], [0.2, -1.0, -1.0]]
    found = heard(StateShare(Charge.soc, Heard.three, "star", hub="t_2"), 4)
    assert found == [star[1], star[0], star[2], star[3]]


def test_full_means_everyone_hears_all_others_in_registration_order():
    found = heard(StateShare(Charge.soc, Heard.three, "full"), 4)
    assert found == [[0.2, 0.3, 0.4], [0.1, 0.3, 0.4], [0.1, 0.2, 0.4], [0.1, 0.2, 0.3]]


def test_an_average_is_the_mean_of_the_senders():
    found = heard(StateAverage(Charge.soc, Heard.one, "full"), 4)
    assert found == [[pytest.approx(mean, abs=1e-15)] for mean in (0.3, 0.8 / 3, 0.7 / 3, 0.2)]


def test_where_each_hears_one_a_plain_number_will_do():
    assert heard(StateShare(Charge.soc, Heard.one, "ring"), 2) == [[0.2], [0.1]]


def test_a_vector_travels_whole():
    env = env_of(
        Talker("t_1", Charge(flows=[1.0, 2.0, 3.0])),
        Talker("t_2", Charge(flows=[4.0, 5.0, 6.0])),
        Talker("t_3"),
        exchange=(
            StateShare(Charge.flows, Heard.pairs, [("t_1", "t_3"), ("t_2", "t_3")]),
            StateShare(Charge.flows, Heard.three, [("t_1", "t_2")]),
            StateAverage(Charge.flows, Heard.three, [("t_1", "t_3"), ("t_2", "t_3")]),
        ),
    )
    env.reset(seed=0)
    env.step({})
    inbox = env.hierarchy.agents[3].state.features[Heard]
    assert inbox.pairs.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert inbox.three.tolist() == [2.5, 3.5, 4.5]
    assert env.hierarchy.agents[2].state.features[Heard].three.tolist() == [1.0, 2.0, 3.0]


def test_a_class_may_declare_its_exchange_and_an_agent_another():
    class Ring(CoordinatorAgent):
        exchange = StateShare(Charge.soc, Heard.two, "ring")

    assert len(HeronEnv(SystemAgent("s", Ring("z", *talkers()))).simulation.exchange.edges) == 6
    assert len(HeronEnv(SystemAgent("s", Ring("z", *talkers(), exchange=()))).simulation.exchange.edges) == 0
    assert Ring.exchange is not Ring("z").exchange


def test_edges_connect_any_agents_below_the_one_that_declares_them():
    zones = [CoordinatorAgent(f"z_{a}", Talker(f"{a}_1"), Talker(f"{a}_2")) for a in "ab"]
    env = env_of(*zones, exchange=StateShare(Charge.soc, Heard.two, [("a_1", "b_2"), ("b_1", "b_2")]))
    assert [(e.route.sender, e.route.receiver) for e in env.simulation.exchange.edges] == [
        ("a_1", "b_2"),
        ("b_1", "b_2"),
    ]


def test_a_subclass_stands_in_for_the_declared_inbox_and_source():
    class Wide(Heard):
        two: np.ndarray = quantity(default=0.0, high=0.25, shape=(2,))

    class Big(Charge):
        extra: float = 0.0

    agents = [Talker("t_1", Big(soc=0.1), Wide()), Talker("t_2", Charge(soc=0.9))]
    env = env_of(*agents, exchange=StateShare(Charge.soc, Heard.two, "full"))
    env.reset(seed=0)
    env.step({})
    found = [agent.state.features[kind].two.tolist() for agent, kind in zip(agents, (Wide, Heard), strict=True)]
    assert found == [[0.25, 0.0], [0.1, -1.0]], "clipped to the bounds of the inbox that is there"


@pytest.mark.parametrize(
    ("edges", "options", "message"),
    [
        (
            {("a", "b")},
            {},
            "StateShare(edges={('a', 'b')}): must be one of 'ring', 'star', 'full', or a list of pairs (sender id, "
            "receiver id).",
        ),
        ("ring", {"hub": "a"}, "StateShare(hub='a'): only a star has a hub; write edges='star' or remove `hub`"),
        ([("a", "b"), ("a",)], {}, "StateShare(edges[1]=('a',)): must be a pair of ids, (sender, receiver)"),
        (["ab"], {}, "StateShare(edges[0]='ab'): must be a pair of ids, (sender, receiver)"),
        ([("a", 2)], {}, "StateShare(edges[0]=('a', 2)): must be a pair of ids, (sender, receiver)"),
        ([("a", "a")], {}, "StateShare(edges[0]=('a', 'a')): an agent tells itself nothing; remove this edge"),
    ],
)
def test_impossible_edges_are_refused(edges: Any, options: Any, message: str):
    with refuses(ConfigError, message):
        StateShare(Charge.soc, Heard.two, edges, **options)


@pytest.mark.parametrize(
    ("protocol", "source", "into", "message"),
    [
        (StateShare, Charge.soc, Heard, f"StateShare(into={Heard!r}): must be a quantity of a feature class, as in "
         "Charge.soc"),
        (StateShare, Charge.ledger, Heard.two, "StateShare(source=Charge.ledger): it is bookkeeping (observed=False), "
         "which never travels; share an observed quantity"),
        (StateShare, Charge.soc, Heard.pairs, "StateShare(into=Heard.pairs): its shape (2, 3) has no slots for "
         "Charge.soc of shape (); declare it with shape=(k,), a slot for each of k senders"),
        (StateShare, Charge.flows, Heard.two, "StateShare(into=Heard.two): its shape (2,) has no slots for "
         "Charge.flows of shape (3,); declare it with shape=(k, 3), a slot for each of k senders"),
    ],
)  # fmt: skip
def test_quantities_that_do_not_fit_are_refused(protocol: Any, source: Any, into: Any, message: str):
    with refuses(FeatureError, message):
        protocol(source, into, "ring")


def test_an_inbox_is_its_owners_alone():
    message = (
        "visibility=('public',): an inbox is seen by its owner only; leave `visibility` out, or let a rule copy what "
        "others may see into a feature"
    )
    with refuses(FeatureError, f"Open: {message}"):

        class Open(Inbox):
            visibility = ("public",)

    with refuses(FeatureError, f"Ajar.soc: {message}"):

        class Ajar(Inbox):
            soc: float = quantity(visibility=("public",))

    with refuses(FeatureError, "Sieve.soc: per_step=True: an inbox keeps what it was told; remove it"):

        class Sieve(Inbox):
            soc: float = quantity(per_step=True)


def test_the_world_has_no_inbox():
    class Everyone(HeronEnv):
        global_features = (Heard,)

    with pytest.raises(FeatureError, match="global feature Heard: tag 'owner' has no meaning"):
        Everyone(SystemAgent("s", Talker("t")))


SHARE = "StateShare(Charge.soc, Heard.two, 'ring')"
RING = StateShare(Charge.soc, Heard.two, "ring")


@pytest.mark.parametrize(
    ("agents", "exchange", "error", "message"),
    [
        ([Talker("t"), Mute("m")], RING, FeatureError, f"{SHARE}: 'm' shares Charge.soc, but its features are "
         "['Heard']; add Charge to its `features`, or give edges that leave it out"),
        (talkers(5), StateShare(Charge.flows, Heard.pairs, "star", hub="t_2"), FeatureError, "StateShare(Charge.flows, "
         "Heard.pairs, 'star'): 't_2' hears 4 senders, but Heard.pairs has 2 slots; declare it with shape=(4, 3)"),
        (talkers(3), StateShare(Charge.soc, Heard.one, "ring"), FeatureError, "StateShare(Charge.soc, Heard.one, "
         "'ring'): 't_1' hears 2 senders, but Heard.one has 1 slot; declare it with shape=(2,)"),
        (talkers(3), StateShare(Charge.soc, Heard.two, [("system", "t_2")]), HierarchyError, "StateShare(Charge.soc, "
         "Heard.two, edges: 1): the edges name 'system', which is not below it; let an agent above both declare this; "
         "below it are ['t_1', 't_2', 't_3']."),
        (talkers(3), StateShare(Charge.soc, Heard.three, "star", hub="t_4"), HierarchyError, "StateShare(Charge.soc, "
         "Heard.three, 'star'): the hub 't_4' is none of its subordinates ['t_1', 't_2', 't_3']. Did you mean 't_3'?"),
        (talkers(3), [RING, StateShare(Charge.soc, Heard.two, [("t_1", "t_3")])], HierarchyError,
         "StateShare(Charge.soc, Heard.two, edges: 1): Heard.two of 't_3' is written by SystemAgent('system'): "
         f"{SHARE} already; give each protocol a quantity of its own"),
    ],
)  # fmt: skip
def test_agents_that_can_not_talk_are_refused(agents: Any, exchange: Any, error: Any, message: str):
    with refuses(error, f"SystemAgent('system'): {message}"):
        env_of(*copy.deepcopy(agents), exchange=exchange)


def test_a_zone_does_not_connect_agents_of_another():
    edges = StateShare(Charge.soc, Heard.two, [("a", "b")])
    with pytest.raises(HierarchyError, match="the edges name 'b', which is not below it; let an agent above both"):
        env_of(CoordinatorAgent("z", Talker("a"), exchange=edges), Talker("b"), exchange=())


def test_a_source_that_a_subclass_made_bookkeeping_is_refused():
    class Secret(Charge):
        soc: float = quantity(default=0.5, observed=False)

    with pytest.raises(FeatureError, match=r"Secret\.soc of 't' is bookkeeping"):
        env_of(Talker("t", Secret()), Talker("u"), exchange=RING)


@pytest.mark.parametrize("exchange", ["ring", 3, [RING, "ring"], {RING: 1}])
def test_what_is_no_protocol_is_refused(exchange: Any):
    message = (
        f"SystemAgent('system'): exchange={exchange!r}: must be a horizontal protocol, as in StateShare(Charge.soc, "
        "Heard.soc, 'ring'), or several"
    )
    with refuses(HierarchyError, message):
        env_of(*talkers(), exchange=exchange)


def test_no_rule_writes_into_an_inbox():
    class Liar(FieldAgent):
        features = (Heard,)
        action = Continuous(-1.0, 1.0)

        @staticmethod
        @rule(writes=Heard.one)
        def apply_action(action: Vector) -> float:
            return action[0]

    message = (
        "Liar.apply_action writes Heard.one, which is an inbox: only its protocol writes it; keep what the agent makes "
        "of it in a feature"
    )
    with refuses(RuleError, message):
        env_of(Liar("l"), exchange=())


def test_a_protocol_of_ones_own_defines_its_slots():
    class Vague(HorizontalProtocol):
        """Defines nothing."""

    with refuses(TypeError, "Vague must define count_slots()"):
        Vague(Charge.soc, Heard.two, "ring")

    class Vaguer(HorizontalProtocol):
        def count_slots(self) -> int:
            return 2

    with refuses(TypeError, "Vaguer must define slot()"):
        env_of(*talkers(), exchange=Vaguer(Charge.soc, Heard.two, "ring"))
