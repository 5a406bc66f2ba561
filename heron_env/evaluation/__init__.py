"""What a policy is worth: run folders and their policies, statistics, the difference between the two clocks."""
