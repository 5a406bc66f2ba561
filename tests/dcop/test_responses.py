"""A cluster's best responses and its table of counterfactuals: equal to enumeration."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heron_env.dcop import Part, Problem, best_response, best_responses, counterfactuals
from heron_env.dcop import responses as responses_module

COLOURS = ("red", "green", "blue")


@st.composite
def cases(draw: st.DrawFn) -> tuple[Part, dict[str, str], dict[str, str], dict[str, set[str]]]:
    """A part, what it was told, what is forced, and what is forbidden; gains in quarters: sums are exact."""
    own = tuple(f"o{number}" for number in range(draw(st.integers(1, 4))))
    foreign = tuple(f"f{number}" for number in range(draw(st.integers(1, 4))))
    pairs = [(u, v) for i, u in enumerate(own) for v in own[i + 1 :]] + [(v, u) for u in own for v in foreign]
    gains = st.dictionaries(st.sampled_from(COLOURS), st.integers(-20, 20).map(lambda n: n / 4))
    problem = Problem(
        own + foreign,
        tuple(pair for pair in pairs if draw(st.booleans())),
        clusters={"Own": own, "Foreign": foreign},
        preferences=draw(st.dictionaries(st.sampled_from(own), gains)),
        fixed=draw(st.dictionaries(st.sampled_from(own), st.sampled_from(COLOURS), max_size=1)),
    )
    part = problem.part("Own")
    told = draw(st.dictionaries(st.sampled_from(foreign), st.sampled_from(COLOURS)))
    forced = draw(st.dictionaries(st.sampled_from(own), st.sampled_from(COLOURS), max_size=1))
    banned = draw(st.dictionaries(st.sampled_from(own), st.sets(st.sampled_from(COLOURS), min_size=1), max_size=2))
    return part, told, forced, banned


def cost(part: Part, colours: dict[str, str], told: dict[str, str]) -> float:
    seen = {**told, **colours}
    torn = sum(seen[u] == seen[v] for u, v in part.inner) + sum(colours[u] == told.get(v) for u, v in part.outer)
    return part.conflict_penalty * torn - sum(part.preferences.get(n, {}).get(c, 0.0) for n, c in colours.items())


def allowed(part: Part, forced: dict[str, str], banned: dict[str, set[str]]) -> list[dict[str, str]]:
    """All assignments that a cluster may take, in product order."""
    choices = []
    for node in part.nodes:
        bound = part.fixed.get(node, forced.get(node))
        free = [colour for colour in part.domain if colour not in banned.get(node, ())] or list(part.domain)
        choices.append([bound] if bound is not None else free)
    return [dict(zip(part.nodes, colours, strict=True)) for colours in product(*choices)]


@given(cases())
def test_best_responses_are_those_that_enumeration_finds(case):
    part, told, forced, banned = case
    may = allowed(part, forced, banned)
    least = min(cost(part, one, told) for one in may)
    found, best = best_responses(part, told, forced, banned)
    assert found == least
    assert best == [one for one in may if cost(part, one, told) == least]
    assert best_response(part, told, forced, banned) == (least, best[0])


@given(cases())
def test_a_large_part_is_solved_by_elimination_just_as_well(case):
    part, told, forced, banned = case
    few = responses_module.FEW
    try:
        responses_module.FEW = 0
        least, best = best_responses(part, told, forced, banned)
    finally:
        responses_module.FEW = few
    assert least == best_responses(part, told, forced, banned)[0] == cost(part, best[0], told)


@given(cases(), st.data())
def test_the_table_holds_the_best_response_to_every_colouring(case, data):
    part, told, forced, banned = case
    if not part.owners:
        return
    kept = data.draw(st.lists(st.sampled_from(list(part.owners)), unique=True))
    table = counterfactuals(part, kept, told, forced, banned)
    assert table.net.shape == (3,) * len(kept)
    others = {node: colour for node, colour in told.items() if node not in kept}
    for codes in np.ndindex(table.net.shape):
        configuration = {node: COLOURS[code] for node, code in zip(kept, codes, strict=True)}
        least, _ = best_response(part, {**others, **configuration}, forced, banned)
        response = table.response(configuration)
        assert table.net[codes] == least == cost(part, response, {**others, **configuration})
        without = {node: {} for node in part.nodes}
        bare = cost(part, response, {**others, **configuration}) + sum(
            part.preferences.get(node, without[node]).get(colour, 0.0) for node, colour in response.items()
        )
        assert table.penalty[codes] == bare
