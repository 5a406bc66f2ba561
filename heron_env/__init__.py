"""heron_env: hierarchical multi-agent reinforcement learning with realistic observability.

Train policies synchronously, evaluate the same policies event-driven: with ticks, delays, jitter and loss.
"""

from heron_env.given import WITHOUT_TRAINING_DELAYS
from heron_env.lazily import lazily
from heron_env.registry import register, register_engine
from heron_env.registry import remove as _remove

__getattr__, __dir__, __all__ = lazily(__name__, __file__, {"TrainingDelays": WITHOUT_TRAINING_DELAYS})

register("heron/BatteryGrid-v0", "heron_env.worlds.battery_grid:battery_grid")
register("heron/EnergyManagement-v1", "heron_env.worlds.energy_management:energy_management")
_remove(
    "heron/EnergyManagement-v0",
    "Its meters showed the coming minute, so what was learned and measured there says nothing about networks: "
    "use 'heron/EnergyManagement-v1', whose measurements are of the past, train and measure again (CHANGELOG.md)",
)
register("heron/Economy-v0", "heron_env.worlds.economy:economy")
register("heron/Spread-v0", "heron_env.worlds.spread:spread")
register("heron/Tag-v0", "heron_env.worlds.particles:tag")
register("heron/Adversary-v0", "heron_env.worlds.particles:adversary")
register("heron/Push-v0", "heron_env.worlds.particles:push")
register("heron/Reference-v0", "heron_env.worlds.particles:reference")
register("heron/SpeakerListener-v0", "heron_env.worlds.particles:speaker_listener")
register("heron/Crypto-v0", "heron_env.worlds.particles:crypto")
register("heron/WorldComm-v0", "heron_env.worlds.particles:world_comm")
register("heron/GuidedWalker-v0", "heron_env.worlds.guided_walker:guided_walker")
register("heron/TrafficCorridor-v0", "heron_env.worlds.traffic_corridor:traffic_corridor")
register("heron/GraphColoring-v0", "heron_env.worlds.graph_coloring:graph_coloring")
register_engine("economy", "heron_env.worlds.economy.engine:EconomyEngine")
