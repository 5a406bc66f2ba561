"""examples/serial_plant.py: a hub whose plant is behind a serial line, here a pseudo-terminal, and a node."""

import importlib.util
import os
import pty
import sys
import time
import tty
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from types import ModuleType

import pytest

from heron_env.errors import TraceError
from heron_env.real import Hub, new_secret, run_node

FILE = Path(__file__).resolve().parents[2] / "examples" / "serial_plant.py"
STEPS, SPEED = 12, 10.0


@pytest.fixture(scope="module")
def plant() -> ModuleType:
    spec = importlib.util.spec_from_file_location("serial_plant", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def port(plant: ModuleType) -> Iterator[str]:
    """A pseudo-terminal with the example's oven behind it."""
    near, far = pty.openpty()
    tty.setraw(far)
    oven = Thread(target=plant.device, args=(near,))
    oven.start()
    yield os.ttyname(far)
    os.close(far)
    oven.join(timeout=5.0)  # all far ends are closed, so that it ends
    os.close(near)
    assert not oven.is_alive()


def test_a_plant_on_a_serial_line_runs_with_a_node_and_is_repeated_from_its_answers(
    plant: ModuleType, port: str, tmp_path: Path
):
    secret, line = new_secret(tmp_path / "secret"), plant.Line(port)
    policies = {"*": plant.warm}
    with Hub(plant.oven(line, STEPS), {}, wait_for=["heater_1"], secret=secret) as hub:
        node = Thread(
            target=run_node, args=(plant.oven(), ["heater_1"], policies, hub.address), kwargs={"secret": secret}
        )
        node.start()
        run = hub.play(seed=0, speed=SPEED, tolerance=0.1)
    node.join(timeout=10.0)
    line.close()
    assert run.result.messages.sent > 0 and len(line.answers) > STEPS
    (temperatures,) = [[float(answer.removeprefix("T ")) for answer in line.answers]]
    assert temperatures[-1] > temperatures[0]  # it was heated

    def again(answers: list[str]) -> object:
        return plant.oven(plant.Answered(answers), STEPS).run_event_driven(policies, arrivals=run.arrivals)

    assert again(line.answers).same_course(run.result)
    with pytest.raises(TraceError, match="came out otherwise"):
        again([*line.answers[:-1], "T 99.00"])


def test_a_device_that_says_nothing_ends_the_run_with_its_port(plant: ModuleType):
    near, far = pty.openpty()
    line = plant.Line(os.ttyname(far), wait=0.05)
    begun = time.monotonic()
    with pytest.raises(TimeoutError, match=rf"{os.ttyname(far)}: no answer to 'P 0.000' within 0.05 s; is the device"):
        plant.oven(line).reset(seed=0)
    assert time.monotonic() - begun < 5.0
    line.close()
    os.close(near)
    os.close(far)
