"""What a table says, in words: computed, whichever way it comes out."""

from __future__ import annotations

from heron_env.errors import ConfigError
from heron_env.evaluation.benchmark import NOTHING, RANDOM
from heron_env.evaluation.stats import Interval, paired_difference
from heron_env.evaluation.table import Row, Table


def finding(table: Table, policy: str, rival: str | None = None) -> str:
    """One paragraph about `policy` against doing nothing, chance and `rival`, and about what delay costs them."""
    sentences = [_level(table, policy)]
    others = [name for name in (NOTHING, RANDOM, rival) if name and name != policy and table.has(name)]
    sentences.append(_against(table, policy, others))
    sentences.append(_parity(table))
    sentences += [
        _delays(table, name) for name in (policy, rival) if name and any(r.clock.delay for r in table.of(name))
    ]
    if rival and table.has(rival):
        sentences.append(_order(table, policy, rival))
    return " ".join(sentence for sentence in sentences if sentence)


def beats(table: Table, policy: str, others: tuple[str, ...] = (NOTHING, RANDOM)) -> bool:
    """Is the policy's mean return on the synchronous clock above that of all `others`? Raises ConfigError."""
    missing = [name for name in (policy, *others) if not table.has(name)]
    if missing:
        raise ConfigError(f"the table has no synchronous row for {missing}; it has {table.policies}")
    own = table.row(policy).mean.mean
    return all(own > table.row(name).mean.mean for name in others)


def _level(table: Table, policy: str) -> str:
    row = table.row(policy)
    share = (
        ""
        if row.score != row.score
        else f", {100 * row.score:.0f} % of what perfect foresight would gain over doing nothing"
    )
    cases = "one held-out case" if len(row.returns) == 1 else f"{len(row.returns)} held-out cases"
    unit = f" {table.unit}" if table.unit else ""
    return f"On {cases} the policy {policy!r} earns {_amount(row.mean)}{unit} on the synchronous clock{share}."


def _against(table: Table, policy: str, others: list[str]) -> str:
    told = []
    for other in others:
        difference = paired_difference(table.row(policy).returns, table.row(other).returns)
        verb = "more" if difference.mean > 0 else "less"
        told.append(f"{abs(difference.mean):.2f} {verb} than {other!r}{_doubt(difference)}")
    return f"That is {', '.join(told)}." if told else ""


def _parity(table: Table) -> str:
    answers = [row.identical for row in table.rows if row.identical is not None]
    if not answers:
        return ""
    if all(answers):
        return "Event-driven without delay, every run equals its synchronous twin bit for bit."
    return (
        "Event-driven without delay, runs differ from their synchronous twins: parity is broken, trust no delay's cost."
    )


def _delays(table: Table, name: str) -> str:
    rows = [row for row in table.of(name) if row.clock.delay and row.to_sync is not None]
    told = [_cost(row) for row in rows]
    if all(row.to_sync is not None and row.to_sync.n > 1 and not row.to_sync.excludes_zero for row in rows):
        return f"For {name!r} no delay makes a difference that these cases can tell from none: {', '.join(told)}."
    return f"Delay from observation to effect changes the return of {name!r} by {', '.join(told)}."


def _order(table: Table, policy: str, rival: str) -> str:
    """Does the longest delay turn the order of the two round?"""
    late = {row.clock: row for row in table.of(rival) if row.clock.delay}
    both = [(row, late[row.clock]) for row in table.of(policy) if row.clock in late]
    if not both:
        return ""
    own, other = max(both, key=lambda pair: pair[0].clock.delay or 0.0)
    before = table.row(policy).mean.mean - table.row(rival).mean.mean
    after = paired_difference(own.returns, other.returns)
    if before * after.mean >= 0.0:
        return ""
    verb = "more" if after.mean > 0 else "less"
    told = f"{policy!r} earns {abs(after.mean):.2f} {verb} than {rival!r}"
    return f"At {own.clock.delay:g} s of delay the order is reversed: {told}{_doubt(after)}."


def _cost(row: Row) -> str:
    assert row.to_sync is not None
    share = (
        ""
        if row.lost != row.lost
        else f", {abs(100 * row.lost):.0f} % of its gain {'lost' if row.lost >= 0 else 'on top'}"
    )
    return f"{_amount(row.to_sync)} at {row.clock.delay:g} s ({_range(row.to_sync)}{share})"


def _amount(interval: Interval) -> str:
    return f"{interval.mean:.2f}"


def _range(interval: Interval) -> str:
    return "one case, no interval" if interval.n < 2 else f"95 % {interval.low:.2f} to {interval.high:.2f}"


def _doubt(difference: Interval) -> str:
    if difference.n < 2:
        return " (one case, no interval)"
    return "" if difference.excludes_zero else " (not to be told from none by these cases)"
