"""What must be shown of external agents, bar by bar: `python training/injection_bars.py`."""
