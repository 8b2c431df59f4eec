"""Narrows a check to the model of its kind. One line, shared by all verifiers."""

from __future__ import annotations

from typing import TypeVar

from scheduler.model import Check

C = TypeVar("C")


def expect(check: Check, kind: type[C]) -> C:
    """The check as its own model; a verifier registered for the wrong kind is a defect of the program."""
    if not isinstance(check, kind):
        raise TypeError(f"a {kind.__name__} was expected, not {type(check).__name__}")
    return check
