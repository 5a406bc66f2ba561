"""The conformance kit: sound environments pass, and each broken one is told what is wrong and how to mend it."""

import gc
import json
import random  # noqa: TID251  its state must stay as it was
import sys
import time
import types
from collections.abc import Sequence
from functools import partial
from typing import Any

import broken_envs
import numpy as np
import pytest
from broken_envs import Sound
from masked_worlds import lamps, tampered

from heron_env import (
    Continuous,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    ScheduleConfig,
    SystemAgent,
    Vector,
    World,
    make,
    quantity,
    registered,
    rule,
)
from heron_env.errors import CheckFailed, ConfigError, HeronError, UnknownEnvironment
from heron_env.testing import CHECKS, Check, CheckReport, Finding, Remark, Status, check_env
from heron_env.testing.cost import lines

pytestmark = pytest.mark.e2e

HERE = tuple(check.name for check in CHECKS if check.name != "processes")
"""All but the one that starts processes, which takes seconds."""
OPTIONS: dict[str, dict[str, Any]] = {"heron/EnergyManagement-v1": {"max_steps": 30}}


def found(name: str, only: Sequence[str] = HERE, **options: Any) -> CheckReport:
    """What the kit says about an environment of `broken_envs`, in few steps."""
    return check_env(f"broken_envs:{name}", only=only, steps=10, **options)


def bad(report: CheckReport) -> list[str]:
    """Names of the checks that failed or warned."""
    return [f.check for f in report.findings if f.status in (Status.FAILED, Status.WARNING)]


OWN = [name for name in registered() if name.startswith("heron/")]


@pytest.mark.parametrize("name", OWN)
def test_our_own_environments_pass(name: str):
    report = check_env(name, options=OPTIONS.get(name), steps=12)
    report.raise_if_failed()
    assert {f.check for f in report.of(Status.SKIPPED)} <= {"linear-work"}, "a world from YAML takes no size"


@pytest.mark.parametrize("options", [{"control": "zone", "num_batteries": 5, "zone_size": 2}, {"scope": "parent"}])
def test_so_do_their_variants(options: dict[str, Any]):
    check_env("heron/BatteryGrid-v0", options=options, only=HERE, steps=10).raise_if_failed()


def test_without_matplotlib_pictures_are_skipped_and_nothing_fails(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    report = check_env("heron/BatteryGrid-v0", only=["render"])
    assert [(finding.status, finding.what) for finding in report.findings] == [
        (Status.SKIPPED, "rgb_array: pictures need matplotlib, the extra `plots`")
    ]


@pytest.mark.parametrize("options", [{}, {"schedule": {"*": ScheduleConfig(tick_interval=0.2, phase=0.1)}}], ids=str)
def test_so_do_several_choices_numbers_mixed_with_choices_and_masks(options: dict[str, Any]):
    report = check_env(partial(lamps, *("pair", "dimmer", "hand"), **options), only=HERE, steps=12)
    report.raise_if_failed()
    remarks = " ".join(f.what for f in report.findings if f.check == "masks")
    assert "the mask of pair_0 forbids its no-op" in remarks


TAMPERED = {
    "ragged": ("at step 1 the mask of lamp_0 does not fit its space", "leave infos['action_mask'] to the rule"),
    "shut": ("at step 1 the mask of lamp_0 forbids everything", "leave infos['action_mask'] to the rule"),
    "liberal": ("step 2 masked a choice of lamp_0 that was offered", "offer what action_mask says of the observation"),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_mask_that_is_tampered_with_is_found(how: str):
    (finding,) = check_env(partial(tampered, how), only=("masks",), steps=10).findings
    what, mend = TAMPERED[how]
    assert finding.status is Status.FAILED and what in finding.what and mend in finding.mend


def test_a_sound_environment_passes_every_check():
    report = check_env("broken_envs:Sound", steps=10)
    assert [f.check for f in report.findings] == [check.name for check in CHECKS]
    assert {f.status for f in report.findings} == {Status.PASSED}
    assert report.ok
    assert report.summary == f"{len(CHECKS)} passed"
    report.raise_if_failed()


BROKEN = [
    ("GlobalDice", "same-seed", "quantity global.Price.value at 0 s is 0.417022004702574 the first time",
     "GlobalDice.begin (broken_envs.py:{line}) draws from the global np.random; draw with world.draw(name, shape)"),
    ("WallClock", "same-seed", "quantity global.Price.value at 1 s is",
     "WallClock.finish (broken_envs.py:{line}) calls time.time(); use world.time, the episode's own clock"),
    ("ClassMemory", "same-seed", "the first time", "a class attribute or global that changes"),
    ("Remembers", "reset", "in a used environment, 0.21000000000000002 in a new one",
     "something survives reset(): keep what changes in features, or set it anew in begin(world)"),
    ("TellTaleStep", "no-leak",
     "unit_1 learns global.Reserve.amount, which is hidden from it, by info 'hint' of step()", "visibility tag"),
    ("OnlyInStep", "parity", "in the event-driven clock", "the event-driven clock runs rules and hooks only"),
    ("Bonus", "parity", "unit_1's reward at 1 s is", "belongs into features, rules, begin, advance or finish"),
    ("Lambda", "copies", "the culprit is self.tariff, a function", "keep no lambdas"),
    ("Forgetful", "copies", "quantity global.Price.value at 6 s is", "add what it lacks to get_state()"),
    ("Wordy", "infos", "infos['unit_1']['mood'] at step 1 is 'good', no number", "put words into env.last_decisions"),
    ("Meddler", "writes", "MeddlingUnit.advance of unit_3 changed global.Price.value, which it does not declare",
     "name its quantity in @rule(writes=...)"),
    ("Restless", "writes", "kpis() changed the truth", "write in rules, begin, advance and finish only"),
    ("Root", "runs", "RootUnit.advance of 'unit_3' returned nan for Level.value", "guard divisions, roots"),
    ("Crashing", "runs", "ZeroDivisionError: no rain today (in finish, broken_envs.py:{line})",
     "mend the place that is named"),
    ("Pairs", "linear-work", "lines run to step grow faster than the agents", "instead of loops in loops"),
    ("Lenient", "actions", "step() took [nan] of unit_1, whose action is [-1.0, 1.0]", "super().step(actions)"),
    ("FreshSpaces", "spaces", "observation_space('unit_1') is a new object at each call", "build it once"),
    ("Silent", "render", "render() in mode 'ansi' gave NoneType", "return a string"),
    ("Certain", "render", "ValueError: cannot convert float NaN to integer (in draw_frame, broken_envs.py:{line})",
     "mend the place that is named"),
    ("Wrapping", "compiled", " compiled, ", "compiled, whole numbers wrap around beyond 64 bits"),
    ("Undying", "ends", "after step 3 ended ['unit_1', 'unit_2', 'unit_3'], but agents are",
     "leave `agents` and the time limit to HeronEnv"),
    ("Reused", "observations", "the first observation of unit_1 was overwritten later", "return a fresh array"),
    ("needy", "builds", "it can't be built without size", "give it defaults"),
    ("shared", "builds", "two calls of the factory share an environment", "build environment and agents anew"),
    ("no_env", "builds", "the factory returned {{'agents': 3}}", "let it return a HeronEnv"),
]  # fmt: skip


class Litter:
    """Garbage in a circle, with something to do when it is collected."""

    def __init__(self) -> None:
        self.self = self

    def __del__(self) -> None:
        for _ in range(100):
            pass


def test_collecting_the_garbage_of_others_is_no_work_of_an_environment():
    def task() -> None:
        gc.set_threshold(10)
        [[n] for n in range(100)]

    thresholds = gc.get_threshold()
    try:
        alone = lines(task)
        gc.set_threshold(*thresholds)
        litter = [Litter() for _ in range(5)]
        del litter
        assert lines(task) == alone
    finally:
        gc.set_threshold(*thresholds)


@pytest.mark.parametrize(("name", "check", "what", "mend"), BROKEN, ids=[row[0] for row in BROKEN])
def test_a_broken_environment_fails_the_check_that_tells_why(name: str, check: str, what: str, mend: str):
    report = found(name)
    failures = report.of(Status.FAILED)
    assert [failure.check for failure in failures] == [check], failures
    (failure,), line = failures, line_of(name)
    assert what.format(line=line) in failure.what
    assert mend.format(line=line) in failure.mend
    assert report.of(Status.WARNING) == ()
    assert not report.ok


def line_of(name: str) -> int:
    """The last line of the class: its sin."""
    import inspect

    source, first = inspect.getsourcelines(getattr(broken_envs, name))
    return first + len(source) - 1


def test_the_order_of_a_set_shows_in_other_processes():
    report = found("SetOrder", only=["same-seed", "reset", "processes", "parity", "copies"])
    (failure,) = report.of(Status.FAILED)
    assert failure.check == "processes"
    assert "quantity global.Price.value at 0 s is 0.8 with PYTHONHASHSEED=1" in failure.what
    assert "the order of a set, or hash(), decides: iterate lists, dicts or sorted(...)" in failure.mend


@pytest.mark.parametrize(
    ("name", "checks", "what", "mend"),
    [
        ("Spies", ["rules", "no-leak"], "by info 'told' of step()", "only the trainer may use in training_signal()"),
        ("TellTaleVector", ["parity", "no-leak"], "unit_2 learns global.Reserve.amount", "visibility tag"),
        ("Believer", ["parity", "honest-score"], "with every report lost", "score the truth, never what messages"),
    ],
)
def test_who_breaks_two_laws_is_told_both(name: str, checks: list[str], what: str, mend: str):
    report = found(name)
    assert bad(report) == checks
    assert what in report.findings[[f.check for f in report.findings].index(checks[1])].what
    assert mend in report.of(Status.FAILED)[-1].mend


@pytest.mark.parametrize("check", ["parity", "honest-score"])
def test_what_differs_on_the_way_and_not_in_the_end_is_found(check: str):
    (finding,) = found("Remembering", only=[check]).findings
    assert finding.status is Status.FAILED and "global.Memory.count at " in finding.what


@pytest.mark.parametrize(
    ("name", "check", "what", "mend"),
    [
        ("Loose", "spaces", "Vague.wealth: no bounds, so spaces use -1e6 and 1e6",
         "wealth: float = quantity(default=..., low=..., high=...)"),
        ("Hasty", "set-points", "constant actions act more when decided more often: quantity unit_1.Level.value",
         "let apply_action write a set-point and advance move the rest by dt"),
        ("Saturating", "set-points", "quantity unit_1.Steps.count at 1 s is 1.0 with one decision a step, 2.0 with two",
         "let apply_action write a set-point"),
        ("Mortal", "ends", "all are terminated after step 6", "use max_steps or is_truncated"),
        ("PocketDice", "same-seed", "PocketDice.finish (broken_envs.py:{line}) asks random, though it changed nothing",
         "draw with world.draw(name, shape)"),
        ("Hands", "rules", "Hand (3): methods on self run one agent at a time", "write them as @staticmethod @rule"),
        ("Warner", "runs", "UserWarning: low on paint (broken_envs.py:{line})", "the place that warns is named"),
        ("Public", "linear-work", "floats observed grow faster than the agents", "narrow the visibility tags"),
    ],
)  # fmt: skip
def test_what_is_legal_and_will_hurt_is_a_warning(name: str, check: str, what: str, mend: str):
    report = found(name)
    assert report.ok
    (warning,) = report.of(Status.WARNING)
    assert warning.check == check
    assert what.format(line=line_of(name)) in warning.what
    assert mend in warning.mend


def test_what_cannot_be_compiled_is_not_compared():
    (finding,) = found("Hands", only=["compiled"]).findings
    assert finding.status is Status.SKIPPED
    assert finding.what == "nothing is compiled: Hand('unit_1') is written with methods on `self` instead of rules"
    (finding,) = found("Opening", only=["compiled"]).findings
    assert finding.status is Status.SKIPPED
    assert finding.what.startswith("its rules run in plain Python, and can't be compiled: ")
    assert "OpeningUnit.advance reads warnings.catch_warnings" in finding.what
    (finding,) = found("Opening", only=["compiled"], options={"compile": True}).findings
    assert finding.status is Status.FAILED and "OpeningUnit.advance reads warnings.catch_warnings" in finding.what


def test_a_quantity_outside_its_bounds_is_told_with_them():
    (failure,) = found("Outsider", only=["bounds"]).findings
    assert "unit_1.Level.value became 500.0 outside [-100.0, 100.0]" in failure.what
    assert "write the truth in rules and hooks only, which clip" in failure.mend


def test_where_a_cause_is_known_its_consequences_are_not_reported():
    report = found("GlobalDice")
    assert {f.check: f.what for f in report.of(Status.SKIPPED)} == dict.fromkeys(
        (
            "reset",
            "first-observation",
            "parity",
            "compiled",
            "honest-score",
            "no-leak",
            "shortcuts",
            "foresight",
            "set-points",
            "copies",
        ),
        "mend 'same-seed' first, which may be the cause here too",
    )
    assert len(found("Root").of(Status.SKIPPED)) == len(HERE) - 2


def test_factories_instances_and_ids_are_all_taken():
    only = ["builds", "parity", "copies", "linear-work"]
    for target in (Sound, lambda n=3: Sound(n), Sound(), "broken_envs:already_built"):
        report = check_env(target, only=only, steps=4)
        assert report.ok, str(report)
    assert check_env(Sound, only=only, steps=4).of(Status.SKIPPED) == ()
    (skipped,) = check_env(Sound(), only=only, steps=4).of(Status.SKIPPED)
    assert "takes no number of agents" in skipped.what


def test_what_no_other_process_can_build_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch):
    def why(target: Any, **options: Any) -> str:
        (finding,) = check_env(target, only=["processes"], steps=2, **options).findings
        assert finding.status is Status.SKIPPED
        return finding.what

    assert "is defined inside a function" in why(lambda: Sound())
    assert "is built already" in why(Sound())

    def notebook() -> Sound:
        return Sound()

    notebook.__module__ = "__main__"
    assert "notebook is defined in __main__ (a script or notebook)" in why(notebook)
    ghost = types.ModuleType("ghost_town")
    ghost.make = type("Ghost", (Sound,), {"__module__": "ghost_town", "__qualname__": "make"})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ghost_town", ghost)
    assert "another process can't import ghost_town:make" in why("ghost_town:make")
    assert "the options can't be sent" in why(lambda_taker, options={"anything": lambda: 0})


def lambda_taker(anything: Any = None) -> Sound:
    """Takes an option that does not pickle."""
    return Sound()


def test_a_process_that_hangs_is_told_and_ended():
    started = time.monotonic()
    (failure,) = check_env("broken_envs:hanging_elsewhere", only=["processes"], steps=2, timeout=2.0).findings
    assert failure.status is Status.FAILED
    assert failure.what == "another process had not finished after 2 s"
    assert time.monotonic() - started < 20.0


def test_a_process_that_fails_is_told():
    (failure,) = check_env("broken_envs:failing_elsewhere", only=["processes"], steps=2).findings
    assert failure.status is Status.FAILED
    assert "in another process: ValueError: not here" in failure.what


def test_the_global_generators_stay_where_they_were():
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    before = (np.random.get_state()[1].tolist(), random.getstate())  # noqa: NPY002
    found("Sound", only=["same-seed", "parity"])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before  # noqa: NPY002


def test_checks_of_ones_own_are_asked_last_and_by_name():
    def grumbles(subject: Any) -> Any:
        """It does not grumble."""
        yield Remark(Status.FAILED, f"{subject.name} grumbles", "feed it")

    def breaks(subject: Any) -> Any:
        """It breaks off."""
        yield Remark(Status.PASSED, "so far")
        raise KeyError("where")

    report = check_env(Sound, only=["builds", "mood", "odd"], extra=[Check("mood", grumbles), Check("odd", breaks)])
    assert [f.check for f in report.findings] == ["builds", "mood", "odd"]
    assert report.findings[1] == Finding("mood", Status.FAILED, "Sound grumbles", "feed it")
    assert report.findings[2].what.startswith("KeyError: 'where' (in breaks, test_check.py:")
    with pytest.raises(CheckFailed) as error:
        report.raise_if_failed()
    assert "mood: Sound grumbles\n  mend: feed it" in str(error.value)
    assert isinstance(error.value, AssertionError)
    assert report.summary == "1 passed, 2 failed"


def test_a_report_is_a_table_and_plain_values():
    report = found("Wordy", only=["builds", "infos"])
    lines = str(report).splitlines()
    assert lines[0] == "broken_envs:Wordy"
    assert lines[1].split()[:2] == ["passed", "builds"]
    assert lines[3].strip().startswith("mend: put words")
    assert lines[-1] == "1 passed, 1 failed"
    told = json.loads(json.dumps(report.to_dict()))
    assert told["ok"] is False
    assert [(f["check"], f["status"]) for f in told["findings"]] == [("builds", "passed"), ("infos", "failed")]


def test_every_check_states_its_law_and_needs_earlier_ones():
    seen: set[str] = set()
    for check in CHECKS:
        assert len(check.law) > 20 and not check.law.endswith("."), check.name
        assert set(check.needs) <= seen, check.name
        seen.add(check.name)
    assert len(seen) == len(CHECKS)


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("heron/BateryGrid-v0", {}, "no such environment"),
        ("broken_envs:Sond", {}, "broken_envs has no 'Sond'. Did you mean 'Sound'?"),
        ("broken_env:Sound", {}, "can't import 'broken_env'"),
        ("tests/broken_envs.py:Sound", {}, "name the module, not its file: tests.broken_envs:Sound"),
        ("broken_envs:math", {}, "name a HeronEnv class, or a function that builds one"),
        (7, {}, "give an id, 'module:attribute', a function that builds the environment, or one"),
        (Sound, {"steps": 1}, "steps=1): must be a whole number >= 2"),
        (Sound, {"only": ["party"]}, "no such check; there are ['builds'"),
        (Sound, {"only": ["leak"]}, "Did you mean 'no-leak'?"),
        ("broken_envs:already_built", {"options": {"n": 2}}, "it is built already; give a factory"),
        ("broken_envs:no_env", {"options": {"n": 2}}, "broken_envs:no_env has no option 'n'; it takes []"),
    ],
)
def test_wrong_arguments_are_errors_not_findings(target: Any, options: dict[str, Any], words: str):
    with pytest.raises(HeronError) as error:
        check_env(target, **options)
    assert isinstance(error.value, ConfigError | UnknownEnvironment)
    assert words in str(error.value)


def test_a_registered_id_brings_its_options():
    from heron_env import register

    register("check/Sound-v0", "broken_envs:Sound", n=5)
    only = ["builds", "processes", "linear-work"]
    report = check_env("check/Sound-v0", only=only, steps=2, options={"max_cycles": 9})
    assert report.ok
    assert "7 agents, 5 decide" in report.findings[0].what
    assert "with n=5, 20, 80" in report.findings[2].what


def test_checking_changes_nothing_about_what_is_checked():
    env = make("heron/BatteryGrid-v0")
    env.reset(seed=3)
    before = env.get_state()["truth"].tobytes()
    check_env(env, only=["actions", "ends", "writes", "no-leak", "copies"], steps=3).raise_if_failed()
    assert env.get_state()["truth"].tobytes() == before
    env.step({"battery_1": [0.5]})


class Wear(FeatureProvider):
    """For the one above; `said` for all but its owner; `count` for nobody."""

    visibility = ("upper_level",)
    worn: float = quantity(default=0.5, low=0.0, high=1.0)
    parts: np.ndarray = quantity(default=0.5, low=0.0, high=1.0, shape=(2,))
    own: float = quantity(default=0.5, low=0.0, high=1.0, visibility=("owner",))
    said: float = quantity(default=0.5, low=0.0, high=1.0, visibility=("public",), to_owner=False)
    count: float = quantity(default=0.5, low=0.0, high=1.0, observed=False)


class Worn(FieldAgent):
    features = (Wear,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Wear.own)
    def apply_action(wear: Wear, action: Vector) -> float:
        return wear.own + 0.1 * action[0]


class Telltale(Worn):
    """Its infos tell it by a method what no rule might read."""

    def get_local_info(self, local_state: Any) -> dict[str, float]:
        return {"worn": self.state.features[Wear].worn}


def test_what_agents_do_not_see_of_themselves_is_listed_and_no_fault():
    def worn(observability: Any = None) -> HeronEnv:
        return HeronEnv(SystemAgent("top", Worn("a")), max_steps=3, observability=observability)

    (finding,) = check_env(worn, only=["no-leak"], steps=3, strict=True).findings
    assert finding.status is Status.PASSED
    assert finding.what.endswith("(their own agents do not see Wear.worn, Wear.parts, Wear.said)")
    insiders = {"default": {"level": "insider"}}
    (finding,) = check_env(worn, only=["no-leak"], steps=3, options={"observability": insiders}).findings
    assert finding.what.endswith("(their own agents do not see Wear.said)")


def test_infos_that_tell_an_agent_what_the_tags_hide_from_it_are_a_leak():
    (finding,) = check_env(
        lambda: HeronEnv(SystemAgent("top", Telltale("a")), max_steps=3), only=["no-leak"], steps=3
    ).findings
    assert finding.status is Status.FAILED
    assert "a learns a.Wear.worn, which is hidden from it, by info 'worn'" in finding.what


class Spot(FeatureProvider):
    """Where it is, and where that is hidden."""

    visibility = ("public",)
    at: float = quantity(default=0.5, low=0.0, high=1.0)
    under: float = quantity(default=0.5, low=0.0, high=1.0, observed=False)


class Walker(FieldAgent):
    features = (Spot,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=Spot.at)
    def apply_action(spot: Spot, action: Vector) -> float:
        return spot.at + 0.1 * action[0]


class Runner(Walker):
    """Sees like others by tags alone."""


class Fog(HeronEnv):
    """Who is farther away than 0.2 is out of sight; what is `under` it counts, too."""

    @staticmethod
    @rule(of=Walker)
    def sees(world: World, observer: int, target: int) -> bool:
        spot = world[Walker].Spot
        return bool(abs(spot.at[observer] - spot.at[target]) + 0.1 * spot.under[target] <= 0.2)

    def begin(self, world: World) -> None:
        world[Walker].Spot.at[:] = world.draw("at", len(world[Walker].Spot.at))


class ThroughFog(Fog):
    """Its infos say where the first is, to all."""

    def step(self, actions: Any) -> Any:
        *outcome, infos = super().step(actions)
        for info in infos.values():
            info["first"] = float(self.world[Walker].Spot.at[0])
        return *outcome, infos


def fog(kind: type[HeronEnv], *more: FieldAgent) -> HeronEnv:
    walkers = [Walker(f"walker_{i}") for i in range(4)]
    return kind(SystemAgent("top", *walkers, *more), max_steps=8, observe_visible=True)


def test_what_decides_who_is_in_sight_is_no_leak_and_who_is_out_of_sight_is_hidden():
    (finding,) = check_env(partial(fog, Fog), only=["no-leak"], steps=5).findings
    assert finding.status is Status.PASSED
    (finding,) = check_env(partial(fog, ThroughFog), only=["no-leak"], steps=5).findings
    assert finding.status is Status.FAILED and "learns walker_0.Spot.at, which is hidden from it" in finding.what


def test_subclasses_that_the_hook_sees_leaves_out_are_named():
    (warning,) = check_env(partial(fog, Fog, Runner("runner_0")), only=["rules"], steps=2).of(Status.WARNING)[-1:]
    assert warning.what.startswith("Fog.sees(of=Walker) is not asked about agents of ['Runner']")


def test_tag_with_sight_passes_no_leak():
    options = {"mates": "message", "sight": 0.5}
    (finding,) = check_env("heron/Tag-v0", only=["no-leak"], steps=3, options=options).findings
    assert finding.status is Status.PASSED
