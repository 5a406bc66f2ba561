"""Films: what a frame shows is what was true, what was known, and where each message was at that moment."""

import copy
import pickle
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from cli_kit import as_json, heron
from PIL import Image

from heron_env import Medium, ScheduleConfig, make
from heron_env.errors import ConfigError, RuleError, UnknownAgent
from heron_env.lab import record_episode
from heron_env.pictures.film import POSTER, Film
from heron_env.pictures.footage import Footage, MessageFlight
from heron_env.pictures.frames import WorldPicture
from heron_env.pictures.palette import EXACT_COLOUR, TOLD_COLOUR, picture_style
from heron_env.pictures.panels import APART, LEGEND, PROXY_AT, WAITS, MessagePanel, NetworkPicture
from heron_env.pictures.quantities import draw_quantities
from heron_env.worlds import battery_grid

pytestmark = pytest.mark.e2e

GRID = "heron/BatteryGrid-v0"
HALF = {"*": lambda vector: 0.5}
LATE = ScheduleConfig(msg_delay=0.4, obs_delay=0.1, jitter_type="lognormal", jitter_ratio=0.3, loss=0.2)
FRAMES = ("rewards", "actions", "frames")


def filmed(clock: str = "event", **options):
    env = make(GRID, max_steps=6, **options)
    if clock == "sync":
        return env.run_synchronous(HALF, seed=3, record=FRAMES)
    return env.run_event_driven(HALF, seed=3, schedule=LATE, record=FRAMES)


def panel(footage: Footage) -> MessagePanel:
    with picture_style():
        from matplotlib.figure import Figure

        return MessagePanel(Figure().subplots(), footage, "battery_1")


def dots(messages: MessagePanel, since: float, time: float) -> dict[str, list[tuple[float, float]]]:
    messages.update(since, time)
    return {fate: [*zip(*line.get_data(), strict=True)] for fate, line in messages._dots.items()}


@pytest.mark.parametrize("clock", ["event", "sync"])
def test_filming_changes_nothing(clock: str):
    env = make(GRID, max_steps=6)
    run = env.run_synchronous if clock == "sync" else env.run_event_driven
    more = {} if clock == "sync" else {"schedule": LATE}
    plain, film = run(HALF, seed=3, **more), filmed(clock)
    assert plain.same_course(film) and film.trace is None


def test_the_clocks_are_filmed_at_each_step_boundary_and_eight_times_a_step_to_the_end():
    result, env = filmed("sync"), make(GRID, max_steps=6)
    env.reset(seed=3)
    assert result.footage.times == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0] and result.footage.flights == []
    for truth in result.footage.truths:
        assert truth.tobytes() == env.simulation.truth.tobytes()
        env.step(dict.fromkeys(env.agents, 0.5))
    assert filmed().footage.times == [k / 8 for k in range(49)]
    cut = env.run_event_driven(HALF, seed=3, t_end=1.3, record=FRAMES).footage
    assert cut.times == [*(k / 8 for k in range(11)), 1.3]


def test_what_an_agent_knows_is_as_old_as_the_record_says():
    options = {"max_steps": 6}
    episode = record_episode(GRID, HALF, seed=3, schedule=LATE, options=options)
    footage = filmed().footage
    ages = list(episode.ages("battery_1"))
    assert len(ages) > 3
    assert [taken.time for taken in footage.observations["battery_1"]] == [age.t / 1e9 for age in ages]
    for age in ages:
        known = footage.known("battery_1", age.t / 1e9)
        assert known.ages == pytest.approx(age.by_source)
        later = footage.known("battery_1", age.t / 1e9 + 1e-3)
        assert later.ages == pytest.approx({owner: old + 1e-3 for owner, old in age.by_source.items()})


def test_what_an_agent_knows_is_its_last_observation_and_nothing_else():
    env = make(GRID, max_steps=6)
    result = env.run_event_driven(HALF, seed=3, schedule=LATE, record=(*FRAMES, "observations"))
    columns = env.simulation.model.plan.views[env.hierarchy.index["battery_1"]].columns
    last = result.observations["battery_1"][-1][1]
    known = result.footage.known("battery_1", result.end_time)
    assert [*known.values.values()] == known.world.rows[0][columns].tolist() == last.tolist()
    assert np.isnan(np.delete(known.world.rows[0], columns)).all()
    before = result.footage.known("battery_1", 0.0)  # its first one
    assert before.values == before.ages == {} and np.isnan(before.world.rows).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_lost_observation_is_never_known(seed: int):
    env, schedule = make(GRID, max_steps=3), ScheduleConfig(msg_delay=0.3, loss=0.4)
    footage = env.run_event_driven(HALF, seed=seed, schedule=schedule, record=FRAMES).footage
    assert all(np.isfinite(taken.time) for came in footage.observations.values() for taken in came)


def test_a_run_that_was_pickled_goes_on_filming():
    env = make(GRID, max_steps=6)
    run = env.start_event_driven(HALF, seed=3, schedule=LATE, record=FRAMES)
    run.until(2.3)
    again = pickle.loads(pickle.dumps(run))
    again.attach(HALF)
    again.until(None)
    footage, whole = again.result().footage, filmed().footage
    assert footage.times == whole.times
    assert np.array_equal(footage.truths, whole.truths)
    assert sorted(map(repr, footage.flights)) == sorted(map(repr, whole.flights))


# Where messages are


def test_every_copy_that_is_routed_is_in_the_film():
    episode = record_episode(GRID, HALF, seed=3, schedule=LATE, options={"max_steps": 6})
    cycle = {"CycleToken", "CycleCompletion", "LocalStateRequest", "LocalStateReply", "TickResultReport"}
    sent = [m for m in episode.messages if m.kind not in cycle]
    flights = filmed().footage.flights
    assert sorted(f.sent for f in flights) == sorted(m.sent / 1e9 for m in sent)
    assert sum(np.isnan(f.arrives) for f in flights) == sum(m.fate == "lost" for m in sent) > 0


def flying(flight: MessageFlight) -> MessagePanel:
    footage = filmed().footage
    footage.flights = [flight]
    return panel(footage)


def test_a_message_travels_from_its_sender_to_its_receiver_and_is_late_after_a_step():
    messages = flying(MessageFlight(2, -1, 1.0, 1.5, 1.0))
    (start,), (end,) = messages._start, messages._end
    half = dots(messages, 1.0, 1.25)
    assert half["on its way"] == [pytest.approx((start + end) / 2)]
    assert end[0] == PROXY_AT and not (half["arrived"] or half["lost"] or half["late: longer than a step"])
    assert dots(messages, 1.4, 1.6)["arrived"] == [pytest.approx(end)]
    assert not any([*dots(messages, 1.6, 1.8).values(), *dots(messages, 0.5, 0.9).values()])
    messages = flying(MessageFlight(-1, 2, 1.0, 4.0, 1.0))
    assert len(dots(messages, 1.9, 2.0)["on its way"]) == 1
    assert len(dots(messages, 2.0, 2.1)["late: longer than a step"]) == 1


def test_what_waits_stands_in_line_at_its_sender_until_it_leaves():
    footage = filmed().footage
    footage.flights = [
        MessageFlight(2, -1, 1.0, 2.0, 1.8),
        MessageFlight(2, -1, 1.1, float("nan"), float("inf")),
        MessageFlight(2, -1, 1.2, float("nan"), 1.4),
    ]
    messages = panel(footage)
    waits = dots(messages, 1.2, 1.3)[WAITS]
    (x, y), places = messages._start[0], [place for place, _ in waits]
    assert places == pytest.approx([x, x + APART * (PROXY_AT - x), x + 2 * APART * (PROXY_AT - x)])
    assert {height for _, height in waits} == {y}
    later = dots(messages, 1.4, 1.5)
    assert len(later[WAITS]) == 2 and len(later["lost"]) == 1 and not later["on its way"]
    last = dots(messages, 1.8, 1.9)
    assert last["on its way"] == [pytest.approx((messages._start[0] + messages._end[0]) / 2)]
    assert len(last[WAITS]) == 1 and not last["lost"]
    assert panel(filmed().footage)._dots[WAITS].get_label().startswith("_")  # not in the legend


def test_a_film_of_a_busy_medium_has_its_queue():
    slow = ScheduleConfig(medium=Medium(rate=150.0, overhead=20.0), keep=2)
    result = make(GRID, max_steps=6).run_event_driven(HALF, seed=0, schedule=slow, record=FRAMES)
    flights, counts = result.footage.flights, result.messages
    assert all(flight.left >= flight.sent for flight in flights)
    assert sum(flight.left > flight.sent for flight in flights) > 10
    assert sum(flight.left == float("inf") for flight in flights) <= counts.in_flight
    assert sum(np.isnan(flight.arrives) and flight.left < float("inf") for flight in flights) == counts.discarded > 0


def test_a_lost_message_never_arrives_in_the_picture():
    env = make(GRID, max_steps=6)
    result = env.run_event_driven(HALF, seed=0, schedule=ScheduleConfig(msg_delay=0.3, loss=1.0), record=FRAMES)
    assert result.messages.lost == len(result.footage.flights) > 10
    messages, seen, times = panel(result.footage), 0, result.footage.times
    for since, time in pairwise(times):
        shown = dots(messages, since, time)
        assert not (shown["arrived"] or shown["on its way"] or shown["late: longer than a step"])
        assert all(x < PROXY_AT - 0.1 for x, _ in shown["lost"])
        seen += len(shown["lost"])
    assert seen >= len(result.footage.flights)


def test_many_agents_share_lines_and_none_is_left_out():
    env = make(GRID, num_batteries=120, max_steps=2)
    result = env.run_event_driven(HALF, seed=0, schedule=LATE, record=FRAMES)
    messages = panel(result.footage)
    assert len(messages._sent) == len(result.footage.flights) > 120
    assert {y for _, y in np.round(messages._start).tolist()} <= {0.0, 1.0, 2.0, -0.0}
    env.render_mode = "rgb_array"
    assert env.render().shape == (576, 512, 3)


class DrawnGrid(battery_grid.BatteryGridEnv):
    """Draws a bar, and counts."""

    def draw_frame(self, axes, world, observed, artists=None):
        if artists is None:
            self.made = getattr(self, "made", 0) + 1
            artists = axes.bar([0, 1], [1.0, 1.0]), axes.text(0.5, 0.5, "")
        bars, text = artists
        charge = world.rows[0][: len(bars)]
        for bar, value in zip(bars, charge, strict=True):
            bar.set_height(value)
        text.set_text(f"{'nobody' if observed is None else observed.agent} {world.time:g}")
        return artists


def test_a_drawing_is_made_once_a_film_and_then_updated(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(battery_grid, "BatteryGridEnv", DrawnGrid)
    drawn = make(GRID, max_steps=6)
    result = drawn.run_event_driven(HALF, seed=0, record=FRAMES)
    frames = [*result.watch("battery_2")]
    assert drawn.made == 1 and len(frames) == 49
    assert (frames[0].world != frames[-1].world).any()
    drawn.render_mode = "rgb_array"
    first = drawn.render()
    assert np.array_equal(first, drawn.render()) and drawn.made == 2


@pytest.mark.parametrize("env_id", [GRID, "heron/Spread-v0", "heron/Economy-v0"])
def test_what_is_updated_looks_as_if_it_were_drawn_anew(env_id: str):
    env, rng = make(env_id), np.random.default_rng(0)
    draw = partial(draw_quantities, env)
    updated = WorldPicture(draw)
    for _ in range(3):
        env.reset(seed=int(rng.integers(100)))
        for _ in range(3):
            env.step({agent: env.action_space(agent).sample() for agent in env.agents})
            assert np.array_equal(updated.image(env.world), WorldPicture(draw).image(env.world))


@pytest.mark.parametrize("clock", ["event", "sync"])
def test_a_film_has_frames_of_one_size_as_many_as_asked_for(clock: str):
    film = filmed(clock).watch("battery_2", start=1.0, end=4.0)
    images = [*film.images()]
    assert len(images) == len(film) == (25 if clock == "event" else 4)
    assert {(image.shape, image.dtype.name) for image in images} == {((576, 1024, 3), "uint8")}
    assert len({image.tobytes() for image in images}) == len(images)
    result = make(GRID, max_steps=100).run_event_driven(HALF, seed=0, record=FRAMES)
    assert len(result.watch()) == 267 and result.watch().times[:2] == [0.0, 0.375]
    assert result.watch(every=10.0).times == [10.0 * k for k in range(11)]


def test_an_environment_that_was_copied_draws_for_itself():
    env = make(GRID, render_mode="rgb_array")
    env.reset(seed=0)
    env.render()
    other = copy.deepcopy(env)
    other.step(dict.fromkeys(other.agents, 1.0))
    assert (other.render() != env.render()).any()


def test_a_gif_and_the_player_of_a_notebook_have_all_frames(tmp_path: Path):
    film = filmed("sync").watch()
    with Image.open(film.save(tmp_path / "deep" / "film.gif", fps=5.0)) as image:
        assert (image.n_frames, image.size, image.info["duration"]) == (8, (1024, 576), POSTER), (
            "the poster comes first"
        )
        image.seek(1)
        assert image.info["duration"] == 200
    assert film.poster == 6, "nothing is late: the last frame"
    shown = film._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!doctype html&gt;') and shown.count("<") == 2


def test_an_mp4_has_all_frames(tmp_path: Path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="the extra `video` is not installed")
    path = filmed("sync").watch().save(tmp_path / "film.mp4")
    count, seconds = ffmpeg.count_frames_and_secs(str(path))
    assert (count, round(seconds, 1)) == (7, 0.6)
    assert next(ffmpeg.read_frames(str(path)))["size"] == (1024, 576)


def test_what_is_no_film_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    result = filmed("sync")
    plain = make(GRID, max_steps=2).run_synchronous(HALF)
    for wrong, error, text in [
        (plain.watch, ConfigError,
         'watch(): no frames were recorded; run it with record=("rewards", "actions", "frames")'),
        (lambda: result.watch("battery"), UnknownAgent,
         "watch(agent='battery'): decides nothing; agents that do are ['battery_1', 'battery_2']. Did you mean "
         "'battery_2'?"),
        (lambda: result.watch(start=7.0), ConfigError,
         "watch(start=7.0, end=None): must lie in the episode, 0 to 6 s, in order"),
        (lambda: result.watch(every=0.0), ConfigError,
         "watch(every=0.0): must be seconds > 0, for 100000 frames at most"),
        (lambda: result.watch(every=1e-12), ConfigError,
         "watch(every=1e-12): must be seconds > 0, for 100000 frames at most"),
        (lambda: result.watch().save("film.avi"), ConfigError,
         "'film.avi': the name of a film must end with .gif, .mp4 or .html"),
        (lambda: result.watch().save("film.gif", fps=0), ConfigError,
         "save(fps=0): must be a number of frames a second, above 0 and up to 50"),
    ]:  # fmt: skip
        with pytest.raises(error) as raised:
            wrong()
        assert str(raised.value) == text
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ConfigError, match=r"^films as .mp4 need imageio-ffmpeg: pip install 'heron_env\[video\]'$"):
        result.watch().save(tmp_path / "film.mp4")


def test_day_and_night_of_the_axes_are_seen_and_a_hook_that_returns_nothing_is_named():
    def draw(axes, world, observed, artists=None):
        axes.set(xlim=(0, 1), facecolor="white" if world.time < 2.0 else "black")
        return artists or [axes]

    world, picture, shades = make(GRID).world, WorldPicture(draw), []
    for world.time in (0.0, 1.0, 2.0, 1.0):
        shades.append(picture.image(world)[288, 256, 0] > 128)
    assert shades == [True, True, False, True]
    with pytest.raises(RuleError, match=r"draw_frame\(\) returned None; let it return the artists"):
        WorldPicture(lambda axes, world, observed, artists=None: None).image(world)


def test_a_gif_has_the_colours_of_all_its_frames(tmp_path: Path):
    class Turning(Film):
        poster = 0

        def __init__(self):
            pass

        def images(self):
            for shade in ((200, 200, 200), (200, 200, 200), (0, 192, 0), (0, 192, 0)):
                yield np.full((32, 32, 3), shade, np.uint8)

    Turning().save(tmp_path / "turning.gif", fps=10.0)
    with Image.open(tmp_path / "turning.gif") as image:
        image.seek(image.n_frames - 1)
        assert image.convert("RGB").getpixel((9, 9)) == (0, 192, 0)


def test_a_gif_keeps_the_colours_of_the_legend(tmp_path: Path):
    """Of a world with many shades, and few pixels of the colours that say what became of a message."""
    from matplotlib.colors import to_rgb

    result = make("heron/Economy-v0").run_event_driven(
        {"*": lambda v: [0.0]}, seed=0, t_end=5.0, schedule=ScheduleConfig(obs_delay=3.0), record=FRAMES
    )
    image = np.asarray(next(iter(result.watch(every=1.0).images())))
    result.watch(every=1.0).save(tmp_path / "film.gif", fps=10.0)
    with Image.open(tmp_path / "film.gif") as written:
        written.seek(1)  # after the poster
        shown = np.asarray(written.convert("RGB"), int)
    for colour in LEGEND:
        marks = (image == np.round(255 * np.array(to_rgb(colour)))).all(axis=2)
        assert marks.sum() > 10 and np.abs(shown - image)[marks].max() == 0, colour
    assert (np.abs(shown - image).max(axis=2) > 40).sum() < 20


def test_what_is_known_and_each_fate_of_a_message_have_a_shape_and_a_colour_of_their_own_in_one_legend():
    from matplotlib.colors import to_hex

    with picture_style():
        network = NetworkPicture(filmed().footage, "battery_1", [0.0])
    figure = network._canvas._figure
    (legend,) = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    names = {text.get_text(): mark for text, mark in zip(legend.get_texts(), legend.legend_handles, strict=True)}
    marks = {name.partition(":")[0]: (mark.get_marker(), mark.get_color()) for name, mark in names.items()}
    assert marks.pop("truth")[1] == EXACT_COLOUR
    assert {*marks} == {"on its way", "late", "arrived", "lost", "known"}
    for of_all in zip(*marks.values(), strict=True):
        assert len({*of_all}) == 5
    assert marks["late"] == ("s", "#E69F00") and marks["known"] == ("D", TOLD_COLOUR)
    red, green, blue = (int(to_hex(marks["lost"][1])[i : i + 2], 16) for i in (1, 3, 5))
    assert red > 3 * max(green, blue), "the page says red"


def test_a_film_says_which_step_it_is(monkeypatch: pytest.MonkeyPatch):
    env, steps = make("heron/Spread-v0"), []

    def draw(axes, world, observed, artists=None):
        steps.append(world.step)
        return artists or [axes]

    monkeypatch.setattr(env, "draw_frame", draw)
    film = env.run_synchronous({"*": lambda vector: np.zeros(5)}, seed=0, record=FRAMES).watch()
    assert len([*film]) == len(film) and steps[1:] == [*range(len(film))]


def test_a_picture_without_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    env = make(GRID, render_mode="rgb_array")
    env.reset(seed=0)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"^pictures need matplotlib: pip install 'heron_env\[plots\]'$"):
        env.render()


def test_the_command_films_an_environment_in_both_clocks_and_a_trace(tmp_path: Path):
    for number, clock in enumerate(["event", "sync"]):
        out = tmp_path / f"{clock}.gif"
        told = as_json("watch", GRID, "-o", "max_steps=3", "--clock", clock, "--agent", "battery_2", "--out", out)
        assert {**told, "returns": 0} == {
            "film": str(out), "frames": (25, 4)[number], "start": 0.0, "end": 3.0, "agent": "battery_2", "returns": 0,
        }  # fmt: skip
        with Image.open(out) as image:
            assert image.n_frames == told["frames"] + 1
    trace = as_json("trace", GRID, "-o", "max_steps=3", "--delay", "0.3", "--out", tmp_path / "trace")
    told = as_json("watch", tmp_path / "trace", "--window", "1,2", "--every", "0.5", "--out", tmp_path / "again.html")
    assert told["returns"] == trace["returns"] and told["frames"] == 3
    assert "wrote" in heron("watch", tmp_path / "trace", "--out", tmp_path / "again.html").stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((GRID, "--clock", "synch"), "--clock 'synch': must be one of ['event', 'sync']. Did you mean 'sync'?"),
        ((GRID, "--clock", "sync", "--delay", "1"), "--delay: does not go with --clock sync; leave it out"),
    ],
)
def test_the_command_says_what_is_wrong(arguments: tuple[str, ...], text: str):
    assert heron("watch", *arguments, code=2).stderr == f"error: {text}\n"
