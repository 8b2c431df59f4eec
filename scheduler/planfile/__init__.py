"""Plan files: YAML or JSON text -> PlanSpec, with line and column in every error. Must not know the store or git."""

from scheduler.planfile.durations import BadDuration, format_duration, parse_duration
from scheduler.planfile.load import POOLS, Loaded, load, load_text
from scheduler.planfile.schema import json_schema

__all__ = ["POOLS", "BadDuration", "Loaded", "format_duration", "json_schema", "load", "load_text", "parse_duration"]
