# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Watch a negotiation
#
# Three clusters colour a graph so that no edge has equal ends. Each knows its own nodes, the edges at them, and what it
# is told of the nodes next to its own. Here we watch them: what they do, believe and write, what a late message does to
# that, and how a lie is stopped. `docs/graph_coloring.md` has the rest.

# %%
# %matplotlib inline
# %config InlineBackend.figure_formats = ["png"]
from collections.abc import Mapping, Sequence
from math import cos, pi, sin
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import heron_env
from heron_env import ScheduleConfig
from heron_env.dcop.cluster import ClusterAgent, StepReport
from heron_env.lab import figure_style
from heron_env.worlds.graph_coloring import g15, solve

INK = {"red": figure_style.VERMILION, "green": figure_style.GREEN, "blue": figure_style.BLUE}
problem = g15()
found = solve(problem, "elimination")
print(len(problem.nodes), "nodes,", len(problem.edges), "edges; conflicts left by the exact solver:", found.conflicts)


# %%
def drawn(colours: Mapping[str, str]) -> Figure:
    """The study's graph: a ring for each cluster."""
    centre = {"Agent1": (-2.6, 0.0), "Human": (0.0, 0.0), "Agent2": (2.6, 0.0)}
    first = {
        "Agent1": (-0.1, 0.4),
        "Human": (0.7, -0.4),
        "Agent2": (1.3, -0.4),
    }  # half turns: begin, and on to the next
    at = {
        node: (x + cos(pi * (first[name][0] + i * first[name][1])), y + sin(pi * (first[name][0] + i * first[name][1])))
        for name, (x, y) in centre.items()
        for i, node in enumerate(problem.clusters[name])
    }
    figure = Figure(figsize=(6.4, 2.5), layout="constrained")
    axes: Any = figure.subplots()
    for u, v in problem.edges:
        across = problem.owner(u) != problem.owner(v)
        axes.plot(*zip(at[u], at[v], strict=True), color=figure_style.GREY, lw=1.2, ls=":" if across else "-", zorder=1)
    for node, (x, y) in at.items():
        axes.scatter(x, y, s=430, color=INK[colours[node]], edgecolors=figure_style.INK, linewidths=0.8, zorder=2)
        axes.text(x, y, f"{node}\n{colours[node][0].upper()}", color="white", ha="center", va="center", fontsize=7.5,
                  fontweight="bold", linespacing=0.95, zorder=3)  # fmt: skip
    for name, (x, y) in centre.items():
        axes.text(x, y + 1.35, name, ha="center", fontsize=10)
    axes.set(aspect="equal", xlim=(-4.0, 4.0), ylim=(-1.3, 1.65))
    axes.axis("off")
    return figure


with figure_style.house_style():
    figure = drawn(found.assignment)
figure

# %% [markdown]
# ## Greedy beside snap
#
# The process of the specification searches greedily from scratch in every step, and *snaps* to its best response if
# nothing changed and much is gained. Told once that h1 and h4 are green, Agent1 never comes to rest: greedy undoes
# every snap. The stable process, our default, moves only to what is strictly better. Each cell is a colour that a node
# took; a dot in its corner is what greedy wanted instead, ✓ a step after which the agent was satisfied.


# %%
def strip(
    axes: Any, rows: Sequence[str], cells: Mapping[tuple[str, float], str], *, width: float = 1.0,
    wanted: Mapping[tuple[str, float], str] | None = None, wrong: Sequence[tuple[str, float]] = (),
) -> None:  # fmt: skip
    """Cells (row, time) in their colours; dots where something else was wanted, crosses where a belief is wrong."""
    height = {row: len(rows) - i - 0.35 * row.startswith("told") for i, row in enumerate(rows)}
    for (row, time), colour in cells.items():
        axes.add_patch(Rectangle((time, height[row] - 0.45), 0.94 * width, 0.9, color=INK[colour], lw=0))
        mark = "✕" if (row, time) in wrong else colour[0].upper()
        axes.text(time + 0.47 * width, height[row] - 0.04, mark, color="white", ha="center", va="center", fontsize=7,
                  fontweight="bold")  # fmt: skip
        other = (wanted or {}).get((row, time), colour)
        if other != colour:
            axes.scatter(time + 0.8 * width, height[row] + 0.27, s=16, color=INK[other], edgecolors="white",
                         linewidths=0.8, zorder=3)  # fmt: skip
    axes.set_yticks(list(height.values()), list(height))
    axes.set_ylim(0.0, len(rows) + 1.1)
    axes.tick_params(length=0)
    axes.grid(False)
    for side in axes.spines.values():
        side.set_visible(False)


def steps(process: Any, count: int = 12) -> list[StepReport]:
    agent = ClusterAgent(problem, "Agent1", process=process)
    agent.receive("h1 is green and h4 is green.", sender="Human")
    return [agent.step() for _ in range(count)]


with figure_style.house_style():
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    for axes, process in zip(figure.subplots(2, 1, sharex=True), ("seed", "stable"), strict=True):
        reports = steps(process)
        cells = {(n, float(r.step)): c for r in reports for n, c in r.assignments.items()}
        greedy = {(n, float(r.step)): c for r in reports for n, c in r.greedy.items()}
        strip(axes, problem.clusters["Agent1"], cells, wanted=greedy)
        for report in reports:
            word = ("snap " if report.snapped else "") + ("✓" if report.satisfied else "")
            axes.text(report.step + 0.47, 5.62, word, ha="center", va="bottom", fontsize=7.5)
        axes.set_title(f"{process} process", loc="left", pad=14)
        axes.set(xlim=(0, len(reports)), xticks=np.arange(len(reports)) + 0.47, xticklabels=range(len(reports)))
    axes.set_xlabel("step")
figure

# %% [markdown]
# Each choice is explained: why the node has its colour, and what every colour would have cost.

# %%
last = steps("seed", 4)[-1]
print(last.snap_reason)
{node: (choice.reason, dict(choice.penalties)) for node, choice in last.nodes.items()}

# %% [markdown]
# ## A negotiation, with letters
#
# In `heron/GraphColoring-v0` neighbouring clusters take turns of 1 s. The nodes' colours are told by the network;
# beside them the clusters write letters, here in the mode `LLM_U`: what each colouring of *your* nodes would cost *me*.
# The words are templates'; a language model may put the same facts into other words.

# %%
from dataclasses import dataclass

from heron_env import Answer
from heron_env.worlds.graph_coloring.agents import Judge
from heron_env.worlds.graph_coloring.talking import Talking, talking


@dataclass
class Moment:
    """When a cluster decided, s, what it was told, which of that was wrong, what it did, what it wrote."""

    time: float
    told: dict[str, str]
    wrong: list[str]
    report: StepReport
    letters: tuple[Any, ...]


class Watched:
    """Plays a cluster as it is, and keeps its moments. Only we, who watch, see the truth."""

    def __init__(self, policy: Talking) -> None:
        self.policy, self.seen = policy, list[Moment]()

    def begin(self, seed: int, episode: int) -> None:
        self.policy.begin(seed, episode)
        self.seen.clear()

    def answer(self, asked: Any) -> Answer:
        answer, process = self.policy.answer(asked), self.policy.process
        sight, truth = process.shape.read(process.part, asked.vector), env.world[Judge].Graph.colours[0]
        wrong = [node for node, colour in sight.told.items()
                 if problem.domain[int(truth[problem.nodes.index(node)])] != colour]  # fmt: skip
        self.seen.append(Moment(sight.time, sight.told, wrong, process.report, answer.letters))
        return answer


def watched(seconds: float, seed: int = 0, **network: Any) -> dict[str, Watched]:
    room = {name: Watched(policy) for name, policy in talking(env, mode="LLM_U", human=None).items()}
    env.run_event_driven(room, t_end=seconds, seed=seed, schedule=ScheduleConfig(**network))
    return room


env = heron_env.make("heron/GraphColoring-v0")
room = watched(60.0)
written = [(moment.time, letter) for one in room.values() for moment in one.seen for letter in moment.letters]
for time, letter in sorted(written, key=lambda pair: pair[0])[:6]:
    print(f"{time:2.0f} s {letter.sender} to {letter.receiver}: {letter.body['text']}")

# %% [markdown]
# Cluster by cluster, at the moments when it decides: the colours that it gives its nodes, and below them what it was
# told of its neighbours'. A cross is a belief that is wrong at that moment; ✉ it writes, ✓ it is satisfied. Without
# delay every belief is true, and all agree within seconds.


# %%
def negotiation(room: Mapping[str, Watched], until: float) -> Figure:
    figure = Figure(figsize=(6.4, 5.6), layout="constrained")
    parts = figure.subplots(3, 1, sharex=True, height_ratios=[9, 7, 7])
    for axes, one in zip(parts, room.values(), strict=True):
        part, cells, wrong = one.policy.part, dict[tuple[str, float], str](), list[tuple[str, float]]()
        for moment in one.seen:
            time = moment.time
            cells |= {(node, time): colour for node, colour in moment.report.assignments.items()}
            cells |= {(f"told {node}", time): colour for node, colour in moment.told.items()}
            wrong += [(f"told {node}", time) for node in moment.wrong]
            marks = "✉" * bool(moment.letters) + "✓" * moment.report.satisfied
            axes.text(
                time + 0.94, len(part.nodes) + len(part.owners) + 0.62, marks, ha="center", va="bottom", fontsize=8
            )
        strip(axes, [*part.nodes, *(f"told {node}" for node in part.owners)], cells, width=2.0, wrong=wrong)
        axes.set_title(part.cluster, loc="left", pad=13)
        axes.set_xlim(0, until)
    axes.set_xlabel("s")
    return figure


with figure_style.house_style():
    figure = negotiation(room, 8.0)
print("agreed after", env.kpis()["rounds"], "s")
figure

# %% [markdown]
# ## Delay breaks consensus
#
# The same agents, seed and graph; a message takes 2.5 s on each of its legs. Everybody decides by what was: both ends
# of an edge leave the same colour for the same other one, and go back. Clusters are satisfied with what they believe;
# where all three are while a conflict exists, the consensus is false.

# %%
room = watched(36.0, msg_delay=2.5)
figures = env.kpis()
with figure_style.house_style():
    figure = negotiation(room, 37.0)
print({name: figures[name] for name in ("consensus", "false_consensus", "oscillations", "recolourings")})
figure

# %% [markdown]
# How often, and how late? Twelve seeds for each delay, 120 s each, with the stable process; bars are 95 % intervals
# (Wilson's). `training/coloring` has a hundred seeds, loss, and the remedies.


# %%
def share(delay: float, seeds: int = 12) -> tuple[float, float, float, float]:
    """Of seeds that reach consensus, its interval, and boundaries with a false one."""
    reached, false = 0.0, 0.0
    for seed in range(seeds):
        policies = env.benchmark().baselines(seed)["stable process"]
        env.run_event_driven(policies, t_end=120.0, seed=seed, schedule=ScheduleConfig(msg_delay=delay))
        reached, false = reached + env.kpis()["consensus"], false + env.kpis()["false_consensus"]
    p, z = reached / seeds, 1.96
    middle, half = p + z**2 / (2 * seeds), z * np.sqrt(p * (1 - p) / seeds + z**2 / (4 * seeds**2))
    return p, (middle - half) / (1 + z**2 / seeds), (middle + half) / (1 + z**2 / seeds), false / seeds


delays = [0.0, 1.7, 2.5, 3.5, 5.0]
curve = np.array([share(delay) for delay in delays])
with figure_style.house_style():
    figure = Figure(figsize=(6.4, 2.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    reach = np.clip(np.array([curve[:, 0] - curve[:, 1], curve[:, 2] - curve[:, 0]]), 0.0, None)
    left.errorbar(delays, 100 * curve[:, 0], 100 * reach, fmt="o-", color=figure_style.BLUE, capsize=3)
    left.set(xlabel="delay of a message, s", ylabel="runs with consensus, %", ylim=(0, 105))
    right.plot(delays, curve[:, 3], "o-", color=figure_style.VERMILION)
    right.set(xlabel="delay of a message, s", ylabel="boundaries of false consensus", ylim=(0, None))
figure

# %% [markdown]
# ## The verifier catches a lie
#
# What a cluster writes is held against the report of its own step, the table of what-ifs, and its ledger of offers. A
# sentence goes out only if it is understood and true: it denies by default.

# %%
from heron_env.worlds.graph_coloring.talking import Facts
from heron_env.worlds.graph_coloring.talking import verify

agent = ClusterAgent(problem, "Agent2")
agent.receive("h2 is red and h5 is green.", sender="Human")
report = agent.step()
facts = Facts("Human", agent.part, report, agent.utility_options("Human"))
print(dict(report.assignments), "penalty", report.penalty)
drafts = [
    "b2 is blue. I am satisfied.",
    "b2 is red. I am satisfied.",
    "My penalty is 10.",
    "b4 is green.",
    "I promise to set b2 to green.",
    "Believe me, everything is splendid over here!",
]
for draft in drafts:
    print(
        f"{draft:48} {'; '.join(f'{block.fault}: {block.what}' for block in verify(draft, facts).blocks) or 'goes out'}"
    )

# %% [markdown]
# A language model that lies: an endpoint on this machine, scripted, tells everybody that all is well. A draft that is
# false is refused, and so is the second one; then the template speaks. By the end all is well indeed, and what was a
# lie goes out. `lies_before` counts false claims of first drafts, `lies_after` those of letters that were sent.

# %%
import json
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from heron_env.worlds.graph_coloring.talking import Model


class Liar(BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        about = json.loads(asked["messages"][-1]["content"])
        node = next(iter(about["facts"].split()))
        said = json.dumps({"text": f"{node} is green. I have no conflicts, and I am satisfied.", "claims": []})
        body = json.dumps({"choices": [{"message": {"content": said}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Liar)
Thread(target=server.serve_forever, daemon=True).start()
with Model(f"http://127.0.0.1:{server.server_port}/v1/chat/completions", model="liar") as model:
    lied = talking(env, mode="LLM_F", human=None, model=model)
    env.run_synchronous(lied, seed=0)
server.shutdown()
server.server_close()
told = sum((policy.counts for policy in lied.values()), Counter[str]())
{name: told[name] for name in ("letters", "drafts", "templates", "lies_before", "lies_after")}
