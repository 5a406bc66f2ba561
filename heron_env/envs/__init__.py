"""Environments: one simulation, driven by a synchronous or an event clock.

A face is four things: who may drive (`ownership`), reading what was decided (`dictionaries`, `decisions`,
`answering`), the step (engine.step), and publishing what came of it (`dictionaries`).

What all share: `settings`, checked; `declaration`, the model of what was declared; `simulation`, the truth and what
may be done to it; `lane`, its row in the engine's arrays; `masking`, what agents may choose; `seeing`, spaces and
groups; `hooks`, an environment's own physics; `description`, `unused_rules`, what is said of it; `snapshot`.

What follows a place of the step, in compiled code or in Python: `lane_hooks`, hooks in Python; `exchange`, what agents
tell each other; `mail`, letters; `disturbing`, faults, and protocols of the user's.

The synchronous clock: `synchronous`; `episodes`, whole ones. `base` adds the event clock, in `event`: HeronEnv. Many
at once: `batch`.
"""
