"""The service: killed in mid-episode and started again; what its OpenAPI allows and forbids, asked by schemathesis."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from serve.service import ROOT, Service

from heron_env import make
from heron_env.injection import serve_policy
from training.bars import Bar, Found, Setting
from training.endpoints.fidelity import rule

GRID: dict[str, Any] = {"env": "heron/BatteryGrid-v0", "options": {"num_batteries": 3, "max_steps": 40}, "seed": 3}
ACTIONS = {"battery_1": [0.25], "battery_2": [-0.5]}
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
    Bar("openapi", "schemathesis on the OpenAPI (in .ci/run)", "clean", openapi),
)
