"""Linear cost: work and memory grow with agents and floats observed, counted, not timed."""

from laws.checks_cost import check_linear_cost, check_linear_sizes


def test_floats_and_messages_grow_with_the_agents() -> None:
    check_linear_sizes()


def test_calls_grow_with_the_agents() -> None:
    check_linear_cost(zone_size=10, counts=(10, 50, 200))


def test_calls_grow_with_the_agents_below_one_flat_zone() -> None:
    check_linear_cost(zone_size=1000, counts=(10, 40, 160))
