"""Frames: what was sealed is opened, once and as a copy once more; nothing else ever is, whatever comes."""

import hmac
import struct
import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from heron_env.errors import ConfigError
from heron_env.real.frames import LARGEST, WINDOW, Opened, Opener, Rejected, Sealer, node_of
from heron_env.real.handshake import HubOpening, NodeOpening, RunKeys
from heron_env.seeding import stream

KEY = bytes(range(32))
HEAD, TAG = 11, 16


def frame(number: int, payload: bytes = b"", *, key: bytes = KEY, node: int = 3, version: int = 1) -> bytes:
    """A frame, written anew from its definition."""
    body = struct.pack(">BHQ", version, node, number) + payload
    return body + hmac.new(key, body, "sha256").digest()[:TAG]


def test_a_frame_is_what_its_definition_says():
    sealer = Sealer(KEY, 3)
    for number, payload in enumerate([b"", b"\0", b"a reading", bytes(1_173)], start=1):
        assert sealer.seal(payload) == frame(number, payload)


@pytest.mark.parametrize("node", [0, 1, 65_535])
def test_a_payload_comes_as_it_was_sealed(node: int):
    sealer, opener = Sealer(KEY, node), Opener(KEY, node)
    for number, size in enumerate([0, 1, 1_173, LARGEST - HEAD - TAG], start=1):
        sealed, payload = sealer.seal(bytes(size)), bytes(size)
        assert node_of(sealed) == node
        assert opener.open(sealed) == Opened(number, payload, copy=False)


def test_what_is_too_large_for_a_frame_is_refused_by_its_sender_and_takes_no_number():
    sealer = Sealer(KEY, 3)
    with refuses(ConfigError, "a message of 65,510 bytes: 65,509 at most; let agents say less"):
        sealer.seal(bytes(65_510))
    assert sealer.seal(b"") == frame(1)


def test_the_node_of_a_frame_is_read_before_anything_is_proved():
    sealed = frame(1, b"a reading")
    assert node_of(sealed[:-1] + b"?") == 3
    cut, long = sealed[: HEAD + TAG - 1], bytes([1]) + bytes(LARGEST)
    assert [node_of(data) for data in (b"", cut, frame(1, version=2), long)] == [None] * 4


def test_a_second_time_is_a_copy_and_a_third_is_refused():
    opener = Opener(KEY, 3)
    sealed = frame(1, b"a reading")
    assert opener.open(sealed) == Opened(1, b"a reading", copy=False)
    assert opener.open(frame(2)) == Opened(2, b"", copy=False)
    assert opener.open(sealed) == Opened(1, b"a reading", copy=True)
    assert [opener.open(sealed) for _ in range(3)] == [Rejected("replayed")] * 3


@pytest.mark.parametrize("highest", [WINDOW, 5_000, 2**64 - 1])
def test_the_window_has_1024_numbers(highest: int):
    oldest = highest - WINDOW + 1
    for late, outcome in ((oldest, Opened(oldest, b"", copy=False)), (oldest - 1, Rejected("too old"))):
        opener = Opener(KEY, 3)
        assert isinstance(opener.open(frame(highest)), Opened)
        assert opener.open(frame(late)) == outcome


def test_there_is_no_number_0():
    opener = Opener(KEY, 3)
    assert opener.open(frame(0)) == Rejected("replayed")
    assert opener.open(frame(1)) == Opened(1, b"", copy=False)
    assert opener.open(frame(0)) == Rejected("replayed")


class PlainWindow:
    """The law of the window with all numbers that ever came."""

    def __init__(self) -> None:
        self.times = Counter({0: 2})

    def fate(self, number: int) -> bool | str:
        """Is it a copy? Or why it is refused."""
        if number <= max(self.times) - 1_024:
            return "too old"
        self.times[number] += 1
        return self.times[number] > 1 if self.times[number] < 3 else "replayed"


def fates(numbers: list[int]) -> list[bool | str]:
    opener = Opener(KEY, 3)
    results = [opener.open(frame(number)) for number in numbers]
    return [result.copy if isinstance(result, Opened) else result.reason for result in results]


def plain_fates(numbers: list[int]) -> list[bool | str]:
    window = PlainWindow()
    return [window.fate(number) for number in numbers]


AT_EDGES = st.builds(int.__add__, st.sampled_from([1, 500, 1_024, 2_047, 2_048, 9_000, 2**63]), st.integers(-1, 2))


@pytest.mark.draw
@given(st.lists(AT_EDGES | st.integers(0, 1_100), max_size=60))
def test_the_window_decides_as_a_set_of_all_numbers_would(numbers: list[int]):
    assert fates(numbers) == plain_fates(numbers)


def test_and_so_in_a_long_run_with_losses_copies_and_late_frames():
    random = stream(49, "window")
    sent = np.arange(3_000).repeat(random.choice([0, 1, 2, 3], 3_000, p=[0.1, 0.6, 0.2, 0.1]))
    late = random.exponential(20, sent.size) + 1_000 * (random.random(sent.size) < 0.1)
    numbers = (1 + sent[np.argsort(sent + late, kind="stable")]).tolist()
    expected = plain_fates(numbers)
    assert fates(numbers) == expected
    assert min(Counter(expected)[fate] for fate in (False, True, "replayed", "too old")) > 20


def agreed(node: str, secret: bytes = KEY) -> RunKeys:
    """The keys of a connection, by the handshake itself."""
    hub, opening = HubOpening(secret, bytes(16)), NodeOpening(secret, node, ["battery_1"])
    claim = hub.read(opening.claim(hub.challenge))
    assert not isinstance(claim, Rejected)
    return hub.welcome(claim, 3)[1]


class Forger:
    """Somebody on the way, who knows all that was ever sent, and keys of every other purpose."""

    def __init__(self, honest: list[bytes], keys: RunKeys) -> None:
        self.random, self.honest = stream(49, "forger"), honest
        foreign = [agreed("node_1"), agreed("node_2"), agreed("node_1", bytes(32))]
        self.keys = [keys.bus_up, keys.bus_down, keys.net_down, bytes(32), b""]
        self.keys += [key for each in foreign for key in vars(each).values()]

    def frames(self, rounds: int) -> Iterator[bytes]:
        """So many of each kind, and some more; none is one that the key of node 3's network, upwards, has sealed."""
        yield from (b"", bytes(LARGEST + 1), self.honest[0] + bytes(LARGEST), frame(1, bytes(LARGEST)))
        for at in range(8 * len(self.honest[0])):
            yield self.flipped(self.honest[0], at)
        for _ in range(rounds):
            at = self.integer(len(self.honest))
            sealed, another = self.honest[at], self.honest[at - 1]
            body, cut = sealed[:-TAG], self.integer(len(sealed))
            yield self.random.bytes(self.integer(200))
            yield sealed[:HEAD] + self.random.bytes(self.integer(200))
            yield sealed[:cut]
            yield sealed[cut + 1 :]
            yield sealed + self.random.bytes(1 + self.integer(20))
            yield self.flipped(sealed, self.integer(8 * len(sealed)))
            yield sealed[:1] + b"\0\4" + sealed[3:]
            yield another[:HEAD] + sealed[HEAD:]
            yield body + another[-TAG:]
            key = self.keys[self.integer(len(self.keys))]
            yield frame(1 + self.integer(5_000), body[HEAD:], key=key)
            yield body + hmac.digest(key, body, "sha256")[:TAG]

    def flipped(self, sealed: bytes, bit: int) -> bytes:
        """With one bit turned."""
        data = bytearray(sealed)
        data[bit // 8] ^= 1 << bit % 8
        return bytes(data)

    def integer(self, end: int) -> int:
        return int(self.random.integers(end))


def test_of_20_000_forged_frames_none_is_opened_and_honest_ones_among_them_are():
    keys = agreed("node_1")
    sealer, opener = Sealer(keys.net_up, 3), Opener(keys.net_up, 3)
    honest = [sealer.seal(f"reading {number}".encode()) for number in range(4_000)]
    forger = Forger(honest[:2_000], keys)
    reasons, sizes, rest = Counter[str](), set[int](), iter(enumerate(honest, start=1))
    for count, forged in enumerate(forger.frames(2_000)):
        node_of(forged)
        result = opener.open(forged)
        assert isinstance(result, Rejected)
        reasons[result.reason] += 1
        if count % 6 == 0 and (following := next(rest, None)):
            number, sealed = following
            first, second, *more = (opener.open(sealed) for _ in range(4))
            assert first == Opened(number, f"reading {number - 1}".encode(), copy=False)
            assert second == Opened(number, f"reading {number - 1}".encode(), copy=True)
            assert more == [Rejected("replayed")] * 2
            if number > WINDOW:
                sizes.add(sum(map(sys.getsizeof, vars(opener).values())))
                assert opener.open(honest[number - 1 - WINDOW]) == Rejected("too old")
    assert sum(reasons.values()) > 20_000 and set(reasons) == {"no frame", "not authentic"}
    assert len(sizes) == 1 and sizes.pop() < 1_000


@pytest.mark.parametrize("body", [b"", b"\1\0\3", frame(1)[: HEAD - 1], frame(1, bytes(LARGEST))[:-TAG]], ids=len)
def test_what_is_too_short_or_long_for_a_frame_is_none_even_with_the_key(body: bytes):
    assert Opener(KEY, 3).open(body + hmac.digest(KEY, body, "sha256")[:TAG]) == Rejected("no frame")


def test_a_frame_with_the_key_but_of_another_node_or_version_is_refused():
    opener = Opener(KEY, 3)
    for other in (frame(1, node=4), frame(1, version=2)):
        assert opener.open(other) == Rejected("another version or node")
    assert opener.open(frame(1)) == Opened(1, b"", copy=False)


def test_the_repr_of_who_has_a_key_does_not_show_it():
    for owner in (Sealer(KEY, 3), Opener(KEY, 3), agreed("node_1")):
        assert not any(key in f"{owner!r} {owner}" for key in (repr(KEY)[2:20], KEY.hex()[:16], "\\x"))
