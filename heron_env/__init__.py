"""heron_env: hierarchical multi-agent reinforcement learning with realistic observability.

Train policies synchronously, evaluate the same policies event-driven: with ticks, delays, jitter and loss.
"""

from typing import TYPE_CHECKING

from heron_env._version import __version__
from heron_env.lazily import lazily
from heron_env.registry import make, register, register_engine, registered
from heron_env.registry import remove as _remove

if TYPE_CHECKING:
    from heron_env.adapters.gymnasium import HeronVectorEnv
    from heron_env.agents.agent import CoordinatorAgent, FieldAgent, SystemAgent
    from heron_env.agents.horizontal import Inbox, Mail, StateAverage, StateShare
    from heron_env.agents.proxy import ProxyAgent
    from heron_env.agents.vertical import Broadcast, Protocol, SetpointSplit, VectorDecomposition
    from heron_env.core.action import Action, Continuous, Discrete, MultiDiscrete, Vector
    from heron_env.core.feature import FeatureProvider, quantity
    from heron_env.core.letters import Letter
    from heron_env.core.policy import Answer, AnsweringPolicy, Asked, Origin, Policy
    from heron_env.core.rule import Children, Parent, rule
    from heron_env.core.state import CoordinatorAgentState, FieldAgentState, Observation, State, SystemAgentState
    from heron_env.core.world import World
    from heron_env.declared.env import from_config
    from heron_env.declared.simulation_config import SimulationConfig, load_config
    from heron_env.envs.base import HeronEnv
    from heron_env.envs.batch.env import BatchEnv
    from heron_env.envs.batch.event import EventBatchEnv
    from heron_env.envs.batch.rows import Rows
    from heron_env.envs.description import Benchmark, TrainingDefaults
    from heron_env.envs.results import EpisodeResult
    from heron_env.envs.settings import TerminationConfig
    from heron_env.envs.training_delays import TrainingDelays
    from heron_env.lab.episodes import team_return
    from heron_env.lab.gap.conditions import Condition
    from heron_env.lab.gap.sweep import Sweep
    from heron_env.lab.learning.plan import Hyperparameters
    from heron_env.lab.learning.ppo import train
    from heron_env.lab.policies import Baseline, TrainedRun
    from heron_env.lab.runs import load_policy
    from heron_env.lab.stats import mean_interval, paired_difference
    from heron_env.lab.traces.recording import record_episode
    from heron_env.observability.by_matrix import ObservabilityMatrix
    from heron_env.observability.config import (
        DefaultObservability,
        ObservabilityConfig,
        ObservabilityEntry,
        ObservabilityLevel,
        VariableVisibilityConfig,
    )
    from heron_env.observability.noise import NoiseKey, apply_noise
    from heron_env.observability.object_plan import construct_observation
    from heron_env.observability.state_models import (
        SimulationState,
        create_agent_state_model,
        create_global_state_model,
    )
    from heron_env.observability.visibility import VisibilityMatrix
    from heron_env.scheduling.broker import MessageBroker
    from heron_env.scheduling.disturbances import Disturbance, DisturbanceType, poisson_disturbances
    from heron_env.scheduling.drawn import DrawnSchedule
    from heron_env.scheduling.events import ConditionMonitor, CustomEvent, CustomMessage, Push
    from heron_env.scheduling.scheduler import EventScheduler
    from heron_env.scheduling.sources import Empirical, GilbertElliott, Markov, Recorded
    from heron_env.scheduling.timing import ScheduleConfig
    from heron_env.seeding import stream
    from heron_env.testing.kit import check_env

_HOMES = {
    "adapters.gymnasium": ("HeronVectorEnv",),
    "agents.agent": ("CoordinatorAgent", "FieldAgent", "SystemAgent"),
    "agents.horizontal": ("Inbox", "Mail", "StateAverage", "StateShare"),
    "agents.proxy": ("ProxyAgent",),
    "agents.vertical": ("Broadcast", "Protocol", "SetpointSplit", "VectorDecomposition"),
    "core.action": ("Action", "Continuous", "Discrete", "MultiDiscrete", "Vector"),
    "core.feature": ("FeatureProvider", "quantity"),
    "core.letters": ("Letter",),
    "core.policy": ("Answer", "AnsweringPolicy", "Asked", "Origin", "Policy"),
    "core.rule": ("Children", "Parent", "rule"),
    "core.state": ("CoordinatorAgentState", "FieldAgentState", "Observation", "State", "SystemAgentState"),
    "core.world": ("World",),
    "envs.base": ("HeronEnv",),
    "envs.batch.env": ("BatchEnv",),
    "envs.batch.event": ("EventBatchEnv",),
    "envs.batch.rows": ("Rows",),
    "testing.kit": ("check_env",),
    "declared.env": ("from_config",),
    "envs.description": ("Benchmark", "TrainingDefaults"),
    "envs.results": ("EpisodeResult",),
    "envs.settings": ("TerminationConfig",),
    "envs.training_delays": ("TrainingDelays",),
    "lab.episodes": ("team_return",),
    "lab.gap.conditions": ("Condition",),
    "lab.gap.sweep": ("Sweep",),
    "lab.policies": ("Baseline", "TrainedRun"),
    "lab.runs": ("load_policy",),
    "lab.stats": ("mean_interval", "paired_difference"),
    "lab.traces.recording": ("record_episode",),
    "lab.learning.plan": ("Hyperparameters",),
    "lab.learning.ppo": ("train",),
    "observability.config": (
        "DefaultObservability",
        "ObservabilityConfig",
        "ObservabilityEntry",
        "ObservabilityLevel",
        "VariableVisibilityConfig",
    ),
    "observability.object_plan": ("construct_observation",),
    "observability.by_matrix": ("ObservabilityMatrix",),
    "observability.noise": ("NoiseKey", "apply_noise"),
    "declared.simulation_config": ("SimulationConfig", "load_config"),
    "observability.state_models": ("SimulationState", "create_agent_state_model", "create_global_state_model"),
    "observability.visibility": ("VisibilityMatrix",),
    "scheduling.broker": ("MessageBroker",),
    "scheduling.disturbances": ("Disturbance", "DisturbanceType", "poisson_disturbances"),
    "scheduling.drawn": ("DrawnSchedule",),
    "scheduling.events": ("ConditionMonitor", "CustomEvent", "CustomMessage", "Push"),
    "scheduling.scheduler": ("EventScheduler",),
    "scheduling.sources": ("Empirical", "GilbertElliott", "Markov", "Recorded"),
    "scheduling.timing": ("ScheduleConfig",),
    "seeding": ("stream",),
}
__getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "Action",
    "Answer",
    "AnsweringPolicy",
    "Asked",
    "Baseline",
    "BatchEnv",
    "Benchmark",
    "Broadcast",
    "Children",
    "Condition",
    "ConditionMonitor",
    "Continuous",
    "CoordinatorAgent",
    "CoordinatorAgentState",
    "CustomEvent",
    "CustomMessage",
    "DefaultObservability",
    "Discrete",
    "Disturbance",
    "DisturbanceType",
    "DrawnSchedule",
    "Empirical",
    "EpisodeResult",
    "EventBatchEnv",
    "EventScheduler",
    "FeatureProvider",
    "FieldAgent",
    "FieldAgentState",
    "GilbertElliott",
    "HeronEnv",
    "HeronVectorEnv",
    "Hyperparameters",
    "Inbox",
    "Letter",
    "Mail",
    "Markov",
    "MessageBroker",
    "MultiDiscrete",
    "NoiseKey",
    "ObservabilityConfig",
    "ObservabilityEntry",
    "ObservabilityLevel",
    "ObservabilityMatrix",
    "Observation",
    "Origin",
    "Parent",
    "Policy",
    "Protocol",
    "ProxyAgent",
    "Push",
    "Recorded",
    "Rows",
    "ScheduleConfig",
    "SetpointSplit",
    "SimulationConfig",
    "SimulationState",
    "State",
    "StateAverage",
    "StateShare",
    "Sweep",
    "SystemAgent",
    "SystemAgentState",
    "TerminationConfig",
    "TrainedRun",
    "TrainingDefaults",
    "TrainingDelays",
    "VariableVisibilityConfig",
    "Vector",
    "VectorDecomposition",
    "VisibilityMatrix",
    "World",
    "__version__",
    "apply_noise",
    "check_env",
    "construct_observation",
    "create_agent_state_model",
    "create_global_state_model",
    "from_config",
    "load_config",
    "load_policy",
    "make",
    "mean_interval",
    "paired_difference",
    "poisson_disturbances",
    "quantity",
    "record_episode",
    "register",
    "register_engine",
    "registered",
    "rule",
    "stream",
    "team_return",
    "train",
]

register("heron/BatteryGrid-v0", "heron_env.worlds.battery_grid:battery_grid")
register("heron/EnergyManagement-v1", "heron_env.worlds.energy_management:energy_management")
_remove(
    "heron/EnergyManagement-v0",
    "Its meters showed the coming minute, so what was learned and measured there says nothing about networks: "
    "use 'heron/EnergyManagement-v1', whose measurements are of the past, train and measure again (CHANGELOG.md)",
)
register("heron/Economy-v0", "heron_env.worlds.economy:economy")
register("heron/Spread-v0", "heron_env.worlds.spread:spread")
register("heron/TrafficCorridor-v0", "heron_env.worlds.traffic_corridor:traffic_corridor")
register("heron/GraphColoring-v0", "heron_env.worlds.graph_coloring:graph_coloring")
register_engine("economy", "heron_env.worlds.economy.engine:EconomyEngine")
