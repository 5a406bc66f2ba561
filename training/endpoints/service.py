"""The service: killed in mid-episode and started again, its speed, who waits for whom, and its OpenAPI."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
from endpoint_kit import serving
from serve.service import ROOT, Service

from heron_env import make
from heron_env.injection import serve_policy
from training.bars import Bar, Found, Setting
from training.endpoints.fidelity import rule

GRID: dict[str, Any] = {"env": "heron/BatteryGrid-v0", "options": {"num_batteries": 3, "max_steps": 40}, "seed": 3}
ACTIONS = {"battery_1": [0.25], "battery_2": [-0.5]}
STEPS, SOON, REQUESTS = 300.0, 100.0, 45
"""Steps a second over one kept connection; ms of who does not wait; requests for one busy simulation."""
LARGE: dict[str, Any] = {"env": "heron/BatteryGrid-v0", "options": {"num_batteries": 300}}
"""Nearly the largest that may be built."""
SCHEMATHESIS = "SCHEMATHESIS"
"""The environment variable that names its command, where it is not on the path."""


def stepped(service: Service, at: str, steps: int) -> list[Any]:
    """Each of so many steps as it was answered."""
    told = []
    for _ in range(steps):
        status, answer = service.ask("POST", f"{at}/step", {"steps": 1, "actions": ACTIONS})
        if status != 200:
            raise RuntimeError(f"step answered {status}: {answer}")
        told.append(answer)
    return told


def here(steps: int) -> list[Any]:
    """The same in this process, without a service."""
    env, told = make(GRID["env"], **GRID["options"]), list[Any]()
    seen, _ = env.reset(seed=GRID["seed"])
    actions = {agent: np.array(action) for agent, action in ACTIONS.items()}
    for _ in range(steps):
        seen, rewards, *_ = env.step({**actions, "battery_3": rule(seen["battery_3"])})
        told.append({"observations": {name: each.tolist() for name, each in seen.items()}, "rewards": dict(rewards)})
    return told


def restart(setting: Setting) -> Found:
    """One course without a kill, one killed after each of several steps; `battery_3` is played by an endpoint."""
    steps, kills = 12, (5,) if setting.quick else (1, 5, 6, 11)
    fresh = make(GRID["env"], **GRID["options"])
    wrong = []
    with serve_policy(rule, fresh) as server:
        injection = {"agent_id": "battery_3", "endpoint_url": server.url}
        courses = []
        for number, when in enumerate([(), kills]):
            folder = setting.scratch / f"shelf-{number}"
            service = Service(folder, "--allow-loopback").__enter__()
            _, made = service.ask("POST", "/simulations", GRID)
            at = f"/simulations/{made['id']}"
            service.ask("POST", f"{at}/inject-agent", injection)
            course: list[Any] = []
            for step in range(steps):
                course += stepped(service, at, 1)
                if step + 1 in when:
                    asked_before = server.served.requests
                    service.kill()
                    service = Service(folder, "--allow-loopback").__enter__()
                    if service.ask("GET", at)[1]["observations"] != course[-1]["observations"]:
                        wrong.append(f"after the kill at {step + 1} it stands elsewhere")
                    if server.served.requests != asked_before:
                        wrong.append(f"after the kill at {step + 1} the endpoint was asked again")
            service.__exit__()
            courses.append(course)
    if courses[0] != courses[1]:
        wrong.append("the courses differ")
    alone = here(steps)
    if [{k: one[k] for k in ("observations", "rewards")} for one in courses[0]] != alone:
        wrong.append("the service's course is not that in process")
    words = f"{steps} steps, killed after steps {', '.join(map(str, kills))}: "
    return Found(words + ("the same steps, bit for bit" if not wrong else "; ".join(wrong)), not wrong)


@contextmanager
def running(setting: Setting, root: Path, folder: str) -> Iterator[Service]:
    """The service of the checkout at `root`."""
    at = setting.scratch / folder
    shutil.rmtree(at, ignore_errors=True)
    with Service(at, "--allow-loopback", PYTHONPATH=str(root), PYTHONSAFEPATH="1") as service:
        service.ask("GET", "/simulations")
        yield service


def checkouts(setting: Setting) -> dict[str, Path]:
    """This one, and the one before if it has a service."""
    before = setting.before
    return ({"before": before} if before is not None and (before / "heron_env/serve").is_dir() else {}) | {"now": ROOT}


def rate(service: Service, steps: int) -> float:
    """Steps a second of a BatteryGrid over one connection that is kept."""
    _, made = service.ask("POST", "/simulations", {**GRID, "options": {"num_batteries": 3, "max_steps": 10**6}})
    connection = http.client.HTTPConnection(service.url.removeprefix("http://"))
    body, headers = json.dumps({"actions": ACTIONS}), {"Content-Type": "application/json"}
    began = 0.0
    for number in range(-20, steps):
        if number == 0:
            began = time.perf_counter()
        connection.request("POST", f"/simulations/{made['id']}/step", body, headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"step answered {answer.status}: {answer.read()!r}")
        answer.read()
    return steps / (time.perf_counter() - began)


def speed(setting: Setting) -> Found:
    """In turns with the service as it was before; the client's own work is in it."""
    turns, steps = (2, 50) if setting.quick else (7, 300)
    found: dict[str, list[float]] = {name: [] for name in checkouts(setting)}
    for turn in range(turns):
        for name, root in checkouts(setting).items():
            with running(setting, root, f"speed-{name}-{turn}") as service:
                found[name].append(rate(service, steps))
    medians = {name: statistics.median(rates) for name, rates in found.items()}
    words = ", ".join(f"{name} {median:,.0f} steps/s" for name, median in medians.items())
    return Found(f"{words}, median of {turns} turns", medians["now"] >= STEPS, {"steps_per_s": found})


def waits(service: Service, times: int) -> dict[str, float]:
    """The longest that each of those took who should not wait, ms: with many requests for simulation 1, which is busy
    since its endpoint is silent, and with a large environment being built beside.
    """
    go, came = Event(), Event()

    def silent(body: dict[str, Any]) -> dict[str, Any]:
        if "probe" not in body:
            came.set()
            go.wait(60.0)
        return {"action": [0.0]}

    with serving(silent) as endpoint, ThreadPoolExecutor(REQUESTS + 1) as pool:
        for _ in range(2):
            service.ask("POST", "/simulations", GRID)
        injection = {"agent_id": "battery_3", "endpoint_url": endpoint.url}
        service.ask("POST", "/simulations/1/inject-agent", injection)
        service.ask("POST", "/simulations/1/inject-agent/battery_3/health-check")  # imports what it needs
        asks: dict[str, Callable[[], Any]] = {
            "list": lambda: service.ask("GET", "/simulations"),
            "show": lambda: service.ask("GET", "/simulations/1"),
            "health-check": lambda: service.ask("POST", "/simulations/1/inject-agent/battery_3/health-check"),
            "step of another": lambda: service.ask("POST", "/simulations/2/step"),
        }
        asks["step of another"]()  # the first looks up what is compiled
        stepping = [pool.submit(service.ask, "POST", "/simulations/1/step") for _ in range(REQUESTS)]
        came.wait(60.0)
        time.sleep(0.5)  # all of them have been sent
        longest = {name: longest_of(ask, times) for name, ask in asks.items()}
        building = pool.submit(service.ask, "POST", "/simulations", LARGE)
        during = 0.0
        while not building.done():
            during = max(during, longest_of(asks["step of another"], 1))
        go.set()
        answers = Counter(done.result()[0] for done in stepping)
    return {**longest, "step of another, beside a build": during, **{f"answered {k}": v for k, v in answers.items()}}


def longest_of(ask: Callable[[], Any], times: int) -> float:
    """ms."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        ask()
        took.append(1e3 * (time.perf_counter() - began))
    return max(took)


def busy(setting: Setting) -> Found:
    """In turns with the service as it was before."""
    turns = 1 if setting.quick else 3
    found: dict[str, list[dict[str, float]]] = {name: [] for name in checkouts(setting)}
    for turn in range(turns):
        for name, root in checkouts(setting).items():
            with running(setting, root, f"busy-{name}-{turn}") as service:
                found[name].append(waits(service, 1 if name == "before" else 20))
    names = [name for name in found["now"][0] if not name.startswith("answered")]
    worst = {which: {name: max(one[name] for one in each) for name in names} for which, each in found.items()}
    words = "; ".join(
        f"{which}: " + ", ".join(f"{name} {ms:,.0f} ms" for name, ms in each.items()) for which, each in worst.items()
    )
    met = all(ms <= SOON for ms in worst["now"].values())
    return Found(f"the longest of {turns} turns, {words}", met, {"longest_ms": found})


def command() -> str | None:
    """Of schemathesis, if it is installed: beside this interpreter, on the path, or where SCHEMATHESIS says."""
    beside = Path(sys.executable).parent / "schemathesis"
    return os.environ.get(SCHEMATHESIS) or (str(beside) if beside.exists() else shutil.which("schemathesis"))


def openapi(setting: Setting) -> Found:
    """As .ci/run does."""
    found = command()
    if found is None:
        return Found(f"schemathesis is not installed (or name its command in {SCHEMATHESIS}); .ci/run runs it", None)
    script, examples = ROOT / "tests/serve/contract.py", "5" if setting.quick else "60"
    done = subprocess.run(
        [sys.executable, str(script), found, examples], capture_output=True, text=True, check=False, cwd=setting.scratch
    )
    told = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    cases = re.search(r"[\d,]+ generated.*", told)
    words = f"exit code {done.returncode}; {cases[0] if cases else 'no cases'}"
    return Found(words, done.returncode == 0 and cases is not None, {"log": told[-4000:]})


BARS = (
    Bar("restart", "heron serve killed (-9) in mid-episode and started again", "same next step, bit for bit", restart),
    Bar("steps", "steps of BatteryGrid over one kept connection to heron serve", ">= 300 steps/s", speed),
    Bar(
        "busy", f"{REQUESTS} requests for a busy simulation: list, show, health-check, a step of another; one beside "
        "the building of 300 batteries that see each other", "<= 100 ms", busy,
    ),
    Bar("openapi", "schemathesis on the OpenAPI (in .ci/run)", "clean", openapi),
)  # fmt: skip
