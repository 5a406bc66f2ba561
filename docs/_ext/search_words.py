"""Words that readers type into the search, and the page that it shows first for each (several: _static/search.js)."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

WORDS = {
    "installation": "install installation installing setup Docker container pip wheel dependencies requirements extras",
    "quickstart": "quickstart start started tutorial first demo example",
    "environments": "environments gallery worlds MPE simple_spread simple_tag",
    "notebooks": "notebook notebooks Colab Jupyter recipes",
    "how_to/own_environment": "custom own create write define",
    "how_to/vocabulary": "hooks vocabulary",
    "how_to/masks": "mask masks masking masked invalid illegal legal unavailable",
    "how_to/worlds_in_yaml": "YAML",
    "how_to/faults": "fault faults disturbance disturbances",
    "how_to/checking": "check test conformance",
    "how_to/debugging_a_rule": "debug debugging error",
    "how_to/publish": "publish package register",
    "letters": "letter letters message messages communication chat",
    "graph_coloring": "DCOP negotiation colouring coloring",
    "concepts/hierarchy": "hierarchy coordinator",
    "concepts/rules": "rule rules reward rewards",
    "concepts/who_sees_what": "observation observations observability noise partial partially",
    "how_to/plans": "plan plans chunk chunks chunking inference ACT VLA LeRobot openpi RTC",
    "concepts/two_clocks": "clock clocks event-driven synchronous tick",
    "concepts/delay": "delay delays delayed latency lag jitter loss lossy packet network",
    "concepts/training_under_the_network": "augmentation",
    "how_to/training": "train training PPO MAPPO logger TensorBoard hyperparameters checkpoint resume",
    "how_to/many_at_once": "vector vectorised vectorized batch parallel BatchEnv",
    "how_to/many_machines": "cluster Ray distributed",
    "how_to/reading_a_report": "evaluate evaluating evaluation report sweep gap",
    "how_to/comparing": "compare comparison algorithm algorithms statistics significance confidence interval intervals",
    "how_to/tolerance": "margin tolerance",
    "how_to/remedies": "remedy remedies predict",
    "how_to/watching": "video videos film render rendering watch gif mp4",
    "how_to/board": "leaderboard board",
    "how_to/take_a_policy_away": "ONNX export deploy",
    "how_to/real_time": "realtime real-time",
    "how_to/two_hosts": "MQTT UDP hub node nodes hardware serial deployment",
    "external_agents": "LLM HTTP external agent agents endpoint REST OpenAI",
    "use_with/at_a_glance": "GPU CUDA wrappers frameworks",
    "use_with/pettingzoo": "PettingZoo AEC",
    "use_with/gymnasium": "Gymnasium Gym",
    "use_with/stable_baselines3": "SB3 Stable-Baselines3 MaskablePPO RecurrentPPO",
    "use_with/torchrl": "TorchRL tensordict",
    "use_with/benchmarl": "BenchMARL",
    "use_with/rllib": "RLlib",
    "use_with/jax": "JAX jit vmap",
    "use_with/minari": "Minari dataset offline",
    "use_with/cleanrl": "CleanRL",
    "use_with/supersuit": "SuperSuit",
    "use_with/record_video": "RecordVideo",
    "api/index": "API reference",
    "glossary": "glossary terms",
    "related_work": "related netrl CityLearn",
    "science/speed": "speed benchmark throughput performance",
    "science/citing": "cite citation BibTeX",
    "versions": "version versions",
    "laws": "law laws",
    "concepts/seeds": "seed seeds seeding random reproducibility determinism",
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
