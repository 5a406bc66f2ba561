"""Hypothesis strategies: worlds and schedules as users may write them; failures shrink to few agents and no delay."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st
from seeing_worlds import with_sight
from small_worlds import (
    LATEST,
    NEVER,
    Chooser,
    End,
    GustyEnv,
    Hand,
    LawEnv,
    Level,
    LinkedEnv,
    LinkedLawEnv,
    Metered,
    Reversed,
    RuledEnv,
    Setpoint,
    SignallingEnv,
    StillEnv,
    StormyEnv,
    StormyTogetherEnv,
    Talker,
    Team,
    TogetherEnv,
    Told,
    Top,
    Unit,
    Zone,
)

from heron_env import (
    Broadcast,
    Disturbance,
    Empirical,
    GilbertElliott,
    Mail,
    Markov,
    Medium,
    ObservabilityConfig,
    Protocol,
    Recorded,
    Reliable,
    ScheduleConfig,
    SetpointSplit,
    StateAverage,
    StateShare,
    TerminationConfig,
    VectorDecomposition,
)
from heron_env.agents.agent import Agent
from heron_env.core.action import ActionSpec
from heron_env.errors import ConfigError
from heron_env.seeding import key, uniforms

PROBABILITIES = st.sampled_from([0.0, 0.1, 0.5, 1.0])
KINDS: dict[str, type[Agent]] = {
    "unit": Unit,
    "metered": Metered,
    "talker": Talker,
    "chooser": Chooser,
    "hand": Hand,
    "zone": Zone,
    "team": Team,
    "system": Top,
}
PROTOCOLS: dict[str, type[Protocol]] = {"vector": VectorDecomposition, "broadcast": Broadcast, "split": SetpointSplit}
PROTOCOLS["reversed"] = Reversed
HOOKS: dict[str, Any] = {"alone": LawEnv, "together": TogetherEnv, "rules": RuledEnv, "none": StillEnv}
HOOKS |= {"gusty": GustyEnv, "signalling": SignallingEnv}
HOOKS |= {"stormy": StormyEnv, "stormy together": StormyTogetherEnv}
HOOKS |= {"linked": LinkedEnv, "linked alone": LinkedLawEnv}
"""Who moves the world: Python for each environment, Python for all lanes of a batch, world rules, nobody, gusts; with
rewards of a trainer's own, Python for all lanes; with gusts and what lasts, Python for each and for all; the rule
`link`, with nobody and with Python for each environment.
"""


@dataclass(frozen=True, repr=False)
class Node:
    """One agent of a recipe: `at` and `cut` are steps (0: never), `named` gives it a policy by id below a protocol.

    `exchange`: among whom of its children, all talkers, each tells its level; `when`: to some only if its mode says so.
    """

    kind: str
    value: float = 0.0
    at: int = 0
    cut: int = 0
    above: float = NEVER
    own_policy: bool = False
    named: bool = False
    protocol: str = ""
    exchange: str = ""
    when: bool = False
    children: tuple["Node", ...] = ()

    def __repr__(self) -> str:
        """Only what is not the default."""
        shown = [f"{f.name}={v!r}" for f in fields(self)[1:] if (v := getattr(self, f.name)) != f.default]
        return f"Node({', '.join([repr(self.kind), *shown])})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # Hypothesis would show every field

    def nodes(self) -> list["Node"]:
        """This node and all below, depth first."""
        return [self, *(node for child in self.children for node in child.nodes())]


@dataclass(frozen=True)
class Recipe:
    """All that a random environment is made of.

    `compile`: None as usual, which in tests is no. `mail`: edges over which letters go, declared by the root. `clocks`:
    may its schedules have clocks that are wrong? Its own has one, where none is given. `sight`: who sees whom, a
    name of `seeing_worlds.SIGHTS`; `visible`: is that shown?
    """

    root: Node
    dt: float = 1.0
    substeps: int = 1
    max_steps: int = 4
    mode: str = "all"
    observe_age: bool = False
    observability: ObservabilityConfig | None = None
    hooks: str = "alone"
    compile: bool | None = None
    report_interval: float | None = None
    pad: bool = False
    mail: str | tuple[tuple[str, str], ...] = ()
    clocks: bool = False
    sight: str = ""
    visible: bool = False

    @property
    def ids(self) -> list[str]:
        """Agent ids by rank."""
        return ["system_agent", *(f"{node.kind}_{rank}" for rank, node in enumerate(self.root.nodes()) if rank)]

    def build(self, schedule: Any = None, watch: bool = False) -> LawEnv:
        """A fresh environment."""
        ids = iter(self.ids)
        limits = TerminationConfig(max_steps=self.max_steps, mode=self.mode)
        options: dict[str, Any] = {"dt": self.dt, "physics_substeps": self.substeps, "observe_age": self.observe_age}
        if self.clocks and schedule is None:
            schedule = ScheduleConfig(clock_offset=0.25)
        options |= {"schedule": schedule, "observability": self.observability, "compile": self.compile}
        options |= {"report_interval": self.report_interval, "pad": self.pad, "observe_visible": self.visible}
        top: Any = self._agent(self.root, ids)
        if self.mail:
            top.exchange += (Mail(self.mail),)
        env: LawEnv = with_sight(HOOKS[self.hooks], self.sight)(top, termination=limits, **options)
        env.watch = watch
        return env

    def _agent(self, node: Node, ids: Any) -> Agent:
        agent_id, kind = next(ids), KINDS[node.kind]
        children = [self._agent(child, ids) for child in node.children]
        parts: list[Any] = [part for part in (Level(value=node.value), self._end(node)) if type(part) in kind.features]
        options: dict[str, Any] = {"policy": Wave(agent_id)} if node.own_policy else {}
        if node.protocol:
            options["protocol"] = fitting(node.protocol, children)
        if node.exchange:
            near = StateShare(Level.value, Told.near, node.exchange, when=Setpoint.mode if node.when else None)
            options["exchange"] = near, StateAverage(Level.value, Told.mean, "full")
        return kind(agent_id, *parts, *children, **options)

    def _end(self, node: Node) -> End:
        never = min(NEVER * max(1.0, self.dt), LATEST)
        at, cut = (round(steps * self.dt, 9) if steps else never for steps in (node.at, node.cut))
        return End(at=at, cut=cut, above=node.above)

    def policies(self, env: LawEnv) -> dict[str, "Wave"]:
        """A deterministic policy for each possible agent without its own, and for the commanded ones that are named."""
        simulation, ids, nodes = env.simulation, env.hierarchy.ids, self.root.nodes()
        chosen = [r for r in simulation.model.possible if not nodes[r].own_policy]
        chosen += [r for r, node in enumerate(nodes) if node.named and simulation.model.commanded[r]]
        return {ids[rank]: Wave(ids[rank], simulation.model.specs[rank]) for rank in chosen}

    def constants(self, env: LawEnv) -> dict[str, Any]:
        """Policies that do not look, for all possible agents: the same action always."""
        specs, index = env.simulation.model.specs, env.hierarchy.index
        actions = {a: Wave(a, specs[index[a]])(np.ones(1)) for a in env.possible_agents}
        return {agent: partial(_ignore, action) for agent, action in actions.items()}


def _ignore(action: Any, vector: Any) -> Any:
    return action


def fitting(name: str, children: Sequence[Agent]) -> Protocol:
    """The protocol of that name, or the one that fits all children."""
    if name == "uneven":
        return _uneven(children)
    protocol = PROTOCOLS[name]()
    try:
        protocol.joint_spec([child.own_action_spec() for child in children])
    except ConfigError:
        return VectorDecomposition()
    return protocol


def _uneven(children: Sequence[Agent]) -> Protocol:
    """Shares of which some lie beyond their agent's bounds; where children don't take one number each, vectors."""
    weights = SetpointSplit([1.0 + 3.0 * i for i in range(len(children))])
    split = fitting("split", children)
    return weights if isinstance(split, SetpointSplit) else split


class Wave:
    """A policy in which every bit of the observation matters: waves over a weighted sum. It logs its decisions."""

    def __init__(self, salt: str, spec: ActionSpec | None = None) -> None:
        self.salt, self.spec = salt, spec or Unit.action
        self.log: list[Any] = []

    def __call__(self, vector: Any) -> Any:
        """The action for one observation."""
        weights = uniforms(key("wave", self.salt), len(vector)) + 0.5
        x = float((weights * np.asarray(vector, dtype=np.float64)).sum())
        c = self.spec.low + (self.spec.high - self.spec.low) * (0.5 + 0.5 * np.sin(x + np.arange(self.spec.dim_c)))
        turns = 0.5 + 0.499 * np.sin(7.0 * x + np.arange(self.spec.dim_d))
        action = np.concatenate([c, np.floor(turns * self.spec.ncats)])
        self.log.append(action)
        return action


@st.composite
def writing(draw: st.DrawFn) -> Recipe:
    """A random environment in which many may write to each other."""
    recipe = draw(recipes())
    pairs = [(a, b) for a in recipe.ids for b in recipe.ids if a != b]
    if draw(st.booleans()) and len(recipe.root.children) > 1:
        return replace(recipe, mail=draw(st.sampled_from(["ring", "star", "full"])))
    return replace(recipe, mail=tuple(draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1, max_size=12))))


STEPS = st.sampled_from([0, 0, 0, 1, 2, 3])
FLAGS = st.sampled_from([False, False, False, True])


@st.composite
def leaves(draw: st.DrawFn) -> Node:
    """A field agent; it often ends in mid-run, at a time or by its own state."""
    kind = draw(st.sampled_from(["unit", "unit", "chooser", "hand"]))
    return Node(
        kind,
        value=draw(st.sampled_from([0.0, 1.0, -2.5])),
        at=draw(STEPS),
        cut=draw(st.sampled_from([0, 0, 0, 0, 2])),
        above=draw(st.sampled_from([NEVER, NEVER, 1.5, 4.0])),
        own_policy=kind == "unit" and draw(FLAGS),
        named=draw(FLAGS),
    )


@st.composite
def branches(draw: st.DrawFn, depth: int = 1, kind: str | None = None) -> Node:
    """A coordinator over leaves, and over further coordinators while `depth` lasts."""
    kind = kind or draw(st.sampled_from(["zone", "zone", "team"]))
    below = leaves() if depth == 0 else st.one_of(leaves(), branches(depth - 1))
    return Node(
        kind,
        at=draw(st.sampled_from([0, 0, 0, 2])) if kind == "zone" else 0,
        named=draw(FLAGS),
        protocol=draw(st.sampled_from(["", "", "vector", "vector", "broadcast", "split"])),
        children=tuple(draw(st.lists(below, min_size=1, max_size=3 if depth else 2))),
    )


@st.composite
def recipes(draw: st.DrawFn, *, observe_age: bool | None = None, noisy: bool = False, family: bool = False) -> Recipe:
    """A random environment: nested hierarchies of up to some ten agents, short episodes, every second with a matrix.

    With `noisy` there is one always, and under it nearly everyone sees all of the system agent with noise. With
    `family` it has agents of all classes in rules, and no others, so that all such worlds share their compiled loops.
    """
    root = draw(branches(depth=2, kind="system"))
    recipe = Recipe(
        root=draw(relatives(root)) if family else root,
        dt=draw(st.sampled_from([1.0, 1.0, 0.1, 60.0])),
        substeps=draw(st.sampled_from([1, 4])),
        max_steps=draw(st.integers(2, 6)),
        mode=draw(st.sampled_from(["all", "all", "any"])),
        observe_age=draw(st.booleans()) if observe_age is None else observe_age,
    )
    seen = observabilities(recipe.ids, noisy)
    return replace(recipe, observability=draw(seen if noisy else st.one_of(st.none(), seen)))


CREW = (Node("team", children=(Node("talker"),) * 3), Node("zone", children=(Node("unit"), Node("unit"))))
"""With the system agent, one of every class in rules."""


@st.composite
def relatives(draw: st.DrawFn, root: Node) -> Node:
    """The same tree with talkers for hands and choosers, and a few more agents so that no class is missing."""
    ends = st.sampled_from([0, 0, 1, 2])
    talkers = tuple(Node("talker", value=value, at=draw(ends)) for value in (0.5, 1.0, -1.0))
    unit = Node("unit", own_policy=True) if draw(FLAGS) else Node("unit", at=draw(ends))
    zone = Node("zone", protocol=draw(st.sampled_from(["", "uneven"])), children=(unit, Node("unit")))
    return in_family(root, (Node("team", children=talkers), zone))


def in_family(node: Node, more: tuple[Node, ...] = ()) -> Node:
    """Talkers for hands and choosers, and `more` children."""
    kind = "talker" if node.kind in ("hand", "chooser") else node.kind
    return replace(node, kind=kind, children=(*map(in_family, node.children), *more))


def talking(root: Node, exchange: str, when: bool = False) -> Node:
    """The same tree; talkers that are three below a team of the root hear of each other."""

    def told(node: Node) -> Node:
        talkers = node.kind == "team" and all(child.kind == "talker" for child in node.children)
        return replace(node, exchange=exchange if talkers and len(node.children) == 3 else "", when=when)

    return replace(root, children=tuple(map(told, root.children)))


# Variables that every recipe has, in the system agent or the world; bookkeeping may be listed and stays unseen.
LISTED = ("slope", "target", "total", "secret", "cover", "luck", "count", "serial", "cells", "Level.value")
LISTED += ("Price.value", "Tally.effects")
LEVELS = st.sampled_from(["unaware", "external", "insider"])
NOISES = st.sampled_from([0.0, 0.05, 0.3, 1.5])
NOISE_LAWS = st.sampled_from(["multiplicative", "multiplicative", "additive"])


@st.composite
def observabilities(draw: st.DrawFn, ids: Sequence[str], noisy: bool = False) -> ObservabilityConfig:
    """A random matrix over these agents and "global", with noise; one in four is not enabled, unless `noisy`."""
    pairs = st.tuples(st.sampled_from(ids), st.sampled_from([*ids, "global"]))
    rows = []
    for observer, target in draw(st.lists(pairs, unique=True, max_size=8)):
        row = {"observer": observer, "target": target, "level": "insider"}
        if observer != target:
            row |= {"level": draw(LEVELS), "noise": draw(NOISES), "law": draw(NOISE_LAWS)}
        rows.append(row)
    listed = draw(st.lists(st.sampled_from(LISTED), unique=True, max_size=6))
    cut = draw(st.integers(0, len(listed)))
    return ObservabilityConfig(
        enabled=noisy or draw(st.sampled_from([True, True, True, False])),
        variable_visibility={"external": listed[:cut], "internal": listed[cut:]},
        matrix=rows,
        default={
            "level": "insider" if noisy else draw(LEVELS),
            "noise": draw(NOISES.filter(bool) if noisy else NOISES),
            "law": draw(NOISE_LAWS),
        },
        common_noise=draw(st.sampled_from([0.0, 0.0, 0.2])),
    )


@st.composite
def family(draw: st.DrawFn, *, noisy: bool = False, observe_age: bool | None = None) -> Recipe:
    """A random environment of the family that shares its compiled loops, to be compiled."""
    return replace(draw(recipes(family=True, noisy=noisy, observe_age=observe_age)), compile=True)


@st.composite
def batched(draw: st.DrawFn, *hooks: str) -> Recipe:
    """One for batches: its hooks are among these, and its talkers may talk."""
    recipe = draw(family())
    root = talking(recipe.root, draw(st.sampled_from(["", "ring", "star", "full"])))
    recipe = replace(recipe, root=root, hooks=draw(st.sampled_from(hooks)))
    return recipe if recipe.hooks == "rules" else draw(seeing(recipe))  # each set of world rules is compiled anew


@st.composite
def by_hand(draw: st.DrawFn, *hooks: str) -> Recipe:
    """One that stays in plain Python, with methods on `self`, masks and neighbours; its hooks are among these."""
    recipe = draw(st.one_of(recipes(), recipes(), family().map(lambda one: replace(one, compile=False))))
    talking_root = talking(recipe.root, draw(st.sampled_from(["", "ring", "full"])))
    units = any(node.kind == "unit" for node in recipe.root.nodes())
    chosen = [name for name in hooks if units or not issubclass(HOOKS[name], TogetherEnv)]
    return draw(seeing(replace(recipe, root=talking_root, hooks=draw(st.sampled_from(chosen)), compile=False)))


@st.composite
def seeing(draw: st.DrawFn, recipe: Recipe, always: bool = False) -> Recipe:
    """The same; in most not everyone is always in sight, and in every second of those it shows who is.

    What is compiled has all classes of the family; else there are watchers and who is watched, or units alone.
    """
    kinds = ["rule", "two"] if recipe.compile else ["rule", "two", "method"]
    sight = draw(st.sampled_from(kinds if always else ["", *kinds]))
    if not sight:
        return recipe
    root = (
        recipe.root if recipe.compile else with_units_alone(recipe.root) if sight == "method" else watched(recipe.root)
    )
    recipe = replace(recipe, root=root, sight=sight, visible=draw(st.booleans()))
    return replace(recipe, observability=recipe.observability and draw(observabilities(recipe.ids)))


WATCHED = Node("team", children=(Node("chooser"), Node("unit"), Node("unit", value=1.0)))


def watched(root: Node) -> Node:
    """The same tree, with some who watch and some who are watched where there are none."""
    kinds = {node.kind for node in root.nodes()}
    lacks = "unit" not in kinds or not kinds & {"chooser", "talker"}
    return replace(root, children=(*root.children, WATCHED)) if lacks else root


def with_units_alone(node: Node) -> Node:
    """The same tree with units for all field agents."""
    kind = node.kind if node.kind in ("zone", "team", "system") else "unit"
    return replace(node, kind=kind, exchange="", when=False, children=tuple(map(with_units_alone, node.children)))


def in_reverse(node: Node) -> Node:
    """The same tree; whoever commands vectors of agents that are all alike splits them by a protocol of the user's."""
    alike = len({child.kind for child in node.children}) == 1 and not any(child.children for child in node.children)
    protocol = "reversed" if node.protocol == "vector" and alike else node.protocol
    return replace(node, protocol=protocol, children=tuple(map(in_reverse, node.children)))


@st.composite
def storms(draw: st.DrawFn, recipe: Recipe) -> tuple[Disturbance, ...]:
    """What befalls an episode: gusts, tariffs, crashes and failing sensors, at boundaries and between them."""
    times = st.integers(0, 2 * recipe.max_steps).map(lambda n: round(n * recipe.dt / 2, 9))
    lasting = st.integers(1, 6).map(lambda n: round(n * recipe.dt / 2, 9))
    moved = st.sampled_from([*(f"{agent}.Level.value" for agent in recipe.ids), "global.Price.value"])
    who = st.sampled_from([*recipe.ids, *recipe.ids, "*"])
    gust = st.builds(lambda what, by: ("gust", {"what": what, "by": by}), moved, st.sampled_from([-0.5, 0.25]))
    tariff = st.builds(lambda by: ("tariff", {"by": by}), st.sampled_from([0.1, 0.7]))
    crash = st.builds(
        lambda agent, how: ("agent_crash", {"agent": agent, "meanwhile": how}), who, st.sampled_from(["hold", "noop"])
    )
    failure = st.builds(
        lambda agent, how: ("sensor_failure", {"agent": agent, "mode": how}), who, st.sampled_from(["vanish", "freeze"])
    )
    one = st.builds(
        lambda t, what, lasts: Disturbance(t, *what, duration=None if what[0] == "gust" else lasts),
        times, st.one_of(gust, tariff, crash, failure), lasting,
    )  # fmt: skip
    return tuple(draw(st.lists(one, max_size=6)))


@st.composite
def ticks(draw: st.DrawFn, recipe: Recipe) -> dict[str, ScheduleConfig] | None:
    """Unequal ticks for both clocks: whole multiples of dt, no delay."""
    config = st.builds(
        lambda tick, phase, missing: ScheduleConfig(
            tick_interval=tick * recipe.dt, phase=phase * recipe.dt, on_missing=missing
        ),
        st.integers(1, 3),
        st.integers(0, 2),
        st.sampled_from(["hold", "noop"]),
    )
    return draw(st.one_of(st.none(), st.dictionaries(st.sampled_from([*recipe.ids, "*"]), config, max_size=4)))


@st.composite
def schedule_configs(draw: st.DrawFn, *, dt: float = 1.0, synchronous: bool = False) -> ScheduleConfig:
    """One agent's schedule: times up to 3 dt in tenths; ticks and phase whole multiples of dt if `synchronous`."""
    tenths = st.integers(0, 30).map(lambda n: n * dt / 10)
    periods = st.integers(1, 3).map(lambda n: n * dt)
    ticks = periods if synchronous else st.one_of(periods, st.integers(3, 30).map(lambda n: n * dt / 10))
    jitter_type = draw(st.sampled_from(["none", "uniform", "gaussian", "lognormal"]))
    return ScheduleConfig(
        tick_interval=draw(st.one_of(st.none(), ticks)),
        phase=draw(st.integers(0, 2).map(lambda n: n * dt) if synchronous else tenths),
        obs_delay=draw(tenths),
        act_delay=draw(tenths),
        msg_delay=draw(tenths),
        jitter_type=jitter_type,
        jitter_ratio=0.0 if jitter_type == "none" else draw(st.sampled_from([0.0, 0.1, 0.5, 2.0])),
        tick_jitter_ratio=0.0 if jitter_type == "none" else draw(st.sampled_from([0.0, 0.1, 0.5, 2.0])),
        loss=draw(PROBABILITIES),
        reorder=draw(st.booleans()),
        min_delay=draw(st.sampled_from([0.0, dt / 100])),
        on_missing=draw(st.sampled_from(["hold", "noop"])),
    )


def schedules(
    ids: Sequence[str] = (), *, dt: float = 1.0, synchronous: bool = False
) -> st.SearchStrategy[ScheduleConfig | dict[str | int, ScheduleConfig] | None]:
    """What `schedule=` accepts: nothing, one for all, or a mapping by agent id, level name and "*"."""
    config = schedule_configs(dt=dt, synchronous=synchronous)
    keys = st.sampled_from([*ids, "*", "field", "coordinator", "system"])
    return st.one_of(st.none(), config, st.dictionaries(keys, config, max_size=4))


@st.composite
def sources(draw: st.DrawFn, dt: float) -> Empirical | Recorded | Markov:
    """A delay from data, up to 0.8 dt; chains move a few times in a step."""
    late = st.integers(0, 8).map(lambda n: n * dt / 10)
    sample = st.builds(Empirical, st.lists(late, min_size=1, max_size=4))
    kind = draw(st.sampled_from(["sample", "record", "chain"]))
    if kind == "sample":
        return draw(sample)
    if kind == "record":
        times = sorted(draw(st.sets(st.integers(-5, 20), min_size=1, max_size=5)))
        period = draw(st.sampled_from([None, min(30.0 * dt, 9.2e9)]))
        return Recorded([n * dt / 4 for n in times], [draw(late) for _ in times], period=period)
    states = draw(st.lists(st.one_of(late, sample), min_size=2, max_size=3))
    shares = st.sampled_from([0.0, 0.3, 0.6, 0.9])
    return Markov(states, draw(st.one_of(shares, st.tuples(*[shares] * len(states)))), draw(CHAIN_PERIODS) * dt)


CHAIN_PERIODS = st.sampled_from([0.07, 0.25, 1.0])


@st.composite
def sourced(draw: st.DrawFn, dt: float) -> ScheduleConfig:
    """`delays`, with one or more of its numbers from data."""
    names = draw(st.sets(st.sampled_from(["obs_delay", "act_delay", "msg_delay", "loss"]), min_size=1))
    shares = st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0])
    lossy = st.builds(
        GilbertElliott, shares, st.sampled_from([0.2, 0.5, 1.0]), shares, shares, CHAIN_PERIODS.map(lambda n: n * dt)
    )
    given = {name: draw(lossy if name == "loss" else sources(dt)) for name in sorted(names)}
    return replace(draw(delays(dt)), **given, min_delay=draw(st.sampled_from([0.0, 0.0, dt / 20])))


@st.composite
def two_media(draw: st.DrawFn, dt: float) -> tuple[Medium, Medium]:
    """Of all rates and orders; messages have 12 to 60 bytes, some none."""
    rate = draw(st.sampled_from([100.0, 300.0, 1000.0, math.inf]))
    order, limit = draw(st.sampled_from(["fifo", "fifo", "priority"])), draw(st.sampled_from([None, None, 60.0]))
    sizes = draw(st.sampled_from([{}, {"request": 8, "reply": 0.0}]))
    fast = Medium("fast", rate=rate / dt, overhead=12.0, order=order, limit=limit, sizes=sizes)
    return fast, Medium("slow", rate=200.0 / dt, duplex=True)


@st.composite
def waiting(draw: st.DrawFn, dt: float, config: ScheduleConfig, media: tuple[Medium, Medium]) -> ScheduleConfig:
    """The same with one of the media, a transport, or both; what waits may be limited."""
    fast, slow = media
    medium = draw(st.sampled_from([None, fast, fast, slow]))
    waits, gaps = st.sampled_from([min(share * dt, 100.0) for share in (0.01, 0.3)]), st.booleans()
    tries, at_once = st.sampled_from([None, 2]), st.builds(Reliable, rto=st.just(0.0), tries=st.just(3), gaps=gaps)
    reliable = st.builds(Reliable, rto=waits, backoff=st.sampled_from([1.0, 2.0]), tries=tries, gaps=gaps) | at_once
    transport = draw(st.one_of(st.none(), reliable)) if medium is not None else draw(reliable)
    keep, lifespan = draw(st.sampled_from([None, None, 1, 2])), draw(st.sampled_from([None, None, 0.6 * dt]))
    priority = draw(st.integers(-1, 1)) if medium is not None and medium.order == "priority" else 0
    more = {"medium": medium, "transport": transport, "keep": keep, "lifespan": lifespan, "priority": priority}
    loss = config.loss if transport is None or not isinstance(config.loss, float) else min(config.loss, 0.6)
    return replace(config, **more, loss=loss)


@st.composite
def wrong_clocks(draw: st.DrawFn, config: ScheduleConfig) -> ScheduleConfig:
    """The same with a clock that is ahead or behind, fast or slow, or right."""
    offset = draw(st.sampled_from([0.0, 0.75, -2.5, 1e-9, 999_999.9]))
    return replace(config, clock_offset=offset, clock_drift=draw(st.sampled_from([0.0, 0.1, -0.1, 2e-5, 1e-12])))


@st.composite
def delays(draw: st.DrawFn, dt: float) -> ScheduleConfig:
    """A network that lets most things through, late and out of order: where lost updates show."""
    tenths = st.integers(0, 8).map(lambda n: n * dt / 10)
    jitter = draw(st.sampled_from(["none", "uniform", "gaussian", "lognormal"]))
    return ScheduleConfig(
        tick_interval=draw(st.sampled_from([None, 0.3 * dt, 0.7 * dt, 2.0 * dt])),
        phase=draw(st.sampled_from([0.0, 0.0, 0.4 * dt])),
        obs_delay=draw(tenths),
        act_delay=draw(tenths),
        msg_delay=draw(tenths),
        jitter_type=jitter,
        jitter_ratio=0.0 if jitter == "none" else draw(st.sampled_from([0.3, 1.0])),
        tick_jitter_ratio=0.0 if jitter == "none" else draw(st.sampled_from([0.0, 0.3, 1.0])),
        loss=draw(st.sampled_from([0.0, 0.1, 0.3])),
        reorder=draw(st.booleans()),
        on_missing=draw(st.sampled_from(["hold", "noop"])),
    )
