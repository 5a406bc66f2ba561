"""The exchange between neighbours (V8) in both clocks: parity, delay, loss, order, ends, snapshots, cost."""

import copy
import pickle
import re
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws.checks import RECORD, assert_same_course
from laws.checks_cost import assert_linear, calls
from strategies import Wave

from heron_env import (
    Action,
    Continuous,
    CoordinatorAgent,
    EpisodeResult,
    FeatureProvider,
    FieldAgent,
    FieldAgentState,
    HeronEnv,
    Inbox,
    ScheduleConfig,
    StateAverage,
    StateShare,
    SystemAgent,
    TerminationConfig,
    Vector,
    World,
    quantity,
    rule,
)
from heron_env.envs.event import physics
from heron_env.envs.exchange import Exchange
from heron_env.errors import ConfigError, FeatureError
from heron_env.testing.clock import SharedState, StateReport

NEVER = 1e4
SLOTS = 7


class Charge(FeatureProvider):
    """Private: only what is shared gets out."""

    visibility = ("owner",)
    soc: float = quantity(default=0.0, low=-50.0, high=50.0)
    flows: np.ndarray = quantity(low=-50.0, high=50.0, shape=(2,))
    mode: int = quantity(default=0, low=0, high=9)
    end: float = quantity(default=NEVER, low=0.0, high=NEVER, observed=False)
    substeps: int = quantity(observed=False)


class Heard(Inbox):
    """Everything that protocols here may write."""

    soc: np.ndarray = quantity(default=-1.0, low=-20.0, high=20.0, shape=(SLOTS,))
    flows: np.ndarray = quantity(default=-1.0, shape=(SLOTS, 2))
    mean: float = quantity(default=-1.0, low=-20.0, high=20.0)
    mode: int = quantity(default=3, low=0, high=8)
    gossip: np.ndarray = quantity(default=-2.0, shape=(SLOTS, SLOTS))


class Talker(FieldAgent):
    """Its action and its physics listen to what was heard."""

    features = (Charge, Heard)
    action = Continuous(-2.0, 2.0)

    @staticmethod
    @rule(writes=(Charge.flows, Charge.mode))
    def apply_action(heard: Heard, action: Vector) -> tuple[Any, float]:
        return np.array([action[0], 0.1 * heard.soc.sum()]), abs(action[0]) * 4.0

    @staticmethod
    @rule(writes=(Charge.soc, Charge.substeps))
    def advance(charge: Charge, heard: Heard, dt: float) -> tuple[float, int]:
        pull = heard.mean - charge.soc + 0.01 * float(heard.gossip.sum()) + heard.mode
        return charge.soc + dt * (charge.flows[0] + 0.1 * charge.flows[1] + 0.1 * pull), charge.substeps + 1

    @staticmethod
    @rule
    def compute_local_reward(charge: Charge, heard: Heard) -> float:
        return -abs(charge.soc - heard.mean)

    @staticmethod
    @rule
    def is_terminated(charge: Charge, time: float) -> bool:
        return time >= charge.end


class Hand(FieldAgent):
    """The same in the imperative style; inbox first."""

    features = (Heard, Charge)

    def init_state(self) -> None:
        self.state = FieldAgentState(self.agent_id, 1, [type(f).from_dict(f.to_dict()) for f in self.initial])

    def init_action(self) -> None:
        self.action = Action()
        self.action.set_specs(dim_c=1, range=([-2.0], [2.0]))

    def apply_action(self) -> None:
        charge, heard = self.state.features[Charge], self.state.features[Heard]
        charge.flows = [self.action.c[0], heard.soc.mean()]

    def advance(self, dt: float) -> None:
        charge = self.state.features[Charge]
        charge.soc += dt * charge.flows.sum() - 0.01 * charge.soc

    def compute_local_reward(self, local_state: Any) -> float:
        return local_state["Heard"]["mean"]


class Chief(CoordinatorAgent):
    """A zone with something to say of its own."""

    features = (Charge, Heard)

    @staticmethod
    @rule(writes=Charge.soc)
    def advance(charge: Charge, heard: Heard, dt: float) -> float:
        return charge.soc + dt * (1.0 + 0.1 * heard.mean)


class Ear(CoordinatorAgent):
    """Nothing but an inbox."""

    features = (Heard,)


class Drawn(HeronEnv):
    """The world changes once more after the rewards: shares tell what is then true."""

    def begin(self, world: World) -> None:
        world[Talker].Charge.soc[...] += world.draw("start", len(world[Talker].Charge.soc))

    def finish(self, world: World) -> None:
        world[Talker].Charge.soc[...] += world.draw("step", len(world[Talker].Charge.soc)) - 0.5


def all_kinds(edges: Any) -> tuple[Any, ...]:
    """Every quantity over the same edges; what was heard is passed on, one hop a step."""
    return (
        StateShare(Charge.soc, Heard.soc, edges),
        StateAverage(Charge.soc, Heard.mean, edges),
        StateShare(Charge.flows, Heard.flows, edges),
        StateAverage(Charge.mode, Heard.mode, edges),
        StateShare(Heard.soc, Heard.gossip, edges),
    )


def nested(edges: Any, ends: Sequence[float] = (NEVER,) * 6, **options: Any) -> HeronEnv:
    """Two zones: one whose members talk, one inside another; the zones talk too, and one more protocol across."""
    t = [Talker(f"t_{i}", Charge(soc=float(i), end=end)) for i, end in enumerate(ends)]
    inner = Chief("inner", t[3], Hand("h_1"), t[4], exchange=all_kinds("ring"))
    zones = (
        Chief("zone_a", *t[:3], exchange=all_kinds(edges)),
        Chief("zone_b", inner, t[5], exchange=StateShare(Charge.soc, Heard.soc, "full")),
    )
    across = StateAverage(Charge.soc, Heard.mean, [("t_0", "ear"), ("zone_a", "ear"), ("t_4", "zone_b")])
    return Drawn(SystemAgent("system", *zones, Ear("ear"), exchange=across), **{"max_steps": 6} | options)


def waves(env: HeronEnv) -> dict[str, Wave]:
    return {a: Wave(a, env.simulation.model.specs[env.hierarchy.index[a]]) for a in env.possible_agents}


def check_parity(build: Callable[[], HeronEnv], wait: float | None = None, schedule: Any = None) -> EpisodeResult:
    """Both clocks: rewards, ends, actions, observations, and the truth with all inboxes, bit for bit."""
    sync_env, event_env = build(), build()
    sync = sync_env.run_synchronous(waves(sync_env), seed=3, record=RECORD)
    event = event_env.run_event_driven(waves(event_env), seed=3, wait=wait, schedule=schedule, record=RECORD)
    assert_same_course(sync, event)
    assert sync_env.simulation.truth.tobytes() == event_env.simulation.truth.tobytes(), "the final states differ"
    assert sync_env.simulation.exchange.state() == event_env.simulation.exchange.state()
    assert event.messages.balanced()
    return event


PAIRS = [("t_2", "t_0"), ("t_1", "t_0"), ("t_0", "t_2")]
ENDS = [(NEVER,) * 6, (2.0, NEVER, 4.0, 3.0, NEVER, 1.0)]


@pytest.mark.parametrize(
    ("edges", "ends", "substeps", "wait"),
    [("ring", ENDS[1], 1, 0.01), ("star", ENDS[0], 4, None), ("full", ENDS[1], 4, None), (PAIRS, ENDS[0], 1, 0.01)],
)
def test_two_clocks_one_course(edges: Any, ends: Any, substeps: int, wait: float | None):
    check_parity(lambda: nested(edges, ends, physics_substeps=substeps, observe_age=True), wait)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Any, tuple[float, ...]]:
    """How many agents, who tells whom in which order, and when they end."""
    n = draw(st.integers(2, 6))
    every = [(f"t_{a}", f"t_{b}") for a in range(n) for b in range(n) if a != b]
    edges = draw(st.one_of(st.sampled_from(["ring", "star", "full"]), st.lists(st.sampled_from(every), unique=True)))
    return n, edges, tuple(draw(st.lists(st.sampled_from([1.0, 2.0, 3.0, NEVER]), min_size=n, max_size=n)))


@given(graphs(), st.sampled_from([1, 3]), st.sampled_from(["all", "any"]))
def test_any_graph_of_neighbours_keeps_parity(graph: Any, substeps: int, mode: str):
    n, edges, ends = graph
    limits = TerminationConfig(max_steps=4, mode=mode)

    def build() -> HeronEnv:
        agents = [Talker(f"t_{i}", Charge(soc=float(i), end=ends[i])) for i in range(n)]
        return Drawn(
            SystemAgent("s", *agents, exchange=all_kinds(edges)), physics_substeps=substeps, termination=limits
        )

    check_parity(build)


class OddAndEven(StateShare):
    """Two groups of senders, each averaged in its slot."""

    def slot(self, position: int) -> int:
        return position % 2


def test_a_protocol_of_ones_own_may_mix_slots_and_averages():
    def build() -> HeronEnv:
        agents = [Counter(f"c_{i}", Clock(soc=float(i))) for i in range(6)]
        return HeronEnv(SystemAgent("s", *agents, exchange=OddAndEven(Clock.soc, News.soc, "full")), max_steps=2)

    check_parity(build)
    env = build()
    env.reset(seed=0)
    env.step({})
    assert env.hierarchy.agents[1].state.features[News].soc.tolist() == [1 + (1 + 3 + 5) / 3, 1 + (2 + 4) / 2]


def test_unequal_ticks_keep_parity():
    ticks = {"t_1": ScheduleConfig(tick_interval=2.0), "h_1": ScheduleConfig(tick_interval=3.0, phase=1.0)}
    check_parity(lambda: nested("ring", ENDS[1], schedule=ticks))


# Exact numbers: agents whose charge counts the steps


class Clock(FeatureProvider):
    """Rises by 1 a second."""

    soc: float = quantity(default=0.0, low=0.0, high=1e3)
    end: float = quantity(default=NEVER, low=0.0, high=NEVER, observed=False)


class News(Inbox):
    soc: np.ndarray = quantity(default=-1.0, low=-1.0, high=1e3, shape=(2,))
    mean: float = quantity(default=-1.0, low=-1.0, high=1e3)


class Narrow(FeatureProvider):
    """Numbers that are no flags."""

    half: float = quantity(default=0.0, low=0.0, high=0.5)
    flow: float = quantity(default=0.0, low=0.0, high=1.0, per_step=True)


class Counter(FieldAgent):
    features = (Clock, News)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Clock.soc)
    def advance(clock: Clock, dt: float) -> float:
        return clock.soc + dt

    @staticmethod
    @rule
    def is_terminated(clock: Clock, time: float) -> bool:
        return time >= clock.end


def ring_of_three(max_steps: int = 4, ends: Sequence[float] = (NEVER,) * 3, **options: Any) -> HeronEnv:
    """c_1, c_2, c_3 begin at 10, 20, 30."""
    agents = [Counter(f"c_{i + 1}", Clock(soc=10.0 * (i + 1), end=end)) for i, end in enumerate(ends)]
    protocols = (StateShare(Clock.soc, News.soc, "ring"), StateAverage(Clock.soc, News.mean, "full"))
    return HeronEnv(SystemAgent("system", *agents, exchange=protocols), max_steps=max_steps, **options)


GOLDEN = {  # own charge, left neighbour, right neighbour, mean of the others
    "c_1": [[10, -1, -1, -1], [11, 31, 21, 26], [12, 32, 22, 27], [13, 33, 23, 28]],
    "c_2": [[20, -1, -1, -1], [21, 11, 31, 21], [22, 12, 32, 22], [23, 13, 33, 23]],
    "c_3": [[30, -1, -1, -1], [31, 21, 11, 16], [32, 22, 12, 17], [33, 23, 13, 18]],
}


def idle(vector: Any) -> list[float]:
    return [0.0]


def seen(env: HeronEnv, schedule: Any = None, **options: Any) -> dict[str, dict[float, list[float]]]:
    """What each agent observed in an event-driven run: {agent: {time of the tick: vector}}."""
    result = env.run_event_driven({"*": idle}, seed=0, schedule=schedule, record=RECORD, **options)
    assert result.messages.balanced()
    return {a: {t: vector.tolist() for t, vector in rows} for a, rows in result.observations.items()}


def test_golden_ring_of_three_in_both_clocks():
    env = ring_of_three()
    assert env.observation_names("c_2") == ["Clock.soc", "News.soc[0]", "News.soc[1]", "News.mean"]
    obs, _ = env.reset(seed=0)
    rows = [obs] + [env.step({})[0] for _ in range(3)]
    assert {a: [row[a].tolist() for row in rows] for a in obs} == GOLDEN
    assert {a: list(vectors.values()) for a, vectors in seen(env).items()} == GOLDEN


def test_the_last_observation_of_an_episode_has_the_last_shares():
    env = ring_of_three(max_steps=1)
    env.reset(seed=0)
    obs, *_, truncations, _ = env.step({})
    assert all(truncations.values())
    assert obs["c_1"].tolist() == GOLDEN["c_1"][1]


# Shares that are decided on (V10)


class Voice(FeatureProvider):
    """Whether this agent tells something, and how often it has."""

    says: float = quantity(default=0.0, low=0.0, high=1.0)
    paid: float = quantity(default=0.0, low=0.0, high=1e6, observed=False)


class Speaker(Counter):
    """Its action says whether it tells; it pays for each telling."""

    features = (Clock, News, Voice)
    action = Continuous(0.0, 1.0)

    @staticmethod
    @rule(writes=Voice.says)
    def apply_action(action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule
    def compute_local_reward(voice: Voice) -> float:
        return -0.25 * (voice.says >= 0.5)


def speakers(max_steps: int = 4, **options: Any) -> HeronEnv:
    """c_1, c_2, c_3 begin at 10, 20, 30; c_1 hears the others when they say so, and their mean whenever."""
    agents = [Speaker(f"c_{i}", Clock(soc=10.0 * i)) for i in (1, 2, 3)]
    protocols = (
        StateShare(Clock.soc, News.soc, "ring", when=Voice.says),
        StateAverage(Clock.soc, News.mean, "full"),
    )
    return HeronEnv(SystemAgent("system", *agents, exchange=protocols), max_steps=max_steps, **options)


def test_who_raises_its_flag_is_heard_and_pays_once():
    env = speakers()
    env.reset(seed=0)
    told = {"c_1": [0.0], "c_2": [0.4], "c_3": [0.5]}
    rows, paid = [], []
    for actions in (told, {}, {"c_2": [1.0]}, {}):
        obs, rewards, *_ = env.step({"c_1": [0.0], "c_2": [0.0], "c_3": [0.0]} | actions)
        rows.append(obs["c_1"][1:4].tolist())
        paid.append([rewards[f"c_{i}"] for i in (1, 2, 3)])
        assert not env.simulation.truth[[n == "Voice.says" for n in env.simulation.model.layout.names]].any()
    assert rows == [[31, -1, 26], [31, -1, 27], [31, 23, 28], [31, 23, 29]]
    assert paid == [[0, 0, -0.25], [0, 0, 0], [0, -0.25, 0], [0, 0, 0]]


def test_one_effect_is_one_message_however_rare_ticks_are():
    env = speakers(max_steps=12)
    rare = {"*": ScheduleConfig(tick_interval=3.0, msg_delay=0.2)}
    result = env.run_event_driven({"*": lambda vector: [1.0]}, seed=0, schedule=rare, trace=True)
    told = [r.payload for r in result.trace if isinstance(r.payload, SharedState)]
    gated = [share for share in told if env.simulation.exchange.edges[share.edge].flag >= 0]
    paid = sum(reward < 0.0 for rows in result.rewards.values() for _, reward in rows) - 4  # the system's is their sum
    assert len(gated) == 2 * paid == 2 * 3 * 4
    assert len(told) - len(gated) == 6 * 11  # the last are under way


def test_two_clocks_one_course_where_shares_are_decided_on():
    for compile in (True, False):
        check_parity(lambda compile=compile: speakers(compile=compile))
        check_parity(lambda compile=compile: speakers(compile=compile, physics_substeps=4, report_interval=0.5))


FLAGS: dict[str, tuple[Any, str]] = {
    "no quantity": ("says", r"when='says'\): must be a quantity of a feature class"),
    "an inbox": (News.mean, "it is an inbox, which actions don't write"),
    "a vector": (Charge.flows, r"it has the shape \(2,\)"),
    "never one": (Narrow.half, "0 or 1 is beyond its bounds"),
    "cleared": (Narrow.flow, "it is set to 0 before physics"),
}


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_that_none_can_raise_is_refused(name: str):
    flag, words = FLAGS[name]
    with pytest.raises(FeatureError, match=words):
        StateShare(Clock.soc, News.soc, "ring", when=flag)


def test_who_has_no_flag_cannot_be_gated():
    agents = [Counter(f"c_{i}") for i in (1, 2)]
    with pytest.raises(FeatureError, match=r"'c_2' raises Voice.says, but its features are"):
        HeronEnv(SystemAgent("s", *agents, exchange=StateShare(Clock.soc, News.soc, "ring", when=Voice.says)))


def test_what_is_lost_is_never_known():
    env = ring_of_three()
    result = env.run_event_driven({"*": idle}, seed=0, schedule=ScheduleConfig(loss=1.0))
    assert env.proxy.cache[[n.startswith("News") for n in env.simulation.model.layout.names]].tolist() == [-1.0] * 9
    assert (
        env.simulation.truth[[n.startswith("News") for n in env.simulation.model.layout.names]].tolist() == [-1.0] * 9
    )
    assert result.messages.balanced()
    assert result.messages.lost >= 12 * 4


ROUGH = ScheduleConfig(
    tick_interval=0.4, msg_delay=1.5, jitter_type="uniform", jitter_ratio=1.0, loss=0.1, reorder=True
)


def test_an_older_share_never_overwrites_a_newer_one():
    env = ring_of_three(max_steps=30)
    run = env.start_event_driven({"*": idle}, seed=0, schedule=ROUGH, trace=True)
    inboxes = [n.startswith("News.soc") for n in env.simulation.model.layout.names]
    last = env.proxy.cache[inboxes]
    for t in np.arange(0.0, 32.0, 0.1):
        run.until(float(t))
        now = env.proxy.cache[inboxes]
        assert (now >= last).all(), f"an inbox went back at {t} s"
        assert np.array_equal(now, env.simulation.truth[inboxes])
        last = now
    shares = [r.payload for r in run.result().trace if isinstance(r.payload, SharedState)]
    order = {(s.edge): [x.number for x in shares if x.edge == s.edge] for s in shares}
    assert any(numbers != sorted(numbers) for numbers in order.values()), "nothing was overtaken: nothing is proved"
    counts = run.result().messages
    assert counts.balanced()


def test_an_ended_agent_shares_its_last_state_and_no_more():
    env = ring_of_three(ends=(2.0, NEVER, NEVER))
    env.reset(seed=0)
    rows = [env.step({})[0] for _ in range(4)]
    expected = [[21, 11, 31, 21], [22, 12, 32, 22], [23, 12, 33, 22.5], [24, 12, 34, 23]]
    assert [row["c_2"].tolist() for row in rows] == expected
    result = env.run_event_driven({"*": idle}, seed=0, trace=True)
    times = {r.t_ns for r in result.trace if isinstance(r.payload, SharedState) and r.payload.view.sender == "c_1"}
    assert times == {10**9, 2 * 10**9}


def test_a_share_under_way_outlives_its_sender():
    vectors = seen(ring_of_three(max_steps=6, ends=(2.0, NEVER, NEVER)), {"c_1": ScheduleConfig(msg_delay=1.5)})
    assert [vector[1] for vector in vectors["c_2"].values()] == [-1, -1, -1, 11, 12, 12]


def test_no_state_report_carries_an_inbox():
    env = ring_of_three()
    result = env.run_event_driven({"*": idle}, seed=0, trace=True)
    reports = [r.payload for r in result.trace if isinstance(r.payload, StateReport)]
    assert {str(r.to_dict()["body"]["features"].keys()) for r in reports if r.row} == {"dict_keys(['Clock'])"}
    told = {
        env.simulation.model.layout.names[c] for row in env.simulation.model.layout.rows for c in row.reported.columns
    }
    assert told == {"Clock.soc"}


def test_a_trace_shows_who_tells_whom_what():
    env = ring_of_three()
    result = env.run_event_driven({"*": idle}, seed=0, trace=True)
    share = next(r.payload for r in result.trace if isinstance(r.payload, SharedState))
    body = {"_owner_id": "c_1", "_receiver_id": "c_2", "features": {"Clock": {"soc": 11.0}}}
    assert share.to_dict() == {"share_state": "neighbour", "body": body}
    assert "share_state: neighbour" in result.trace.table(env.hierarchy.ids)
    causes = {result.trace[r.cause].kind for r in result.trace if isinstance(r.payload, SharedState)}
    assert causes == {"Simulation"}


def test_a_vector_and_a_whole_number_are_told_as_what_they_are():
    agents = [Talker("t_0", Charge(flows=[1.0, 2.0], mode=7)), Talker("t_1")]
    env = HeronEnv(SystemAgent("s", *agents, exchange=all_kinds([("t_0", "t_1")])), max_steps=1)
    told = [
        edge.route.describe(env.simulation.truth[edge.source])["features"] for edge in env.simulation.exchange.edges
    ]
    expected = [
        {"Charge": {"soc": 0.0}},
        {"Charge": {"soc": 0.0}},
        {"Charge": {"flows": [1.0, 2.0]}},
        {"Charge": {"mode": 7}},
        {"Heard": {"soc": [-1.0] * SLOTS}},
    ]
    assert told == expected


def test_sharing_discloses_what_tags_and_matrix_hide_and_nothing_else():
    for matrix in (None, {"default": {"level": "unaware"}}):
        agents = [Talker("t_0", Charge(soc=5.0)), Talker("t_1")]
        exchange = StateShare(Charge.soc, Heard.soc, [("t_0", "t_1")])
        env = HeronEnv(SystemAgent("s", *agents, exchange=exchange), max_steps=1, observability=matrix)
        assert not [name for name in env.observation_names("t_1") if name.startswith("t_0")]
        env.reset(seed=0)
        env.step({})
        inbox = agents[1].state.features[Heard]
        assert inbox.soc.tolist() == [agents[0].state.features[Charge].soc, *([-1.0] * (SLOTS - 1))]
        assert inbox.to_dict() == Heard(soc=inbox.soc).to_dict()


def test_values_are_clipped_to_the_inbox():
    agents = [Talker("t_0", Charge(soc=45.0, mode=9)), Talker("t_1")]
    for clock in ("step", "run"):
        env = HeronEnv(SystemAgent("s", *copy.deepcopy(agents), exchange=all_kinds("ring")), max_steps=1)
        if clock == "step":
            env.reset(seed=0)
            env.step({"t_0": [2.0]})
        else:
            env.run_event_driven({"*": lambda vector: [2.0]}, seed=0)
        inbox = env.hierarchy.agents[2].state.features[Heard]
        assert (inbox.soc[0], inbox.mean, inbox.mode) == (20.0, 20.0, 8)


def test_a_reset_forgets_what_was_heard():
    env = ring_of_three()
    for begin in (lambda: env.run_event_driven({"*": idle}, schedule=ScheduleConfig(msg_delay=0.5)), lambda: None):
        env.reset(seed=0)
        env.step({})
        begin()
        obs, _ = env.reset(seed=0)
        assert obs["c_1"].tolist() == GOLDEN["c_1"][0]
        assert env.step({})[0]["c_1"].tolist() == GOLDEN["c_1"][1]
        late = seen(env, {"c_3": ScheduleConfig(msg_delay=2.0)})
        assert [v[3] for v in late["c_1"].values()] == [-1, 21, 22, (23 + 31) / 2], "no mean with values of the past"


WAYS: list[Callable[[Any], Any]] = [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))]


@pytest.mark.parametrize("way", ["copy", "pickle", "state"])
def test_an_environment_goes_on_from_a_snapshot(way: str):
    env = nested("full", ENDS[1])
    env.reset(seed=1)
    for _ in range(2):
        env.step({})
    if way == "state":
        other = nested("full", ENDS[1])
        other.run_event_driven(waves(other), seed=9)
        other.set_state(env.get_state())
    else:
        other = WAYS[way == "pickle"](env)
    while env.agents:
        assert str(env.step({})) == str(other.step({}))
    assert env.simulation.truth.tobytes() == other.simulation.truth.tobytes()


def test_a_snapshot_of_another_exchange_is_refused():
    def ring_or(edges: Any) -> HeronEnv:
        agents = [Counter(f"c_{i}") for i in range(3)]
        return HeronEnv(SystemAgent("s", *agents, exchange=StateShare(Clock.soc, News.soc, edges)), max_steps=2)

    env, other = ring_or("ring"), ring_or([("c_0", "c_1")])
    env.reset(seed=0)
    message = (
        "set_state(): the state has 6 edges between neighbours with 6 values, this environment 1 with 1; "
        "build them alike"
    )
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        other.set_state(env.get_state())


def test_a_run_pickles_with_shares_in_flight():
    whole, halved = nested("star", ENDS[1], max_steps=9), nested("star", ENDS[1], max_steps=9)
    options: dict[str, Any] = {"seed": 2, "schedule": ROUGH, "trace": True, "record": RECORD}
    a = whole.run_event_driven(waves(whole), **options)
    run = halved.start_event_driven(waves(halved), **options)
    run.until(2.2)
    run = pickle.loads(pickle.dumps(run))
    assert any(isinstance(e, SharedState) for e in run.context.scheduler), "none in flight: nothing is proved"
    run.attach(waves(run.env))
    run.until(None)
    b = run.result()
    assert_same_course(a, b)
    assert a.trace.lines(whole.hierarchy.ids) == b.trace.lines(halved.hierarchy.ids)
    assert a.messages == b.messages
    assert whole.simulation.truth.tobytes() == run.env.simulation.truth.tobytes()


def test_ages_count_for_rows_with_nothing_but_an_inbox():
    class Listener(FieldAgent):
        features = (News,)
        action = Continuous(-1.0, 1.0)

    exchange = StateShare(Clock.soc, News.soc, [("c", "l")])
    env = HeronEnv(SystemAgent("s", Counter("c"), Listener("l"), exchange=exchange), max_steps=4, observe_age=True)
    assert [vector[-1] for vector in seen(env)["l"].values()] == [0.0] * 4
    result = env.run_event_driven({"*": idle}, seed=0, trace=True)
    bodies = [r.payload.to_dict()["body"] for r in result.trace if isinstance(r.payload, StateReport)]
    assert {"_owner_id": "l", "_owner_level": 1, "_state_type": "FieldAgentState", "features": {}} in bodies


# Cost


def counters(n: int, edges: Any) -> HeronEnv:
    class Wide(Inbox):
        soc: np.ndarray = quantity(shape=(max(n, 2),))
        mean: float = 0.0

    class Many(Counter):
        features = (Clock, Wide)

    agents = [Many(f"c_{i}") for i in range(n)]
    protocols = (StateShare(Clock.soc, Wide.soc, edges), StateAverage(Clock.soc, Wide.mean, edges))
    return HeronEnv(SystemAgent("s", *agents, exchange=protocols), max_steps=2)


@pytest.mark.parametrize("edges", ["ring", "star", "full"])
def test_the_exchange_costs_what_its_edges_cost(edges: str):
    sizes = {"ring": (10, 40, 160), "star": (10, 40, 160), "full": (6, 12, 24)}[edges]
    counts: list[list[int]] = []
    told: list[int] = []
    for n in sizes:
        env = counters(n, edges)
        told.append(len(env.simulation.exchange.edges))
        tasks: list[Callable[[], Any]] = [
            lambda n=n: counters(n, edges),
            lambda env=env: env.reset(seed=0),
            lambda env=env: env.step({}),
            lambda env=env: env.run_event_driven({"*": idle}, seed=0),
        ]
        counts.append([calls(task) for task in tasks])
    for what, column in zip(("build", "reset", "step", "run"), zip(*counts, strict=True), strict=True):
        assert_linear(f"calls to {what}", tuple(told), list(column))


def test_a_step_calls_as_many_functions_whatever_the_number_of_edges():
    made = []
    for edges in ([("c_0", "c_1")], "full"):
        env = counters(12, edges)
        env.reset(seed=0)
        made.append(calls(lambda env=env: env.step({})))
    assert made[0] == made[1]


def test_without_an_exchange_nothing_is_done():
    env = HeronEnv(SystemAgent("s", Counter("c_1"), Counter("c_2")), max_steps=3)
    assert env.simulation.exchange.natives() == ()
    with patch.object(Exchange, "receive", _never), patch.object(physics.PhysicsCycle, "send_shares", _never):
        env.run_synchronous({"*": idle}, seed=0)
        env.run_event_driven({"*": idle}, seed=0)


def _never(*arguments: Any) -> None:
    raise AssertionError("there is nothing to do")
