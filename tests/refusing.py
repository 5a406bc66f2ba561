"""What a refusal says, word for word."""

import re
from collections.abc import Callable, Iterable

import pytest


def refuses(error: type[Exception], message: str):
    """Within it this error is raised, with this message and no other word."""
    return pytest.raises(error, match=f"^{re.escape(message)}$")


def unsaid(error: type[Exception], cases: Iterable[tuple[Callable[[], object], str]]) -> list[str]:
    """Of (call, words): the words that are not in what the call's error of this kind says."""
    missed = []
    for call, words in cases:
        with pytest.raises(error) as caught:
            call()
        missed += [f"{words!r} is not in {caught.value}"] if words not in str(caught.value) else []
    return missed
