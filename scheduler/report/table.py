"""Tables: aligned for a terminal, tab-separated elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Sequence

GAP = "  "


def render(header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> str:
    """The table as text that ends in a newline. `width` None: tab-separated, nothing cut, no alignment."""
    if width is None:
        return "".join("\t".join(_flat(cell) for cell in row) + "\n" for row in [header, *rows])
    widths = [max(len(_flat(row[i])) for row in [header, *rows]) for i in range(len(header))]
    lines = []
    for row in [header, *rows]:
        cells = [_flat(cell).ljust(widths[i]) for i, cell in enumerate(row)]
        line = GAP.join(cells).rstrip()
        lines.append(line if len(line) <= width else line[: max(width - 1, 1)] + "…")
    return "\n".join(lines) + "\n"


def _flat(cell: str) -> str:
    return " ".join(cell.split("\t")).replace("\n", " ")
