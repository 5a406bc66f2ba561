"""Bad inputs: rules and physics hooks."""

# ruff: noqa: E501 (a message is one line)

import math

from catalogue.small_world import Charge, agent, env, tree

from heron_env import (
    Children,
    Continuous,
    Discrete,
    FeatureProvider,
    FieldAgent,
    HeronEnv,
    Parent,
    SystemAgent,
    Vector,
    quantity,
    rule,
)


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
RULES = {
    "a mask of what is hidden": (
        lambda d: mask(of_the_ledger),
        "RuleError: Mine.action_mask reads Ledger, of which «Ledger.cost» is hidden (observed=False); a mask is offered to the agent, so it may read dt and the agent's own observed features only: ⟨move what it needs into a feature that is observed as a whole⟩",
    ),
    "a mask of another's": (
        lambda d: mask(of_the_parent),
        "RuleError: Mine.action_mask reads «'charge' (parent)»; a mask is offered to the agent, so ⟨it may read dt and the agent's own observed features only⟩",
    ),
    "a mask of the time": (
        lambda d: mask(of_the_past),
        "RuleError: Mine.action_mask reads «'time' (time)»; a mask is offered to the agent, so ⟨it may read dt and the agent's own observed features only⟩",
    ),
    "a mask without choices": (
        lambda d: mask(one, action=agent().action),
        "RuleError: Mine.action_mask of 'm_1': its action is «[-1.0, 1.0]», without choices to forbid; ⟨remove the rule⟩",
    ),
    "a mask that leaves nothing": (
        lambda d: mask(nothing_left),
        "RuleError: Mine.action_mask of 'm_1' forbids «every choice of Discrete(2)»; where nothing else is allowed ⟨the no-op (0) must be⟩",
    ),
    "a mask of another length": (
        lambda d: mask(too_short),
        "RuleError: Mine.action_mask of 'm_1' returned «(True,)»: a flat tuple or array of 2 numbers is needed, ⟨one for each choice⟩ of Discrete(2); 0 forbids it",
    ),
    "a mask from the state": (
        lambda d: masked(from_the_state),
        "RuleError: Mine.action_mask reads «self.state», the truth, which an agent may know late; ⟨read the local_state that it is given⟩",
    ),
    "a mask from the state, by a helper": (
        lambda d: masked(with_a_helper, reads=lambda self: self.state.features["Charge"].soc > 0.5),
        "RuleError: Mine.action_mask reads «self.state», the truth, which an agent may know late; ⟨read the local_state that it is given⟩",
    ),
    "returns nothing": (
        lambda d: stepped(nothing, Charge.soc),
        "RuleError: Mine.advance of 'm_1' returned «None» for Charge.soc: a number is needed; ⟨check divisions, roots and returns⟩",
    ),
    "returns two for one": (
        lambda d: stepped(two, Charge.soc),
        "RuleError: Mine.advance of 'm_1' returned «(1.0, 2.0)» for Charge.soc: a number is needed; ⟨check divisions, roots and returns⟩",
    ),
    "returns one for two": (
        lambda d: stepped(one, BOTH),
        "RuleError: Mine.advance of 'm_1' writes [Charge.soc, Charge.power] and ⟨must return a tuple of 2⟩, got «1.0»",
    ),
    "returns nan": (
        lambda d: stepped(nan, Charge.soc),
        "RuleError: Mine.advance of 'm_1' returned «nan» for Charge.soc: a number is needed; ⟨check divisions⟩, roots and returns",
    ),
    "returns a word": (
        lambda d: stepped(word, Charge.soc),
        "RuleError: Mine.advance of 'm_1' returned «'full'» for Charge.soc: ⟨a number is needed⟩; check divisions, roots and returns",
    ),
    "an unknown parameter": (
        lambda d: stepped(misspelt_time, Charge.soc),
        "RuleError: Mine.advance: parameter «'tme'» (float) is neither an own feature ['Charge'], Parent[...], Children[...], a global feature [], nor action, dt, time or child_rewards; ⟨annotate or rename it⟩. Did you mean 'time'?",
    ),
    "no annotation": (
        lambda d: stepped(without_annotation, Charge.soc),
        "RuleError: Mine.advance: parameter «'charge' (None)» is neither an own feature ['Charge'], Parent[...], Children[...], a global feature [], nor action, dt, time or child_rewards; ⟨annotate or rename it⟩.",
    ),
    "another agent's feature": (
        lambda d: stepped(others, Charge.soc),
        "RuleError: Mine.advance: parameter «'other' (Other)» is neither an own feature ['Charge'], Parent[...], Children[...], a global feature [], nor action, dt, time or child_rewards; ⟨annotate or rename it⟩.",
    ),
    "an action under a misspelt name": (
        lambda d: stepped(misspelt_rewards, name="compute_local_reward"),
        "RuleError: Mine.compute_local_reward: parameter «'child_reward' (Vector)» is neither an own feature ['Charge'], Parent[...], Children[...], a global feature [], nor action, dt, time or child_rewards; ⟨name it action or child_rewards⟩. Did you mean 'child_rewards'?",
    ),
    "a feature called action": (
        lambda d: stepped(feature_called_action, Charge.soc),
        "RuleError: Mine.advance: parameter 'action' is the action in force, and is «annotated as Charge»; ⟨write action: Vector⟩, or rename it if you mean something else",
    ),
    "a parameter behind an asterisk": (
        lambda d: stepped(with_an_asterisk, Charge.soc),
        "RuleError: Mine.advance: parameter «'dt' is keyword-only»; rules are called by position, ⟨remove the asterisk⟩",
    ),
    "children's rewards in another rule": (
        lambda d: stepped(end_by_rewards, name="is_terminated"),
        "RuleError: Mine.is_terminated reads «child_rewards», which only compute_local_reward is given; ⟨remove it⟩",
    ),
    "writes another agent's feature": (
        lambda d: stepped(one, Other.x),
        "RuleError: Mine.advance of 'm_1' writes «Other.x», but its features are ['Charge']; ⟨rules write their own⟩",
    ),
    "the parent lacks it": (
        lambda d: stepped(of_the_parent, Charge.soc),
        "RuleError: Mine.advance reads «Parent[Charge]», but 'm_1': its parent 'zone_1' has no such feature; ⟨put it below a parent⟩ with Charge among its `features`",
    ),
    "the top has no parent": (
        lambda d: HeronEnv(agent(SystemAgent, advance=staticmethod(rule(writes=Charge.soc)(of_the_parent)))("top")),
        "RuleError: Mine.advance reads «Parent[Charge]», but 'top': it has no parent; ⟨put it below a parent⟩ with Charge among its `features`",
    ),
    "static and no rule": (
        lambda d: built(is_terminated=staticmethod(level)),
        "ConfigError: «Mine.is_terminated» is static but no rule: ⟨decorate it with @rule⟩, below @staticmethod",
    ),
    "no child has it": (
        lambda d: stepped(of_children, Charge.soc),
        "RuleError: Mine.advance reads «Children[Charge]», but no child of 'm_1' has it; ⟨add it to the children's⟩ `features`",
    ),
    "a misspelt field": (
        lambda d: stepped(misspelt_field, Charge.soc),
        "UnknownField: Charge has no field «'sco'»; ⟨fields are⟩ ['soc', 'power']. Did you mean 'soc'?",
    ),
    "a misspelt annotation": (
        lambda d: stepped(misspelt_feature, Charge.soc),
        "RuleError: Mine.advance: can't resolve an annotation: name «'Chrage'» is not defined. ⟨Did you mean⟩ 'Charge'?",
    ),
    "advance that writes nothing": (
        lambda d: stepped(one),
        "RuleError: «Mine.advance» is only there to write, and writes nothing; ⟨name what it writes⟩: rule(writes=Feature.field)",
    ),
    "a reward that writes": (
        lambda d: stepped(one, Charge.soc, "compute_local_reward"),
        "RuleError: «Mine.compute_local_reward» returns a value, it can't write; ⟨remove `writes`⟩",
    ),
    "a reward of None": (
        lambda d: stepped(nothing, (), "compute_local_reward"),
        "RuleError: Mine('m_1').compute_local_reward returned «None» at t=1.0 s; ⟨a number is needed⟩",
    ),
    "an info that is no record": (
        lambda d: stepped(one, (), "get_local_info"),
        "RuleError: Mine('m_1').get_local_info ⟨must return numbers by name⟩ (a dict or NamedTuple), got «1.0»",
    ),
    "a rule under another name": (
        lambda d: stepped(one, Charge.soc, "advanse"),
        "RuleError: «Mine.advanse»: nothing calls a rule of that name; ⟨rename it to one of⟩ apply_action, advance, compute_local_reward, is_terminated, is_truncated, get_local_info, action_mask. Did you mean 'advance'?",
    ),
    "writes as text": (
        lambda d: rule(writes="Charge.soc"),
        "RuleError: rule(writes=«'Charge.soc'»): 'Charge.soc' is no quantity; ⟨write Feature.field⟩",
    ),
    "writes the same twice": (
        lambda d: rule(writes=(Charge.soc, Charge.soc)),
        "RuleError: rule(writes=(«Charge.soc», Charge.soc)): Charge.soc occurs twice; ⟨write each quantity once⟩",
    ),
    "a misspelt keyword": (
        lambda d: rule(write=Charge.soc),
        "RuleError: rule(«write=Charge.soc»): no such argument; ⟨write rule(writes=Charge.soc)⟩",
    ),
    "a quantity without keyword": (
        lambda d: rule(Charge.soc),
        "RuleError: rule(«Charge.soc»): it decorates a function; ⟨write rule(writes=Charge.soc)⟩",
    ),
    "a hook writes nan": (
        lambda d: hooked("advance", lambda self, world, dt: world.Other.x.fill(math.nan)),
        "RuleError: after advance() at t=1.0 s these quantities are nan: «global.Other.x»; ⟨check the physics⟩",
    ),
    "a hook reads a misspelt feature": (
        lambda d: hooked("begin", lambda self, world: world.Othre),
        "UnknownFeature: no feature «'Othre'» here; ⟨there are⟩ ['Other']. Did you mean 'Other'?",
    ),
    "a hook asks the world for a feature of agents": (
        lambda d: hooked("begin", lambda self, world: world.Charge),
        "UnknownFeature: «world.Charge»: no global feature, but one of agents; ⟨write world[Battery].Charge⟩",
    ),
    "a hook forgets to return": (
        lambda d: answered(None),
        "RuleError: simulate() returned «None»; ⟨return a dictionary⟩ with 'agent_states', 'global' or both",
    ),
    "a hook returns other keys": (
        lambda d: answered({"agents": {}}),
        "RuleError: simulate() returned «['agents']»; ⟨return a dictionary with 'agent_states'⟩, 'global' or both",
    ),
    "a hook returns an unknown agent": (
        lambda d: answered({"agent_states": {"batery_1": {}}}),
        "UnknownAgent: simulate() returned a state for «'batery_1'»; ⟨this env has⟩ ['system_agent', 'zone_1', 'battery_1', 'battery_2', 'global']. Did you mean 'battery_1'?",
    ),
    "a hook returns an unknown feature": (
        lambda d: answered({"agent_states": {"battery_1": {"Chrage": {}}}}),
        "UnknownFeature: simulate() returned a feature «'Chrage'» of 'battery_1', ⟨which has⟩ ['Charge']. Did you mean 'Charge'?",
    ),
    "a reward under nearly its name": (
        lambda d: built(compute_local_rewrd=staticmethod(level)),
        "RuleError: «Mine.compute_local_rewrd»: nothing calls it. Did you mean 'compute_local_reward'? ⟨Write @staticmethod @rule def compute_local_reward(...) -> a number⟩; rename it, also if it is a helper: nobody could tell the two apart",
    ),
    "a method under nearly its name": (
        lambda d: built(is_terminate=lambda self, local_state: False),
        "RuleError: «Mine.is_terminate»: nothing calls it. Did you mean 'is_terminated'? ⟨Write def is_terminated(self, local_state)⟩; rename it, also if it is a helper: nobody could tell the two apart",
    ),
    "a rule without both its decorators": (
        lambda d: built(compute_local_reward=level),
        "RuleError: «Mine.compute_local_reward(charge)»: a method is called as compute_local_reward(self, local_state[, child_rewards]); a rule, which reads features, ⟨needs @staticmethod @rule above it⟩",
    ),
    "a rule without @staticmethod": (
        lambda d: env(selfless()("m_1")),
        "RuleError: «Mine.advance» is a rule and a method; ⟨write @staticmethod above @rule⟩",
    ),
    "a rule with self": (
        lambda d: built(advance=rule(writes=Charge.soc)(lambda self, charge: 1.0)),
        "RuleError: «Mine.advance» is a rule and a method; write @staticmethod above @rule and ⟨take `self` away⟩",
    ),
    "a rule that is no function": (
        lambda d: built(is_terminated=True),
        "RuleError: «Mine.is_terminated=True»: is neither a rule nor a method; ⟨write def is_terminated(self, local_state)⟩",
    ),
    "features under nearly their name": (
        lambda d: env(type("Mine", (FieldAgent,), {"feature": (Charge,), "action": Continuous(-1.0, 1.0)})("m_1")),
        "ConfigError: «Mine.feature=»(<class 'catalogue.small_world.Charge'>,): nothing reads it. Did you mean 'features'? ⟨Rename it⟩, also if it is a helper: nobody could tell the two apart",
    ),
    "a misspelt hook": (
        lambda d: hooked("finnish", lambda self, world: None),
        "RuleError: «Mine.finnish»: nothing calls it. Did you mean 'finish'? ⟨Write def finish(self, world)⟩; rename it, also if it is a helper: nobody could tell the two apart",
    ),
    "a world rule under another name": (
        lambda d: hooked("each_step", staticmethod(rule(lambda world: None))),
        "RuleError: «Mine.each_step»: nothing calls a world rule of that name; ⟨rename it to one of begin, advance, finish⟩.",
    ),
    "a hook without its world": (
        lambda d: hooked("finish", lambda self: None),
        "RuleError: «Mine.finish(self)»: too many positional arguments; ⟨write def finish(self, world)⟩",
    ),
    "a hook that is no function": (
        lambda d: hooked("begin", 3),
        "RuleError: «Mine.begin=3»: is no function; ⟨write def begin(self, world)⟩",
    ),
    "a setting of the environment under nearly its name": (
        lambda d: type("Mine", (HeronEnv,), {"physics_substep": 60})(tree()),
        "ConfigError: «Mine.physics_substep=60»: nothing reads it. Did you mean 'physics_substeps'? ⟨Rename it⟩, also if it is a helper: nobody could tell the two apart",
    ),
}
