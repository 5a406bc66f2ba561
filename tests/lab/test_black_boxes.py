"""Sweeps of environments that are black boxes: `gymnasium:CartPole-v1`, `pettingzoo:module`."""

import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from black_boxes import ACTIONS, KINDS, Bookkeeper
from cli_kit import heron
from lab.trace_event_format import faults as trace_faults
from refusing import refuses

from heron_env import Condition, Disturbance, ScheduleConfig, Sweep, make, team_return, under_network
from heron_env.envs.episodes import FILMED
from heron_env.errors import ConfigError, TraceError, Untrusted
from heron_env.lab import read_sweep, record_episode
from heron_env.lab.sweep.conditions import SYNC
from heron_env.lab.traces.episode import bounded
from heron_env.lab.traces.file import as_text
from heron_env.lab.traces.perfetto import perfetto_text
from heron_env.lab.traces.replaying import replay
from heron_env.lab.traces.timeline import draw
from heron_env.seeding import key

LATE = Condition(obs_delay=2.0)
POLICY = """
def act(seen):
    return int(seen[2] + 0.3 * seen[3] > 0.0)

def spread(seen):
    return seen % 3
"""


@pytest.fixture
def policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "policy.py").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@dataclass(frozen=True)
class Chosen:
    """An action of a kind, drawn anew for each decision."""

    kind: str

    def forward(self, observation, mask=None, draw=0):
        space = ACTIONS[self.kind]
        space.seed(key(draw) >> 33)
        return space.sample(mask) if self.kind in ("discrete", "mask", "image") else space.sample()


def balance(seen):
    return int(seen[2] + 0.3 * seen[3] > 0.0)


def test_a_sweep_of_gymnasium_has_the_returns_of_runs_by_hand(policies: Path):
    conditions = [Condition(msg_delay=0.0), LATE]
    sweep = Sweep.of("gymnasium:CartPole-v1", {"mine": "policy.py:act", "random": "random"}, conditions, cases=4,
                     options={"noop": 0})  # fmt: skip
    result = sweep.run(out=policies / "out", processes=1, progress=False)
    env = under_network(gymnasium.make("CartPole-v1"), noop=0)
    for condition, schedule in ((SYNC, {}), (LATE, ScheduleConfig(obs_delay=2.0))):
        returns = [env.run_event_driven({"*": balance}, seed=case.seed, schedule=schedule).returns["agent"]
                   for case in sweep.cases]  # fmt: skip
        assert result.point("mine", condition).values == tuple(returns)
    assert result.point("mine", conditions[0]).identical and not result.point("mine", LATE).identical
    again = read_sweep(policies / "out")
    assert again.point("random", LATE).values == result.point("random", LATE).values


def test_a_team_earns_what_its_agents_earn(policies: Path):
    env = make("pettingzoo:black_boxes", noop=0, steps=9)
    assert env.hierarchy.ids == ("team", "hare_0", "hare_1", "fox") and env.dt == 1.0
    condition = Condition(loss={"hare": 0.5})
    result = env.run_event_driven(
        {"*": lambda seen: seen % 3}, seed=3, schedule=condition.schedule(env), record=("rewards",)
    )
    bare = under_network(Bookkeeper("discrete", steps=9, ends={"fox": 5}), {"hare": ScheduleConfig(loss=0.5)}, noop=0)
    expected = bare.run_event_driven({"*": lambda seen: seen % 3}, seed=3)
    assert {agent: result.rewards[agent] for agent in expected.rewards} == expected.rewards
    assert [time for time, _ in result.rewards["team"]] == [float(k) for k in range(1, 10)]
    assert team_return(env, result) == pytest.approx(sum(expected.returns.values()), rel=1e-12)
    assert not result.terminated["team"] and result.truncated["team"]  # the fox was terminated, the hares truncated
    synchronous = env.run_synchronous({"*": lambda seen: seen % 3}, seed=3)
    assert synchronous.messages.lost == 0 and synchronous.rewards != result.rewards


def test_a_team_is_terminated_when_all_have_ended_by_themselves(monkeypatch: pytest.MonkeyPatch):
    env = make("pettingzoo:black_boxes", noop=0, steps=9)
    bare = env.env.env
    bare.ends, bare.joins = {"hare_0": 4, "fox": 5}, {"hare_1": 8}  # nobody is left when it would join
    result = env.run_synchronous({"*": lambda seen: 0}, seed=3)
    assert result.end_time == 5.0 and result.terminated["team"] and not result.truncated["team"]
    assert not result.terminated["hare_1"] and not result.truncated["hare_1"]
    monkeypatch.setattr("black_boxes.parallel_env", lambda: Bookkeeper("discrete", ("team_1", "team_2")))
    with refuses(ConfigError, "make('pettingzoo:black_boxes'): 'team' is the sum of all agents; no agent or group may "
                 "be called so"):  # fmt: skip
        make("pettingzoo:black_boxes", noop=0)


def test_noise_is_refused_before_anything_runs(policies: Path):
    words = ["policy.py:act", "-o", "noop=0", "--axis", "noise=0,0.1", "--out", "out"]
    told = heron("sweep", "gymnasium:CartPole-v1", *words, code=2)
    assert "a black box has no noise; leave noise out" in told.stderr


def test_heron_sweep_and_report_take_it(policies: Path):
    words = ["sweep", "pettingzoo:black_boxes", "policy.py:spread", "random", "--axis", "msg_delay=1", "-o", "noop=0",
             "--cases", "3", "--out", "out", "--processes", "1"]  # fmt: skip
    table = heron(*words).stdout
    assert "Mean return of team, 3 cases" in table and "msg_delay=1" in table and "do nothing" in table
    assert heron(*words).stdout.count("of 18 episodes") <= 1  # nothing is run again
    report = heron("report", "out", "--trust", "pettingzoo:black_boxes", "--out", "report").stdout
    assert (
        "report.html" in report and "A black box: it has no hierarchy" in (policies / "report/report.html").read_text()
    )


def test_a_name_in_a_file_needs_somebody_who_vouches_for_it():
    from heron_env import registry

    with pytest.raises(Untrusted, match="names 'gymnasium:CartPole-v1'"):
        registry.spec("gymnasium:CartPole-v1", "sweep.json").make(noop=0)


def test_what_there_is_not_is_refused_in_words(policies: Path):
    with pytest.raises(ConfigError, match=r"make\('gymnasium:KartPole-v1'\): NameNotFound: .*CartPole"):
        make("gymnasium:KartPole-v1")
    with refuses(ConfigError, "make('pettingzoo:nowhere/kart_v1'): ModuleNotFoundError: No module named "
                 "'pettingzoo.nowhere'; correct the name, its options, or install it"):  # fmt: skip
        make("pettingzoo:nowhere/kart_v1")
    with pytest.raises(
        ConfigError, match="'agent' is compared with doing nothing, and 0 is a no-op of a Box alone; give"
    ):
        make("gymnasium:CartPole-v1")
    with refuses(
        ConfigError, "a black box has no 'simulation': sweep, margin, trace, replay and watch take it; all else needs "
        "an environment of this library"):  # fmt: skip
        _ = make("gymnasium:CartPole-v1", noop=0).simulation.model.layout
    with refuses(ConfigError, "run(disturbances=...): nobody looks into a black box; leave it out"):
        record_episode("gymnasium:CartPole-v1", "random", options={"noop": 0}, disturbances=[Disturbance(1.0, "x", {})])


def test_options_are_the_network_s_or_the_environment_s():
    env = make("gymnasium:CartPole-v1", noop=1, dt=0.5, observe_age=True, max_episode_steps=7)
    assert env.dt == 0.5 and env.env.observation_space.shape == (5,)
    assert env.run_synchronous({"*": lambda seen: 1}, seed=0).end_time <= 3.5
    assert (
        make("pettingzoo:black_boxes", noop="random", steps=4).run_synchronous({"*": lambda seen: 0}, seed=0).end_time
        == 4.0
    )


# Records and films

BAD = ScheduleConfig(obs_delay=1.0, msg_delay=1.0, jitter_type="lognormal", jitter_ratio=0.5, loss=0.2, reorder=True)
BLOB = "gymnasium:black_boxes:Blob-v0"
PUSH = {"*": lambda seen: np.sign(seen["place"][::-1] - 30.0).astype(np.float32)}


def test_heron_trace_keeps_an_episode_that_heron_replay_runs_again(policies: Path):
    words = ["gymnasium:CartPole-v1", "--policy", "policy.py:act", "-o", "noop=0", "--schedule", "obs_delay=2",
             "--schedule", "loss=0.1", "--out", "out"]  # fmt: skip
    assert "wrote out/timeline.svg" in heron("trace", *words).stdout
    trust = ["--trust", "gymnasium:CartPole-v1", "--trust", "policy.py:act"]
    assert heron("replay", "out", *trust).stdout.startswith("identical: ")
    assert "names 'gymnasium:CartPole-v1'" in heron("replay", "out", code=2).stderr
    assert not [*trace_faults(json.loads((policies / "out/perfetto.json").read_text()))]
    (policies / "policy.py").write_text(POLICY.replace("0.3", "0.2"))
    assert "the file of 'policy.py:act' has changed" in heron("replay", "out", *trust, code=2).stderr


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_has_what_the_run_yields_and_every_copy_of_every_message(kind: str):
    options, push = {"kind": kind, "noop": "random", "dt": 0.5}, {"*": Chosen(kind)}
    episode = record_episode("pettingzoo:black_boxes", push, seed=4, schedule=BAD, options=options)
    env = make("pettingzoo:black_boxes", **options)
    result = env.run_event_driven(push, seed=4, schedule=BAD, trace=True)
    team = result.rewards.pop("team")
    assert team and episode.outcome.rewards == result.rewards and episode.world.agents == ["hare_0", "hare_1", "fox"]
    counts, booked = episode.counts, result.messages
    assert min(counts["delivered"], counts["lost"], counts["in flight"]) > 0
    assert (counts["lost"], counts["in flight"]) == (booked.lost, booked.in_flight)
    assert counts["delivered"] + counts["second copy"] == booked.delivered
    assert [event.t for event in episode.events if event.kind == "Boundary"] == [k * 500_000_000 for k in range(13)]
    ages = [age for agent in episode.world.decides for age in episode.ages(agent)]
    assert ages and all(age.oldest == pytest.approx(age.t / 1e9 - 0.5 * age.number) for age in ages)
    for m in episode.messages:
        ends = ("physics", m.agent) if m.kind == "ObservationCopy" else (m.agent, "physics")
        assert (m.sender, m.receiver) == ends
    assert replay(episode, policies=push, trust="pettingzoo:black_boxes").identical
    (axes,) = draw(episode).axes
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert shown == ["physics", "hare_0", "hare_1", "fox"]  # nobody asks a proxy
    assert not [*trace_faults(json.loads(perfetto_text(episode)))]


def test_a_picture_is_kept_by_shape_and_digest_and_one_other_pixel_is_found():
    episode = record_episode(BLOB, PUSH, schedule=BAD, seed=1)
    seen = next(m for m in episode.messages if m.kind == "ObservationCopy" and m.number == 3).content["content"]
    assert seen["picture"].keys() == {"type", "shape", "digest"} and seen["picture"]["shape"] == [64, 64, 3]
    assert len(seen["place"]) == 2 and len(as_text(episode)) < 40_000  # a picture alone has 12,288 bytes
    assert replay(episode, policies=PUSH, trust=BLOB).identical
    other = replace(episode.setting, options={"spot": 1})
    found = replay(replace(episode, setting=other), policies=PUSH, trust=BLOB).difference
    assert found is not None and found.what.endswith(": content.picture.digest") and found.agent == "agent"
    assert "ObservationCopy 3" in found.what


@pytest.mark.parametrize(("value", "short"), [
    (np.zeros(64), True), (np.zeros(65, np.float32), True), (np.zeros(2000), False), ("word", True),
    ("x" * 3000, False), ((1, np.zeros(3)), True), ({k: k for k in range(65)}, True),
    (dict.fromkeys(range(9000), 1.0), False),
])  # fmt: skip
def test_what_is_short_is_kept_itself(value: object, short: bool):
    text = json.dumps(bounded(value, "here"))
    assert ("digest" not in text) == short and len(text) < 3000
    with pytest.raises(TraceError, match="here is a set"):
        bounded({1}, "here")


@pytest.mark.parametrize("clock", ["event", "sync"])
def test_a_film_shows_the_frames_that_the_environment_draws(clock: str):
    env = make("pettingzoo:black_boxes", noop=0, render_mode="rgb_array")
    run = env.run_synchronous if clock == "sync" else partial(env.run_event_driven, schedule=BAD)
    act = {"*": lambda seen: seen % 3}
    result, plain = run(act, seed=2, record=FILMED), run(act, seed=2)
    assert result.same_course(plain) and result.trace is None
    film = result.watch("hare_1", every=4.0)
    assert film.times == [0.0, 4.0, 8.0, 12.0] and film.footage.title == "painted"
    for number, frame in enumerate(film):
        assert (frame.world == 80 * number).all(axis=2).mean() > 0.6
        known = film.footage.known("hare_1", frame.time)
        if clock == "sync" and number < 3:  # at its end it has nothing more to decide
            assert known.values["hare_1.Observed.step"] == frame.time and known.ages["hare_1"] == 0.0
            assert known.values["hare_1.Observed.value[0]"] == film.footage.truth(frame.time)[3]


def test_a_film_shows_messages_and_how_old_what_an_agent_knows_is():
    options, late = {"noop": 0, "render_mode": "rgb_array"}, ScheduleConfig(msg_delay=2.0, obs_delay=1.0)
    env = make("pettingzoo:black_boxes", **options)
    footage = env.run_event_driven({"*": lambda seen: 1}, seed=2, schedule=late, record=FILMED).footage
    assert footage.known("fox", 2.0).values == {} and footage.known("fox", 3.0).ages == {"fox": 3.0}
    assert footage.known("fox", 4.0).values["fox.Observed.step"] == 1.0
    first = [flight for flight in footage.flights if flight.sent <= 3.0]
    assert {(f.sender, f.receiver, f.arrives - f.sent) for f in first} == {
        (-1, 0, 2.0), (-1, 1, 2.0), (-1, 2, 2.0), (0, -1, 2.0), (1, -1, 2.0), (2, -1, 2.0)
    }  # fmt: skip


def test_heron_watch_films_it_and_a_trace_of_it(policies: Path):
    words = ["--seed", "1", "--schedule", "obs_delay=2", "--out", "film.html"]
    assert (
        "9 frames, 0 to 8 s; beside the truth what agent knows"
        in heron("watch", BLOB, "--policy", "random", *words).stdout
    )
    assert "<h1>gymnasium:black_boxes:Blob-v0" in (policies / "film.html").read_text()
    heron("trace", BLOB, "--policy", "random", "--out", "out")
    assert "9 frames" in heron("watch", "out", "--trust", BLOB, "--out", "again.gif").stdout


@pytest.mark.filterwarnings("ignore:.*possible render_modes")
def test_what_draws_no_frames_is_refused_in_words(policies: Path):
    env = make(BLOB)
    with refuses(
        ConfigError,
        "Blob-v0 draws no frames, render_mode=None (TypeError: object[] is no uint8 [height, width, 3]); make it with "
        "render_mode='rgb_array', install what it draws with, or use `heron trace`, which needs no frames",
    ):
        env.run_event_driven(PUSH, record=FILMED)
    told = heron("watch", "gymnasium:black_boxes:Walk-v0", "--policy", "random", code=2).stderr
    assert "unexpected keyword argument 'render_mode'" in told and told.endswith("`heron trace` needs no frames\n")


def test_a_frame_that_can_not_be_drawn_says_why(monkeypatch: pytest.MonkeyPatch):
    def render(self):
        raise gymnasium.error.DependencyNotInstalled("no pygame")

    env = make("pettingzoo:black_boxes", noop=0, render_mode="rgb_array")
    monkeypatch.setattr("black_boxes.Painted.render", render)
    with pytest.raises(
        ConfigError, match=r"painted draws no frames, render_mode='rgb_array' \(DependencyNotInstalled: no"
    ):
        env.run_synchronous({"*": lambda seen: 0}, seed=0, record=FILMED)


def test_pictures_within_tuples_are_kept_by_digest():
    from heron_env.lab.traces.episode import bounded

    kept = bounded((np.zeros((64, 64, 3), np.uint8), 3, {"far": (np.ones(2000),)}), "seen")
    assert kept[0]["shape"] == [64, 64, 3] and kept[1] == 3 and kept[2]["far"][0]["shape"] == [2000]
    assert kept != bounded((np.ones((64, 64, 3), np.uint8), 3, {"far": (np.ones(2000),)}), "seen")


def test_the_default_sweep_leaves_noise_out(policies: Path):
    told = heron("sweep", "gymnasium:CartPole-v1", "policy.py:act", "-o", "noop=0", "--cases", "2", "--processes", "1")
    assert "loss=0.05" in told.stdout and "noise" not in told.stdout


def test_a_black_box_has_no_time_series(policies: Path):
    told = heron("trace", "gymnasium:CartPole-v1", "--policy", "random", "-o", "noop=0", "--csv", "a.csv", code=2)
    assert "--csv a.csv: a black box has no features" in told.stderr and not (policies / "runs").exists()


def test_a_report_draws_what_is_vouched_for_and_names_what_is_not(policies: Path):
    heron("sweep", "gymnasium:CartPole-v1", "policy.py:act", "-o", "noop=0", "--seeds", "2", "--axis", "obs_delay=2",
          "--processes", "1", "--out", "swept")  # fmt: skip
    trust = ["--trust", "gymnasium:CartPole-v1"]
    drawn = "one_case.svg", "timeline.svg"
    for given, missing in ((trust[:0], "gymnasium:CartPole-v1"), (trust, "policy.py:act")):
        told = heron("report", "swept", *given, "--out", "page").stderr.splitlines()
        titles = [f"{title}: Not drawn: swept/sweep.json names '{missing}'" for title in
                  ("One case on both clocks", "How an event-driven run works")]  # fmt: skip
        assert len(told) == 2 and all(line.startswith(title) for line, title in zip(told, titles, strict=True))
        assert not any((policies / "page" / name).exists() for name in drawn)
    whole = [*trust, "--trust", "policy.py:act"]
    assert heron("report", "swept", *whole, "--out", "page").stderr == ""
    assert all((policies / "page" / name).exists() for name in drawn)
    with (policies / "policy.py").open("a") as file:
        file.write("\n# another\n")
    told = heron("report", "swept", *whole, "--out", "again").stderr
    assert "the file of 'policy.py:act' has changed since the sweep" in told
