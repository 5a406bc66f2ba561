"""Bad inputs: rules and physics hooks."""

# ruff: noqa: E501 (a message is one line)

import math

from catalogue.case import Case
from catalogue.small_world import Charge, agent, env, tree

from heron_env import (
    Children,
    Continuous,
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Parent,
    Vector,
    quantity,
    rule,
)
from heron_env.errors import ConfigError, RuleError, UnknownAgent, UnknownFeature, UnknownField


class Ledger(FeatureProvider):
    """Bookkeeping."""

    cost: float = quantity(default=0.0, low=0.0, high=9.0, observed=False)


class Other(FeatureProvider):
    """A feature of the world; the agents here do not have it."""

    visibility = ("public",)
    x: float = 0.0


def stepped(function, writes=(), name="advance"):
    """One step of an environment whose agent has this rule."""
    world = env(agent(**{name: staticmethod(rule(writes=writes)(function))})("m_1"))
    world.reset(seed=0)
    world.step({})


def nothing(charge: Charge):
    return None


def one(charge: Charge):
    return 1.0


def level(charge: Charge):
    """Never decorated."""
    return charge.soc


def two(charge: Charge):
    return 1.0, 2.0


def nan(charge: Charge):
    return math.nan


def word(charge: Charge):
    return "full"


def misspelt_time(charge: Charge, tme: float):
    return 1.0


def without_annotation(charge):
    return 1.0


def others(other: Other):
    return 1.0


def misspelt_rewards(child_reward: Vector):
    return child_reward[0]


def feature_called_action(action: Charge):
    return action.soc


def with_an_asterisk(charge: Charge, *, dt: float):
    return charge.soc + dt


def end_by_rewards(child_rewards):
    return child_rewards[0] > 0.0


def of_the_parent(charge: Parent[Charge]):
    return 1.0


def of_children(charge: Children[Charge]):
    return 1.0


def misspelt_field(charge: Charge):
    return charge.sco


def misspelt_feature(charge: "Chrage"):  # noqa: F821
    return 1.0


def hooked(name, function):
    """One step of an environment with this hook."""
    world = type("Mine", (HeronEnv,), {name: function, "global_features": (Other,)})(tree(), max_steps=2)
    world.reset(seed=0)
    world.step({})


def built(**attributes):
    """An environment of one agent with these attributes."""
    env(agent(**attributes)("m_1"))


def selfless():
    """A class with a rule that should be static."""

    class Mine(FieldAgent):
        features = (Charge,)
        action = Continuous(-1.0, 1.0)

        @rule(writes=Charge.soc)
        def advance(charge: Charge) -> float:
            return 1.0

    return Mine


def answered(answer):
    hooked("run_simulation", lambda self, state: answer)


def masked(function, **attributes):
    """A built environment whose agent has this mask, and a reset of it."""
    attributes = {"action": Discrete(2), "features": (Charge, Ledger), "action_mask": function, **attributes}
    env(agent(**attributes)("m_1")).reset(seed=0)


def mask(function, **attributes):
    """The same with a rule."""
    masked(staticmethod(rule(function)), **attributes)


def of_the_ledger(ledger: Ledger):
    return True, ledger.cost < 1.0


def of_the_past(time: float):
    return True, time > 1.0


def nothing_left(charge: Charge):
    return False, charge.soc > 2.0


def too_short(charge: Charge):
    return (True,)


def from_the_state(self, local_state):
    return True, self.state.features["Charge"].soc > 0.5


def with_a_helper(self, local_state):
    return True, self.reads()


BOTH = (Charge.soc, Charge.power)
RULES = [
    Case(
        "a mask of what is hidden",
        RuleError,
        lambda d: mask(of_the_ledger),
        "Ledger.cost",
        "move what it needs into a feature that is observed as a whole",
        "Mine.action_mask reads Ledger, of which Ledger.cost is hidden (observed=False); a mask is offered to the agent, so it may read dt and the agent's own observed features only: move what it needs into a feature that is observed as a whole",
    ),
    Case(
        "a mask of another's",
        RuleError,
        lambda d: mask(of_the_parent),
        "'charge' (parent)",
        "it may read dt and the agent's own observed features only",
        "Mine.action_mask reads 'charge' (parent); a mask is offered to the agent, so it may read dt and the agent's own observed features only",
    ),
    Case(
        "a mask of the time",
        RuleError,
        lambda d: mask(of_the_past),
        "'time' (time)",
        "it may read dt and the agent's own observed features only",
        "Mine.action_mask reads 'time' (time); a mask is offered to the agent, so it may read dt and the agent's own observed features only",
    ),
    Case(
        "a mask without choices",
        RuleError,
        lambda d: mask(one, action=agent().action),
        "[-1.0, 1.0]",
        "remove the rule",
        "Mine.action_mask of 'm_1': its action is [-1.0, 1.0], without choices to forbid; remove the rule",
    ),
    Case(
        "a mask that leaves nothing",
        RuleError,
        lambda d: mask(nothing_left),
        "every choice of Discrete(2)",
        "the no-op (0) must be",
        "Mine.action_mask of 'm_1' forbids every choice of Discrete(2); where nothing else is allowed the no-op (0) must be",
    ),
    Case(
        "a mask of another length",
        RuleError,
        lambda d: mask(too_short),
        "(True,)",
        "one for each choice",
        "Mine.action_mask of 'm_1' returned (True,): a flat tuple or array of 2 numbers is needed, one for each choice of Discrete(2); 0 forbids it",
    ),
    Case(
        "a mask from the state",
        RuleError,
        lambda d: masked(from_the_state),
        "self.state",
        "read the local_state that it is given",
        "Mine.action_mask reads self.state, the truth, which an agent may know late; read the local_state that it is given",
    ),
    Case(
        "a mask from the state, by a helper",
        RuleError,
        lambda d: masked(with_a_helper, reads=lambda self: self.state.features["Charge"].soc > 0.5),
        "self.state",
        "read the local_state that it is given",
        "Mine.action_mask reads self.state, the truth, which an agent may know late; read the local_state that it is given",
    ),
    Case(
        "returns nothing",
        RuleError,
        lambda d: stepped(nothing, Charge.soc),
        "None",
        "check divisions, roots and returns",
        "Mine.advance of 'm_1' returned None for Charge.soc: a number is needed; check divisions, roots and returns",
    ),
    Case(
        "returns two for one",
        RuleError,
        lambda d: stepped(two, Charge.soc),
        "(1.0, 2.0)",
        "check divisions, roots and returns",
        "Mine.advance of 'm_1' returned (1.0, 2.0) for Charge.soc: a number is needed; check divisions, roots and returns",
    ),
    Case(
        "returns one for two",
        RuleError,
        lambda d: stepped(one, BOTH),
        "1.0",
        "must return a tuple of 2",
        "Mine.advance of 'm_1' writes [Charge.soc, Charge.power] and must return a tuple of 2, got 1.0",
    ),
    Case(
        "returns nan",
        RuleError,
        lambda d: stepped(nan, Charge.soc),
        "nan",
        "check divisions",
        "Mine.advance of 'm_1' returned nan for Charge.soc: a number is needed; check divisions, roots and returns",
    ),
    Case(
        "returns a word",
        RuleError,
        lambda d: stepped(word, Charge.soc),
        "'full'",
        "a number is needed",
        "Mine.advance of 'm_1' returned 'full' for Charge.soc: a number is needed; check divisions, roots and returns",
    ),
    Case(
        "an unknown parameter",
        RuleError,
        lambda d: stepped(misspelt_time, Charge.soc),
        "'tme'",
        "annotate or rename it",
        "Mine.advance: parameter 'tme' (float) is neither an own feature ['Charge'], Parent[...], Children[...], a global feature [], nor action, dt, time or child_rewards; annotate or rename it. Did you mean 'time'?",
        "time",
    ),
    Case(
        "no annotation",
        RuleError,
        lambda d: stepped(without_annotation, Charge.soc),
        "'charge' (None)",
        "annotate or rename it",
        "Mine.advance: parameter 'charge' (None) is neither an own feature ['Charge'], Parent[...], Children[...], a global feature [], nor action, dt, time or child_rewards; annotate or rename it.",
    ),
    Case(
        "another agent's feature",
        RuleError,
        lambda d: stepped(others, Charge.soc),
        "'other' (Other)",
        "annotate or rename it",
        "Mine.advance: parameter 'other' (Other) is neither an own feature ['Charge'], Parent[...], Children[...], a global feature [], nor action, dt, time or child_rewards; annotate or rename it.",
    ),
    Case(
        "an action under a misspelt name",
        RuleError,
        lambda d: stepped(misspelt_rewards, name="compute_local_reward"),
        "'child_reward' (Vector)",
        "name it action or child_rewards",
        "Mine.compute_local_reward: parameter 'child_reward' (Vector) is neither an own feature ['Charge'], Parent[...], Children[...], a global feature [], nor action, dt, time or child_rewards; name it action or child_rewards. Did you mean 'child_rewards'?",
        "child_rewards",
    ),
    Case(
        "a feature called action",
        RuleError,
        lambda d: stepped(feature_called_action, Charge.soc),
        "annotated as Charge",
        "write action: Vector",
        "Mine.advance: parameter 'action' is the action in force, and is annotated as Charge; write action: Vector, or rename it if you mean something else",
    ),
    Case(
        "a parameter behind an asterisk",
        RuleError,
        lambda d: stepped(with_an_asterisk, Charge.soc),
        "'dt' is keyword-only",
        "remove the asterisk",
        "Mine.advance: parameter 'dt' is keyword-only; rules are called by position, remove the asterisk",
    ),
    Case(
        "children's rewards in another rule",
        RuleError,
        lambda d: stepped(end_by_rewards, name="is_terminated"),
        "child_rewards",
        "remove it",
        "Mine.is_terminated reads child_rewards, which only compute_local_reward is given; remove it",
    ),
    Case(
        "writes another agent's feature",
        RuleError,
        lambda d: stepped(one, Other.x),
        "Other.x",
        "rules write their own",
        "Mine.advance of 'm_1' writes Other.x, but its features are ['Charge']; rules write their own",
    ),
    Case(
        "the parent lacks it",
        RuleError,
        lambda d: stepped(of_the_parent, Charge.soc),
        "Parent[Charge]",
        "put it below a parent",
        "Mine.advance reads Parent[Charge], but 'm_1': its parent 'zone_1' has no such feature; put it below a parent with Charge among its `features`",
    ),
    Case(
        "no child has it",
        RuleError,
        lambda d: stepped(of_children, Charge.soc),
        "Children[Charge]",
        "add it to the children's",
        "Mine.advance reads Children[Charge], but no child of 'm_1' has it; add it to the children's `features`",
    ),
    Case(
        "a misspelt field",
        UnknownField,
        lambda d: stepped(misspelt_field, Charge.soc),
        "'sco'",
        "fields are",
        "Charge has no field 'sco'; fields are ['soc', 'power']. Did you mean 'soc'?",
        "soc",
    ),
    Case(
        "a misspelt annotation",
        RuleError,
        lambda d: stepped(misspelt_feature, Charge.soc),
        "'Chrage'",
        "Did you mean",
        "Mine.advance: can't resolve an annotation: name 'Chrage' is not defined. Did you mean 'Charge'?",
        "Charge",
    ),
    Case(
        "advance that writes nothing",
        RuleError,
        lambda d: stepped(one),
        "Mine.advance",
        "name what it writes",
        "Mine.advance is only there to write, and writes nothing; name what it writes: rule(writes=Feature.field)",
    ),
    Case(
        "a reward that writes",
        RuleError,
        lambda d: stepped(one, Charge.soc, "compute_local_reward"),
        "Mine.compute_local_reward",
        "remove `writes`",
        "Mine.compute_local_reward returns a value, it can't write; remove `writes`",
    ),
    Case(
        "a reward of None",
        RuleError,
        lambda d: stepped(nothing, (), "compute_local_reward"),
        "None",
        "a number is needed",
        "Mine('m_1').compute_local_reward returned None at t=1.0 s; a number is needed",
    ),
    Case(
        "an info that is no record",
        RuleError,
        lambda d: stepped(one, (), "get_local_info"),
        "1.0",
        "must return numbers by name",
        "Mine('m_1').get_local_info must return numbers by name (a dict or NamedTuple), got 1.0",
    ),
    Case(
        "a rule under another name",
        RuleError,
        lambda d: stepped(one, Charge.soc, "advanse"),
        "Mine.advanse",
        "rename it to one of",
        "Mine.advanse: nothing calls a rule of that name; rename it to one of apply_action, advance, compute_local_reward, is_terminated, is_truncated, get_local_info, action_mask. Did you mean 'advance'?",
        "advance",
    ),
    Case(
        "writes as text",
        RuleError,
        lambda d: rule(writes="Charge.soc"),
        "'Charge.soc'",
        "write Feature.field",
        "rule(writes='Charge.soc'): 'Charge.soc' is no quantity; write Feature.field",
    ),
    Case(
        "writes the same twice",
        RuleError,
        lambda d: rule(writes=(Charge.soc, Charge.soc)),
        "Charge.soc",
        "write each quantity once",
        "rule(writes=(Charge.soc, Charge.soc)): Charge.soc occurs twice; write each quantity once",
    ),
    Case(
        "a misspelt keyword",
        RuleError,
        lambda d: rule(write=Charge.soc),
        "write=Charge.soc",
        "write rule(writes=Charge.soc)",
        "rule(write=Charge.soc): no such argument; write rule(writes=Charge.soc)",
    ),
    Case(
        "a quantity without keyword",
        RuleError,
        lambda d: rule(Charge.soc),
        "Charge.soc",
        "write rule(writes=Charge.soc)",
        "rule(Charge.soc): it decorates a function; write rule(writes=Charge.soc)",
    ),
    Case(
        "a hook writes nan",
        RuleError,
        lambda d: hooked("advance", lambda self, world, dt: world.Other.x.fill(math.nan)),
        "global.Other.x",
        "check the physics",
        "after advance() at t=1.0 s these quantities are nan: global.Other.x; check the physics",
    ),
    Case(
        "a hook reads a misspelt feature",
        UnknownFeature,
        lambda d: hooked("begin", lambda self, world: world.Othre),
        "'Othre'",
        "there are",
        "no feature 'Othre' here; there are ['Other']. Did you mean 'Other'?",
        "Other",
    ),
    Case(
        "a hook forgets to return",
        RuleError,
        lambda d: answered(None),
        "None",
        "return a dictionary",
        "simulate() returned None; return a dictionary with 'agent_states', 'global' or both",
    ),
    Case(
        "a hook returns other keys",
        RuleError,
        lambda d: answered({"agents": {}}),
        "['agents']",
        "return a dictionary with 'agent_states'",
        "simulate() returned ['agents']; return a dictionary with 'agent_states', 'global' or both",
    ),
    Case(
        "a hook returns an unknown agent",
        UnknownAgent,
        lambda d: answered({"agent_states": {"batery_1": {}}}),
        "'batery_1'",
        "this env has",
        "simulate() returned a state for 'batery_1'; this env has ['system_agent', 'zone_1', 'battery_1', 'battery_2', 'global']. Did you mean 'battery_1'?",
        "battery_1",
    ),
    Case(
        "a hook returns an unknown feature",
        UnknownFeature,
        lambda d: answered({"agent_states": {"battery_1": {"Chrage": {}}}}),
        "'Chrage'",
        "which has",
        "simulate() returned a feature 'Chrage' of 'battery_1', which has ['Charge']. Did you mean 'Charge'?",
        "Charge",
    ),
    Case(
        "a reward under nearly its name",
        RuleError,
        lambda d: built(compute_local_rewrd=staticmethod(level)),
        "Mine.compute_local_rewrd",
        "Write @staticmethod @rule def compute_local_reward(...) -> a number",
        "Mine.compute_local_rewrd: nothing calls it. Did you mean 'compute_local_reward'? Write @staticmethod @rule def compute_local_reward(...) -> a number; rename it, also if it is a helper: nobody could tell the two apart",
        "compute_local_reward",
    ),
    Case(
        "a method under nearly its name",
        RuleError,
        lambda d: built(is_terminate=lambda self, local_state: False),
        "Mine.is_terminate",
        "Write def is_terminated(self, local_state)",
        "Mine.is_terminate: nothing calls it. Did you mean 'is_terminated'? Write def is_terminated(self, local_state); rename it, also if it is a helper: nobody could tell the two apart",
        "is_terminated",
    ),
    Case(
        "a rule without both its decorators",
        RuleError,
        lambda d: built(compute_local_reward=level),
        "Mine.compute_local_reward(charge)",
        "needs @staticmethod @rule above it",
        "Mine.compute_local_reward(charge): a method is called as compute_local_reward(self, local_state[, child_rewards]); a rule, which reads features, needs @staticmethod @rule above it",
    ),
    Case(
        "a rule without @staticmethod",
        RuleError,
        lambda d: env(selfless()("m_1")),
        "Mine.advance",
        "write @staticmethod above @rule",
        "Mine.advance is a rule and a method; write @staticmethod above @rule",
    ),
    Case(
        "a rule with self",
        RuleError,
        lambda d: built(advance=rule(writes=Charge.soc)(lambda self, charge: 1.0)),
        "Mine.advance",
        "take `self` away",
        "Mine.advance is a rule and a method; write @staticmethod above @rule and take `self` away",
    ),
    Case(
        "a rule that is no function",
        RuleError,
        lambda d: built(is_terminated=True),
        "Mine.is_terminated=True",
        "write def is_terminated(self, local_state)",
        "Mine.is_terminated=True: is neither a rule nor a method; write def is_terminated(self, local_state)",
    ),
    Case(
        "features under nearly their name",
        ConfigError,
        lambda d: env(type("Mine", (FieldAgent,), {"feature": (Charge,), "action": Continuous(-1.0, 1.0)})("m_1")),
        "Mine.feature=",
        "Rename it",
        "Mine.feature=(<class 'catalogue.small_world.Charge'>,): nothing reads it. Did you mean 'features'? Rename it, also if it is a helper: nobody could tell the two apart",
        "features",
    ),
    Case(
        "a misspelt hook",
        RuleError,
        lambda d: hooked("finnish", lambda self, world: None),
        "Mine.finnish",
        "Write def finish(self, world)",
        "Mine.finnish: nothing calls it. Did you mean 'finish'? Write def finish(self, world); rename it, also if it is a helper: nobody could tell the two apart",
        "finish",
    ),
    Case(
        "a world rule under another name",
        RuleError,
        lambda d: hooked("each_step", staticmethod(rule(lambda world: None))),
        "Mine.each_step",
        "rename it to one of begin, advance, finish",
        "Mine.each_step: nothing calls a world rule of that name; rename it to one of begin, advance, finish.",
    ),
    Case(
        "a hook without its world",
        RuleError,
        lambda d: hooked("finish", lambda self: None),
        "Mine.finish(self)",
        "write def finish(self, world)",
        "Mine.finish(self): too many positional arguments; write def finish(self, world)",
    ),
    Case(
        "a hook that is no function",
        RuleError,
        lambda d: hooked("begin", 3),
        "Mine.begin=3",
        "write def begin(self, world)",
        "Mine.begin=3: is no function; write def begin(self, world)",
    ),
    Case(
        "a setting of the environment under nearly its name",
        ConfigError,
        lambda d: type("Mine", (HeronEnv,), {"physics_substep": 60})(tree()),
        "Mine.physics_substep=60",
        "Rename it",
        "Mine.physics_substep=60: nothing reads it. Did you mean 'physics_substeps'? Rename it, also if it is a helper: nobody could tell the two apart",
        "physics_substeps",
    ),
]
