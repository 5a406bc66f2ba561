"""Agents as processes on a real network."""
