"""What can't be compiled is explained, word for word: the user's file, line and source, the reason, the remedy."""

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heron_env import Continuous, FeatureProvider, FieldAgent, HeronEnv, SystemAgent, rule, testing
from heron_env.errors import RuleError

GAINS = {"a": 1.0}
UNIT = "kW"
OTHERWISE = "or build the environment with compile=False"
OUTSIDE = (
    "a compiled rule may read numbers, tuples, arrays, enums, named tuples and functions from outside; "
    f"make it one of these, {OTHERWISE}"
)
KNOWN = f"write it with numbers, arrays, math and numpy functions that numba knows, {OTHERWISE}"


class Box(FeatureProvider):
    soc: float = 0.5
    size: float = 1.0


class Meter:
    pass


METER = Meter()


def misspelt(box: Box) -> float:
    x = 1.0
    return box.sok + x


def imports(box: Box) -> float:
    import math as m

    return m.exp(box.soc)


def opens(box: Box) -> float:
    with open("x"):
        return box.soc


def two_types(box: Box) -> Any:
    if box.soc > 0:
        return "full"
    return box.soc


def catches(box: Box) -> float:
    try:
        return 1.0 / box.soc
    except ZeroDivisionError:
        return 0.0


def reads_a_dict(box: Box) -> float:
    y = box.soc
    return GAINS["a"] * y


def reads_an_object(box: Box) -> bool:
    return METER is None


def reads_nothing(box: Box) -> float:
    return missing + box.soc  # type: ignore[name-defined]  # noqa: F821


def reads_no_function(box: Box) -> float:
    return np.nothing(box.soc)  # type: ignore[attr-defined]


def reads_a_module(box: Box) -> float:
    return float(inspect is math)


def adds_text(box: Box) -> Any:
    return box.soc + UNIT


def calls_a_method(box: Box) -> float:
    return float(box.vector()[0])


def helper(box: Any) -> Any:
    return box.sise


def calls_a_helper(box: Box) -> float:
    return 2.0 * helper(box)


CASES: dict[Callable[..., Any], tuple[str, str]] = {
    misspelt: (
        "return box.sok + x",
        f"Box has no quantity 'sok'; there are ['soc', 'size']. Did you mean 'soc'?; {KNOWN}",
    ),
    imports: (
        "import math as m",
        f"a compiled rule can't import; move the import to the top of the module, {OTHERWISE}",
    ),
    opens: (
        'with open("x"):',
        f"a compiled rule can't use `with`; leave the `with` out: a rule reads and writes no files, {OTHERWISE}",
    ),
    two_types: (
        'return "full"',
        "it returns Literal[str](full) (line {line}) and float64 (line {next}); "
        f"return numbers of one type on every path, {OTHERWISE}",
    ),
    catches: (
        "except ZeroDivisionError:",
        "a compiled rule can't catch exceptions by class; "
        f"test for the case beforehand instead of catching it, {OTHERWISE}",
    ),
    adds_text: ("return box.soc + UNIT", f"there is no add for add(float64, Literal[str](kW)); {KNOWN}"),
    calls_a_method: (
        "return float(box.vector()[0])",
        f"Box has no quantity 'vector'; there are ['soc', 'size'].; {KNOWN}",
    ),
    calls_a_helper: (
        "return box.sise",
        f"Box has no quantity 'sise'; there are ['soc', 'size']. Did you mean 'size'?; {KNOWN}",
    ),
}
READS: dict[Callable[..., Any], tuple[str, str]] = {
    reads_a_dict: ('return GAINS["a"] * y', f"GAINS, which is a dict: {OUTSIDE}"),
    reads_an_object: ("return METER is None", f"METER, which is a Meter: {OUTSIDE}"),
    reads_nothing: ("return missing +", "missing, which does not exist; import it, or correct the name"),
    reads_no_function: ("return np.nothing", "np.nothing, which does not exist; correct the name"),
    reads_a_module: ("return float(inspect is", "the module inspect as a value; write inspect.NAME where it is used"),
}


def refusal(function: Callable[..., Any], name: str = "compute_local_reward", **writes: Any) -> str:
    """The error of an agent `Bad` whose rule is `function`."""
    marked = staticmethod(rule(**writes)(function) if writes else rule(function))
    kind = type("Bad", (FieldAgent,), {"features": (Box,), "action": Continuous(-1.0, 1.0), name: marked})
    env = HeronEnv(SystemAgent("top", kind("bad")), max_steps=1)
    with pytest.raises(RuleError) as caught:
        testing.inspect(env).program.compiled()
    return str(caught.value)


def place(text: str) -> tuple[str, str]:
    """`file:line` of the first line that begins with `text` in this file, and the line."""
    for number, line in enumerate(Path(__file__).read_text().splitlines(), 1):
        if line.strip().startswith(text):
            return f"{__file__}:{number}", line.strip()
    raise LookupError(text)


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_what_numba_refuses_is_explained(function: Callable[..., Any]):
    start, words = CASES[function]
    where, line = place(start)
    words = words.format(line=where.rpartition(":")[2], next=int(where.rpartition(":")[2]) + 1)
    assert refusal(function) == f"Bad.compute_local_reward can't be compiled: {where}: `{line}`: {words}"


def test_the_line_is_named_below_any_folder(tmp_path: Path):
    file = tmp_path / "a copy (2)" / "rules.py"
    file.parent.mkdir()
    file.write_text("def imports(box):\n    x = 1.0\n    import math as m\n    return m.exp(box.soc) + x\n")
    space: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), space)
    space["imports"].__annotations__ = {"box": Box, "return": float}
    assert f"{file}:3: `import math as m`" in refusal(space["imports"])


@pytest.mark.parametrize("function", READS, ids=lambda function: function.__name__)
def test_what_no_digest_knows_is_refused_by_name(function: Callable[..., Any]):
    start, words = READS[function]
    where, _ = place(start)
    assert refusal(function) == f"{where}: Bad.compute_local_reward reads {words}"


def test_a_closed_over_dict_is_refused_by_name():
    gains = {"b": 2.0}

    def closed(box: Box) -> float:
        return gains["b"] * box.soc

    where, _ = place('return gains["b"]')
    assert refusal(closed) == f"{where}: Bad.compute_local_reward reads gains, which is a dict: {OUTSIDE}"


def pair(box: Box) -> tuple[float, float]:
    return box.soc, box.size


def alone(box: Box) -> float:
    return box.soc


@pytest.mark.parametrize(
    ("function", "name", "writes", "message"),
    [
        (pair, "advance", {"writes": Box.soc},
         "Bad.advance returns UniTuple(float64 x 2) for Box.soc: a number is needed; return one on every path"),
        (pair, "advance", {"writes": (Box.soc,)},
         "Bad.advance writes [Box.soc] and must return a tuple of 1, not a tuple of 2"),
        (alone, "advance", {"writes": (Box.soc, Box.size)},
         "Bad.advance writes [Box.soc, Box.size] and must return a tuple of 2, not float64"),
        (pair, "compute_local_reward", {},
         "Bad.compute_local_reward returns UniTuple(float64 x 2): a number is needed; return one on every path"),
        (pair, "get_local_info", {},
         "Bad.get_local_info returns UniTuple(float64 x 2): compiled infos are a NamedTuple of numbers; declare one"),
    ],
)  # fmt: skip
def test_what_a_rule_returns_must_fit_what_it_writes(
    function: Callable[..., Any], name: str, writes: dict[str, Any], message: str
):
    assert refusal(function, name, **writes) == message
