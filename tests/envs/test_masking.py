"""To whom masks are offered, in which form, and where it is told that one was not kept."""

import pickle
from typing import Any

import numpy as np
import pytest
from masked_worlds import Age, Lamp, lamps

from heron_env import BatchEnv, Disturbance, HeronEnv, SystemAgent, rule
from heron_env.core.masking import flat
from heron_env.core.policy import OnBatches, takes
from heron_env.errors import RuleError
from heron_env.lab import NetworkPolicy
from heron_env.lab.trained import Network, Scaling, act_of

KINDS = ("lamp", "pair", "dimmer", "hand")


class Asks:
    """Keeps the masks that it is given; chooses what they allow."""

    def __init__(self, spaces: dict[str, Any]) -> None:
        self.space, self.masks = spaces, list[Any]()

    def forward(self, vector: np.ndarray, *, mask: Any) -> Any:
        self.masks.append(mask)
        return self.space.sample(mask)


class AsksForMany(OnBatches):
    """The same for batches; the likeliest of what is allowed is the last choice."""

    def __init__(self) -> None:
        self.masks = list[Any]()

    def forward_batch(self, vectors: np.ndarray, masks: Any = None) -> np.ndarray:
        self.masks.append(masks)
        chosen = np.zeros(len(vectors)) if masks is None else 2 - masks[:, ::-1].argmax(axis=1)
        return chosen[:, None].astype(np.float64)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("clock", ["synchronous", "event_driven"])
def test_a_policy_that_declares_a_mask_gets_it_as_its_space_takes_it(kind: str, clock: str):
    env = lamps(kind, compile=False)
    asks = Asks(env.action_space(f"{kind}_0"))
    result = getattr(env, f"run_{clock}")({"*": asks}, seed=0)
    assert len(asks.masks) == 30 and result.masked == {f"{kind}_0": 0}
    assert {type(mask) for mask in asks.masks} == {{"lamp": np.ndarray, "pair": tuple}.get(kind, dict)}


def test_policies_of_objects_functions_and_batches_may_declare_it():
    def plain(vector: Any) -> int:
        return 0

    assert takes(lambda vector, mask=None: 0, "mask") and not takes(plain, "mask") and not takes(print, "mask")
    assert takes(Asks({}).forward, "mask") and takes(AsksForMany().forward_batch, "masks")
    env, found = lamps("lamp", compile=False), list[Any]()

    class OnStates:
        def decide_action(self, state: Any, mask: Any = None) -> int:
            found.append(mask)
            return 0

    env.run_synchronous({"*": OnStates()}, seed=0)
    assert len(found) == 30 and found[-1].tolist() == [1, 1, 1]


def test_without_a_rule_the_mask_is_none_and_infos_have_none():
    env, found = lamps("lamp", compile=False, commanded=True), list[Any]()
    env.run_synchronous({"*": lambda vector, mask: found.append(mask) or [0.0]}, seed=0)
    assert found == [None] * 30, "the zone has no mask of its own"
    assert "action_mask" not in env.reset(seed=0)[1]["zone_1"]


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.e2e)])
def test_a_batch_asks_its_policies_with_the_masks_of_those_that_are_asked(compile: bool):
    asks = AsksForMany()
    batch = BatchEnv(lambda: lamps("lamp", "lamp", "pair", "dimmer", compile=compile), 3, seed=0, others={"lamp": asks})
    batch.reset()
    for step in range(12):
        batch.step({"pair": np.tile([1.0, 0.0], (3, 1, 1))})
        assert asks.masks[-1].shape == (6, 3) and asks.masks[-1].dtype == np.int8
        assert (asks.masks[-1][:, 1] == 1).all() == (step > 0 and step % 3 == 0), "0.3 s after each change"
    single = lamps("lamp", "lamp", "pair", "dimmer", compile=compile)
    policies = {"lamp": AsksForMany(), "pair": lambda vector: [1, 0], "dimmer": lambda vector: {"c": [0.0], "d": 0}}
    assert set(single.run_synchronous(policies, seed=0).masked.values()) == {0}


def test_a_trained_policy_never_chooses_what_is_forbidden():
    random = np.random.default_rng(0)
    layer = (random.normal(size=(4, 5)).astype(np.float32), np.zeros(5, dtype=np.float32))
    vectors = random.normal(size=(200, 4)).astype(np.float32)
    masks = (random.random((200, 5)) < 0.5).astype(np.int8)
    masks[:, [1, 4]] = 1
    first = np.array([0, 2])
    for deterministic in (True, False):
        act = act_of(np.zeros(0), np.zeros(0), (2, 3))
        policy = NetworkPolicy(
            Network((layer,)), Scaling(np.zeros(4), np.ones(4)), act, deterministic=deterministic
        )  # fmt: skip
        draws = random.integers(2**64, size=200, dtype=np.uint64)
        free, bound = policy.forward_batch(vectors, None, draws), policy.forward_batch(vectors, masks, draws)
        chosen = bound.astype(int) + first
        assert np.take_along_axis(masks, chosen, axis=1).all()
        kept = np.take_along_axis(masks, free.astype(int) + first, axis=1) == 1
        assert (bound[kept] == free[kept]).all() and not kept.all()


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.e2e)])
def test_the_environment_tells_whose_choice_was_masked_and_keeps_it_in_snapshots(compile: bool):
    env = lamps("pair", "dimmer", "lamp", compile=compile)  # the classes of above: they are compiled once
    env.reset(seed=0)
    assert not any(decision.masked for decision in env.last_decisions.values())
    env.step({"pair_0": [0, 2], "dimmer_1": {"c": [0.5], "d": 0}})
    last = env.last_decisions
    assert last["pair_0"].masked and not last["dimmer_1"].masked
    assert last["pair_0"].reason == "the caller's action; a choice was forbidden when it fell, the no-op fell"
    assert env.simulation.lane.actions()[2] == [0.0, 0.0], "the other choice stays"
    assert pickle.loads(pickle.dumps(env)).last_decisions == last
    env.reset(seed=0)
    assert not env.last_decisions["pair_0"].masked


def test_whoever_has_crashed_is_offered_its_no_op_alone():
    env = lamps("pair", compile=False)
    crash = Disturbance(0.15, "agent_crash", {"agent": "pair_0"}, duration=0.2)
    _, infos = env.reset(seed=0, options={"disturbances": [crash]})
    told = []
    for _ in range(6):
        told.append(flat(infos["pair_0"]["action_mask"]).tolist())
        *_, infos = env.step({})
    assert told[0][:2] == [1, 1] and [0, 1, 1, 0, 0] in told


class Shut(Lamp):
    @staticmethod
    @rule
    def action_mask(age: Age) -> tuple[bool, ...]:
        return age.age < 0.2, False, False


class Short(Lamp):
    @staticmethod
    @rule
    def action_mask(age: Age) -> tuple[bool, ...]:
        return True, age.age > 0.1


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.e2e)])
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (
            Shut,
            "Shut.action_mask of 'lamp_2' forbids every choice of Discrete(3); where nothing else is allowed the no-op",
        ),
        (Short, "a flat tuple or array of 3 numbers is needed, one for each choice of Discrete(3); 0 forbids it"),
    ],
)
def test_what_is_no_mask_is_refused_in_both_executions(kind: type[Lamp], words: str, compile: bool):
    env = HeronEnv(SystemAgent("s", Lamp("lamp_1"), kind("lamp_2")), dt=0.1, max_steps=9, compile=compile)
    with pytest.raises(RuleError) as raised:
        env.reset(seed=0)
        for _ in range(5):
            env.step({})
    assert words in str(raised.value) and "action_mask of 'lamp_2'" in str(raised.value)
