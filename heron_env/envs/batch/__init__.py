"""Many environments of one kind that step together.

`env` (BatchEnv) and `event` (EventBatchEnv) are what users hold; `building` is what both have, `lane_groups` say who is
in a batch and who decides. `lanes` go through the phases of a step together, compiled or (`plain_lanes`) in plain
Python, with their Python hooks (`views`). Environments that step themselves, one after the other, are in `plain_lanes`,
too. `event_lanes` run on the event clock, and `rows` are what they ask and tell.
"""
