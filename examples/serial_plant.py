"""A plant behind a serial line: the hub reads and heats an oven, and a node decides (docs/how_to/two_hosts.md).

    python serial_plant.py device          # without hardware: an oven on a pseudo-terminal; prints its port
    python serial_plant.py hub /dev/pts/5 plant.secret
    heron real node heater_1 --hub 127.0.0.1:7400 --secret plant.secret --env serial_plant:oven \\
        --policy file:serial_plant.py:warm

The line's protocol, ASCII: "P 0.500" sets the power and is answered with the temperature, "T 21.34". No other library.
"""

import os
import pty
import select
import sys
import termios
import time
import tty

from heron_env import Continuous, FeatureProvider, FieldAgent, HeronEnv, SystemAgent, Vector, World, quantity, rule

TARGET = 60.0
"""Degrees Celsius."""


class Line:
    """A serial port in raw mode at 9,600 baud; a question is answered within `wait` s.

    Attributes:
        answers: all so far, to run the same episode again without the plant: `Answered(line.answers)`.
    """

    def __init__(self, port: str, wait: float = 0.5) -> None:
        self.port, self.wait, self.answers = port, wait, list[str]()
        self._file = os.open(port, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self._file)
        settings = termios.tcgetattr(self._file)
        settings[4] = settings[5] = termios.B9600
        termios.tcsetattr(self._file, termios.TCSAFLUSH, settings)  # drops what came before, too

    def ask(self, question: str) -> str:
        """Send a line, and return the line that comes back. Raises TimeoutError."""
        os.write(self._file, question.encode("ascii") + b"\n")
        answer, end = b"", time.monotonic() + self.wait
        while not answer.endswith(b"\n"):
            if not select.select([self._file], [], [], max(end - time.monotonic(), 0.0))[0]:
                raise TimeoutError(f"{self.port}: no answer to {question!r} within {self.wait:g} s; is the device on?")
            answer += os.read(self._file, 64)
        self.answers.append(answer.decode("ascii").strip())
        return self.answers[-1]

    def close(self) -> None:
        """Let the port go."""
        os.close(self._file)


class Answered:
    """Stands for a line whose answers are recorded."""

    def __init__(self, answers: list[str]) -> None:
        self._left = iter(answers)

    def ask(self, question: str) -> str:
        """The next answer."""
        return next(self._left)


class Heat(FeatureProvider):
    """What the oven's sensor says, and the power of its heater."""

    temperature: float = quantity(default=20.0, low=-50.0, high=500.0, unit="degC")
    power: float = quantity(default=0.0, low=0.0, high=1.0, unit="1")


class Heater(FieldAgent):
    """Heats one oven to 60 degrees."""

    features = (Heat,)
    action = Continuous(0.0, 1.0)

    @staticmethod
    @rule(writes=Heat.power)
    def apply_action(heat: Heat, action: Vector) -> float:
        """The power is what was decided."""
        return action[0]

    @staticmethod
    @rule
    def compute_local_reward(heat: Heat) -> float:
        """Minus the distance to the target."""
        return -abs(heat.temperature - TARGET)


class Oven(HeronEnv):
    """The oven behind `line`; a node, which moves no plant, has none."""

    dt = 0.5
    line: Line | Answered | None = None

    def begin(self, world: World) -> None:
        """The heater is off, and the sensor is read."""
        self._exchange(world)

    def advance(self, world: World, dt: float) -> None:
        """Set the power, read the temperature: the hardware has moved by itself since the last time."""
        self._exchange(world)

    def _exchange(self, world: World) -> None:
        if self.line is not None:
            heat = world[Heater].Heat
            answer = self.line.ask(f"P {heat.power[0]:.3f}")
            heat.temperature[...] = float(answer.removeprefix("T "))


def oven(line: Line | Answered | None = None, max_steps: int = 40) -> Oven:
    """The environment, for the hub with its line, for a node without."""
    env = Oven(SystemAgent("system_agent", Heater("heater_1")), max_steps=max_steps)
    env.line = line
    return env


def warm(observation):
    """A policy: heat while it is colder than the target."""
    return [float(observation[0] < TARGET)]


def device(file: int) -> None:
    """An oven in place of hardware, at the far end of a pseudo-terminal, until that is closed."""
    temperature, power, before, text = 20.0, 0.0, time.monotonic(), b""
    while True:
        try:
            text += os.read(file, 64)
        except OSError:
            return  # closed
        while b"\n" in text:
            line, _, text = text.partition(b"\n")
            now = time.monotonic()
            temperature += (now - before) * (8.0 * power - 0.05 * (temperature - 20.0))
            power, before = float(line.removeprefix(b"P ")), now
            os.write(file, f"T {temperature:.2f}\n".encode("ascii"))


def serve(port: str, secret: str, listen: str = "127.0.0.1:7400") -> None:
    """The hub: play one episode, and repeat it from its record with the recorded answers of the line."""
    from heron_env.real import Hub

    line = Line(port)
    with Hub(oven(line), {}, wait_for=["heater_1"], listen=listen, secret=secret) as hub:
        print(f"listening at {hub.address}", flush=True)
        run = hub.play(seed=0)
    line.ask("P 0.000")  # off
    line.close()
    again = oven(Answered(line.answers)).run_event_driven(run.arrivals.policies(), arrivals=run.arrivals)
    print(f"return {run.result.returns['heater_1']:.2f}, repeated {again.returns['heater_1']:.2f}; {line.answers[-2]}")


if __name__ == "__main__":
    if sys.argv[1] == "device":
        near, far = pty.openpty()
        tty.setraw(far)
        print(os.ttyname(far), flush=True)
        device(near)
    else:
        serve(*sys.argv[2:])
