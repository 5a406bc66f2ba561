"""Old addresses of pages, and where each leads now; the extension sphinx_reredirects writes the pages that forward."""

from __future__ import annotations

from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parents[1]
MOVED: Final = {
    "start": "tutorials/cartpole",
    "quickstart": "tutorials/cartpole",
    "concepts/index": "concepts/two_clocks",
    "concepts/training_under_the_network": "how_to/train_under_a_network",
    "recipes/under_network": "how_to/train_under_a_network",
    "how_to/remedies": "how_to/train_under_a_network",
    "how_to/black_box": "how_to/under_network",
    "under_the_network": "science/training_under_networks",
    "how_to/vocabulary": "concepts/rules",
    "how_to/debugging_a_rule": "concepts/rules",
    "letters": "how_to/messages",
    "how_to/faults": "how_to/messages",
    "how_to/checking": "how_to/publish",
    "how_to/worlds_in_yaml": "how_to/publish",
    "how_to/data_and_grids": "how_to/own_site",
    "how_to/board": "how_to/comparing",
    "how_to/take_a_policy_away": "how_to/saving",
    "how_to/real_time": "how_to/saving",
    "worlds": "environments",
    "science/graph_coloring": "graph_coloring",
    "use_with/at_a_glance": "use_with/libraries",
    "use_with/benchmarl": "use_with/libraries",
    "use_with/cleanrl": "use_with/libraries",
    "use_with/gymnasium": "use_with/libraries",
    "use_with/jax": "use_with/libraries",
    "use_with/minari": "use_with/libraries",
    "use_with/pettingzoo": "use_with/libraries",
    "use_with/record_video": "use_with/libraries",
    "use_with/rllib": "use_with/libraries",
    "use_with/supersuit": "use_with/libraries",
    "use_with/torchrl": "use_with/libraries",
    "science/index": "found",
    "science/rdc": "science/reproductions",
    "science/damarl": "science/reproductions",
    "science/ca_dcop": "science/reproductions",
    "science/citing": "versions",
    "rooms": "development",
    "design_notes": "development",
    "notebooks/01_tour": "notebooks",
    "notebooks/02_your_environment": "notebooks",
    "notebooks/03_matrix_and_noise": "notebooks",
    "notebooks/04_training": "notebooks",
    "notebooks/05_gap_report": "notebooks",
    "notebooks/06_planning": "notebooks",
    "notebooks/07_your_own_agent": "notebooks",
    "notebooks/08_watch_a_negotiation": "notebooks",
}
"""tests/golden/addresses.txt has every address that a page ever had; each is a page or stands here."""


def is_page(address: str) -> bool:
    """Has the site a page of its own there?"""
    if address.startswith("notebooks/"):
        return (DOCS.parent / f"{address}.ipynb").is_file()
    return (DOCS / f"{address}.md").is_file()


def forwarding() -> dict[str, str]:
    """What sphinx_reredirects asks for: relative, since the site may be read from a file, or below another address."""
    return {old: f"{'../' * old.count('/')}{new}.html" for old, new in MOVED.items() if not is_page(old)}
