"""Talking: what clusters write to each other beside their colours, how it is verified, and what is made of it."""
