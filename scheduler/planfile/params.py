"""Parameters of a plan: names, defaults, and the values that a command passes.

Must not know where the values are used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from scheduler.planfile.report import Report, near

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)


def resolve_params(value: object, given: Mapping[str, str], report: Report) -> dict[str, str | None]:
    """The parameters with their values, sorted by name; everything wrong with them is reported."""
    written = value if isinstance(value, dict) else {}
    _check_names(written, report)
    for name in given:
        if name not in written:
            report.whole(f"--param {name}", f'unknown parameter "{name}"', near(name, written, "parameters"))
    made: dict[str, str | None] = {}
    for name, default in sorted(written.items()):
        chosen = given.get(name, default)
        if chosen is None:
            report.error(("params", name), f'parameter "{name}" has no value', f"pass --param {name}=VALUE")
        elif isinstance(chosen, str):
            if "\0" in chosen and name in given:
                report.whole(f"--param {name}", "holds a NUL character", "remove it")
            made[name] = chosen
    return made


def _check_names(written: Mapping[str, object], report: Report) -> None:
    upper: dict[str, str] = {}
    for name in written:
        path = ("params", name)
        if not _NAME.fullmatch(name):
            remedy = "write letters, digits and _, not beginning with a digit"
            report.error(path, f'"{name}" is not a valid parameter name', remedy, key=True)
        elif upper.setdefault(name.upper(), name) != name:
            message = f'the parameters "{upper[name.upper()]}" and "{name}" are both $DAGWARD_PARAM_{name.upper()}'
            report.error(path, message, "rename one", key=True)
