"""Log lines: JSON off a terminal, secrets and passwords redacted."""

from __future__ import annotations

import io
import json

import structlog

from scheduler import logs


def test_json_lines_without_secrets() -> None:
    out = io.StringIO()
    logs.set_up("info", out)
    logs.hide(["hunter2-value", "abc"])
    log = structlog.get_logger()
    with structlog.contextvars.bound_contextvars(plan="p-abc", task="t", attempt=2):
        log.info("task.claimed", reason="uses hunter2-value", url="redis://me:pw@host/0", token="deadbeef", api_key="k")
        log.debug("task.hidden")
    (line,) = out.getvalue().splitlines()
    entry = json.loads(line)
    assert entry["event"] == "task.claimed"
    assert (entry["plan"], entry["task"], entry["attempt"], entry["level"]) == ("p-abc", "t", 2, "info")
    assert entry["reason"] == "uses ***"
    assert entry["url"] == "redis://me:***@host/0"
    assert entry["token"] == entry["api_key"] == "***"
