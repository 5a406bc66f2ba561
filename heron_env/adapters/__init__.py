"""The same environments for other frameworks; each module imports its framework, so import the one you need."""
