"""Breaks a copy of a result on purpose, so that a check with `prove: true` can be seen to refuse it.

The idea is that of mutation testing (DeMillo, Lipton, Sayward 1978) in its coarsest form: one mutant, so broken that
every check of these files must notice. Must not know which check is proved.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from workers.scope import is_protected, is_writable
from workers.testfiles import is_test_file
from workers.workspace.beneath import walk

GARBLE = ")]}'\" <<<<<<< broken on purpose: this check has to refuse it >>>>>>> \"'{[(\n"
"""No parser of any language accepts this, as far as we know; an interpreter stops at the first line."""

_SNIFF = 8192


def victims(root: Path, changed: Iterable[str], write: Sequence[str], protect: Sequence[str]) -> list[str]:
    """What to break below `root`: the changed files that are no tests, else all changed files, else every file that
    the scope lets the task write. Only regular files that are there; sorted."""
    there = [path for path in changed if _is_file(root, path)]
    if not there:
        there = [path for path in _everything(root) if is_writable(path, write) and not is_protected(path, protect)]
    work = [path for path in there if not is_test_file(path)]
    return sorted(work or there)


def sabotage(root: Path, paths: Iterable[str]) -> None:
    """Garble text files and empty all others, in place. Hard links are broken, no link is followed."""
    for path in paths:
        place = root / path
        with place.open("rb") as file:
            is_text = b"\0" not in file.read(_SNIFF)
        mode = stat.S_IMODE(place.stat().st_mode)
        place.unlink()
        place.write_text(GARBLE if is_text else "", encoding="utf-8")
        place.chmod(mode)


def _is_file(root: Path, path: str) -> bool:
    """A regular file that no link leads to."""
    here = root
    try:
        for part in path.split("/"):
            here = here / part
            mode = here.lstat().st_mode
            if stat.S_ISLNK(mode):
                return False
    except OSError:
        return False
    return stat.S_ISREG(here.lstat().st_mode)


def _everything(root: Path) -> Iterable[str]:
    for entry in walk(root):
        if stat.S_ISREG(entry.status.st_mode) and not entry.path.startswith(b".git/"):
            yield os.fsdecode(entry.path)
