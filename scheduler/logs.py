"""Logging set-up: structlog, JSON lines off a terminal, plan, task and attempt bound, secrets redacted.

Must not decide what is worth logging. Never name a log key `event`: structlog's message has that name.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable, MutableMapping
from typing import TextIO

import structlog

_secrets: list[str] = []
_URL_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):([^@\s/]+)@")
_HIDDEN = re.compile(r"(password|secret|api_?key|authorization)$|(^|_)token$", re.IGNORECASE)


def hide(values: Iterable[str]) -> None:
    """Replace these values in everything that is logged from now on. Longest first; very short ones are ignored."""
    known = {*_secrets, *(v for v in values if len(v) >= 4)}
    _secrets[:] = sorted(known, key=len, reverse=True)


def redacted(text: str) -> str:
    """The text without known secret values and without passwords in URLs."""
    for value in _secrets:
        text = text.replace(value, "***")
    return _URL_PASSWORD.sub(r"\1:***@", text)


def _redact(_: object, __: str, entry: MutableMapping[str, object]) -> MutableMapping[str, object]:
    for key, value in entry.items():
        if _HIDDEN.search(key):
            entry[key] = "***"
        elif isinstance(value, str):
            entry[key] = redacted(value)
    return entry


def set_up(level: str, stream: TextIO | None = None) -> None:
    """Log to `stream` (stderr): readable lines on a terminal, JSON lines elsewhere. RQ's own lines go the same way."""
    out = stream or sys.stderr
    number = getattr(logging, level.upper())
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=True) if out.isatty() else structlog.processors.JSONRenderer()
    )
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _redact,
    ]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processor=renderer, foreign_pre_chain=shared))
    for name in ("rq.worker", "rq.job", "rq.queue"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
        logger.setLevel(max(number, logging.WARNING))
