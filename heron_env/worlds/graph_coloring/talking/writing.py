"""Words for letters: a model's draft if nothing is wrong with it, else its second one, else the template's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from heron_env.core.policy import Asked, Origin
from heron_env.worlds.graph_coloring.talking.claims import Facts, holds
from heron_env.worlds.graph_coloring.talking.model import WRITE, Model
from heron_env.worlds.graph_coloring.talking.templates import text_of
from heron_env.worlds.graph_coloring.talking.verifier import Block, claim_of, verify


class Writer:
    """Finds the words, and counts what was blocked; `origin`: of the last draft."""

    def __init__(self, model: Model | None, counts: Counter[str]) -> None:
        self.model, self.counts = model, counts
        self.origin: Origin | None = None

    def text(self, kind: str, body: Mapping[str, Any], facts: Facts, asks: Mapping[str, str], asked: Asked) -> str:
        """Of one letter; `asks` as for templates."""
        text = text_of(kind, body, facts, asks)
        if self.model is not None:
            told = {"from": facts.part.cluster, "to": facts.recipient, "kind": kind, "content": body, "facts": text}
            draft = self._draft(self.model, told, facts, asked)
            self.counts["templates"] += draft is None
            text = draft or text
        self.counts["letters"] += 1
        self.counts["lies_after"] += _lies(verify(text, facts).blocks)
        return text

    def _draft(self, model: Model, told: Mapping[str, Any], facts: Facts, asked: Asked) -> str | None:
        """A model's words that nothing is wrong with; None if it has none after the second attempt."""
        blocks: list[Block] = []
        for attempt in (0, 1):
            wrong = {"wrong_in_your_last_draft": list(map(str, blocks))}
            said = model.say(asked, f"{facts.recipient} {attempt}", WRITE, {**told, **wrong})
            self.origin = said.origin
            self.counts["drafts"] += 1
            if said.text is None:
                return None
            listed = {words: claim_of(words) for words in said.claims}
            blocks = [Block("false", words) for words, claim in listed.items() if not (claim and holds(claim, facts))]
            blocks += verify(said.text, facts).blocks
            if not blocks:
                return said.text
            self.counts.update(f"blocked_{block.fault}" for block in blocks)
            self.counts["lies_before"] += 0 if attempt else _lies(blocks)
        return None


def _lies(blocks: tuple[Block, ...] | list[Block]) -> int:
    return sum(block.fault not in ("unclear", "conflict") for block in blocks)
