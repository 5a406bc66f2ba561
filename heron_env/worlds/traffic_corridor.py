"""`heron/TrafficCorridor-v0`: signals along an arterial road; minimum green is a mask, a coordinator sets offsets.

STM: Signal Timing Manual, 2nd ed. (NCHRP report 812, 2015). HCM: Highway Capacity Manual, 7th ed. (TRB, 2022).

In PettingZoo's names: `parallel_env(**options)` is the environment, `env` and `raw_env` its agent-by-agent form; all
take the options of `traffic_corridor`, and `max_cycles` for max_steps.
"""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heron_env.agents.agent import CoordinatorAgent, FieldAgent, SystemAgent
from heron_env.core.action import Discrete, Vector
from heron_env.core.feature import FeatureProvider, quantity
from heron_env.core.policy import Policies
from heron_env.core.rule import rule
from heron_env.core.world import World
from heron_env.envs.base import HeronEnv
from heron_env.envs.description import Benchmark
from heron_env.given import require_count
from heron_env.registry import make, make_aec

CLEARANCE = 4.0  # yellow and all-red before a green, s, in which nobody leaves (STM: 3 to 6 s and about 1 s)
MIN_GREEN = 10.0  # s (STM: 7 to 15 s on arterials)
CYCLE = 60.0  # s: about Webster's (1.5 L + 5) / (1 - Y) with L = 8 s lost in it and flow ratios Y of 0.7 together
SEGMENTS = 4  # of each approach; vehicles pass on at a rate, so that platoons disperse
SPEEDS = (7.5, 10.0, 15.0, 20.0)  # of progression, m/s
PHASE, ELAPSED, CLOCK, QUEUES = range(4)  # places in an intersection's vector; the side street's queue comes next
SHARE, MAX_GREEN, GONE = 0.6, 60.0, 0.5  # of the cycle for the arterial (Webster 1958), s, vehicles of a short queue
SATURATION = 0.5  # saturation flow of a lane, veh/s (1,800 veh/h; HCM: 1,900 passenger cars per hour at best)
SPACING, SPEED = 300.0, 15.0  # m between stop lines, free-flow speed in m/s
MAIN, SIDE = 0.2, 0.12  # mean demand of the arterial and of each side street, veh/s
LEAVING, JOINING = 0.15, 0.25  # shares of the arterial that turn off, and of a side street that turn into it
COUNTED = 5.0  # arrivals are Poisson counts of so many seconds


class Signal(FeatureProvider):
    """Phase 0 is the arterial's, 1 the side street's. `elapsed` counts from its choice, clearance first; `clock` is
    where the intersection is in the common cycle, its offset taken off.
    """

    visibility = ("owner", "upper_level")
    phase: int = quantity(default=0, low=0, high=1)
    elapsed: float = quantity(default=0.0, low=0.0, high=3600.0, unit="s")
    clock: float = quantity(default=0.0, low=0.0, high=CYCLE, unit="s")


class Traffic(FeatureProvider):
    """Queues at the stop lines, and vehicles on the segments of the arterial's approach, the last one nearest."""

    visibility = ("owner", "upper_level")
    main: float = quantity(default=0.0, low=0.0, high=1000.0, unit="veh")
    side: float = quantity(default=0.0, low=0.0, high=1000.0, unit="veh")
    approach: np.ndarray = quantity(default=(0.0,) * SEGMENTS, shape=(SEGMENTS,), low=0.0, high=1000.0, unit="veh")


class Hidden(FeatureProvider):
    """What comes in this step, by the side street and, at the first one, the arterial; the delay of the step."""

    main: float = quantity(default=0.0, low=0.0, high=10.0, unit="veh/s", observed=False)
    side: float = quantity(default=0.0, low=0.0, high=10.0, unit="veh/s", observed=False)
    delay: float = quantity(default=0.0, low=0.0, high=1e6, unit="veh s", per_step=True, observed=False)


class Progression(FeatureProvider):
    """How fast green moves along the corridor: an intersection's offset is its distance by this speed."""

    visibility = ("owner", "subordinates")
    speed: float = quantity(default=15.0, low=SPEEDS[0], high=SPEEDS[-1], unit="m/s")


class Intersection(FieldAgent):
    """Keeps its phase (0), or goes to the other one (1) once green has lasted its minimum."""

    features = (Signal, Traffic, Hidden)
    action = Discrete(2)

    @staticmethod
    @rule
    def action_mask(signal: Signal) -> tuple[bool, bool]:
        return True, signal.elapsed >= CLEARANCE + MIN_GREEN

    @staticmethod
    @rule(writes=(Signal.phase, Signal.elapsed))
    def apply_action(signal: Signal, action: Vector) -> Any:
        return (1 - signal.phase, 0.0) if action[0] == 1.0 else (signal.phase, signal.elapsed)

    @staticmethod
    @rule(writes=Signal.elapsed)
    def advance(signal: Signal, dt: float) -> float:
        return signal.elapsed + dt

    @staticmethod
    @rule
    def compute_local_reward(hidden: Hidden) -> float:
        """Minus the delay, vehicle-minutes."""
        return -hidden.delay / 60.0


class Corridor(CoordinatorAgent):
    """Keeps the speed of progression (0), or sets one of SPEEDS (1, 2, ...), and by it all offsets."""

    features = (Progression,)
    action = Discrete(1 + len(SPEEDS))

    @staticmethod
    @rule(writes=Progression.speed)
    def apply_action(progression: Progression, action: Vector) -> float:
        return SPEEDS[int(action[0]) - 1] if action[0] > 0.0 else progression.speed


def fixed_cycle(vector: NDArray[np.float32]) -> int:
    """The arterial's green, then the side street's, by the common cycle alone: 1 where the other phase is due."""
    return int((vector[CLOCK] >= SHARE * CYCLE) != vector[PHASE])


def actuated(vector: NDArray[np.float32], mask: Any = None) -> int:
    """1 where the queue of the green has gone, or this has lasted its maximum, and somebody waits for the other."""
    phase = int(vector[PHASE])
    done = vector[QUEUES + phase] < GONE or vector[ELAPSED] >= MAX_GREEN
    return int(done and vector[QUEUES + 1 - phase] >= GONE and (mask is None or mask[1] == 1))


class GreenWave:
    """The coordinator's: green moves at 15 m/s, the free-flow speed."""

    def forward(self, vector: NDArray[np.float32]) -> int:
        """That speed's number, whatever it sees."""
        return 1 + SPEEDS.index(15.0)

    def forward_batch(self, vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        """The same `[n, 1]` of `[n, d]`."""
        return np.full((len(vectors), 1), self.forward(vectors), dtype=np.float64)


green_wave = GreenWave()


class Day(FeatureProvider):
    """The episode's demands as shares of the mean, and what became of it; nobody sees it."""

    visibility = ()
    main: float = quantity(default=1.0, low=0.0, high=3.0)
    side: float = quantity(default=1.0, low=0.0, high=3.0)
    served: float = quantity(default=0.0, low=0.0, high=1e9, unit="veh")
    delay: float = quantity(default=0.0, low=0.0, high=1e9, unit="veh s")


def poisson(u: float, mean: float) -> float:
    """The number whose cumulative probability reaches u."""
    p, count = math.exp(-mean), 0.0
    reached = p
    while u > reached and count < 99.0:
        count += 1.0
        p *= mean / count
        reached += p
    return count


def arrive(world: World) -> None:
    """Draw what comes in the next step, and go on in the cycle."""
    hidden, signal = world[Intersection].Hidden, world[Intersection].Signal
    offset, n = SPACING / world[Corridor].Progression.speed[0], len(hidden.side)
    drawn = world.draw("arrivals", n + 1)
    for i in range(n):
        hidden.side[i] = poisson(drawn[i], SIDE * world.Day.side[0] * COUNTED) / COUNTED
        signal.clock[i] = (world.time - i * offset) % CYCLE
    hidden.main[0] = poisson(drawn[n], MAIN * world.Day.main[0] * COUNTED) / COUNTED


class TrafficCorridorEnv(HeronEnv):
    """A one-way arterial: point queues at stop lines, discharged at saturation flow, and platoons that disperse."""

    metadata = {**HeronEnv.metadata, "name": "heron/TrafficCorridor-v0"}
    dt = 5.0
    physics_substeps = 5
    global_features = (Day,)

    @staticmethod
    @rule
    def begin(world: World) -> None:
        """Draw the demands of the episode, 0.7 to 1.3 of the mean."""
        world.Day.main[0] = 0.7 + 0.6 * world.draw("main")[0]
        world.Day.side[0] = 0.7 + 0.6 * world.draw("side")[0]
        arrive(world)

    @staticmethod
    @rule(writes=(Traffic.main, Traffic.side, Traffic.approach, Hidden.delay, Day.served, Day.delay))
    def advance(world: World, dt: float) -> None:
        """Advance from the first intersection to the last; departing vehicles travel to the next."""
        signal, traffic, hidden = world[Intersection].Signal, world[Intersection].Traffic, world[Intersection].Hidden
        coming, passing = hidden.main[0] * dt, dt * SEGMENTS * SPEED / SPACING
        for i in range(len(traffic.main)):
            moving = traffic.approach[i]
            traffic.main[i] += moving[SEGMENTS - 1] * passing
            for j in range(SEGMENTS - 1, 0, -1):
                moving[j] += (moving[j - 1] - moving[j]) * passing
            moving[0] += coming - moving[0] * passing
            traffic.side[i] += hidden.side[i] * dt
            room = SATURATION * dt if signal.elapsed[i] > CLEARANCE else 0.0
            main = min(traffic.main[i], room) if signal.phase[i] == 0 else 0.0
            side = min(traffic.side[i], room) if signal.phase[i] == 1 else 0.0
            traffic.main[i] -= main
            traffic.side[i] -= side
            hidden.delay[i] += (traffic.main[i] + traffic.side[i]) * dt
            world.Day.delay[0] += (traffic.main[i] + traffic.side[i]) * dt
            coming = main * (1.0 - LEAVING) + side * JOINING
            world.Day.served[0] += main * LEAVING + side * (1.0 - JOINING)
        world.Day.served[0] += coming

    @staticmethod
    @rule(writes=(Hidden.main, Hidden.side, Signal.clock))
    def finish(world: World) -> None:
        arrive(world)

    def kpis(self) -> dict[str, float]:
        """Return the vehicles that have left the corridor, and their mean delay in queues, s."""
        served, delay = float(self.world.Day.served[0]), float(self.world.Day.delay[0])
        return {"served": served, "delay": delay / max(served, 1.0)}

    def draw_frame(self, axes: Any, world: World, observed: Any, artists: Any = None) -> Any:
        """Draw the roads from above; dashed: lengths of queues that the observing agent knows."""
        from heron_env.worlds.corridor_drawing import CorridorDrawing

        return (artists or CorridorDrawing(axes, len(self.hierarchy) - 2)).show(world, observed)

    def benchmark(self) -> Benchmark:
        """Return a fixed cycle with offsets, and signals that react to their queues."""
        rules = {"fixed cycle": fixed_cycle, "actuated": actuated}
        found: dict[str, Policies] = {
            name: {"intersection": rule, "corridor": green_wave} for name, rule in rules.items()
        }
        return Benchmark(baselines=lambda seed: found, strongest="actuated", unit="vehicle-minutes of delay")


def traffic_corridor(num_intersections: int = 4, max_steps: int | None = 180, **options: Any) -> TrafficCorridorEnv:
    """Signals along an arterial road, which keep or change their phase; a coordinator sets their offsets.

    Args:
        num_intersections: intersection_1 ... intersection_n, from where the traffic comes to where it goes.
        max_steps: steps of 5 s an episode.
        options: of HeronEnv.

    Raises ConfigError naming the argument and its value.
    """
    require_count(f"traffic_corridor(num_intersections={num_intersections!r:.60})", num_intersections)
    signals = (Intersection(f"intersection_{i + 1}") for i in range(num_intersections))
    system = SystemAgent("system_agent", Corridor("corridor_1", *signals, policy=green_wave))
    return TrafficCorridorEnv(system, max_steps=max_steps, **options)


parallel_env = partial(make, "heron/TrafficCorridor-v0")
env = raw_env = partial(make_aec, "heron/TrafficCorridor-v0")

__all__ = ["TrafficCorridorEnv", "env", "parallel_env", "raw_env", "traffic_corridor"]
