"""Fixed worlds and networks on which every mutant must be caught."""

from dataclasses import replace

from strategies import Node, Recipe

from heron_env import Disturbance, ObservabilityConfig, ScheduleConfig

FIELD = Recipe(
    Node("system", children=(Node("zone", children=(Node("unit"), Node("unit", value=1.0))), Node("hand"))), max_steps=6
)
"""Nobody commands: batteries decide."""
ZONE = Recipe(
    Node("system", children=(Node("zone", protocol="vector", children=(Node("unit"), Node("hand"))),)), max_steps=6
)
"""A zone commands."""
NESTED = Recipe(
    Node(
        "system",
        children=(
            Node(
                "zone",
                protocol="vector",
                children=(Node("team", protocol="split", children=(Node("unit"),) * 2), Node("chooser")),
            ),
            Node("zone", protocol="broadcast", children=(Node("unit"), Node("unit", named=True))),
            Node("team", children=(Node("hand", value=1.0), Node("unit", own_policy=True))),
        ),
    ),
    substeps=4,
    max_steps=80,
)
"""Nested commands, an agent that decides below a protocol, watchers."""
ENDING = Recipe(
    Node(
        "system",
        children=(
            Node("zone", children=(Node("unit", at=2), Node("unit", at=3), Node("unit"))),
            Node("zone", protocol="vector", at=4, children=(Node("unit", at=2), Node("hand"))),
        ),
    ),
    max_steps=7,
)
"""Agents end one after another."""
SLOW = ScheduleConfig(tick_interval=0.5, msg_delay=0.3, obs_delay=0.2, act_delay=1.3)
"""Several decisions are under way at once."""
ROUGH = ScheduleConfig(
    tick_interval=0.4, msg_delay=0.5, obs_delay=0.2, act_delay=0.8, jitter_type="uniform", jitter_ratio=1.0,
    tick_jitter_ratio=1.0, loss=0.2, reorder=True,
)  # fmt: skip
"""Everything at once."""
LOSSLESS = ScheduleConfig(
    tick_interval=0.7,
    msg_delay=0.4,
    act_delay=0.6,
    jitter_type="lognormal",
    jitter_ratio=0.7,
    tick_jitter_ratio=0.7,
    reorder=True,
)
"""Jitter alone, so that each delay is the one drawn."""
JITTERY = ScheduleConfig(
    tick_interval=0.4, act_delay=1.0, jitter_type="uniform", jitter_ratio=1.0, tick_jitter_ratio=1.0
)
"""Effects take between nothing and two steps."""
SEEN = Recipe(
    Node(
        "system",
        children=(
            Node("zone", children=(Node("unit"), Node("unit", value=1.0))),
            Node("team", children=(Node("hand"), Node("chooser"))),
        ),
    ),
    max_steps=6,
    observability=ObservabilityConfig(
        variable_visibility={"external": ["slope", "secret", "cells"], "internal": ["Price.value"]},
        matrix=[
            ["unit_2", "team_4", "insider", 0.5],
            ["unit_2", "zone_1", "unaware", 0.2],
            {"observer": "zone_1", "target": "unit_2", "level": "insider", "noise": 0.1, "law": "additive"},
            ["system_agent", "team_4", "insider", 0.2],
            ["hand_5", "global", "insider", 0.1],
            ["unit_3", "unit_2", "external", 0.0],
        ],
        default={"level": "external", "noise": 0.3},
    ),
)
"""FIELD with a matrix that differs from its tags, and noise of both laws."""
TALKERS = (Node("talker", cut=3), Node("talker"))
TALK = Recipe(
    Node(
        "system",
        children=(
            Node("zone", protocol="vector", children=(Node("unit", at=2), Node("talker"), Node("unit", named=True))),
            Node("zone", protocol="uneven", children=(Node("unit", value=1.0), Node("unit"))),
            Node("team", exchange="ring", when=True, children=(*TALKERS, Node("talker", value=1.0))),
            Node("team", children=(Node("unit", above=0.6), Node("unit", own_policy=True))),
        ),
    ),
    substeps=2,
    max_steps=5,
    compile=True,
    observability=ObservabilityConfig(
        matrix=[{"observer": "talker_9", "target": "zone_1", "level": "insider", "noise": 0.1, "law": "additive"}],
        default={"level": "external", "noise": 0.2},
    ),
)
"""Compiled: every protocol, neighbours that talk, ends in mid-episode, noise of both laws."""
SILENT = replace(TALK, hooks="none")
"""Compiled, and nothing of a step is Python once all actions are known: the rest is one call of the engine."""
STORMS = (
    (
        Disturbance(1.0, "tariff", {"by": 0.7}, duration=90.0),
        Disturbance(0.0, "agent_crash", {"agent": "*", "meanwhile": "noop"}, duration=2.0),
        Disturbance(1.5, "gust", {"what": "unit_2.Level.value", "by": 0.25}),
        Disturbance(2.0, "sensor_failure", {"agent": "*", "mode": "freeze"}, duration=90.0),
    ),
    (
        Disturbance(0.0, "sensor_failure", {"agent": "zone_1"}, duration=3.0),
        Disturbance(2.0, "tariff", {"by": 0.1}, duration=2.0),
    ),
)
"""What befalls the lanes of TALK, in turn."""
