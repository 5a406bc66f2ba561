"""Constants in a module of their own, read as `constants.GAIN`."""

GAIN = 1.5
LIMIT = 1.9
