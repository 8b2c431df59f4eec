"""The plan that `init` writes: valid, without a warning, for odd folder names too."""

from __future__ import annotations

import pytest

from scheduler.planfile import load_text
from scheduler.report.first import plan_name, plan_text


@pytest.mark.parametrize("repo", [None, ".", "../.."])
@pytest.mark.parametrize("name", ["billing", "my project!", "no", "null", "1e5", "2026", "", "---", "ünïcode"])
def test_it_is_valid_without_a_warning(name: str, repo: str | None) -> None:
    loaded = load_text(plan_text(name, repo).encode(), "plan.yaml")
    assert loaded.warnings == ()
    assert loaded.spec.repo == repo
    assert loaded.spec.name == plan_name(name)
    assert len(loaded.spec.tasks) == 2


def test_names() -> None:
    assert plan_name("my project!") == "my-project"
    assert plan_name("2026") == "first"
    assert plan_name("") == "first"
