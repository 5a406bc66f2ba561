"""Thinking time against return: an injected rule on EnergyManagement, whose answers take 0 to 4 control steps."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from heron_env import EpisodeResult, make
from heron_env.files import write
from heron_env.injection import ConcurrencyConfig, Endpoint, ExternalPolicy, Latency, serve_policy
from heron_env.lab import benchmark
from heron_env.lab.figure_style import BLUE, GREY, VERMILION, blank, end_labels, house_style, to_svg
from training.bars import Bar, Found, Setting

ID, RULE = "heron/EnergyManagement-v1", "grid-friendly with zone feedback"
STEPS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
"""Mean thinking time, control steps."""
RATIO = 0.5
"""Of the standard deviation to the mean."""
DT = 300.0
"""Control step, s."""
UNCAPPED = ConcurrencyConfig(qps_cap=1_000_000)
NOTHING = "do nothing"


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


def thinking(setting: Setting) -> Found:
    """The curve; at no thinking time it begins where the rule in process is, with nothing busy."""
    cases, means = (range(1), STEPS[::4]) if setting.quick else (range(5), STEPS)
    points = curve(cases, means)
    here = [episode(0.0, case, None) for case in cases]
    own = [result.returns["system_agent"] for result in here]
    same = points[0]["returns"] == own
    nothing = [still(case) for case in cases]
    average = [statistics.mean(point["returns"]) for point in points]
    busy = [statistics.mean(point["busy"]) for point in points]
    grows = busy[0] == 0 and all(later > earlier for earlier, later in pairwise(busy))
    answers = all(sum(point["asked"]) > 0 for point in points)
    told = ", ".join(
        f"{point['mean_steps']:g} dt: {mean:.2f} ({count:.0f})"
        for point, mean, count in zip(points, average, busy, strict=True)
    )
    words = (
        f"return (busy count), means of {len(cases)} days: {told}; in process {statistics.mean(own):.2f}, "
        f"{'bit for bit' if same else 'NOT the same'}; doing nothing {statistics.mean(nothing):.2f}"
    )
    study = {
        "env": ID,
        "rule": RULE,
        "dt_s": DT,
        "ratio": RATIO,
        "cases": list(cases),
        "points": points,
        "nothing": nothing,
    }
    if setting.figures is not None:
        setting.figures.mkdir(parents=True, exist_ok=True)
        write(setting.figures / "thinking.svg", to_svg(figure(study)))
    return Found(words, same and grows and answers, study)


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


def redrawn(file: Any) -> bytes:
    """The figure of a bars.json that is there."""
    bars = json.loads(file.read_text(encoding="utf-8"))["bars"]
    return to_svg(figure(next(bar["figures"] for bar in bars if bar["name"] == "thinking")))


BARS = (
    Bar(
        "thinking", "thinking time 0 to 4 dt (virtual) on EnergyManagement, a rule injected",
        "curve of return, busy count", thinking,
    ),
)  # fmt: skip
