"""Agents: an id, a level, features, an action, subordinates, and no parent, proxy or environment; and the three kinds.

Field agents are the leaves, which act on the world. Coordinators command their subordinates through a protocol, or only
watch. The system agent is the root.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import lru_cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from heron_env.agents.horizontal import Topology, as_protocols
from heron_env.agents.vertical import Protocol
from heron_env.core.action import Action, ActionSpec
from heron_env.core.feature import FeatureProvider, require_features
from heron_env.core.hierarchy import require_room
from heron_env.core.policy import AnsweringPolicy, AnyPolicy, Policy, StatePolicy
from heron_env.core.rule import RULE_NAMES, RULES, Word, add_to_help, rule_spec, rules_in_words
from heron_env.core.state import CoordinatorAgentState, FieldAgentState, State, SystemAgentState
from heron_env.errors import ConfigError, FeatureError, HierarchyError, RuleError, checked_keywords

if TYPE_CHECKING:
    from heron_env.core.rule import ActionRule, AdvanceRule, EndRule, InfoRule, MaskRule, RewardRule


class Agent:
    """One agent. Subclass FieldAgent, CoordinatorAgent or SystemAgent, not this.

    Args:
        agent_id: unique in its environment; `battery_1` puts it into the group `battery`.
        parts: subordinate agents (not of field agents), and features with values other than the defaults or of a
            subclass that stands in for the declared one.
        policy: what decides when the caller gives no action.

    Attributes:
        own_rows: what it sees of its own features when it decides in the event-driven clock: "proxy", what the proxy
            knew, as of everything else; "local", what they are. A schedule's goes before.
        injected: does an endpoint play it, so that the policies of `"*"` are not for it?
    """

    level: ClassVar[int]
    state_class: ClassVar[type[State]]
    features: ClassVar[Sequence[type[FeatureProvider]]] = ()
    action: Any = ActionSpec()
    protocol: Protocol | None = None
    own_rows: ClassVar[Literal["proxy", "local"]] = "proxy"

    state: State
    current_action: Action
    injected = False

    if TYPE_CHECKING:  # what a class may define, as a rule or a method: for editors and type checkers alone
        apply_action: ClassVar[ActionRule]
        advance: ClassVar[AdvanceRule]
        compute_local_reward: ClassVar[RewardRule]
        is_terminated: ClassVar[EndRule]
        is_truncated: ClassVar[EndRule]
        get_local_info: ClassVar[InfoRule]
        action_mask: ClassVar[MaskRule]

    def __init__(self, agent_id: str, *parts: Agent | FeatureProvider, policy: AnyPolicy | None = None) -> None:
        if not isinstance(agent_id, str) or not agent_id:
            name = type(self).__name__
            raise HierarchyError(
                f"{name}({agent_id!r:.200}): the id is a non-empty string; write {name}('{name.lower()}_1')"
            )
        require_features(type(self).features, f"{type(self).__name__}.features")
        if isinstance(policy, type) or not (
            policy is None or callable(policy) or isinstance(policy, Policy | StatePolicy | AnsweringPolicy)
        ):
            raise ConfigError(
                f"{type(self).__name__}({agent_id!r}, policy={policy!r:.200}): must be an object with "
                "forward(observation) or answer(asked), or a function of the vector; make one"
            )
        if self.own_rows not in ("proxy", "local"):
            raise ConfigError(f"{type(self).__name__}.own_rows={self.own_rows!r}: must be 'proxy' or 'local'")
        require_room(agents=1, numbers=sum(feature.width for feature in self.features))
        self.agent_id = agent_id
        self.policy = policy
        self.subordinates: tuple[Agent, ...] = tuple(part for part in parts if isinstance(part, Agent))
        self.initial = self._initial([part for part in parts if not isinstance(part, Agent)])
        self.current_action = Action()
        self.current_action = Action(self.own_action_spec())

    def _initial(self, features: list[Any]) -> tuple[FeatureProvider, ...]:
        where = f"{type(self).__name__}({self.agent_id!r})"
        values: dict[type[FeatureProvider], FeatureProvider] = {}
        for feature in features:
            if not isinstance(feature, FeatureProvider):
                remedy = "write *[...]" if isinstance(feature, list | tuple) else "write an object, as in Charge()"
                raise HierarchyError(f"{where}: {feature!r} is neither an agent nor a feature; {remedy}")
            declared = next((kind for kind in self.features if isinstance(feature, kind)), None)
            if declared is None:
                names = [kind.__name__ for kind in self.features]
                raise FeatureError(
                    f"{where}: {type(feature).__name__} is not among its features {names}; add it to `features`"
                )
            if declared in values:
                raise FeatureError(f"{where}: {declared.__name__} is given twice; give it once")
            values[declared] = feature
        return tuple(values.get(feature) or feature() for feature in self.features)

    def own_action_spec(self) -> ActionSpec:
        """Return the action that this agent decides: its protocol's joint action, or its own."""
        declared = type(self).action
        if overrides(self, "init_action"):
            self.init_action()
            return self.current_action.spec
        if not isinstance(declared, ActionSpec):
            raise ConfigError(
                f"{type(self).__name__}.action={declared!r}: is no action; write Continuous(low, high), Discrete(n), "
                "MultiDiscrete([n, m]) or Mixed(...)"
            )
        if self.protocol is None:
            return declared
        if not isinstance(self.protocol, Protocol):
            raise ConfigError(
                f"{type(self).__name__}({self.agent_id!r}): protocol={self.protocol!r} is no protocol; "
                "write an object, as in VectorDecomposition()"
            )
        if declared.size:
            raise ConfigError(
                f"{type(self).__name__}({self.agent_id!r}): with a protocol its action is its subordinates'; "
                "remove `action` or `protocol`"
            )
        return self.protocol.joint_spec([child.own_action_spec() for child in self.subordinates])

    def init_state(self) -> None:
        """Make a fresh state. Override to build one by hand: `self.state = FieldAgentState(...)`, append features."""
        copies = [type(feature).from_dict(feature.to_dict()) for feature in self.initial]
        self.state = self.state_class(self.agent_id, self.level, copies)

    def init_action(self) -> None:
        """Make a fresh action, the no-op. Override to build it by hand with `self.action.set_specs(...)`."""
        self.current_action = Action(self.own_action_spec())

    def set_action(self, action: Any) -> None:
        """Take an action (array, number, Action or {"c", "d"})."""
        self.current_action.set_values(action)

    def reset(self) -> None:
        """Make state and action anew: nothing of the last episode survives."""
        self.init_action()
        self.init_state()

    @property
    def is_imperative(self) -> bool:
        """Does this class use methods on `self` in place of rules?"""
        return any(overrides(self, name) for name in ("init_state", "init_action", "set_action")) or any(
            imperative(self, name) is not None for name in RULE_NAMES
        )

    def __repr__(self) -> str:
        """`Battery('battery_1')`."""
        return f"{type(self).__name__}({self.agent_id!r})"


class FieldAgent(Agent):
    """A leaf of the hierarchy (level 1)."""

    level: ClassVar[int] = 1
    state_class: ClassVar[type[State]] = FieldAgentState

    @checked_keywords
    def __init__(self, agent_id: str, *parts: FeatureProvider, policy: AnyPolicy | None = None) -> None:
        super().__init__(agent_id, *parts, policy=policy)
        if self.subordinates:
            raise HierarchyError(
                f"{type(self).__name__}({agent_id!r}): a field agent has no subordinates; use a CoordinatorAgent"
            )


class CoordinatorAgent(Agent):
    """An inner node (level 2, nested ones too): `Zone("zone_1", battery_1, battery_2, protocol=...)`.

    `exchange`: what the agents below send each other, one horizontal protocol or several, Mail among them; None:
    the class's.
    """

    level: ClassVar[int] = 2
    state_class: ClassVar[type[State]] = CoordinatorAgentState
    exchange: Topology | Sequence[Topology] = ()

    @checked_keywords
    def __init__(
        self,
        agent_id: str,
        *parts: Agent | FeatureProvider,
        protocol: Protocol | None = None,
        exchange: Topology | Sequence[Topology] | None = None,
        policy: AnyPolicy | None = None,
    ) -> None:
        if protocol is not None:
            self.protocol = protocol
        where = f"{type(self).__name__}({agent_id!r})"
        self.exchange = as_protocols(type(self).exchange if exchange is None else exchange, where)
        super().__init__(agent_id, *parts, policy=policy)
        for child in self.subordinates:
            if child.level == 3:
                raise HierarchyError(
                    f"{type(self).__name__}({agent_id!r}): {child!r} is a system agent; there is one, at the top; "
                    "use a CoordinatorAgent"
                )


class SystemAgent(CoordinatorAgent):
    """The root (level 3): `SystemAgent("system_agent", *zones)`."""

    level: ClassVar[int] = 3
    state_class: ClassVar[type[State]] = SystemAgentState


for _kind in (FieldAgent, CoordinatorAgent, SystemAgent):
    add_to_help(_kind, rules_in_words())


def overrides(agent: Agent, name: str) -> bool:
    """Does the agent's class replace this method of Agent?"""
    return getattr(type(agent), name) is not getattr(Agent, name)


def imperative(agent: Agent, name: str) -> Any:
    """The bound method called `name` if it is one on `self`; None if it is a rule or missing.

    Raises ConfigError for a static method without @rule, RuleError for a method with other parameters.
    """
    kind: type = type(agent)
    return getattr(agent, name) if _is_method(kind, name) else None


@lru_cache(maxsize=1024)
def _is_method(kind: type, name: str) -> bool:
    static = inspect.getattr_static(kind, name, None)
    if static is None or rule_spec(getattr(kind, name)) is not None:
        return False
    where, word = f"{kind.__name__}.{name}", RULES[name]
    if isinstance(static, staticmethod):
        raise ConfigError(f"{where} is static but no rule: decorate it with @rule, below @staticmethod")
    if not isinstance(static, FunctionType):
        raise RuleError(f"{where}={static!r}: is neither a rule nor a method; write def {word.shown(name)}")
    if not _can_be_called(inspect.signature(static), word):
        raise RuleError(
            f"{where}({', '.join(inspect.signature(static).parameters)}): a method is called as {word.shown(name)}; a "
            "rule, which reads features, needs @staticmethod @rule above it"
        )
    return True


def _can_be_called(signature: inspect.Signature, word: Word) -> bool:
    """Is this the signature of a method? Its first parameter has an annotation if it was meant for a feature."""
    first = next(iter(signature.parameters.values()), None)
    if first is None or (first.name != "self" and first.annotation is not first.empty):
        return False
    try:
        signature.bind("self", *word.method, **{name: name for name in word.optional if name in signature.parameters})
    except TypeError:
        return False
    return True
