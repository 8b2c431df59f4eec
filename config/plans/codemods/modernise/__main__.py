"""`python -m tools.modernise FILE ...`: modernise files in place; boldly at first, carefully where evidence says so.

Reads `$DAGWARD_EVIDENCE` (why the last attempt was refused; absent on the first) and writes what it did as JSON to
`$DAGWARD_OUTPUTS`. Without dagward both are simply not set. Exit code 0: done; 2: a file cannot be read or parsed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import libcst as cst

from . import evidence
from .idioms import Care, Done, modernise


def main(arguments: list[str] | None = None) -> int:
    """Modernise the named files, relative to the working folder."""
    parser = argparse.ArgumentParser(prog="modernise", description="Modernise old idioms of Python files in place.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--evidence", type=Path, default=os.environ.get("DAGWARD_EVIDENCE"), metavar="JSON")
    options = parser.parse_args(arguments)
    rejection = evidence.read(options.evidence) if options.evidence else None
    report: dict[str, dict[str, object]] = {}
    for file in options.files:
        try:
            care = evidence.care(rejection, file, Path.cwd())
            done = _rewrite(file, care)
        except (OSError, SyntaxError, cst.ParserSyntaxError) as error:
            print(f"error: {file}: {error}", file=sys.stderr)
            return 2
        print(_told(file, care, done))
        report[str(file)] = {"changed": dict(done.changed), "kept": dict(done.kept), "careful": sorted(done.careful)}
    if os.environ.get("DAGWARD_OUTPUTS"):
        Path(os.environ["DAGWARD_OUTPUTS"]).write_text(json.dumps(report), encoding="utf-8")
    return 0


def _rewrite(file: Path, care: Care) -> Done:
    before = file.read_bytes()
    after, done = modernise(before, care)
    if after != before:
        file.write_bytes(after)
    return done


def _told(file: Path, care: Care, done: Done) -> str:
    changed = ", ".join(f"{count} {idiom}" for idiom, count in sorted(done.changed.items())) or "nothing to do"
    text = f"{file}: {changed}"
    if done.careful or care.everywhere:
        where = "everywhere" if care.everywhere else f"in {', '.join(sorted(done.careful))}"
        text += f"; careful {where}: {care.reason}"
    return text


if __name__ == "__main__":
    sys.exit(main())
