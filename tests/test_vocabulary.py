"""The words of the library can be found: in help(), on a page, and by type checkers."""

import ast
import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from ends import Mixed
from public_texts import command_help, dialect, docstrings
from small_worlds import Panel

import heron_env
from heron_env import (
    BatchEnv,
    Condition,
    CoordinatorAgent,
    FieldAgent,
    HeronEnv,
    MultiDiscrete,
    ScheduleConfig,
    Sweep,
    SystemAgent,
)
from heron_env.agents.agent import Agent
from heron_env.agents.horizontal import TOPOLOGIES, HorizontalProtocol
from heron_env.core.action import ActionSpec
from heron_env.core.rule import RULE_NAMES, RULES, SCALARS, TAKES
from heron_env.envs import description, hooks
from heron_env.errors import InvalidAction

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "concepts" / "rules.md").read_text(encoding="utf-8")
TABLE = re.sub(r"^```.*?^```", "", PAGE, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("cls", [FieldAgent, CoordinatorAgent, SystemAgent])
def test_help_of_an_agent_class_has_every_rule_and_all_it_may_take(cls: type):
    told = inspect.getdoc(cls) or ""
    for name in RULE_NAMES:
        assert f"    {name} -> {RULES[name].returns}:" in told
        assert RULES[name].shown(name) in " ".join(told.split())
    for written, _ in TAKES:
        assert f"    {written}:" in told
    for word in ("Parent[", "Children[", "child_rewards", "categories=", "'full': all pairs", *SCALARS, *TOPOLOGIES):
        assert word in told


def test_help_of_the_environment_has_every_hook_with_its_signature():
    told = inspect.getdoc(HeronEnv) or ""
    for name, hook in hooks.OVERRIDABLE.items():
        assert (
            f"    {name}({', '.join(inspect.signature(hook).parameters)}): {inspect.getdoc(hook).split(chr(10))[0]}"
            in (told)
        )
    for word in ("Discrete(n) action: the choice, counted from 0", "'full': all pairs", description.infos_in_words()):
        assert word in told


def test_every_function_that_an_author_may_override_is_a_hook():
    inner = {"run_hook", "called_in_python", "native_loops"}
    ours = {name for name, value in vars(hooks.Hooks).items() if inspect.isfunction(value) and not name.startswith("_")}
    assert ours - inner == set(hooks.HOOKS) == set(hooks.OVERRIDABLE)
    assert all(hooks.OVERRIDABLE[name] is getattr(HeronEnv, name) for name in hooks.OVERRIDABLE)


def test_infos_hold_what_the_vocabulary_says():
    _, infos = HeronEnv(SystemAgent("system_agent", *Mixed.pair()), max_steps=2).reset(seed=0)
    assert set(infos["mover_1"]) == {name for name in description.INFOS if name != "action_mask"}
    assert set(infos["chooser_1"]) <= set(description.INFOS)


@pytest.mark.parametrize("choice", [2, 2.0, np.int64(2), np.array(2), [2], np.array([2.0]), {"d": [2]}, {"d": 2}])
def test_what_a_discrete_policy_may_return(choice: object):
    env = HeronEnv(SystemAgent("system_agent", *Mixed.choosers(1)), max_steps=1)
    result = env.run_synchronous({"chooser": lambda vector: choice}, seed=0, record=("actions",))
    assert [action.tolist() for _, action in result.actions["chooser_1"]] == [[2.0]]


@pytest.mark.parametrize("choice", [3, -1, 1.5, [0, 1]])
def test_and_what_not(choice: object):
    env = HeronEnv(SystemAgent("system_agent", *Mixed.choosers(1)), max_steps=1)
    with pytest.raises(InvalidAction):
        env.run_synchronous({"chooser": lambda vector: choice}, seed=0)


def test_a_category_is_its_index():
    assert (Panel.colour.low, Panel.colour.high) == (0.0, 2.0)
    assert Panel(colour=2).colour == 2


def test_all_pairs_are_full():
    class Everyone(HorizontalProtocol):
        def __init__(self) -> None:
            self.edges, self.hub = "full", None

    pairs = Everyone().pairs(["a", "b", "c"])
    assert sorted(pairs) == [(s, r) for s in "abc" for r in "abc" if s != r]


def test_the_tables_of_the_page_have_every_word():
    names = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", TABLE))))
    wanted = {
        *RULE_NAMES,
        *hooks.OVERRIDABLE,
        *description.INFOS,
        *TOPOLOGIES,
        *SCALARS,
        "Parent",
        "Children",
        "child_rewards",
        "Vector",
    }
    assert wanted - names == set()
    assert "categories=" in TABLE
    assert "all pairs" in TABLE


TYPED = """
from typing import Any
import numpy as np
from numpy.typing import NDArray
from heron_env import Continuous, CoordinatorAgent, FeatureProvider, FieldAgent, Vector, quantity, rule
class Charge(FeatureProvider):
    soc: float = quantity(default=0.5)
class Ruled(FieldAgent):
    features = (Charge,)
    action = Continuous(-1.0, 1.0)
    @staticmethod
    @rule(writes=Charge.soc)
    def apply_action(charge: Charge, action: Vector) -> float:
        return charge.soc + action[0]
    @staticmethod
    @rule
    def compute_local_reward(charge: Charge) -> {kind}:
        return {value}
class Adds(CoordinatorAgent):
    @staticmethod
    @rule
    def compute_local_reward(child_rewards: NDArray[np.float64]) -> float:
        return float(child_rewards.sum()) + len(child_rewards)
class First(CoordinatorAgent):
    @staticmethod
    @rule
    def compute_local_reward(child_rewards: Vector) -> float:
        return child_rewards[0] + len(child_rewards)
class ByHand(FieldAgent):
    def apply_action(self) -> None: ...
    def advance(self, dt: float) -> None: ...
    def compute_local_reward(self, local_state: Any) -> float:
        return 1.0
    def is_terminated(self, local_state: Any) -> bool:
        return False
"""


@pytest.mark.e2e
def test_type_checkers_know_the_rules(tmp_path: Path):
    def checked(**words: str) -> str:
        (tmp_path / "typed.py").write_text(TYPED.format(**words), encoding="utf-8")
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", f"{tmp_path}/typed.py"]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout

    assert "Success" in checked(kind="float", value="charge.soc")
    wrong = checked(kind="str", value="'a lot'")
    assert 'Signature of "compute_local_reward" incompatible with supertype' in wrong


def test_the_names_of_rules_are_declared_for_editors_only():
    text = inspect.getsource(Agent)
    for name in RULE_NAMES:
        assert f"        {name}: ClassVar[" in text
        assert not hasattr(Agent, name), "a static rule can't override a method"
    assert isinstance(Agent.action, ActionSpec)
    assert MultiDiscrete([2, 3]).size == 2


GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")


def test_names_in_the_glossary_are_in_the_library():
    for dotted in re.findall(r"`(heron_env\.[\w.]+)`", GLOSSARY):
        assert pydoc.locate(dotted) is not None, dotted


def test_the_glossary_has_its_terms_in_order_and_links_to_its_own():
    terms = re.findall(r"^(\S.*)\n  \S", GLOSSARY.split("```")[1], re.MULTILINE)
    assert len(terms) >= 45
    assert terms == sorted(terms, key=str.lower)
    assert set(re.findall(r"\{term\}`([^`]+)`", GLOSSARY)) <= set(terms)


PRIVATE = re.compile(
    r"\b(tells?|told|telling|falls? (due|in|on|as|apart)|fell|overlook\w*|aside|spoken|eats?|eaten|hears?|heard|said"
    r"|go(es)? on (with|where)|gone on|comes? along|stands?|stood|apart|whose (?!turn)\w+ (it|this) is)\b"
)
"""Words once used here in a sense of their own. 'Given', 'known', 'keep', 'hold', 'beside' are plain English."""


def private_words(text: str) -> list[str]:
    """Of a text without its code and quoted values."""
    return [found[0] for found in PRIVATE.finditer(re.sub(r"`[^`]*`|\"[^\"\n]*\"|'[^'\n]*'|^\s*\w+: ", " : ", text))]


def printed() -> Iterator[tuple[str, str]]:
    """What reports, tables and the command line print: the texts of some words in their modules, but docstrings."""
    package = ROOT / "heron_env"
    for file in sorted((*package.glob("lab/**/*.py"), *package.glob("cli/*.py"))):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        about = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            text = getattr(node, "value", None) if id(node) not in about else None
            if isinstance(node, ast.Constant) and isinstance(text, str) and text.count(" ") > 1:
                yield f"{file.relative_to(package)}:{node.lineno}", text


def test_public_docstrings_the_commands_help_and_reports_use_common_words():
    texts = [*docstrings(), *command_help(), *printed()]
    assert len(texts) > 700
    assert {name: words for name, text in texts if (words := private_words(text) + dialect(text))} == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("An effect falls due whose action it has not been told.", ["falls due", "told"]),
        ("A killed run is gone on with.", ["gone on"]),
        ("The age `told` falls linearly; agents whose turn it is hold what they know, beside 'told'.", []),
        ("<html>'mine' earns system_agent -23.09 with nothing wrong.", ["earns system_agent -2", "nothing wrong"]),
    ],
)
def test_private_words_are_found(text: str, words: list[str]):
    assert private_words(text) + dialect(text) == words


FUNCTIONS = {name for name in heron_env.__all__ if inspect.isfunction(getattr(heron_env, name))}


def test_public_functions_have_an_example_and_say_what_they_return():
    lacking = {n for n in FUNCTIONS if not {">>>", "Returns:"} <= set((getattr(heron_env, n).__doc__ or "").split())}
    assert lacking == set()


@pytest.mark.parametrize(
    "thing", [HeronEnv.run_synchronous, HeronEnv.run_event_driven, BatchEnv, ScheduleConfig, Condition, Sweep]
)
def test_the_main_classes_and_methods_have_an_example(thing: object):
    assert ">>> " in (thing.__doc__ or "")
