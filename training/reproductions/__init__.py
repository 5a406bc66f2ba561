"""Studies of others, run on this clock: what agrees in ordering and shape; no digits of theirs are claimed."""
