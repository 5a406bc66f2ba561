"""`python -m benchmarks`: how fast this library is, beside floors, ceilings and peers measured in the same run."""
