"""The report: one file, nothing from elsewhere, every picture told in words too; figures that say what they show."""

import re
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from heron_env.errors import ConfigError
from heron_env.evaluation import one_day
from heron_env.evaluation.benchmark import Case
from heron_env.evaluation.clocks import clock
from heron_env.evaluation.evaluate import evaluate
from heron_env.evaluation.figure_style import to_svg
from heron_env.evaluation.figures import delay_figure, hierarchy_figure, learning_figure
from heron_env.evaluation.pictures import pictures
from heron_env.evaluation.policies import Baseline
from heron_env.evaluation.report import Report, render_report, write_report
from heron_env.evaluation.time_figures import day_figure
from heron_env.registry import make

pytest.importorskip("matplotlib")

GRID = "heron/BatteryGrid-v0"
ENERGY = "heron/EnergyManagement-v0"


def texts(figure) -> str:
    """All words in a figure."""
    from matplotlib.text import Text

    return " | ".join(t.get_text() for t in figure.findobj(Text) if t.get_text())


@pytest.fixture(scope="module")
def table():
    policies = {"random": "random", "do nothing": "do nothing"}
    return evaluate(
        GRID,
        policies,
        clocks=("sync", 0.0, 2.0),
        cases=3,
        sync_only=["do nothing"],
        options={"max_steps": 12},
        processes=1,
    )


@pytest.fixture(scope="module")
def report(table) -> Report:
    made = pictures(table, "random", Baseline("random"))
    return Report("A <title>", "We found & tell.", table, made, {"Seeds": "0 to 2"}, ["a note"])


class Page(HTMLParser):
    """Collects images, links and the nesting of a document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.images: list[dict] = []
        self.addresses: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag == "img":
            self.images.append(found)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "srcset", "action")]
        if tag not in ("meta", "img", "link", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def text(report: Report) -> str:
    return render_report(report)


def test_the_report_is_one_file_that_asks_for_nothing(text: str):
    page = Page(text)
    assert page.open == []
    assert all(address.startswith("data:") for address in page.addresses)
    assert "<script" not in text and "@import" not in text and "url(" not in text
    assert 'name="viewport"' in text and 'lang="en"' in text


def test_every_picture_is_told_in_words(report: Report, text: str):
    page = Page(text)
    assert len(page.images) == len(report.pictures) == 4
    assert all(len(image["alt"]) > 20 for image in page.images)


def test_the_report_says_everything_and_escapes_it(text: str):
    assert "<title>A &lt;title&gt;</title>" in text
    assert "We found &amp; tell." in text
    assert all(part in text for part in ("0 to 2", "a note", "heron_env ", "True", "event, 2 s", "do nothing"))


def test_writing_makes_the_folders(report: Report, tmp_path: Path):
    report = replace(report, pictures=report.pictures[:1])
    path = write_report(tmp_path / "new" / "report.html", report)
    assert path.read_text(encoding="utf-8") == render_report(report)


def test_a_figure_has_the_same_bytes_each_time():
    env = make(GRID)
    assert to_svg(hierarchy_figure(env)) == to_svg(hierarchy_figure(env))


def test_the_tree_names_who_decides_and_counts_whom_it_leaves_out():
    drawn = texts(hierarchy_figure(make(GRID, num_batteries=25, zone_size=25, control="zone")))
    assert all(word in drawn for word in ("system_agent", "zone_1", "decides, every 1 s", "obeys", "and 17 more"))
    assert "battery_9" not in drawn


def test_the_learning_curve_names_the_levels_beside_it():
    drawn = texts(learning_figure([(0, -3.0), (5e5, -1.0)], {"do nothing": -2.0}, x_label="transitions", y_label="EUR"))
    assert all(word in drawn for word in ("Learning curve", "in training", "do nothing", "transitions", "EUR"))


def test_return_against_delay_needs_delays(table):
    drawn = texts(delay_figure(table))
    assert all(word in drawn for word in ("delay from observation to effect, s", "random", "do nothing", "synchronous"))
    with pytest.raises(ConfigError, match="no event-driven row"):
        delay_figure(evaluate(GRID, {"random": "random"}, clocks=["sync"], cases=1, processes=1))


def test_a_day_shows_content_power_price_and_the_window_where_the_clocks_differ():
    env = make(ENERGY, dt=900.0, physics_substeps=6, day=12)
    policies = Baseline("grid-friendly with zone feedback").build(env, 12)
    day = one_day.compare_day(env, policies, Case(12, {"day": 12}), clock(900.0))
    titles = [panel.title for panel in day.panels]
    assert titles == [
        "Content of the batteries of zone_1, mean",
        "Price",
        "Power through the transformer of zone_1",
        "The two hours in which the clocks differ most",
    ]
    power = day.panels[3]
    (t, sync), (_, event) = (np.asarray(line) for line in power.lines.values())
    apart = np.abs(sync - event)
    start, end = power.window
    assert end - start == 2.0
    assert apart[(t >= start) & (t < end)].sum() >= apart[(t >= 4.0) & (t < 6.0)].sum()
    assert power.limit == pytest.approx(10.8)
    drawn = texts(day_figure(day.panels, "day 12"))
    assert all(word in drawn for word in ("limit", "kW", "EUR/kWh", "virtual time, h", "event-driven", "synchronous"))


def test_the_timeline_has_a_lane_for_each_agent(report: Report):
    drawn = texts(report.pictures[-1].figure)
    assert all(word in drawn for word in ("physics", "zone_1", "battery_1", "virtual time, s", "action under way"))


CHECK = """
<script>
addEventListener("load", () => {
  const images = [...document.images];
  const bad = images.filter(i => !i.complete || i.naturalWidth < 100 || i.getBoundingClientRect().width < 100);
  const wide = document.documentElement.scrollWidth > innerWidth;
  document.title = `checked: ${images.length} images, ${bad.length} bad, too wide: ${wide}`;
});
</script>
"""


@pytest.mark.browser
@pytest.mark.parametrize("width", [1000, 500])
def test_a_browser_shows_every_image_without_a_complaint(text: str, tmp_path: Path, chromium: list[str], width: int):
    page = tmp_path / "report.html"
    page.write_text(text.replace("</body>", f"{CHECK}</body>"), encoding="utf-8")
    flags = ["--enable-logging=stderr", "--v=0", f"--window-size={width},900", "--dump-dom", page.as_uri()]
    done = subprocess.run([*chromium, *flags], capture_output=True, text=True, timeout=60, check=True)
    assert "checked: 4 images, 0 bad, too wide: false" in done.stdout
    assert not re.findall(r"CONSOLE.*", done.stderr)
