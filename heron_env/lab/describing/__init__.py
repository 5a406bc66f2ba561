"""What an environment is, in words, values and pictures: its tree and clock, and who sees what."""
