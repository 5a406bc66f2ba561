"""Which addresses may be talked to: those on a list, over https, on the open internet; or this machine, by a flag; or
machines of a private network, each by its IP address and port.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from heron_env.errors import ConfigError
from heron_env.given import require_switch, several
from heron_env.net.outcome import Code, Failure

LOOPBACK = ("127.0.0.1", "::1")
PORTS = {"http": 80, "https": 443}

# Everything in it is checked: no userinfo, no fragment, no escape in the host, no control character or blank anywhere.
URL = re.compile(
    r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::([0-9]{1,5}))?((?:/[!$-\[\]-~]*)?)", re.ASCII | re.IGNORECASE
)
LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)

# The special-purpose registries of IANA (RFC 6890 and its successors). Of IPv6 only 2000::/3 is handed out, so all else
# is refused: loopback, mapped and compatible IPv4, 64:ff9b::/96, unique local, link-local, site-local, multicast.
OPEN_6 = "2000::/3"
CLOSED = """
0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24
192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4
240.0.0.0/4 2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20
"""
NETWORKS = [ipaddress.ip_network(text) for text in CLOSED.split()]
PRIVATE = [ipaddress.ip_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")]
"""Networks of one's own, whose machines may be named: RFC 1918, RFC 4193."""

ALLOWED: Final[ContextVar[tuple[str, ...]]] = ContextVar("allowed", default=())
"""Machines of a private network that a command allows, each `IP:PORT`."""


@dataclass(frozen=True, slots=True)
class Address:
    """An endpoint's address that passed the guard; `host` is a name or the usual notation of an IP address."""

    scheme: str
    host: str
    port: int
    target: str
    local: bool
    private: bool = False

    @property
    def url(self) -> str:
        """As it is written, with its port."""
        return f"{self.place}{self.target}"

    @property
    def place(self) -> str:
        """Without path and query."""
        return f"{self.scheme}://{self.named}"

    @property
    def named(self) -> str:
        """Host and port."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class Guard:
    """Lets through the hosts of `allow` (`host` or `host:port`; without a port: 443), over https, to public addresses;
    `loopback=True`: localhost, 127.0.0.0/8 and ::1 too, over http or https; `private`: machines of a private network,
    each `IP:PORT`, over http or https.
    """

    def __init__(self, allow: Iterable[str] = (), *, loopback: bool = False, private: Iterable[str] = ()) -> None:
        require_switch(f"Guard(loopback={loopback!r:.200})", loopback)
        self.loopback = loopback
        self.allow = frozenset(map(_listed, several(allow, "Guard(allow")))
        for entry in (private := several(private, "Guard(private")):
            if not is_private(entry):
                raise ConfigError(
                    f"allow={entry!r:.200}: must be 'IP:PORT' of a machine on a private network, as '192.168.1.5:8000'"
                )
        self.private = frozenset(map(_listed, private))

    def __repr__(self) -> str:
        """As it is made."""
        listed, private = ([f"{host}:{port}" for host, port in sorted(those)] for those in (self.allow, self.private))
        return f"Guard({listed}, loopback={self.loopback}{f', private={private}' if private else ''})"

    def passed(self, url: str) -> Address:
        """The address of an endpoint, as far as it can be judged without asking anybody. Raises ConfigError."""
        match = URL.fullmatch(url) if isinstance(url, str) else None
        if match is None:
            raise ConfigError(
                "the address of an endpoint must be like 'https://host:port/path': printable ASCII without blanks, "
                "user name, password or fragment (not quoted here, as it may hold a secret)"
            )
        scheme, host, target = match[1].lower(), match[2].lower(), match[4] or "/"
        port, named = int(match[3] or PORTS[scheme]), f"{scheme}://{host}"
        literal = _literal(host, named)
        local = host == "localhost" or (literal is not None and literal.is_loopback)
        host = host if literal is None else str(literal)
        address = Address(scheme, host, port, target, local, literal is not None and _is_private(literal))
        if not 0 < port < 65_536:
            raise ConfigError(f"{named}: port {port} does not exist; take 1 to 65535")
        if local and not self.loopback:
            raise ConfigError(f"{named}: this machine may not be talked to; allow it with loopback=True")
        if address.private and literal is not None and (host, port) not in self.private:
            raise ConfigError(
                f"{named}: {_closed(literal)}; take a public address, or allow this machine of a private network: "
                f"allow='{address.named}' (commands: --allow {address.named})"
            )
        if address.private:
            return address
        if not local and (host, port) not in self.allow:
            raise ConfigError(f"{named}: not allowed; add '{address.named}' to the list")
        if not local and scheme != "https":
            raise ConfigError(
                f"{named}: must be https; http is allowed only for this machine and for private IP addresses in `allow`"
            )
        if literal is not None and (reason := _closed(literal)) and not local:
            raise ConfigError(f"{named}: {reason}; take a public address")
        return address

    def checked(self, address: Address, resolved: Sequence[str]) -> tuple[str, ...]:
        """The IP addresses that may be connected to; one that may not spoils them all. Raises Failure CONNECTION."""
        for text in resolved:
            ip = _ip(text)
            if ip is None or not (
                ip.is_loopback if address.local else text == address.host if address.private else _closed(ip) is None
            ):
                raise Failure(
                    Code.CONNECTION,
                    "its name leads to an address that is not allowed (private or special); a machine of a private "
                    "network is named by its IP address",
                )
        if not resolved:
            raise Failure(Code.CONNECTION, "its name leads nowhere; check the name")
        return tuple(resolved)


def guard_of(url: str, allow: str | None = None) -> Guard:
    """Lets through the host of this address alone: public ones over https, this machine's if it is what it says; one
    of a private network if `allow` or the command names it. Raises ConfigError, ValueError.
    """
    parts = urlsplit(url)
    own = parts.netloc if parts.port else f"{parts.netloc}:{PORTS.get(parts.scheme, 443)}"
    return Guard((own,), loopback=True, private=(*ALLOWED.get(), *([] if allow is None else [allow])))


def machine(value: Any) -> str:
    """`IP:PORT` of a machine on a private network. Raises ConfigError."""
    Guard(private=(value,))
    return str(value)


def is_private(entry: object) -> bool:
    """Is an entry `IP:PORT` of a machine on a private network? Raises ConfigError for what is no entry at all."""
    ip = _ip(_listed(entry)[0])
    return ip is not None and _is_private(ip)


def _is_private(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return any(ip in network for network in PRIVATE)


def _listed(entry: object) -> tuple[str, int]:
    """Host and port of an entry of the list. Raises ConfigError."""
    match = URL.fullmatch(f"https://{entry}") if isinstance(entry, str) else None
    if match is None or match[4]:
        raise ConfigError(f"allow={entry!r:.200}: must be 'host' or 'host:port', as 'agent.example.org:443'")
    host = match[2].lower()
    literal = _literal(host, f"allow={host!r}")
    return host if literal is None else str(literal), int(match[3] or 443)


def _literal(host: str, named: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that a host is, None for a name. Raises ConfigError for what only some programs read as one."""
    if host.startswith("["):
        if (ip := _ip(host[1:-1])) is None:
            raise ConfigError(f"{named}: no IPv6 address")
        return ip
    *_, last = labels = host.split(".")
    if NUMBER.fullmatch(last):
        ip = _ip(host)
        if ip is None:
            raise ConfigError(f"{named}: an odd notation of an IP address; write it as 203.0.113.7")
        return ip
    if len(host) > 253 or not all(map(LABEL.fullmatch, labels)):
        raise ConfigError(f"{named}: no host name")
    return None


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _closed(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str | None:
    """Why an address is not on the open internet; None: it is."""
    if ip.version == 6 and ip not in ipaddress.IPv6Network(OPEN_6):
        return f"an IPv6 address outside {OPEN_6}"
    inside = next((network for network in NETWORKS if ip in network), None)  # False for the other version
    return f"inside {inside}" if inside is not None else None if ip.is_global else "no public address"
