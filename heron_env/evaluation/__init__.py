"""What a policy is worth: run folders and their policies, statistics, both clocks, sweeps of what is wrong with one."""
