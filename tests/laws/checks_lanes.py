"""The lanes of a batch worked out once more, in other words than the kernels': who is refused, who decides and with
what, who ends and when, how an episode begins, what is handed out and with which noise.

Worlds without hooks and with one substep, so that the truth after a step is that of its boundary. Rules are run by the
batch; what they wrote is read from its truth.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from laws.checks_batch import Arrays, Script
from laws.oracle import Reader, _close, _end, _scores
from laws.plain_sight import Pair, PlainSight
from strategies import Recipe

from heron_env import BatchEnv, Broadcast, SetpointSplit
from heron_env.errors import HeronError, InvalidAction

EXPLICIT, POLICY, COMMAND, NOOP, HELD = 1, 2, 3, 4, 5


def check_lanes(recipe: Recipe, script: Script) -> None:
    """Whatever happens to a batch in plain Python, each of its lanes is what the laws say."""
    recipe = replace(recipe, hooks="none", substeps=1, compile=False, pad=False)
    script = replace(script, autoreset="disabled")
    batch = BatchEnv(lambda: recipe.build(script.schedule), script.lanes, seed=script.seed, autoreset="disabled")
    assert not batch.compiled
    lanes = [Lane(batch, recipe, number) for number in range(script.lanes)]
    random, everyone = np.random.default_rng(script.salt), np.ones(script.lanes, dtype=bool)
    shown, infos = batch.reset(script.seed, everyone)
    _begin(lanes, everyone, script.seed)
    for turn in range(script.turns):
        reset = script.reset_before(turn, batch._stopped)
        if reset is not None:
            mask, seeds = reset
            shown, infos = batch.reset(seeds, mask)
            _begin(lanes, mask, seeds)
        for lane in lanes:
            lane.check_shown(shown, infos)
        given = script.actions(batch.env, random)
        check_refusal(batch, given, random)
        before = {name: array.copy() for name, array in shown.items()}
        shown, rewards, terminated, truncated, infos = batch.step(given)
        for lane in lanes:
            lane.check_step(given, before, (rewards, terminated, truncated))


def _begin(lanes: list["Lane"], mask: Any, seeds: Any) -> None:
    for lane in lanes:
        if mask[lane.number]:
            seed = (
                seeds[lane.number] if isinstance(seeds, np.ndarray) else None if seeds is None else seeds + lane.number
            )
            lane.begin(None if seed is None else int(seed))


def check_refusal(batch: BatchEnv, given: Arrays, random: np.random.Generator) -> None:
    """An action that the agent's space does not contain is refused, and nothing has changed."""
    groups = [name for name in given if given[name].size]
    if not groups:
        return
    name = groups[random.integers(len(groups))]
    lane, place = (int(random.integers(size)) for size in given[name].shape[:2])
    agent = batch.env.group_map.get(name, batch.env.groups[name])[place]
    element = int(random.integers(given[name].shape[2]))
    odd = {**given, name: given[name].copy()}
    odd[name][lane, place, element] = random.choice([np.nan, np.inf, -np.inf, 2.0000001, -2.0000003, 1e300, 0.5, 7.0])
    if batch.alive(name)[lane, place] and not _legal(batch.env, agent, odd[name][lane, place]):
        before = [array.copy() for array in (batch._engine.truth, batch.steps, *_lanes(batch)[:2])]
        try:
            batch.step(odd)
        except HeronError as error:
            assert isinstance(error, InvalidAction), f"{agent} may do the illegal, up to {error}"
            assert repr(agent) in str(error), f"{agent} did the illegal, and {error}"
            assert len(batch.steps) == 1 or f"lane {lane}: " in str(error)
        else:
            raise AssertionError(f"lane {lane}: {agent} may do {odd[name][lane, place]}")
        after = (batch._engine.truth, batch.steps, *_lanes(batch)[:2])
        assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)), (
            "a refused action changed something"
        )


def _legal(env: Any, agent: str, action: Any) -> bool:
    """Is it in the agent's space? Numbers are compared in its precision."""
    spec = env.simulation.model.specs[env.hierarchy.index[agent]]
    numbers, choices = action[: spec.dim_c].tolist(), action[spec.dim_c :].tolist()
    with np.errstate(over="ignore"):
        low, high = spec.low.astype(np.float32), spec.high.astype(np.float32)
        inside = all(a <= np.float32(x) <= b for x, a, b in zip(numbers, low, high, strict=True))
    return inside and all(x in range(n) for x, n in zip(choices, spec.ncats.tolist(), strict=True))


def _lanes(batch: BatchEnv) -> tuple[Any, Any, Any]:
    """Actions in force by element, the codes of the last decisions, and whose was masked; the last two by rank."""
    arrays, place = batch._engine.lanes.arrays, batch._engine.position  # type: ignore[attr-defined]
    return arrays.applied, arrays.source[:, place], arrays.masked[:, place]


class Lane:
    """What one lane must be."""

    def __init__(self, batch: BatchEnv, recipe: Recipe, number: int) -> None:
        self.batch, self.recipe, self.number, self.env = batch, recipe, number, batch.env
        env, self.ranks = batch.env, range(len(batch.env.hierarchy))
        self.read, self.nodes, self.sight = Reader(env), recipe.root.nodes(), PlainSight(env)
        self.spans = [batch._engine.lanes.action_slice(rank) for rank in self.ranks]  # type: ignore[attr-defined]
        self.seed, self.episode = 0, -1
        self.lengths, self.returns = 0, np.zeros(len(self.ranks))

    @property
    def truth(self) -> Any:
        return self.batch._engine.truth[self.number]

    def begin(self, seed: int | None) -> None:
        """Declared values, no-ops, nobody has ended; episode 0 of a new seed, or the next."""
        self.seed, self.episode = (self.seed, self.episode + 1) if seed is None else (seed, 0)
        self.step, self.alive, self.sum = 0, dict.fromkeys(self.ranks, True), np.zeros(len(self.ranks))
        self.codes, self.force = [0] * len(self.ranks), [spec.noop.copy() for spec in self.env.simulation.model.specs]
        layout, agents = self.env.simulation.model.layout, self.env.hierarchy.agents
        states = [agent.initial for agent in agents] + [[kind() for kind in self.env.global_features]]
        for row, features in zip(layout.rows, states, strict=True):
            expected = np.concatenate([np.zeros(0), *(feature.vector() for feature in features)])
            assert self.truth[row.slice].tolist() == expected.tolist(), f"{self}: {row.owner_id} begins otherwise"
        applied, codes, masked = (part[self.number] for part in _lanes(self.batch))
        assert applied.tolist() == np.concatenate(self.force).tolist(), f"{self}: an old action is in force"
        assert not codes.any() and not masked.any(), f"{self}: old decisions are still there"
        assert self.batch.steps[self.number] == 0, f"{self} begins in mid-course"
        world = self.batch.lane(self.number).world
        assert (world.seed, world.episode) == (self.seed % 2**64, self.episode), f"{self}: another episode begins"

    def check_shown(self, shown: Arrays, infos: Any) -> None:
        """Each observer sees what it may, with the noise of this moment; agents that live are told so."""
        moment, bits = (self.seed, self.episode, self.step), dict[Pair, bool]()
        for rank in self.ranks:
            bits |= self.sight.of(rank, self.truth[: self.env.simulation.model.layout.size], self.step)
        for name, agents in self.batch.groups.items():
            for place, agent in enumerate(agents):
                rank = self.env.hierarchy.index[agent]
                expected, flags = self.sight.as_seen(rank, self.truth, bits, moment)
                vector = shown[name][self.number, place]
                seen = vector[: len(expected)]
                assert seen.tobytes() == expected.tobytes(), f"{self}: {agent} is shown something else"
                assert vector[len(vector) - len(flags) :].tolist() == flags.tolist(), f"{self}: {agent} sees others"
                assert infos[name]["decision"][self.number, place] == self.codes[rank] or not self.alive[rank]
                assert self.batch.alive(name)[self.number, place] == self.alive[rank], f"{self}: who lives?"

    def check_step(self, given: Arrays, shown: Arrays, told: tuple[Arrays, Arrays, Arrays]) -> None:
        """Decisions, then rewards and ends."""
        self._decide(given, shown)
        self.step += 1
        scores = _scores(self.env, self.recipe, self.read, self.alive, [self.truth], self.truth)
        living = {rank for rank in self.ranks if self.alive[rank]}
        ends = {r: _end(self.nodes[r], self.recipe, self.read, self.truth, r, self.step) for r in living}
        done, cut = {r for r, (t, _) in ends.items() if t}, {r for r, (_, c) in ends.items() if c}
        _close(self.env, self.recipe, self.step, living, done, cut)
        self.alive = {rank: self.alive[rank] and rank not in done | cut for rank in self.ranks}
        self.sum += [scores[rank] for rank in self.ranks]
        for name, agents in self.batch.groups.items():
            for place, agent in enumerate(agents):
                rank, mine = self.env.hierarchy.index[agent], [part[name][self.number, place] for part in told]
                assert mine == [scores[rank], rank in done, rank in cut], f"{self}: {agent} is told {mine}"
        arrays, place = self.batch._engine.lanes.arrays, self.batch._engine.position  # type: ignore[attr-defined]
        for ended, flags in ((done, arrays.terminated), (cut, arrays.truncated)):
            assert set(np.flatnonzero(flags[self.number, place])) == ended, f"{self}: others end"
        over = not any(self.alive[rank] for rank in self.env.simulation.model.possible)
        assert self.batch.over[self.number] == over, f"{self}: is it over? {over}"
        assert self.batch.steps[self.number] == self.step, f"{self} counts otherwise"
        if over:
            self.lengths, self.returns = self.step, self.sum
        assert self.batch.lengths[self.number] == self.lengths, f"{self}: another length"
        assert self.batch.returns[self.number].tolist() == self.returns.tolist(), f"{self}: another return"

    def _decide(self, given: Arrays, shown: Arrays) -> None:
        """Explicit before command before own before no-op; off its turn an agent holds (T10, T11, D7)."""
        applied, codes, masked = (part[self.number] for part in _lanes(self.batch))
        shares: dict[int, Any] = {}
        for rank, spec in enumerate(self.env.simulation.model.specs):
            if not (spec.size and self.alive[rank]):
                continue
            agent = self.env.hierarchy.agents[rank]
            said, code = self._said(agent.agent_id, given), HELD
            if self._turn(rank):
                if said is not None:
                    self.force[rank], code = (
                        np.append(np.clip(said[: spec.dim_c], spec.low, spec.high), said[spec.dim_c :]),
                        EXPLICIT,
                    )
                elif self._commanded(rank):
                    if rank in shares:
                        self.force[rank], code = shares[rank], COMMAND
                elif agent.policy is not None:
                    self.force[rank], code = agent.policy(self._seen(agent.agent_id, shown)), POLICY
                else:
                    self.force[rank], code = spec.noop.copy(), NOOP
            self.codes[rank] = code
            if code != HELD:
                shares |= self._shares(rank)
            assert codes[rank] == code, f"{self}: {agent.agent_id} decided by {codes[rank]}, not {code}"
            if masked[rank]:
                self.force[rank] = applied[self.spans[rank]].copy()  # the laws of masks are others
            assert applied[self.spans[rank]].tolist() == self.force[rank].tolist(), (
                f"{self}: {agent.agent_id} does else"
            )

    def _said(self, agent: str, given: Arrays) -> Any:
        for name, values in given.items():
            agents = self.env.group_map.get(name, self.env.groups[name])
            if agent in agents:
                return values[self.number, agents.index(agent)]
        return None

    def _seen(self, agent: str, shown: Arrays) -> Any:
        name = next(name for name, agents in self.batch.groups.items() if agent in agents)
        return shown[name][self.number, self.batch.groups[name].index(agent)]

    def _commanded(self, rank: int) -> bool:
        parent = self.env.hierarchy.parent[rank]
        return parent >= 0 and self.env.hierarchy.agents[parent].protocol is not None

    def _turn(self, rank: int) -> bool:
        """By its own ticks, or those of the topmost that commands it, if that one lives."""
        while self._commanded(rank):
            rank = self.env.hierarchy.parent[rank]
        timing, now = self.env.timings[rank], self.step * self.env.dt_ns
        return self.alive[rank] and now >= timing.phase and (now - timing.phase) % timing.tick == 0

    def _shares(self, rank: int) -> dict[int, Any]:
        """What an agent's action means for those whom it commands."""
        protocol, children = self.env.hierarchy.agents[rank].protocol, self.env.hierarchy.children[rank]
        action, specs = self.force[rank], [self.env.simulation.model.specs[child] for child in children]
        if protocol is None:
            return {}
        if isinstance(protocol, Broadcast):
            return dict.fromkeys(children, action)
        if isinstance(protocol, SetpointSplit):
            weights = [1.0] * len(children) if protocol.weights is None else protocol.weights.tolist()
            shares = [action[0] * weight / sum(weights) for weight in weights]
            pairs = zip(children, shares, specs, strict=True)
            return {child: np.array([min(max(x, spec.low[0]), spec.high[0])]) for child, x, spec in pairs}
        found, numbers, choices = {}, action.tolist()[: sum(s.dim_c for s in specs)], action.tolist()
        choices = choices[len(numbers) :]
        for child, spec in zip(children, specs, strict=True):
            mine = [numbers.pop(0) for _ in range(spec.dim_c)] + [choices.pop(0) for _ in range(spec.dim_d)]
            found[child] = np.array(mine)
        return {child: values for child, values in found.items() if len(values)}

    def __repr__(self) -> str:
        """Which, and where it is."""
        return f"lane {self.number} (seed {self.seed}, episode {self.episode}, step {self.step})"
