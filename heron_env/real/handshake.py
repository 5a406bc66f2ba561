"""How a bus opens: hub and node prove to each other that they have the secret, and agree on the connection's keys.

The hub sends a `Challenge`, the node a `Claim`, the hub a `Welcome`. A proof is HMAC-SHA256 over its sender's role and
all that was said before, so that none is of use in another connection, for another node, or sent back. Keys are
HKDF-SHA256 (RFC 5869) of the secret, salted with the run and both nonces. Nothing here waits or sends, and nothing
that the other side sends raises.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, TypeVar

from msgspec import Meta, MsgspecError, Struct, msgpack, structs

from heron_env.errors import ConfigError
from heron_env.real.frames import VERSION, Rejected

LONGEST_NAME: Final = 200
"""Letters of a node's or an agent's name, and of a digest."""
MOST_AGENTS: Final = 1_000
# A port on loopback is open to all users of the machine: zeros keep out accidents, such as another run, not people.
NO_SECRET: Final = bytes(32)

T = TypeVar("T", bound="Versioned")
Run = Annotated[bytes, Meta(min_length=16, max_length=16)]
Bytes32 = Annotated[bytes, Meta(min_length=32, max_length=32)]
Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
Digest = Annotated[str, Meta(max_length=LONGEST_NAME)]


class Versioned(Struct, frozen=True):
    """What every version of the three messages has. A version is a byte, so that reasons of rejection stay few."""

    version: Annotated[int, Meta(ge=0, le=255)]


class Challenge(Versioned, frozen=True, forbid_unknown_fields=True):
    """The hub's first word to whoever connects."""

    run: Run
    nonce: Bytes32


class Claim(Versioned, frozen=True, forbid_unknown_fields=True):
    """A node's answer: it acts for these agents, with policies and an environment of these digests ("": none)."""

    run: Run
    node: Name
    agents: Annotated[list[Name], Meta(min_length=1, max_length=MOST_AGENTS)]
    policy: Digest
    environment: Digest
    nonce: Bytes32
    proof: Bytes32


class Welcome(Versioned, frozen=True, forbid_unknown_fields=True):
    """The hub's answer to a claim that it accepts; all else follows in sealed frames."""

    index: Annotated[int, Meta(ge=0, le=0xFFFF)]
    proof: Bytes32


@dataclass(frozen=True, repr=False)
class RunKeys:
    """The keys of a connection, 32 bytes each; up is from node to hub."""

    bus_up: bytes
    bus_down: bytes
    net_up: bytes
    net_down: bytes


class HubOpening:
    """The hub's side of one connection: it sends `challenge`, and `welcome` for a claim that `read` returns.

    `secret`: 32 bytes; None: none, on loopback. `run`: 16 random bytes, the same for all connections of a run.
    """

    def __init__(self, secret: bytes | None, run: bytes) -> None:
        self._secret = NO_SECRET if secret is None else secret
        self._challenge = Challenge(VERSION, run, os.urandom(32))
        self.challenge: Final = msgpack.encode(self._challenge)

    def read(self, data: bytes) -> Claim | Rejected:
        """The claim of a node that has the secret. Whether its agents are free, and digests right, is to be checked."""
        claim = _decoded(data, Claim, "hub")
        if isinstance(claim, Rejected):
            return claim
        if claim.run != self._challenge.run:
            return Rejected("not this run")
        if len(set(claim.agents)) < len(claim.agents):
            return Rejected("an agent twice")
        proof = _proof(self._secret, "node", self._challenge, claim)
        return claim if hmac.compare_digest(proof, claim.proof) else Rejected("wrong secret")

    def welcome(self, claim: Claim, index: int) -> tuple[bytes, RunKeys]:
        """What to send to the claim's node, and the keys from then on. `index`: 0 to 65,535, of one node of the run."""
        proof = _proof(self._secret, "hub", self._challenge, claim, index)
        return msgpack.encode(Welcome(VERSION, index, proof)), _keys(self._secret, self._challenge, claim, index)


class NodeOpening:
    """A node's side: it sends what `claim` returns for the challenge, and has index and keys once it has `read`.

    `node` is its name, `agents` those it acts for; `policy` and `environment` are digests. Raises ConfigError for names
    that are empty, too long, too many or twice.
    """

    def __init__(
        self, secret: bytes | None, node: str, agents: Sequence[str], *, policy: str = "", environment: str = ""
    ) -> None:
        if not all(1 <= len(name) <= LONGEST_NAME for name in (node, *agents)):
            raise ConfigError(f"node={node!r}: it and each of its agents needs a name of 1 to {LONGEST_NAME} letters")
        if not 1 <= len(set(agents)) == len(agents) <= MOST_AGENTS:
            raise ConfigError(f"node={node!r}: it has {len(agents):,} agents; name 1 to {MOST_AGENTS:,}, each once")
        self._secret = NO_SECRET if secret is None else secret
        self._claim = Claim(VERSION, bytes(16), node, [*agents], policy, environment, bytes(32), bytes(32))
        self._challenge: Challenge | None = None

    def claim(self, data: bytes) -> bytes | Rejected:
        """What to send after this challenge, with a nonce of its own."""
        challenge = _decoded(data, Challenge, "node")
        if isinstance(challenge, Rejected):
            return challenge
        claim = structs.replace(self._claim, run=challenge.run, nonce=os.urandom(32))
        proof = _proof(self._secret, "node", challenge, claim)
        self._challenge, self._claim = challenge, structs.replace(claim, proof=proof)
        return msgpack.encode(self._claim)

    def read(self, data: bytes) -> tuple[int, RunKeys] | Rejected:
        """Index and keys, from the welcome of a hub that has the secret."""
        assert self._challenge is not None, "claim first"
        welcome = _decoded(data, Welcome, "node")
        if isinstance(welcome, Rejected):
            return welcome
        proof = _proof(self._secret, "hub", self._challenge, self._claim, welcome.index)
        if not hmac.compare_digest(proof, welcome.proof):
            return Rejected("wrong secret")
        return welcome.index, _keys(self._secret, self._challenge, self._claim, welcome.index)


def hkdf(secret: bytes, *, salt: bytes, info: bytes, length: int = 32) -> bytes:
    """HKDF with SHA-256, RFC 5869: `length` bytes, 8,160 at most."""
    key, block, output = hmac.digest(salt, secret, "sha256"), b"", b""
    for count in range(1, -(-length // 32) + 1):
        block = hmac.digest(key, block + info + bytes([count]), "sha256")
        output += block
    return output[:length]


def _decoded(data: bytes, kind: type[T], reader: str) -> T | Rejected:
    try:
        version = msgpack.decode(data, type=Versioned).version  # first: other versions may have other fields
        if version != VERSION:
            return Rejected(f"version {version}, this {reader} speaks {VERSION}")
        return msgpack.decode(data, type=kind)
    except (MsgspecError, RecursionError):
        return Rejected("malformed")


def _proof(secret: bytes, role: str, challenge: Challenge, claim: Claim, index: int | None = None) -> bytes:
    transcript = (role, challenge, structs.replace(claim, proof=b""), index)
    return hmac.digest(secret, msgpack.encode(transcript), "sha256")


def _keys(secret: bytes, challenge: Challenge, claim: Claim, index: int) -> RunKeys:
    salt = challenge.run + challenge.nonce + claim.nonce
    output = hkdf(secret, salt=salt, info=msgpack.encode((VERSION, claim.node, index)), length=128)
    return RunKeys(output[:32], output[32:64], output[64:96], output[96:])
