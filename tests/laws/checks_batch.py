"""The law of the batch: lane i is the single environment with its seed, whatever happens to the other lanes."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from laws.checks_cost import calls
from small_worlds import LawEnv
from strategies import CREW, Node, Recipe, in_family

from heron_env import BatchEnv
from heron_env.core.masking import flat

Arrays = dict[str, np.ndarray]
Resets = dict[int, tuple[tuple[bool, ...], tuple[int, ...] | int | None]]
TOLERANCE = 1e-9
"""Compiled beside plain Python: x**2, sin and sums round differently."""
SINGLE = 1e-6
"""The same of numbers in float32."""


@dataclass(frozen=True)
class Script:
    """What happens to a batch: its form, and before which turns which lanes are reset, with which seeds.

    A reset's lanes are told by a pattern that repeats; seeds: one for all, one each (a pattern, too), or the next
    episode. `storms`: what befalls the episodes that begin at resets, a list each, in turn.
    """

    lanes: int = 3
    threads: int = 1
    autoreset: Any = "same_step"
    seed: int = 0
    turns: int = 12
    salt: int = 0
    final: bool = True
    schedule: Any = None
    resets: Resets = field(default_factory=dict)
    storms: tuple[Any, ...] = ()

    def options(self, mask: np.ndarray) -> list[tuple[np.ndarray, dict[str, Any]]]:
        """The lanes of a reset in parts, each with what befalls the episodes that begin there."""
        turns = np.arange(self.lanes) % max(1, len(self.storms))
        parts = [(mask & (turns == turn), {"disturbances": list(one)}) for turn, one in enumerate(self.storms)]
        return [(part, one) for part, one in parts if part.any()] if self.storms else [(mask, {})]

    def reset_before(self, turn: int, over: np.ndarray) -> tuple[np.ndarray, Any] | None:
        """Which lanes begin anew, and their seeds; with autoreset "disabled" those that are `over` at least."""
        pattern, seeds = self.resets.get(turn, ((False,), None))
        mask = np.resize(np.array(pattern), self.lanes)
        if self.autoreset == "disabled":
            mask |= over
        if isinstance(seeds, tuple):
            seeds = np.resize(np.array(seeds, dtype=np.uint64), self.lanes)
        return (mask, seeds) if mask.any() else None

    def actions(self, env: LawEnv, random: np.random.Generator) -> Arrays:
        """Random actions for most groups of deciding agents, and seldom for those that take commands."""
        given = {}
        for name, agents in env.groups.items():
            spec = env.simulation.model.specs[env.hierarchy.index[agents[0]]]
            possible = name in env.group_map
            agents = env.group_map.get(name, agents)
            u = random.random((self.lanes, len(agents), spec.size))
            if spec.size and random.random() < (0.8 if possible else 0.15):
                c = spec.low + (spec.high - spec.low) * u[..., : spec.dim_c]
                given[name] = np.concatenate([c, np.floor(u[..., spec.dim_c :] * spec.ncats)], axis=-1)
        return given


class Alone:
    """Single environments, each reset and stepped for itself, that answer like a batch."""

    def __init__(self, recipe: Recipe, script: Script) -> None:
        self.script, self.envs = script, [recipe.build(script.schedule) for _ in range(script.lanes)]
        env, lanes = self.envs[0], script.lanes
        self.groups, self.place = dict(env.group_map), env.hierarchy.index
        self.shown: list[Any] = [({}, {})] * lanes
        self.over = np.zeros(lanes, dtype=bool)
        self.lengths, self.final = np.zeros(lanes, dtype=np.int64), dict[int, list[np.ndarray]]()
        self.returns, self.running = (np.zeros((lanes, len(env.hierarchy))) for _ in range(2))
        self.results: list[Any] = [({}, {}, {})] * lanes

    def reset(self, seed: Any, mask: np.ndarray, options: Any = None) -> None:
        """As BatchEnv.reset."""
        for lane in np.flatnonzero(mask).tolist():
            given = seed[lane] if isinstance(seed, np.ndarray) else None if seed is None else seed + lane
            self._begin(lane, None if given is None else int(given), options)

    def _begin(self, lane: int, seed: int | None, options: Any = None) -> None:
        self.shown[lane] = self.envs[lane].reset(seed=seed, options=options)
        self.running[lane] = 0.0

    def step(self, given: Arrays) -> None:
        """As BatchEnv.step."""
        self.final.clear()
        for lane, env in enumerate(self.envs):
            self.results[lane], self.over[lane] = ({}, {}, {}), False
            if not env.agents:
                assert self.script.autoreset == "next_step"
                self._begin(lane, None)
                continue
            alive, index = env.simulation.alive, env.hierarchy.index
            actions = {}
            for name, values in given.items():
                agents = env.group_map.get(name, env.groups[name])
                actions |= {agent: values[lane, i] for i, agent in enumerate(agents) if alive[index[agent]]}
            seen, *results, infos = env.step(actions)
            self.shown[lane], self.results[lane] = (seen, infos), results
            self.running[lane] += env.simulation.last_rewards
            self.over[lane] = not env.agents
            if self.over[lane]:
                self.lengths[lane], self.returns[lane] = env.simulation.step_index, self.running[lane]
                self.final[lane] = [self.seen(lane, agent) for agent in env.possible_agents]
                if self.script.autoreset == "same_step":
                    self._begin(lane, None)

    def seen(self, lane: int, agent: str) -> np.ndarray:
        """What the agent sees; if it has ended, what it would."""
        env, told = self.envs[lane], self.shown[lane][0]
        looked = env.seen_by(self.place[agent])
        if agent in told:
            assert told[agent].tobytes() == looked.tobytes(), f"{agent} is shown what it does not see"
        return looked


def batch_of(recipe: Recipe, script: Script) -> BatchEnv:
    """The batch; few agents are shared among threads, too."""
    batch = BatchEnv(
        lambda: recipe.build(script.schedule), script.lanes, seed=script.seed, threads=script.threads,
        autoreset=script.autoreset, final_observations=script.final,
    )  # fmt: skip
    if batch.compiled:
        batch._engine.lanes.parallel_from = 0  # type: ignore[attr-defined]
    return batch


def play(script: Script, batch: BatchEnv, *others: Any) -> Iterator[tuple[str, bool, list[Any]]]:
    """Play the script on a batch and on others; after each turn: where we are, was it a step, and what each told."""
    random, players = np.random.default_rng(script.salt), (batch, *others)
    everyone = np.ones(script.lanes, dtype=bool)

    def begin(player: Any, seeds: Any, mask: np.ndarray) -> Any:
        return [player.reset(seeds, part, options) for part, options in script.options(mask)][-1]

    yield "at the start: ", False, [begin(player, script.seed, everyone) for player in players]
    for turn in range(script.turns):
        reset = script.reset_before(turn, batch._stopped)
        if reset is not None:
            mask, seeds = reset
            yield f"reset before turn {turn}: ", False, [begin(player, seeds, mask) for player in players]
        given = script.actions(batch.env, random)
        yield f"turn {turn}: ", True, [player.step(given) for player in players]


def check_batch(recipe: Recipe, script: Script) -> None:
    """A batch of B is B single environments, bit for bit: all that it tells, and the truth behind it."""
    batch, alone = batch_of(recipe, script), Alone(recipe, script)
    assert batch.compiled == bool(recipe.compile)
    for where, stepped, (told, _) in play(script, batch, alone):
        for lane in range(script.lanes):
            _check_lane(f"{where}lane {lane}: ", batch, alone, lane, told, stepped)


def _check_lane(where: str, batch: BatchEnv, alone: Alone, lane: int, told: Any, stepped: bool) -> None:
    env, infos = alone.envs[lane], told[-1]
    assert batch._engine.truth[lane].tobytes() == env.simulation.truth.tobytes(), where + "the truth differs"
    assert batch.steps[lane] == env.simulation.step_index, where + "the numbers of steps differ"
    upheld = getattr(batch.lane(lane), "upheld", 0), getattr(env, "upheld", 0)
    assert upheld[0] == upheld[1], f"{where}what lasts was upheld {upheld[0]} times, not {upheld[1]}"
    for name, agents in batch.groups.items():
        for place, agent in enumerate(agents):
            seen = told[0][name][lane, place]
            assert seen.tobytes() == alone.seen(lane, agent).tobytes(), f"{where}{agent} sees something else"
            for key, value in alone.shown[lane][1].get(agent, {}).items():
                value = flat(value) if key == "action_mask" else value
                assert np.array_equal(infos[name][key][lane, place], value), f"{where}{agent}'s {key} differs"
            if stepped:
                for part, mine in zip(told[1:4], alone.results[lane], strict=True):
                    assert part[name][lane, place] == mine.get(agent, 0), f"{where}{agent}'s reward or end differs"
            alive = env.simulation.alive[env.hierarchy.index[agent]]
            assert batch.alive(name)[lane, place] == alive, f"{where}{agent}: who is alive differs"
    if stepped:
        assert batch.over[lane] == alone.over[lane], where + "one episode is over, the other isn't"
        assert batch.lengths[lane] == alone.lengths[lane], where + "the episodes' lengths differ"
        assert batch.returns[lane].tobytes() == alone.returns[lane].tobytes(), where + "the episodes' returns differ"
    if stepped and lane in alone.final and "final_obs" in next(iter(infos.values())):
        expected = dict(zip(env.possible_agents, alone.final[lane], strict=True))
        for name, agents in batch.groups.items():
            for place, agent in enumerate(agents):
                last = infos[name]["final_obs"][lane, place]
                assert last.tobytes() == expected[agent].tobytes(), f"{where}{agent}'s final observation differs"


def check_compiled_is_plain(recipe: Recipe, script: Script) -> None:
    """What compiled lanes do is what plain Python does, to 1e-9; who decided, and who ended, exactly."""
    compiled, plain = (batch_of(replace(recipe, compile=compile), script) for compile in (True, False))
    assert compiled.compiled and not plain.compiled
    for where, stepped, (told, others) in play(script, compiled, plain):
        _near(where + "the truth", compiled._engine.truth, plain._engine.truth, TOLERANCE)
        for name in compiled.groups:
            _near(f"{where}what {name}s see", told[0][name], others[0][name], SINGLE)
            living = compiled.alive(name)
            assert np.array_equal(living, plain.alive(name)), f"{where}{name}: other agents are alive"
            for key, value in told[-1][name].items():
                if key != "final_obs":
                    _near(f"{where}{name}'s {key}", value[living], others[-1][name][key][living], SINGLE)
            if stepped:
                _near(f"{where}{name}'s rewards", told[1][name], others[1][name], TOLERANCE)
                for part, other in zip(told[2:4], others[2:4], strict=True):
                    assert np.array_equal(part[name], other[name]), f"{where}{name}: other agents end"
        assert np.array_equal(compiled.lengths, plain.lengths), where + "the episodes' lengths differ"
        _near(where + "the returns", compiled.returns, plain.returns, TOLERANCE)


def check_in_tiles_or_not(recipe: Recipe, script: Script) -> None:
    """Lanes that go through a step together are what they are one by one, in every bit of all arrays."""
    together, alone = batch_of(recipe, script), batch_of(recipe, script)
    alone._engine.lanes.in_tiles = False  # type: ignore[attr-defined]
    lanes, size = together._engine.lanes, together.env.simulation.model.layout.size  # type: ignore[attr-defined]
    for where, stepped, (told, other) in play(script, together, alone):
        for name, array in lanes.arrays._asdict().items():
            twin = getattr(alone._engine.lanes.arrays, name)  # type: ignore[attr-defined]
            if name == "truth":  # what lies behind it is scratch
                array, twin = array[:, :size], twin[:, :size]
            places = [] if array.tobytes() == twin.tobytes() else np.argwhere(array != twin)[:5].tolist()
            assert array.tobytes() == twin.tobytes(), f"{where}{name} differs, {array.shape}: {places}"
        for name in together.groups:
            assert told[0][name].tobytes() == other[0][name].tobytes(), f"{where}{name}s see something else"
            for part, twin in zip(told[1:4], other[1:4], strict=True):
                assert not stepped or part[name].tobytes() == twin[name].tobytes(), (
                    f"{where}{name}s hear something else"
                )
    assert lanes.in_python or lanes.tiled or lanes.not_in_tiles, "nothing runs in tiles"


def check_infos_are_the_truth(recipe: Recipe, script: Script) -> None:
    """What agents tell of their level in infos is their level, after a reset, too."""
    batch = batch_of(recipe, script)
    names = {name: column for column, name in enumerate(batch.env.simulation.model.layout.full_names)}
    for where, stepped, (told,) in play(script, batch):
        for name, agents in batch.groups.items():
            if "level" in told[-1][name] and not stepped:
                levels = batch._engine.truth[:, [names[f"{agent}.Level.value"] for agent in agents]]
                fresh = batch.steps == 0
                assert np.array_equal(told[-1][name]["level"][fresh], levels[fresh]), f"{where}{name}s tell otherwise"


def _near(what: str, a: np.ndarray, b: np.ndarray, tolerance: float) -> None:
    assert a.shape == b.shape, f"{what}: {a.shape} and {b.shape}"
    far = np.abs(a.astype(np.float64) - b) > tolerance * np.maximum(1.0, np.abs(b))
    assert not far.any(), (
        f"{what} differ by {np.abs(a.astype(np.float64) - b).max()}, at {np.argwhere(far)[:5].tolist()}"
    )


def check_calls_do_not_grow(agents: tuple[int, ...], lanes: tuple[int, ...]) -> None:
    """A compiled step of a batch makes as many calls for many agents in many lanes as for few in one."""
    made = {}
    for n in agents:
        zone = Node("zone", children=(Node("unit"),) * n)
        for b in lanes:
            batch = BatchEnv(Recipe(in_family(Node("system"), (*CREW, zone)), hooks="none", compile=True).build(), b)
            batch.reset(seed=0)
            actions = {name: np.zeros((b, len(batch.groups[name]), 1)) for name in batch.groups if name == "unit"}
            batch.step(actions)
            made[n, b] = calls(lambda batch=batch, actions=actions: batch.step(actions))  # type: ignore[misc]
    assert len(set(made.values())) == 1, f"calls by numbers of agents and lanes: {made}"
