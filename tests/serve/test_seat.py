"""A person's seat: asked in a page, answered in time or not, and never told more than the agent may know."""

import json
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_kit import heron
from serve.browser import Page, browsing

from heron_env import Answer, HeronEnv, Letter, ScheduleConfig, make
from heron_env.dcop import Problem, best_response, g15
from heron_env.errors import ConfigError
from heron_env.serve.seats import Seats

WAIT = 20.0


class Run:
    """An episode in a thread, in which a person plays one agent; what it raised is raised when it is joined."""

    def __init__(
        self, env: HeronEnv, seats: Seats, clock: str = "synchronous", others: Any = None, **more: Any
    ) -> None:
        played = {**(others or env.benchmark().baselines(0)["stable process"]), **seats.policies}
        run = env.run_synchronous if clock == "synchronous" else env.run_event_driven
        self.result: Any = None

        def work() -> None:
            self.result = run(policies=played, seed=1, **more)
            for seat in seats.seats.values():
                seat.close()

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def join(self) -> Any:
        self._thread.join(WAIT)
        assert not self._thread.is_alive()
        return self.result


def ask(url: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=WAIT) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["error"]


def told_of(shown: dict[str, Any]) -> dict[str, str]:
    """Colours by node, as the page reads them."""
    vector, scene = shown["request"]["decision"]["observation"]["vector"], shown["scene"]
    codes = {node["name"]: round(vector[node["seen"]]) for node in scene["nodes"]}
    return {node: scene["colours"][code] for node, code in codes.items() if code < scene["unknown"]}


def best_action(shown: dict[str, Any]) -> list[int]:
    part = g15().part("Human")
    seen = told_of(shown)
    cost, best = best_response(part, {node: seen[node] for node in part.owners if node in seen})
    return [*(part.domain.index(best[node]) for node in part.nodes), int(cost == 0.0)]


@pytest.fixture
def env() -> HeronEnv:
    return make("heron/GraphColoring-v0", max_steps=30)


@pytest.fixture
def seats(env: HeronEnv) -> Iterator[Seats]:
    with Seats(env, "Human") as running:
        yield running


def test_a_person_is_an_agent_like_any_other(env: HeronEnv, seats: Seats):
    run, url = Run(env, seats), seats.urls["Human"]
    version, turns = -1, 0
    while True:
        status, shown = ask(f"{url}/asked?after={version}&wait=20")
        if status == 204:
            continue
        version = shown["version"]
        if shown["over"]:
            break
        if "request" in shown:
            turns += 1
            assert ask(f"{url}/answer", {"number": shown["number"], "action": best_action(shown)})[0] == 200
    result = run.join()
    assert result.kpis["consensus"] == 1.0 and result.kpis["conflicts"] == 0.0
    assert {origin.source for _, origin in result.origins["Human"]} == {"external"}
    assert turns == len(result.origins["Human"])
    assert ask(f"{url}/asked")[1]["over"]


def test_what_does_not_count_is_refused_and_the_question_stays_open(env: HeronEnv, seats: Seats):
    run, url = Run(env, seats), seats.urls["Human"]
    shown = ask(f"{url}/asked?after=0&wait=20")[1]
    number = shown["number"]
    noted: dict[str, Any] = {"number": number, "action": [3, 3, 3, 3, 3, 0]}
    assert number == 1  # which true equals
    wrong: list[tuple[Any, str]] = [
        ({**noted, "action": [9, 3, 3, 3, 3, 0]}, "INVALID_ACTION"),
        ({**noted, "action": [3, 3]}, "INVALID_ACTION"),
        ({**noted, "action": "red"}, "INVALID_ACTION"),
        ({**noted, "letters": [{"receiver": "Nobody", "kind": "text", "body": "x"}]}, "INVALID_RESPONSE"),
        ({**noted, "letters": [{"receiver": "Agent1", "kind": "text", "body": "x" * 20_000}]}, "INVALID_RESPONSE"),
        ({"action": []}, "INVALID_REQUEST"),
        ({**noted, "number": True}, "INVALID_REQUEST"),
        ({**noted, "number": float(number)}, "INVALID_REQUEST"),
        (b"{", "INVALID_REQUEST"),
        (b"[]", "INVALID_REQUEST"),
    ]
    for body, code in wrong:
        status, error = ask(f"{url}/answer", body)
        assert (status, error["code"]) == (422, code), body
    assert ask(f"{url}/answer", {**noted, "number": number + 1})[1]["code"] == "TOO_LATE"
    again = ask(f"{url}/asked")[1]  # a reload
    assert (again["number"], again["request"]) == (number, shown["request"])
    assert ask(f"{url}/answer", noted)[0] == 200
    assert ask(f"{url}/answer", noted)[1]["code"] == "TOO_LATE"  # of another tab
    seats.seats["Human"].close("enough")
    assert run.join().origins["Human"][0][1].source == "external"


def test_who_does_not_answer_in_time_does_nothing(env: HeronEnv):
    with Seats(env, "Human", timeout=0.02) as seats:
        result = Run(env, seats).join()
        answered = {origin.code for _, origin in result.origins["Human"]}
        assert answered == {"TIMEOUT"} and len(result.origins["Human"]) == 15
        assert all((action == [3, 3, 3, 3, 3, 0]).all() for _, action in result.actions["Human"])


def test_a_seat_that_waits_for_ever_still_ends_with_its_run(env: HeronEnv):
    with Seats(env, "Human", timeout=None) as seats:
        run = Run(env, seats)
        assert ask(f"{seats.urls['Human']}/asked?after=0&wait=20")[1]["seconds_left"] is None
    assert {origin.code for _, origin in run.join().origins["Human"]} == {"CONNECTION"}


def test_only_who_has_the_address_gets_in(env: HeronEnv, seats: Seats):
    url = seats.urls["Human"]
    token = url.rpartition("/")[2]
    assert len(bytes.fromhex(token)) == 16
    with Seats(env, "Human") as others:
        assert others.urls["Human"].rpartition("/")[2] != token
    host = url.partition("/seat")[0]
    for path in (f"/seat/{'0' * 32}", f"/seat/{token[:-1]}", f"/seat/{token}x/asked", "/seat/page/../seat.py"):
        assert ask(f"{host}{path}")[0] == 404
    assert ask(f"{host}/seat/{'0' * 32}/answer", {"number": 1, "action": 0})[0] == 404
    assert ask(url + "/asked", **{"Host": "elsewhere.test"})[0] == 421


def test_the_page_may_run_its_own_script_alone(seats: Seats):
    with urllib.request.urlopen(seats.urls["Human"], timeout=WAIT) as answer:
        text, headers = answer.read().decode(), answer.headers
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert (headers["Referrer-Policy"], headers["Cache-Control"]) == ("no-referrer", "no-store")
    assert "<script>" not in text and " on" not in text.lower().replace(" one", "")
    script = (Path(__file__).parents[2] / "heron_env/serve/page/seat.js").read_text()
    assert not [
        sink for sink in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(") if sink in script
    ]


def test_a_seat_is_told_nothing_beyond_its_boundary(env: HeronEnv):
    problem = g15()
    for cluster in problem.clusters:
        part = problem.part(cluster)
        known = {*part.nodes, *part.owners}
        with Seats(env, cluster) as seats:
            run = Run(env, seats)
            shown = json.dumps(ask(f"{seats.urls[cluster]}/asked?after=0&wait=20")[1])
        run.join()
        assert not [node for node in problem.nodes if node not in known and f'"{node}"' in shown]
        assert all(f'"{node}"' in shown for node in known)


def test_what_can_not_be_a_seat_is_refused(env: HeronEnv):
    with pytest.raises(ConfigError, match="decides nothing here"):
        Seats(env, "Nobody")
    with pytest.raises(ConfigError, match="timeout"):
        Seats(env, "Human", timeout=0.0)


# In a browser


def colours_shown(page: Page) -> dict[str, str]:
    script = (
        "Object.fromEntries([...document.querySelectorAll('[data-node]')].map(g => [g.dataset.node, g.dataset.colour]))"
    )
    found: dict[str, str] = page.do(script)
    return found


def clicked(page: Page, node: str, colour: str) -> None:
    """Until the node has that colour."""
    for _ in range(3):
        if colours_shown(page)[node] != colour:
            page.do(f"document.querySelector('[data-node={node}]').dispatchEvent(new Event('click'))")
    assert colours_shown(page)[node] == colour


@pytest.mark.browser
def test_a_person_solves_the_study_graph_in_a_browser_that_never_holds_what_is_hidden(
    env: HeronEnv, seats: Seats, chromium: list[str]
):
    problem = g15()
    part = problem.part("Human")
    run = Run(env, seats, "event-driven", schedule=ScheduleConfig(msg_delay=0.2))
    with browsing(chromium) as page:
        page.open(seats.urls["Human"])
        while page.until("shown.request ? 'asked' : shown.over ? 'over' : ''") == "asked":
            number, seen = page.do("shown.number"), colours_shown(page)
            told = {node: seen[node] for node in part.owners if seen[node] in part.domain}
            cost, best = best_response(part, told)
            for node, colour in best.items():
                clicked(page, node, colour)
            torn = page.do("document.querySelectorAll('line.torn').length")
            assert (torn == 0) == (cost == 0.0)
            page.do(f"at('satisfied').checked = {json.dumps(cost == 0.0)}; at('done').click()")
            page.until(f"shown.number !== {number} || !shown.request")
        received = page.received() + page.do("document.documentElement.outerHTML").encode()
        assert not page.complaints
    result = run.join()
    assert result.kpis["consensus"] == 1.0
    hidden = [node for node in problem.nodes if node not in part.nodes and node not in part.owners]
    assert len(received) > 20_000 and len(hidden) == 6
    words = set(re.findall(rb"[0-9A-Za-z_]+", received))  # ids and digests hold any two letters
    assert not [node for node in hidden if node.encode() in words]
    assert all(node.encode() in words for node in (*part.nodes, *part.owners))


class Malicious:
    """Says, each time it is asked, what would do harm in a careless page; plays nothing."""

    TEXT = "<img src=x onerror=\"document.title='harm'\"><script>document.title='harm'</script>"

    def answer(self, asked: Any) -> Any:
        letter = Letter(asked.agent, "Human", "text", {"text": self.TEXT})
        return Answer([3] * 5 + [0], letters=(letter,))


@pytest.mark.browser
def test_a_letter_is_text_whatever_it_holds_and_keys_suffice(env: HeronEnv, chromium: list[str]):
    with Seats(env, "Human") as seats:
        run = Run(env, seats, others={"Agent1": Malicious(), "Agent2": Malicious()})
        with browsing(chromium) as page:
            page.open(seats.urls["Human"])
            for _ in range(3):
                page.until("shown.request")
                number = page.do("shown.number")
                page.do("document.querySelector('[data-node=h2]').focus()")
                page.call("Input.dispatchKeyEvent", type="keyDown", key="b", text="b")
                assert colours_shown(page)["h2"] == "blue"
                page.do("at('text').value = 'Please make a2 green.'; at('satisfied').click()")
                page.open(seats.urls["Human"])  # a reload loses nothing
                page.until("shown.request")
                assert colours_shown(page)["h2"] == "blue"
                assert page.do("[at('text').value, at('satisfied').checked]") == ["Please make a2 green.", True]
                page.do("at('satisfied').click(); at('done').click()")
                page.until(f"shown.number > {number}")
            page.until("shown.request")
            letters = page.do("[...document.querySelectorAll('#letters .words')].map(item => item.textContent)")
            assert Malicious.TEXT in letters and "Please make a2 green." in letters
            assert page.do("document.title") == "Seat of Human"
            assert page.do("document.querySelectorAll('#letters img, #letters script').length") == 0
            assert not page.complaints
        seats.seats["Human"].close("enough")
        run.join()


@pytest.mark.browser
def test_the_page_says_when_a_question_was_not_answered_in_time(env: HeronEnv, chromium: list[str]):
    with Seats(env, "Human", timeout=0.4) as seats, browsing(chromium) as page:
        page.open(seats.urls["Human"])
        run = Run(env, seats)
        assert "was not answered here" in page.until("at('fault').textContent")
        seats.seats["Human"].close("enough")
        run.join()


@pytest.mark.browser
def test_any_environment_has_a_page(chromium: list[str]):
    grid = make("heron/BatteryGrid-v0", num_batteries=2, max_steps=3)
    with Seats(grid, "battery_1") as seats:
        with browsing(chromium) as page:
            page.open(seats.urls["battery_1"])
            run = Run(grid, seats, others={"battery": lambda vector: [0.0]})
            for _ in range(3):
                page.until("shown.request")
                number = page.do("shown.number")
                assert page.do("document.querySelectorAll('#numbers tbody tr').length") > 1
                page.do("document.querySelector('#fields input').value = '0.5'; at('done').click()")
                page.until(f"shown.number > {number} || !shown.request")
            result = run.join()
            assert not page.complaints
        assert [float(action[0]) for _, action in result.actions["battery_1"]] == [0.5] * 3


def test_the_whole_graph_may_be_one_seat():
    problem = Problem(("a", "b"), (("a", "b"),), clusters={"Me": ("a", "b")})
    env = make("heron/GraphColoring-v0", problem=problem, max_steps=5)
    with Seats(env, "Me") as seats:
        run = Run(env, seats)
        url = seats.urls["Me"]
        for turn in range(1, 3):
            shown = ask(f"{url}/asked?after={2 * turn - 2}&wait=20")[1]
            ask(f"{url}/answer", {"number": shown["number"], "action": [0, 1, 1]})
    assert run.join().kpis["consensus"] == 1.0


@pytest.mark.e2e
def test_a_seat_is_served_from_the_shell():
    command = [sys.executable, "-m", "heron_env", "serve", "--seat", "Human", "--env", "heron/GraphColoring-v0"]
    command += ["--others", "talking process", "-o", "max_steps=4"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    name, _, url = process.stdout.readline().strip().partition(": ")
    assert name == "Human", process.communicate()[1]
    version, over = 0, ""
    while not over:
        status, shown = ask(f"{url}/asked?after={version}&wait=20")
        version, over = (shown["version"], shown["over"]) if status == 200 else (version, "")
        if status == 200 and "request" in shown:
            letters = [{"receiver": "Agent1", "kind": "text", "body": {"text": "Set a2 to blue."}}]
            ask(f"{url}/answer", {"number": shown["number"], "action": best_action(shown), "letters": letters})
    told, errors = process.communicate(timeout=WAIT)
    assert process.returncode == 0, errors
    assert "conflicts: " in told and "letters: " in told


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--seat", "Human"], "--seat needs --env"),
        (["--seat", "Nobody", "--env", "heron/GraphColoring-v0"], "decides nothing here"),
        (
            ["--seat", "Human", "--env", "heron/GraphColoring-v0", "--others", "stable proces"],
            "Did you mean 'stable process'",
        ),
        (["--seat", "Human", "--policy", "runs/x"], "two things to serve"),
    ],
)
def test_a_seat_that_can_not_be_served_is_refused_in_a_line(options, words):
    told = heron("serve", *options, code=2).stderr
    assert words in told and told.count("\n") == 1
