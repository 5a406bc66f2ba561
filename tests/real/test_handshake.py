"""The opening of a bus: who has the secret comes in, with keys of his own; whoever alters a word of it does not."""

import hmac
from collections.abc import Callable

import msgspec
import pytest
from msgspec import msgpack, structs
from refusing import unsaid

from heron_env.errors import ConfigError
from heron_env.real.frames import Rejected
from heron_env.real.handshake import Challenge, Claim, HubOpening, NodeOpening, RunKeys, Versioned, Welcome, hkdf
from heron_env.seeding import stream

SECRET = bytes(range(32))
RUN = bytes(range(100, 116))


def opening(secret: bytes | None = SECRET, node: str = "node_1") -> NodeOpening:
    return NodeOpening(secret, node, ["battery_1", "battery_2"], policy="p" * 64, environment="e" * 64)


class Connection:
    """A hub and a node that have got as far as the claim."""

    def __init__(self, secret: bytes | None = SECRET, node: str = "node_1") -> None:
        self.hub, self.node = HubOpening(secret, RUN), opening(secret, node)
        data = self.node.claim(self.hub.challenge)
        assert isinstance(data, bytes)
        self.data = data
        self.claim = msgpack.decode(data, type=Claim)

    def keys(self, index: int = 7) -> RunKeys:
        """Of the hub, once the node has the same."""
        welcome, keys = self.hub.welcome(self.claim, index)
        result = self.node.read(welcome)
        assert isinstance(result, tuple) and not isinstance(result, Rejected)
        assert result[0] == index and vars(result[1]) == vars(keys)
        return keys


# RFC 5869, appendix A: input, salt, info, output.
VECTORS = {
    "A.1": (
        b"\x0b" * 22,
        bytes(range(0x0D)),
        bytes(range(0xF0, 0xFA)),
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    ),
    "A.2": (
        bytes(range(0x50)),
        bytes(range(0x60, 0xB0)),
        bytes(range(0xB0, 0x100)),
        "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
        "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
    ),
    "A.3": (
        b"\x0b" * 22,
        b"",
        b"",
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_keys_are_derived_as_the_rfc_says(name: str):
    secret, salt, info, output = VECTORS[name]
    assert hkdf(secret, salt=salt, info=info, length=len(output) // 2).hex() == output


@pytest.mark.parametrize("secret", [SECRET, None], ids=["a secret", "none"])
def test_who_has_the_secret_comes_in_and_both_have_the_same_four_keys(secret: bytes | None):
    connection = Connection(secret)
    claim = connection.hub.read(connection.data)
    assert isinstance(claim, Claim)
    assert (claim.node, claim.agents, claim.policy, claim.environment) == (
        "node_1", ["battery_1", "battery_2"], "p" * 64, "e" * 64,
    )  # fmt: skip
    keys = vars(connection.keys())
    assert [*keys] == ["bus_up", "bus_down", "net_up", "net_down"]
    assert len({*keys.values()}) == 4 and {len(key) for key in keys.values()} == {32}


def test_a_proof_is_what_its_definition_says():
    connection = Connection()
    said = [msgpack.decode(connection.hub.challenge), msgpack.decode(connection.data) | {"proof": b""}]
    welcome, _ = connection.hub.welcome(connection.claim, 7)
    proofs = [msgpack.encode([role, *said, index]) for role, index in (("node", None), ("hub", 7))]
    sent = [connection.claim.proof, msgpack.decode(welcome)["proof"]]
    assert sent == [hmac.digest(SECRET, proof, "sha256") for proof in proofs]


def test_no_two_connections_share_a_key():
    connection = Connection()
    all_keys = [connection.keys(7), connection.keys(8), Connection().keys(7), Connection(None).keys(7)]
    all_keys += [Connection(node="node_2").keys(7), Connection(node="node_2").keys(7)]
    assert len({key for keys in all_keys for key in vars(keys).values()}) == 4 * len(all_keys)


@pytest.mark.parametrize(
    ("hubs", "nodes"),
    [(SECRET, bytes(31) + b"\1"), (SECRET, None), (None, SECRET)],
    ids=["another", "none", "not needed"],
)
def test_another_secret_or_none_does_not_come_in(hubs: bytes | None, nodes: bytes | None):
    hub, node = HubOpening(hubs, RUN), opening(nodes)
    claim = node.claim(hub.challenge)
    assert isinstance(claim, bytes)
    assert hub.read(claim) == Rejected("wrong secret")
    welcome, _ = hub.welcome(msgpack.decode(claim, type=Claim), 7)
    assert node.read(welcome) == Rejected("wrong secret")


def altered(message: Versioned, field: str) -> Versioned:
    """The same with one field that is still legal, and another."""
    match getattr(message, field):
        case int() as value:
            return structs.replace(message, **{field: value + 1})
        case str() as text:
            return structs.replace(message, **{field: text[::-1] + "x"})
        case bytes() as data:
            return structs.replace(message, **{field: bytes([data[0] ^ 1]) + data[1:]})
        case list() as items:
            return structs.replace(message, **{field: [*items[1:], "battery_3"]})
    raise AssertionError(field)


CLAIMED = dict.fromkeys(Claim.__struct_fields__, "wrong secret")
CLAIMED |= {"version": "version 2, this hub speaks 1", "run": "not this run"}


@pytest.mark.parametrize("field", CLAIMED)
def test_a_claim_of_which_one_field_was_altered_is_refused(field: str):
    connection = Connection()
    assert connection.hub.read(msgpack.encode(altered(connection.claim, field))) == Rejected(CLAIMED[field])
    assert isinstance(connection.hub.read(connection.data), Claim)


@pytest.mark.parametrize("field", Challenge.__struct_fields__)
def test_a_challenge_of_which_one_field_was_altered_leads_to_no_claim_that_counts(field: str):
    hub, node = HubOpening(SECRET, RUN), opening()
    data = node.claim(msgpack.encode(altered(msgpack.decode(hub.challenge, type=Challenge), field)))
    if field == "version":
        assert data == Rejected("version 2, this node speaks 1")
    else:
        assert isinstance(data, bytes)
        assert hub.read(data) == Rejected("not this run" if field == "run" else "wrong secret")


@pytest.mark.parametrize("field", Welcome.__struct_fields__)
def test_a_welcome_of_which_one_field_was_altered_is_refused(field: str):
    connection = Connection()
    welcome, _ = connection.hub.welcome(connection.claim, 7)
    result = connection.node.read(msgpack.encode(altered(msgpack.decode(welcome, type=Welcome), field)))
    assert result == Rejected("version 2, this node speaks 1" if field == "version" else "wrong secret")


def test_where_one_field_ends_and_the_next_begins_is_proved_too():
    connection = Connection()
    moved = [
        {"agents": ["battery_2", "battery_1"]},
        {"agents": ["battery_1battery_2"]},
        {"agents": ["battery_1", "battery_", "2"]},
        {"node": "node_", "agents": ["1", "battery_1", "battery_2"]},
        {"policy": "p" * 63, "environment": "p" + "e" * 64},
        {"policy": "p" * 64 + "e", "environment": "e" * 63},
        {"policy": "e" * 64, "environment": "p" * 64},
    ]
    for fields in moved:
        data = msgpack.encode(structs.replace(connection.claim, **fields))
        assert connection.hub.read(data) == Rejected("wrong secret")


def test_a_claim_is_of_no_use_in_another_connection_or_run():
    connection = Connection()
    assert isinstance(connection.hub.read(connection.data), Claim)
    assert HubOpening(SECRET, RUN).read(connection.data) == Rejected("wrong secret")
    assert HubOpening(SECRET, bytes(16)).read(connection.data) == Rejected("not this run")


def test_a_welcome_is_of_no_use_to_another_connection_or_node():
    connection, another = Connection(), Connection()
    welcome, _ = connection.hub.welcome(connection.claim, 7)
    assert another.node.read(welcome) == Rejected("wrong secret")
    again, _ = another.hub.welcome(connection.claim, 7)
    assert another.node.read(again) == Rejected("wrong secret")


def test_a_proof_that_is_sent_back_proves_nothing():
    connection = Connection()
    for index in (0, 7):
        reflected = msgpack.encode(Welcome(1, index, connection.claim.proof))
        assert connection.node.read(reflected) == Rejected("wrong secret")
    welcome, _ = connection.hub.welcome(connection.claim, 7)
    proof = msgpack.decode(welcome, type=Welcome).proof
    assert connection.hub.read(msgpack.encode(structs.replace(connection.claim, proof=proof))) == Rejected(
        "wrong secret"
    )


def test_a_node_that_comes_again_has_another_nonce():
    hub, node = HubOpening(SECRET, RUN), opening()
    nonces = [msgpack.decode(node.claim(hub.challenge), type=Claim).nonce for _ in range(3)]
    assert len({*nonces, msgpack.decode(HubOpening(SECRET, RUN).challenge, type=Challenge).nonce}) == 4


def malformed() -> list[bytes]:
    """What is no claim, by what is wrong with it."""
    whole = structs.asdict(Connection().claim)
    deep, endless = b"\x91" * 100_000, b"\xdf\xff\xff\xff\xff"
    wrong: list[object] = [None, True, -1, 1.0, "text", b"bytes", [], {}, [[]], {"a": 1}]
    texts = ("node", "policy", "environment")
    changes = [
        {field: value} for field in whole for value in wrong if (field, value) not in [(t, "text") for t in texts]
    ]
    changes += [{"version": 256}, {"version": -1}, {"version": 2**63}, {"another": 1}, {"node": ""}]
    changes += [{"node": "n" * 201}, {"policy": "p" * 201}, {"agents": ["a"] * 1_001}, {"agents": ["a", "a" * 201]}]
    changes += [{"agents": ["a", ""]}, {"agents": ["a", 1]}, {"nonce": bytes(31)}, {"proof": bytes(33)}, {"run": b""}]
    changes += [{"agents": [["a"]]}, {"node": msgspec.Raw(b"\xa2\xff\xfe")}, {"agents": msgspec.Raw(endless)}]
    frames = [msgpack.encode({**whole, **change}) for change in changes]
    frames += [msgpack.encode({name: whole[name] for name in whole if name != field}) for field in whole]
    frames += [b"", b"\xc1", deep, endless, b"\x82\xa7version\x01\xa1x" + deep, b"\x82\xa7version\x01\xa1x" + endless]
    return [*frames, msgpack.encode(whole) + b"\0", msgpack.encode([*whole.values()]), msgpack.encode(whole)[:-1]]


def test_what_is_malformed_is_refused_in_one_word_and_never_raises():
    connection = Connection()
    for data in malformed():
        assert connection.hub.read(data) == Rejected("malformed"), data[:80]
        assert opening().claim(data) == Rejected("malformed"), data[:80]
        assert connection.node.read(data) == Rejected("malformed"), data[:80]


def test_an_agent_that_stands_twice_in_a_claim_is_refused():
    connection = Connection()
    data = msgpack.encode(structs.replace(connection.claim, agents=["battery_1", "battery_1"]))
    assert connection.hub.read(data) == Rejected("an agent twice")


def test_of_20_000_damaged_claims_none_counts_and_reasons_stay_few():
    connection, random, reasons = Connection(), stream(49, "claims"), set[str]()
    readers: list[Callable[[bytes], object]] = [connection.hub.read, connection.node.read]
    for read in readers:
        for at in range(8 * len(connection.data)):
            data = bytearray(connection.data)
            data[at // 8] ^= 1 << at % 8
            result = read(bytes(data))
            assert isinstance(result, Rejected)
            reasons.add(result.reason)
        for _ in range(9_000):
            data, spot = bytearray(connection.data), int(random.integers(len(connection.data) - 4))
            data[spot : spot + int(random.integers(1, 5))] = random.bytes(int(random.integers(1, 5)))
            if data != connection.data:
                result = read(bytes(data))
                assert isinstance(result, Rejected)
                reasons.add(result.reason)
    few = {"malformed", "not this run", "wrong secret"}
    assert few < reasons and all(reason.startswith("version ") for reason in reasons - few)


def test_names_may_be_long_and_many():
    names = [f"{number:0200}" for number in range(1_000)]
    hub, node = HubOpening(SECRET, RUN), NodeOpening(SECRET, "n" * 200, names)
    claim = node.claim(hub.challenge)
    assert isinstance(claim, bytes)
    read = hub.read(claim)
    assert isinstance(read, Claim) and read.agents == names


def test_a_node_says_at_once_which_names_no_hub_would_accept():
    length = "needs a name of 1 to 200 letters"
    cases = [
        (lambda: NodeOpening(None, "", ["a"]), length),
        (lambda: NodeOpening(None, "n" * 201, ["a"]), length),
        (lambda: NodeOpening(None, "n", ["a", ""]), "node='n': it and each of its agents needs a name of 1 to"),
        (lambda: NodeOpening(None, "n", ["a" * 201]), length),
        (lambda: NodeOpening(None, "n", []), "node='n': it has 0 agents; name 1 to 1,000, each once"),
        (lambda: NodeOpening(None, "n", ["a", "b", "a"]), "node='n': it has 3 agents; name 1 to 1,000, each once"),
        (lambda: NodeOpening(None, "n", [str(number) for number in range(1_001)]), "it has 1,001 agents"),
    ]
    assert unsaid(ConfigError, cases) == []


def test_neither_repr_nor_messages_show_a_secret_or_a_key():
    connection = Connection()
    keys = connection.keys()
    welcome, _ = connection.hub.welcome(connection.claim, 7)
    sent = connection.hub.challenge + connection.data + welcome
    for secret in (SECRET, *vars(keys).values()):
        assert secret not in sent
        for owner in (connection.hub, connection.node, keys, connection.claim, msgpack.decode(welcome)):
            assert repr(secret)[2:20] not in repr(owner) and secret.hex() not in repr(owner)


def test_reasons_of_versions_are_256_at_most():
    hub = HubOpening(SECRET, RUN)
    reasons = [hub.read(msgpack.encode({"version": version, "of": "the future"})) for version in range(300)]
    assert reasons[255] == Rejected("version 255, this hub speaks 1") and reasons[1] == reasons[256]
    assert len(set(reasons)) == 256 and set(reasons[256:]) == {Rejected("malformed")}
