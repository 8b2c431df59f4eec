"""`$DAGWARD_INPUTS`: what the direct blockers of a task produced, read-only.

Must not know how a task is run; `beneath.remove_tree` takes the folder away again.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from scheduler.errors import Infrastructure
from scheduler.model import Ancestor, Json
from workers.workspace.beneath import Unsafe, empty_folder, read_beneath, walk
from workers.workspace.snapshots import Snapshots

OUTPUTS_CAP = 1_000_000
"""Bytes of a task's outputs. They are stored with the result; files belong into the workspace."""


DEEPEST_OUTPUTS = 100
"""Objects and arrays inside each other; those who read them again have limits of their own."""

LONGEST_NUMBER = 400
"""Digits of a whole number, as many as a float may have."""


class BadOutputs(Unsafe):
    """Write one JSON object into the file that `$DAGWARD_OUTPUTS` names."""

    code = "bad_outputs"


def write_inputs(into: Path, ancestors: Sequence[Ancestor], snapshots: Snapshots | None = None) -> Path:
    """`<task>/outputs.json` for each direct blocker and, with `snapshots` (a scratch plan), its files under
    `<task>/files/`. Replaces what was at `into`."""
    empty_folder(into)
    for one in ancestors:
        if not one.direct:
            continue
        if Path(one.task).name != one.task or one.task in (".", ".."):
            raise Infrastructure(f"{one.task!r} cannot be a folder of inputs")
        place = into / one.task
        place.mkdir(mode=0o700)
        (place / "outputs.json").write_text(json.dumps(one.outputs, ensure_ascii=False, indent=2) + "\n", "utf-8")
        for number, part in enumerate(one.parts):
            folder = place / str(number)
            folder.mkdir(mode=0o700)
            (folder / "outputs.json").write_text(json.dumps(part.outputs, ensure_ascii=False, indent=2) + "\n", "utf-8")
            if snapshots is not None:
                (folder / "files").mkdir(mode=0o700)
                snapshots.checkout(part.digest, folder / "files")
        if snapshots is not None and not one.parts and one.digest:
            files = place / "files"
            files.mkdir(mode=0o700)
            snapshots.checkout(one.digest, files)
    _make_read_only(into)
    return into


def read_outputs(folder: Path, name: str, cap: int = OUTPUTS_CAP) -> dict[str, Json]:
    """The JSON object that an agent wrote into `folder/name`; empty when there is no file or nothing in it.

    Raises `Unsafe` (of which `BadOutputs` is one) with the reason for everything else.
    """
    try:
        data = read_beneath(folder, name, cap)
    except FileNotFoundError:
        return {}
    if not data.strip():
        return {}
    try:
        return parse_outputs(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadOutputs(f"the outputs are not JSON: {error}") from None


def parse_outputs(text: str) -> dict[str, Json]:
    """One JSON object that can be stored and given on. Raises `BadOutputs` with the reason."""
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_short)
        json.dumps(value, ensure_ascii=False).encode()  # refuses halves of surrogate pairs
        _look_down(value, DEEPEST_OUTPUTS)
    except RecursionError:
        raise BadOutputs(f"the outputs are nested deeper than {DEEPEST_OUTPUTS} levels") from None
    except ValueError as error:
        raise BadOutputs(f"the outputs are not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadOutputs("the outputs are not a JSON object")
    return value


def _look_down(value: Json, left: int) -> None:
    if not isinstance(value, (dict, list)):
        return
    if not left:
        raise RecursionError
    for below in value.values() if isinstance(value, dict) else value:
        _look_down(below, left - 1)


def _short(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError(f"a number of {len(digits)} digits; write it as a string")
    return int(digits)


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _finite(number: str) -> float:
    value = float(number)
    return value if math.isfinite(value) else _refuse(number)


def _make_read_only(root: Path) -> None:
    """Files first, then folders, the deepest first."""
    entries = [(entry.path, entry.status.st_mode) for entry in walk(root)]
    for path, mode in reversed(entries):
        if not stat.S_ISLNK(mode):
            Path(root, os.fsdecode(path)).chmod(0o555 if mode & stat.S_IXUSR else 0o444)
    root.chmod(0o555)
