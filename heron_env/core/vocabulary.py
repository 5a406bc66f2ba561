"""The vocabulary of rules: which names of an agent class are called, what they may take, and what they give back.

`RULE_NAMES` (core/rule.py) says which names there are; here stands what each means: for `help(FieldAgent)`, for editors
(the classes of protocols below are the types of these names on every agent), and for errors.
"""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import dataclass
from typing import Any, Protocol

from heron_env.core.rule import RULE_NAMES


@dataclass(frozen=True, slots=True)
class Word:
    """One name that is called.

    Attributes:
        method: what the same name takes as a method, after `self`: the imperative style.
        optional: what that may take besides.
        returns: of the rule.
        says: when it is called, and what for.
    """

    method: tuple[str, ...]
    returns: str
    says: str
    optional: tuple[str, ...] = ()

    def shown(self, name: str) -> str:
        """`compute_local_reward(self, local_state[, child_rewards])`."""
        more = "".join(f"[, {word}]" for word in self.optional)
        return f"{name}({', '.join(['self', *self.method])}{more})"


LOCAL = ("local_state",)
RULES: dict[str, Word] = {
    "apply_action": Word(
        (), "what it writes", "when its action takes effect, top-down: write a set-point, rule(writes=Setpoint.power)"
    ),
    "advance": Word(("dt",), "what it writes", "each physics substep of dt s, bottom-up: move the agent's own state"),
    "compute_local_reward": Word(
        LOCAL,
        "a number",
        "once a control step, bottom-up; without one a field agent earns 0, a coordinator its children's sum",
        ("child_rewards",),
    ),
    "is_terminated": Word(LOCAL, "a bool", "after the rewards: has its task ended for good?"),
    "is_truncated": Word(LOCAL, "a bool", "after the rewards: is it cut off, so that learners bootstrap?"),
    "get_local_info": Word(
        LOCAL, "numbers by name, a NamedTuple or dict", "with each observation: what is added to infos[agent]"
    ),
    "action_mask": Word(
        LOCAL, "a 1 or 0 for each choice", "with each observation: which choices of a discrete action are allowed"
    ),
}
"""By name; one that is not among RULE_NAMES is not called."""

TAKES: tuple[tuple[str, str], ...] = (
    ("charge: Charge", "a feature of the agent itself, or a global one; fields are numbers, vectors float64 arrays"),
    ("zone: Parent[Zone]", "the feature of the agent's parent"),
    ("flows: Children[Flow]", "columns over the children that have it: flows.power is float64 [n]"),
    ("action: Vector", "the action in force: action[0] is a float; of a Discrete agent the choice, int(action[0])"),
    ("dt: float, time: float", "s: length of the substep (of the step, where there is none), and nominal time"),
    (
        "child_rewards: NDArray[np.float64]",
        "[children]: what they earned, an ended child 0; a compute_local_reward that leaves it out leaves them out",
    ),
)


QUANTITIES = (
    "Quantities of features: quantity(default=, low=, high=, unit=), or quantity(categories=('off', 'on')), whose "
    "value is the index; shape=(k,) for a vector, per_step=True for a sum that begins anew in each step, "
    "observed=False for bookkeeping, foreknown=True for what is really known ahead."
)
EXCHANGE = (
    "A coordinator's exchange=StateShare(Charge.soc, Heard.soc, edges) tells single values, StateAverage their mean, "
    "into an Inbox of the receiver; Mail(edges) lets policies that answer write letters. edges: 'ring': each hears its "
    "two neighbours; 'star': the hub hears all and all hear the hub (hub=ID); 'full': all pairs, everyone hears all "
    "others; or a list of pairs (sender id, receiver id)."
)


def rules_in_words() -> str:
    """The vocabulary of rules, as `help` of an agent class shows it."""
    called = [f"    {name} -> {RULES[name].returns}:\n{_wrapped(RULES[name].says)}" for name in RULE_NAMES]
    takes = [f"    {written}:\n{_wrapped(what)}" for written, what in TAKES]
    methods = ", ".join(RULES[name].shown(name) for name in RULE_NAMES)
    imperative = (
        "Or, in the imperative style, methods of the same names (slower: plain Python, one agent at a time), which "
        f"write self.state and read self.action: {methods}."
    )
    return "\n".join(
        [
            "Rules are called by name, as `@staticmethod @rule(writes=Charge.soc) def advance(charge: Charge)`.",
            "",
            *called,
            "",
            "Their parameters say what they read, in any order; names decide action, child_rewards, dt and time:",
            "",
            *takes,
            "",
            wrapped(imperative),
            "",
            wrapped(QUANTITIES),
            "",
            wrapped(EXCHANGE),
        ]
    )


def wrapped(text: str) -> str:
    """As lines of a docstring."""
    return "\n".join(textwrap.wrap(text, 112, break_long_words=False, break_on_hyphens=False))


def told_in_help(cls: type[Any], *texts: str) -> None:
    """Add these texts to what `help(cls)` shows."""
    if cls.__doc__:  # not with python -OO
        cls.__doc__ = "\n\n".join([inspect.cleandoc(cls.__doc__), *texts])


def _wrapped(text: str) -> str:
    return textwrap.indent("\n".join(textwrap.wrap(text, 104)), " " * 8)


class ActionRule(Protocol):
    """`@staticmethod @rule(writes=Setpoint.power) def apply_action(setpoint: Setpoint, action: Vector) -> float`.

    Called when the agent's action takes effect, top-down. As a method: `apply_action(self)`, reading `self.action`.
    """

    def __call__(self, *read: Any, **more: Any) -> Any:
        """What it writes: a number, or a tuple of as many as `writes` names."""


class AdvanceRule(Protocol):
    """`@staticmethod @rule(writes=Charge.soc) def advance(charge: Charge, dt: float) -> float`.

    Called each physics substep of dt s, bottom-up. As a method: `advance(self, dt)`.
    """

    def __call__(self, *read: Any, **more: Any) -> Any:
        """What it writes: a number, or a tuple of as many as `writes` names."""


class RewardRule(Protocol):
    """`@staticmethod @rule def compute_local_reward(ledger: Ledger) -> float`.

    Called once a control step, bottom-up; may take `child_rewards`, float64 `[children]`. As a method:
    `compute_local_reward(self, local_state)`, or `(self, local_state, child_rewards)`.
    """

    def __call__(self, *read: Any, **more: Any) -> float:
        """What the agent has earned in this step."""


class EndRule(Protocol):
    """`@staticmethod @rule def is_terminated(charge: Charge) -> bool`; `is_truncated` is written alike.

    Called after the rewards of each step. As a method: `is_terminated(self, local_state)`.
    """

    def __call__(self, *read: Any, **more: Any) -> bool:
        """Does the agent end here?"""


class InfoRule(Protocol):
    """`@staticmethod @rule def get_local_info(charge: Charge) -> Shown`, Shown being a NamedTuple of numbers.

    It may read of others only what its agent sees exactly. As a method: `get_local_info(self, local_state)`.
    """

    def __call__(self, *read: Any, **more: Any) -> Any:
        """Numbers by name: what is added to `infos[agent]`."""


class MaskRule(Protocol):
    """`@staticmethod @rule def action_mask(signal: Signal) -> ...`: which choices of a discrete action are allowed.

    As a method: `action_mask(self, local_state)`.
    """

    def __call__(self, *read: Any, **more: Any) -> Any:
        """For each choice whether it is allowed."""
