"""Environments: one simulation, driven by a synchronous or an event clock."""
