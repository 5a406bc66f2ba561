"""A cluster agent: colours its own nodes by what it sees and is told, step by step, and says why."""
