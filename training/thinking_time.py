"""Thinking time against return: an injected rule on EnergyManagement, whose answers take 0 to 4 control steps.

    pip install heron_env[agents,plots]
    python training/thinking_time.py      # three minutes; training/results/thinking_time/: thinking.json, thinking.svg

Answers wait in virtual time. An answer that takes no time must earn bit for bit what the rule earns in this process.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from heron_env import EpisodeResult, make
from heron_env.files import write_all
from heron_env.injection import ConcurrencyConfig, Endpoint, ExternalPolicy, Latency, serve_policy
from heron_env.lab import benchmark
from heron_env.lab.figure_style import BLUE, GREY, VERMILION, blank, end_labels, house_style, to_svg

ID, RULE = "heron/EnergyManagement-v1", "grid-friendly with zone feedback"
STEPS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
"""Mean thinking time, control steps."""
RATIO = 0.5
"""Of the standard deviation to the mean."""
DT = 300.0
"""Control step, s."""
UNCAPPED = ConcurrencyConfig(qps_cap=1_000_000)
NOTHING = "do nothing"
CASES = range(5)
OUT = Path("training/results/thinking_time")


def episode(mean: float, case: int, url: str | None) -> EpisodeResult:
    """A day in the event-driven clock; without an address the rule itself decides, in this process."""
    env = make(ID, dt=DT)
    policies: Any = benchmark.baselines(env, case)[RULE]
    external = None
    if url is not None:
        latency = Latency(mode="virtual", mean=mean * DT, ratio=RATIO)
        external = ExternalPolicy(Endpoint(url, latency=latency, concurrency=UNCAPPED), env=env, fallback="fail")
        policies = {"battery": external}
    result = env.run_event_driven(policies, seed=case)
    if external is not None:
        external.close()
    return result


def curve(cases: Sequence[int], means: Sequence[float]) -> list[dict[str, Any]]:
    """Return and busy count of each case at each mean."""
    points = []
    for mean in means:
        returns, busy, asked = [], [], []
        for case in cases:
            env = make(ID, dt=DT)
            rule = benchmark.baselines(env, case)[RULE]
            with serve_policy(rule, env) as server:
                result = episode(mean, case, server.url)
            returns.append(result.returns["system_agent"])
            busy.append(sum(result.busy.values()))
            asked.append(sum(map(len, result.origins.values())))
        points.append({"mean_steps": mean, "returns": returns, "busy": busy, "asked": asked})
    return points


def study() -> dict[str, Any]:
    """The curve, what doing nothing earns, and what the rule earns in this process."""
    return {
        "env": ID,
        "rule": RULE,
        "dt_s": DT,
        "ratio": RATIO,
        "cases": list(CASES),
        "points": curve(CASES, STEPS),
        "nothing": [still(case) for case in CASES],
        "in_process": [episode(0.0, case, None).returns["system_agent"] for case in CASES],
    }


def check(found: dict[str, Any]) -> None:
    """At no thinking time nothing is busy and the returns are those in process; the longer, the more is missed."""
    busy = [sum(point["busy"]) for point in found["points"]]
    assert found["points"][0]["returns"] == found["in_process"], "an injected rule earns something else"
    assert busy[0] == 0 and all(later > earlier for earlier, later in pairwise(busy)), busy


def still(case: int) -> float:
    """The return where no battery ever moves."""
    env = make(ID, dt=DT)
    return env.run_event_driven(benchmark.baselines(env, case)[NOTHING], seed=case).returns["system_agent"]


def figure(study: dict[str, Any]) -> Any:
    """Returns in one panel, observations that nobody could use in the other."""
    points = study["points"]
    means = [point["mean_steps"] for point in points]
    with house_style():
        drawn, (top, bottom) = blank(4.8, rows=2, sharex=True, height_ratios=[1.5, 1.0])
        for number in range(len(study["cases"])):
            top.plot(means, [point["returns"][number] for point in points], color=BLUE, linewidth=0.8, alpha=0.35)
        average = [statistics.mean(point["returns"]) for point in points]
        top.plot(means, average, color=BLUE, marker="o", markersize=4)
        level = statistics.mean(study["nothing"])
        top.axhline(level, color=GREY, linewidth=1.2, linestyle=(0, (5, 3)))
        end_labels(top, [(average[-1], "injected rule", BLUE), (level, "doing nothing", GREY)])
        shares = [100.0 * sum(p["busy"]) / (sum(p["busy"]) + sum(p["asked"])) for p in points]
        bottom.plot(means, shares, color=VERMILION, marker="o", markersize=4)
        bottom.set_ylim(bottom=0.0)
        top.set_ylabel("return of a day")
        bottom.set_ylabel("unused, %")
        bottom.set_xlabel("mean thinking time, control steps (5 minutes each)")
        top.set_title(f"A rule that thinks before it acts: mean of {len(study['cases'])} days, and each of them")
        bottom.set_title("Observations that came while it was thinking")
        return drawn


def main() -> None:
    """Run, check, keep."""
    found = study()
    check(found)
    write_all(
        {
            OUT / "thinking.json": json.dumps(found, indent=1) + "\n",
            OUT / "thinking.svg": to_svg(figure(found), text=True),
        }
    )
    for point in found["points"]:
        print(f"{point['mean_steps']:g} control steps: {statistics.mean(point['returns']):.2f} EUR a day")


if __name__ == "__main__":
    main()
