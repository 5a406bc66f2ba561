"""What an endpoint may know: pseudonyms instead of names, and nothing that looks like a person's data.

It acts after visibility and noise, and only removes: who is told less is told a part of the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import count
from typing import Final

REDACTED: Final = "[redacted]"
_EMAIL: Final = r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"
_IBAN: Final = r"\b[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{4}){2,7}(?: ?[A-Za-z0-9]{1,3})?\b"
_SSN: Final = r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])"
_CARD: Final = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")
_PHONE: Final = re.compile(
    r"(?<![\w.])(?:\+\(?\d(?:[ ().\-/]{0,2}\d){6,14}"  # with a country code
    r"|\(?\d{2,5}\)?[ .\-/]{1,2}\d{2,4}(?:[ .\-/]\d{2,5}){1,4}"  # in groups
    r"|0\d{8,12})(?!\w)"
)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_PATTERNS: Final = re.compile(f"{_EMAIL}|{_IBAN}|{_SSN}")


def redacted(text: str) -> str:
    """The text without e-mail addresses, IBANs, social security, card (by Luhn's sum) and telephone numbers."""
    if not any(letter.isdigit() or letter == "@" for letter in text):
        return text
    text = _CARD.sub(lambda found: REDACTED if _luhn(found[0]) else found[0], _PATTERNS.sub(REDACTED, text))
    return _PHONE.sub(lambda found: REDACTED if _dialled(found[0]) else found[0], text)


def _luhn(text: str) -> bool:
    """Is it the number of a payment card?"""
    digits = [int(letter) for letter in text if letter.isdigit()]
    twice = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(twice)) % 10 == 0


def _dialled(text: str) -> bool:
    """Has it the digits of a telephone number, and is it no date?"""
    return sum(map(str.isdigit, text)) >= 7 and not _DATE.match(text)


class Aliases:
    """How an endpoint is told of agents: by their names, or as a1, a2, ... in the order of their first use.

    Args:
        agents: all names, which are replaced in texts, too.
        hidden: pseudonyms for all; otherwise only for those whose name looks like personal data.
        redact: is such data removed?
    """

    def __init__(self, agents: Iterable[str], *, hidden: bool, redact: bool) -> None:
        self._hidden, self._redact = hidden, redact
        names = sorted(agents, key=len, reverse=True)
        self._taken = frozenset(names)
        self._names = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)") if names and hidden else None
        self._told: dict[str, str] = {}
        self._real: dict[str, str] = {}

    def begin(self) -> None:
        """An episode begins: nobody was told of."""
        self._told.clear()
        self._real.clear()

    def of(self, agent: str) -> str:
        """What the endpoint is told for this agent's name."""
        if agent not in self._told:
            secret = self._hidden or (self._redact and redacted(agent) != agent)
            free = (name for name in map("a{}".format, count(1)) if name not in self._taken | self._real.keys())
            told = next(free) if secret else agent
            self._told[agent], self._real[told] = told, agent
        return self._told[agent]

    def real(self, told: str) -> str:
        """Whom the endpoint means; empty for a name that it was not told."""
        return self._real.get(told, "")

    def text(self, text: str) -> str:
        """A text as the endpoint may read it."""
        if self._names is not None:
            text = self._names.sub(lambda found: self.of(found[0]), text)
        return redacted(text) if self._redact else text


def is_of_another(name: str) -> bool:
    """Does this element of an observation tell of another agent? `Charge.soc` and `global.Price.value` don't."""
    if name.startswith("global.") and name.count(".") == 2:
        return False
    return name.startswith("age.") or name.count(".") > 1
