"""Linear cost: work and memory grow with agents and floats observed, counted, not timed."""

from laws.checks_cost import check_linear_cost, check_linear_cost_of_a_matrix, check_linear_sizes


def test_floats_and_messages_grow_with_the_agents() -> None:
    check_linear_sizes()


# From 32 agents on the event clock handles those that act together as arrays: growth is asked of more than that.


def test_calls_grow_with_the_agents() -> None:
    check_linear_cost(zone_size=10, counts=(40, 100, 200))


def test_calls_grow_with_the_agents_below_one_flat_zone() -> None:
    check_linear_cost(zone_size=1000, counts=(40, 80, 160))


def test_calls_to_compile_and_read_a_matrix_grow_with_agents_and_rows() -> None:
    check_linear_cost_of_a_matrix(counts=(10, 50, 200))
