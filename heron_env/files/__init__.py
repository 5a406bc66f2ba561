"""Files on disk: how they are written, and how they are read."""
