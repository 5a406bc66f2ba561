"""One simulation: an environment, who is played by an endpoint, and a folder from which a restart builds it again."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import BoundedSemaphore, RLock
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from heron_env.core.policy import Asked
from heron_env.envs.base import HeronEnv
from heron_env.errors import (
    ConfigError,
    HeronError,
    InvalidAction,
    ResetNeeded,
    RunFolderError,
    UnknownAgent,
    did_you_mean,
)
from heron_env.files.writing import write
from heron_env.injection.answers import read
from heron_env.injection.policy import ExternalPolicy
from heron_env.injection.questions import Questions
from heron_env.injection.recording import Recording
from heron_env.injection.sdk import PROBE
from heron_env.serve.journal import Form, Injection, NewSimulation, Operation, OperationJournal, Removal, Reset, Steps

SETTING, JOURNAL = "simulation.json", "journal.jsonl"
PATIENCE: Final = 10.0
"""So long an operation waits for the one that is under way, s."""
WAITING: Final = 4
"""So many wait at the most; a further one is refused at once."""
LOG: Final = logging.getLogger(__name__)


class NoSuchSimulation(ConfigError):
    """Nobody made it, or it was removed."""


class Busy(ConfigError):
    """Another operation is under way."""


class House(Protocol):
    """What simulations share."""

    def build(self, given: NewSimulation) -> HeronEnv:
        """The environment of a form."""
        ...

    def external(self, given: Injection, env: HeronEnv, asked: NewSimulation) -> ExternalPolicy:
        """The policy of an endpoint."""
        ...


@dataclass
class InjectedAgent:
    """An agent that an endpoint plays, the names of what it sees, and the policy that it had."""

    form: Injection
    policy: ExternalPolicy
    names: tuple[str, ...]
    own: Any
    recording: Recording


class Snapshot(NamedTuple):
    """A simulation as its last operation left it, for who only looks: `asked` is what each seat would be asked now."""

    state: dict[str, Any]
    seats: dict[str, InjectedAgent]
    asked: dict[str, Asked]


class Session:
    """Everything is done under `lock`, and written down when it is done.

    What fails half-way is taken back: the environment is built again from the journal. What endpoints answered is kept
    in files of its own, and not asked again.
    """

    def __init__(self, folder: Path, asked: NewSimulation, house: House) -> None:
        self.folder, self.asked, self._house = folder, asked, house
        self.lock = RLock()
        self.seats: dict[str, InjectedAgent] = {}
        self._journal = OperationJournal(folder / JOURNAL)
        self._env: HeronEnv | None = None
        self._done, self._moved = 0, False
        self._last: dict[str, Any] = {}
        self._queue = BoundedSemaphore(WAITING)
        self._snapshot: Snapshot | None = None
        self._ending = ""

    @classmethod
    def create(cls, folder: Path, asked: NewSimulation, house: House) -> Session:
        """A new one. Raises what building and resetting the environment do, before anything is written."""
        made = cls(folder, asked, house)
        made._begin()
        made._take_snapshot()
        write(folder / SETTING, json.dumps(asked.model_dump(), indent=1, allow_nan=False) + "\n")
        return made

    @property
    def env(self) -> HeronEnv:
        """The environment, where the journal left it. Raises RunFolderError naming a damaged line, NoSuchSimulation."""
        if self._ending:
            raise NoSuchSimulation(self._ending)
        if self._env is None:
            operations = self._journal.operations()
            self._begin()
            try:
                for number, operation in enumerate(operations, start=1):
                    self._do_again(f"{self._journal.path}:{number}", operation)
                for seat in self.seats.values():  # of an operation that was cut off
                    seat.recording.forget_rest()
                self._take_snapshot()
            except BaseException:
                self.close()
                raise
        assert self._env is not None
        return self._env

    def _do_again(self, line: str, operation: Operation) -> None:
        try:
            self._perform(operation.form)
        except HeronError as error:
            if self._ending:
                raise
            raise RunFolderError(
                f"{line}: can't be done again: {error}; restore the file, or start the server as it was started then"
            ) from error
        if self._digest() != operation.digest:
            raise RunFolderError(
                f"{line}: its repetition gives another result; the version or machine differs, or the line was "
                "changed; use those that it was made with, or remove its folder"
            )

    def _begin(self) -> None:
        self._env, self._done, self.seats = self._house.build(self.asked), 0, {}
        observations, _ = self._env.reset(seed=self.asked.seed)
        self._began(observations)

    def _began(self, observations: Mapping[str, Any]) -> None:
        nothing: dict[str, Any] = {"rewards": {}, "terminations": {}, "truncations": {}, "decisions": {}}
        self._last = {"observations": listed(observations), **nothing}

    def do(self, form: Form) -> dict[str, Any]:
        """Carry out an operation and write it down. Raises what it raises; then nothing has happened."""
        with self._held():
            _, self._moved = self.env, False
            for left in self.folder.glob(f"answers-{self._done + 1}-*.jsonl"):  # by an operation that was cut off
                left.unlink()
            try:
                told = self._perform(form)
                self._journal.add(Operation.of(self._done, form, self._digest()))
                self._take_snapshot()
            except BaseException:
                self._done -= 1
                if self._moved:
                    self.close()
                raise
            return told

    def _perform(self, form: Form) -> dict[str, Any]:
        self._done += 1
        match form:
            case Steps():
                return self._step(form)
            case Reset():
                return self._reset(form)
            case Injection():
                return self._inject(form)
            case Removal():
                return self._remove(form.agent_id)
        raise AssertionError(form)

    def _step(self, form: Steps) -> dict[str, Any]:
        env, returns, stand_ins, count = self.env, dict[str, float](), dict[str, int](), 0
        if not env.agents:
            raise ResetNeeded("the episode is over; reset it")
        while env.agents and count < form.steps:
            alive = list(env.simulation.alive)
            actions = {agent: action for agent, action in form.actions.items() if count == 0 or agent in env.agents}
            if self._ending:
                raise NoSuchSimulation(self._ending)
            self._moved = self._moved or bool(self.seats)  # what was asked is not asked again under the same number
            try:
                observations, rewards, terminations, truncations, _ = env.step(actions)
            except (InvalidAction, UnknownAgent):  # before anything has changed
                raise
            except BaseException:
                self._moved = True
                raise
            self._moved, count = True, count + 1
            for agent, reward in rewards.items():
                returns[agent] = returns.get(agent, 0.0) + float(reward)
            for rank, origin in env._origins.items():
                if origin.source == "fallback":
                    agent = env.hierarchy.ids[rank]
                    stand_ins[agent] = stand_ins.get(agent, 0) + 1
        self._last = {
            "observations": listed(observations),
            "rewards": {agent: float(reward) for agent, reward in rewards.items()},
            "terminations": {agent: bool(flag) for agent, flag in terminations.items()},
            "truncations": {agent: bool(flag) for agent, flag in truncations.items()},
            "decisions": {
                agent: {"source": one.source.name.lower(), "code": one.origin.code if one.origin else ""}
                for agent, one in env.last_decisions.items()
                if alive[env.hierarchy.index[agent]]
            },
        }
        return {"steps": count, "returns": returns, "stand_ins": stand_ins, **self._state()}

    def _reset(self, form: Reset) -> dict[str, Any]:
        self._moved = True
        for name, seat in self.seats.items():  # what is asked in another episode is asked anew
            seat.recording.stop(finished=False)
            seat.recording = self._recording(name, seat.policy)
            self.env.hierarchy.agents[self.env.hierarchy.index[name]].policy = seat.recording
        observations, _ = self.env.reset(seed=form.seed)
        self._began(observations)
        return self._state()

    def _inject(self, form: Injection) -> dict[str, Any]:
        env, name = self.env, form.agent_id
        if name not in env.possible_agents:
            known = env.possible_agents
            words = f"agent_id: {name!r} decides nothing here; there are {known[:12]}.{did_you_mean(name, known)}"
            raise UnknownAgent(words)
        if name in self.seats:
            raise ConfigError(f"agent_id: {name!r} is injected already; remove it first")
        agent = env.hierarchy.agents[env.hierarchy.index[name]]
        policy = self._house.external(form, env, self.asked)
        self._moved = True
        names = tuple(env.observation_names(name))
        self.seats[name] = InjectedAgent(form, policy, names, agent.policy, self._recording(name, policy))
        agent.policy, agent.injected = self.seats[name].recording, True
        self.seats[name].recording.begin(env.np_random_seed, env._episode)
        return {"agent_id": name, **form.model_dump(exclude={"agent_id"})}

    def _recording(self, name: str, policy: ExternalPolicy) -> Recording:
        seat = self.env.hierarchy.index[name]
        return Recording(policy, self.folder / f"answers-{self._done}-{seat}.jsonl", any_version=True)

    def _remove(self, name: str) -> dict[str, Any]:
        seat = seat_of(name, self.seats)
        self._moved = True
        seat.recording.stop(finished=False)
        agent = self.env.hierarchy.agents[self.env.hierarchy.index[name]]
        agent.policy, agent.injected = seat.own, False
        del self.seats[name]
        return {"removed": name}

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Nothing else is done meanwhile. Raises Busy: another operation takes too long, or too many wait for it."""
        if not self.lock.acquire(blocking=False):
            if not self._queue.acquire(blocking=False):
                raise Busy(f"an operation is under way, and {WAITING} wait for it; ask again when they are done")
            try:
                if not self.lock.acquire(timeout=PATIENCE):
                    raise Busy("another operation is under way; ask again when it is done")
            finally:
                self._queue.release()
        try:
            yield
        finally:
            self.lock.release()

    def _take_snapshot(self) -> None:
        asked = {name: self._question(name, seat) for name, seat in self.seats.items()}
        self._snapshot = Snapshot(self._state(), dict(self.seats), asked)

    def _question(self, name: str, seat: InjectedAgent) -> Asked:
        env = self.env
        vector, turn = env.seen_by(env.hierarchy.index[name]), env.simulation.step_index
        at, space = turn * env.dt, env.action_space(name)
        return Asked(name, vector, seat.names, turn, turn, at, 0, env._episode, space)

    @property
    def is_built(self) -> bool:
        """Can its state be told without work?"""
        return self._snapshot is not None

    def snapshot(self) -> Snapshot:
        """As the last operation left it: who only looks waits for none. Raises what building it again does."""
        snapshot = self._snapshot
        if snapshot is None:
            with self._held():
                _, snapshot = self.env, self._snapshot
                assert snapshot is not None
        return snapshot

    def state(self) -> dict[str, Any]:
        """Where it is, and what its agents saw and earned last."""
        return self.snapshot().state

    def _state(self) -> dict[str, Any]:
        env = self._env
        assert env is not None
        step = env.simulation.step_index
        return {
            "id": self.folder.name,
            **self.asked.model_dump(),
            "step": step,
            "time_s": step * env.dt,
            "episode": env._episode,
            "agents": list(env.agents),
            **self._last,
        }

    def injected(self) -> list[dict[str, Any]]:
        """Who is played by which endpoint."""
        return [seat.form.model_dump() for seat in self.snapshot().seats.values()]

    def metrics(self, name: str) -> dict[str, Any]:
        """How an injected agent fares, in the middle of an operation, too. Raises NoSuchSimulation."""
        return asdict(seat_of(name, self.snapshot().seats).policy.metrics(name))

    def probe(self, name: str) -> dict[str, Any]:
        """Ask its endpoint an ordinary question, which counts nowhere. Raises NoSuchSimulation."""
        from heron_env.net.client import Question

        snapshot = self.snapshot()
        policy, asked = seat_of(name, snapshot.seats).policy, snapshot.asked[name]
        questions = Questions(policy.questions.setting, policy.questions.telling)  # the others count what was asked
        request = questions.request(asked).model_dump(mode="json")

        def body(attempt: int, left: float) -> bytes:
            return questions.body({**request, PROBE: True}, left)

        def check(value: dict[str, Any]) -> Any:
            return read(value, asked, questions, request["request_id"], policy.endpoint.clip)

        outcome = policy.line.client.call(Question(body, check, counted=False))
        return {
            "healthy": not outcome.code,
            "code": str(outcome.code),
            "latency_ms": outcome.seconds * 1000.0,
            "circuit_state": str(policy.line.client.circuit),
        }

    def _digest(self) -> str:
        """Of the truth and of who is alive."""
        simulation = self.env.simulation
        parts = (simulation.truth.tobytes(), repr((simulation.step_index, list(map(bool, simulation.alive)))).encode())
        return hashlib.blake2b(b"".join(parts), digest_size=16).hexdigest()

    def close(self) -> None:
        """Let go of the environment and its files; the next question builds it again."""
        with self.lock:
            env, seats = self._env, self.seats
            self._env, self.seats, self._snapshot = None, {}, None
            for seat in seats.values():
                try:
                    seat.recording.stop(finished=False)
                except OSError as error:  # a full disk; what the journal does not tell of is asked again
                    LOG.warning("%s: %s", seat.recording.path, error)
            if env is not None:
                env.close()

    def end(self, why: str = "the server ends", remove: bool = False) -> None:
        """Close it for good, and remove its folder; a series of steps under way breaks off after one of them."""
        self._ending = why
        with self.lock:
            self.close()
            if remove:
                remove_folder(self.folder)


def seat_of(name: str, seats: Mapping[str, InjectedAgent]) -> InjectedAgent:
    """Raises NoSuchSimulation for an agent that is not injected."""
    if name not in seats:
        raise NoSuchSimulation(f"agent {name[:40]!r} is not injected; GET .../injected-agents lists those who are")
    return seats[name]


def remove_folder(folder: Path) -> None:
    """With all that is in it; of a link the link alone."""
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder)


def listed(observations: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays as lists of the same bits; float32 in decimals that give them back."""
    return {agent: np.asarray(seen).tolist() for agent, seen in observations.items()}
