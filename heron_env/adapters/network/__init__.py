"""Somebody else's environment under our network: see `heron_env.under_network`."""
