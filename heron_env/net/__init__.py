"""Questions to endpoints over HTTP, whatever they do: deadlines, caps, guard, breaker, pacing. It knows no agent."""
