"""Own sites from files: `homes.yaml`, and the measured series that it names."""
