"""Words for letters: a model's draft if it is true, its second one if that is, else the template's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from heron_env.core.asking import Asked, Origin
from heron_env.worlds.graph_coloring.talking.claims import Facts, holds
from heron_env.worlds.graph_coloring.talking.model import WRITE, Model
from heron_env.worlds.graph_coloring.talking.templates import text_of
from heron_env.worlds.graph_coloring.talking.verifier import Block, claim_of, verify


class Writer:
    """Finds the words, and counts what was blocked."""

    def __init__(self, model: Model | None, counts: Counter[str]) -> None:
        self.model, self.counts = model, counts
        self.origin: Origin | None = None

    def text(self, kind: str, body: Mapping[str, Any], facts: Facts, asks: Mapping[str, str], asked: Asked) -> str:
        """Of one letter."""
        template = text_of(kind, body, facts, asks)
        draft = self._draft(kind, body, facts, template, asked) if self.model else None
        self.counts["templates"] += draft is None
        self.counts["letters"] += 1
        sent = draft or template
        self.counts["lies_after"] += sum(block.fault != "unclear" for block in verify(sent, facts).blocks)
        return sent

    def _draft(self, kind: str, body: Mapping[str, Any], facts: Facts, template: str, asked: Asked) -> str | None:
        """A model's words that nothing is wrong with; None if it has none after the second attempt."""
        assert self.model is not None
        blocks: tuple[Block, ...] = ()
        for attempt in (0, 1):
            told = {
                "from": facts.part.cluster, "to": facts.recipient, "kind": kind, "content": body, "facts": template,
                "wrong_in_your_last_draft": [str(block) for block in blocks],
            }  # fmt: skip
            said = self.model.say(asked, f"{facts.recipient} {attempt}", WRITE, told)
            self.origin = said.origin
            self.counts["drafts"] += 1
            if said.text is None:
                return None
            blocks = self.blocks(said.text, said.claims, facts)
            if not attempt:
                self.counts["lies_before"] += sum(block.fault not in ("unclear", "conflict") for block in blocks)
            if not blocks:
                return said.text
            self.counts.update(f"blocked_{block.fault}" for block in blocks)
        return None

    @staticmethod
    def blocks(text: str, claims: tuple[str, ...], facts: Facts) -> tuple[Block, ...]:
        """What is wrong with a text, or with the list of claims that came with it."""
        told = [(words, claim_of(words)) for words in claims]
        wrong = [Block("false", words) for words, claim in told if claim is None or not holds(claim, facts)]
        return (*verify(text, facts).blocks, *wrong)
