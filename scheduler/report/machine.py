"""The two state machines as pictures, from the transition tables. Pure."""

from __future__ import annotations

from scheduler.lifecycle import PLAN_TRANSITIONS, TRANSITIONS
from scheduler.model import PLAN_ENDED


def task_diagram() -> str:
    """Mermaid state diagram of a task; events that keep the state are left out, each arrow says who moves it."""
    lines = ["stateDiagram-v2", "    [*] --> pending"]
    arrows: dict[tuple[str, str], list[str]] = {}
    for move in TRANSITIONS:
        if move.source is not move.target:
            arrows.setdefault((move.source, move.target), []).append(move.event)
    lines += [f"    {source} --> {target}: {', '.join(events)}" for (source, target), events in arrows.items()]
    lines.append("    completed --> [*]")
    return "\n".join(lines)


def plan_diagram() -> str:
    """Mermaid state diagram of a plan."""
    lines = ["stateDiagram-v2"]
    lines += [f"    {move.source or '[*]'} --> {move.target}: {move.event}" for move in PLAN_TRANSITIONS]
    lines += [f"    {state} --> [*]" for state in sorted(PLAN_ENDED) if state != "failed"]
    return "\n".join(lines)


def task_table() -> str:
    """Markdown table of every move: event, from, to, what must be shown, who."""
    rows = ["| event | from | to | fence | who |", "| --- | --- | --- | --- | --- |"]
    rows += [f"| {m.event} | {m.source} | {m.target} | {m.fence.replace('_', ' ')} | {m.who} |" for m in TRANSITIONS]
    return "\n".join(rows)
