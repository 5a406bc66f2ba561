"""The verdict of a report: a few figures that answer what something earns, and what the network costs it."""

from __future__ import annotations

from heron_env.lab.output import Tile, with_unit
from heron_env.lab.robust_stats import Estimate
from heron_env.lab.runs import RunFolder
from heron_env.lab.show.parts import training_unit
from heron_env.lab.sweep.results import Measurements
from heron_env.lab.sweep.words import NEGLIGIBLE, UNCLEAR, Changes, Level
from heron_env.lab.traces.episode import Episode

EARNS, COSTS = "It earns", "The network costs it"


def sweep_verdict(result: Measurements) -> list[Tile]:
    """What the first policy earns, what the network costs it, and its difference to the nearest other policy.

    Where these cases can't tell a cost or a difference from none, the tile says so.
    """
    policy, unit = result.policies[0], result.sweep.unit
    level, changes = Level(result, policy), Changes(result, policy)
    share = f"; {level.foresight}" if level.foresight else ""
    none = f"; {level.no_gain.removesuffix('.')}" if level.no_gain else ""
    tiles = [_tile(EARNS, level.sync, unit, f"{policy!r} on {level.cases}, synchronous clock{share}{none}")]
    if changes.costs:
        tiles.append(_cost_tile(changes, unit))
    if level.against:
        other, more = min(level.against, key=lambda pair: pair[1].value)
        apart = "" if more.excludes_zero else f"; {UNCLEAR}"
        tiles.append(_tile(f"Difference to {other!r}", more, unit, f"synchronous clock{apart}"))
    return tiles


def _cost_tile(changes: Changes, unit: str) -> Tile:
    largest, kind, none = changes.largest, changes.kind, "no cost found"
    under = f"under {largest.condition}"
    if kind == "no interval":
        return _tile(COSTS, largest.gap, unit, f"{under}; one case, so no claim")
    if kind == "no gap" and changes.of_gain:
        return Tile(COSTS, "next to nothing", f"less than {100 * NEGLIGIBLE:g} % of its gain in {changes.conditions}")
    if kind == "no gap":
        return Tile(COSTS, "nothing", f"no change in {changes.conditions}")
    if changes.lowers:
        share = f"{largest.lost.percent()} of its gain, " if largest.lost.known else ""
        among = "among " if changes.rivals else ""
        rank = f", {among}the costliest of {changes.conditions}" if len(changes.costs) > 1 else ""
        return _tile(COSTS, largest.gap, unit, f"{share}{under}{rank}")
    if changes.raised is not None:
        return Tile(COSTS, none, f"the return is higher under {changes.raised}")
    return Tile(COSTS, none, f"the largest is {UNCLEAR}, or negligible: {largest}")


def _tile(label: str, mean: Estimate, unit: str, note: str) -> Tile:
    """The mean in large figures, its interval below them."""
    figure, _, interval = str(mean).partition(" ")
    return Tile(label, with_unit(figure, unit), f"{note}; 95 % interval {interval}" if interval else note)


def training_verdict(run: RunFolder) -> list[Tile]:
    """What the trained policy earns in validation, and what the best other one does."""
    config = run.config
    scores, unit = dict(config.validation), training_unit(run)
    options = "with the training options, one training seed"
    own = scores.pop("trained", None)
    tiles = [] if own is None else [Tile(EARNS, with_unit(f"{own:.2f}", unit), f"mean return in validation, {options}")]
    if scores:
        best = max(scores, key=lambda name: scores[name])
        tiles.append(
            Tile(f"{best!r} earns", with_unit(f"{scores[best]:.2f}", unit), "the best of the others, same episodes")
        )
    return tiles


def episode_verdict(episode: Episode) -> list[Tile]:
    """What one recorded episode paid the root, and what became of its messages."""
    counts, root, setting = episode.counts, episode.world.agents[0], episode.setting
    fates = ", ".join(f"{count} {fate}" for fate, count in counts.items())
    about = f"{root} in one episode of {episode.outcome.end_time:g} s, seed {setting.seed}, by {setting.policy.name!r}"
    return [
        Tile(EARNS, f"{episode.returns[root]:.2f}", about),
        Tile("Messages", f"{sum(counts.values()):,}", fates),
    ]
