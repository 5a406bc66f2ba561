"""Requests that wait hold up nobody: 45 for one simulation, one that is built, one whose endpoint is silent."""

import socket
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import pytest
import uvicorn
import yaml
from endpoint_kit import serving
from serve.service import Gate, served

from heron_env import HeronEnv, make, registry, worlds
from heron_env.core.hierarchy import at_most
from heron_env.errors import HierarchyError
from heron_env.net.access import listening
from heron_env.net.guard import Guard
from heron_env.serve import app
from heron_env.serve.seats import Seats
from heron_env.serve.shelf import Shelf

Ask = Callable[..., tuple[int, Any]]
GRID = {"env": "heron/BatteryGrid-v0", "options": {"num_batteries": 2, "max_steps": 100}}
MANY, SOON = 45, 30.0
"""Requests at once; so long a test waits for what must come, s."""


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    made = Shelf(tmp_path, guard=Guard(loopback=True))
    yield made
    made.close()


@pytest.fixture
def ask(shelf: Shelf) -> Iterator[Ask]:
    with served(shelf) as asked:
        yield asked


def test_45_requests_for_a_busy_simulation_hold_up_no_other(ask: Ask, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("heron_env.serve.simulation.PATIENCE", 10 * SOON)
    gate = Gate(passing="probe")
    with serving(gate) as endpoint, ThreadPoolExecutor(MANY) as pool:
        for _ in range(2):
            assert ask("POST", "/simulations", GRID)[0] == 201
        injection = {"agent_id": "battery_1", "endpoint_url": endpoint.url}
        assert ask("POST", "/simulations/1/inject-agent", injection)[0] == 201
        stepping = [pool.submit(ask, "POST", "/simulations/1/step") for _ in range(MANY)]
        at_once = [done.result() for _, done in zip(range(MANY - 5), as_completed(stepping, SOON), strict=False)]
        assert gate.came.wait(SOON)
        assert Counter((status, told["error"]["code"]) for status, told in at_once) == {(409, "BUSY"): MANY - 5}
        assert "4 wait for it" in at_once[0][1]["error"]["message"]
        # one is under way, four wait; nobody else does
        assert len(ask("GET", "/simulations")[1]) == 2
        assert ask("GET", "/simulations/1")[1]["step"] == 0
        assert ask("GET", "/simulations/1/injected-agents")[0] == 200
        assert ask("GET", "/simulations/1/inject-agent/battery_1/metrics")[1]["decisions"] == 0
        assert ask("POST", "/simulations/1/inject-agent/battery_1/health-check")[1]["healthy"]
        assert ask("POST", "/simulations/2/step")[1]["step"] == 1
        assert ask("POST", "/simulations", GRID)[1]["id"] == "3"
        assert ask("DELETE", "/simulations/3")[0] == 200
        assert sum(done.done() for done in stepping) == MANY - 5
        gate.go.set()
        assert Counter(done.result(SOON)[0] for done in stepping) == {200: 5, 409: MANY - 5}
        assert ask("GET", "/simulations/1")[1]["step"] == 5


def test_what_waits_for_silent_endpoints_keeps_nobody_from_looking(ask: Ask):
    gate = Gate()
    with serving(gate) as endpoint, ThreadPoolExecutor(MANY) as pool:
        ask("POST", "/simulations", GRID)
        ask("POST", "/simulations/1/inject-agent", {"agent_id": "battery_1", "endpoint_url": endpoint.url})
        path = "/simulations/1/inject-agent/battery_1/health-check"
        checks = [pool.submit(ask, "POST", path) for _ in range(MANY)]
        assert gate.came.wait(SOON)
        assert ask("GET", "/simulations/1")[1]["step"] == 0
        assert ask("POST", "/simulations/1/reset")[0] == 200
        gate.go.set()
        assert {done.result(2 * SOON)[0] for done in checks} == {200}


@pytest.fixture
def slowly_built() -> Iterator[Gate]:
    gate = Gate()

    def slowly(**options: Any) -> HeronEnv:
        gate()
        return make("heron/BatteryGrid-v0", **options)

    registry.register("test/Slow-v0", slowly)
    yield gate
    del registry._registry["test/Slow-v0"]


def test_building_one_holds_up_no_other_and_counts_as_one(
    ask: Ask, slowly_built: Gate, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("heron_env.serve.shelf.MOST", 3)
    with serving(lambda body: {"action": [0.5]}) as endpoint, ThreadPoolExecutor() as pool:
        ask("POST", "/simulations", GRID)
        building = pool.submit(ask, "POST", "/simulations", {"env": "test/Slow-v0"})
        assert slowly_built.came.wait(SOON)
        assert ask("POST", "/simulations", GRID)[1]["id"] == "3"
        assert ask("POST", "/simulations", GRID)[1]["error"]["code"] == "TOO_MANY"
        assert [one["id"] for one in ask("GET", "/simulations")[1]] == ["1", "3"]
        assert ask("GET", "/simulations/2")[0] == 404
        injection = {"agent_id": "battery_1", "endpoint_url": endpoint.url}
        assert ask("POST", "/simulations/1/inject-agent", injection)[0] == 201
        assert ask("POST", "/simulations/1/step")[1]["decisions"]["battery_1"]["source"] == "external"
        assert ask("DELETE", "/simulations/3")[0] == 200
        slowly_built.go.set()
        assert building.result(SOON)[1]["id"] == "2"
        assert ask("POST", "/simulations/2/step")[0] == 200
        assert ask("POST", "/simulations", GRID)[1]["id"] == "4"


def economy(countries: int, variables: int) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((Path(worlds.__file__).parent / "economy" / "economy.yaml").read_text())
    config["agents"] = [{"name": f"country_{number}", "type": "country"} for number in range(countries)]
    del config["observability"]
    declared = config["state_variables"]
    for variable in (*declared["agent_vars"].values(), *declared["global_vars"].values()):
        variable.pop("unit", None)  # 1/s reads like a file's name
    declared["agent_vars"] |= {
        f"v{number}": {"type": "float", "min": 0.0, "max": 1.0, "default": 0.5} for number in range(variables)
    }
    return config


TOO_LARGE: list[dict[str, Any]] = [
    {"env": "heron/BatteryGrid-v0", "options": {"num_batteries": 1_000, "scope": "owner"}},  # and the system agent
    {"env": "heron/BatteryGrid-v0", "options": {"num_batteries": 400}},  # each sees all
    {"env": "heron/BatteryGrid-v0", "options": {"num_batteries": 10_000}},
    {"env": "heron/EnergyManagement-v1", "options": {"num_batteries": 1_500, "passive_per_zone": 0}},
    {"env": "heron/TrafficCorridor-v0", "options": {"num_intersections": 10_000}},
    {"env": "heron/Spread-v0", "options": {"num_agents": 1_500}},
    {"env": "heron/BatteryGrid-v0", "options": {"num_batteries": 400, "observability": {"enabled": False}}},
    {"env": "heron/Economy-v0", "options": {"config": economy(900, 20)}},
    {"env": "heron/Economy-v0", "options": {"config": economy(10, 3_000)}},
]


@pytest.mark.parametrize("asked", TOO_LARGE, ids=range(len(TOO_LARGE)))
def test_what_is_too_large_is_refused_while_it_is_built(ask: Ask, tmp_path: Path, asked: dict[str, Any]):
    status, told = ask("POST", "/simulations", asked)
    assert (status, told["error"]["code"]) == (422, "INVALID_REQUEST")
    assert "at most 1,000 agents, and 200,000 numbers in features and observations together" in told["error"]["message"]
    assert ask("GET", "/simulations") == (200, [])
    assert not list(tmp_path.glob("[0-9]*"))


def test_the_limit_is_the_count_of_what_is_made():
    def grid() -> HeronEnv:
        return make("heron/BatteryGrid-v0", num_batteries=3)

    env = grid()
    agents = len(env.hierarchy)
    own = sum(feature.width for agent in env.hierarchy.agents for feature in agent.features)
    numbers = own + sum(len(view.columns) for view in env.simulation.model.plan.views)
    with at_most(agents=agents, numbers=numbers):
        grid()
    for less in ({"agents": agents - 1, "numbers": numbers}, {"agents": agents, "numbers": numbers - 1}):
        with at_most(**less), pytest.raises(HierarchyError, match="this environment is too large: at most"):
            grid()
    grid()


def test_small_answers_are_sent_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def sends_at_once(one: socket.socket) -> bool:
        return one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0

    listener, _ = listening("127.0.0.1", 0)
    with listener, socket.create_connection(listener.getsockname()), listener.accept()[0] as connection:
        assert sends_at_once(connection)
    asked: list[socket.socket] = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: asked.extend(sockets))
    app.serve(tmp_path, ready=lambda address: None)
    Seats(make("heron/BatteryGrid-v0"), "battery_1").close()
    assert [sends_at_once(one) for one in asked[:1]] == [True]
    assert len(asked) == 2
    asked[0].close()
