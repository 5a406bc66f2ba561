"""What a shelf of simulations outlives: damage beside it, a second server, operations that were cut off, neighbours."""

import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from endpoint_kit import serving
from serve.service import Gate, served

from heron_env.errors import ConfigError, InvalidAction, RunFolderError
from heron_env.net.guard import Guard
from heron_env.serve.journal import Injection, NewSimulation, Removal, Reset, Steps
from heron_env.serve.shelf import Shelf
from heron_env.serve.simulation import Busy, NoSuchSimulation

ASKED = NewSimulation(env="heron/BatteryGrid-v0", options={"num_batteries": 2, "max_steps": 12}, seed=3)


def opened(folder: Path) -> Shelf:
    return Shelf(folder, guard=Guard(loopback=True))


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    made = opened(tmp_path)
    yield made
    made.close()


def played(shelf: Shelf, url: str) -> Any:
    _, made = shelf.create(ASKED)
    made.do(Injection(agent_id="battery_1", endpoint_url=url))
    return made


def constant(body: dict[str, Any]) -> dict[str, Any]:
    return {"action": [0.5]}


def test_a_damaged_simulation_stops_no_other(tmp_path: Path):
    first = opened(tmp_path)
    (bad, _), (good, _) = first.create(ASKED), first.create(ASKED)
    first.close()
    (tmp_path / bad / "simulation.json").write_text('{"env": ')
    for name in ("²", "007", "-1", "1.0", "9" * 30):
        shutil.copytree(tmp_path / good, tmp_path / name)
    (tmp_path / "5").mkdir()  # of a server that was killed while it began
    second = opened(tmp_path)
    assert second.find(good).state()["step"] == 0
    with pytest.raises(RunFolderError, match=r"simulation\.json: damaged"):
        second.find(bad)
    assert [name for name, _ in second] == [good]
    assert second.create(ASKED)[0] == "6"
    second.remove(bad)
    with pytest.raises(NoSuchSimulation):
        second.find(bad)
    assert not (tmp_path / bad).exists()
    second.close()


def test_a_folder_has_one_server(tmp_path: Path, shelf: Shelf):
    with pytest.raises(ConfigError, match="another server"):
        opened(tmp_path)
    shelf.close()
    opened(tmp_path).close()


def test_what_was_answered_in_an_operation_that_was_cut_off_binds_nobody(tmp_path: Path, shelf: Shelf):
    with serving(constant) as endpoint:
        made = played(shelf, endpoint.url)
        journal = tmp_path / "1" / "journal.jsonl"
        before = journal.read_bytes()
        made.do(Steps(steps=3, actions={"battery_2": [0.1]}))
        shelf.close()
        journal.write_bytes(before)  # killed after the answers, before the line
        again = opened(tmp_path)
        told = again.find("1").do(Steps(steps=3, actions={"battery_2": [-0.9]}))
        other = played(again, endpoint.url).do(Steps(steps=3, actions={"battery_2": [-0.9]}))
        assert told["observations"] == other["observations"]
        assert len(endpoint.asked) == 9
        again.close()
        once_more = opened(tmp_path)
        assert once_more.find("1").state()["observations"] == told["observations"]
        assert len(endpoint.asked) == 9
        once_more.find("1").do(Reset(seed=4))
        with serving(constant) as another:
            played(once_more, another.url)
            once_more.close()
            for name in ("1", "3"):  # killed after the files of answers were begun
                journal = tmp_path / name / "journal.jsonl"
                journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
            last = opened(tmp_path)
            assert last.find("1").do(Reset(seed=5))["step"] == 0
            last.find("3").do(Injection(agent_id="battery_1", endpoint_url=endpoint.url))
            last.close()


def test_one_simulation_does_not_hang_up_for_another(shelf: Shelf):
    gate = Gate()
    with serving(gate) as endpoint, ThreadPoolExecutor() as pool:
        first, second = played(shelf, endpoint.url), played(shelf, endpoint.url)
        stepping = pool.submit(first.do, Steps())
        assert gate.came.wait(10)
        second.do(Reset())
        second.do(Removal(agent_id="battery_1"))
        gate.go.set()
        stepping.result(10)
        assert first.metrics("battery_1")["counts"] == {"external": 1}


def test_what_waits_behind_a_removal_finds_nothing(tmp_path: Path, shelf: Shelf):
    _, made = shelf.create(ASKED)  # found by a request before the removal
    shelf.remove("1")
    for act in (
        lambda: made.do(Steps()),
        lambda: made.do(Injection(agent_id="battery_1", endpoint_url="http://127.0.0.1:9/")),
        made.state,
    ):
        with pytest.raises(NoSuchSimulation):
            act()
    assert not (tmp_path / "1").exists()


def test_a_removal_breaks_off_a_series_of_steps(tmp_path: Path, shelf: Shelf):
    gate = Gate()
    with serving(gate) as endpoint, ThreadPoolExecutor() as pool:
        made = played(shelf, endpoint.url)
        stepping = pool.submit(made.do, Steps(steps=10))
        assert gate.came.wait(10)
        removing = pool.submit(shelf.remove, "1")
        while not made._ending:
            gate.go.wait(0.001)
        gate.go.set()
        removing.result(10)
        with pytest.raises(NoSuchSimulation):
            stepping.result(10)
        assert len(endpoint.asked) == 1
    assert not (tmp_path / "1").exists()


def test_an_operation_does_not_wait_for_ever(shelf: Shelf, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("heron_env.serve.simulation.PATIENCE", 0.0)
    _, made = shelf.create(ASKED)
    with ThreadPoolExecutor() as pool, made.lock, pytest.raises(Busy):
        pool.submit(made.do, Steps()).result(10)


def test_a_line_that_could_not_be_written_whole_is_taken_back(
    tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
):
    _, made = shelf.create(ASKED)
    made.do(Steps())
    before = (tmp_path / "1" / "journal.jsonl").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            made.do(Steps())
    assert (tmp_path / "1" / "journal.jsonl").read_bytes() == before
    assert made.state()["step"] == 1
    assert made.do(Steps())["step"] == 2
    assert all(json.loads(line) for line in (tmp_path / "1" / "journal.jsonl").read_bytes().splitlines())


def test_a_folder_that_is_a_link_is_removed_and_what_it_leads_to_stays(tmp_path: Path):
    first = opened(tmp_path)
    names = [first.create(ASKED)[0] for _ in range(2)]
    first.close()
    for name in names:
        (tmp_path / name).rename(tmp_path / f"elsewhere-{name}")
        (tmp_path / name).symlink_to(tmp_path / f"elsewhere-{name}")
    (tmp_path / "elsewhere-2" / "simulation.json").write_text("{")
    second = opened(tmp_path)
    for name in names:  # the second is damaged
        second.remove(name)
        assert not (tmp_path / name).is_symlink()
        assert (tmp_path / f"elsewhere-{name}" / "simulation.json").exists()
    second.close()


@pytest.mark.parametrize("what", ["journal", "answers", "setting"])
def test_a_full_disk_is_507_and_nothing_has_happened(
    tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch, what: str
):
    def full(*_: Any) -> int:
        if what == "answers":
            os_write(_[0], bytes(_[1][: len(_[1]) // 2]))  # as far as there is room
        raise OSError(28, "No space left on device")

    os_write = os.write
    with serving(constant) as endpoint, served(shelf) as ask:
        played(shelf, endpoint.url)
        played(shelf, endpoint.url)
        before = ask("GET", "/simulations/1")
        with monkeypatch.context() as patch:
            patch.setattr("os.write" if what == "answers" else "os.fsync", full)
            if what == "setting":
                status, told = ask("POST", "/simulations", ASKED.model_dump())
            else:
                status, told = ask("POST", "/simulations/1/step", {"steps": 3})
        assert (status, told["error"]["code"]) == (507, "DISK_FULL")
        assert "nothing was changed; make room there, ask again" in told["error"]["message"]
        assert ask("GET", "/simulations/1") == before
        assert len(ask("GET", "/simulations")[1]) == 2
        again, other = (ask("POST", f"/simulations/{name}/step", {"steps": 3})[1] for name in "12")
        assert again["observations"] == other["observations"]
        shelf.close()
        restarted = opened(tmp_path)
        assert restarted.find("1").state()["observations"] == other["observations"]
        restarted.close()


def test_a_client_is_told_who_decided_and_how_often_something_stood_in(tmp_path: Path, shelf: Shelf):
    answers = iter([{"action": [0.5]}, (500, {}), {"action": [9.0]}, {"action": [0.5]}])
    with serving(lambda body: next(answers)) as endpoint:
        made = played(shelf, endpoint.url)
        assert made.state()["decisions"] == {}
        told = made.do(Steps(actions={"battery_2": [0.1]}))
        assert told["stand_ins"] == {}
        assert told["decisions"] == {
            "battery_1": {"source": "external", "code": ""}, "battery_2": {"source": "explicit", "code": ""}
        }  # fmt: skip
        told = made.do(Steps())
        assert told["stand_ins"] == {"battery_1": 1}
        assert told["decisions"] == {
            "battery_1": {"source": "fallback", "code": "INTERNAL"}, "battery_2": {"source": "noop", "code": ""}
        }  # fmt: skip
        told = made.do(Steps(steps=2))  # what stood in before the last step counts, too
        assert (told["decisions"]["battery_1"]["source"], told["stand_ins"]) == ("external", {"battery_1": 1})
        state = made.state()
        shelf.close()
        again = opened(tmp_path)
        assert again.find("1").state() == state
        assert again.find("1").do(Reset())["decisions"] == {}
        again.close()


def test_fail_takes_the_steps_back_and_is_the_endpoints_fault(shelf: Shelf):
    works = [True, False]

    def once(body: dict[str, Any]) -> Any:
        return {"action": [0.5]} if not works or works.pop(0) else (500, {})

    with serving(once) as endpoint, served(shelf) as ask:
        injection = {"agent_id": "battery_1", "endpoint_url": endpoint.url, "fallback": "fail"}
        for _ in range(2):
            ask("POST", "/simulations", ASKED.model_dump())
        told = ask("POST", "/simulations/1/inject-agent", injection)[1]
        assert (told["fallback"], told["fallback_to_simulated"]) == ("fail", False)
        before = ask("GET", "/simulations/1")
        status, told = ask("POST", "/simulations/1/step", {"steps": 3})  # fails at the second
        assert (status, told["error"]["code"]) == (502, "AGENT_FAILED")
        assert "battery_1" in told["error"]["message"] and "INTERNAL" in told["error"]["message"]
        assert ask("GET", "/simulations/1") == before
        ask("POST", "/simulations/2/inject-agent", injection)
        again, other = (ask("POST", f"/simulations/{name}/step", {"steps": 3})[1] for name in "12")
        assert again["observations"] == other["observations"]


def test_error_message_reaches_whom_the_agent_can_write_to(shelf: Shelf):
    asked: list[dict[str, Any]] = []

    def noting(body: dict[str, Any]) -> dict[str, Any]:
        asked.append(body)
        return {"action": body["decision"]["action_space"]["noop"]}

    with serving(lambda body: (500, {})) as broken, serving(noting) as human:
        _, made = shelf.create(NewSimulation(env="heron/GraphColoring-v0"))
        made.do(Injection(agent_id="Agent1", endpoint_url=broken.url, fallback="error_message"))
        made.do(Injection(agent_id="Human", endpoint_url=human.url))
        told = made.do(Steps(steps=12))
        assert told["stand_ins"]["Agent1"] > 0
    letters = [turn for body in asked for turn in body["conversation_context"]["last_k_turns"]]
    assert any(turn["sender"] == "Agent1" and "INTERNAL" in turn["content"] for turn in letters)


def test_a_step_that_another_agent_spoils_asks_the_endpoint_anew(shelf: Shelf):
    asked: list[str] = []

    def noting(body: dict[str, Any]) -> dict[str, Any]:
        asked.append(body["turn_id"])
        return {"action": [0.5]}

    with serving(noting) as endpoint:
        made = played(shelf, endpoint.url)
        agents = made.env.hierarchy
        agents.agents[agents.index["battery_2"]].policy = lambda vector: [99.0]
        with pytest.raises(InvalidAction):
            made.do(Steps(steps=1))
        made.do(Steps(steps=2))
        assert asked[0] == asked[1] and len({*asked}) == 2, "asked again under the number that it had"


def test_ways_to_endpoints_are_forgotten_in_the_order_of_their_use(shelf: Shelf, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("heron_env.serve.shelf.LINES", 2)
    _, made = shelf.create(ASKED)
    env = made.env

    def line(host: str) -> object:
        form = Injection(agent_id="battery_1", endpoint_url=f"http://127.0.0.1:{host}/act")
        return shelf.external(form, env, ASKED).line

    one, two = line("1001"), line("1002")
    assert line("1001") is one, "what is asked again is the same, with its breaker"
    three = line("1003")
    assert (line("1001"), line("1003")) == (one, three)
    assert line("1002") is not two
    assert len(shelf._lines) == 2


def test_a_server_lets_clients_name_a_machine_of_a_private_network_that_it_allows(tmp_path: Path):
    given = Injection(agent_id="battery_1", endpoint_url="http://192.168.7.7:8000/", fallback="skip")
    open_here = Shelf(tmp_path / "open", guard=Guard(loopback=True))
    with pytest.raises(ConfigError, match=r"inside 192\.168\.0\.0/16; .*\(heron serve --allow HOST:PORT"):
        open_here.create(ASKED)[1].do(given)
    allowing = Shelf(tmp_path / "allowing", guard=Guard(private=["192.168.7.7:8000"]))
    _, made = allowing.create(ASKED)
    made.do(given)
    assert made.injected()[0]["agent_id"] == "battery_1"
