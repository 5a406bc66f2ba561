"""How all tests run: Hypothesis profiles, one thread per numeric library, a headless browser where there is one."""

import gc
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # read when numpy and torch are imported; xdist already uses every core
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("HERON_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "heron_env"))  # all share it
os.environ.setdefault("HERON_COMPILE", "0")  # classes made up by a test are not worth compiling; some ask for it
gc.set_threshold(100_000, 20, 20)  # compiling leaves little garbage, and looking for it took a sixth of the time

# No deadline and no check of speed: a slow machine is no broken law. `default` and `ci` draw the same examples every
# time, so that a red test means a changed program; `explore` draws new ones, to hunt for what nobody thought of.
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("default", max_examples=30, derandomize=True, **COMMON)
settings.register_profile("ci", max_examples=1000, derandomize=True, **COMMON)
settings.register_profile("explore", max_examples=2000, derandomize=False, **COMMON)
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
