"""Bad inputs: rules and physics hooks."""

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


class Call(FeatureProvider):
    """What one says to others, and does not hear."""

    said: float = quantity(default=0.0, low=0.0, high=9.0, to_owner=False)


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


def of_a_call(call: Call):
    return True, call.said < 1.0


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
    "a mask of what is hidden": lambda d: mask(of_the_ledger),
    "a mask of what is said": lambda d: mask(of_a_call, features=(Charge, Call)),
    "a mask of another's": lambda d: mask(of_the_parent),
    "a mask of the time": lambda d: mask(of_the_past),
    "a mask without choices": lambda d: mask(one, action=agent().action),
    "a mask that leaves nothing": lambda d: mask(nothing_left),
    "a mask of another length": lambda d: mask(too_short),
    "a mask from the state": lambda d: masked(from_the_state),
    "a mask from the state, by a helper": lambda d: masked(
        with_a_helper, reads=lambda self: self.state.features["Charge"].soc > 0.5
    ),
    "returns nothing": lambda d: stepped(nothing, Charge.soc),
    "returns two for one": lambda d: stepped(two, Charge.soc),
    "returns one for two": lambda d: stepped(one, BOTH),
    "returns nan": lambda d: stepped(nan, Charge.soc),
    "returns a word": lambda d: stepped(word, Charge.soc),
    "an unknown parameter": lambda d: stepped(misspelt_time, Charge.soc),
    "no annotation": lambda d: stepped(without_annotation, Charge.soc),
    "another agent's feature": lambda d: stepped(others, Charge.soc),
    "an action under a misspelt name": lambda d: stepped(misspelt_rewards, name="compute_local_reward"),
    "a feature called action": lambda d: stepped(feature_called_action, Charge.soc),
    "a parameter behind an asterisk": lambda d: stepped(with_an_asterisk, Charge.soc),
    "children's rewards in another rule": lambda d: stepped(end_by_rewards, name="is_terminated"),
    "writes another agent's feature": lambda d: stepped(one, Other.x),
    "the parent lacks it": lambda d: stepped(of_the_parent, Charge.soc),
    "the top has no parent": lambda d: HeronEnv(
        agent(SystemAgent, advance=staticmethod(rule(writes=Charge.soc)(of_the_parent)))("top")
    ),
    "static and no rule": lambda d: built(is_terminated=staticmethod(level)),
    "no child has it": lambda d: stepped(of_children, Charge.soc),
    "a misspelt field": lambda d: stepped(misspelt_field, Charge.soc),
    "a misspelt annotation": lambda d: stepped(misspelt_feature, Charge.soc),
    "advance that writes nothing": lambda d: stepped(one),
    "a reward that writes": lambda d: stepped(one, Charge.soc, "compute_local_reward"),
    "a reward of None": lambda d: stepped(nothing, (), "compute_local_reward"),
    "an info that is no record": lambda d: stepped(one, (), "get_local_info"),
    "a rule under another name": lambda d: stepped(one, Charge.soc, "advanse"),
    "writes as text": lambda d: rule(writes="Charge.soc"),
    "writes the same twice": lambda d: rule(writes=(Charge.soc, Charge.soc)),
    "a misspelt keyword": lambda d: rule(write=Charge.soc),
    "a quantity without keyword": lambda d: rule(Charge.soc),
    "a hook writes nan": lambda d: hooked("advance", lambda self, world, dt: world.Other.x.fill(math.nan)),
    "a hook reads a misspelt feature": lambda d: hooked("begin", lambda self, world: world.Othre),
    "a hook asks the world for a feature of agents": lambda d: hooked("begin", lambda self, world: world.Charge),
    "a hook forgets to return": lambda d: answered(None),
    "a hook returns other keys": lambda d: answered({"agents": {}}),
    "a hook returns an unknown agent": lambda d: answered({"agent_states": {"batery_1": {}}}),
    "a hook returns an unknown feature": lambda d: answered({"agent_states": {"battery_1": {"Chrage": {}}}}),
    "a reward under nearly its name": lambda d: built(compute_local_rewrd=staticmethod(level)),
    "a method under nearly its name": lambda d: built(is_terminate=lambda self, local_state: False),
    "a rule without both its decorators": lambda d: built(compute_local_reward=level),
    "a rule without @staticmethod": lambda d: env(selfless()("m_1")),
    "a rule with self": lambda d: built(advance=rule(writes=Charge.soc)(lambda self, charge: 1.0)),
    "a rule that is no function": lambda d: built(is_terminated=True),
    "features under nearly their name": lambda d: env(
        type("Mine", (FieldAgent,), {"feature": (Charge,), "action": Continuous(-1.0, 1.0)})("m_1")
    ),
    "a misspelt hook": lambda d: hooked("finnish", lambda self, world: None),
    "a world rule under another name": lambda d: hooked("each_step", staticmethod(rule(lambda world: None))),
    "a hook without its world": lambda d: hooked("finish", lambda self: None),
    "a hook that is no function": lambda d: hooked("begin", 3),
    "a setting of the environment under nearly its name": lambda d: type("Mine", (HeronEnv,), {"physics_substep": 60})(
        tree()
    ),
}
