"""How rules are carried out."""
