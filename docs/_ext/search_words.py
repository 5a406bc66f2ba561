"""Words that readers type into the search, and the page that it shows first for each (several: _static/search.js)."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

WORDS = {
    "installation": (
        "install installation installing setup Docker container pip wheel dependencies requirements extras Windows"
    ),
    "tutorials/cartpole": "quickstart start started tutorial first demo example CartPole",
    "tutorials/own_world": "world",
    "which_clock": "choose which",
    "how_to/under_network": "under_network wrap wrapper Dict obs NaN",
    "how_to/train_under_a_network": "augmentation remedy remedies predict robust robustness",
    "how_to/tolerance": "margin tolerance tolerate much",
    "how_to/from_delay_observation": "DelayObservation delay_observations_v0 migrate migration",
    "how_to/shared_links": "shared bandwidth congestion medium radio WiFi ROS ROS2 TCP QoS",
    "how_to/plans": "plan plans chunk chunks chunking inference ACT VLA LeRobot openpi RTC",
    "how_to/own_environment": "custom env own create write define",
    "concepts/rules": "rule rules reward rewards hook hooks vocabulary debug debugging error",
    "concepts/hierarchy": "hierarchy coordinator",
    "concepts/who_sees_what": "observation observations observability noise partial partially",
    "how_to/masks": "mask masks masking masked invalid illegal legal unavailable",
    "how_to/messages": "letter letters message messages chat fault faults disturbance disturbances failure",
    "how_to/learned_communication": "communication communicate CommNet speaker listener",
    "how_to/publish": "publish package register YAML check test conformance",
    "how_to/own_site": "data CSV site grid",
    "graph_coloring": "DCOP negotiation colouring coloring",
    "concepts/two_clocks": "clock clocks event-driven synchronous tick",
    "concepts/delay": "delay delays delayed latency lag jitter loss lossy packet dropout drop network",
    "concepts/measurements": "age AoI measurement measurements",
    "concepts/seeds": "seed seeds seeding random reproducibility determinism limits",
    "how_to/training": "train training PPO MAPPO logger TensorBoard hyperparameters learning curve curves",
    "how_to/many_at_once": "vector vectorised vectorized batch parallel BatchEnv",
    "how_to/many_machines": "cluster distributed",
    "how_to/reading_a_report": "evaluate evaluating evaluation report sweep gap plot plots figure",
    "how_to/comparing": (
        "compare comparison algorithm algorithms statistics significance confidence interval intervals "
        "leaderboard board"
    ),
    "how_to/watching": "video videos film render rendering watch gif mp4",
    "how_to/saving": "save saving load loading model policy checkpoint resume ONNX export deploy realtime real-time",
    "how_to/two_hosts": "MQTT UDP hub node nodes hardware serial deployment",
    "external_agents": "LLM external agent agents endpoint OpenAI",
    "service": "HTTP service serve REST server",
    "use_with/libraries": (
        "GPU CUDA wrappers frameworks PettingZoo AEC Gymnasium Gym TorchRL tensordict BenchMARL RLlib Ray JAX "
        "jit vmap Minari dataset offline CleanRL SuperSuit RecordVideo"
    ),
    "use_with/stable_baselines3": "SB3 Stable-Baselines3 MaskablePPO RecurrentPPO",
    "environments": "environments gallery worlds MPE simple_spread simple_tag",
    "science/energy_management": "EnergyManagement battery energy",
    "found": "findings results found",
    "science/reproductions": "RDC DAMARL CA-DCOP reproduction reproductions",
    "science/speed": "speed benchmark throughput performance",
    "cheat_sheet": "cheat cheatsheet",
    "faq": "FAQ question questions",
    "notebooks": "notebook notebooks Colab Jupyter recipes",
    "api/index": "API reference",
    "cli": "CLI command commands terminal",
    "glossary": "glossary terms",
    "related_work": "related netrl CityLearn",
    "versions": "version versions cite citation BibTeX",
    "laws": "law laws",
}
"""Words by page: each is in the index of the site, which the search asks first."""


class SearchWords(SphinxTransform):
    """Before Sphinx collects what is in the index."""

    default_priority = 700

    def apply(self, **_: Any) -> None:
        """At the head of a page that has words."""
        words = WORDS.get(self.env.docname, "").split()
        if words:
            target = "search-words"
            entries = [("single", word, target, "main", None) for word in words]
            self.document[:0] = [addnodes.index(entries=entries), nodes.target("", "", ids=[target])]


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx asks of an extension."""
    app.add_transform(SearchWords)
    return {"parallel_read_safe": True}
