"""Small environments of somebody else's, which write down what they were told, for the laws of `under_network`."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from heron_env import ScheduleConfig, under_network

ACTIONS = {
    "box": spaces.Box(-1.0, 1.0, (2,), np.float64),
    "dict": spaces.Dict({"turn": spaces.Discrete(3), "push": spaces.Box(0.0, 2.0, (1,), np.float32)}),
    "image": spaces.Discrete(4),
    "discrete": spaces.Discrete(5, start=-1),
    "mask": spaces.Discrete(5),
}
FLAGS = spaces.Box(0, 1, (5,), np.int8)
NUMBERS = spaces.Box(-np.inf, np.inf, (3,), np.float64)
OBSERVATIONS: dict[str, spaces.Space[Any]] = {
    "box": NUMBERS,
    "dict": spaces.Dict({"numbers": NUMBERS, "parity": spaces.Discrete(2)}),
    "image": spaces.Box(0, 255, (4, 5, 3), np.uint8),
    "discrete": spaces.Discrete(1000),
    "mask": spaces.Dict({"numbers": NUMBERS, "action_mask": FLAGS}),
}
KINDS = list(ACTIONS)


def weight(action: Any) -> float:
    """An action as one number."""
    if isinstance(action, dict):
        return float(action["turn"]) + float(action["push"][0])
    return float(np.sum(np.asarray(action, np.float64) * [1.0, 0.5][: np.size(action)]))


class Bookkeeper(ParallelEnv):
    """Observations say which boundary they are of, and all that was done; one buffer is used over and over.

    ends, joins: {agent: boundary}. `told`: by step, the actions. `resets`: (seed, options) of each reset.
    """

    metadata = {"name": "bookkeeper", "render_modes": []}

    def __init__(
        self,
        kind: str = "box",
        agents: tuple[str, ...] = ("hare_0", "hare_1", "fox"),
        *,
        steps: int = 12,
        ends: dict[str, int] | None = None,
        joins: dict[str, int] | None = None,
    ) -> None:
        self.kind, self.possible_agents, self.render_mode = kind, list(agents), None
        self.steps, self.ends, self.joins = steps, ends or {}, joins or {}
        self.resets: list[Any] = []
        self._buffer = np.zeros(3)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return OBSERVATIONS[self.kind]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return ACTIONS[self.kind]

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self.resets.append((seed, options))
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.boundary, self.sums, self.told = 0, dict.fromkeys(self.possible_agents, 0.0), list[dict[str, Any]]()
        self.agents = [agent for agent in self.possible_agents if not self.joins.get(agent)]
        return self._seen(self.agents), self._infos(self.agents)

    def step(self, actions: dict[str, Any]) -> Any:
        assert list(actions) == self.agents
        self.told.append(dict(actions))
        self.boundary += 1
        for agent, action in actions.items():
            assert ACTIONS[self.kind].contains(action), (agent, action)
            self.sums[agent] += weight(action)
        there, over = self.agents, self.boundary >= self.steps
        rewards = {agent: self.sums[agent] + float(self.rng.normal()) for agent in there}
        terminations = {agent: self.ends.get(agent) == self.boundary for agent in there}
        truncations = dict.fromkeys(there, over)
        coming = [agent for agent, boundary in self.joins.items() if boundary == self.boundary and not over]
        self.agents = [agent for agent in there if not (over or terminations[agent])] + coming
        known = there + coming
        for ends in (terminations, truncations):
            ends |= dict.fromkeys(coming, False)
        return self._seen(known), rewards | dict.fromkeys(coming, 0.0), terminations, truncations, self._infos(known)

    def _infos(self, agents: list[str]) -> dict[str, Any]:
        return {agent: {"boundary": self.boundary, "total": np.float64(self.sums[agent])} for agent in agents}

    def flags(self) -> Any:
        """What may be chosen at this boundary: 1 at odd ones, 2 at half of all, 0, 3 and 4 always."""
        flags = np.ones(5, np.int8)
        flags[1], flags[2] = self.boundary % 2, self.boundary // 2 % 2
        return flags

    def _seen(self, agents: list[str]) -> dict[str, Any]:
        total = sum(self.sums.values())
        seen: dict[str, Any] = {}
        for agent in agents:
            numbers = np.array([self.boundary, self.sums[agent], total + float(self.rng.normal())])
            if self.kind == "box":
                if len(agents) == 1:  # the same buffer each time
                    self._buffer[:] = numbers
                    numbers = self._buffer
                seen[agent] = numbers
            elif self.kind == "image":
                seen[agent] = np.full((4, 5, 3), int(total * 7 + self.boundary) % 256, np.uint8)
            elif self.kind == "discrete":
                seen[agent] = int(self.boundary * 10 + abs(total)) % 1000
            elif self.kind == "dict":
                seen[agent] = {"numbers": numbers, "parity": self.boundary % 2}
            else:
                seen[agent] = {"numbers": numbers, "action_mask": self.flags()}
        return seen


class Painted(Bookkeeper):
    """One that draws itself: all of a frame is as bright as its boundary is late."""

    metadata = {"name": "painted", "render_modes": ["rgb_array"]}

    def render(self) -> Any:
        return np.full((30, 40, 3), 20 * self.boundary, np.uint8)


def parallel_env(steps: int = 12, kind: str = "discrete", render_mode: str | None = None) -> Bookkeeper:
    """As modules of PettingZoo have it: `pettingzoo:black_boxes`."""
    env = Painted(kind, ("hare_0", "hare_1", "fox"), steps=steps, ends={"fox": 5})
    env.render_mode = render_mode
    return env


def under(**options: Any) -> Any:
    """A factory that returns one under a network, as a user's module may have it."""
    return under_network(parallel_env(**options), ScheduleConfig(obs_delay=1.0), noop=0)


class Blob(gymnasium.Env[Any, Any]):
    """A point that is pushed about on a wall; seen as a picture of more than may be written down, and as its place."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space = spaces.Dict({
        "picture": spaces.Box(0, 255, (64, 64, 3), np.uint8), "place": spaces.Box(-64, 64, (2,), np.float32),
    })  # fmt: skip
    action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, render_mode: str | None = None, steps: int = 8, spot: int = 0) -> None:
        self.render_mode, self.steps, self.spot = render_mode, steps, spot

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.number = self.np_random.uniform(10, 50, 2).astype(np.float32), 0
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.number += 1
        self.place = np.clip(self.place + action, 0, 63).astype(np.float32)
        return self._seen(), float(-self.place.sum()), False, self.number == self.steps, {}

    def _seen(self) -> dict[str, Any]:
        picture = self.render()
        picture[63, 63, 2] += self.spot * (self.number == 3)
        return {"picture": picture, "place": self.place.copy()}

    def render(self) -> Any:
        picture, (x, y) = np.full((64, 64, 3), 250, np.uint8), self.place.astype(int)
        picture[y - 3 : y + 4, x - 3 : x + 4] = 30, 90, 160
        return picture


for name in ("Blob", "Walk"):  # pytest imports this file by two names
    if f"{name}-v0" not in gymnasium.registry:
        gymnasium.register(f"{name}-v0", f"black_boxes:{name}")


class Walk(gymnasium.Env[Any, Any]):
    """One agent of a Bookkeeper, as Gymnasium has it; infos name the mask, if there is one."""

    metadata = {"render_modes": []}

    def __init__(self, kind: str = "box", steps: int = 12, end: int | None = None) -> None:
        self.book = Bookkeeper(kind, ("walker",), steps=steps, ends={} if end is None else {"walker": end})
        self.observation_space, self.action_space = OBSERVATIONS[kind], ACTIONS[kind]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(2**31))
        seen, infos = self.book.reset(seed, options)
        return seen["walker"], infos["walker"]

    def step(self, action: Any) -> Any:
        return tuple(each["walker"] for each in self.book.step({"walker": action}))


def same(a: Any, b: Any) -> bool:
    """Equal bit for bit, in type and form."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and (a == b or (a != a and b != b))


OURS = {"aoi", "delivered", "is_active", "applied", "index", "true_observation"}


def own(infos: dict[str, Any]) -> dict[str, Any]:
    """Infos by agent, without what `under_network` adds."""
    return {agent: {name: value for name, value in info.items() if name not in OURS} for agent, info in infos.items()}
