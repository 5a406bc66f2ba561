"""The arrays of the compiled event clock, by name, and what their columns are.

Ranks are those of the hierarchy; `b` is a lane, `p` the place of an agent among those who decide, `s` a slot. Arrays of
slots have a row `b * slots + s`.
"""

from __future__ import annotations

(TICK, PHASE, OBS, ACT, MSG, LEAST, JITTER, FLAGS, SERVER_UP, SERVER_DOWN, PRIORITY, KEEP, LIFESPAN, RTO, TRIES,
 OFFSET, TIMING_NUMBERS) = range(17)  # fmt: skip
"""Columns of `timing`: ns, but the kind of jitter, flags, servers (NONE without a medium), priority, KEEP and TRIES (0:
any). LIFESPAN and RTO are NONE where there is none. OFFSET: of the agent's clock."""
REORDER, FAILSAFE, LOCAL, SHARED, GAPS, AT_ONCE_LINK, RULED = 1, 2, 4, 8, 16, 32, 64
"""Flags: may messages overtake, is the no-op applied where a decision is missing, does it see its own rows itself, may
its messages wait, does what comes later tell what is missing, is each departure known at the offer, once for all, has
the rule `link` a say?"""
RATIO, TICK_RATIO, LOSS, SPREAD, TICK_SPREAD, BACKOFF, DRIFT = range(7)
"""Columns of `odds`; SPREAD: sqrt(ln(1 + ratio**2))."""
AGES_BY_CLOCKS = 2
"""What `ages` has where they are observed by clocks that may be wrong (T28); 1 where they are true, 0 for none."""
NS_A_BYTE, OVERHEAD, LIMIT, AT_ONCE, BY_PRIORITY, LIFESPANS, SIZE_OF = range(7)
MEDIUM_NUMBERS = SIZE_OF + 5
"""Columns of `medium`, by server. LIMIT: bytes, below 0 for none. LIFESPANS: may anything become too old? SIZE_OF: of
requests, replies, commands, reports and shares, below 0 where their numbers say it."""
S_FREE, S_PENDING, S_HEAD, S_TAIL, S_BUSY, SERVER_NUMBERS = range(6)
S_BACKLOG, S_OFFERED, S_CARRIED, S_REFUSED, SERVER_BYTES = range(5)
"""Columns of `server` and `server_bytes`. S_FREE: when what is being sent has left, ns. S_HEAD, S_TAIL: first and last
parcel that waits. S_BUSY: ns."""
LOSS_FROM, SOURCED_FIELDS = 3, 4
"""Columns of `source_of`: which of `sources` delays (OBS, ACT, MSG, each less OBS) and loss come from; -1: none."""
KIND, PERIOD, STATES, VALUES, LEVELS, SOURCE_NUMBERS = range(6)
"""Columns of `sources`. PERIOD: ns. VALUES: the first of its lists of delays, one for each state. LEVELS: its first
threshold: those of the start, of the moves from each state, then losses by state."""
EMPIRICAL, RECORDED, MARKOV, LOSSY = range(4)
"""Kinds of sources."""
(RUN, WAIT, DUE, OVER, FULL, IDLE, FAILED, RESTING, BEYOND) = range(9)
"""What a lane is doing: on its way, waiting for actions, for a substep that Python follows, which others join, at the
end of its episode, out of room; its world has begun and the clock has not; a rule failed; no episode; nothing more
happens before the end of time."""
(STATUS, TOP, SEQUENCE, VERSION, NEXT, NEXT_KEY, SUBSTEP, DONE, FRESH, ASKS, SENT, LOST, DELIVERED, CANCELLED,
 UNFINISHED, CLOSING, LOG, FREE_REPORT, REPORTS_LEFT, FREE_VIEW, VIEWS_LEFT, SHORT, ROWS, TOKENS, FREE_PARCEL,
 PARCELS_LEFT, DISCARDED, REPEATED, OFFERS, LANE_NUMBERS) = range(30)  # fmt: skip
"""Columns of `lane`. TOP: events in the heap. NEXT, NEXT_KEY: when physics is due, ns, and its place in the order.
DONE: nominal time that physics has come to, ns. FRESH: the slot that was just taken. ASKS: unanswered decisions. LOG:
floats used of `log`. FREE_...: the first free slot; behind it how many are left. SHORT: what a FULL lane ran out of.
ROWS: decisions of this episode. TOKENS: under way, each with a boundary in the ring."""
HEAP_SHORT, REPORTS_SHORT, VIEWS_SHORT, LOG_SHORT, RING_SHORT, PARCELS_SHORT = 1, 2, 4, 8, 16, 32
USES, CHAIN = range(2)
"""Columns of all slots. USES: how many events need it. CHAIN: the next free one."""
WHAT, VERSION_OF, AS_OF, REPORT_NUMBERS = range(2, 6)
"""Further columns of `report_slot`; WHAT: row or edge."""
(P_RANK, P_QUEUE, P_KIND, P_PHASE, P_SLOT, P_NUMBER, P_LEG, P_CAUSE, P_SENT, P_SERVER, P_WORK, P_STREAM, P_ORDER,
 P_ATTEMPT, P_TIMEOUTS, P_BACK, P_LEFT, P_LOST, P_ARRIVAL, P_STATE, P_NEXT, P_LINE,
 PARCEL_NUMBERS) = range(2, 25)  # fmt: skip
"""Further columns of `parcel`, as sharing.Parcel has them. P_ORDER, P_LOST: in which order parcels were first offered,
and lost. P_NEXT: the next that waits for the medium; P_LINE: the next of its queue."""
GONE, WAITS, IN_STREAM, MISSING = 1, 2, 4, 8
"""Bits of P_STATE: it will not arrive; it waits for its medium; it counts in its stream; it was lost once."""
REPORTS_OF, SHARES_OF, REQUESTS_OF, REPLIES_OF, COMMANDS_OF = range(5)
"""Kinds of streams."""
RANK, NUMBER, ANSWERED, COME, BROUGHT, FIRST_ROW, USED, VIEW_NUMBERS = range(2, 10)
"""Further columns of `view_slot`: an observation on its way, then the decision on it; an unanswered one is in use, too,
and its CHAIN is the agent's next unanswered one. COME: when it came, ns. BROUGHT: control steps since the decision
before. USED: has it been decided on?"""
FIRST_OPEN, LAST_OPEN, LAST_NUMBER, LAST_EFFECT, STEPS, END, END_STEPS, OLD_END, OLD_STEPS, DECIDER_NUMBERS = range(10)
"""Columns of `decider`, one for each (b, p). FIRST_OPEN, LAST_OPEN: first and last unanswered slot. LAST_NUMBER and
LAST_EFFECT: number of the last decision and of the last effect. STEPS: since the last decision. END: bits: 1 there is
an end to be told, 2 terminated, 4 truncated, 8 the last decision took effect. END_STEPS: STEPS then. OLD_...: the same
of the episode before: an agent may have ended in the next one, too, before anybody is asked. `end_obs` and `end_state`
have a row for each of both, the old one second."""
EARNED, EARNED_TRAINING, DISCOUNT, END_EARNED, END_TRAINING, OLD_EARNED, OLD_TRAINING, DECIDER_FLOATS = range(8)
"""Columns of `earned`, for each (b, p): since the last decision; what is to be told of an end."""
(TOKEN, SHARE, REPORT, CLOSED, AGENT_TICK, DEADLINE, REQUEST, REPLY, COMMAND, EFFECT, EFFECT_REPORT,
 RECEIPT, ENDING, OFFER, TRANSMIT) = range(1, 16)  # fmt: skip
"""Kinds of events. OFFER: a parcel comes to its medium, NUMBER 1 if a timer has run out. ENDING: an
agent has ended, and what the proxy was told at that instant has come."""
UP, DOWN, TO_CHILD, RECEIPTS, SHARES, QUEUES = range(6)
"""Queues of a link, as scheduling.broker.Queue has them."""
REWARD_LOG, ACTION_LOG, AGES_LOG, OBSERVATION_LOG = range(4)
"""Records in `log`: [kind, size, ...]. Rewards by rank (nan: not in it) behind the time; an action and an observation
behind rank and time, of an action also the latency; ages behind the rank."""
KEEP_REWARDS, KEEP_ACTIONS, KEEP_AGES, KEEP_OBSERVATIONS, KEEP_MESSAGES = 1, 2, 4, 8, 16
(RANKS, DECIDERS, HEAP_SIZE, REPORT_SLOTS, VIEW_SLOTS, LOG_SIZE, RING, SCHEDULES, DT, SUBSTEPS, EVERY, PER_BOUNDARY,
 PYTHON_FOLLOWS, KEEPS, NEED_HEAP, NEED_REPORTS, NEED_VIEWS, NEED_LOG, OBS_WIDTH, ACTION_WIDTH, WITH_STATE, TRAINS,
 PARCEL_SLOTS, SERVERS, ENGINE, SIZE_NUMBERS) = range(26)  # fmt: skip
"""Places in `sizes`: these, and what else is one number.

SCHEDULES: rows of `timing` from one lane's to the next one's, 0 where all have the same. EVERY:
substeps from report to report; PER_BOUNDARY: reports a step. NEED_...: what one event may take at the most.
PYTHON_FOLLOWS: substeps or boundaries. TRAINS: are there rewards for trainers? ENGINE: where links are
RULED, the address of the engine's table, else 0."""
NOTHING, BOUNDARIES, SUBSTEPS_TOO = range(3)
"""What Python follows."""
GAMMA, STATE_LOW, STATE_HIGH, REAL_NUMBERS = range(4)
"""Places in `reals`."""

FORMS: dict[str, tuple[str, int]] = {
    "sizes": ("int64", 1), "reals": ("float64", 1),
    # schedules, `[lanes or 1 * ranks, ...]`
    "timing": ("int64", 2), "odds": ("float64", 2), "source_of": ("int64", 2),
    "sources": ("int64", 2), "first_delay": ("int64", 1), "delays": ("int64", 1), "departures": ("int64", 1),
    "thresholds": ("float64", 1), "medium": ("float64", 2),
    # of the hierarchy: by rank, with lists of what belongs to each in one array, `first[r]` to `first[r + 1]`
    "place": ("int64", 1), "clock": ("int64", 1), "parent": ("int64", 1), "decides": ("int64", 1),
    "deciders": ("int64", 1), "group": ("int64", 1), "reports": ("uint8", 1), "sized": ("uint8", 1),
    "hashes": ("uint64", 1), "elements": ("int64", 1),
    "first_child": ("int64", 1), "child": ("int64", 1), "first_follower": ("int64", 1), "follower": ("int64", 1),
    "first_reported": ("int64", 1), "reported": ("int64", 1), "reported_sum": ("int64", 1),
    "first_observed": ("int64", 1), "observed": ("int64", 1), "first_source": ("int64", 1), "source": ("int64", 1),
    "own": ("int64", 1), "own_sum": ("int64", 1), "first_tail": ("int64", 1), "tail": ("float32", 1),
    "ages": ("uint8", 1), "first_relative": ("int64", 1), "relative": ("int64", 2),
    "payload": ("int64", 1), "first_hidden": ("int64", 1), "hidden": ("int64", 2), "instead": ("float32", 1),
    "absolute_sight": ("int64", 1), "first_flag": ("int64", 1), "flag": ("int64", 1),
    "first_noise": ("int64", 1), "noise_at": ("uint32", 1), "noise_columns": ("uint32", 1), "noise_keys": ("uint64", 1),
    "noise_reach": ("float64", 1), "noise_low": ("float64", 1), "noise_high": ("float64", 1), "noise_law": ("uint8", 1),
    "choices": ("int64", 2), "masks": ("uint8", 1),
    "first_edge": ("int64", 1), "outgoing": ("int64", 1), "edge": ("int64", 2), "edge_cause": ("uint64", 1),
    "sums": ("int64", 1),
    # of the lanes
    "lane": ("int64", 2), "key": ("uint64", 2), "cache": ("float64", 2), "version": ("int64", 2), "as_of": ("int64", 2),
    "ended_sums": ("float64", 2), "decided": ("int64", 2), "last_effect": ("int64", 2), "acted": ("int64", 2),
    "queue": ("int64", 2), "member": ("uint8", 2), "lived": ("int64", 2), "how": ("uint8", 2), "masked": ("int64", 2),
    "ring": ("float64", 2), "ring_version": ("int64", 2), "scratch": ("float64", 2), "noise_cache": ("uint64", 2),
    "received": ("float64", 2), "newest": ("int64", 2), "trained": ("int64", 1),
    "chain_last": ("int64", 2), "chain_state": ("int64", 2),
    "server": ("int64", 2), "server_bytes": ("float64", 2), "line": ("int64", 2),
    "decider": ("int64", 2), "earned": ("float64", 2), "end_obs": ("float32", 2), "end_state": ("float32", 2),
    "end_absolute": ("float64", 2),
    # growing
    "heap": ("int64", 2), "log": ("float64", 2), "parcel": ("int64", 2), "parcel_size": ("float64", 2),
    "report_slot": ("int64", 2), "report": ("float64", 2),
    "view_slot": ("int64", 2), "view": ("float32", 2), "view_as_of": ("int64", 2), "decision": ("float64", 2),
    "view_mask": ("uint8", 2), "view_state": ("float32", 2), "view_absolute": ("float64", 2),
    # handed out
    "counts": ("int64", 2), "since": ("int64", 2),
    "row": ("int64", 2), "row_obs": ("float32", 2), "row_earned": ("float64", 2), "row_mask": ("uint8", 2),
    "row_state": ("float32", 2), "answer": ("float64", 2),
}  # fmt: skip
"""Element type and number of axes of every array."""
(EDGE_SOURCE, EDGE_SIZE, EDGE_TARGET, EDGE_WIDTH, EDGE_RECEIVED, EDGE_FROM, EDGE_TO, EDGE_FLAG, EDGE_END,
 EDGE_NUMBERS) = range(10)  # fmt: skip
"""Columns of `edge`: first column and size of what is told; first column and width of where it goes; first place in
`received`; first edge, and one past the last, of those that meet there. EDGE_END: rank of the receiver."""
ROW_LANE, ROW_RANK, ROW_SLOT, ROW_NUMBER, ROW_STEPS, ROW_BITS, ROW_NUMBERS = range(7)
"""Columns of `row`. ROW_BITS: first for a row; as END for an end."""
