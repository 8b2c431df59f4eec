"""Paths and scope patterns as a file may write them: `path`, `dir/**` or `**`, always relative and below.

Must not know what is matched with them.
"""

from __future__ import annotations

from scheduler.instances import MARK
from scheduler.planfile.report import Report, clip
from scheduler.planfile.source import Path

_FORMS = 'write a path, "dir/**" for all below a folder, or "**" for everything'


def check_patterns(patterns: object, path: Path, report: Report, *, item: bool = False) -> None:
    """Every text of a list must be a pattern; what is no text is said by the shape. `item`: it may be named."""
    for place, pattern in enumerate(patterns if isinstance(patterns, list) else ()):
        if isinstance(pattern, str):
            check_pattern(pattern, (*path, place), report, item=item)


def check_pattern(pattern: str, path: Path, report: Report, *, item: bool = False) -> None:
    """One pattern of a scope or a diff check."""
    if "{{" in pattern and not item:
        report.error(path, "only the scope of a task with for_each may hold {{ item }}", "write the path out")
        return
    if "{{" in MARK.sub("", pattern):
        message = f'"{clip(pattern)}" holds more than the item'
        report.error(path, message, "write {{ item }} or {{ item.NAME }}, and the rest out")
        return
    stem = "" if pattern == "**" else pattern.removesuffix("/**")
    if "*" in stem:
        report.error(path, f'"{clip(pattern)}" is not a scope pattern', _FORMS)
    elif pattern != "**":
        check_path(stem, path, report, shown=pattern)


def check_path(text: str, path: Path, report: Report, *, shown: str = "") -> None:
    """A relative path of the workspace, with `/`, without `.` and `..`."""
    parts = text.split("/")
    shown = clip(shown or text)
    if text.startswith("/"):
        report.error(path, f'"{shown}" is an absolute path', "write it relative to the workspace")
    elif ".." in parts:
        report.error(path, f'"{shown}" leaves the workspace', 'write it without ".."')
    elif "\\" in text or "\0" in text or "\n" in text:
        report.error(path, f'"{shown}" is not a path', 'write it with "/", without control characters')
    elif "" in parts or "." in parts:
        text_end = "/**" if shown.endswith("/**") else ""
        short = "/".join(part for part in parts if part not in ("", "."))
        report.error(path, f'"{shown}" is not a plain path', f'write "{short}{text_end}"' if short else _FORMS)
