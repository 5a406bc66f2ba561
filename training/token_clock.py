"""Tokens as time: a slow skilled and a fast crude "model", both scripts, at several token rates.

    python training/token_clock.py     # two minutes; training/results/token_clock.json, and the table of the docs

A model thinks tokens / rate seconds of virtual time, so nothing depends on the machine: each run gives the same file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heron_env import Answer, Asked, HeronEnv
from heron_env.core.policy import Policies, decide_with
from heron_env.files import write_all
from heron_env.lab import IDEAL, Sweep, benchmark
from heron_env.lab.policies import Baseline

RATES = (10.0, 30.0, 100.0, 300.0, 1000.0)
"""Tokens a second."""
MODELS = {
    "heron/GraphColoring-v0": {"skilled": ("stable process", 150), "crude": ("dsa", 15)},
    "heron/TrafficCorridor-v0": {"skilled": ("actuated", 300), "crude": ("fixed cycle", 30)},
}
"""The rule that a model follows, and its tokens an answer."""
CASES = 20
OUT = Path("training/results/token_clock.json")


class Scripted:
    """An AnsweringPolicy around one agent's rule."""

    def __init__(self, rule: Any, tokens: int, rate: float) -> None:
        self.rule, self.tokens, self.rate = rule, tokens, rate

    def begin(self, seed: int, episode: int) -> None:
        """An episode begins for the rule, too."""
        if hasattr(self.rule, "begin"):
            self.rule.begin(seed, episode)

    def answer(self, asked: Asked) -> Answer:
        """What the rule decides."""
        decide = decide_with(self.rule, lambda: lambda vector, turn: vector, lambda vector: asked.mask)
        action = decide(asked.vector, asked.turn, lambda: 0)
        return Answer(action, thinking=self.tokens / self.rate, tokens=self.tokens)


@dataclass(frozen=True)
class Model:
    """A PolicySpec: a `Scripted` around each agent's rule."""

    rule: str
    tokens: int
    rate: float

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """By agent."""
        rules = benchmark.by_agent(Baseline(self.rule).build(env, seed), env)
        return {agent: Scripted(rule, self.tokens, self.rate) for agent, rule in rules.items()}


def measured(env: str) -> dict[str, Any]:
    """Mean returns with 95 % intervals over the cases, the paired difference at each rate, and tokens an episode."""
    named = {f"{name} {rate:g}": Model(*model, rate) for name, model in MODELS[env].items() for rate in RATES}
    sweep = Sweep.of(env, {**named, "do nothing": "do nothing", "random": "random"}, [IDEAL], cases=CASES)
    result = sweep.run(processes=1, progress=False)
    points = {policy: result.point(policy, IDEAL) for policy in result.policies}
    ahead = {
        f"{rate:g}": result.intervals.mean(
            result.table(f"skilled {rate:g}", IDEAL) - result.table(f"crude {rate:g}", IDEAL)
        ).to_dict()
        for rate in RATES
    }
    return {
        "returns": {policy: point.mean.to_dict() for policy, point in points.items()},
        "skilled minus crude": ahead,
        "tokens": {policy: point.tokens for policy, point in points.items()},
    }


def text(estimate: dict[str, float]) -> str:
    """`-1.5 [-2.0, -1.0]`, without digits that say nothing."""
    value, low, high = (f"{estimate[name]:,.0f}" for name in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def main() -> None:
    """Run, keep, print."""
    found = {env: measured(env) for env in MODELS}
    write_all({OUT: json.dumps(found, indent=1) + "\n"})
    for env, of in found.items():
        returns = of["returns"]
        print(f"\n{env}: do nothing {text(returns['do nothing'])}, random {text(returns['random'])}")
        print("| tokens a second | skilled | crude | skilled minus crude |\n|---:|---:|---:|---:|")
        for rate in of["skilled minus crude"]:
            cells = (returns[f"skilled {rate}"], returns[f"crude {rate}"], of["skilled minus crude"][rate])
            print(f"| {rate} | {' | '.join(map(text, cells))} |")


if __name__ == "__main__":
    main()
