"""Values: features, states, actions, observations, the tree, the layout, rules. No time, no I/O."""
