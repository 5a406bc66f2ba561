"""The train-to-deploy gap: how much of a policy's return survives the network, and which cause eats the rest."""
