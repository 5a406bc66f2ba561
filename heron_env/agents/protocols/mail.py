"""Mail: who may write letters to whom.

    SystemAgent("system_agent", *traders, exchange=Mail("full"))

Policies that answer (`AnsweringPolicy`) write letters with their answers and find those that came in `asked.letters`.
In the event-driven clock a letter travels over its sender's link, late, twice or never; synchronously it is there at
the receiver's next question.
"""

from __future__ import annotations

from typing import ClassVar

from heron_env.agents.protocols.topology import Topology


class Mail(Topology):
    """The edges over which letters go; a pair may also name the declaring agent itself: `[("boss", "worker")]`."""

    itself: ClassVar[bool] = True

    def __repr__(self) -> str:
        """`Mail('full')`."""
        return f"{type(self).__name__}({self.shown_edges})"
