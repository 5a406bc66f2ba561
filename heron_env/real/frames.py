"""Frames: what stands on the network between a hub and a node, sealed with a key of one run, node and direction.

A frame is version (1 byte), node (2), number (8, from 1, big-endian), payload, tag (16): the first bytes of
HMAC-SHA256 over all before it. Its contents are authentic, not secret. The numbers keep out what was sent before: the
window is that of RFC 4303, section 3.4.3. A frame that comes a second time is a copy, as networks make them, and a
third is refused; so nobody on the way can do more than lose, delay or double what was sent.
"""

from __future__ import annotations

import hmac
import struct
from typing import Final, NamedTuple

from heron_env.errors import ConfigError

VERSION: Final = 1
"""Of frames and of the handshake."""
LARGEST: Final = 65_536
"""Bytes of a frame."""
TAG: Final = 16
WINDOW: Final = 1_024
"""Numbers, the highest among them, of which an opener knows how often they came."""

_HEAD: Final = struct.Struct(">BHQ")
OVERHEAD: Final = _HEAD.size + TAG
"""Bytes of a frame beside its payload."""
_ALL: Final = (1 << WINDOW) - 1


class Opened(NamedTuple):
    """A frame's number and payload. `copy`: it has come once before."""

    number: int
    payload: bytes
    copy: bool


class Rejected(NamedTuple):
    """Why something from the network does not count: one of few texts, so that they can be counted."""

    reason: str


def node_of(frame: bytes) -> int | None:
    """The index of the node that a frame claims to be of or for: nothing is proved. None: it is no frame."""
    if not OVERHEAD <= len(frame) <= LARGEST or frame[0] != VERSION:
        return None
    return int(_HEAD.unpack_from(frame)[1])


class Sealer:
    """Seals what one side sends with one of `handshake.RunKeys`; numbers are used once, so each key has one sealer.

    `node`: the node's index, whichever side sends.
    """

    def __init__(self, key: bytes, node: int) -> None:
        self._key, self._node, self._number = key, node, 0

    def seal(self, payload: bytes) -> bytes:
        """The next frame. Raises ConfigError for a payload with which it would be larger than 64 kB."""
        if len(payload) > LARGEST - OVERHEAD:
            raise ConfigError(
                f"a message of {len(payload):,} bytes: {LARGEST - OVERHEAD:,} at most; let agents say less"
            )
        self._number += 1
        body = _HEAD.pack(VERSION, self._node, self._number) + payload
        return body + hmac.digest(self._key, body, "sha256")[:TAG]


class Opener:
    """Opens what the other side sealed, in constant memory: of each number of the window, did it come once, twice?

    `key`, `node`: the sealer's.
    """

    def __init__(self, key: bytes, node: int) -> None:
        self._key, self._node = key, node
        # Bit i stands for the number `highest - i`. There is no number 0: it counts as having come twice.
        self._highest, self._once, self._twice = 0, 1, 1

    def open(self, frame: bytes) -> Opened | Rejected:
        """What the frame holds, or why it does not count. Never raises."""
        if not OVERHEAD <= len(frame) <= LARGEST:
            return Rejected("no frame")
        body = frame[:-TAG]
        if not hmac.compare_digest(hmac.digest(self._key, body, "sha256")[:TAG], frame[-TAG:]):
            return Rejected("not authentic")
        version, node, number = _HEAD.unpack_from(body)
        if (version, node) != (VERSION, self._node):
            return Rejected("another version or node")
        ahead = min(number - self._highest, WINDOW)  # a shift by more leaves no bit either, and would take memory
        if ahead <= -WINDOW:
            return Rejected("too old")
        if ahead > 0:
            self._highest, self._once, self._twice = number, self._once << ahead & _ALL, self._twice << ahead & _ALL
        bit = 1 << max(-ahead, 0)
        if self._twice & bit:
            return Rejected("replayed")
        self._twice |= self._once & bit
        self._once |= bit
        return Opened(number, body[_HEAD.size :], bool(self._twice & bit))
