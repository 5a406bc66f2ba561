"""The first use of a glossary's term on a page links to the glossary, so that pages need not explain it."""

from __future__ import annotations

import re
from typing import Any, Final

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

TERMS: Final = (
    "action mask", "age of information", "baseline", "coordinator", "disturbance", "event clock", "feature",
    "field agent", "fixture", "no-op", "observability matrix", "protocol", "proxy", "quantity", "run folder",
    "set-point", "substep", "synchronous clock", "system agent", "tick",
)  # fmt: skip
"""Those with a meaning of their own here; other entries are plain words as well."""
FOUND: Final = re.compile(rf"\b({'|'.join(TERMS)})(s|ies)?\b", re.IGNORECASE)
ELSEWHERE: Final = (nodes.title, nodes.reference, nodes.literal, nodes.literal_block, addnodes.pending_xref, nodes.term)


def inside(node: Any, kinds: tuple[type, ...]) -> bool:
    """Is a node below one of these kinds?"""
    return node is not None and (isinstance(node, kinds) or inside(node.parent, kinds))


class GlossaryLinks(SphinxTransform):
    """Before Sphinx resolves references."""

    default_priority = 300

    def apply(self, **_: Any) -> None:
        """Each term once, in running text."""
        if self.env.docname in ("glossary", "changelog") or self.env.docname.startswith(("api/", "notebooks/")):
            return
        linked = set[str]()
        for text in [*self.document.findall(nodes.Text)]:
            if inside(text, ELSEWHERE):
                continue
            parts, end = [], 0
            for match in FOUND.finditer(str(text)):
                term = match[1].lower()
                if term in linked:
                    continue
                linked.add(term)
                link = addnodes.pending_xref(
                    "", nodes.inline("", match[0]), refdomain="std", reftype="term", reftarget=term, refexplicit=True
                )
                link["refdoc"] = self.env.docname
                parts += [nodes.Text(str(text)[end : match.start()]), link]
                end = match.end()
            if parts:
                text.parent.replace(text, [*parts, nodes.Text(str(text)[end:])])


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx asks of an extension."""
    app.add_transform(GlossaryLinks)
    return {"parallel_read_safe": True}
