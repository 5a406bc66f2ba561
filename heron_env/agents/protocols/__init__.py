"""How agents coordinate: vertical protocols hand a decision down, horizontal ones let neighbours tell each other."""
