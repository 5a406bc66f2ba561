"""Mutants of the compiled event clock: faults in its text, each of which makes another clock."""

from laws.uncompiled import Fault

EVENT_MUTANTS: dict[str, Fault] = {
    "queues_forgotten": ("broker", "arrival = max(arrival, last[b, q])\n", ""),
    "loss_moves_others": (
        "broker",
        "        if ordered:\n",
        "        if ordered and not is_lost(E, b, r, leaves, cause, leg, number, twin):\n",
    ),
    "no_versions": ("broker", "if version <= known[b, row]:", "if False:"),
    "running_sums_are_reported": ("broker", "if total < 0 else", "if True else"),
    "old_shares_count": ("broker", "if number <= newest[b, e]:", "if False:"),
    "second_copies_count": ("clock", "if seen != 0:", "if False:"),
    "a_copy_draws_as_the_first": ("links", "DELAYS[twin]", "DELAYS[0]"),
    "delays_without_a_least": ("links", "return max(ns, timing[at, f.LEAST])", "return ns"),
    "ticks_run_away": ("links", "within(part, -0.5, 0.5)", "part"),
    "phases_in_disorder": ("broker", "0, 1, 2, 4, 5, 6, 7, 8, 9  # fmt", "0, 1, 2, 4, 5, 8, 7, 6, 9  # fmt"),
    "one_noise_a_step": ("ticks", "return turn + ((number - first) << 32)", "return turn"),
    "own_rows_of_the_proxy": ("agents", "& f.LOCAL and", "& 0 and"),
    "own_rows_of_the_boundary": (
        "agents",
        'max(of(E, "lane")[b, f.DONE], of(E, "acted")[b, r])',
        'of(E, "lane")[b, f.DONE]',
    ),
    "nothing_is_subtracted": ("agents", " - scratch[b, relative[k, 1]]", ""),
    "less_what_the_proxy_knew": ("agents", "for j in range(start[r], start[r + 1]):", "for j in range(0):"),
    "ages_forgotten": ("agents", "obs[at, j] = max(now - as_of[since, k], 0) / 1e9", "obs[at, j] = 0.0"),
    "telemetry_numbered_by_steps": (
        "physics",
        "report_all(E, b, (step + 1) * sizes[f.PER_BOUNDARY]",
        "report_all(E, b, step * sizes[f.PER_BOUNDARY]",
    ),
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
    "the_noop_too_early": (
        "agents",
        "replace_missing(D, E, b, r, number - 1, now)",
        "replace_missing(D, E, b, r, number, now)",
    ),
    "a_late_reply_is_used": ("agents", ' or number <= of(E, "decided")[b, r]:', ":"),
    "a_late_command_is_obeyed": ("agents", ' and number > of(E, "decided")[b, r]:', ":"),
    "effects_overtake": ("agents", "last[b, r] = max(later(now, after), last[b, r])", "last[b, r] = later(now, after)"),
    "the_ended_act": (
        "agents",
        "        lane[b, f.CANCELLED] += 1\n        return 0\n",
        "        lane[b, f.CANCELLED] += 1\n",
    ),
    "shares_without_bounds": ("decision_kernels", "limits[LEAST, e], limits[MOST, e])", "-1e300, 1e300)"),
    "nobody_is_awaited": (
        "agents",
        "        if alive[b, place[giver]] == 0:\n            return False\n",
        "        pass\n",
    ),
    "effects_do_not_wait": ("clock", "f.ANSWERED] == 0 and", "f.ANSWERED] == 2 and"),
    "rewards_of_one_step": ("physics", "decider[at, f.STEPS] += 1", "decider[at, f.STEPS] = 1"),
    "the_last_effects_are_not_told": ("clock", "lane[b, f.UNFINISHED] += 1", "pass"),
    "chains_stand_still": (
        "links",
        "    for j in range(k + 1, wanted + 1):\n",
        "    for j in range(k + 1, k + 1):\n",
    ),
    "records_never_end": ("links", "sent % sources[source, f.PERIOD]", "sent"),
    "losses_of_the_other_state": ("links", "f.LEVELS] + 3 ", "f.LEVELS] + 2 "),
    "twins_share_samples": ("links", "SAMPLES[twin]", "SAMPLES[0]"),
    "rewards_undiscounted": ("physics", "            earned[at, f.DISCOUNT] *= gamma[f.GAMMA]\n", ""),
    "the_last_signal_alone": ("physics", "earned[at, f.EARNED_TRAINING] +=", "earned[at, f.EARNED_TRAINING] ="),
    "a_noop_undoes_what_fell_before": ("physics", "f.LAST_EFFECT] >= decider", "f.LAST_EFFECT] == decider"),
    "all_ends_alike": ("physics", '2 * of(E, "how")[b, r] + 8', "2 + 8"),
    "ends_looked_at_too_early": ("physics", "push(E, b, now, REWARD_PHASE,", "push(E, b, now, PHYSICS_PHASE,"),
    "masks_of_the_truth": (
        "agents",
        'seen[first[r] + j]] = of(E, "view")[s, j]',
        'seen[first[r] + j]] = table(D, "truth")[b, seen[first[r] + j]]',
    ),
    "one_copy_is_enough": ("broker", "acquire_report(E, b, arrivals,", "acquire_report(E, b, 1,"),
    "copies_stay_for_ever": ("clock", "        release_report(E, b, record)\n", ""),
    "decisions_stay_for_ever": (
        "clock",
        "f.STATUS] = f.RUN\n        release_view(E, b, slot)\n",
        "f.STATUS] = f.RUN\n",
    ),
    "lost_replies_stay_for_ever": ("agents", "        release_view(E, b, slot)\n        return\n", "        return\n"),
    "growing_forgets": ("memory", "new[:, :before] = old.reshape(self.lanes, before, -1)", "new[:, :0] = 0"),
    "growing_drops_what_was_free": ("memory", "slots[:, -1, f.CHAIN] = lane[:, first]", "slots[:, -1, f.CHAIN] = 0"),
    "growing_counts_twice": ("memory", "lane[:, first + 1] += before", "lane[:, first + 1] += 2 * before"),
    "notes_are_overwritten": ("event_lanes", "log[b, : lane[b, f.LOG]].copy()", "log[b, : lane[b, f.LOG]]"),
    "a_lane_begins_with_old_chains": ("clock", 'of(E, "chain_last")[b, k] = NONE', "pass"),
}

GOING_ON_MUTANTS: dict[str, Fault] = {
    "ends_before_their_decisions": ("clock", " and decider[at, f.ASKED] < 0)", ")"),
    "ends_of_the_episode_before_forgotten": ("clock", "        store_old_end(E, at)\n", "        pass\n"),
    "ends_of_the_episode_before_overwritten": ("clock", "[2 * at + old, j]", "[2 * at, j]"),
    "ends_of_what_nobody_was_asked": ("clock", "if decider[at, f.ASKED] < 0:  # else", "if True:  # else"),
    "one_network_for_all_episodes": ("event_lanes", "int(self.steps.episodes[lane]))", "0)"),
    "everyone_has_the_first_network": (
        "event_lanes",
        "self.arrays[name][lane * ranks : (lane + 1) * ranks] = table",
        "self.arrays[name][:ranks] = table",
    ),
}
"""Those that only show where a lane's next episode begins."""

LATE_MUTANTS: dict[str, Fault] = {
    "sums_run_over": ("broker", "return np.int64(NEVER) if delay > NEVER - ns else ns + delay", "return ns + delay"),
    "what_is_under_way_is_forgotten": ("memory", "= old[lanes, number % before]", "= 0.0"),
    "what_is_under_way_is_overwritten": ("clock", "        short |= f.RING_SHORT\n", "        pass\n"),
}
"""Those that only show where the news of many boundaries is under way, or time ends before it comes."""
