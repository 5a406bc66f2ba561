"""Many environments of one kind that step together.

`env` (BatchEnv) and `event` (EventBatchEnv) are what users hold; `building` is what both have, `lane_groups` say who
is in a batch and who decides. `lanes` bring actions into the engine's arrays, step, and hand out what it published;
rules are compiled there, or in plain Python (`plain_lanes`), where each lane has an environment of its own.
Environments that step themselves, one after the other, are in `plain_lanes`, too. `views`: the environment of a lane,
to look at. `event_lanes` run on the event clock, and `rows` are what they ask and tell.
"""
