"""What slow and lossy links cost a negotiation: consensus on the study graph by the delay of messages, 100 seeds each.

All links are alike: 1.7 s of delay are 1.7 s for each question, answer, command and colour that is told. Every seed's
figures by policy and condition are kept, so that a measurement goes on where it was stopped.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heron_env import ScheduleConfig, make, paired_difference
from heron_env.files import write
from heron_env.lab.robust_stats import wilson
from training import packed

ENV, TURNS, SEEDS = "heron/GraphColoring-v0", "apart", 100
POLICIES = ("stable process", "patient process")
DELAYS = (0.0, 0.5, 1.0, 1.7, 2.5, 3.5, 5.0, 7.0, 10.0)
CONDITIONS: dict[str, dict[str, float]] = {
    **{f"messages {delay:g} s": {"msg_delay": delay} for delay in DELAYS},
    "loss 0.1": {"loss": 0.1},
    "loss 0.3": {"loss": 0.3},
    "actions 2.5 s late": {"act_delay": 2.5},
    "messages 5 s, loss 0.1": {"msg_delay": 5.0, "loss": 0.1},
}
KEPT = ("consensus", "rounds", "conflicts", "false_consensus", "first_valid", "recolourings", "belief_error")
Runs = dict[str, list[float]]
"""By figure, its values by seed."""


def measure(policy: str, condition: str, seeds: Sequence[int], turns: str = TURNS) -> Runs:
    """The KPIs of one policy under one condition."""
    env = make(ENV, turns=turns)
    rules, schedule = env.benchmark().baselines(0)[policy], ScheduleConfig(**CONDITIONS[condition])
    runs = [env.run_event_driven(rules, seed=seed, schedule=schedule).kpis for seed in seeds]
    return {name: [run[name] for run in runs] for name in KEPT}


def share(values: Sequence[float]) -> dict[str, float]:
    """A share with Wilson's 95 % interval."""
    n = len(values)
    low, high = wilson(sum(values) / n, n)
    return {"share": sum(values) / n, "low": low, "high": high, "n": n}


def summary(runs: Runs) -> dict[str, Any]:
    """Share of consensus, seconds until it where it was reached, conflicts left there, and boundaries of false ones."""
    reached = [i for i, value in enumerate(runs["consensus"]) if value]
    return {
        "consensus": share(runs["consensus"]),
        "seconds": sum(runs["rounds"][i] for i in reached) / len(reached) if reached else None,
        "conflicts_at_consensus": sum(runs["conflicts"][i] for i in reached),
        "false_consensus": sum(runs["false_consensus"]) / len(runs["false_consensus"]),
        "recolourings": sum(runs["recolourings"]) / len(runs["recolourings"]),
    }


def cells(seeds: int, out: Path, policies: Sequence[str] = POLICIES) -> Iterator[tuple[str, str, Runs]]:
    """(policy, condition, figures) of all, those in `out` not run again; each is kept as soon as it is there."""
    table: dict[str, dict[str, Any]] = packed.load(out)["cells"] if out.exists() else {}
    for policy in policies:
        for condition in CONDITIONS:
            known = table.setdefault(policy, {}).get(condition)
            if known is None or len(known["runs"]["consensus"]) < seeds:
                runs = measure(policy, condition, range(seeds))
                table[policy][condition] = {"causes": CONDITIONS[condition], **summary(runs), "runs": runs}
                told = {"env": ENV, "turns": TURNS, "remedies": remedies(table), "cells": table}
                out.parent.mkdir(parents=True, exist_ok=True)
                write(out, packed.dumped(told))
            yield policy, condition, table[policy][condition]["runs"]


def remedies(table: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """By condition: share of consensus of the patient process minus the stable one's, the same seeds, with interval."""
    plain, patient = (table.get(policy, {}) for policy in POLICIES)
    found = {}
    for condition in plain.keys() & patient.keys():
        pair = (patient[condition]["runs"]["consensus"], plain[condition]["runs"]["consensus"])
        gain = paired_difference(*pair)
        found[condition] = {"mean": gain.mean, "low": gain.low, "high": gain.high, "n": gain.n}
    return dict(sorted(found.items(), key=lambda item: list(CONDITIONS).index(item[0])))
