"""YAML text -> values by the YAML 1.2 core schema (`no`, `on` and `12:30` stay text), with a way back to the text.

PyYAML only scans and composes (its C parser reads 10,000 tasks in a second; a pure one takes fifteen); what a
scalar means is decided here. Must not know what a plan is. The only import of yaml.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from scheduler.planfile.source import Defect, Path, Source, Step, Unreadable

FREE_COPIES = 100_000
"""Values that aliases may add to a file before it counts as a bomb; ten times the file's own values are free too."""

_PLAIN = "plain"
_STANDARD = "tag:yaml.org,2002:"
_TAGS = {"str", "int", "float", "bool", "null", "map", "seq"}
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NUMBER_START = frozenset("+-.0123456789")
_INT = re.compile(r"[-+]?[0-9]+", re.ASCII)
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

_Base = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader


class _Loader(_Base):  # type: ignore[misc,valid-type]  # one of two classes with the same shape
    """Composes nodes; leaves the meaning of plain scalars open."""

    def resolve(self, kind: type[Node], value: object, implicit: object) -> str:  # noqa: ARG002
        if kind is ScalarNode:
            return _PLAIN if isinstance(implicit, tuple) and implicit[0] else _STANDARD + "str"
        return _STANDARD + ("map" if kind is MappingNode else "seq")


def read_yaml(text: str) -> Source:
    """Parse one YAML document. Raises Unreadable for a syntax error; everything else is collected as defects."""
    hidden = _hide_odd_breaks(text)
    try:
        root: Node | None = yaml.compose(text.translate(hidden), Loader=_Loader)
        if root is None:
            raise Unreadable(Defect("the file is empty", "write a plan; `dagward init` makes an example"))
        builder = _Builder({ord(stand_in): code for code, stand_in in hidden.items()})
        value = builder.build(root, ())
    except yaml.MarkedYAMLError as error:
        raise Unreadable(_syntax(error, text)) from None
    except yaml.reader.ReaderError as error:
        raise Unreadable(_character(error, text)) from None
    except RecursionError:
        raise Unreadable(Defect("the file is nested too deeply", "make it flatter")) from None
    return Source(text, value, YamlPlaces(root), tuple(builder.defects))


def _hide_odd_breaks(text: str) -> dict[int, str]:
    """YAML 1.2 took NEL, LS and PS out of the line breaks; the parser still knows 1.1, so it gets to see others."""
    odd = [each for each in "\x85\u2028\u2029" if each in text]
    unused = (chr(code) for code in range(0xE000, 0xF900) if chr(code) not in text) if odd else iter(())
    return dict(zip(map(ord, odd), unused, strict=False))


def _character(error: yaml.reader.ReaderError, text: str) -> Defect:
    where = re.search(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    code = ord(where[0]) if where else error.character
    shown = f"U+{code:04X}" if isinstance(code, int) else "a character"
    message = f"the control character {shown} may not stand in YAML"
    return Defect(message, 'remove it, or write it as "\\x.." in double quotes', where.start() if where else None)


def _syntax(error: yaml.MarkedYAMLError, text: str) -> Defect:
    mark = error.problem_mark or error.context_mark
    index = mark.index if mark is not None else None
    problem = error.problem or "cannot be read"
    if isinstance(error, yaml.composer.ComposerError) and "single document" in (error.context or ""):
        return Defect("the file holds more than one YAML document", 'keep one plan in a file; remove "---"', index)
    if index is not None and text[index : index + 1] == "\t":
        return Defect("a tab stands where YAML wants spaces", "indent with spaces", index)
    if problem.startswith(("found undefined alias", "found duplicate anchor")):
        return Defect(f"not valid YAML: {problem}", "correct the anchor's name", index)
    if "nesting depth" in problem:
        return Defect("the file is nested too deeply", "make it flatter", index)
    context = f" ({error.context})" if error.context else ""
    return Defect(f"not valid YAML: {problem}{context}", "correct the YAML; quote texts with : # { or *", index)


class _Builder:
    """Turns nodes into values once each; an alias shares the value, so no bomb is ever expanded here."""

    def __init__(self, shown: dict[int, int]) -> None:
        self.defects: list[Defect] = []
        self._shown = shown  # characters that stand in for others
        self._values: dict[Node, object] = {}
        self._sizes: dict[Node, int] = {}  # values in a node, its aliases written out
        self._open: set[Node] = set()
        self._copied = 0

    def build(self, node: Node, path: Path) -> object:
        """The value of a node."""
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if node in self._open:
            raise Unreadable(Defect("an anchor contains itself", "remove the alias", node.start_mark.index))
        if node in self._values:
            self._count(node)
            return self._values[node]
        self._open.add(node)
        value: object = self._mapping(node, path) if isinstance(node, MappingNode) else self._list(node, path)
        self._open.discard(node)
        self._values[node] = value
        self._sizes[node] = 1 + sum(self._sizes.get(child, 1) for child in _below(node))
        self._check_tag(node, path)
        return value

    def _count(self, node: Node) -> None:
        self._copied += self._sizes[node]
        if self._copied > max(FREE_COPIES, 10 * len(self._values)):
            message = f"aliases blow this file up to more than {FREE_COPIES:,} copied values"
            raise Unreadable(Defect(message, "write the values out, or use defaults", node.start_mark.index))

    def _list(self, node: Node, path: Path) -> list[object]:
        return [self.build(child, (*path, place)) for place, child in enumerate(node.value)]

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, object]:
        made: dict[str, object] = {}
        merged: list[Node] = []
        for key_node, value_node in node.value:
            key = self._key(key_node, path)
            if key is None:
                continue
            if _is_merge(key_node):
                merged.append(value_node)
            elif key in made:
                self._defect(key_node, (*path, key), f'duplicate key "{key}"', "keep one of the two")
            else:
                made[key] = self.build(value_node, (*path, key))
        for value_node in merged:
            for name, value in self._merge(value_node, path).items():
                made.setdefault(name, value)
        return made

    def _merge(self, node: Node, path: Path) -> dict[str, object]:
        value = self.build(node, path)
        made: dict[str, object] = {}
        for part in value if isinstance(value, list) else [value]:
            if not isinstance(part, dict):
                self._defect(node, (*path, "<<"), 'the merge key "<<" takes a mapping', "write <<: *name")
                continue
            for name, item in part.items():
                made.setdefault(name, item)
        return made

    def _key(self, node: Node, path: Path) -> str | None:
        if not isinstance(node, ScalarNode):
            self._defect(node, path, "a key must be a text", "write a plain word")
            return None
        found = self._scalar(node, path)
        if isinstance(found, str):
            return found
        shown = str(node.value)
        self._defect(node, path, f"the key {shown or 'nothing'} is not a text", f'write "{shown}"')
        return None

    def _scalar(self, node: ScalarNode, path: Path) -> object:
        tag, text = node.tag, node.value.translate(self._shown) if self._shown else node.value
        if tag == _STANDARD + "str":
            return text
        if tag != _PLAIN:
            self._check_tag(node, path)
        return self._plain(node, text, path)

    def _plain(self, node: ScalarNode, text: str, path: Path) -> object:
        if text in _NULL:
            return None
        if text in _BOOL:
            return _BOOL[text]
        if text[0] not in _NUMBER_START:
            return text
        if _INFINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and not _finite(text)):
            message = f"the number {text[:40]} is not finite" if len(text) < 300 else "the number is too long"
            self._defect(node, path, message, "write a finite number, or a text in quotes")
            return None
        return _number(text)

    def _check_tag(self, node: Node, path: Path) -> None:
        if node.tag.removeprefix(_STANDARD) not in _TAGS:
            shown = node.tag.replace(_STANDARD, "!!")
            self._defect(node, path, f"the tag {shown} is not used in plan files", "remove it")

    def _defect(self, node: Node, path: Path, message: str, remedy: str) -> None:
        self.defects.append(Defect(message, remedy, node.start_mark.index, path))


def _number(text: str) -> object:
    if _INT.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    return float(text) if _FLOAT.fullmatch(text) else text


def _finite(text: str) -> bool:
    # int() refuses more than 4,300 digits; no number of a plan needs more than these.
    return len(text) < 300 and math.isfinite(float(text))


def _below(node: Node) -> Iterator[Node]:
    if isinstance(node, MappingNode):
        return (value for _, value in node.value)
    return iter(node.value)


def _is_merge(node: Node) -> bool:
    return bool(node.tag == _PLAIN and node.value == "<<")


class YamlPlaces:
    """Finds values in composed nodes. A value that came by an alias or a merge is found where it is written."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._seen: dict[Node, dict[Step, tuple[Node, Node]]] = {}

    def find(self, path: Path, *, key: bool) -> int:
        """Index of the value at `path`, of its key, or of the nearest value around it."""
        at = at_key = self._root
        for step in path:
            found = self._children(at).get(step)
            if found is None:
                break
            at_key, at = found
        else:
            return int((at_key if key else at).start_mark.index)
        return int(at.start_mark.index)

    def _children(self, node: Node) -> dict[Step, tuple[Node, Node]]:
        if node not in self._seen:
            self._seen[node] = self._list_children(node)
        return self._seen[node]

    def _list_children(self, node: Node) -> dict[Step, tuple[Node, Node]]:
        if isinstance(node, SequenceNode):
            return {place: (child, child) for place, child in enumerate(node.value)}
        if not isinstance(node, MappingNode):
            return {}
        made: dict[Step, tuple[Node, Node]] = {}
        merged: list[Node] = []
        for key_node, value_node in node.value:
            if _is_merge(key_node):
                merged += value_node.value if isinstance(value_node, SequenceNode) else [value_node]
            elif isinstance(key_node, ScalarNode):
                made.setdefault(key_node.value, (key_node, value_node))
        for part in merged:
            for step, found in self._children(part).items():
                made.setdefault(step, found)
        return made
