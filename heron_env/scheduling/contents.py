"""How many bytes a message holds, and what a newer one takes the place of (T25, T26)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from heron_env.core.plans import SentPlan
from heron_env.scheduling import messages as m

KINDS: dict[type[m.Message], str] = {
    m.ObservationRequest: "request", m.ObservationReply: "reply", m.ObservationPush: "push", m.Command: "command",
    m.PushedCommand: "command", m.StateReport: "report", m.SharedState: "share", m.LetterUnderWay: "letter",
    m.CustomLetter: "custom", m.ObservationCopy: "reply", m.ActionCommand: "command",
}  # fmt: skip


def content_size(message: Any, sizes: dict[str, float]) -> float:
    """Bytes of a message's content; it never depends on the numbers in it."""
    if (size := sizes.get(KINDS[type(message)])) is not None:
        return size
    match message:
        case m.ObservationReply() | m.ObservationPush():
            return 4.0 * len(message.vector)
        case m.StateReport():
            return 4.0 * message.view.size
        case m.Command() | m.PushedCommand() | m.SharedState():
            return 4.0 * count(message.values)
        case m.LetterUnderWay():
            return float(len(message.letter.text.encode()))
        case m.CustomLetter():
            payload = dict(message.content.payload)
            return float(len(json.dumps(payload, separators=(",", ":"), default=str).encode()))
        case m.ObservationCopy():
            return 4.0 * count(message.content)
        case m.ActionCommand():
            return 4.0 * count(message.action)
    return 0.0


def count(content: Any) -> int:
    """Numbers in an observation, an action or a plan, of any form."""
    if isinstance(content, SentPlan):  # its rules are a header: a plan of one is as large as its action (P1)
        content = content.rows
    if isinstance(content, dict):
        return sum(map(count, content.values()))
    if isinstance(content, tuple | list):
        return sum(map(count, content))
    return int(np.size(content))


def stream_of(message: Any) -> Any:
    """What a newer message takes the place of an older one in; None: each counts, as letters do."""
    match message:
        case m.StateReport():
            return "report", message.agent, message.row
        case m.SharedState():
            return "share", message.edge
        case m.ObservationCopy():
            return "reply", message.agent, message.receiver, message.part
        case m.LetterUnderWay() | m.CustomLetter():
            return None
    return KINDS[type(message)], message.agent
