"""Published test vectors of delays and losses from data (source_vectors.json): every clock must give these numbers.

The plain link (laws/plain_draws.py: from the definitions, one move after another) made the file; this module, run with
PYTHONPATH=tests:., prints it anew. Times in ns; `lost` where a message is.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from laws.plain_draws import PlainLink

from heron_env import ScheduleConfig
from heron_env.lab.traces.episode import schedule_of
from heron_env.testing import clock
from heron_env.testing.clock import SECOND, Leg

PATH = Path(__file__).with_name("source_vectors.json")
JITTER: dict[str, Any] = {"jitter_type": "lognormal", "jitter_ratio": 0.3}
BURSTS = {"markov": {"states": [0.2, 4.0], "stay": [0.95, 0.7], "period": 2.0}}
THREE = {"markov": {"states": [0.1, {"empirical": [1.0, 2.0, 7.5]}, 0.0], "stay": 0.6, "period": 0.5}}
RECORD = {"recorded": {"times": [-2.0, 0.5, 1.25, 7.0], "delays": [0.3, 0.1, 2.5, 0.0], "period": 11.0}}
LOSSES = {"gilbert_elliott": {"p_bad": 0.05, "p_good": 0.4, "loss_bad": 0.8, "loss_good": 0.01, "period": 1.0}}
FIELDS: list[dict[str, Any]] = [
    {"msg_delay": {"empirical": [0.1, 0.25, 0.25, 9.0]}},
    {"msg_delay": RECORD, "loss": LOSSES},
    {"msg_delay": BURSTS, "loss": LOSSES, **JITTER},
    {"msg_delay": THREE, "obs_delay": BURSTS, "act_delay": RECORD, "min_delay": 0.05, **JITTER},
    {"msg_delay": 1.5, "loss": LOSSES, "act_delay": THREE, "jitter_type": "uniform", "jitter_ratio": 0.5},
]
IDENTITIES = [("battery_1", 0, 0), ("battery_1", 0, 1), ("battery_1", 2**63, 0), ("Zürich", 42, 3)]
LEGS = [("tick", int(Leg.OBSERVATION_REQUEST)), ("tick", int(Leg.GATHERING)), ("command", int(Leg.ACTION))]
DEPARTURES = [
    0, 1, SECOND // 2 - 1, SECOND // 2, 7 * SECOND, 31 * SECOND + 5, 900 * SECOND, 2 * SECOND, 600 * SECOND + 3,
]  # fmt: skip


def config_of(fields: dict[str, Any]) -> ScheduleConfig:
    found: Any = schedule_of([{"key": "*", **fields}])
    return found["*"]


def asked(of: Any) -> dict[str, Any]:
    """What a link, the product's or the plain one, answers; legs in turns, so that it goes back in time."""
    told: dict[str, Any] = {"delays": [], "lost": []}
    for number, at in enumerate(DEPARTURES):
        for cause, leg in LEGS:
            told["delays"].append(of("delay", 1_500_000_000, cause, leg, number, at))
            told["lost"].append(of("lost", 0, cause, leg, number, at))
    return told


def by_definition(fields: dict[str, Any], agent: str, seed: int, episode: int) -> dict[str, Any]:
    link = PlainLink(clock.link(agent, config_of(fields)).timing, seed, episode)

    def of(what: str, nominal: int, cause: str, leg: int, number: int, at: int) -> Any:
        if what == "lost":
            return link.lost(cause, leg, number, at)
        return link.delay(nominal, cause, leg, number, at)

    return asked(of)


def by_the_clock(fields: dict[str, Any], agent: str, seed: int, episode: int) -> dict[str, Any]:
    link = clock.link(agent, config_of(fields), seed=seed, episode=episode)

    def of(what: str, nominal: int, cause: str, leg: int, number: int, at: int) -> Any:
        if what == "lost":
            return link.lost(cause, leg, number, at)
        return link.delay(nominal, cause, leg, number, at)

    return asked(of)


def made() -> dict[str, Any]:
    """The whole file, by the plain link. Delays of fields that are numbers are given as 1.5 s."""
    return {
        "schema": 1,
        "departures": DEPARTURES,
        "legs": LEGS,
        "cases": [
            {"agent": agent, "seed": seed, "episode": episode, "schedule": fields,
             **by_definition(fields, agent, seed, episode)}
            for fields in FIELDS for agent, seed, episode in IDENTITIES
        ],
    }  # fmt: skip


KEPT = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {"cases": []}


@pytest.mark.parametrize("number", range(len(FIELDS) * len(IDENTITIES)))
def test_links_draw_what_is_published(number: int) -> None:
    case = KEPT["cases"][number]
    found = by_the_clock(case["schedule"], case["agent"], case["seed"], case["episode"])
    assert found == {name: case[name] for name in found}


def test_the_plain_link_still_makes_the_file() -> None:
    assert json.loads(json.dumps(made())) == KEPT


def test_the_vectors_reach_every_state() -> None:
    assert KEPT["departures"] == DEPARTURES
    delays = {delay for case in KEPT["cases"] for delay in case["delays"]}
    assert len(delays) > 150
    assert {lost for case in KEPT["cases"] for lost in case["lost"]} == {True, False}


if __name__ == "__main__":
    print(json.dumps(made(), ensure_ascii=False, separators=(",", ":")).replace('{"agent"', '\n{"agent"'))
