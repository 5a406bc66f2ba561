"""The page that plays a film, in a browser: it plays, is scrubbed by hand and by keys, loads nothing, fits."""

import re
from pathlib import Path

import pytest
from public_texts import dialect
from serve.browser import browsing

from heron_env import ScheduleConfig, make
from heron_env.pictures.film import page


@pytest.fixture(scope="module")
def text() -> str:
    env = make("heron/BatteryGrid-v0", max_steps=6)
    schedule = ScheduleConfig(msg_delay=0.4, loss=0.2)
    result = env.run_event_driven({"*": lambda vector: 0.5}, seed=0, schedule=schedule, record=("frames",))
    return page(result.watch(every=0.5))


def test_the_page_names_no_address_to_load_from(text: str):
    assert not re.findall(r"https?:|url\(|@import|<link (?!rel=\"icon\" href=\"data:,\")|<script src|fetch\(", text)
    assert set(re.findall(r'"data:([^,"]*),', text)) == {"image/webp;base64", ""}
    assert dialect(text) == []


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_plays_it_and_loads_nothing(text: str, tmp_path: Path, chromium: list[str], width: int, scheme: str):
    path = tmp_path / "film.html"
    path.write_text(text, encoding="utf-8")
    with browsing([*chromium, "--allow-file-access-from-files"]) as browser:
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.picture(width, 900)
        browser.open(path.as_uri())
        browser.until("[...document.images].every((image) => image.complete && image.naturalWidth === 512)")
        assert browser.do("document.documentElement.scrollWidth") <= width
        said = "document.getElementById('time').value.split('  ')"
        opening = browser.do(said)
        assert opening[0] != "0 s" and re.fullmatch(r"return -?[\d.]+", opening[1]), "the frame that differs most"
        browser.do("document.getElementById('speed').value = '4'; document.getElementById('play').click()")
        browser.until(f"{said}[0] === '6 s'")
        assert browser.do("document.getElementById('play').getAttribute('aria-label')") == "Play", "it ends paused"
        for key, time in [("Home", "0 s"), ("ArrowRight", "0.5 s"), ("ArrowRight", "1 s"), ("ArrowLeft", "0.5 s")]:
            browser.do(f"document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}))")
            assert browser.do(said)[0] == time
        browser.do("at.value = 8; at.dispatchEvent(new Event('input'))")
        assert browser.do(said)[0] == "4 s"
        ground = browser.do("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 27)"}[scheme]
        assert browser.complaints == []
        requests = browser.do("performance.getEntriesByType('resource').map((each) => each.name)")
        assert [name for name in requests if not name.startswith("data:")] == []
