"""A plant of one state behind the event clock, against the theory of sampled loops with dead time.

    x' = -x + u,    a decision every h seconds, which takes effect d h seconds later and holds until the next one

Sampled, that is x[n + 1] = A x[n] + B u[n], A = exp(-h), B = 1 - A, exactly. With u[n + d] = -k x[n] it is stable where
all roots of z ** (d + 1) - A z ** d + B k lie within the unit circle. As h goes to 0, the first unstable d h goes to
the dead time that the continuous loop bears: arccos(-1 / k) / sqrt(k ** 2 - 1).

A Smith predictor (O. J. M. Smith, "Closer control of loops with dead time", Chemical Engineering Progress 53, 1957)
controls a model of the plant without dead time, corrected by how far the output is from the model's of d steps ago. If
the model is right, the output is that of the loop without dead time, d h later.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heron_env import (
    Continuous,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ScheduleConfig,
    SystemAgent,
    Vector,
    quantity,
    rule,
)

FAR: Final = 1e35
"""Nothing that is compared comes near."""
STEPS: Final = 320
"""Of a proportional loop; a quarter of them has a peak."""
GAINS: Final = (1.5, 2.0, 3.0, 4.0)
STEP: Final = 0.05
"""Between two decisions of the loops below, s."""
DEAD: Final = 10
"""Steps that their effects are late."""
KP: Final = 2.0
KI: Final = 3.0
"""Of a PI controller, KI per second."""
Floats = NDArray[np.float64]


class Process(FeatureProvider):
    """Its output, and its input, which holds."""

    visibility = ("owner",)
    x: float = quantity(default=0.0, low=-FAR, high=FAR)
    u: float = quantity(default=0.0, low=-FAR, high=FAR, observed=False)


class Controller(FieldAgent):
    """It sees the output and sets the input; its reward is the output, so that a run keeps it."""

    features = (Process,)
    action = Continuous(-FAR, FAR)

    @staticmethod
    @rule(writes=Process.u)
    def apply_action(process: Process, action: Vector) -> float:
        return action[0]

    @staticmethod
    @rule(writes=Process.x)
    def advance(process: Process, dt: float) -> float:
        return math.exp(-dt) * process.x + (1.0 - math.exp(-dt)) * process.u

    @staticmethod
    @rule
    def compute_local_reward(process: Process) -> float:
        return process.x


@cache
def _plant(h: float, steps: int, start: float) -> HeronEnv:
    tree = SystemAgent("system", Controller("controller", Process(x=start)))
    return HeronEnv(tree, dt=h, max_steps=steps, compile=False)


def course(
    decide: Callable[[Any], Any], schedule: ScheduleConfig, *, h: float, steps: int, start: float = 0.0
) -> Floats:
    """The output at h, 2 h, ... of a run that `decide` controls over that network; at 0 it is `start`."""
    env = _plant(h, steps, start)
    result = env.run_event_driven(
        {"controller": decide}, seed=0, schedule={"controller": schedule}, record=("rewards",)
    )
    return np.array([value for _, value in result.rewards["controller"]])


def expected_growth(gain: float, d: int, h: float) -> float:
    """By what factor the proportional loop grows within a step: the modulus of the greatest root."""
    decay = math.exp(-h)
    roots = np.roots(
        [1.0, -decay, *[0.0] * (d - 1), (1.0 - decay) * gain] if d else [1.0, (1.0 - decay) * gain - decay]
    )
    return float(np.abs(roots).max())


def growth(gain: float, d: int, h: float) -> float:
    """The same of its run behind the event clock: of the peaks in its second and last quarter."""
    schedule = ScheduleConfig(act_delay=d * h)
    x = np.abs(course(lambda seen: [-gain * seen[0]], schedule, h=h, steps=STEPS, start=1.0))
    _, early, _, late = x.reshape(4, -1).max(axis=1)
    return float((late / early) ** (2.0 / STEPS))


def first_unstable(gain: float, h: float, growth: Callable[[float, int, float], float]) -> int:
    """The least d with which the loop grows."""
    return next(d for d in count() if growth(gain, d, h) > 1.0)


def edge(d: int, h: float) -> float:
    """The gain from which on the loop is unstable d steps late, by bisection."""
    low, high = 1.0, 2.0 / (1.0 - math.exp(-h))
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if expected_growth(middle, d, h) > 1.0 else (middle, high)
    return high


def dead_time(gain: float) -> float:
    """What the continuous loop bears, s."""
    return math.acos(-1.0 / gain) / math.sqrt(gain * gain - 1.0)


class PI:
    """Proportional and integral control of the output to 1, a decision every STEP."""

    def __init__(self) -> None:
        self.sum = 0.0

    def __call__(self, seen: Any) -> list[float]:
        """The input for an output `[1]`."""
        error = 1.0 - float(seen[0])
        self.sum += error * STEP
        return [KP * error + KI * self.sum]


class SmithPredictor(PI):
    """The same for a plant that is d steps late."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.model = deque([0.0] * (d + 1), maxlen=d + 1)
        """Outputs of the model without dead time, from d steps ago to now."""

    def __call__(self, seen: Any) -> list[float]:
        """The input for an output `[1]`."""
        correction = float(seen[0]) - float(np.float32(self.model[0]))
        (u,) = super().__call__([self.model[-1] + correction])
        self.model.append(math.exp(-STEP) * self.model[-1] + (1.0 - math.exp(-STEP)) * u)
        return [u]
