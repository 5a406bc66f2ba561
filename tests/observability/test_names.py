"""Where a configuration meets a world: every name must mean exactly one agent or variable there."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from heron_env import ObservabilityConfig
from heron_env.errors import ConfigError, DeclarationError
from heron_env.observability.config import require_names, resolve

AGENTS = ("bank", "firm")
OF_AGENTS = {"Charge.soc": None, "Charge.power": "internal", "Price.value": None, "Both.x": "external"}
OF_WORLD = {"Market.price": None, "Weather.value": None, "Market.secret": "internal"}


def check(agents: tuple[str, ...] = AGENTS, **config: Any) -> None:
    """Check a configuration against the world above."""
    require_names(ObservabilityConfig(**config), agents=agents, agent_variables=OF_AGENTS, global_variables=OF_WORLD)


def visibility(external: tuple[str, ...] = (), internal: tuple[str, ...] = ()) -> dict[str, Any]:
    """The part of a configuration that lists variables."""
    return {"variable_visibility": {"external": external, "internal": internal}}


def test_known_names_pass():
    check()
    check(matrix=[["bank", "firm", "insider", 0.1], ["firm", "global", "external", None]])
    check(**visibility(["soc", "Price.value", "price", "x"], ["power", "Weather.value", "secret"]))


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"matrix": [["Z", "firm", "insider", 0.0]]}, "matrix[0].observer: Unknown observer 'Z'. Known: bank, firm"),
        ({"matrix": [["bank", "firm", "insider", 0.0], ["firm", "Z", "insider", 0.0]]},
         "matrix[1].target: Unknown target 'Z'. Known: bank, firm, global"),
        ({"matrix": [["bnak", "Global", "insider", 0.0]]},
         "matrix[0].observer: Unknown observer 'bnak'. Did you mean 'bank'?\n"
         "matrix[0].target: Unknown target 'Global'. Did you mean 'global'?"),
        (visibility(["soc", "zz"]),
         "variable_visibility.external[1]: Unknown variable 'zz'. Known: Charge.soc, Charge.power, Price.value, "
         "Both.x, Market.price, Weather.value, Market.secret"),
        (visibility([], ["sock"]), "variable_visibility.internal[0]: Unknown variable 'sock'. Did you mean 'soc'?"),
        (visibility([], ["Charge.sock"]),
         "variable_visibility.internal[0]: Unknown variable 'Charge.sock'. Did you mean 'Charge.soc'?"),
        (visibility(["value"]), "variable_visibility.external[0]: the variable 'value' occurs more than once; "
         "write 'Price.value' or 'Weather.value'"),
        (visibility(["soc"], ["Charge.soc"]),
         "variable_visibility.internal[0]: Variables cannot be both external and internal: Charge.soc; "
         "keep one of the two"),
        (visibility(["price", "soc", "Charge.soc"]),
         "variable_visibility.external[2]: Duplicate variable 'Charge.soc', see external[1]; keep one"),
        (visibility(["power"]),
         "variable_visibility.external[0]: 'power' is listed as external, but its own definition says internal; "
         "change one of the two"),
        (visibility([], ["x"]),
         "variable_visibility.internal[0]: 'x' is listed as internal, but its own definition says external; "
         "change one of the two"),
    ],
)  # fmt: skip
def test_names_without_or_with_several_meanings_are_told(config: dict[str, Any], message: str, enabled: bool):
    with refuses(DeclarationError, message):
        check(enabled=enabled, **config)


def test_an_agent_called_global_is_refused():
    with refuses(ConfigError, "an agent is called 'global', which stands for the environment's variables; rename it"):
        check(agents=("bank", "global"))


def test_long_lists_of_known_names_are_cut():
    agents = tuple(f"agent_{number}" for number in range(100))
    with pytest.raises(ConfigError) as caught:
        check(agents=agents, matrix=[["Z", "agent_0", "insider", 0.0]])
    assert str(caught.value).endswith(f"Known: {', '.join(agents[:8])} and 92 more")


def test_a_world_with_nothing_in_it_says_so():
    for agents in [(), ("bank",)]:
        config = ObservabilityConfig(variable_visibility={"external": ["soc"]})
        with pytest.raises(ConfigError, match=r"Unknown variable 'soc'\. Known: none"):
            require_names(config, agents=agents, agent_variables={}, global_variables={})


@given(st.sets(st.tuples(st.sampled_from("ABC"), st.sampled_from("xyz")), min_size=1))
def test_a_name_resolves_to_the_one_variable_that_it_can_mean(pairs: set[tuple[str, str]]):
    known = sorted(f"{feature}.{name}" for feature, name in pairs)
    for qualified in known:
        assert resolve(qualified, known) == qualified
    for name in "xyz":
        meant = [qualified for qualified in known if qualified.endswith(name)]
        if len(meant) == 1:
            assert resolve(name, known) == meant[0]
        else:
            with pytest.raises(ConfigError, match="occurs more than once" if meant else "Unknown variable"):
                resolve(name, known)


def test_one_feature_used_by_agents_and_by_the_world_is_one_name():
    assert resolve("soc", ["Charge.soc", "Charge.soc"]) == "Charge.soc"
