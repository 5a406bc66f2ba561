"""One cache of compiled rules for all tests of a session; the user's own is never written to."""

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def compiled_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """HERON_CACHE_DIR of this session."""
    folder = tmp_path_factory.mktemp("compiled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HERON_CACHE_DIR", str(folder))
        yield folder
