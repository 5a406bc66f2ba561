"""What `training/coloring_bars.py` measures, a module a subject."""
