"""Talking: what clusters write to each other beside their colours, how it is verified, and what is made of it."""

from heron_env.worlds.graph_coloring.talking.claims import Facts
from heron_env.worlds.graph_coloring.talking.model import Model
from heron_env.worlds.graph_coloring.talking.policy import Talking, talking
from heron_env.worlds.graph_coloring.talking.verifier import verify

__all__ = ["Facts", "Model", "Talking", "talking", "verify"]
