"""What an agent sees of itself follows the tags as what others see of it does: in every form, on both clocks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from refusing import refuses

from heron_env import (
    Continuous,
    CoordinatorAgent,
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ScheduleConfig,
    SystemAgent,
    Vector,
    World,
    quantity,
    rule,
)
from heron_env.core.policy import Answer, Asked
from heron_env.errors import RuleError
from heron_env.injection.questions import Questions, Telling
from heron_env.injection.setting import EnvironmentFacts
from heron_env.observability.config import ByTags

SECRET = 0.640625
"""What nobody but those whom a tag names may see; exact in float32."""


class Tank(FeatureProvider):
    """All tags of single quantities beside a feature of the owner's."""

    level: float = quantity(default=0.5, low=0.0, high=1.0)
    order: float = quantity(default=0.0, low=0.0, high=1.0, visibility=("upper_level",))
    shared: float = quantity(default=0.0, low=0.0, high=1.0, visibility=("siblings", "owner"))
    said: float = quantity(default=0.0, low=0.0, high=1.0, visibility=("public",), to_owner=False)


class Report(FeatureProvider):
    """For the one above and the system agent, but for one number."""

    visibility = ("upper_level", "system")
    wear: float = quantity(default=0.0, low=0.0, high=1.0)
    parts: np.ndarray = quantity(default=0.0, low=0.0, high=1.0, shape=(2,))
    own: float = quantity(default=0.0, low=0.0, high=1.0, visibility=("owner",))


class Ledger(FeatureProvider):
    """For insiders alone."""

    visibility = ()
    sum: float = quantity(default=0.0, low=0.0, high=1.0)


FEATURES = (Report, Tank, Ledger)
OWN = ["Report.own", "Tank.level", "Tank.shared"]
WHOLE = ["Report.wear", "Report.parts[0]", "Report.parts[1]", "Report.own", "Tank.level", "Tank.order", "Tank.shared"]
WHOLE += ["Ledger.sum"]
HIDDEN = {"Report.wear", "Report.parts[0]", "Report.parts[1]", "Tank.order", "Tank.said", "Ledger.sum"}


class Pump(FieldAgent):
    features = FEATURES
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Tank.level)
    def apply_action(tank: Tank, action: Vector) -> float:
        return tank.level + 0.125 * action[0]


class Local(Pump):
    """Reads itself by wire."""

    own_rows = "local"


class Zone(CoordinatorAgent):
    features = FEATURES


class Top(SystemAgent):
    features = FEATURES


class Pumps(HeronEnv):
    """What the tags hide from its owner has one value everywhere, and stays."""

    batched = True
    secret = SECRET

    def begin(self, world: World) -> None:
        for kind in (Pump, Local, Zone, Top):
            seen = world[kind]
            for name in (seen.Report.wear, seen.Report.parts, seen.Tank.order, seen.Ledger.sum):
                name[...] = self.secret


def pumps(secret: float = SECRET, **options: Any) -> Pumps:
    """A nested hierarchy whose hidden numbers are all `secret`."""
    inner = Zone("zone_2", Pump("pump_3"), Local("local_1"))
    env = Pumps(Top("top", Zone("zone_1", Pump("pump_1"), Pump("pump_2"), inner)), max_steps=4, **options)
    env.secret = secret
    return env


def own_names(env: HeronEnv, agent: str) -> list[str]:
    """Of its observation those of its own features."""
    return [name for name in env.observation_names(agent) if name.count(".") == 1 and not name.startswith("age.")]


@pytest.mark.parametrize("agent", ["top", "zone_2", "pump_1", "local_1"])
def test_the_tags_of_a_feature_or_of_a_quantity_hide_it_from_its_owner(agent: str):
    env, system = pumps(), agent == "top"
    expected = ["Report.wear", "Report.parts[0]", "Report.parts[1]", *OWN] if system else OWN
    assert own_names(env, agent) == expected
    matrix = env.visibility_matrix()
    own = {sight.column: sight for sight in matrix.row(agent, hidden=True) if sight.owner == agent}
    visible = {column.partition(".")[2] for column, sight in own.items() if not sight.hidden}
    assert visible == set(expected)
    assert {sight.factor for sight in own.values() if not sight.hidden} == {0.0}
    assert own[f"{agent}.Ledger.sum"].reason == own[f"{agent}.Tank.order"].reason == "no tag"
    assert own[f"{agent}.Tank.said"].reason == "said"
    assert matrix.level_of(agent, f"{agent}.Tank.order") is None
    assert matrix.level_of(agent, f"{agent}.Tank.level") == 0.0
    assert (env.observation_space(agent).shape, len(env.observation_units(agent))) == (
        (len(env.observation_names(agent)),), len(env.observation_names(agent))
    )  # fmt: skip


def test_common_noise_lies_on_others_and_never_on_what_one_sees_of_oneself():
    matrix = pumps(observability=ByTags(common_noise=0.25)).visibility_matrix()
    assert matrix.level_of("top", "top.Report.wear") == matrix.level_of("pump_1", "pump_1.Tank.level") == 0.0
    assert matrix.level_of("zone_1", "pump_1.Tank.order") == 0.25
    assert matrix.level_of("pump_1", "pump_1.Tank.order") is None


@pytest.mark.parametrize("enabled", [True, False])
def test_with_a_matrix_an_agent_is_an_insider_of_itself_whatever_its_tags(enabled: bool):
    env = pumps(observability={"default": {"level": "unaware"}, "enabled": enabled})
    for agent in env.hierarchy.ids:
        assert own_names(env, agent) == WHOLE, "all but what it only says"


def forms(env: HeronEnv, agent: str) -> dict[str, Any]:
    """What an agent is shown now, by every way there is."""
    level = env.hierarchy.level[env.hierarchy.index[agent]]
    observation = env.proxy.get_observation(agent).to_dict()
    state = env.proxy.state_cache["agents"][agent]
    return {
        "vector": env.simulation.model.plan.vector(
            env.hierarchy.index[agent], env.proxy.cache, env.proxy.moment
        ).tolist(),
        "observation": observation,
        "local": {name: v.tolist() for name, v in env.proxy.get_local_state(agent).items()},
        "observed_by": {name: v.tolist() for name, v in state.observed_by(agent, level).items()},
        "object": env.observed_state(agent).model_dump()["agents"].get(agent),
    }


@pytest.mark.parametrize("agent", ["pump_1", "zone_2"])
def test_no_form_of_an_observation_tells_the_owner_what_the_tags_hide(agent: str):
    env = pumps()
    env.reset(seed=0)
    before = forms(env, agent)
    own = [
        i for i, name in enumerate(env.state_names) if name.startswith(f"{agent}.") and name[len(agent) + 1 :] in HIDDEN
    ]
    assert len(own) == len(HIDDEN)
    env.simulation.truth[own] = 0.1875
    assert forms(env, agent) == before
    assert before["local"].keys() == before["observed_by"].keys() == {"Report", "Tank"}
    assert len(before["local"]["Report"]) == 1 and len(before["local"]["Tank"]) == 2


def push(vector: Any) -> list[float]:
    return [0.5]


LATE = ScheduleConfig(obs_delay=0.3, act_delay=0.2, msg_delay=0.1)


def of_deciders(env: HeronEnv, schedule: Any, **options: Any) -> Mapping[str, list[Any]]:
    """What each was shown in an event-driven run."""
    result = env.run_event_driven({"*": push}, seed=0, schedule=schedule, record=("observations",), **options)
    return result.observations


class Deaf(FeatureProvider):
    visibility = ("siblings",)
    level: float = quantity(default=0.25, low=0.0, high=1.0)


class Mute(FieldAgent):
    """Sees its sibling and nothing of its own, by wire or not."""

    features = (Deaf,)
    action = Continuous(-1.0, 1.0)
    own_rows = "local"

    @staticmethod
    @rule(writes=Deaf.level)
    def apply_action(deaf: Deaf, action: Vector) -> float:
        return deaf.level + 0.125 * action[0]


def mutes(**options: Any) -> HeronEnv:
    return HeronEnv(SystemAgent("top", Mute("m_1"), Mute("m_2")), max_steps=4, observe_age=True, **options)


@pytest.mark.parametrize("compile_rules", [False, True])
def test_who_sees_nothing_of_itself_has_no_age_of_itself_and_what_it_sees_of_others_is_late(compile_rules: bool):
    env = mutes(compile=compile_rules)
    assert env.observation_names("m_1") == ["m_2.Deaf.level", "age.m_2"]
    (_, first), *_, (_, last) = of_deciders(env, replace(LATE, msg_delay=0.5), t_end=4.0)["m_1"]
    assert first.tolist()[0] == 0.25
    assert last[1] > 0.0, "another's age, which reading oneself by wire does not make fresh"


class Questioned:
    """Keeps what it is asked."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        return Answer(np.array([0.5]))


@pytest.mark.parametrize("tier", ["minimal", "full"])
def test_an_endpoint_is_told_nothing_that_the_tags_hide_from_the_agent_it_plays(tier: Any):
    bodies = []
    for secret in (0.3125, SECRET):
        env, policy = pumps(secret), Questioned()
        env.run_synchronous({"*": policy}, seed=3)
        questions = Questions(EnvironmentFacts.of(env), Telling(privacy_tier=tier))
        bodies.append([questions.request(asked).model_dump_json() for asked in policy.asked])
    assert bodies[0] == bodies[1] != []
    for body in bodies[1]:
        assert str(SECRET) not in body
        assert not [name for name in HIDDEN if f'"{name}"' in body]


class Shown(NamedTuple):
    number: float


@pytest.mark.parametrize(("kind", "field"), [(Report, "wear"), (Tank, "order"), (Ledger, "sum")])
def test_a_rule_for_infos_may_not_read_what_the_tags_hide_from_its_agent(kind: Any, field: str):
    class Informing(Pump):
        @staticmethod
        @rule
        def get_local_info(own: kind) -> Shown:
            return Shown(getattr(own, field))

    with pytest.raises(RuleError, match=f"get_local_info reads {kind.__name__} of 'a', parts of which are hidden"):
        HeronEnv(SystemAgent("top", Informing("a")), max_steps=1, compile=False)


def test_bookkeeping_and_what_the_owner_sees_may_be_in_infos():
    class Count(FeatureProvider):
        seen: float = 0.5
        ledger: float = quantity(default=0.75, observed=False)

    class Counting(Pump):
        features = (Tank, Count)

        @staticmethod
        @rule
        def get_local_info(count: Count) -> Shown:
            return Shown(count.seen + count.ledger)

    _, infos = HeronEnv(SystemAgent("top", Counting("a")), max_steps=1, compile=False).reset(seed=0)
    assert infos["a"]["number"] == 1.25


def chooser(tags: tuple[str, ...], **options: Any) -> HeronEnv:
    """One whose mask reads a feature with these tags."""

    class Mode(FeatureProvider):
        visibility = tags
        on: float = 1.0

    class Chooser(FieldAgent):
        features = (Mode,)
        action = Discrete(2)

        @staticmethod
        @rule
        def action_mask(mode: Mode) -> tuple[bool, ...]:
            return True, mode.on > 0.5

    return HeronEnv(SystemAgent("top", Chooser("a")), max_steps=2, compile=False, **options)


@pytest.mark.parametrize("tags", [(), ("upper_level", "system"), ("siblings",)])
def test_a_mask_may_not_read_what_the_tags_hide_from_the_agent_it_is_offered_to(tags: tuple[str, ...]):
    with refuses(
        RuleError,
        f"Chooser.action_mask reads Mode, of which Mode.on is hidden (visibility={tags}); a mask is offered to the "
        "agent, so it may read dt and the agent's own observed features only: move what it needs into a feature that "
        "is observed as a whole",
    ):
        chooser(tags)
    for env in (chooser((*tags, "owner")), chooser(tags, observability={"default": {"level": "unaware"}})):
        _, infos = env.reset(seed=0)
        assert infos["a"]["action_mask"].tolist() == [1, 1]
