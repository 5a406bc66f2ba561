"""Bare codes of laws, such as T6 or V3, lead to the page of laws, wherever they stand in prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

CODE = re.compile(r"\b([VNTR][1-9]\d?)\b")
UNTOUCHED = (nodes.literal, nodes.literal_block, nodes.doctest_block, nodes.raw, nodes.title, nodes.reference)
UNTOUCHED += (nodes.comment, addnodes.pending_xref, addnodes.desc_signature)


def label(code: str) -> str:
    """The target before the law's heading."""
    return f"law-{code.lower()}"


def linked(prose: str) -> Iterator[nodes.Node]:
    """The text, its codes as links that Sphinx resolves, and warns of where there is no such law."""
    for part in CODE.split(prose):
        if not CODE.fullmatch(part):
            yield nodes.Text(part)
            continue
        options = {"refdomain": "std", "reftype": "ref", "reftarget": label(part), "refexplicit": True, "refwarn": True}
        yield addnodes.pending_xref("", nodes.inline(part, part), **options)


class LawLinks(SphinxTransform):
    """After a page is read, before its references are resolved."""

    default_priority = 700

    def apply(self, **_: Any) -> None:
        """In all prose of the page."""
        for found in list(self.document.findall(nodes.Text)):
            node, parent = found, found.parent
            while parent is not None and not isinstance(parent, UNTOUCHED):
                parent = parent.parent
            if parent is None and CODE.search(node.astext()):
                replaced = [part for part in linked(node.astext()) if part.astext()]
                for part in replaced:
                    if isinstance(part, addnodes.pending_xref):
                        part["refdoc"] = self.env.docname
                node.parent.replace(node, replaced)


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx asks of an extension."""
    app.add_transform(LawLinks)
    return {"parallel_read_safe": True}
