"""The links of all agents in one episode."""

from collections.abc import Sequence

from heron_env.scheduling.fleet import Fleet
from heron_env.scheduling.links import Link
from heron_env.scheduling.sourced import RuledLink, SourcedLink
from heron_env.scheduling.timing import Timing


def link_of(
    agent_key: int,
    timing: Timing,
    seed: int,
    episode: int,
    fleet: Fleet | None = None,
    place: int = 0,
    *,
    ruled: bool = False,
) -> Link:
    """The link of one agent; arguments as of Link. `ruled`: the world has a say in it."""
    kind = RuledLink if ruled else SourcedLink if timing.sourced else Link
    return kind(agent_key, timing, seed, episode, fleet, place)


def links_of(
    agent_keys: Sequence[int],
    timings: Sequence[Timing],
    rhythms: Sequence[Timing],
    seed: int,
    episode: int,
    *,
    ruled: bool = False,
) -> list[Link]:
    """The links of several agents; those with like schedules, whose ticks `rhythms` say alike, draw together."""
    alike: dict[object, list[int]] = {}
    for rank, (timing, rhythm) in enumerate(zip(timings, rhythms, strict=True)):
        delays = (timing.tick, timing.phase, timing.obs, timing.act, timing.msg, timing.min_delay, timing.config)
        alike.setdefault((delays, rhythm.tick, rhythm.phase), []).append(rank)
    links: dict[int, Link] = {}
    for ranks in alike.values():
        fleet = Fleet(timings[ranks[0]], seed, episode, [agent_keys[rank] for rank in ranks])
        for place, rank in enumerate(ranks):
            links[rank] = link_of(agent_keys[rank], timings[rank], seed, episode, fleet, place, ruled=ruled)
    return [links[rank] for rank in range(len(timings))]
