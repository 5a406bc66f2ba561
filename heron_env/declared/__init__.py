"""Environments without code: a world that is declared in YAML, and what moves it."""
