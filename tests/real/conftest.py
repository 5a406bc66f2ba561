"""Hubs of tests start their processes from one that has imported everything, and don't wait for stragglers."""

from collections.abc import Iterator

import pytest
from real.carried_kit import Quick, quickly
from real.quick import Starter, starter
from real.wire_kit import MOSQUITTO, Broker, broker


@pytest.fixture(scope="session")
def started() -> Iterator[Starter]:
    """What children are forked from."""
    with starter() as begun:
        yield begun


@pytest.fixture
def quick(started: Starter, monkeypatch: pytest.MonkeyPatch) -> Quick:
    """Runs with processes that begin at once."""
    return quickly(started, monkeypatch)


@pytest.fixture(scope="module")
def mosquitto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of the module's own."""
    if MOSQUITTO is None:
        pytest.skip("no mosquitto on this machine; install it")
    with broker(tmp_path_factory.mktemp("broker")) as running:
        yield running
