"""A journal loses nothing: half a last line is dropped, all other damage is named and left as it is."""

import json
from pathlib import Path

import pytest

from heron_env.errors import RunFolderError
from heron_env.net.guard import Guard
from heron_env.serve.journal import Injection, NewSimulation, Operation, OperationJournal, Removal, Reset, Steps
from heron_env.serve.shelf import Shelf

FORMS = (
    Steps(steps=2, actions={"battery_1": [0.25]}),
    Injection(agent_id="battery_1", endpoint_url="http://127.0.0.1:9/"),
    Removal(agent_id="battery_1"),
    Reset(seed=4),
)
OLD = (
    b'{"verb":"step","given":{"steps":2,"actions":{"battery_1":[0.25]}},"digest":"0"}\n'
    b'{"verb":"inject","given":{"agent_id":"battery_1","endpoint_url":"http://127.0.0.1:9/","api_key_env":null,'
    b'"timeout_seconds":30.0,"privacy_tier":"basic","fallback_to_simulated":false},"digest":"1"}\n'
    b'{"verb":"remove","given":{"agent_id":"battery_1"},"digest":"2"}\n'
    b'{"verb":"reset","given":{"seed":null},"digest":"3"}\n'
)
"""As version 0.1.0 wrote it."""


@pytest.fixture
def journal(tmp_path: Path) -> OperationJournal:
    return OperationJournal(tmp_path / "journal.jsonl")


def written(journal: OperationJournal, lines: int = len(FORMS)) -> bytes:
    for number, form in enumerate(FORMS[:lines], start=1):
        journal.add(Operation.of(number, form, f"{number}"))
    return journal.path.read_bytes()


def refused(journal: OperationJournal, words: str) -> None:
    before = journal.path.read_bytes()
    with pytest.raises(RunFolderError, match=words):
        journal.operations()
    assert journal.path.read_bytes() == before


def test_what_is_written_is_read(journal: OperationJournal):
    assert journal.operations() == []
    written(journal)
    assert [operation.form for operation in journal.operations()] == list(FORMS)
    assert [operation.number for operation in journal.operations()] == [1, 2, 3, 4]


def test_killed_after_any_byte_a_journal_holds_every_operation_whose_client_was_told(journal: OperationJournal):
    whole = written(journal, 2)
    first = whole.index(b"\n") + 1
    for length in range(first, len(whole) + 1):
        journal.path.write_bytes(whole[:length])
        done = journal.operations()
        assert len(done) == (2 if length >= len(whole) - 1 else 1)  # all of it but the newline is all of it
        assert journal.path.read_bytes() == (whole if len(done) == 2 else whole[:first])


@pytest.mark.parametrize("lines", [1, 3])
@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_newline_cuts_nothing(journal: OperationJournal, lines: int, bit: int):
    data = bytearray(written(journal, lines))
    for place in (at for at, byte in enumerate(bytes(data)) if byte == 10):
        data[place] ^= 1 << bit
        journal.path.write_bytes(data)
        refused(journal, r"journal\.jsonl:\d: damaged")
        data[place] ^= 1 << bit


@pytest.mark.parametrize("text", [b"what somebody else wrote", b"{}", b'{"number"', b"\0" * 40, b"[\n1"])
def test_what_is_none_of_our_lines_is_not_cut(journal: OperationJournal, text: bytes):
    journal.path.write_bytes(text)
    if text == b'{"number"':  # as ours begin
        assert journal.operations() == [] and journal.path.read_bytes() == b""
    else:
        refused(journal, r"journal\.jsonl:1: damaged")


def test_a_link_is_no_journal(journal: OperationJournal, tmp_path: Path):
    other = tmp_path / "other"
    journal.path.symlink_to(other)
    with pytest.raises(RunFolderError, match="it is a link; put the file itself there"):  # which leads nowhere
        journal.operations()
    other.write_bytes(b'{"number":1,"ver')
    refused(journal, "it is a link")


def test_lines_that_are_missing_or_too_many_are_found_out(journal: OperationJournal):
    lines = written(journal).splitlines(keepends=True)
    for wrong in (lines[1:], [*lines[:1], *lines[2:]], [lines[0], *lines], [lines[1], lines[0]]):
        journal.path.write_bytes(b"".join(wrong))
        refused(journal, r"it says that it is number \d, so lines are missing, or too many")


def test_a_journal_of_0_1_0_is_read_and_gone_on_with(journal: OperationJournal):
    journal.path.write_bytes(OLD)
    forms = [operation.form for operation in journal.operations()]
    assert forms == [FORMS[0], Injection(agent_id="battery_1", endpoint_url="http://127.0.0.1:9/", fallback="skip"),
                     FORMS[2], Reset()]  # fmt: skip
    journal.add(Operation.of(5, Steps(), "4"))
    assert [operation.number for operation in journal.operations()] == [None] * 4 + [5]
    journal.path.write_bytes(journal.path.read_bytes() + OLD.splitlines(keepends=True)[0])
    refused(journal, r":6: damaged, it has no number, and the line before has one")


WRONG = [
    ({"given": {"steps": "3"}}, r"steps='3': Input should be a valid integer"),
    ({"given": {"steps": 0}}, "steps: Input should be greater"),
    ({"given": {"more": 1}}, "more: Extra inputs"),
    ({"given": []}, "given: Input should be a valid dictionary"),
    ({"given": {"actions": {"battery_1": ["\ud800"]}}}, "surrogate"),
    ({"verb": "remove", "given": {}}, "agent_id: Field required"),
    ({"verb": "remove", "given": {"agent_id": 3}}, "agent_id: Input should be a valid string"),
    ({"verb": "jump"}, "verb='jump'"),
    ({"number": True}, "number=True"),
    ({"verb": "remove", "given": {"agent_id": "battery_1"}}, "can't be done again: agent 'battery_1' is not injected"),
    ({"given": {"actions": {"battery_9": [0.0]}}}, "can't be done again: .*battery_9"),
    ({"given": {"actions": {"battery_1": [9e99]}}}, "can't be done again: .*battery_1"),
    ({"verb": "inject", "given": FORMS[1].model_dump()}, "can't be done again: endpoint_url: .*--allow"),
    ({"given": {"steps": 3}}, "its repetition gives another result"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), WRONG)
def test_a_whole_line_that_was_changed_is_named_as_damage(tmp_path: Path, change: dict[str, object], words: str):
    options = {"num_batteries": 2, "max_steps": 12}
    shelf = Shelf(tmp_path, guard=Guard())
    _, made = shelf.create(NewSimulation(env="heron/BatteryGrid-v0", options=options, seed=3))
    made.do(Steps())
    made.do(Steps(steps=2))
    shelf.close()
    path = tmp_path / "1" / "journal.jsonl"
    first, second = path.read_bytes().splitlines()
    path.write_bytes(first + b"\n" + json.dumps(json.loads(second) | change).encode() + b"\n")
    before = path.read_bytes()
    again = Shelf(tmp_path, guard=Guard())
    for _ in range(2):
        with pytest.raises(RunFolderError, match=rf"journal\.jsonl:2: .*{words}"):
            again.find("1").state()
    assert path.read_bytes() == before
    again.close()
