"""Mutants of the compiled event clock: faults in its text, each of which makes another clock."""

from laws.uncompiled import Fault

EVENT_MUTANTS: dict[str, Fault] = {
    "queues_forgotten": (
        "media",
        "    last[b, q] = max(arrival, last[b, q])\n    return last[b, q]\n",
        "    return arrival\n",
    ),
    "loss_moves_others": (
        "broker",
        "if flags & f.REORDER == 0:",
        "if flags & f.REORDER == 0 and not is_lost(E, b, r, leaves, cause, leg, number):",
    ),
    "no_versions": ("broker", "if version <= versions[b, row]:", "if False:"),
    "old_shares_count": ("broker", "if number <= newest[b, e]:", "if False:"),
    "phases_in_disorder": ("broker", "0, 1, 2, 4, 5, 6, 7, 8, 9  # fmt", "0, 1, 2, 4, 5, 8, 7, 6, 9  # fmt"),
    "own_rows_of_the_boundary": (
        "agents",
        'max(of(E, "lane")[b, f.DONE], of(E, "acted")[b, r])',
        'of(E, "lane")[b, f.DONE]',
    ),
    "nothing_is_subtracted": ("agents", " - scratch[b, relative[k, 1]]", ""),
    "rewards_of_the_ended": (
        "physics",
        "rewards[b, place[r]] if member[b, r] != 0 else np.nan",
        "rewards[b, place[r]]",
    ),
    "deadlines_a_tick_late": (
        "agents",
        "max(now, nominal_time(E, b, r, number + 1))",
        "max(now, nominal_time(E, b, r, number + 2))",
    ),
    "a_late_reply_is_used": ("agents", ' or number <= of(E, "decided")[b, r]:', ":"),
    "effects_overtake": ("agents", "last[b, r] = max(later(now, after), last[b, r])", "last[b, r] = later(now, after)"),
    "the_ended_act": (
        "agents",
        "        lane[b, f.CANCELLED] += 1\n        return 0\n",
        "        lane[b, f.CANCELLED] += 1\n",
    ),
    "nobody_is_awaited": (
        "agents",
        "        if alive[b, place[giver]] == 0:\n            return False\n",
        "        pass\n",
    ),
    "rewards_of_one_step": ("physics", "decider[at, f.STEPS] += 1", "decider[at, f.STEPS] = 1"),
    "chains_stand_still": (
        "links",
        "    for j in range(k + 1, period + 1):\n",
        "    for j in range(k + 1, k + 1):\n",
    ),
    "a_noop_undoes_what_fell_before": ("physics", "f.LAST_EFFECT] >= decider", "f.LAST_EFFECT] == decider"),
    "ends_looked_at_too_early": ("physics", "push(E, b, now, REWARD_PHASE,", "push(E, b, now, PHYSICS_PHASE,"),
    "masks_of_the_truth": (
        "agents",
        'columns[first[r] + j]] = of(E, "view")[s, j]',
        'columns[first[r] + j]] = table(D, "truth")[b, columns[first[r] + j]]',
    ),
    "decisions_stay_for_ever": (
        "clock",
        "f.STATUS] = f.RUN\n        release_view(E, b, slot)\n",
        "f.STATUS] = f.RUN\n",
    ),
    "growing_forgets": ("memory", "new[:, :before] = old.reshape(self.lanes, before, -1)", "new[:, :0] = 0"),
    "growing_drops_what_was_free": ("memory", "slots[:, -1, f.CHAIN] = lane[:, first]", "slots[:, -1, f.CHAIN] = 0"),
    "notes_are_overwritten": ("event_lanes", "log[b, : lane[b, f.LOG]].copy()", "log[b, : lane[b, f.LOG]]"),
    "a_lane_begins_with_old_chains": ("clock", 'of(E, "chain_last")[b, k] = NONE', "pass"),
}

GOING_ON_MUTANTS: dict[str, Fault] = {
    "effects_of_the_episode_before_hold_up_the_next": (
        "clock",
        'of(E, "last_effect")[b, r] = of(E, "acted")[b, r]',
        'of(E, "acted")[b, r]',
    ),
    "ends_before_their_decisions": ("clock", " and decider[at, f.FIRST_OPEN] < 0)", ")"),
    "ends_of_the_episode_before_forgotten": ("clock", "        store_old_end(E, at)\n", "        pass\n"),
    "ends_of_the_episode_before_overwritten": ("clock", "[2 * at + old, j]", "[2 * at, j]"),
    "ends_of_what_nobody_was_asked": ("clock", "if decider[at, f.FIRST_OPEN] < 0:  # else", "if True:  # else"),
    "one_network_for_all_episodes": ("event_lanes", "int(self.steps.episodes[lane]))", "0)"),
    "everyone_has_the_first_network": (
        "event_lanes",
        "self.arrays[name][lane * len(table) : (lane + 1) * len(table)] = table",
        "self.arrays[name][: len(table)] = table",
    ),
}
"""Those that only show where a lane's next episode begins."""

TOGETHER_MUTANTS: dict[str, Fault] = {
    "a_raised_flag_stays_up": ("broker", "            truth[b, flag] = 0.0\n", "            pass\n"),
    "who_says_nothing_is_heard": ("broker", "if flag >= 0 and truth[b, flag] < RAISED:", "if False:"),
    "lanes_stay_in_motion": ("physics", "            moving[b] = 0\n", "            pass\n"),
    "everyone_is_in_the_substep_of_the_first": (
        "physics",
        "[b] = lane[b, f.SUBSTEP]\n",
        "[b] = max(lane[b, f.SUBSTEP], lane[first, f.SUBSTEP])\n",
    ),
    "nobody_moves_the_world": (
        "step",
        "substep[b])\n    if failed == 0:\n        failed = natively(D, PYTHON + PHYSICS, first, last)\n",
        "substep[b])\n",
    ),
}
"""Those that only show where several lanes have hooks in Python."""

LATE_MUTANTS: dict[str, Fault] = {
    "what_is_under_way_is_forgotten": ("memory", "= old[lanes, number % before]", "= 0.0"),
    "what_is_under_way_is_overwritten": ("clock", "        short |= f.RING_SHORT\n", "        pass\n"),
}
"""Those that only show where the news of many boundaries is under way, or time ends before it comes."""

LINK_MUTANTS: dict[str, Fault] = {
    "asked_for_the_wrong_end": (
        "links",
        "(np.int64(r), other) if up else (other, np.int64(r))",
        "(other, np.int64(r)) if up else (np.int64(r), other)",
    ),
    "shares_go_to_the_proxy": ("links", 'other = of(E, "edge")[edge, f.EDGE_END]', "pass"),
    "commands_come_from_the_proxy": ("links", 'other = of(E, "parent")[r]', "pass"),
    "asked_when_it_has_left": (
        "broker",
        "        if flags & f.RULED:\n            ask(E, b, r, queue, stream)\n"
        "        arrival = later(leaves, delay(E, b, r, f.MSG, leaves, cause, leg, number))\n",
        "        arrival = later(leaves, delay(E, b, r, f.MSG, leaves, cause, leg, number))\n"
        "        if flags & f.RULED:\n            ask(E, b, r, queue, stream)\n",
    ),
    "asked_at_the_offer": ("media", "if medium[m, f.AT_ONCE] != 0.0 or", "if medium[m, f.BY_PRIORITY] == 0.0 or"),
    "asked_of_repetitions_alone": (
        "media",
        "    if timing[at, f.FLAGS] & f.RULED:\n        ask(",
        "    if timing[at, f.FLAGS] & f.RULED and attempt > 0:\n        ask(",
    ),
    "acting_is_a_message": ("links", "field == f.MSG and ", ""),
    "chances_are_added": ("links", "[b, CHANCE] * (1.0 - share)", "[b, CHANCE]"),
}
"""Those that only show where the rule `link` has a say."""

SHARED_MUTANTS: dict[str, Fault] = {
    "sums_run_over": ("heap", "return np.int64(NEVER) if delay > NEVER - ns else ns + delay", "return ns + delay"),
    "a_medium_rests": (
        "media",
        "    transfer(E, b, chosen, s, now, now)\n    if server[k, f.S_HEAD] >= 0:\n",
        "    transfer(E, b, chosen, s, now, now)\n    if False:\n",
    ),
    "priorities_are_not_looked_at": ("media", "if priority(E, b, p) < priority(E, b, chosen):", "if False:"),
    "last_come_first_served": ("media", "    chosen = server[k, f.S_HEAD]\n", "    chosen = server[k, f.S_TAIL]\n"),
    "a_held_back_reply_holds_the_medium": ("media", "    if leaves > now:  #", "    if False:  #"),
    "departures_at_once_take_no_time": ("servers", "occupy(E, k, max(now, of", "occupy(E, k, min(now, of"),
    "headers_weigh_nothing": ("servers", " + medium[m, f.OVERHEAD]", ""),
    "the_limit_is_of_one_message": ("media", "used[k, f.S_BACKLOG] + size > limit", "size > limit"),
    "refused_bytes_are_forgotten": (
        "media",
        "        used[k, f.S_REFUSED] += size\n        discard(",
        "        discard(",
    ),
    "the_newest_is_displaced": ("media", "f.P_ORDER] < parcels[first + oldest", "f.P_ORDER] > parcels[first + oldest"),
    "nothing_is_too_old": ("media", "return lifespan >= 0 and now", "return False and now"),
    "one_draw_for_all_attempts": ("media", "    if attempt > 0:\n", "    if False:\n"),
    "a_gap_is_noticed_at_once": ("media", "leaves, later(arrival, timing[at, f.MSG]))", "leaves, arrival)"),
    "a_gap_is_a_timeout": ("media", "repeat(E, b, next_lost, due, 0)", "repeat(E, b, next_lost, due, 1)"),
    "lost_repetitions_are_noticed": ("media", "f.GAPS and attempt == 0:", "f.GAPS:"),
    "no_backoff": ("media", '        ns *= of(E, "odds")[at, f.BACKOFF]\n', "        pass\n"),
    "tries_for_ever": (
        "media",
        "if lost and reliable and (timing[at, f.TRIES] == 0 or",
        "if lost and reliable and (True or",
    ),
    "what_follows_a_loss_overtakes": (
        "media",
        "timing[at, f.RTO] >= 0 and timing[at, f.FLAGS] & f.REORDER == 0:\n            stand_in_line",
        "False:\n            stand_in_line",
    ),
    "who_gave_up_still_holds_up": (
        "media",
        "        arrive(E, b, r, queue, now)\n\n\n@leaf\ndef begin",
        "        pass\n\n\n@leaf\ndef begin",
    ),
    "what_is_given_up_stays": (
        "media",
        "    release_slot(E, b, parcels[i, f.P_KIND], parcels[i, f.P_SLOT])\n",
        "",
    ),
    "a_cable_is_a_radio": ("servers", ' if up else of(E, "timing")[at, f.SERVER_DOWN]', ""),
    "media_are_used_from_the_start": (
        "media",
        "server[k, f.S_FREE] = server[k, f.S_PENDING] =",
        "server[k, f.S_PENDING] =",
    ),
    "growing_forgets_what_waits": ("memory", '("parcel", "parcel_size")', '("parcel",)'),
}
"""Of what waits."""
