"""What HeronEnv offers: every public name, with its signature and what it says of itself, is as tests/golden has it."""

import inspect
import json
from pathlib import Path

from heron_env import HeronEnv

FACE = Path(__file__).resolve().parent.parent / "golden" / "heron_env_face.json"


def face(cls: type) -> dict[str, list[str]]:
    """Each public name, its kind or signature, and its own docstring; the class's settings by their values."""
    found = {}
    for name in (name for name in dir(cls) if not name.startswith("_")):
        value = inspect.getattr_static(cls, name)
        function = getattr(value, "__func__", value)
        if isinstance(value, property):
            found[name] = ["property" if value.fset is None else "property, settable", inspect.getdoc(value) or ""]
        elif inspect.isfunction(function):
            kind = "" if function is value else f"{type(value).__name__} "
            found[name] = [f"{kind}{inspect.signature(function)}", inspect.getdoc(function) or ""]
        else:
            found[name] = [repr(value), ""]
    return found


def test_the_environment_offers_what_it_offered():
    assert face(HeronEnv) == json.loads(FACE.read_text(encoding="utf-8"))
