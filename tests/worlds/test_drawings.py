"""The six worlds draw themselves: artists show the state, are made once and move with it; what one knows is dashed."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

from heron_env import make
from heron_env.core.world import World
from heron_env.declared.env import DeclaredAgent
from heron_env.pictures.frames import ObservedWorld
from heron_env.pictures.palette import picture_style
from heron_env.pictures.shapes import BLUE, GREEN, ORANGE, VERMILION, Labels, known_text
from heron_env.worlds.battery_grid import Battery as GridBattery
from heron_env.worlds.energy_management import Battery, TransformerZone
from heron_env.worlds.graph_coloring.agents import Cluster, FixedNode, Node
from heron_env.worlds.graph_coloring.drawing import COLOURS
from heron_env.worlds.spread import SpreadEnv
from heron_env.worlds.spread.discs import Disc
from heron_env.worlds.traffic_corridor import Intersection

SPREAD, TRAFFIC, GRAPH = "heron/Spread-v0", "heron/TrafficCorridor-v0", "heron/GraphColoring-v0"
ENERGY, GRID, ECONOMY = "heron/EnergyManagement-v1", "heron/BatteryGrid-v0", "heron/Economy-v0"
WORLDS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "spread": (SPREAD, {}),
    "spread of 20": (SPREAD, {"num_agents": 20}),
    "spread of 1": (SPREAD, {"num_agents": 1}),
    "corridor": (TRAFFIC, {}),
    "corridor of 12": (TRAFFIC, {"num_intersections": 12}),
    "graph": (GRAPH, {"start": "random", "fixed": "default"}),
    "ring of 50": (GRAPH, {"problem": "ring50", "start": "random"}),
    "energy": (ENERGY, {"day": 172}),
    "energy of 60": (ENERGY, {"day": 172, "num_batteries": 60, "zone_size": 7}),
    "grid": (GRID, {}),
    "grid of 100": (GRID, {"num_batteries": 100, "zone_size": 7}),
    "economy": (ECONOMY, {}),
}
USUAL = ("spread", "corridor", "graph", "energy", "grid", "economy")
"""One of each kind; how many agents there are matters where text must find its place."""


class Picture:
    """A world's picture on axes of its own."""

    def __init__(self, env: Any, agent: str = "") -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.env, self.agent, self.drawing = env, agent, None
        self.figure = Figure((5.12, 5.76), 100)
        self.canvas, self.axes = FigureCanvasAgg(self.figure), self.figure.subplots()

    def show(self, known: np.ndarray | None = None, age: float = 2.0) -> Any:
        """Draw the truth, and what the agent knows: a row of the truth; the drawing."""
        layout, observed = self.env.simulation.model.layout, None
        if self.agent:
            row = np.full(layout.size, np.nan) if known is None else known
            ages = {} if known is None else {self.agent: age}
            observed = ObservedWorld(self.agent, {}, ages, World(layout, row))
        with picture_style():
            self.drawing = self.env.draw_frame(self.axes, self.env.world, observed, self.drawing)
        return self.drawing

    def pixels(self) -> bytes:
        with picture_style():
            self.canvas.draw()
        return bytes(self.canvas.buffer_rgba())


built = cache(make)
"""Each environment is built once, and starts anew in each test."""


def started(name: str, **options: Any) -> Any:
    env = built(name, **options)
    env.reset(seed=1)
    return env


def begun(name: str) -> Any:
    id_, options = WORLDS[name]
    return started(id_, **options)


def step(env: Any) -> None:
    for agent in env.agents:
        env.action_space(agent).seed(3)
    env.step({agent: env.action_space(agent).sample() for agent in env.agents})


def middles(collection: Any) -> np.ndarray:
    return np.array([path.vertices[:-1].mean(axis=0) for path in collection.get_paths()]).reshape(-1, 2)


def heights(collection: Any) -> np.ndarray:
    return np.array([np.ptp(path.vertices[:, 1]) for path in collection.get_paths()])


def colours(collection: Any) -> list[str]:
    from matplotlib.colors import to_hex

    return [to_hex(colour).upper() for colour in collection.get_facecolor()]


# Laws of all


@pytest.mark.parametrize("name", USUAL)
def test_artists_are_made_once_and_move_with_the_state(name: str):
    env = begun(name)
    picture = Picture(env, env.possible_agents[0])
    drawing, artists = picture.show(), picture.axes.get_children()
    first = picture.pixels()
    assert picture.show() is drawing
    assert picture.pixels() == first
    for _ in range(3):
        step(env)
    assert picture.show(env.simulation.truth.copy()) is drawing
    assert picture.axes.get_children() == artists
    assert picture.pixels() != first


@pytest.mark.parametrize("name", USUAL)
def test_a_picture_writes_nothing_into_the_world(name: str):
    env = begun(name)
    before, picture = env.simulation.truth.copy(), Picture(env)
    picture.show()
    picture.show()
    np.testing.assert_array_equal(env.simulation.truth, before)


def on_it(extent: Any, box: Any) -> bool:
    """Does it lie within the box?"""
    return bool(box.x0 <= extent.x0 and extent.x1 <= box.x1 and box.y0 <= extent.y0 and extent.y1 <= box.y1)


@pytest.mark.parametrize("name", WORLDS)
def test_text_is_legible_and_stays_on_the_picture(name: str):
    env = begun(name)
    picture = Picture(env, env.possible_agents[0])
    drawing = picture.show(env.simulation.truth.copy())
    picture.pixels()
    box = picture.figure.bbox
    for text in (drawing.title, drawing.foot):
        assert text.get_fontsize() >= 8.0
        assert on_it(text.get_window_extent(), box)
    for labels in (part for part in vars(drawing).values() if isinstance(part, Labels)):
        assert labels.points >= 8.0
        assert not any(labels.words) or on_it(labels.shapes.get_tightbbox(), box)


@pytest.mark.parametrize("name", USUAL)
def test_the_foot_says_whose_knowledge_is_dashed_and_how_old_it_is(name: str):
    env = begun(name)
    agent = env.possible_agents[0]
    picture = Picture(env, agent)
    assert picture.show().foot.get_text() == f"dashed: what {agent} knows, nothing yet"
    drawing = picture.show(env.simulation.truth.copy(), age=12.5)
    assert drawing.foot.get_text() == f"dashed: what {agent} knows, up to 12.5 s old"
    assert Picture(env).show().foot.get_text() == known_text(None) == ""


# Spread


def placed(agents: Any, landmarks: Any, mates: str = "exact") -> SpreadEnv:
    env: Any = built(SPREAD, num_agents=len(agents), mates=mates)
    env.reset(seed=1, options={"agents": agents, "landmarks": landmarks})
    return env


def test_discs_stand_where_agents_are_and_landmarks_shine_once_covered():
    agents, landmarks = [(-0.8, 0.5), (0.0, 0.0), (0.2, 0.1)], [(-0.8, 0.55), (0.9, -0.9), (0.5, 0.5)]
    env = placed(agents, landmarks)
    picture = Picture(env)
    drawing = picture.show()
    np.testing.assert_allclose(middles(drawing.agents), agents, atol=1e-9)
    np.testing.assert_allclose(middles(drawing.landmarks), landmarks, atol=1e-9)
    assert colours(drawing.landmarks) == [ORANGE, "#FFFFFF", "#FFFFFF"]
    assert heights(drawing.landmarks)[0] > 2.0 * heights(drawing.landmarks)[1]
    np.testing.assert_allclose(drawing.contacts.get_data(), [[0.1], [0.05]])
    assert drawing.title.get_text() == "1 of 3 landmarks covered, 1 contact"
    env.world[Disc].Position.x[2] = 0.9
    picture.show()
    np.testing.assert_allclose(middles(drawing.agents)[2], (0.9, 0.1), atol=1e-9)
    assert drawing.title.get_text() == "1 of 3 landmarks covered, 0 contacts"
    assert len(drawing.contacts.get_xdata()) == 0


@pytest.mark.parametrize("mates", ["exact", "message"])
def test_ghosts_stand_where_the_agent_believes_everybody(mates: str):
    env = placed([(-0.8, 0.5), (0.0, 0.0), (0.4, 0.1)], [(0.0, 0.5), (0.9, -0.9), (0.5, 0.5)], mates)
    old = env.simulation.truth.copy()
    for _ in range(3):
        step(env)
    drawing = Picture(env, "agent_1").show(old)
    np.testing.assert_allclose(middles(drawing.ghosts), [(-0.8, 0.5), (0.0, 0.0), (0.4, 0.1)], atol=1e-9)
    here = np.stack([env.world[Disc].Position.x, env.world[Disc].Position.y], axis=-1)
    np.testing.assert_allclose([line[0] for line in drawing.lags.get_segments()], here)
    assert [tuple(colour) for colour in drawing.agents.get_edgecolor()].count(tuple(drawing.lags.get_color()[0])) == 1


# TrafficCorridor


def test_a_dash_is_as_long_as_the_queue_is_thought_to_be():
    env = started(TRAFFIC)
    traffic = env.world[Intersection].Traffic
    traffic.main[...], traffic.side[...] = (4.0, 0.0, 2.0, 0.0), (0.0, 3.0, 0.0, 0.0)
    old = env.simulation.truth.copy()
    traffic.main[...], traffic.side[...] = 1.0, 1.0
    ghosts = Picture(env, "corridor_1").show(old).ghosts.get_paths()
    long = [np.ptp(path.vertices[:, 0]) for path in ghosts[:4]] + [np.ptp(path.vertices[:, 1]) for path in ghosts[4:]]
    np.testing.assert_allclose(np.array(long) / 0.98, [4, 0, 2, 0, 0, 3, 0, 0], atol=1e-9)


# GraphColoring


def painted(env: Any, assignment: Mapping[str, str]) -> None:
    codes = env.problem.codes(assignment)
    for kind in (Node, FixedNode):
        if any(isinstance(agent, kind) for agent in env.hierarchy.agents):
            place = env.world[kind].Place.number.astype(int)
            env.world[kind].Colour.value[...] = codes[place]


def test_nodes_have_their_colours_and_conflicts_are_crossed_out():
    env = started(GRAPH)
    assignment = env.problem.start() | {"h1": "green", "a1": "blue"}
    painted(env, assignment)
    picture = Picture(env)
    drawing = picture.show()
    drawn = [env.problem.domain[code] for code in env.problem.codes(assignment)[drawing.numbers]]
    assert colours(drawing.nodes) == [COLOURS[env.problem.domain.index(name)].upper() for name in drawn]
    assert drawing.letters.words == [name[0].upper() for name in drawn]
    torn = env.problem.conflicts(assignment)
    assert len(drawing.torn.get_segments()) == len(drawing.crosses.get_xdata()) == torn > 0
    assert drawing.title.get_text().startswith(f"{torn} conflicts; 0 of 3")
    painted(env, env.problem.start() | {"h1": "blue"})
    assert len(picture.show().torn.get_segments()) != torn


def test_a_neighbour_is_framed_in_the_colour_that_the_observing_cluster_was_told():
    env = started(GRAPH)
    foreign = [*env.problem.part("Human").owners]
    known = env.simulation.truth.copy()
    told = World(env.simulation.model.layout, known)[Cluster].Heard.told[0].reshape(-1, 2)
    told[: len(foreign)] = [(0, 0.0)] * len(foreign)
    told[0] = (len(env.problem.domain), -1.0)
    env.world.time = 3.0
    painted(env, env.problem.start() | {foreign[1]: "blue"})
    drawing = Picture(env, "Human").show(known)
    assert [env.problem.nodes[number] for number in drawing.numbers[drawing.foreign]] == foreign
    np.testing.assert_allclose(middles(drawing.beliefs), drawing.place[drawing.foreign])
    assert colours(drawing.beliefs) == ["#FFFFFF", *[COLOURS[0].upper()] * (len(foreign) - 1)]
    letter = env.problem.domain[0][0].upper()
    assert drawing.ages.words == ["not told", *[f"{letter}, 3 s"] * (len(foreign) - 1)]
    assert not len(Picture(env, "Agent1.voice").show(known).beliefs.get_paths())


# EnergyManagement


def test_homes_show_batteries_loads_and_roofs():
    env = started(ENERGY, day=172)
    homes = env.world[Battery]
    homes.Charge.soc[...] = (0.0, 0.1, 0.5, 0.9, 1.0, 0.3)
    homes.Setpoint.power[...] = (1.0, -1.0, 0.0, 0.0, 2.0, -3.0)
    homes.Flow.load[...], homes.Meter.pv[...] = (0.0, 3.0, 6.0, 9.0, 1.0, 1.0), (0.0, 1.0, 2.0, 3.0, 40.0, 0.0)
    picture = Picture(env)
    drawing = picture.show()
    np.testing.assert_allclose(heights(drawing.cells.fills) / drawing.cells.height, homes.Charge.soc, atol=1e-9)
    assert colours(drawing.cells.fills) == [VERMILION] * 2 + [GREEN] * 4
    x = np.array(drawing.cells.left) + drawing.cells.width / 2.0
    np.testing.assert_allclose(drawing.cells.up.get_xdata(), x[[0, 4]])
    np.testing.assert_allclose(drawing.cells.down.get_xdata(), x[[1, 5]])
    np.testing.assert_allclose(heights(drawing.loads) / drawing.bars[3], [0, 0.5, 1, 1, 1 / 6, 1 / 6], atol=1e-9)
    bright = drawing.roofs.get_facecolor()[:, 0]
    assert bright[0] == bright[5] < bright[1] < bright[4] == 1.0
    homes.Charge.soc[0] = 0.7
    assert heights(picture.show().cells.fills)[0] / drawing.cells.height == pytest.approx(0.7)


def test_a_transformer_alarms_beyond_its_limit_in_either_direction():
    env = started(ENERGY, day=172)
    zone = env.world[TransformerZone].Zone
    zone.power[...] = (1.2, -0.5) * zone.limit
    picture = Picture(env, "battery_1")
    drawing = picture.show()
    assert colours(drawing.flows) == [VERMILION, BLUE]
    (right,), (level,) = drawing.alarms.get_data()
    assert right == pytest.approx(drawing.middle[0] + drawing.half[0] * 1.2 / 1.5)
    assert level == pytest.approx(drawing.level[0] + 1.2)
    assert drawing.words.words == ["zone_1: draws 13.0 of 10.8 kW", "zone_2: feeds in 5.4 of 10.8 kW"]
    assert middles(drawing.flows)[1, 0] < drawing.middle[1], "feeding in is to the left"
    old = env.simulation.truth.copy()
    zone.power[...] = (0.5, -1.01) * zone.limit
    picture.show(old)
    assert colours(drawing.flows) == [BLUE, VERMILION]
    believed = [line[0, 0] for line in drawing.ghosts.get_segments()]
    np.testing.assert_allclose(believed, drawing.middle + drawing.half * np.array([0.8, -1.0 / 3.0]))


# BatteryGrid


def test_cells_fill_and_arrows_say_who_charges():
    env = started(GRID, num_batteries=25, zone_size=10)
    soc = env.world[GridBattery].BatteryChargeFeature.soc
    soc[...] = np.linspace(0.0, 1.0, 25)
    picture = Picture(env)
    drawing = picture.show()
    np.testing.assert_allclose(heights(drawing.cells.fills) / drawing.cells.height, soc, atol=1e-9)
    assert drawing.means.words == ["zone_1: 19%", "zone_2: 60%", "zone_3: 92%"]
    assert len(drawing.cells.up.get_xdata()) == len(drawing.cells.down.get_xdata()) == 0
    soc[3], soc[7] = 0.9, 0.0
    picture.show()
    x = drawing.cells.left + drawing.cells.width / 2.0
    assert (drawing.cells.up.get_xdata(), drawing.cells.down.get_xdata()) == (x[3], x[7])


def test_a_dash_is_where_a_level_is_believed_to_be():
    env = started(GRID, num_batteries=3)
    known = env.simulation.truth.copy()
    World(env.simulation.model.layout, known)[GridBattery].BatteryChargeFeature.soc[...] = (0.25, np.nan, 1.0)
    cells = Picture(env, "battery_1").show(known).cells
    levels = [line[0, 1] for line in cells.ghosts.get_segments()]
    np.testing.assert_allclose(levels, (cells.bottom + np.array([0.25, 0.0, 1.0]) * cells.height)[[0, 2]])


# Economy


def test_discs_grow_arrows_turn_and_secrets_stay_secret():
    env = started(ECONOMY)
    countries = env.world[DeclaredAgent].Variables
    countries.economic_strength[...] = (100.0, 25.0, 100.0, 100.0)
    countries.position[...], countries.secret_reserves[...] = (0.5, -0.5, 0.0, 1.0), (50.0, 25.0, 100.0, 0.0)
    known = env.simulation.truth.copy()
    theirs = World(env.simulation.model.layout, known)
    theirs[DeclaredAgent].Variables.secret_reserves[1:] = theirs.Globals.central_bank_reserves[...] = np.nan
    drawn = Picture(env, "country_1").show(known)
    size = heights(drawn.discs)
    assert size[1] == pytest.approx(size[0] / 2.0)
    np.testing.assert_allclose(
        heights(drawn.vaults.fills)[:4] / drawn.vaults.height[:4], (0.5, 0.25, 1.0, 0.0), atol=1e-9
    )
    assert drawn.unknown.words == ["", "?", "?", "?", "?"]
    assert colours(drawn.arrows) == [BLUE, VERMILION, BLUE, BLUE]
    tips = np.array([path.vertices[3] for path in drawn.arrows.get_paths()])
    far = np.hypot(*(tips - drawn.middle).T)
    assert far[1] > 1.5 * far[0], "who owes is paid: the arrow's tip is at the country"
    assert drawn.numbers.words[4:] == ["holds 50%", "owes 50%", "holds 0%", "holds 100%"]


def test_a_declared_world_whose_engine_draws_nothing_shows_its_quantities():
    from heron_env.declared.engine import Engine

    env: Any = make(ECONOMY)
    env.reset(seed=1)
    env.engine = Engine()
    picture = Picture(env)
    first = picture.show()
    assert picture.show() is first is not None
    assert not hasattr(first, "show")
