"""The laws of endpoints in sweeps and traces bite: each fault, as it is usually written, fails the law named here."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from lab import test_external_sweeps as sweeps
from lab import test_external_traces as traces

from heron_env import make
from heron_env.errors import HeronError
from heron_env.injection import serve_policy, tally
from heron_env.lab import benchmark, external, policies
from heron_env.lab.sweep import play, results, study, sweep
from heron_env.lab.traces import recording, replaying


def served(law: Callable[..., Any]) -> Callable[[Path], Any]:
    """A law that wants an address, or a folder and an address."""

    def run(path: Path) -> None:
        with serve_policy(sweeps.middle, make(sweeps.GRID, **sweeps.OPTIONS)) as server:
            law(path, server.url) if law.__code__.co_argcount == 2 else law(server.url)

    return run


def alone(law: Callable[..., Any]) -> Callable[[Path], Any]:
    return lambda path: law(path) if law.__code__.co_argcount else law()


def in_turn(returns: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Ratings change from pair to pair within a case."""
    found = dict.fromkeys(returns, 1000.0)
    for values in zip(*returns.values(), strict=True):
        value = dict(zip(returns, values, strict=True))
        for ours in returns:
            for theirs in returns:
                if ours != theirs:
                    expected = 1.0 / (1.0 + 10.0 ** ((found[theirs] - found[ours]) / 400.0))
                    won = 0.5 * ((value[ours] > value[theirs]) + (value[ours] >= value[theirs]))
                    found[ours] += 32.0 * (won - expected)
    return found


def ways_of_their_own(original: Any) -> Any:
    return lambda item, env, lines=None: original(item, env)


def everywhere(original: Any) -> Any:
    return lambda self: [replace(item, live=False) for item in original(self)]


def floor(ordered: list[float], share: float) -> float | None:
    return ordered[math.floor(share * (len(ordered) - 1))] if ordered else None


def of_one(self: Any, policy: str, condition: Any) -> float | None:
    return None


def told_of_source(original: Any) -> Any:
    """Facts with the source of each answer."""

    def facts(episode: Any) -> Any:
        sources = {
            i: e.content["origin"] for i, e in episode.handled().items() if "origin" in getattr(e, "content", {})
        }
        return [*original(episode), replaying.Fact(2**61, (9, 9), "everybody", "sources", sources)]

    return facts


LAWS: dict[str, tuple[Any, str, Callable[[Any], Any], Callable[[Path], Any]]] = {
    "each episode has a breaker of its own": (
        play, "_policies", ways_of_their_own,
        lambda _: sweeps.test_one_breaker_holds_for_all_who_ask_at_an_address(),
    ),
    "endpoints are asked by workers": (
        study.Study, "items", everywhere,
        alone(sweeps.test_endpoints_are_asked_here_while_workers_run_the_others),
    ),
    "terms are those of the first": (
        external, "OF_THE_CLIENT", lambda _: (), served(sweeps.test_one_address_is_asked_on_one_set_of_terms),
    ),
    "silence is told of every episode": (
        play, "_tell_silence", lambda original: lambda record: (original(record), original(record)),
        alone(sweeps.test_an_endpoint_that_answers_nothing_is_said_once_and_its_rows_are_marked),
    ),
    "a stand-in is no fallback": (
        tally, "stood_in", lambda _: lambda source, code: False,
        alone(sweeps.test_rates_and_percentiles_are_those_of_all_answers),
    ),
    "a recorded failure is no fallback": (
        tally, "stood_in", lambda _: lambda source, code: source == "fallback",
        alone(sweeps.test_what_a_recording_has_a_code_of_counts_as_stood_in),
    ),
    "percentiles round down": (
        tally, "percentile", lambda _: floor,
        alone(sweeps.test_percentiles_of_several_episodes_are_those_of_all_their_calls),
    ),
    "unknown quality is bad quality": (
        results, "metrics",
        lambda original: lambda of: (found := original(of)) and replace(found, persona_consistency=0.0),
        served(sweeps.test_quality_is_null_and_so_is_a_comparison_with_nobody),
    ),
    "live runs count as repeatable": (
        tally.AnswerTally, "of",
        lambda original: lambda *of: (found := original(*of)) and found.model_copy(update={"deterministic": True}),
        served(sweeps.test_live_runs_are_not_said_to_be_identical_or_different),
    ),
    "ratings change within a case": (
        sweeps, "elo", lambda _: in_turn, alone(sweeps.test_elo_keeps_its_sum_and_knows_no_order_of_policies),
    ),
    "a tie is lost": (
        sweeps, "elo",
        lambda original: lambda returns: original({n: [v - 0.1 * (n == "a") for v in of] for n, of in returns.items()}),
        alone(sweeps.test_elo_is_elos),
    ),
    "slow ratings": (results, "ELO_K", lambda _: 16.0, alone(sweeps.test_elo_is_elos)),
    "ratings of other pairs": (
        sweep.SweepResult, "preference", lambda _: of_one,
        served(sweeps.test_ratings_and_preferences_are_of_the_same_pairs),
    ),
    "an address names an environment": (
        sweeps, "names_environment", lambda _: lambda text: "/" in text or ":" in text,
        alone(sweeps.test_a_name_that_reads_like_an_address_or_a_file_is_one),
    ),
    "addresses are told": (
        external.EndpointPolicy, "identity", lambda _: lambda self: f"endpoint {self.endpoint.url}",
        alone(sweeps.test_nothing_after_the_port_is_ever_told),
    ),
    "a file is known by its name": (
        external, "digest_of", lambda _: str, alone(sweeps.test_a_file_that_changed_is_another_policy),
    ),
    "others do nothing": (
        external, "strongest_policies", lambda _: lambda env, seed: benchmark.baselines(env, seed)["do nothing"],
        alone(sweeps.test_agents_that_a_file_does_not_name_are_played_by_the_strongest_baseline),
    ),
    "fixtures fit everywhere": (
        external, "_require_of", lambda _: lambda *of: None,
        served(sweeps.test_a_recorded_sweep_is_repeated_without_a_socket),
    ),
    "all episodes in one file": (
        policies.About, "named", lambda _: lambda self, path: Path(path),
        served(sweeps.test_a_recorded_sweep_is_repeated_without_a_socket),
    ),
    "a trace asks again": (
        recording, "record_answers", lambda _: lambda env, of, setting, path, play: play(
            of.build(env, setting.seed) if isinstance(of, policies.External) else of
        ),
        lambda path: traces.test_a_trace_of_an_endpoint_is_replayed_without_a_socket(path, ()),
    ),
    "sources are compared": (
        replaying, "facts", told_of_source,
        alone(traces.test_thinking_is_replayed_and_only_the_source_of_an_answer_differs),
    ),
    "any answers will do": (
        recording, "digest_of", lambda _: lambda files: "the same",
        alone(traces.test_answers_that_are_gone_or_of_another_episode_are_refused_with_what_differs),
    ),
    "a cut-off recording is finished": (
        recording.Recording, "close", lambda original: lambda self, finished=True: original(self),
        alone(traces.test_a_trace_that_was_cut_off_goes_on_without_asking_again),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::heron_env.errors.HeronWarning")
@pytest.mark.parametrize(("where", "name", "fault", "law"), LAWS.values(), ids=LAWS)
def test_a_planted_fault_fails_its_law(
    tmp_path: Path, where: Any, name: str, fault: Callable[[Any], Any], law: Callable[[Path], Any]
):
    planted = fault(getattr(where, name))
    with patch.object(where, name, planted), pytest.raises((AssertionError, HeronError, pytest.fail.Exception)):
        law(tmp_path)
