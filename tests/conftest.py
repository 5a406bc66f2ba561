"""How all tests run: Hypothesis profiles, one thread per numeric library, a headless browser where there is one."""

import ctypes
import gc
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # read when numpy and torch are imported; xdist already uses every core
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("HERON_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "heron_env"))  # all share it
os.environ.setdefault("HERON_COMPILE", "0")  # classes made up by a test are not worth compiling; some ask for it
gc.set_threshold(100_000, 20, 20)  # compiling leaves little garbage, and looking for it took a sixth of the time

STATM = Path("/proc/self/statm")
GROWTH = 100 * 2**20
at_last_collection = 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Where a test made this process grow, garbage goes at once: compilers leave much of it, and holes in the heap."""
    global at_last_collection
    yield
    if STATM.exists() and resident() > at_last_collection + GROWTH:
        gc.collect()
        getattr(ctypes.CDLL(None), "malloc_trim", int)(0)  # glibc's
        at_last_collection = resident()


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# No deadline and no check of speed: a slow machine is no broken law. `default` and `ci` draw the same examples every
# time, so that a red test means a changed program; `deep` draws new ones, to hunt for what nobody thought of.
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("default", max_examples=10, derandomize=True, **COMMON)
settings.register_profile("ci", max_examples=150, derandomize=True, **COMMON)
settings.register_profile("deep", max_examples=1000, derandomize=False, **COMMON)
# Among what it draws Hypothesis strews the literals of all modules of ours that are imported by then: any new number
# would redraw every law, and a law would depend on the files that are collected beside it. There is no setting for it.
providers.is_local_module_file = lambda path: False
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

BROWSER_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture
def chromium(tmp_path: Path) -> list[str]:
    """The command of a headless Chromium with an empty profile; append flags and a URL. CHROMIUM names the program."""
    wanted = [os.environ["CHROMIUM"]] if "CHROMIUM" in os.environ else ["chromium", "chromium-browser"]
    found = next(filter(None, map(shutil.which, wanted)), None)
    if found is None:
        pytest.skip(f"no {' or '.join(wanted)} on this machine; install one or set CHROMIUM")
    profile = tmp_path / "chromium-profile"
    profile.mkdir()
    return [found, *BROWSER_FLAGS, f"--user-data-dir={profile}"]


# What was not run, and why, in the closing lines. Under xdist the workers leave tests out and tell the controller.

LEFT_OUT = pytest.StashKey[int]()


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count them."""
    stash = items[0].config.stash
    stash[LEFT_OUT] = stash.get(LEFT_OUT, 0) + len(items)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker tells how many it left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Every worker collects, and leaves out, the same tests."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The lines themselves."""
    skipped = [report.longrepr for report in terminalreporter.stats.get("skipped", ())]
    reasons = [place[2] if isinstance(place, tuple) else str(place) for place in skipped]
    for line in not_run(config.stash.get(LEFT_OUT, 0), config.getoption("markexpr"), reasons):
        terminalreporter.write_line(line)


def not_run(left_out: int, markers: str, skipped: list[str]) -> Iterator[str]:
    """A line for each reason why tests did not run: `markers` is what -m said, `skipped` a reason for each test."""
    if left_out:
        why = f"-m {markers!r}; `make check` runs those too" if markers else "the options of this run"
        yield f"not run: {left_out} tests left out by {why}"
    for reason, count in Counter(skipped).items():
        yield f"not run: {count} skipped: {reason.removeprefix('Skipped: ')}"
