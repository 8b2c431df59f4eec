"""What a person reads before approving: every piece of code that a check starts is in it."""

from __future__ import annotations

from scheduler.model import PlanState, PlanView
from scheduler.report.approval import summary
from tests.planfile_kit import loaded


def test_code_of_all_checks_is_shown() -> None:
    text = """
    name: p
    goal: g
    acceptance: [{run: make all}, {python: house-rules}]
    tasks:
    - id: a
      agent: {use: command, run: x}
      verify: [{junit: r.xml, run: pytest --junitxml=r.xml}, {python: "tools.j:f"}, {run: "one\\ntwo"}, exit]
    """
    spec = loaded(text).spec
    fields = {"plan": "p-bcdfg", "name": "p", "goal": "g", "state": PlanState.DRAFT, "version": 1, "hash": "h"}
    view = PlanView.model_validate(
        {**fields, "approved": False, "created_at": 0, "counts": {}, "concurrency": 4, "used": 0}
    )
    lines = [line.strip() for line in summary(view, spec)]
    assert "check: pytest --junitxml=r.xml" in lines
    assert "check: python tools.j:f" in lines
    assert lines[lines.index("check: one") + 1] == "two"
    assert lines[-2:] == ["acceptance runs: make all", "acceptance runs: python house-rules"]
