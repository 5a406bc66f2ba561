"""The frame of every page: one HTML file that asks for nothing from elsewhere."""

from __future__ import annotations

from html import escape
from typing import Final


def page(title: str, style: str, body: str, script: str = "") -> str:
    """The document; `body` is HTML, the title plain text."""
    end = f"\n<script>{script}</script>" if script else ""
    return FRAME.format(title=escape(title), style=style, body=body, end=end)


FRAME: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>{end}
</body>
</html>
"""
