"""What a refusal says, word for word."""

import re

import pytest


def refuses(error: type[Exception], message: str):
    """Within it this error is raised, with this message and no other word."""
    return pytest.raises(error, match=f"^{re.escape(message)}$")
