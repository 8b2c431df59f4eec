"""Graphs as text, dot and mermaid: quoting, layers, caps."""

from __future__ import annotations

import re

from scheduler.report import graph
from scheduler.report.graph import ASCII, UNICODE, Drawing, Node


def drawing(*nodes: Node, layers: list[list[str]]) -> Drawing:
    return Drawing("p-bcdfg", {node.task: node for node in nodes}, layers)


SMALL = drawing(
    Node("a", 'Say "hi" & <b>', "completed"),
    Node("end", "", "failed"),
    Node("c", "", "pending", ("a", "end")),
    layers=[["a", "end"], ["c"]],
)


def test_text_is_a_tree_by_layers() -> None:
    assert graph.text(SMALL, UNICODE) == (
        "p-bcdfg\n"
        "├── layer 1 (2)\n"
        '│   ├── ✔ a completed  Say "hi" & <b>\n'
        "│   └── ✘ end failed\n"
        "└── layer 2 (1)\n"
        "    └── ○ c pending ← a, end"
    )
    plain = graph.text(SMALL, ASCII)
    assert plain.isascii()
    assert "    `-- . c pending <- a, end" in plain


def test_text_of_a_file_has_no_states() -> None:
    shown = graph.text(drawing(Node("a"), layers=[["a"]]), UNICODE)
    assert shown == "p-bcdfg\n└── layer 1 (1)\n    └── a"


def test_text_is_capped_in_both_directions() -> None:
    wide = [f"t{n}" for n in range(100)]
    shown = graph.text(
        drawing(*(Node(name, "long " * 50) for name in wide), Node("z", "", "", tuple(wide)), layers=[wide, ["z"]]),
        UNICODE,
        width=60,
    )
    lines = shown.splitlines()
    assert "│   └── … 60 more" in lines
    assert len(lines) == 1 + 1 + graph.PER_LAYER + 1 + 2
    assert max(map(len, lines)) == 60
    assert lines[-1].endswith("z ← t0, t1, t2, t3 +96")


def test_dot_quotes_everything() -> None:
    text = graph.dot(drawing(Node("a", 'x "y" \\ z'), Node("b", "", "", ("a",)), layers=[["a"], ["b"]]))
    assert '"a" [label="a\\nx \\"y\\" \\\\ z"' in text
    assert '  "a" -> "b";' in text
    assert text.count('"') % 2 == 0


def test_mermaid_survives_reserved_words_and_markup() -> None:
    text = graph.mermaid(SMALL)
    assert text.startswith("flowchart LR\n")
    assert not re.search(r"^\s*end\b", text, re.MULTILINE), "`end` as a node breaks a flowchart"
    assert 'n0["a<br>Say #quot;hi#quot; #amp; #lt;b#gt;"]:::completed' in text
    assert "  n1 --> n2" in text
    assert "classDef failed" in text
    assert "classDef running" not in text


def test_json_has_layers_and_edges() -> None:
    made = graph.as_json(SMALL)
    assert made["schema"] == "dagward/graph/1"
    assert made["edges"] == [{"from": "a", "to": "c"}, {"from": "end", "to": "c"}]
    assert [node["layer"] for node in made["nodes"]] == [1, 1, 2]  # type: ignore[index,call-overload,union-attr]


def test_a_title_cannot_move_the_cursor() -> None:
    shown = graph.text(drawing(Node("a", "x\x1b[2J\x1b]0;t\x07y\nz"), layers=[["a"]]), UNICODE)
    assert shown.endswith("a  xy z")
