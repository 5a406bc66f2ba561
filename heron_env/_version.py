"""The version of heron_env; pyproject.toml reads it from here."""

__version__ = "0.3.0"
