"""The tree of agents, flattened once: depth first, as written."""

from refusing import refuses

from heron_env import CoordinatorAgent, FieldAgent, SystemAgent
from heron_env.core.hierarchy import Hierarchy, name_stem
from heron_env.errors import HierarchyError, UnknownAgent


def test_ranks_are_depth_first_in_the_order_written():
    inner = CoordinatorAgent("inner", FieldAgent("c"), FieldAgent("a"))
    h = Hierarchy.of(SystemAgent("s", FieldAgent("z"), CoordinatorAgent("outer", inner, FieldAgent("b"))))
    assert h.ids == ("s", "z", "outer", "inner", "c", "a", "b")
    assert h.parent == (-1, 0, 0, 2, 3, 3, 2)
    assert h.children == ((1, 2), (), (3, 6), (4, 5), (), (), ())
    assert h.level == (3, 1, 2, 2, 1, 1, 1)
    assert h.index == {agent: rank for rank, agent in enumerate(h.ids)}
    assert len(h) == 7
    assert [agent.agent_id for agent in h.agents] == list(h.ids)


def test_a_deep_chain_needs_no_recursion():
    agent = FieldAgent("leaf")
    for i in range(3000):
        agent = CoordinatorAgent(f"c_{i}", agent)
    assert len(Hierarchy.of(SystemAgent("s", agent))) == 3002


def test_no_agent_has_a_reserved_id():
    for reserved in ("global", "*", "env", "proxy"):
        message = f"an agent can't be called {reserved!r}: that name is reserved; choose another"
        with refuses(HierarchyError, message):
            Hierarchy.of(SystemAgent("s", FieldAgent(reserved)))


def test_an_unknown_id_is_answered_with_what_exists_and_the_nearest():
    h = Hierarchy.of(SystemAgent("s", *(FieldAgent(f"battery_{i}") for i in range(20))))
    shown = [*h.ids[:12], "..."]
    with refuses(UnknownAgent, f"asked for 'batery_1'; this env has {shown}. Did you mean 'battery_1'?"):
        h.rank("batery_1", "asked for")
    assert h.rank("battery_3", "asked for") == 4


def test_a_stem_is_what_stands_before_the_number():
    for agent_id, stem in [
        ("battery_12", "battery"),
        ("battery", "battery"),
        ("a_b_3", "a_b"),
        ("_3", "_3"),
        ("zone_x", "zone_x"),
    ]:
        assert name_stem(agent_id) == stem
