"""Observations in object form: what one observer sees of a SimulationState, by the law of the vector form.

A variable's name in the keys of the noise is "Variables.<name>" for agents and "Globals.<name>" for the world, so both
forms of a world declared in YAML agree bit for bit.
"""

from heron_env.errors import ConfigError, UnknownAgent, did_you_mean
from heron_env.files.models import shown
from heron_env.observability.config import ObservabilityConfig, full_observability
from heron_env.observability.noise import Moment
from heron_env.observability.object_plan import check_names, observe
from heron_env.observability.state_models import SimulationState


def construct_observation(
    observer_id: str,
    truth: SimulationState,
    config: ObservabilityConfig | None,
    *,
    seed: int = 0,
    episode: int = 0,
) -> SimulationState:
    """What `observer_id` sees of `truth`: hidden agents and variables are absent, numbers have their noise.

    Works on any state: models or mappings, whose values may be big ints, texts, None, or nested (each leaf has noise of
    its own; what is no number is exact). The observer sees all of itself exactly. The turn is the same, nobody's
    reasoning is shown, and nothing mutable is shared with the truth.

    Args:
        config: who sees what; None or not enabled: everybody sees everything. Its rows may name agents that are not in
            this state (agents come and go), its variables must be known in it.
        seed, episode: what the noise depends on beside `truth.turn` and the names.

    Raises:
        UnknownAgent: (a KeyError) no such observer in the state.
        DeclarationError: the configuration names a variable that no agent and no global state has.
        ConfigError: truth or config is none; a state is neither a model nor a mapping; or additive noise on a variable
            without finite bounds.
    """
    if not isinstance(truth, SimulationState):
        raise ConfigError(f"construct_observation(truth={shown(truth)}): must be a SimulationState")
    if not isinstance(config, ObservabilityConfig | None):
        raise ConfigError(f"construct_observation(config={shown(config)}): must be an ObservabilityConfig or None")
    if observer_id not in truth.agents:
        ids = list(truth.agents)
        listed = f"{ids[:12]}{' and more' if len(ids) > 12 else ''}"
        near = did_you_mean(observer_id, ids)
        raise UnknownAgent(f"construct_observation(): Unknown observer {observer_id!r}; the state has {listed}.{near}")
    if config is not None and not config.enabled:
        check_names(truth, config)
    ruling = full_observability() if config is None else config.in_force()
    return observe(observer_id, truth, ruling, Moment(seed, episode, truth.turn))
