"""A plan's graph as text, Graphviz and Mermaid. Pure; must not know where the graph comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler.model import Json
from scheduler.report.plain import flat

PER_LAYER = 40
NAMED = 4
WIDTH = 120


@dataclass(frozen=True, slots=True)
class Node:
    """One task: its title, its state when it has one (a plan file has none), and its blockers."""

    task: str
    title: str = ""
    state: str = ""
    blockers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawing:
    """A named graph with its layers (lists of task ids, blockers before dependents)."""

    name: str
    nodes: Mapping[str, Node]
    layers: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Signs:
    """Characters of a tree: UTF-8 terminals get lines and marks, others ASCII."""

    branch: str
    last: str
    pipe: str
    arrow: str
    dots: str
    marks: Mapping[str, str]


UNICODE = Signs(
    "├── ",
    "└── ",
    "│   ",
    "←",
    "…",
    {
        "pending": "○",
        "claimed": "◔",
        "running": "▶",
        "verifying": "◕",
        "completed": "✔",
        "failed": "✘",
        "skipped": "↷",
        "cancelled": "⊘",
        "invalidated": "⌀",
    },
)
ASCII = Signs(
    "|-- ",
    "`-- ",
    "|   ",
    "<-",
    "...",
    {
        "pending": ".",
        "claimed": "c",
        "running": ">",
        "verifying": "?",
        "completed": "+",
        "failed": "x",
        "skipped": "-",
        "cancelled": "/",
        "invalidated": "!",
    },
)


def text(drawing: Drawing, signs: Signs, width: int = WIDTH) -> str:
    """An indented tree by layers: each task once, under the layer that its longest way from the start gives it."""
    lines = [flat(drawing.name)]
    for number, layer in enumerate(drawing.layers, start=1):
        last_layer = number == len(drawing.layers)
        lines.append(f"{signs.last if last_layer else signs.branch}layer {number} ({len(layer)})")
        indent = "    " if last_layer else signs.pipe
        shown = layer[:PER_LAYER]
        left = len(layer) - len(shown)
        for place, task in enumerate(shown, start=1):
            sign = signs.last if place == len(shown) and not left else signs.branch
            lines.append(indent + sign + _label(drawing.nodes[task], signs))
        if left:
            lines.append(f"{indent}{signs.last}{signs.dots} {left} more")
    return "\n".join(line if len(line) <= width else line[: width - len(signs.dots)] + signs.dots for line in lines)


def _label(node: Node, signs: Signs) -> str:
    parts = [node.task]
    if node.state:
        parts = [signs.marks.get(node.state, "?"), node.task, node.state]
    if node.blockers:
        more = f" +{len(node.blockers) - NAMED}" if len(node.blockers) > NAMED else ""
        parts.append(f"{signs.arrow} {', '.join(node.blockers[:NAMED])}{more}")
    title = flat(node.title)
    return " ".join(parts) + (f"  {title}" if title and title != node.task else "")


_FILLS = {
    "claimed": "#cfe8ff",
    "running": "#9ecbff",
    "verifying": "#c8b6ff",
    "completed": "#b7e4c7",
    "failed": "#ffb3b3",
    "skipped": "#e0e0e0",
    "cancelled": "#ffe0b3",
    "invalidated": "#d9d9d9",
}


def dot(drawing: Drawing) -> str:
    """Graphviz. Names are quoted strings, so any character may be in them."""
    lines = [f"digraph {_quoted(drawing.name)} {{", "  rankdir=LR;", '  node [shape=box, style="rounded,filled"];']
    for node in _ordered(drawing):
        label = node.task if not node.title else f"{node.task}\n{flat(node.title)}"
        fill = _FILLS.get(node.state, "#ffffff")
        lines.append(f"  {_quoted(node.task)} [label={_quoted(label)}, fillcolor={_quoted(fill)}];")
    lines += [f"  {_quoted(before)} -> {_quoted(node.task)};" for node in _ordered(drawing) for before in node.blockers]
    return "\n".join([*lines, "}"])


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def mermaid(drawing: Drawing) -> str:
    """Mermaid, for Markdown. Nodes are numbered, because words such as `end` break it; labels are escaped."""
    numbers = {node.task: f"n{place}" for place, node in enumerate(_ordered(drawing))}
    lines = ["flowchart LR"]
    for node in _ordered(drawing):
        style = f":::{node.state}" if node.state in _FILLS else ""
        title = flat(node.title)
        label = f"{_entities(node.task)}<br>{_entities(title)}" if title else _entities(node.task)
        lines.append(f'  {numbers[node.task]}["{label}"]{style}')
    lines += [f"  {numbers[b]} --> {numbers[node.task]}" for node in _ordered(drawing) for b in node.blockers]
    used = {node.state for node in drawing.nodes.values()}
    lines += [f"  classDef {state} fill:{fill}" for state, fill in _FILLS.items() if state in used]
    return "\n".join(lines)


_ENTITIES = {'"': "#quot;", "#": "#35;", "&": "#amp;", "<": "#lt;", ">": "#gt;", "`": "#96;", ";": "#59;"}


def _entities(value: str) -> str:
    return "".join(_ENTITIES.get(character, character) for character in value)


def as_json(drawing: Drawing) -> dict[str, Json]:
    """Nodes with their layers, and edges, for `graph --json`."""
    nodes: list[Json] = []
    edges: list[Json] = []
    for number, layer in enumerate(drawing.layers, start=1):
        for task in layer:
            node = drawing.nodes[task]
            nodes.append({"id": task, "title": node.title, "state": node.state or None, "layer": number})
            edges += [{"from": before, "to": task} for before in node.blockers]
    return {"schema": "dagward/graph/1", "plan": drawing.name, "nodes": nodes, "edges": edges}


def _ordered(drawing: Drawing) -> list[Node]:
    return [drawing.nodes[task] for layer in drawing.layers for task in layer]
