"""Durations as people write them (`500ms 90s 20m 2h 1d`) and as the program holds them: integer milliseconds.

Must not know about plans, files or places in them.
"""

from __future__ import annotations

import re

UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
PATTERN = r"^[0-9]{1,12}(ms|s|m|h|d)$"
LONGEST = 365 * UNITS["d"]

_SHAPE = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)", re.ASCII)


class BadDuration(ValueError):
    """A value that is no duration; `remedy` says what to write instead."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def parse_duration(value: object, *, zero: bool = False) -> int:
    """Milliseconds of a written duration, at least 1 (0 only with `zero`) and at most 365 days.

    Raises BadDuration for everything else. A bare number is refused because it does not say its unit.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise BadDuration(f"{value} has no unit", f"write {value}s, or 20m, 2h")
    if not isinstance(value, str):
        raise BadDuration("must be a duration", "write 90s, 20m or 2h")
    found = _SHAPE.fullmatch(value)
    if found is None:
        raise BadDuration(f'"{_short(value)}" is not a duration', "write 90s, 20m or 2h")
    millis = int(found[1]) * UNITS[found[2]]
    if millis == 0 and not zero:
        raise BadDuration(f'"{value}" is no time at all', "write at least 1ms")
    if millis > LONGEST:
        raise BadDuration(f'"{value}" is longer than 365d', "write at most 365d")
    return millis


def format_duration(millis: int) -> str:
    """The shortest exact way to write a number of milliseconds, such as `90s` or `2h`."""
    for unit in ("d", "h", "m", "s"):
        if millis and millis % UNITS[unit] == 0:
            return f"{millis // UNITS[unit]}{unit}"
    return f"{millis}ms"


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
