"""External agents: policies whose decisions come from an endpoint, recorded and replayed."""

from heron_env.lazily import lazily

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
