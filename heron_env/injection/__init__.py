"""External agents: policies whose decisions come from an endpoint, recorded and replayed."""

from heron_env.declared.injected import (
    AgentInjectionConfig,
    BreakerConfig,
    ConcurrencyConfig,
    Latency,
    Persona,
    load_agents,
)
from heron_env.injection.agents import policies
from heron_env.injection.answers import ExternalAgentMetrics
from heron_env.injection.chat import ScriptedPersona, Transcript, conversation
from heron_env.injection.comparing import Agreement, Comparison, Point, compare
from heron_env.injection.endpoint import Endpoint
from heron_env.injection.policy import ExternalPolicy
from heron_env.injection.recording import Fixture, Recorded, Recording
from heron_env.injection.sdk import PolicyServer, serve_policy

__all__ = [
    "AgentInjectionConfig",
    "Agreement",
    "BreakerConfig",
    "Comparison",
    "ConcurrencyConfig",
    "Endpoint",
    "ExternalAgentMetrics",
    "ExternalPolicy",
    "Fixture",
    "Latency",
    "Persona",
    "Point",
    "PolicyServer",
    "Recorded",
    "Recording",
    "ScriptedPersona",
    "Transcript",
    "compare",
    "conversation",
    "load_agents",
    "policies",
    "serve_policy",
]
