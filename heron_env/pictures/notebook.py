"""How things show themselves in a notebook: small tables of escaped text, the same in light and dark themes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from heron_env.core.hierarchy import Hierarchy
from heron_env.core.layout import Layout

LEFT = "text-align:left"
RIGHT = "text-align:right"


def html_table(head: Sequence[object], rows: Iterable[Sequence[object]], *, words: int = 1, note: str = "") -> str:
    """Make an HTML table, all escaped; the first `words` columns are texts, the others numbers; `note`: below."""
    style = [LEFT if number < words else RIGHT for number in range(len(head))]

    def line(tag: str, cells: Sequence[object]) -> str:
        parts = (f'<{tag} style="{s}">{escape(str(c))}</{tag}>' for s, c in zip(style, cells, strict=True))
        return f"<tr>{''.join(parts)}</tr>"

    body = "".join(line("td", row) for row in rows)
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table>{below}"


def counted(number: int, name: str) -> str:
    """`1 agent`, `1,440 agents`, `2 policies`."""
    many = f"{name[:-1]}ies" if name.endswith("cy") else f"{name}s"
    return f"{number:,} {name if number == 1 else many}"


def shortened(names: Sequence[str], most: int = 4) -> str:
    """`a, b, c and 7 more`."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def truth_text(hierarchy: Hierarchy, layout: Layout, truth: NDArray[np.float64], time: float) -> str:
    """The tree with all values, one agent a line."""
    lines = [f"t = {time:g} s"]
    for row in layout.rows:
        depth = hierarchy.depth(hierarchy.index.get(row.owner_id, -1))
        values = [
            f"{layout.names[i]}={truth[i]:.4g}" for i in range(row.offset, row.offset + row.width) if layout.observed[i]
        ]
        if values or row.owner_id in hierarchy.index:
            lines.append(f"{'  ' * depth}{row.owner_id}  {'  '.join(values)}".rstrip())
    return "\n".join(lines)
