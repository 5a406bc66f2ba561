"""Words of a letter as tokens: synonyms as one word, nodes as `@2`, colours as `#0`, numbers as `=10`.

Whatever is not known stays as it is, and so is no part of any sentence that the grammar has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

WORD: Final = r"[@#]\d+|\d+(?:\.\d+)?|'(?:s|ll|re|ve|m|d)\b|[a-z]+|->|[^\s]"
MARKS: Final = str.maketrans({
    "\N{RIGHTWARDS ARROW}": "->", "\N{EN DASH}": "-", "\N{EM DASH}": " - ", "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{HORIZONTAL ELLIPSIS}": ".", "\N{BULLET}": "-", "\N{NO-BREAK SPACE}": " ",
})  # fmt: skip
STRANGE: Final = re.compile(r"[^A-Za-z0-9 \n.,:;!?'()*`=/>-]")
"""No letter has these, outside of names."""


@cache
def english(section: str) -> tuple[str, ...]:
    """The lines of a section of `english.txt`."""
    text = (Path(__file__).parent / "english.txt").read_text(encoding="utf-8")
    return tuple(text.partition(f"[{section}]")[2].partition("\n\n")[0].splitlines()[1:])


@cache
def _canon() -> dict[str, str]:
    lines = [line.split(": ") for line in english("synonyms")]
    return {word: meaning for meaning, words in lines for word in words.split()} | {"=": "eq", "'ve": ""}


@cache
def _rewrites() -> tuple[tuple[re.Pattern[str], str], ...]:
    lines = [line.split(" =>") for line in english("rewrites")]
    return tuple((re.compile(rf"(?<!\S)(?:{old})(?!\S)"), new.strip()) for old, new in lines)


@dataclass(frozen=True)
class Sentence:
    """One sentence: as it was written, as tokens with a blank after each, and whether it asks."""

    written: str
    tokens: str
    asks: bool


class Names:
    """What is meant by names: `nodes` as `@i`, `domain` as `#j`, the writer as `me`, the reader as `you`."""

    def __init__(self, nodes: Sequence[str], domain: Sequence[str], writer: str, reader: str) -> None:
        known = [*((name, f" @{i} ") for i, name in enumerate(nodes)), *((c, f" #{j} ") for j, c in enumerate(domain))]
        self._meaning = {name.casefold(): token for name, token in [*known, (writer, " me "), (reader, " you ")]}
        longest = map(re.escape, sorted(self._meaning, key=len, reverse=True))
        self._name = re.compile(rf"(?<![\w'])(?:{'|'.join(longest)})(?!\w)", re.IGNORECASE)

    def strange(self, text: str) -> str:
        """Characters that no letter has, unless a name has them."""
        return "".join(dict.fromkeys(STRANGE.findall(self._name.sub("", text.translate(MARKS)))))

    def sentences(self, text: str) -> list[Sentence]:
        """The sentences of a text."""
        plain = re.sub(r"(?m)^ *(?:[-*]|\d+[.)]) +|[*`]", "", text.translate(MARKS))
        parts = [part.strip() for part in re.split(r"(?<=[.!?])\s+|\s*[\n;]\s*", plain) if part.strip()]
        return [Sentence(part, self._tokens(part), part.endswith("?")) for part in parts]

    def _tokens(self, text: str) -> str:
        named = self._name.sub(lambda found: self._meaning[found[0].casefold()], text).lower()
        named = re.sub(r"n't\b", " not", re.sub(r"(?<=[a-z])-(?=[a-z])|\(s\)", " ", named))
        words = re.findall(WORD, re.sub(r"[.!?]+\s*$", "", named))
        line = " ".join(_canon().get(word, f"={word}" if word[0].isdigit() else word) for word in words)
        for pattern, new in _rewrites() * 2:
            line = " ".join(pattern.sub(new, line).split())
        line = line.strip(" ,:-")
        return f"{line} " if line else ""


@cache
def vocabulary() -> frozenset[str]:
    """Every word that has a meaning in letters."""
    sections = ("synonyms", "rewrites", "macros", "prefixes", "courtesy", "sentences")
    return frozenset(word for name in sections for line in english(name) for word in re.findall(r"[a-z]+", line))
