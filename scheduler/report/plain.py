"""Words of agents and times made fit for a terminal. Pure; must not know what the words say."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def visible(text: str, *, colours: bool = False) -> str:
    """The text without what moves a cursor, rings or retitles a terminal; line ends and tabs stay.

    `colours`: SGR sequences stay too. A title, a reason or a log line is an agent's word and may hold anything.
    """

    def keep(found: re.Match[str]) -> str:
        if found[0] == "\r":
            return "\r"
        return found[0] if colours and _COLOUR.fullmatch(found[0]) else ""

    return _CONTROL.sub(keep, text)


def flat(text: str, most: int = 0) -> str:
    """The visible text on one line, cut to `most` characters (0: not cut)."""
    line = " ".join(visible(text).split())
    return line if not most or len(line) <= most else line[: most - 1] + "…"


def iso(milliseconds: int) -> str:
    """Server time as ISO 8601 in UTC, for JSON and for tables that are read by programs."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clock(milliseconds: int, zone: tzinfo | None = None, *, millis: bool = False) -> str:
    """Server time as `hh:mm:ss`, or with `millis` as `hh:mm:ss.mmm`; `zone` None is that of the machine."""
    moment = datetime.fromtimestamp(milliseconds / 1000, zone)
    return moment.strftime("%H:%M:%S") + (f".{milliseconds % 1000:03d}" if millis else "")


def clipped(words: list[str] | tuple[str, ...], most: int = 5) -> str:
    """`a, b, c and 4 more`."""
    shown = ", ".join(words[:most])
    return f"{shown} and {len(words) - most} more" if len(words) > most else shown


def plural(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
