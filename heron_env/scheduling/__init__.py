"""Virtual time: schedules, the event heap, links with delay and loss, the post office. It knows ranks, no agents."""
