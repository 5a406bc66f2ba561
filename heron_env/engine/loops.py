"""The loops: text of the phases of a control step for a set of agent classes, of one lane and over all of them.

`D` is the address of the table of arrays (arrays.py), `b` a lane. What is said of one lane is compiled for vectors of
lanes, too (vector/). What does not depend on the rules (deciding, ending, restarting, observing) comes from
loop_kernels.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from heron_env.engine.lane_errors import RULE_CODES, WORLD_CODES
from heron_env.engine.source import ARGUMENTS, KIND, MASK, OFFSET, Kind
from heron_env.engine.tables import HELD

CALL = ", ".join(ARGUMENTS)
WORLD_CALL = "t, b, coh, g, dt, time, steps[b], seeds[b], episodes[b]"
CALL_OF_MASK = CALL.replace("rewards", "allowed").replace("t, a,", "visible, a,", 1)
TOP_DOWN, BOTTOM_UP = "range(len(seg))", "range(len(seg) - 1, -1, -1)"
ARRAYS = {
    "t": "truth", "a": "applied", "tab": "tab", "gather": "gather", "seg": "seg", "coh": "coh",
    "rewards": "rewards", "infos": "infos", "terminated": "terminated", "truncated": "truncated", "alive": "alive",
    "source": "source", "over": "over", "ended": "ended", "steps": "steps", "seeds": "seeds", "episodes": "episodes",
    "chosen": "chosen", "acting": "acting", "visible": "visible", "allowed": "allowed", "masked": "masked",
    "training": "training", "asked": "asked", "asked_of": "asked_of", "ways": "ways",
}  # fmt: skip
"""Arrays by their names in the text; numbers follow."""
NUMBERS = {"g": "globals", "dt_ns": "dt_ns", "dt_physics": "dt_physics", "begun": "begun"}
APPLIED = RULE_CODES["apply_action"]
FRESH, BOUNDARY, NOTE = "failed = 0", "time = steps[b] * dt_ns / 1e9", "return note(D, b, failed)"
TAKES_EFFECT = f"if alive[b, i] != 0 and source[b, i] != 0 and source[b, i] != {HELD}:"


def loops_text(kinds: list[Kind], world: Mapping[str, bool]) -> str:
    """The phases; `world`: which of begin, advance and finish are world rules, and does it declare what it writes?"""
    have = {rule for kind in kinds for rule in kind.rules}
    informs = "get_local_info" in have
    parts = [_phase("close", "Rewards, who ends by a rule, infos.", _close(kinds, have))]
    if "apply_action" in have or "action_mask" in have:
        parts = [_phase("affect", "What actions do to the truth.", _affect(kinds)), *_apply(kinds), *parts]
    if "action_mask" in have:
        parts.append(_phase("offer", "Masks on what agents are shown, of those in `acting`.", _offer(kinds), guard=""))
    if "advance" in have or "advance" in world:
        parts.append(_phase("substep", "Physics.", _substep(kinds, have, world), more=", substep"))
    if "begin" in world or informs:
        begin = ["time, failed = 0.0, 0", *_world("begin", world), *(_inform(kinds) if informs else []), NOTE]
        parts.append(_phase("begin", "The start of an episode.", begin, guard="if chosen[b] == 0:"))
    if "finish" in world:
        finish = [FRESH, BOUNDARY, *_world("finish", world), NOTE]
        guard = "if over[b] != 0 and ended[b] == 0:"
        parts.append(_phase("finish", "The next exogenous values.", finish, guard=guard))
    if "training_rewards" in world:
        says, guard = "What trainers use instead of the rewards.", "if over[b] != 0 and ended[b] == 0:"
        parts.append(_phase("at_close", says, [FRESH, BOUNDARY, *TRAINING, NOTE], guard=guard))
    if "sees" in world:
        body = [BOUNDARY, f"world_sees({WORLD_CALL}, asked, 0, len(asked))"]
        parts.append(_phase("sight", "Who sees whom now.", body, guard=""))
        one = ["b = np.uintp(lane)", 'dt = number(D, "dt")', BOUNDARY]
        one += [f"return world_sees({WORLD_CALL}, asked, asked_of[rank], asked_of[rank + 1])"]
        says = '"""Who sees one agent now, in one lane."""'
        parts.append(_function("phase", "sight_of(D, lane, rank)", [says, *_loads(one), *one]))
    if "link" in world:
        one = ["b = np.uintp(lane)", 'dt = number(D, "dt")', BOUNDARY]
        one += [f"return world_link({WORLD_CALL}, ways, (ends >> 32) - 1, (ends & 0xFFFFFFFF) - 1)"]
        says = '"""What becomes of a message between these ends, in one lane: 1 for nan."""'
        parts.append(_function("phase", "link(D, lane, ends)", [says, *_loads(one), *one]))
    if informs:
        parts.append(_phase("inform", "Infos from the truth as it is now.", [BOUNDARY, *_inform(kinds)], guard=""))
    return "\n\n\n".join(parts) + "\n"


def _phase(name: str, says: str, lines: Iterable[str], *, more: str = "", guard: str = "if over[b] != 0:") -> str:
    """What happens in one lane, and a loop over lanes [first, last) that returns how many failed."""
    dt = "dt_piece" if name == "substep" else "dt"
    body = list(lines)
    one = [
        f'"""{says}"""',
        *_loads(body),
        f'dt = number(D, "{dt}")',
        *body,
        *([] if body[-1] == NOTE else ["return 0"]),
    ]
    skip = [guard, "    continue"] if guard else []
    inner = ["b = np.uintp(lane)", *skip, f"failures += {name}_lane(D, b{more})"]
    loop = ["failures = 0", "for lane in range(first, last):", *(f"    {line}" for line in inner), "return failures"]
    parts = (
        _function("inlined", f"{name}_lane(D, b{more})", one),
        _function("phase", f"{name}(D, first, last{more})", [*_loads(loop), *loop]),
    )
    return "\n\n\n".join(parts)


def _function(decorator: str, head: str, lines: list[str]) -> str:
    return "\n".join([f"@{decorator}\ndef {head}:", *(f"    {line}" for line in lines)])


def _loads(body: list[str]) -> list[str]:
    """Look up what the lines use, several to a line."""
    used = set(re.findall(r"\w+", "\n".join(body)))
    calls = {name: f'table(D, "{array}")' for name, array in ARRAYS.items()}
    calls |= {name: f'number(D, "{key}")' for name, key in NUMBERS.items()}
    names = [name for name in calls if name in used]
    rows = [names[i : i + 4] for i in range(0, len(names), 4)]
    return [f"{', '.join(row)} = {', '.join(calls[name] for name in row)}" for row in rows]


def _affect(kinds: list[Kind]) -> Iterator[str]:
    yield FRESH
    yield BOUNDARY
    enforced = [
        "masked[b, i] = 0",
        TAKES_EFFECT,
        *(f"    {line}" for line in ENFORCE),
    ]
    yield from _through(kinds, "action_mask", TOP_DOWN, enforced)
    body = [TAKES_EFFECT, *(f"    {line}" for line in _writing("apply_action"))]
    yield from _through(kinds, "apply_action", TOP_DOWN, body)
    yield NOTE


def _substep(kinds: list[Kind], have: set[str], world: Mapping[str, bool]) -> Iterator[str]:
    yield FRESH
    yield BOUNDARY + " + substep * dt_physics + begun"
    if "advance" in have:
        yield from _through(kinds, "advance", BOTTOM_UP, _writing("advance"))
    yield from _world("advance", world)
    yield NOTE


def _close(kinds: list[Kind], have: set[str]) -> Iterator[str]:
    yield "start_close(D, b)"
    yield FRESH
    yield BOUNDARY
    yield from _through(kinds, "compute_local_reward", BOTTOM_UP, REWARD, without=NO_REWARD_RULE)
    for rule, array in (("is_terminated", "terminated"), ("is_truncated", "truncated")):
        if rule in have:
            ends = ["if alive[b, i] != 0 and CALLED:", f"    {array}[b, i] = ended[b] = 1"]
            yield from _through(kinds, rule, TOP_DOWN, ends)
    if "get_local_info" in have:
        yield from _inform(kinds)
    yield NOTE


def _inform(kinds: list[Kind]) -> Iterator[str]:
    yield from _through(kinds, "get_local_info", TOP_DOWN, ["CALLED"])


def _world(name: str, world: Mapping[str, bool]) -> Iterator[str]:
    """Call a world rule of this lane, and bring the truth into its bounds."""
    if name in world:
        yield f"found = world_{name}({WORLD_CALL})"
        if not world[name]:
            yield "found = int(settle(D, b))"
        yield "if found != 0 and failed == 0:"
        yield f"    failed = failure(0, {WORLD_CODES[name]}, 1)"


def _writing(rule: str) -> list[str]:
    return ["bad = CALLED", "if bad != 0 and failed == 0:", f"    failed = failure(i, {RULE_CODES[rule]}, bad)"]


MASKED = f"failure(i, {RULE_CODES['action_mask']}, bad)"
ENFORCE = [
    f"look(D, b, tab[i, {OFFSET}], WIDTH)",
    "bad = CALLED",
    f"bad = bad if bad != 0 else nothing_allowed(D, b, i, tab[i, {MASK}])",
    "if bad != 0 and failed == 0:",
    f"    failed = {MASKED}",
    f"forbid(D, b, i, tab[i, {MASK}])",
]


def _offer(kinds: list[Kind]) -> Iterator[str]:
    yield FRESH
    yield BOUNDARY
    body = [
        "if acting[b, i] != 0:",
        "    bad = CALLED",
        f"    bad = bad if bad != 0 else nothing_allowed(D, b, i, tab[i, {MASK}])",
        "    if bad != 0 and failed == 0:",
        f"        failed = {MASKED}",
    ]
    yield from _through(kinds, "action_mask", TOP_DOWN, body)
    yield NOTE


REWARD = [
    "rewards[b, i] = CALLED if alive[b, i] != 0 else 0.0",
    "if refused(rewards[b, i]) and failed == 0:",
    f"    failed = failure(i, {RULE_CODES['compute_local_reward']}, 1)",
]
TRAINING = [
    f"earned = world_training_rewards({WORLD_CALL})",
    "if refused_vector(earned, training.shape[1]):",
    f"    failed = failure(0, {WORLD_CODES['training_rewards']}, 1)",
    "else:",
    "    for p in range(training.shape[1]):",
    "        training[b, p] = earned[p]",
]
NO_REWARD_RULE = ["rewards[b, i] = sum_of_children(b, i, rewards, tab) if alive[b, i] != 0 else 0.0"]


def _through(
    kinds: list[Kind], rule: str, order: str, body: list[str], *, without: list[str] | None = None
) -> Iterator[str]:
    """Lines that go through all agents, run by run of one kind; `without`: for kinds that have no such rule."""
    if without is None and not any(rule in kind.rules for kind in kinds):
        return
    yield f"for s in {order}:"
    word = "if"
    for number, kind in enumerate(kinds):
        lines = body if rule in kind.rules else without
        if lines:
            yield f"    {word} seg[s, 0] == {number}:  # {kind.name}"
            yield "        for i in range(seg[s, 1], seg[s, 2]):"
            yield from (f"            {_filled(line, kind, rule)}" for line in lines)
            word = "elif"


def _call(kind: Kind, rule: str) -> str:
    calls = {"get_local_info": CALL.replace("rewards", "infos"), "action_mask": CALL_OF_MASK}
    return f"{kind.name}_{rule}({calls.get(rule, CALL)})"


def _filled(line: str, kind: Kind, rule: str) -> str:
    return line.replace("CALLED", _call(kind, rule)).replace("WIDTH", str(kind.width))


def _apply(kinds: list[Kind]) -> Iterator[str]:
    """The event clock's entry: one agent's action, in one lane."""
    lines = ["accept_action(D, b, i)", f"kind, bad, failed = tab[i, {KIND}], 0, 0"]
    for number, kind in enumerate(kinds):
        if "action_mask" in kind.rules:
            enforced = [f"    {_filled(line, kind, 'action_mask')}" for line in ("masked[b, i] = 0", *ENFORCE)]
            lines += [f"if kind == {number}:", *enforced]
    for number, kind in enumerate(kinds):
        if "apply_action" in kind.rules:
            lines += [f"if kind == {number}:", f"    bad = {_call(kind, 'apply_action')}"]
            lines += ["    if failed == 0 and bad != 0:", f"        failed = failure(i, {APPLIED}, bad)"]
    lines += ["return note(D, b, failed)"]
    one = ["b, i = np.uintp(lane), np.uintp(position)", 'dt = number(D, "dt")', BOUNDARY, *lines]
    says = '"""One agent\'s action, in one lane."""'
    yield _function("phase", "apply(D, lane, position)", [says, *_loads(one), *one])
