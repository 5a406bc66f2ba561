"""The train-to-deploy gap: how much of a policy's return remains under the network, and which cause takes how much."""
