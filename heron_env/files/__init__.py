"""Files on disk: how they are written, and how they are read."""

from heron_env.lazily import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
