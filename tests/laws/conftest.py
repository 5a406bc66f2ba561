"""Marks of the laws: `draw` where what they are tried on is drawn, `law` where it is named."""

from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before -m chooses among them."""
    for item in items:
        if HERE in item.path.parents and not item.get_closest_marker("draw"):
            item.add_marker("draw" if is_hypothesis_test(getattr(item, "obj", None)) else "law")
