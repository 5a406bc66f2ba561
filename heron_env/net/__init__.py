"""HTTP to others (deadlines, caps, guard, breaker, pacing), and who may ask what we serve. It knows no agent."""
