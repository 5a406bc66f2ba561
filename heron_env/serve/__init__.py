"""Environments as an HTTP service: `heron serve`. Needs the extra `agents`."""
