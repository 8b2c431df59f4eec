"""Colour on terminals: tables and lines. Nothing is coloured elsewhere or under NO_COLOR."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

import click

from scheduler.cli.context import terminal_width

COLOURS: Mapping[str, str] = {
    "running": "cyan",
    "verifying": "cyan",
    "claimed": "cyan",
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "cancelling": "yellow",
    "paused": "yellow",
    "awaiting_approval": "yellow",
    "deadlocked": "red",
    "skipped": "bright_black",
    "lost": "red",
    "ok": "green",
    "warn": "yellow",
    "fail": "red",
    "accepted": "green",
    "REFUSED": "red",
}


def coloured() -> bool:
    """Whether stdout is a terminal that may be coloured."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def put_table(header: Sequence[str], rows: Sequence[Sequence[str]], word: int | None = None) -> None:
    """A table as `put_rows` prints it; on a terminal each line gets the colour of its cell number `word`."""
    from scheduler.report.table import render

    text = render(header, rows, width=terminal_width())
    if word is None or not coloured():
        click.echo(text, nl=False)
        return
    lines = text.splitlines()
    click.echo(click.style(lines[0], bold=True))
    for line, row in zip(lines[1:], rows, strict=True):
        first = row[word].split(maxsplit=1)
        click.echo(click.style(line, fg=COLOURS.get(first[0] if first else "")))
