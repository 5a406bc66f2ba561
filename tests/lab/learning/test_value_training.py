"""VDN and QMIX, from the networks' laws to trainings from end to end.

Plan: VDN's value is the sum, QMIX's never falls with an agent's, so that in both the best of each is the best of all;
what a value is to become agrees with a calculation by hand, with masks, a cut-off and an end; what is remembered is
what single environments give for the same choices; both learn what must be done together; seeds, run folders and wrong
arguments are as in any training.
"""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cli_kit import as_json
from ends import Choice, Chooser, Life
from masked_worlds import expected, lamps
from training_kit import GRID, tiny, trained

from heron_env import (
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    MultiDiscrete,
    ScheduleConfig,
    SystemAgent,
    TrainingDelays,
    Vector,
    World,
    load_policy,
    make,
    quantity,
    register,
    rule,
)
from heron_env.errors import ConfigError
from heron_env.lab import Hyperparameters, RunFolder
from heron_env.lab.learning.group import FIRST_SEED
from heron_env.lab.learning.plan import make_plan
from heron_env.lab.learning.validation import Validation
from heron_env.lab.learning.value_networks import TeamValues, aims
from heron_env.lab.learning.value_training import ReplayMemory, TeamStudent, ValueTraining

TEAM, TOAST = "test/Team-v0", "test/Toast-v0"
BOTH = ("vdn", "qmix")
SLOW = {"lamp_1": ScheduleConfig(tick_interval=0.2), "*": ScheduleConfig(tick_interval=0.1)}


class Ender(Chooser):
    """Ends by its own rule."""

    features = (Choice, Life)

    @staticmethod
    @rule(writes=Life.age)
    def advance(life: Life, dt: float) -> float:
        return life.age + dt

    @staticmethod
    @rule
    def is_terminated(life: Life) -> bool:
        return life.age > life.end


class Signalled(HeronEnv):
    """What a trainer should use is not what agents earn."""

    def training_rewards(self, world: World) -> Any:
        return 10.0 - world[Chooser].Choice.value


def choosers(cls: type[HeronEnv], kind: type[Chooser], *features: Any, max_steps: int | None = 4) -> HeronEnv:
    agents = [kind(f"chooser_{i}", *(each[i] for each in features)) for i in range(2)]
    return cls(SystemAgent("system_agent", *agents), max_steps=max_steps)


def team(kind: str, **options: Any) -> HeronEnv:
    """Two agents that make choices, of one kind."""
    if kind == "signalled":
        return choosers(Signalled, Chooser)
    if kind == "ending":
        return choosers(HeronEnv, Ender, [Life(end=2.0), Life(end=5.0)], max_steps=None)
    if kind == "slow":
        return lamps("lamp", "lamp", max_steps=7, schedule=SLOW, **options)
    return lamps(kind, kind, max_steps=7, **options)


register(TEAM, team)


class Cue(FeatureProvider):
    """What an agent is shown, and what it answered."""

    cue: float = quantity(default=0.0, low=0.0, high=2.0)
    answer: int = quantity(default=0, low=0, high=2, observed=False)


class Judge(FeatureProvider):
    """Have all answered rightly?"""

    visibility = ()
    right: float = quantity(default=0.0, low=0.0, high=1.0)


class Guest(FieldAgent):
    """Answers with one of three."""

    features = (Cue,)
    action = Discrete(3)

    @staticmethod
    @rule(writes=Cue.answer)
    def apply_action(cue: Cue, action: Vector) -> int:
        return int(action[0])

    @staticmethod
    @rule
    def compute_local_reward(judge: Judge) -> float:
        return judge.right


class Toast(HeronEnv):
    """All earn 1 where each has answered with its own cue: nobody's answer is worth anything alone."""

    global_features = (Judge,)
    batched = True

    def begin(self, world: World) -> None:
        world[Guest].Cue.cue[...] = np.floor(3.0 * world.draw("cue", 2))

    def advance(self, world: World, dt: float) -> None:
        guests = world[Guest].Cue
        world.Judge.right[...] = (guests.answer == guests.cue).all(axis=-1, keepdims=True)

    def finish(self, world: World) -> None:
        self.begin(world)


register(TOAST, lambda: Toast(SystemAgent("system_agent", Guest("guest_1"), Guest("guest_2")), max_steps=5))


# The laws


def network(action: Any, agents: int = 2, seen: int = 4, state: int = 0, seed: int = 0) -> TeamValues:
    """With random weights, so large that much can be negative."""
    torch.manual_seed(seed)
    result = TeamValues(seen, state, agents, action, Hyperparameters(hidden=(8,), mixer=6))
    with torch.no_grad():
        for weights in result.parameters():
            weights.copy_(torch.randn_like(weights))
    return result


def test_vdn_adds_up_what_the_agents_chose():
    values = torch.arange(12.0).view(1, 2, 6)
    choices = torch.tensor([[[0, 2], [1, 3]]])  # each agent chooses twice
    total = network(MultiDiscrete([2, 4])).total(values, choices, torch.zeros(1, 0))
    assert total.tolist() == [0.0 + (2 + 2) + 7.0 + (6 + 2 + 3)]


@pytest.mark.parametrize("seed", range(20))
def test_qmix_never_falls_with_the_value_of_any_choice(seed: int):
    mixer = network(Discrete(3), agents=4, state=5, seed=seed).mixer
    values, state = (10.0 * torch.randn(200, 4)).requires_grad_(), 10.0 * torch.randn(200, 5)
    (slopes,) = torch.autograd.grad(mixer(values, state).sum(), values)
    assert (slopes >= 0.0).all() and (slopes > 0.0).any()
    again = mixer(values, 10.0 * torch.randn(200, 5))
    assert not torch.allclose(again, mixer(values, state))


def test_qmix_begins_nearly_as_the_sum():
    mixer = TeamValues(4, 5, 3, Discrete(2), Hyperparameters()).mixer
    values, state = torch.rand(100, 3), torch.randn(100, 5)
    with torch.no_grad():
        torch.testing.assert_close(mixer(values, state), values.sum(dim=-1), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("state", [0, 3])
@pytest.mark.parametrize("action", [Discrete(3), MultiDiscrete([2, 3])])
def test_the_best_of_each_agent_is_the_best_of_the_team(action: Any, state: int):
    net, n = network(action, state=state, seed=4), 40
    size = sum(net.ncats)
    allowed = torch.rand(n, 2, size) < 0.7
    allowed[..., 0] = allowed[..., net.ncats[0] % size] = True
    with torch.no_grad():
        values, states = net(torch.randn(n, 2, 4), allowed), torch.randn(n, state)
        best = net.best(values)
        each = [list(product(*map(range, net.ncats)))] * 2
        joint = [torch.tensor(both).expand(n, 2, -1) for both in product(*each)]
        totals = torch.stack([net.total(values, choices, states) for choices in joint])
        reached = net.total(values, best, states)
    totals = torch.where(totals.isnan(), -torch.inf, totals)
    assert reached.isfinite().all() and (reached >= totals.max(dim=0).values - 1e-4).all()


def by_hand(weights: list[float], state: int = 0) -> TeamValues:
    """Values of three choices: what is seen, times these weights."""
    net = TeamValues(1, state, 2, Discrete(3), Hyperparameters(hidden=()))
    with torch.no_grad():
        net.action_net.weight.copy_(torch.tensor(weights)[:, None])
        net.action_net.bias.zero_()
    return net


def test_what_values_are_to_become_agrees_with_a_calculation_by_hand():
    """The network prefers the last choice, the target, which values (2, 5, 3) times what is seen, another."""
    online, target = by_hand([0.0, 1.0, 2.0]), by_hand([2.0, 5.0, 3.0])
    allowed = torch.ones(4, 2, 3, dtype=torch.bool)
    allowed[1, 0, 2] = False  # agent 0 can't do its best
    batch = {
        "later_seen": torch.tensor([[1.0, 10.0], [1.0, 10.0], [1.0, 10.0], [-1.0, 10.0]])[..., None],
        "later_allowed": allowed,
        "later_state": torch.zeros(4, 0),
        "reward": torch.tensor([0.5, 0.5, 0.5, 0.0]),
        "terminated": torch.tensor([False, False, True, False]),
    }
    wanted = [
        0.5 + 0.9 * (3.0 + 30.0),
        0.5 + 0.9 * (5.0 + 30.0),
        0.5,  # the end by a rule has no future; a cut-off, as in all the others, has
        0.9 * (-2.0 + 30.0),  # where -1 is seen the network prefers the first choice
    ]
    torch.testing.assert_close(aims(online, target, batch, 0.9), torch.tensor(wanted))


def test_the_target_s_mixer_is_given_the_state_that_follows():
    online, target = by_hand([0.0, 0.0, 0.0], state=1), by_hand([1.0, 1.0, 1.0], state=1)
    with torch.no_grad():
        for weights in target.mixer.parameters():
            weights.zero_()
        target.mixer.last_bias[0].weight[0, 0] = target.mixer.last_bias[2].weight[0, 0] = 1.0  # the state itself
    batch = {
        "later_seen": torch.ones(2, 2, 1), "later_allowed": torch.ones(2, 2, 3, dtype=torch.bool),
        "later_state": torch.tensor([[3.0], [7.0]]), "reward": torch.zeros(2), "terminated": torch.zeros(2).bool(),
    }  # fmt: skip
    assert aims(online, target, batch, 0.5).tolist() == [1.5, 3.5]


def test_a_replay_memory_keeps_the_last_ones():
    memory, generator = ReplayMemory(5), torch.Generator().manual_seed(0)
    for first in range(0, 12, 3):
        memory.add(number=np.arange(first, first + 3), twice=2 * np.arange(first, first + 3))
        drawn = memory.draw(200, generator, "cpu")
        assert set(drawn["number"].tolist()) == set(range(max(0, first - 2), first + 3))
        assert (drawn["twice"] == 2 * drawn["number"]).all()
    memory.add(number=np.arange(20, 30), twice=2 * np.arange(20, 30))  # more at once than it holds
    assert set(memory.draw(200, generator, "cpu")["number"].tolist()) == set(range(25, 30))


# What is remembered


LANES = 3


def course_of(folder: Path, options: dict[str, Any], **more: Any) -> tuple[ValueTraining, TeamStudent]:
    plan = make_plan(
        TEAM, folder, options, None, "default", total_steps=600, seed=0, time_limit=None, validations=0,
        hyperparameters=tiny(num_envs=LANES), **{"algorithm": "qmix", **more},
    )  # fmt: skip
    env = plan.make()
    course = ValueTraining(plan, env, {}, Validation(env, TEAM, {}, 0))
    (student,) = course.students
    return course, student


@pytest.mark.parametrize(
    ("kind", "delays"),
    [
        ("lamp", None), ("pair", None), ("slow", None), ("ending", None), ("signalled", None),
        ("lamp", TrainingDelays(observation=(0, 2), action=1)),
    ],
)  # fmt: skip
def test_what_is_remembered_is_what_single_environments_give(kind: str, delays: Any, tmp_path: Path):
    course, student = course_of(tmp_path, {"kind": kind}, delays=delays)
    course.prepare()
    for _ in range(20):
        course._step()
    rows = {name: column[: student.memory.count].numpy() for name, column in student.memory.columns.items()}
    scales, forbidden, ends, cut_offs, brought = student.scales, 0, 0, 0, list[float]()
    for lane in range(LANES):
        env = course.plan.make()
        agents = env.possible_agents
        seen, infos = env.reset(seed=FIRST_SEED + lane)
        for row in range(lane, 20 * LANES, LANES):
            found = {name: column[row] for name, column in rows.items()}
            for place, agent in enumerate(agents):
                if agent in env.agents:
                    np.testing.assert_array_equal(found["seen"][place], scales.seen(seen[agent][None])[0])
                    if "action_mask" in infos[agent]:
                        assert found["allowed"][place].tolist() == env_mask(env, infos[agent])
                    flags = np.split(found["allowed"][place], np.cumsum(student.network.ncats)[:-1])
                    assert all(part[choice] for part, choice in zip(flags, found["choices"][place], strict=True))
                    forbidden += int((~found["allowed"][place]).sum())
                else:
                    assert found["allowed"][place].tolist() == [True, False, False]
            wide = np.append(env.state(), np.zeros(len(agents)))[None].astype(np.float32)
            np.testing.assert_array_equal(found["state"], scales.state(wide)[0, : len(env.state_names)])
            lived = list(env.agents)
            deciding = [agent for agent in lived if infos[agent]["is_active"]]
            seen, rewards, _, truncated, infos = env.step(
                {agent: found["choices"][agents.index(agent)] for agent in lived}
            )
            earned = env.training_signal() if kind == "signalled" else rewards
            brought += [earned[agent] for agent in deciding]
            mean = np.mean([earned.get(agent, 0.0) for agent in agents])
            assert found["reward"] == pytest.approx(mean * scales.reward, rel=1e-6)
            cut_off = any(truncated.values())
            assert found["terminated"] == (not env.agents and not cut_off)
            ends, cut_offs = ends + int(found["terminated"]), cut_offs + int(cut_off)
            for place, agent in enumerate(agents):
                if agent in lived:
                    np.testing.assert_array_equal(found["later_seen"][place], scales.seen(seen[agent][None])[0])
                if cut_off and kind != "signalled":
                    slow = env.timings[env.hierarchy.index[agent]].tick > env.dt_ns
                    wanted = [1, 0, 0] if slow else expected(env, agent, seen[agent])
                    assert found["later_allowed"][place].tolist() == [bool(flag) for flag in wanted]
            wide = np.append(env.state(), np.zeros(len(agents)))[None].astype(np.float32)
            np.testing.assert_array_equal(found["later_state"], scales.state(wide)[0, : len(env.state_names)])
            if not env.agents:
                seen, infos = env.reset()
            else:
                after = rows["seen"][row + LANES : row + LANES + 1]
                assert not len(after) or after[0].tobytes() == found["later_seen"].tobytes()
    # who has ended, or waits for its turn, decides nothing
    assert list(course.transitions.values()) == [len(brought)]
    assert (len(brought) < 20 * LANES * len(agents)) == (kind in ("ending", "slow") or delays is not None)
    assert list(course.signals().values()) == pytest.approx([np.mean(brought)])
    assert (ends > 0) == (kind == "ending") and (cut_offs > 0) == (kind != "ending")
    assert forbidden > 0 or kind in ("ending", "signalled")


def env_mask(env: HeronEnv, info: Any) -> list[bool]:
    """The flat mask in an agent's infos."""
    given = info["action_mask"]
    return (
        np.concatenate([np.ravel(part) for part in given] if isinstance(given, tuple) else [given])
        .astype(bool)
        .tolist()
    )


# What is learned


def eager(**changes: Any) -> Hyperparameters:
    settings: dict[str, Any] = {
        "num_envs": 32, "n_steps": 5, "batch_size": 128, "n_epochs": 4, "gamma": 0.5, "hidden": (32,),
        "tau": 0.05, "mixer": 8,
    }  # fmt: skip
    return Hyperparameters(**{**settings, **changes})


@pytest.mark.parametrize("algorithm", BOTH)
def test_what_pays_only_together_is_learned(algorithm: str, tmp_path: Path):
    run = trained(
        tmp_path, TOAST, total_steps=20_000, algorithm=algorithm, hyperparameters=eager(learning_rate=1e-2),
        validations=0, validation_episodes=16,
    )  # fmt: skip
    of_ten = run.config.validation  # both guests in five steps
    assert of_ten["trained"] > 9.0 > 2.5 > of_ten["random"]
    policies, env = load_policy(tmp_path), make(TOAST)
    assert env.run_event_driven(policies, seed=1).returns["system_agent"] > 9.0


def model(run: RunFolder) -> list[bytes]:
    return [(run.path / kept.model).read_bytes() for kept in run.config.groups.values()]


def quick(folder: Path, env_id: str = TOAST, **options: Any) -> RunFolder:
    return trained(folder, env_id, **{"algorithm": "qmix", **options})


@pytest.mark.parametrize("algorithm", BOTH)
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(algorithm: str, tmp_path: Path):
    one, same, other = (
        model(quick(tmp_path / name, algorithm=algorithm, seed=seed)) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert one == same != other
    assert one != model(quick(tmp_path / "d", algorithm=next(a for a in BOTH if a != algorithm), seed=1))


def test_a_run_folder_is_as_any_and_says_which_algorithm_it_had(tmp_path: Path):
    run = quick(tmp_path, validations=2, hyperparameters=tiny(keep_best=True))
    kept = RunFolder.open(tmp_path)
    assert kept == run and (kept.config.algorithm, kept.config.trainer, kept.config.critic) == (
        "qmix",
        "lean",
        "central",
    )
    assert kept.config.kept_at is not None and kept.config.hyperparameters["mixer"] == 32
    env, policies = make(TOAST), load_policy(tmp_path)
    assert env.run_synchronous(policies, seed=3).same_course(env.run_event_driven(policies, seed=3))
    assert len(kept.curve()) >= 3


def test_a_run_is_gone_on_with_from_its_weights(tmp_path: Path):
    first = quick(tmp_path / "first")
    still = tiny(learning_rate=0.0, final_learning_rate=0.0)
    later = quick(tmp_path / "later", start_from=tmp_path / "first", hyperparameters=still)
    old, new = first.weights("guest"), later.weights("guest")
    assert old.keys() == new.keys() and all(torch.equal(old[name], new[name]) for name in old)
    assert any(name.startswith("mixer.") for name in old)
    lamp = quick(tmp_path / "lamp", TEAM, env_options={"kind": "lamp"})
    course, student = course_of(tmp_path, {}, start_from=lamp.path)
    begun = student._target.state_dict()
    assert all(torch.equal(begun[name], weights) for name, weights in lamp.weights("lamp").items())
    assert course.epsilon == course.plan.hyperparameters.final_epsilon  # it need not begin by chance
    with pytest.raises(ConfigError, match=r"and a mixer of 32; give Hyperparameters\(hidden=..., gru=..., mixer=...\)"):
        quick(tmp_path / "wrong", start_from=tmp_path / "first", hyperparameters=tiny(mixer=8))
    with pytest.raises(ConfigError) as error:
        quick(tmp_path / "wrong", start_from=tmp_path / "first", algorithm="vdn")
    assert str(error.value) == (
        f"train(start_from={str(tmp_path / 'first')!r}): that run has algorithm='qmix', this one 'vdn'; its weights "
        "would mean something else: give the same, or start anew"
    )


def test_agents_choose_by_chance_less_and_less(tmp_path: Path):
    course, student = course_of(tmp_path, {"kind": "lamp"})
    told = []
    for remaining in (1.0, 0.75, 0.5, 0.0):
        course.annealing.remaining = remaining
        told.append(course.epsilon)
    assert told == pytest.approx([1.0, 0.525, 0.05, 0.05])
    course.prepare()
    greedy = student.choose(0.0)
    assert all((student.choose(0.0) == greedy).all() for _ in range(5))
    student.now = student.now._replace(allowed=np.ones_like(student.now.allowed))
    drawn = np.concatenate([student.choose(1.0) for _ in range(500)])
    assert np.bincount(drawn.ravel()) / drawn.size == pytest.approx(1 / 3, abs=0.04)


def test_the_target_follows_by_tau_with_each_minibatch(tmp_path: Path):
    course, student = course_of(tmp_path, {"kind": "lamp"})
    course.prepare()
    course._step()
    for _ in range(3):
        before = [weights.clone() for weights in student._target.parameters()]
        student.improve(0.1)
        after = zip(before, student._target.parameters(), student.network.parameters(), strict=True)
        for was, now, network in after:
            torch.testing.assert_close(now, was + course.plan.hyperparameters.tau * (network - was))


def test_groups_of_one_kind_are_one_team_if_shared(tmp_path: Path):
    run = quick(
        tmp_path, "heron/GraphColoring-v0", env_options={"turns": "all", "max_steps": 5}, total_steps=64,
        hyperparameters=tiny(shared=True, gamma=0.9),
    )  # fmt: skip
    weights = run.weights("Human")
    assert weights["mixer.first.weight"].shape[0] == 3 * 6 * 32
    assert model(run)[0] == model(run)[1] == model(run)[2]


def test_the_command_line_trains_with_qmix(tmp_path: Path):
    words = ["train", "heron/Spread-v0", "-o", "continuous=false", "--steps", "1", "--algorithm", "qmix"]
    told = as_json(*words, "--out", tmp_path / "run")
    assert told["algorithm"] == RunFolder.open(tmp_path / "run").config.algorithm == "qmix"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"algorithm": "qmx"}, "train(algorithm='qmx'): must be one of ('ppo', 'vdn', 'qmix'). Did you mean 'qmix'?"),
        (
            {"schedule": ScheduleConfig()},
            "train(algorithm='qmix'): learns on the synchronous clock; leave schedule out, or write algorithm='ppo'",
        ),
        ({"critic": "central"}, "train(algorithm='qmix', critic='central'): critic is for 'ppo'; leave it out"),
        ({"trainer": "sb3"}, "train(algorithm='qmix', trainer='sb3'): trainer is for 'ppo'; leave it out"),
        (
            {"env_id": GRID},
            "train(algorithm='qmix'): group 'battery' of heron/BatteryGrid-v0 does [-1.0, 1.0], and VDN and "
            "QMIX make choices alone; write algorithm='ppo', or give its agents a Discrete or MultiDiscrete action",
        ),
        (
            {"hyperparameters": tiny(gru=4)},
            "Hyperparameters(gru=4): algorithm='qmix' can't; leave it out, or write algorithm='ppo'",
        ),
        ({"hyperparameters": tiny(tau=1.5)}, "Hyperparameters(tau=1.5): must be a number between 0 and 1"),
        ({"hyperparameters": tiny(tau="a")}, "Hyperparameters(tau='a'): must be a number between 0 and 1"),
        (
            {"hyperparameters": tiny(final_epsilon=None)},
            "Hyperparameters(final_epsilon=None): must be a number between 0 and 1",
        ),
        ({"hyperparameters": tiny(replay=0)}, "Hyperparameters(replay)=0: must be a whole number from 1 to 100000000"),
    ],
)
def test_what_vdn_and_qmix_can_t_is_named(options: dict[str, Any], told: str, tmp_path: Path):
    with pytest.raises(ConfigError) as error:
        quick(tmp_path, **options)
    assert str(error.value).startswith(told)
