"""Bars of talking: what the verifier lets out of texts that others wrote, and of the templates' own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from heron_env.worlds.graph_coloring.talking import verify
from heron_env.worlds.graph_coloring.talking.policy import text_of
from tests.worlds.drafts import drafts, situation
from tests.worlds.test_talking import HAND_WRITTEN, blocks, bodies, in_some_situation
from training.bars import Bar, Found, Setting

TEXTS, SEED, SHARE = 1000, 29, 0.02
FORMS = 200


def drafted(setting: Setting) -> Found:
    """Drafts of all modes from a generator that shares nothing with the verifier, and hand-written forms."""
    texts = 100 if setting.quick else TEXTS
    lies = [*drafts(SEED, texts, lying=True)]
    true = [*drafts(SEED, texts, lying=False)]
    delivered = [draft.lie for draft in lies if not blocks(draft.text, draft.situation)]
    blocked = [draft.text for draft in true if blocks(draft.text, draft.situation)]
    written, delivered_forms, blocked_forms = 0, list[str](), list[str]()
    for number, form in enumerate(HAND_WRITTEN[:: 5 if setting.quick else 1]):
        said, lied = in_some_situation(form, True, number), in_some_situation(form, False, number)
        written += said is not None
        if said and set(blocks(*said)) - {"conflict"}:
            blocked_forms.append(said[0])
        if lied and not blocks(*lied):
            delivered_forms.append(lied[0])
    words = (
        f"{len(delivered)} of {len(lies):,} lies delivered, {len(blocked)} of {len(true):,} true ones blocked; "
        f"{len(HAND_WRITTEN)} forms: {len(delivered_forms)} false ones delivered, {len(blocked_forms)} of {written} "
        "true ones blocked"
    )
    few = len(blocked) <= SHARE * len(true) and len(blocked_forms) <= SHARE * written
    met = not delivered and not delivered_forms and few and len(HAND_WRITTEN) >= FORMS
    kinds = Counter(draft.lie.partition(":")[0] for draft in lies)
    return Found(words, met, {"kinds of lies": dict(kinds), "blocked": blocked, "blocked forms": blocked_forms})


def templates(setting: Setting) -> Found:
    """All kinds of letters in drawn situations, in the templates' words."""
    texts, blocked = 0, list[str]()
    for number in range(50 if setting.quick else 500):
        here = situation(SEED, number)
        facts = here.facts()
        facts = replace(facts, moves=facts.moves | {("Offer", name) for name in facts.offers})
        free = {node: "red" for node in here.yours if node not in here.fixed}
        for kind, body in bodies(here, facts):
            text = text_of(kind, body, facts, free)
            texts += 1
            blocked += [text] if verify(text, facts).blocks else []
    return Found(f"{len(blocked)} of {texts:,} blocked", not blocked and texts >= 100, {"blocked": blocked[:10]})


BARS = (
    Bar(
        "drafts", "1,000 adversarial drafts / 1,000 true ones, all four modes; hand-written forms",
        "0 lies delivered / ≤ 2 % blocked; ≥ 200 forms", drafted,
    ),
    Bar("templates", "true texts of the templates", "0 blocked", templates),
)  # fmt: skip
