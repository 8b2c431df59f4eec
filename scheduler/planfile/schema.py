"""The JSON Schema of a plan file, for editors and for `dagward schema`.

Made from the models in `raw`; must not hold a rule of its own.
"""

from __future__ import annotations

from scheduler.model.base import Json
from scheduler.planfile.durations import PATTERN, format_duration
from scheduler.planfile.raw import FilePlan

_MAY_BE_NULL = ("stall",)


def json_schema() -> dict[str, Json]:
    """The schema (draft 2020-12) of a file as it is written; for `# yaml-language-server: $schema=FILE`."""
    made: dict[str, Json] = FilePlan.model_json_schema(by_alias=True, mode="validation")
    for model in (made, *_mappings(made.get("$defs"))):
        _as_written(model)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dagward plan file",
        **made,
    }


def _mappings(value: Json) -> list[dict[str, Json]]:
    return [each for each in value.values() if isinstance(each, dict)] if isinstance(value, dict) else []


def _as_written(model: dict[str, Json]) -> None:
    model.pop("title", None)  # the name of a class of ours
    for name, field in _fields(model):
        field.pop("title", None)
        default = field.get("default")
        if field.get("pattern") == PATTERN and isinstance(default, int):
            field["default"] = format_duration(default)
        elif default is None or isinstance(default, dict):
            field.pop("default", None)
        if name not in _MAY_BE_NULL:
            _without_null(field)


def _fields(model: dict[str, Json]) -> list[tuple[str, dict[str, Json]]]:
    fields = model.get("properties")
    items = fields.items() if isinstance(fields, dict) else ()
    return [(name, field) for name, field in items if isinstance(field, dict)]


def _without_null(field: dict[str, Json]) -> None:
    """A field that may be left out is optional in the models; written, it must have a value."""
    options = field.get("anyOf")
    if not isinstance(options, list) or {"type": "null"} not in options:
        return
    options.remove({"type": "null"})
    if len(options) == 1 and isinstance(options[0], dict):
        del field["anyOf"]
        field.update(options[0])
