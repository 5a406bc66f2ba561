"""Environments: one simulation, driven by a synchronous or an event clock.

What all share: `settings`, checked; `simulation`, the truth and what may change it; `lane`, its place in the engine;
`decisions`, `answering`, `masking`, who decides, how policies are asked, what they may choose; `seeing`, spaces and
groups; `exchange`, `mail`, what agents tell each other; `disturbing`, faults; `hooks`, an environment's own physics;
`ownership`, `snapshot`; `description`, `unused_rules`, what is said of it.

The synchronous clock: `synchronous`, with `dictionaries`; `episodes`, whole ones. `base` adds the event clock, in
`event`: HeronEnv. Many at once: `batch`.
"""
