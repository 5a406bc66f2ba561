"""Whose turn it is: ticks and phases of the clusters, in control steps."""

from heron_env.dcop.problem import Problem

TURNS = ("apart", "all", "one")


def turns_of(problem: Problem, turns: str) -> dict[str, tuple[int, int]]:
    """Of each cluster its place in the round, and the length of the round.

    "apart": neighbouring clusters have different places, by greedy colouring of the clusters in their order.
    """
    names = list(problem.clusters)
    places = dict.fromkeys(names, 0)
    if turns == "one":
        places = {name: place for place, name in enumerate(names)}
    if turns == "apart":
        for number, name in enumerate(names):
            taken = {places[near] for near in problem.neighbouring(name) if near in names[:number]}
            places[name] = next(place for place in range(number + 1) if place not in taken)
    of = max(places.values(), default=0) + 1
    return {name: (place, of) for name, place in places.items()}
