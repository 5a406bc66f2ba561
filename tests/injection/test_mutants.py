"""The laws of the injection room bite: each fault, as it is usually written, is caught by the law named here."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from injection import test_answers, test_comparing, test_contract, test_fixtures, test_policy, test_privacy
from pydantic import ValidationError

from heron_env.errors import HeronError
from heron_env.injection import (
    comparing,
    contract,
    policy,
    questions,
    recording,
    setting,
)

Fault = Callable[[Any], Any]
"""Of an original: what takes its place."""


def seed_in_the_label(original: Any) -> Any:
    """An id that tells the seed: the question's seed is hashed with it."""

    def request(self: Any, asked: Any) -> Any:
        told = original(self, asked)
        return told.model_copy(update={"message_id": setting.uuid8(setting.canonical([told.message_id, asked.seed]))})

    return request


def after(change: Callable[[Any], Any]) -> Fault:
    """What it returns, changed."""
    return lambda original: lambda *given, **named: change(original(*given, **named))


def constant(value: Any) -> Fault:
    """It returns this, whatever it gets."""
    return lambda original: lambda *_, **__: value


def truthy(self: Any, given: Any, mask: Any) -> Any:
    """Whatever equals a whole number is one."""
    if given != int(given) or not 0 <= given < self.n[0]:
        raise contract.Illegal
    return int(given)


def folder(law: Callable[..., Any], *more: Any) -> Callable[[Path], Any]:
    """A law that wants a folder."""
    return lambda path: law(path, *more)


def alone(law: Callable[..., Any], *given: Any) -> Callable[[Path], Any]:
    """A law that wants none."""
    return lambda _: law(*given)


IDLE = {"action": [0.5]}
CASES: dict[str, tuple[Any, str, Fault, Callable[[Path], Any]]] = {
    "the seed is hashed into an id": (
        questions.Questions, "request", seed_in_the_label, alone(test_privacy.test_no_function_of_the_seed_is_told),
    ),
    "others are named in basic": (
        questions, "is_of_another", constant(False),
        alone(test_privacy.test_basic_is_told_its_own_names_traits_and_neighbours),
    ),
    "minimal keeps names": (
        questions.Aliases, "of", lambda original: lambda self, agent: agent,
        alone(test_privacy.test_minimal_is_told_no_name_and_no_trait),
    ),
    "hashes have no key": (
        questions.Telling, "of_a_run", lambda original: lambda self: self,
        alone(test_privacy.test_no_id_and_no_hash_of_minimal_is_found_by_guessing),
    ),
    "a recording goes on under another key": (
        recording.Header, "resumed", lambda original: lambda self, before: self,
        folder(test_fixtures.test_a_recording_that_was_cut_off_is_continued, "in a line", "minimal"),
    ),
    "texts are not redacted": (
        questions, "redacted", lambda original: lambda text: text,
        alone(test_privacy.test_redaction_covers_all_text, "letter"),
    ),
    "every long number is a card": (
        questions, "_luhn", constant(True), alone(test_privacy.test_other_text_stays, "4111 1111 1111 1112"),
    ),
    "pseudonyms go on": (
        questions.Aliases, "begin", constant(None), alone(test_privacy.test_pseudonyms_begin_anew_with_each_episode),
    ),
    "the attempt is not in the id": (
        setting.Ids, "_of", lambda original: lambda self, *parts: original(self, *parts[:3]),
        alone(test_contract.test_ids_are_those_of_the_table),
    ),
    "a UUID of version 4": (
        setting, "uuid8", after(lambda text: text[:14] + "4" + text[15:]),
        alone(test_contract.test_every_field_of_the_specification_is_there_and_no_other),
    ),
    "1.0 is a choice": (
        contract.Wire, "_choices", lambda original: truthy,
        alone(test_answers.test_what_is_no_action_is_an_invalid_action, test_answers.ONE, 1.0),
    ),
    "masks are not read": (
        contract.Wire, "masks", constant(None),
        alone(test_answers.test_a_forbidden_choice_is_none_but_the_no_op_may_always_fall),
    ),
    "numbers are always clipped": (
        contract.Wire, "_numbers", lambda original: lambda self, given, clip: original(self, given, True),
        alone(test_answers.test_what_is_no_action_is_an_invalid_action, test_answers.BOX, [-1.1, 0.1]),
    ),
    "letters to anybody": (
        questions.Aliases, "real", constant("zone_1"),
        alone(test_answers.test_each_answer_has_its_code, {**IDLE, "letters": [{"receiver": "x"}]}, "INVALID_RESPONSE"),
    ),
    "one after another": (
        policy.ExternalPolicy, "answer_all",
        lambda original: lambda self, asked: [original(self, [one])[0] for one in asked],
        alone(test_policy.test_questions_of_one_instant_are_under_way_together, 0.1),
    ),
    "draws are not keyed by the number": (
        policy, "draw_of", lambda original: lambda *parts: original(*parts[:-1], 0),
        alone(test_policy.test_without_a_policy_of_its_own_a_simulated_agent_draws_what_is_allowed_keyed_by_its_question),
    ),
    "the local policy is not copied": (
        policy, "_own_copy", lambda original: lambda policy: policy,
        alone(test_policy.test_a_local_policy_stands_in_whatever_its_form),
    ),
    "thinking is drawn anew": (
        policy, "key", lambda original: lambda *_: np.random.SeedSequence().entropy & (2**64 - 1),
        alone(test_policy.test_thinking_is_ignored_drawn_by_key_or_measured),
    ),
    "replays compare nothing": (
        recording, "require_same", constant(None),
        folder(test_fixtures.test_the_first_difference_of_a_request_is_named, {"time": 3.5}, "time_s"),
    ),
    "float32 in the fixture": (
        policy.Consulted, "answer", lambda original: lambda self, *given, replayed=False: original(
            self.model_copy(update={"action": np.float32(self.action).tolist()}) if replayed else self, *given, replayed
        ),
        folder(test_fixtures.test_recorded_decisions_are_replayed_bit_for_bit_without_a_socket),
    ),
    "asked again under one id": (
        questions.Questions, "where", lambda original: lambda self, asked: (asked.episode, asked.agent, asked.number),
        folder(test_fixtures.test_what_is_asked_again_under_its_number_is_recorded_too),
    ),
    "a fixture is asked in any order": (
        comparing, "groupby", lambda original: lambda asked, key: [(0, reversed([*asked]))],
        folder(test_comparing.test_the_recorded_requests_are_sent_as_they_are_in_their_order, "full"),
    ),
    "failures agree": (
        comparing._Question, "point", lambda original: lambda self, outcome: original(
            self, outcome if outcome.value else replace(outcome, value=(self.baseline, ""))
        ),
        folder(test_comparing.test_what_an_endpoint_fails_at_is_counted_and_the_rest_is_compared),
    ),
    "what stood in is compared": (
        comparing, "CLIPPED", lambda original: "INTERNAL",
        folder(test_comparing.test_where_something_stood_in_for_the_recorded_agent_nothing_is_compared),
    ),
    "distances are no shares": (
        comparing, "apart", lambda original: lambda wire, one, other: abs(wire.flat(one) - wire.flat(other)),
        folder(test_comparing.test_figures_are_by_agent_and_by_decision),
    ),
    "masks are not compared under": (
        comparing, "action_in", lambda original: lambda response, agent, wire, mask: original(
            response, agent, wire, None
        ),
        folder(test_comparing.test_choices_are_compared_under_their_masks),
    ),
    "torn lines stay": (
        recording.Journal, "truncate", constant(None),
        folder(test_fixtures.test_a_recording_that_was_cut_off_is_continued, "in a line", "basic"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", CASES)
def test_a_planted_fault_is_caught_by_its_law(fault: str, tmp_path: Path):
    owner, name, replacement, law = CASES[fault]
    with (
        patch.object(owner, name, replacement(getattr(owner, name))),
        pytest.raises((AssertionError, HeronError, pytest.fail.Exception, ValidationError)),
    ):
        law(tmp_path)
