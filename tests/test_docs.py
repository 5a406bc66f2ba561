"""The documentation holds together: names, links, laws, pictures, cards; what Sphinx makes of docstrings."""

import ast
import doctest
import functools
import http.server
import importlib
import importlib.util
import inspect
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote

import episodes
import packed
import public_texts
import pytest

import heron_env
from heron_env import registry

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
LAWS = (DOCS / "laws.md").read_text(encoding="utf-8")


def loaded(path: Path) -> ModuleType:
    """A script of the repository as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_test_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_the_readme_is_short_and_so_is_its_program():
    assert len(README.splitlines()) <= 140
    programs = re.findall(r"^```py(?:thon)?\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert len([line for program in programs for line in program.splitlines() if line]) <= 30


def test_what_is_cited_has_one_title_and_version():
    cff = dict(re.findall(r'^(title|version): "?(.*?)"?$', (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE))
    page = " ".join((DOCS / "versions.md").read_text("utf-8").replace("\\_", "_").split())
    assert dict(re.findall(r"(title|version) = \{(.*?)\},", page)) == cff


PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("[a-z]*/*.md"))]


def faults(page: Path) -> Iterator[str]:
    """Links to files that are not there, lines of code beyond 88 columns, pictures that do not say what they show."""
    text = page.read_text(encoding="utf-8")
    code = re.compile(r"^```([a-z]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
    for target in re.findall(
        r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    ):
        if not target.startswith("http") and not (page.parent / target).exists():
            yield f"{target} is not there"
    for language, block in code.findall(text):
        yield from (f"over 88 columns: {line}" for line in block.splitlines() if language and len(line) > 88)
    yield from (f"no words: {words!r}" for words in re.findall(r"!\[([^\]]*)\]", text) if len(words) <= 30)


def test_pages_link_to_what_is_there_and_fit_and_say_what_pictures_show():
    assert [f"{page.relative_to(ROOT)}: {fault}" for page in PAGES for fault in faults(page)] == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[a](gone.md)", "gone.md is not"),
        (f"```py\n{'a' * 89}\n```", "over 88"),
        ("![short](x.svg)", "no words: 'short'"),
    ],
)
def test_a_fault_of_a_page_is_noticed(text: str, fault: str, tmp_path: Path):
    (tmp_path / "x.svg").touch()
    (tmp_path / "page.md").write_text(text)
    (found,) = faults(tmp_path / "page.md")
    assert found.startswith(fault)


DOTTED = re.compile(r"(?<![\w./-])(heron_env(?:\.[A-Za-z_]\w*)+(?::[A-Za-z_]\w*)?)")
"""A name in a module of ours, `heron_env.make` or `heron_env.worlds.spread:spread`."""


def texts() -> Iterator[tuple[Path, str]]:
    """What people read: pages (but for the history of names), recipes, notebooks; of code docstrings and messages."""
    for pattern in ("README.md", "docs/**/*.md", "examples/**/*.py", "notebooks/*.ipynb", "heron_env/**/*.template"):
        yield from ((path, path.read_text(encoding="utf-8")) for path in sorted(ROOT.glob(pattern)))
    for path in sorted((ROOT / "heron_env").rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        strings = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        yield path, "\n".join(text for text in strings if " " in text)  # others are keys and names of threads


def unresolved(name: str) -> str:
    """Why nothing has this dotted name; "" where something has, or where a library that it adapts is missing."""
    parts = name.replace(":", ".").split(".")
    for length in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError as missing:
            if missing.name is None or not missing.name.startswith("heron_env"):
                return ""
            continue
        try:
            functools.reduce(getattr, parts[length:], thing)
        except AttributeError as error:
            return f"{name}: {error}"
        return ""
    return f"{name}: no such module"


def test_every_dotted_name_that_people_read_is_there():
    named = {name: path for path, text in texts() for name in DOTTED.findall(text)}
    assert len(named) > 50
    assert [
        f"{path.relative_to(ROOT)}: {why}" for name, path in sorted(named.items()) if (why := unresolved(name))
    ] == []


@pytest.mark.parametrize("name", ["heron_env.make_aec", "heron_env.labs", "heron_env.worlds.spread:sprad"])
def test_a_dotted_name_that_is_nowhere_is_noticed(name: str):
    assert unresolved(*DOTTED.findall(f"Use `{name}`.")).startswith(f"{name}: ")


def test_the_readme_installs_as_the_settings_say():
    source = (DOCS / "conf.py").read_text(encoding="utf-8")
    settings = dict(re.findall(r"^(repository|published) = (.+)$", source, re.MULTILINE))
    pytest.importorskip("docutils")
    publishing = loaded(DOCS / "_ext" / "publishing.py")
    block = publishing.install(ast.literal_eval(settings["repository"]), ast.literal_eval(settings["published"]))
    assert block in README, f"README.md: its installation is not the block of docs/conf.py:\n{block}"
    assert publishing.install("https://example.org/a/b", False).startswith("```sh\ngit clone https://example.org/a/b ")
    assert publishing.install("", True) == "```sh\npip install 'heron_env[train,plots]'\n```"


def test_the_address_of_the_repository_gives_those_of_colab():
    pytest.importorskip("docutils")
    publishing = loaded(DOCS / "_ext" / "publishing.py")
    for name in re.findall(r"{colab}`(\w+)`", (DOCS / "notebooks.md").read_text(encoding="utf-8")):
        assert (ROOT / "notebooks" / f"{name}.ipynb").is_file(), name
    assert publishing.colab_address("https://github.com/a/b", "05_split_the_loss") == (
        "https://colab.research.google.com/github/a/b/blob/main/notebooks/05_split_the_loss.ipynb"
    )


def test_every_environment_has_a_picture_in_the_gallery():
    gallery = (DOCS / "environments.md").read_text(encoding="utf-8")
    shown = re.findall(r"^:::{grid-item-card} (\S+)$", gallery, re.MULTILINE)
    pictures = re.findall(r"^:img-top: (\S+)$", gallery, re.MULTILINE)
    assert {f"heron/{name}" for name in shown} == {id for id in registry.registered() if id.startswith("heron/")}
    assert len(pictures) == len(shown) and all((DOCS / picture).is_file() for picture in pictures)


def test_films_are_small():
    for film in (DOCS / "pictures").glob("*.gif"):
        assert film.stat().st_size < 1_500_000, film.name


moved = loaded(DOCS / "_ext" / "moved.py")
reference = loaded(DOCS / "_ext" / "reference.py")
ADDRESSES = (ROOT / "tests" / "golden" / "addresses.txt").read_text(encoding="utf-8").split()
"""Of every page that a version of the site had; a new page is added, none is ever taken out."""


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_is_a_page_or_forwards_to_one(address: str):
    assert moved.is_page(address) or moved.is_page(moved.MOVED.get(address, "")), address


def test_no_page_is_at_an_address_that_forwards():
    assert [old for old in moved.MOVED if moved.is_page(old) and not old.startswith("notebooks/")] == []


def test_built_old_addresses_lead_to_built_pages():
    built("index.html")
    for old in moved.forwarding():
        (target,) = re.findall(r'content="0; url=([^"]+)"', built(f"{old}.html"))
        assert (BUILT / old).parent.joinpath(target).resolve() == (BUILT / f"{moved.MOVED[old]}.html").resolve()
        assert (BUILT / f"{moved.MOVED[old]}.html").is_file(), old


SHOWN = [one for page in sorted((DOCS / "api").glob("*.md")) for one in reference.listed(page.read_text("utf-8"))]


def test_the_api_has_every_public_name_once():
    assert sorted(SHOWN) == sorted(reference.entries())


def test_every_public_name_has_an_example():
    assert [".".join(one) for one in SHOWN if not reference.has_example(*one)] == []


def test_the_examples_of_the_reference_are_of_public_names():
    addresses = {".".join(one) for one in SHOWN} | {
        other for others in reference.entries().values() for other in others
    }
    assert {*reference.examples()} <= addresses


@pytest.mark.e2e
@pytest.mark.parametrize("file", sorted(reference.EXAMPLES.glob("*.txt")), ids=lambda path: path.stem)
def test_the_examples_of_the_reference_show_what_they_print(file: Path):
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for part in re.split(r"^# ", file.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        test = doctest.DocTestParser().get_doctest(body, {"__name__": "example"}, heading[:60], str(file), 0)
        told: list[str] = []
        doctest.DocTestRunner(optionflags=options).run(test, out=told.append)
        assert told == [], "".join(told)


def test_the_readme_names_the_public_modules():
    assert reference.sentence() in " ".join(README.split())


IMPORT = re.compile(r"^ *from (heron_env[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


def test_programs_that_people_read_import_public_names_alone():
    public = {(module, name) for module in reference.PUBLIC for name in (*reference.names_of(module), "__version__")}
    public |= {tuple(module.rsplit(".", 1)) for module in reference.PUBLIC[1:]}
    for path, text in texts():
        if path.suffix in (".md", ".ipynb") or "examples" in path.parts:
            for module, names in IMPORT.findall(text.replace("\\n", "\n").replace('",', "")):
                for name in re.findall(r"(\w+)(?: as \w+)?", re.sub(r"#.*| as \w+", "", names)):
                    assert (module, name) in public, f"{path.relative_to(ROOT)}: from {module} import {name}"


def test_the_command_line_reference_has_every_command():
    pages = loaded(DOCS / "_ext" / "command_line.py")
    text = pages.reference()
    headings = {line.lstrip("#").strip(" `") for line in text.splitlines() if line.startswith("##")}
    options = {command.partition(" --")[2] for command, _ in public_texts.command_help()} - {""}
    paths = {command.partition(" --")[0] for command, _ in public_texts.command_help() if " --" in command}
    assert len(options) > 50 and paths - {"heron"} <= headings
    unnamed = {option for option in options if not re.search(rf"--{option}\b", text)}
    assert unnamed <= {"install-completion", "show-completion", "help"}
    assert pages.MARK in (DOCS / "cli.md").read_text(encoding="utf-8")


def test_the_front_door_is_on_the_first_screen():
    first = "\n".join(README.splitlines()[:25])
    assert "under_network" in first and "margin" in first


def test_pages_are_few_and_short():
    """Laws, API and command line not counted; the index is README.md."""
    pages = [page for page in PAGES if page.parent.name != "api" and page.stem not in ("laws", "cli", "index")]
    words = {page.relative_to(ROOT).as_posix(): len(page.read_text("utf-8").split()) for page in pages}
    assert len(pages) <= 55 and sum(words.values()) <= 42_000, words


def test_laws_that_the_api_names_are_on_the_page_of_laws():
    for name in set(heron_env.__all__) - {"__version__"}:
        thing = getattr(heron_env, name)
        members = vars(thing).values() if inspect.isclass(thing) else ()
        for each in (thing, *members):
            for code in re.findall(r"\b[A-Z]\d{1,2}\b", inspect.getdoc(each) or ""):
                assert f"(law-{code.lower()})=" in LAWS, (name, code)


def test_laws_are_complete_and_name_tests_that_there_are():
    numbers = [(letter, int(n)) for letter, n in re.findall(r"^### ([VNTRP])(\d+) ", LAWS, re.MULTILINE)]
    assert numbers == [
        (letter, n)
        for letter, last in (("V", 11), ("N", 5), ("T", 28), ("R", 6), ("P", 12))
        for n in range(1, last + 1)
    ]
    for file in re.findall(r"`(test_\w+\.py)`", LAWS):
        assert (ROOT / "tests" / "laws" / file).is_file(), file


def test_pictures_are_what_their_script_draws():
    figures = loaded(DOCS / "figures.py")
    for name in figures.DRAWN:
        assert figures.drawn(name) == (figures.FOLDER / f"{name}.svg").read_bytes(), "run docs/figures.py"


card = loaded(ROOT / "training" / "card.py")
STUDY = card.RESULTS / "honest_gap"


def test_the_cards_their_tables_and_the_results_agree():
    assert [*card.complaints()] == []


def test_a_score_that_is_not_the_results_is_named(monkeypatch: pytest.MonkeyPatch):
    lines = card.stored()
    lines[3] = lines[3] | {"score": -1.0}
    monkeypatch.setattr(card, "stored", lambda: lines)
    first, *more = card.complaints()
    assert "'score': -1.0" in first
    assert any("energy_management.md shows other tables" in told for told in more)


def test_the_card_shows_what_was_measured_again():
    recorded, shown = episodes.read(STUDY, "references", again=False), card.sweep("references")
    again = {row["policy"] for row in episodes.rows(STUDY) if row["sweep"] == f"references/{episodes.AGAIN}"}
    assert "random" in again
    for policy in shown.policies:
        same = shown.point(policy).values == recorded.point(policy).values
        assert same or policy in again, policy
    found = card.sweep_rows("references")["random", "sync"]["mean"]["value"]
    assert found == pytest.approx(shown.point("random").mean.value) != recorded.point("random").mean.value


def test_every_line_of_a_card_names_its_commit_and_command():
    for line in card.stored():
        assert re.fullmatch(r"[0-9a-f]{12}", line["commit"])
        *_, program = line["command"].split()
        assert (ROOT / program).is_file() or (ROOT / program.replace(".", "/") / "__main__.py").is_file()
        assert line["interval"] is None or line["interval"][0] <= line["score"] <= line["interval"][1]


def test_the_learning_table_is_of_its_data_and_no_interval_ends_beyond_what_can_be():
    from training.coloring import learning

    kept = ROOT / "training" / "results" / "coloring"
    text = learning.table(packed.load(kept / learning.FILE))
    assert text == (kept / "learning.md").read_text()
    of = {name: number for number, name in enumerate(learning.KPIS)}
    for line in text.splitlines()[2:]:
        ends = [tuple(map(float, pair)) for pair in re.findall(r"\[(\S+), (\S+)\]", line)]
        assert all(low >= 0.0 for low, _ in ends) and ends[of["consensus"]][1] <= 1.0
        assert ends[of["rounds"]][1] <= 120.0 and ends[of["consensus"]][1] > ends[of["consensus"]][0]


house = loaded(DOCS / "_ext" / "house_docstrings.py")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (["`x` is 2 * y, of `f(*args)`."], ["``x`` is 2 \\* y, of ``f(*args)``.", ""]),
        (
            ["Args:", "    a, b: bounds;", "        both."],
            ["Args:", "", "``a, b``", "    bounds;", "    both.", "", ""],
        ),
        (["    charge: Charge:", "        its own"], ["``charge: Charge``", "    its own", "", ""]),
        (["    rows = batch.begin()"], [".. code-block:: python", "", "    rows = batch.begin()", ""]),
        ([">>> 1 + 1", "2"], [">>> 1 + 1", "2", ""]),
    ],
)
def test_docstrings_become_what_sphinx_reads(written: list[str], shown: list[str]):
    assert house.in_rst(written) == shown


def test_bare_codes_of_laws_become_links():
    nodes = pytest.importorskip("docutils.nodes")
    pytest.importorskip("sphinx")
    links = loaded(DOCS / "_ext" / "law_links.py")
    parts = [*links.linked("It fires (T14), by T9 to T12; MPT3 and V0 are none.")]
    assert [part["reftarget"] for part in parts if not isinstance(part, nodes.Text)] == ["law-t14", "law-t9", "law-t12"]
    assert "".join(part.astext() for part in parts) == "It fires (T14), by T9 to T12; MPT3 and V0 are none."


BUILT = DOCS / "_build"


def built(page: str) -> str:
    """A page that `make docs` made; skipped where it has not."""
    if not (BUILT / "index.html").is_file():
        pytest.skip("the site is not built: make docs")
    return (BUILT / page).read_text(encoding="utf-8")


def test_in_the_built_api_codes_lead_to_the_page_of_laws():
    page = built("api/environments.html")
    assert 'href="../laws.html#law-' in page
    for said in re.findall(
        r"[^>\w]([VNTR][1-9]\d?)\b", re.sub(r"<(a|code|pre|h\d)\b.*?</\1>|<[^>]*>", " ", page, flags=re.S)
    ):
        pytest.fail(f"{said} is no link")


def test_built_pages_ask_nobody_else_for_anything():
    built("index.html")
    for page in BUILT.rglob("*.html"):
        for asked in re.findall(r'<(?:script|img|link)\b[^>]*?(?:src|href)="(https?:[^"]+)"', page.read_text("utf-8")):
            pytest.fail(f"{page.name}: {asked}")


@pytest.mark.e2e
@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1280])
def test_built_pages_fit_narrow_and_wide_windows(chromium: list[str], width: int):
    built("index.html")
    browser: Any = loaded(ROOT / "tests" / "serve" / "browser.py")
    with browser.browsing([*chromium, "--allow-file-access-from-files"]) as page:
        page.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        for file in (
            "index",
            "installation",
            "concepts/delay",
            "science/energy_management",
            "api/time",
            "how_to/under_network",
            "cli",
        ):
            page.call("Page.navigate", url=(BUILT / f"{file}.html").as_uri())
            page.until(f"location.pathname.endsWith('{file}.html') && document.readyState === 'complete'", seconds=120)
            assert page.do("document.documentElement.scrollWidth") <= width, file
        assert page.complaints == []


def test_the_first_use_of_a_term_links_to_the_glossary():
    pytest.importorskip("sphinx")
    terms = re.findall(r"^([a-z][a-z -]*)$", (DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)
    assert {*loaded(DOCS / "_ext" / "glossary_links.py").TERMS} <= {*terms}
    built("index.html")
    assert (BUILT / "concepts" / "two_clocks.html").read_text("utf-8").count('glossary.html#term-tick"') == 1


WORDS = loaded(DOCS / "_ext" / "search_words.py").WORDS if importlib.util.find_spec("sphinx") else {}


def test_a_search_word_belongs_to_one_page():
    pytest.importorskip("sphinx")
    pairs = [(word.lower(), page) for page, words in WORDS.items() for word in words.split()]
    assert len({word for word, _ in pairs}) == len(pairs)
    for _, page in pairs:
        assert (DOCS / f"{page}.md").is_file(), page


TASKS = {
    "install and run": "installation",
    "create an own environment": "how_to/own_environment",
    "invalid actions": "how_to/masks",
    "evaluate sb3 policy": "how_to/reading_a_report",
    "sb3 under delay": "use_with/stable_baselines3",
    "compare two algorithms": "how_to/comparing",
    "dict obs": "how_to/under_network",
    "save model": "how_to/saving",
    "load policy": "how_to/saving",
    "custom env": "how_to/own_environment",
    "custom environment": "how_to/own_environment",
    "confidence interval": "how_to/comparing",
    "how much delay": "how_to/tolerance",
    "learning curve": "how_to/training",
    "which clock": "which_clock",
    "packet loss": "concepts/delay",
}
"""Queries of several words."""


@pytest.fixture
def site(chromium: list[str]):
    """A browser, and the address of the built pages."""
    built("index.html")
    browser: Any = loaded(ROOT / "tests" / "serve" / "browser.py")
    handler = functools.partial(Quiet, directory=BUILT)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, browser.browsing(chromium) as page:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield page, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.e2e
@pytest.mark.browser
def test_the_search_finds_the_page_of_each_word_first(site: tuple[Any, str]):
    page, address = site
    asked = {word: document for document, words in WORDS.items() for word in words.split()} | TASKS
    for query, document in asked.items():
        page.open(f"{address}/search.html?q={quote(query)}")
        first = page.until("document.querySelector('#search-results li a')?.getAttribute('href')")
        assert first.partition("?")[0].partition("#")[0] == f"{document}.html", query
        hits = page.do(
            "[...document.querySelectorAll('#search-results li.kind-text > a')].map(a => a.getAttribute('href'))"
        )
        assert len(hits) == len({*hits}), query


@pytest.mark.e2e
@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_a_heading_is_larger_than_those_below_it(site: tuple[Any, str], width: int):
    page, address = site
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 600)
    page.open(f"{address}/science/training_under_networks.html")
    sizes = page.do(
        "['h1','h2','h3'].map(h => parseFloat(getComputedStyle(document.querySelector(`article ${h}`)).fontSize))"
    )
    assert sizes == sorted(set(sizes), reverse=True), sizes


@pytest.mark.e2e
@pytest.mark.browser
def test_pages_of_the_api_are_short(site: tuple[Any, str]):
    page, address = site
    page.call("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False)
    heights = {}
    for file in sorted((DOCS / "api").glob("*.md")):
        page.open(f"{address}/api/{file.stem}.html")
        heights[file.stem] = page.do("document.querySelector('article').getBoundingClientRect().height")
    assert {name: height for name, height in heights.items() if height > 6000} == {}


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and writes nothing about it."""

    def log_message(self, format: str, *args: Any) -> None:
        pass
