"""What worker main last confirmed, as the guard sees it: a deadline of the monotonic clock. Standard library only.

Must not know servers, tokens or renewals, nor what is done about a lapse: the guard does that.
"""

from __future__ import annotations

from workers.channel import Message


class Lease:
    """What worker main last confirmed. Nothing is frozen before the first beat."""

    def __init__(self) -> None:
        self.deadline: float | None = None
        self.held: frozenset[str] = frozenset()
        self.sent = 0.0

    def renew(self, message: Message) -> None:
        """Take over a beat. Raises ValueError when it is none."""
        deadline, held, sent = message.get("deadline"), message.get("held"), message.get("sent")
        if not isinstance(deadline, int | float) or not isinstance(held, list):
            raise ValueError("a beat needs `deadline` and `held`")
        self.deadline = float(deadline)
        self.held = frozenset(item for item in held if isinstance(item, str))
        self.sent = float(sent) if isinstance(sent, int | float) else float("inf")

    def lapsed(self, now: float) -> bool:
        """True when no renewal covers this moment."""
        return self.deadline is not None and now >= self.deadline

    def ruling(self, attempt: str, since: float) -> str:
        """Whether a live lease covers an attempt: held, fenced, or unknown (asked for before it began)."""
        if attempt in self.held:
            return "held"
        return "fenced" if since < self.sent else "unknown"
