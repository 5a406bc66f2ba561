"""The report: one file, nothing from elsewhere, every picture told in words too; figures that say what they show."""

import json
import re
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from public_texts import dialect
from serve.browser import browsing

from heron_env import (
    Continuous,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    PictureSeries,
    ScheduleConfig,
    SystemAgent,
    make,
    quantity,
    rule,
)
from heron_env.errors import ConfigError
from heron_env.lab import (
    IDEAL,
    Baseline,
    Condition,
    Sources,
    Sweep,
    SweepResult,
    along,
    describe_environment,
    record_episode,
    report_of,
    write_report,
)
from heron_env.lab.benchmark import Case
from heron_env.lab.episodes import Outcome
from heron_env.lab.figure_style import blank, to_png, to_svg
from heron_env.lab.output import TextTable
from heron_env.lab.show.courses import OF_A_DAY, case_part, compared, day_figure
from heron_env.lab.show.document import Picture, Report, Section, render
from heron_env.lab.show.figures import (
    PolicyLine,
    gap_figure,
    product_figure,
    sweep_figure,
    waterfall_figure,
)
from heron_env.lab.show.sweeps import causes_part, gap_part, held_out_words, look_at, widest
from heron_env.lab.show.training import learning_figure
from heron_env.lab.show.tree import hierarchy_figure
from heron_env.lab.sweep.conditions import grid
from heron_env.lab.sweep.presets import PRESETS
from heron_env.lab.sweep.records import Record
from heron_env.lab.sweep.sentences import costliest
from heron_env.registry import spec

pytestmark = pytest.mark.e2e

pytest.importorskip("matplotlib")

GRID = "heron/BatteryGrid-v0"
ENERGY = "heron/EnergyManagement-v1"
SHORT = {"max_steps": 12}


@dataclass(frozen=True)
class Eager:
    """Fills the batteries to 90 %, by what it sees: late actions overshoot."""

    def build(self, env, seed):
        return {"*": lambda seen: 0.9 - seen[:1]}


def texts(figure) -> str:
    """All words in a figure."""
    from matplotlib.text import Text

    return " | ".join(t.get_text() for t in figure.findobj(Text) if t.get_text())


def heights(axes, marker: str) -> list[float]:
    """Where the marks of one kind stand."""
    return [y for line in axes.lines if line.get_marker() == marker for y in line.get_ydata()]


@pytest.fixture(scope="module")
def delayed():
    """Two policies whose actions are late, and a third beside them."""
    policies = {"eager": Eager(), "idle": "do nothing", "random": "random"}
    conditions = along(act_delay=(0.0, 2.0))
    return Sweep.of(GRID, policies, conditions, cases=3, sync_only=["random"], options=SHORT).run(processes=1)


@pytest.fixture(scope="module")
def swept():
    """The quick preset and two more amounts of one cause."""
    conditions = [*PRESETS["quick"].conditions(1.0), Condition(act_delay=2.0)]
    return Sweep.of(GRID, {"eager": Eager()}, conditions, cases=3, options=SHORT, preset="quick").run(processes=1)


@pytest.fixture(scope="module")
def calm():
    """Nothing decides on what it sees, so delays of what is seen cost nothing."""
    conditions = [Condition(obs_delay=x) for x in (0.0, 0.5, 1.0)]
    return Sweep.of(GRID, {"idle": "do nothing"}, conditions, cases=3, options=SHORT).run(processes=1)


@pytest.fixture(scope="module")
def report(swept) -> Report:
    whole = report_of(Sources(sweeps=[swept]))
    return replace(whole, title="A <title>", summary=["We found & tell.", *whole.summary[1:]])


@pytest.fixture(scope="module")
def text(report: Report) -> str:
    return render(report)


class Page(HTMLParser):
    """Collects images, links and the nesting of a document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.images: list[dict] = []
        self.addresses: list[str] = []
        self.names: set[str] = set()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag == "img":
            self.images.append(found)
        if "id" in found:
            assert found["id"] not in self.names
            self.names.add(found["id"])
        self.addresses += [value for name, value in attrs if name in ("src", "href", "srcset", "action")]
        if tag not in ("meta", "img", "link", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


# The page


def test_the_report_is_one_file_that_asks_for_nothing_and_tells_every_picture_in_words(report: Report, text: str):
    page = Page(text)
    assert page.open == []
    assert all(address.startswith("data:") or address[1:] in page.names for address in page.addresses)
    assert "<script" not in text and "@import" not in text and "url(" not in text
    assert 'name="viewport"' in text and 'lang="en"' in text and len(text) < 2_000_000 and dialect(text) == []
    names = [picture.name for picture in report.pictures]
    assert names == ["act_delay", "causes", "one_case", "timeline", "hierarchy", "who_sees_what"]
    assert len(page.images) == text.count("<figure") == len(names)
    assert all(len(image["alt"]) > 40 for image in page.images)
    wide = re.findall(r'<div class="wide"[^>]*>', text)
    assert wide and all('tabindex="0"' in tag and "aria-label" in tag for tag in wide), "reached by keyboard"


def test_the_report_begins_with_its_verdict_and_one_figure_says_everything_and_escapes_it(report: Report, text: str):
    assert "<title>A &lt;title&gt;</title>" in text and "We found &amp; tell." in text
    words = (
        "heron_env ",
        "synchronous clock",
        "event-driven, ideal network",
        "action delay 2 s",
        "preset quick",
        "age p95",
    )
    assert all(part in text for part in words)
    parts = ('class="finding"', 'class="verdict"', 'id="figure-act_delay"', "<summary>All findings", "<nav")
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)
    assert 1 < len(report.summary) <= 3 and "jitter 0.2" not in [row[1] for row in report.parts[0].blocks[1].rows]
    earns, costs, nearest = report.verdict
    assert earns.label == "It earns" and earns.value == "12.60"
    assert costs.label == "The network costs it" and "under action delay 2 s" in costs.note
    assert nearest.label == "Difference to 'do nothing'"


def test_blocks_of_each_kind_are_drawn_and_commands_are_code():
    table = TextTable("told", ("x", "n"), [("one", "1"), ("", "2")], folded=True)
    blocks = ["a & b `c`", table, ["`d`"], {"term": "<e> `f`"}]
    page = render(Report("t", ["Run `heron <x>`."], [Section("p", blocks)]))
    for part in (
        "Run <code>heron &lt;x&gt;</code>.", "<p>a &amp; b <code>c</code></p>", "<summary>told</summary>",
        '<td class="n">2</td>', "<li><code>d</code></li>", "<dd>&lt;e&gt; <code>f</code></dd>",
    ):  # fmt: skip
        assert part in page
    assert page.count('<tr class="first">') == 1 and "`" not in page


def test_a_drawing_of_very_many_shapes_is_shown_as_pixels():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3, 3))
    figure.subplots().scatter(*np.random.default_rng(0).random((2, 9000)), c=np.arange(9000))
    assert "data:image/png" in render(Report("t", [], [Section("p", [Picture("dots", figure, "c", "a")])]))


def test_files_lie_beside_the_page(report: Report, tmp_path: Path):
    report = replace(report, parts=[replace(report.parts[-2], blocks=report.pictures[:2])])
    text = render(report)
    files = write_report(tmp_path / "new", report)
    assert (tmp_path / "new" / "report.html").read_text(encoding="utf-8") == text
    drawn = {picture.name for picture in report.pictures}
    assert len(drawn) == 2
    assert {Path(name).stem for name in files if name.endswith(".svg")} == drawn
    assert {Path(name).stem for name in files if name.endswith(".png")} == drawn
    assert all(path.stat().st_size > 1000 for path in files.values())
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="choose another folder"):
        write_report(tmp_path / "file", report)


# What it is made of


def test_where_nothing_is_lost_it_says_so_and_elsewhere_not(calm, swept):
    assert "No gap" in " ".join(report_of(Sources(sweeps=[calm])).finding)
    (picture,) = (block for block in gap_part(calm).blocks if isinstance(block, Picture))
    assert "No clear gap for 'idle'" in picture.caption
    assert causes_part(calm) is None
    assert swept.point("eager", Condition(act_delay=2.0)).gap.excludes_zero, "this test needs a gap"
    assert "No clear gap" not in gap_part(swept).blocks[0].caption


def test_what_differs_between_held_out_cases_is_said_where_the_world_says_it(swept):
    how = report_of(Sources(sweeps=[swept])).parts[-1].blocks[0]
    assert how["Held out"] == "Cases that are not used in training."
    assert "load profiles" in held_out_words(spec("heron/EnergyManagement-v1"), {})
    assert held_out_words(spec("nowhere:made"), {}) == ""  # what isn't trusted is not built


def test_the_case_that_is_drawn_is_typical_of_the_worst_condition_and_comes_out_as_in_the_sweep(swept):
    point = costliest(swept, "eager")
    look = look_at(swept, point)
    assert point.gap.value == max(p.gap.value for p in swept.of("eager"))
    gaps = dict(zip((case.seed for case in swept.sweep.cases), point.gaps, strict=True))
    assert abs(gaps[look.case.seed] - point.gap.value) == min(abs(gap - point.gap.value) for gap in point.gaps)
    sync, late = swept.point("eager").values[look.number], point.values[look.number]
    assert [type(block) for block in case_part(look, (sync, late)).blocks] == [Picture]
    (sentence,) = case_part(look, (sync, late + 0.01)).blocks
    assert sentence == (
        f"Not drawn: the repeated run's return is {sync:.2f} synchronous, {late:.2f} event-driven; "
        f"in the sweep it is {sync:.2f} synchronous, {late + 0.01:.2f} event-driven."
    )
    (sentence,) = case_part(replace(look, policy=Baseline("gone")), (sync, late)).blocks
    assert sentence.startswith("Not drawn: policy 'gone'")


def test_traces_and_runs_have_their_parts():
    episode = record_episode(GRID, "random", seed=1, t_end=4.0, options=SHORT, schedule=ScheduleConfig(msg_delay=0.1))
    made = report_of(Sources(traces=[episode, episode]))
    assert [picture.name for picture in made.pictures] == ["timeline", "timeline2", "hierarchy", "who_sees_what"]
    assert "One episode of 4 s" in made.finding[0]
    assert [tile.label for tile in made.verdict] == ["It earns", "Messages"]
    assert "`" not in render(made)


def test_one_report_is_about_one_environment(swept):
    other = record_episode("heron/Spread-v0", "random", t_end=2.0)
    for sources in (Sources(sweeps=[swept], traces=[other]), Sources()):
        with pytest.raises(ConfigError, match="one environment"):
            report_of(sources)


def test_one_cause_has_its_figure_from_two_amounts_on_and_all_policies_their_lines(delayed):
    made = report_of(Sources(sweeps=[delayed]))
    names = [picture.name for picture in made.pictures]
    assert names == ["act_delay", "one_case", "timeline", "hierarchy", "who_sees_what"]
    told = render(made)
    assert all(part in told for part in ("action delay 2 s", "random", "equal", "exactly"))
    assert "with a delay on every message and action" in told
    (grid,) = (block for block in made.parts[0].blocks if isinstance(block, TextTable))
    assert [row[0] for row in grid.rows] == ["eager", "", "", "idle", "", "", "random", "do nothing"]
    only_sync = Sweep.of(GRID, {"random": "random"}, [], cases=1, options=SHORT).run(processes=1)
    pictures = report_of(Sources(sweeps=[only_sync])).pictures
    assert [picture.name for picture in pictures] == ["hierarchy", "who_sees_what"]


def test_several_sweeps_are_told_apart_and_say_nothing_twice(delayed, swept):
    made = report_of(Sources(sweeps=[delayed, swept]), title="Both", facts={"Time": "1 s"})
    titles = [part.title for part in made.parts]
    assert titles[:3] == [
        "Return under the network: action delay",
        "Return under the network: quick",
        "Causes of the gap: quick",
    ]
    assert made.title == "Both" and made.parts[-1].blocks[0]["Time"] == "1 s"
    for each in (made.finding, [picture.name for picture in made.pictures]):
        assert len(set(each)) == len(each)
    assert widest([delayed, swept]) == widest([swept]) and len(widest([swept]).causes) == 6
    alike = report_of(Sources(sweeps=[delayed, delayed]))
    titles = [part.title for part in alike.parts if part.title.startswith("Return under")]
    assert titles == [f"Return under the network: action delay ({n}: 'eager', 'idle')" for n in (1, 2)]
    assert sum(name.startswith("Sweep") for name in alike.parts[-1].blocks[0]) == 2


# The figures


def test_a_figure_has_the_same_bytes_each_time(swept):
    assert to_svg(sweep_figure(swept, "act_delay")) == to_svg(sweep_figure(swept, "act_delay"))
    assert to_png(waterfall_figure(swept.decompositions[0], "EUR")) == to_png(
        waterfall_figure(swept.decompositions[0], "EUR")
    )


def test_a_figure_with_its_letters_as_text_is_smaller_and_says_the_same():
    figure, (axes,) = blank(2.0)
    axes.plot(np.linspace(0.0, 1.0, 50), np.sin(np.linspace(0.0, 6.0, 50)))
    axes.set_title("a delay of 0.00125 s, C L")
    shapes, text = to_svg(figure), to_svg(figure, text=True)
    assert len(text) < len(shapes) / 2
    root = ElementTree.fromstring(text)
    assert "a delay of 0.00125 s, C L" in {one.text for one in root.iter("{http://www.w3.org/2000/svg}text")}
    assert shapes.count(b"<clipPath") == text.count(b"<clipPath") > 0


def test_the_tree_names_who_decides_with_rates_and_delays_of_the_condition():
    options = {"num_batteries": 40, "zone_size": 40, "control": "zone"}
    late = Condition(act_delay={"coordinator": 0.3}, tick_ratio=4.0)
    drawn = texts(hierarchy_figure(describe_environment(GRID, options, late.schedule)[0]))
    assert all(
        word in drawn for word in ("system_agent", "zone_1", "decides", "every 4 s", "action 0.3 s", "obeys", "more")
    )


def test_the_learning_curve_names_the_levels_beside_it():
    curve, titles = [(0, -3.0), (5e5, -1.0)], ("Learning curve", "Sum of drone")
    drawn = texts(learning_figure(curve, {"do nothing": -2.0}, x_label="transitions", y_label="EUR", titles=titles))
    assert all(word in drawn for word in ("Learning curve", "in training", "do nothing", "transitions", "EUR"))
    assert "drone" not in drawn
    below = learning_figure(curve, {}, [(0, 1.0), (5e5, 60.0)], x_label="transitions", y_label="EUR", titles=titles)
    assert "Sum of drone" in texts(below) and heights(below.axes[1], "o") == [1.0, 60.0]


def against_an_amount(nothing: float, optimum: list[float]):
    """Of a policy that earned so much under two amounts, and in two cases; nothing is run."""
    returns = np.array([[[4.0, 6.0]], [[1.0, 2.0]]])
    asked = Sweep.of(GRID, {"mine": "random"}, [], cases=[Case(k, optimum=x) for k, x in enumerate(optimum)])
    blank = {"course": "", "kpis": {}, "staleness_p95": 0.0, "latency_p95": 0.0, "notes": []}
    records = {item.key: Record(item.key, Outcome(value=nothing, **blank), 0.0) for item in asked.items()}
    result = SweepResult(replace(asked, unit="EUR", return_of="tower"), records)
    return gap_figure(result, [PolicyLine("mine", np.array([0.0, 3.0]), returns, returns[0])], "act_delay")


def test_return_against_an_amount_shows_levels_differences_and_every_case():
    figure = against_an_amount(1.0, [7.0, 9.0])
    top, bottom = figure.axes
    assert heights(top, "o") == [3.0, 5.0, 0.0, 1.0, 4.0, 0.5]  # the gain of each case, then the means
    assert heights(bottom, "o") == [0.0, 0.0, 3.0, 4.0, 0.0, 3.5]  # as in the table: more than 0 is a cost
    levels = [
        line.get_ydata()[0] for line in top.lines if line.get_marker() == "None" and np.ptp(line.get_ydata()) == 0.0
    ]
    assert levels == [4.0, 7.0, 0.0]  # synchronous, optimum, doing nothing
    assert all(
        word in texts(figure) for word in ("mine", "optimum", "do nothing", "synchronous", "action delay, s", "EUR")
    )
    assert "Return of tower above doing nothing" in texts(figure)


def test_levels_far_away_are_arrows_with_their_values_and_the_policies_keep_the_picture():
    figure = against_an_amount(-90.0, [300.0, 500.0])
    low, high = figure.axes[0].get_ylim()
    assert 75.0 < low < 91.0 and 96.0 < high < 115.0
    assert "\u2193 do nothing: 0" in texts(figure) and "\u2191 optimum: 490" in texts(figure)


def test_the_bands_are_the_intervals_of_the_table():
    eager = Sweep.of(GRID, {"eager": [Eager(), "random"]}, along(act_delay=(0.0, 2.0)), cases=3, options=SHORT)
    swept = eager.run(processes=1)
    _, bottom = sweep_figure(swept, "act_delay").axes
    (band,) = bottom.collections
    drawn = {round(float(y), 9) for y in band.get_paths()[0].vertices[:, 1]}
    gap = swept.point("eager", Condition(act_delay=2.0)).gap
    assert gap.runs == 2 and drawn == {0.0, round(gap.low, 9), round(gap.high, 9)}


def test_causes_varied_together_are_lines_of_one_figure():
    conditions = grid(act_delay=(0.0, 1.0, 2.0), loss=(0.0, 0.3, 0.6))
    swept = Sweep.of(GRID, {"eager": Eager()}, conditions, cases=2, options=SHORT).run(processes=1)
    pictures = {block.name: block for block in gap_part(swept).blocks if isinstance(block, Picture)}
    assert set(pictures) == {"act_delay", "loss", "act_delay_by_loss"}
    top, _ = pictures["act_delay_by_loss"].drawing.axes
    drawn = {tuple(line.get_ydata()) for line in top.lines if line.get_marker() == "o" and len(line.get_xdata()) == 3}
    nothing = np.array(swept.point("do nothing").values)
    for loss in (0.0, 0.3, 0.6):
        means = [
            float((np.array(swept.point("eager", Condition(act_delay=act, loss=loss)).values) - nothing).mean())
            for act in (0.0, 1.0, 2.0)
        ]
        assert any(np.allclose(means, line) for line in drawn), loss
    assert all(word in texts(top.figure) for word in ("loss 0", "loss 0.3", "loss 0.6", "action delay, s"))
    with pytest.raises(ConfigError, match="'noise' and 'jitter'"):
        product_figure(swept, "eager", "noise", "jitter")


def test_return_against_a_cause_needs_conditions_with_it_alone(delayed, swept):
    drawn = texts(sweep_figure(delayed, "act_delay"))
    assert all(word in drawn for word in ("action delay, s", "eager", "idle", "do nothing", "synchronous"))
    assert "idle" not in texts(sweep_figure(delayed, "act_delay", ["eager"]))
    lossless = replace(swept.sweep, conditions=tuple(c for c in swept.sweep.conditions if not c.causes and c != IDEAL))
    with pytest.raises(ConfigError, match="has 'loss' alone"):
        sweep_figure(lossless.run(processes=1), "loss")


def test_the_waterfall_begins_each_bar_where_the_one_before_ended(swept):
    (found,) = swept.decompositions
    axes = waterfall_figure(found, "EUR").axes[0]
    *bars, whole = axes.patches
    reached = 0.0
    for bar, part in zip(bars, found.parts, strict=True):
        assert bar.get_x() == pytest.approx(reached)
        assert bar.get_width() == pytest.approx(part.mean.value)
        reached += part.mean.value
    assert whole.get_x() == 0.0
    assert whole.get_width() == pytest.approx(found.gap.mean.value) == pytest.approx(reached)
    drawn = texts(axes.figure)
    assert all(word in drawn for word in ("message delay", "loss", "all together", "EUR", "'eager'"))


def test_a_day_shows_content_power_price_and_the_window_where_the_clocks_differ():
    env = make(ENERGY, dt=900.0, physics_substeps=6, day=12)
    policies = Baseline("grid-friendly with zone feedback").build(env, 12)
    sync = env.run_synchronous(policies, seed=12, record=OF_A_DAY)
    lossy = ScheduleConfig(act_delay=900.0, msg_delay=1.0, loss=0.05)
    late = env.run_event_driven(policies, seed=12, schedule=lossy, record=OF_A_DAY)
    panels = compared(env, {"synchronous": sync, "event-driven": late})
    titles = [panel.title for panel in panels]
    assert titles == [
        "Content of the batteries of zone_1, mean",
        "Price",
        "Power through the transformer of zone_1",
        "Where the clocks differ most",
    ]
    power = panels[3]
    (t, sync), (u, event) = (np.asarray(line) for line in power.lines.values())
    assert len(u) < len(t), "this test needs a lost observation"
    held = event[np.searchsorted(u, t + 1e-9, side="right") - 1]
    apart = np.abs(sync - held)
    start, end = power.window
    assert end - start == 2.0
    most = max(apart[(t >= s) & (t < s + 2.0)].sum() for s in t if s + 2.0 <= t[-1])
    assert apart[(t >= start) & (t < end)].sum() == pytest.approx(most)
    assert power.limit == pytest.approx(10.8)
    drawn = texts(day_figure(panels, "day 12"))
    assert all(word in drawn for word in ("limit", "kW", "EUR/kWh", "virtual time, h", "event-driven", "synchronous"))


def test_quantities_that_nobody_knows_bear_their_names():
    env = make("heron/Spread-v0", max_steps=4)
    policies = Baseline("random").build(env, 1)
    runs = [env.run_synchronous(policies, seed=1, record=OF_A_DAY) for _ in range(2)]
    panels = compared(env, dict(zip(("synchronous", "with disturbances"), runs, strict=True)))
    first = env.possible_agents[0]
    names = [panel.title.removesuffix(f", seen by {first}") for panel in panels]
    assert len(names) == 3 and {*names} < {*env.observation_names(first)}
    assert [panel.unit for panel in panels] == [name.rpartition(".")[2] for name in names], "1 is no unit"
    assert list(panels[0].lines) == ["synchronous", "with disturbances"]


class Machine(FeatureProvider):
    visibility = ("owner",)
    size: float = quantity(default=1.0, low=0.0, high=2.0, unit="m")
    doing: int = quantity(default=0, categories=("wait", "send"))
    count: float = quantity(default=0.0, low=0.0, high=9.0, unit="piece")


class Worker(FieldAgent):
    features = (Machine,)
    action = Continuous(-1.0, 1.0)

    @staticmethod
    @rule(writes=(Machine.doing, Machine.count))
    def apply_action(machine: Machine) -> tuple[int, float]:
        return 1, machine.count + 1.0


def test_quantities_that_never_change_are_left_out_and_categories_have_their_names():
    env = HeronEnv(SystemAgent("plant", Worker("worker_1")), max_steps=4)
    runs = [env.run_synchronous({"*": lambda seen: 0.0}, seed=1, record=OF_A_DAY) for _ in range(2)]
    doing, count = compared(env, dict(zip(("synchronous", "event-driven"), runs, strict=True)))
    assert (doing.title, doing.unit, count.unit) == ("Machine.doing, seen by worker_1", "doing", "count, piece")
    axes, _ = day_figure([doing, count], "day").axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["wait", "send"]
    assert axes.lines[0].get_drawstyle() == "steps-post"


def test_an_environment_says_which_quantities_its_picture_shows(monkeypatch: pytest.MonkeyPatch):
    env = make("heron/BatteryGrid-v0", num_batteries=2, max_steps=4)
    names = env.observation_names("battery_1")
    monkeypatch.setattr(env, "picture_series", lambda: [
        PictureSeries("Kept", "share", "BatteryChargeFeature.soc", limit="BatteryChargeFeature.capacity", label="kept"),
        PictureSeries("Nobody sees it", "1", "Weather.wind"),
        PictureSeries("All of them", "share", "soc", mean=True, stepwise=True, closer="Closely"),
    ])  # fmt: skip
    policies = Baseline("random").build(env, 1)
    runs = [env.run_synchronous(policies, seed=seed, record=OF_A_DAY) for seed in (1, 2)]
    kept, mean, closer = compared(env, dict(zip(("synchronous", "event-driven"), runs, strict=True)))
    column = names.index(next(name for name in names if name.endswith("soc")))
    seen = {a: [float(vector[column]) for _, vector in runs[0].observations[a]] for a in env.possible_agents}
    assert (kept.title, mean.title, closer.title) == ("Kept", "All of them", "Closely")
    assert (list(kept.lines), kept.lines["kept"][1], kept.limit) == (["kept"], seen["battery_1"], 100.0)
    assert mean.lines["synchronous"][1] == pytest.approx(np.mean(list(seen.values()), axis=0))
    assert (list(mean.lines), mean.held, mean.window) == (["synchronous", "event-driven"], True, None)
    assert closer.lines == mean.lines
    assert closer.window is not None


# In a browser

CHECK = """
<script>
addEventListener("load", () => {
  document.querySelectorAll("details").forEach(part => { part.open = true; });
  const images = [...document.images];
  const bad = images.filter(i => !i.complete || i.naturalWidth < 100 || i.getBoundingClientRect().width < 100);
  const wide = document.documentElement.scrollWidth > innerWidth;
  const stops = [...document.querySelectorAll("a[href], summary, [tabindex]")];
  const reached = stops.filter(stop => { stop.focus(); return document.activeElement === stop; });
  const scrolls = [...document.querySelectorAll("*")].filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth &&
    ["auto", "scroll"].includes(getComputedStyle(e).overflowX));
  const links = [...document.querySelectorAll("nav a")].filter(a => document.querySelector(a.getAttribute("href")));
  document.title = "checked: " + JSON.stringify({
    images: images.length, bad: bad.length, wide, stops: stops.length - reached.length, links: links.length,
    unreachable: scrolls.filter(e => e.tabIndex < 0).length, scrolls: scrolls.length > 0,
  });
});
</script>
"""


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 500])
def test_a_browser_shows_every_image_without_a_complaint(text: str, tmp_path: Path, chromium: list[str], width: int):
    page = tmp_path / "page.html"
    page.write_text(text.replace("</body>", f"{CHECK}</body>"), encoding="utf-8")
    with browsing([*chromium, f"--window-size={width},900"]) as browser:
        browser.open(page.as_uri())
        title = browser.until("document.title.startsWith('checked: ') && document.title")
        assert browser.complaints == []
    shown = json.loads(title.removeprefix("checked: "))
    assert shown.pop("scrolls") or width == 1280
    assert shown == {"images": 6, "bad": 0, "wide": False, "stops": 0, "links": 6, "unreachable": 0}
