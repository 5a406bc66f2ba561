"""Environments, one folder each: features, agents, physics, environment, data. Imported only inside `make()`."""
