"""How agents coordinate: vertical protocols hand a coordinator's decision down."""
