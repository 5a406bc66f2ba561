"""Laws of PPO, on invented streams of rows.

Plan: advantages are those of a hand-written recursion over each agent's own decisions, several control steps each, with
ends, cut-offs, and decisions that never took effect; every decision is learned from exactly once, with what it was
decided with, also if it was under way at an update; before anything is learned every probability ratio is 1 (plain,
masked, mixed, with memory across updates and episodes, which also shows that a first row resets it); what is forbidden
is never chosen; decisions that did not take effect move the critic and not the actor; windows hold each decision once,
in order, behind a warm-up of its own episode; equal seeds give equal bits.
"""

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heron_env import Hyperparameters
from heron_env.core.action import ActionSpec
from heron_env.lab.learning.ppo import LENGTH, WARM_UP, Learner, last_of_each, windows
from heron_env.lab.learning.rows import DecisionRewards, PolicyInputs

NUMBERS = ActionSpec(low=-np.ones(2), high=np.ones(2), noop=np.zeros(2))
CHOICES = ActionSpec(ncats=np.array([3, 2]), noop=np.zeros(2))
MIXED = ActionSpec(low=-np.ones(1), high=np.ones(1), ncats=np.array([4]), noop=np.zeros(2))
WIDTH, STATE, SLOTS = 3, 2, 5


def learner(spec: ActionSpec = NUMBERS, *, masked: bool = False, seed: int = 1, **options: Any) -> Learner:
    hyperparameters = Hyperparameters(
        **{"batch_size": 10**6, "n_epochs": 1, "hidden": (8,), "gamma": 0.9, "log_std": -0.5, **options}
    )
    return Learner(SLOTS, WIDTH, STATE, spec, hyperparameters, corrects=False, masked=masked, seed=seed)


class Stream:
    """Rows and ends of some agents at their own times, fed to a learner; and by hand what each decision brought.

    Every observation is another, so that a decision is known by it.
    """

    def __init__(self, student: Learner, seed: int, spec: ActionSpec = NUMBERS, masked: bool = False) -> None:
        self.student, self.spec, self.masked = student, spec, masked
        self.rng = np.random.default_rng(seed)
        self.deciding: dict[int, int] = {}  # the decision under way of each slot
        self.decisions: list[dict[str, Any]] = []
        self.calls = 0

    def seen(self, slots: list[int], first: list[bool]) -> PolicyInputs:
        n = len(slots)
        obs = self.rng.normal(size=(n, WIDTH)).astype(np.float32)
        state = self.rng.normal(size=(n, STATE)).astype(np.float32)
        mask = None
        if self.masked:
            mask = self.rng.random((n, int(self.spec.ncats.sum()))) < 0.5
            mask[:, np.cumsum(self.spec.ncats) - self.spec.ncats] = True
        return PolicyInputs(np.array(slots, dtype=np.int64), obs, state, mask, np.array(first, dtype=bool))

    def brought(self, n: int) -> DecisionRewards:
        steps = self.rng.integers(0, 5, n)
        return DecisionRewards(self.rng.normal(size=n), steps, self.rng.random(n) < 0.8)

    def note(self, slots: list[int], brought: DecisionRewards, after: list[Any]) -> None:
        for i, slot in enumerate(slots):
            if slot in self.deciding:
                told = self.decisions[self.deciding.pop(slot)]
                told |= {name: part[i] for name, part in brought._asdict().items()} | {"after": after[i]}

    def call(self) -> None:
        """Some agents end, some (also of these) are asked."""
        rng, student = self.rng, self.student
        ending = sorted(s for s in self.deciding if rng.random() < 0.15)
        if ending:
            seen, brought = self.seen(ending, [False] * len(ending)), self.brought(len(ending))
            cut_off = rng.random(len(ending)) < 0.5
            values = [self.value_of(seen, i) if cut else 0.0 for i, cut in enumerate(cut_off)]
            student.end(seen, brought, cut_off)
            self.note(ending, brought, values)
        slots = sorted(rng.choice(SLOTS, rng.integers(1, SLOTS + 1), replace=False).tolist())
        first = [slot not in self.deciding for slot in slots]
        seen, brought = self.seen(slots, first), self.brought(len(slots))
        student.ask(seen, brought)
        later = [slot for slot, fresh in zip(slots, first, strict=True) if not fresh]
        self.note(later, DecisionRewards(*(part[~np.array(first)] for part in brought)), [None] * len(later))
        self.pending, self.values = seen, student._answer[1].numpy()

    def value_of(self, seen: PolicyInputs, i: int) -> float:
        hidden = self.student._hidden[seen.slot[i : i + 1]]
        return float(self.student._ask(seen.obs[i : i + 1], seen.state[i : i + 1], hidden)[1][0])

    def decide(self) -> np.ndarray:
        seen, actions = self.pending, self.student.decide()
        for i, slot in enumerate(seen.slot.tolist()):
            self.deciding[slot] = len(self.decisions)
            told = {"slot": slot, "obs": seen.obs[i].tobytes(), "action": actions[i], "value": self.values[i]}
            told["call"] = self.calls
            self.decisions.append(told)
        self.calls += 1
        return actions

    def run(self, calls: int, rate: float = 0.0) -> list[dict[str, Any]]:
        """So many calls, then an update: what the learner took for it, decision by decision."""
        for _ in range(calls):
            self.call()
            self.decide()
        self.call()
        taken: list[dict[str, Any]] = []
        improve = self.student._improve

        def noting(told: dict[str, torch.Tensor], mine: torch.Tensor | None) -> torch.Tensor:
            outputs, values, _ = self.student.network(told["obs"], told["state"], told["hidden"][0])
            where = torch.ones(told["took"].shape, dtype=torch.bool) if mine is None else mine
            likely = self.student.network.log_probability(
                outputs[where], told["action"][where], told["mask"][where] if "mask" in told else None
            ).value
            for n, (t, i) in enumerate(torch.nonzero(where).tolist()):
                one = {name: column[t, i].detach().numpy() for name, column in told.items()}
                taken.append(
                    one
                    | {
                        "ratio": float(torch.exp(likely[n] - told["likely"][t, i]).detach()),
                        "now": float(values[t, i].detach()),
                    }
                )
            return improve(told, mine)

        self.student._improve = noting  # type: ignore[method-assign]
        self.student.learn(rate)
        self.student._improve = improve  # type: ignore[method-assign]
        return taken


def by_hand(stream: Stream, gamma: float, lam: float) -> dict[bytes, float]:
    """The advantage of each whole decision, agent by agent, from the last to the first."""
    found: dict[bytes, float] = {}
    own: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for told in stream.decisions:
        own[told["slot"]].append(told)
    asked = dict(zip(stream.pending.slot.tolist(), stream.values, strict=True))
    for slot, chain in own.items():
        gain: float | None = None
        for told, later in reversed([*pairwise([*chain, None])]):
            if "reward" not in told:  # under way
                gain = None
                continue
            ended = told["after"] is not None
            value = told["after"] if ended else (asked[slot] if later is None else later["value"])
            shrink = gamma ** int(told["steps"])
            delta = told["reward"] + shrink * value - told["value"]
            gain = delta + (0.0 if ended or gain is None else shrink * lam * gain)
            found[told["obs"]] = gain
    return found


@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([0.0, 0.5, 0.9, 1.0]))
def test_advantages_are_those_of_a_recursion_by_hand(seed: int, calls: int, lam: float):
    stream = Stream(learner(gae_lambda=lam), seed)
    told = {one["obs"].tobytes(): one for one in stream.run(calls)}
    expected = by_hand(stream, 0.9, lam)
    assert told.keys() == expected.keys()
    for key, one in told.items():
        assert float(one["gain"]) == pytest.approx(expected[key], abs=2e-5)
        assert float(one["return"]) == pytest.approx(float(one["gain"]) + float(one["value"]), abs=1e-6)


@given(st.integers(0, 10**6), st.integers(2, 12))
def test_twins_are_compared_with_one_another_at_each_time(seed: int, calls: int):
    """Lanes 0 and 1 are twins, 2 and 3, and 4 alone; also where a decision was under way at the update before."""
    stream = Stream(learner(gae_lambda=0.7, twins=2), seed)
    for _ in range(2):
        taken = stream.run(calls)
        told = {d["obs"]: d for d in stream.decisions}
        own = [(told[one["obs"].tobytes()], float(one["return"]) - float(one["value"])) for one in taken]
        for (mine, gain), one in zip(own, taken, strict=True):
            others = [g for d, g in own if d["call"] == mine["call"] and d["slot"] // 2 == mine["slot"] // 2]
            beside = (sum(others) - gain) / max(len(others) - 1, 1)
            assert float(one["gain"]) == pytest.approx(gain - beside, abs=2e-5)


def test_agents_of_a_lane_have_their_own_twins():
    spec, settings_ = NUMBERS, Hyperparameters(hidden=(8,), twins=2)
    student = Learner(8, WIDTH, STATE, spec, settings_, corrects=False, masked=False, seed=1, agents=2)
    assert student._twin.tolist() == [0, 1, 0, 1, 2, 3, 2, 3]


KINDS = {
    "numbers": {},
    "choices": {"spec": CHOICES, "masked": True},
    "mixed": {"spec": MIXED, "masked": True},
    "memory": {"gru": 6},
    "memory and choices": {"gru": 6, "spec": CHOICES, "masked": True},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_decision_is_learned_from_once_as_it_was_made_also_if_it_was_under_way(kind: str):
    options = KINDS[kind]
    student = learner(**options)
    stream = Stream(student, 3, options.get("spec", NUMBERS), options.get("masked", False))
    learned: list[bytes] = []
    late = 0
    for calls in (3, 40, 1, 9, 30):
        before = {d["obs"] for d in stream.decisions}
        taken = stream.run(calls)
        for one in taken:
            told = next(d for d in stream.decisions if d["obs"] == one["obs"].tobytes())
            assert one["action"].tobytes() == told["action"].tobytes()
            assert one["ratio"] == pytest.approx(1.0, abs=1e-5)
            assert one["now"] == pytest.approx(told["value"], abs=1e-5)
            late += told["obs"] in before
            learned.append(told["obs"])
    whole = [d["obs"] for d in stream.decisions if "reward" in d]
    assert sorted(learned) == sorted(whole)
    assert late > 3 and len(whole) > 150


def test_the_memory_of_another_episode_shows():
    student = learner(gru=6)
    stream = Stream(student, 5)
    stream.call()
    stream.decide()
    assert np.abs(student._hidden[stream.pending.slot]).min(axis=1).max() > 0.0
    again = PolicyInputs(*stream.pending[:4], first=np.ones(len(stream.pending.slot), dtype=bool))
    values = stream.values
    student.ask(again, stream.brought(len(again.slot)))
    assert student._answer[1].numpy().tobytes() == values.tobytes()
    going_on = again._replace(first=np.zeros(len(again.slot), dtype=bool))
    student.decide()
    student.ask(going_on, stream.brought(len(again.slot)))
    assert (student._answer[1].numpy() != values).all()


@pytest.mark.parametrize("spec", [CHOICES, MIXED])
def test_what_is_forbidden_is_never_chosen_and_the_rest_is_chosen_fairly(spec: ActionSpec):
    student, drawn = learner(spec, masked=True), defaultdict(int)
    rng = np.random.default_rng(0)
    masks = rng.random((400, int(spec.ncats.sum()))) < 0.4
    masks[:, np.cumsum(spec.ncats) - spec.ncats] = True
    outputs = torch.zeros(400, spec.dim_c + int(spec.ncats.sum()))
    for _ in range(30):
        actions = student.network.draw(outputs, torch.from_numpy(masks), student.generator).detach().numpy()
        for element, start in enumerate(np.cumsum(spec.ncats) - spec.ncats):
            chosen = actions[:, spec.dim_c + element].astype(int)
            assert masks[np.arange(400), start + chosen].all()
            for row in range(400):
                drawn[tuple(masks[row, start : start + spec.ncats[element]]), chosen[row]] += 1
    for (mask, choice), count in drawn.items():
        total = sum(n for (other, _), n in drawn.items() if other == mask)
        assert count / total == pytest.approx(1.0 / sum(mask), abs=5.0 / total**0.5), choice


def test_the_probability_of_mixed_actions_is_that_of_their_parts():
    network = learner(MIXED).network
    outputs, actions = torch.tensor([[0.3, 1.0, 2.0, -1.0, 0.5]]), torch.tensor([[0.7, 2.0]])
    allowed = torch.tensor([[True, False, True, True]])
    normal = torch.distributions.Normal(0.3, np.exp(-0.5)).log_prob(torch.tensor(0.7))
    choice = torch.tensor([1.0, -1.0, 0.5]).softmax(0)[1].log()
    found = network.log_probability(outputs, actions, allowed).value.detach()
    assert float(found[0]) == pytest.approx(float(normal + choice), abs=1e-6)


def test_decisions_that_took_no_effect_move_the_critic_and_not_the_actor():
    def moved(took: bool) -> dict[str, bool]:
        student = learner(seed=2)
        stream = Stream(student, 8)
        stream.brought = lambda n: DecisionRewards(np.arange(1.0, n + 1), np.ones(n, int), np.full(n, took))  # type: ignore
        before = {name: tensor.clone() for name, tensor in student.network.state_dict().items()}
        stream.run(6, rate=1e-2)
        return {name: not torch.equal(t, before[name]) for name, t in student.network.state_dict().items()}

    assert all(moved(True).values())
    for name, changed in moved(False).items():
        assert changed == ("value_net" in name)


def test_the_actor_never_sees_the_state():
    student = learner(gru=6)
    obs, hidden = torch.randn(1, 4, WIDTH), torch.zeros(4, 6)
    one, other = (student.network(obs, state, hidden) for state in torch.randn(2, 1, 4, STATE))
    assert torch.equal(one[0], other[0]) and torch.equal(one[2], other[2])
    assert not torch.isclose(one[1], other[1]).any()


def test_the_network_of_a_learner_is_one_tensor_and_loads_in_place():
    student, other = learner(gru=4), learner(gru=4, seed=9)
    student.network.load_state_dict(other.network.state_dict())
    assert torch.equal(student._weights, other._weights)
    student._weights.data.zero_()
    assert not any(t.any() for t in student.network.state_dict().values())


@given(st.data())
@settings(max_examples=60)
def test_windows_hold_each_decision_once_behind_a_warm_up_of_its_own_episode(data: st.DataObject):
    n = data.draw(st.integers(0, 120))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    slot, first = rng.integers(0, 3, n), rng.random(n) < 0.1
    known = np.ones(n, dtype=bool)
    for s in range(3):
        known[np.flatnonzero(slot == s)[-1:]] = rng.random() < 0.5
    old = np.arange(n) < data.draw(st.integers(0, 30))
    index, mine = windows(slot, first, known, known & ~old)
    assert sorted(index[mine].tolist()) == np.flatnonzero(known & ~old).tolist()
    for column, wanted in zip(index.T, mine.T, strict=True):
        low, high = np.flatnonzero(wanted)[[0, -1]]
        assert wanted[low : high + 1].all() and high - low < LENGTH and low <= WARM_UP
        held = column[: high + 1]
        own = np.flatnonzero((slot == slot[held[0]]) & known)
        at = np.searchsorted(own, held)
        assert own[at].tolist() == held.tolist() and (np.diff(at) == 1).all()  # nothing of its agent is left out
        assert not first[held[1:]].any()
        if low < WARM_UP:
            assert first[held[0]] or at[0] == 0


def test_a_warm_up_is_the_last_eight():
    slot = np.array([0, 1] * 12 + [2])
    assert last_of_each(slot).tolist() == [*range(8, 24), 24]
