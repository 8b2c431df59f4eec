"""The demo's legacy package, codemod and plan file without dagward: each part does what the demo needs of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler.model import DiffCheck, RunCheck
from scheduler.model.agents import CommandAgent
from scheduler.planfile import load
from tests.demo_kit import MODULES, PLANS, package, run

IDIOMS = ("python", "-m", "ruff", "check", "--no-cache", "--config", "tools/idioms.toml")


@pytest.fixture
def legacy(tmp_path: Path) -> Path:
    return package(tmp_path / "billing")


def modernise(legacy: Path, module: str, **env: str) -> str:
    done = run(legacy, "python", "-m", "tools.modernise", f"billing/{module}.py", **env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def suite(legacy: Path, *args: str) -> tuple[int, str]:
    done = run(legacy, "python", "-m", "pytest", "-q", *args)
    return done.returncode, done.stdout


def test_the_untouched_package_passes_its_suite(legacy: Path) -> None:
    code, output = suite(legacy)
    assert (code, "56 passed" in output) == (0, True), output


@pytest.mark.parametrize("module", MODULES)
def test_the_idiom_check_refuses_each_untouched_module(legacy: Path, module: str) -> None:
    assert run(legacy, *IDIOMS, f"billing/{module}.py").returncode == 1


def test_bold_work_breaks_one_test_and_evidence_mends_it(legacy: Path, tmp_path: Path) -> None:
    untouched = (legacy / "billing" / "storage.py").read_bytes()
    for module in MODULES:
        assert "careful" not in modernise(legacy, module)
    code, output = suite(legacy)
    assert code == 1
    assert output.count("FAILED ") == 1
    assert "FAILED tests/test_storage.py::test_ctrl_c" in output

    evidence = tmp_path / "evidence.json"
    check = {"accepted": False, "attempt": 1, "output": output}
    evidence.write_text(json.dumps({"failure": {"kind": "rejected"}, "checks": [check]}))
    (legacy / "billing" / "storage.py").write_bytes(untouched)
    outputs = tmp_path / "outputs.json"
    said = modernise(legacy, "storage", DAGWARD_EVIDENCE=str(evidence), DAGWARD_OUTPUTS=str(outputs))
    assert "careful in save: refused by test_ctrl_c_while_saving" in said
    assert json.loads(outputs.read_text())["billing/storage.py"]["careful"] == ["save"]
    assert suite(legacy)[0] == 0
    checked = run(legacy, *IDIOMS, "billing")
    assert checked.returncode == 0, checked.stdout


def test_a_file_that_is_no_python_is_an_error_without_a_traceback(legacy: Path) -> None:
    (legacy / "billing" / "money.py").write_text("def (:\n")
    done = run(legacy, "python", "-m", "tools.modernise", "billing/money.py", "billing/none.py")
    assert done.returncode == 2
    assert done.stderr.startswith("error: billing/money.py: ")
    assert "Traceback" not in done.stderr
    assert (legacy / "billing" / "money.py").read_text() == "def (:\n"


def test_the_plan_is_valid_and_guards_what_judges_it() -> None:
    loaded = load(PLANS / "modernise.yaml")
    assert loaded.warnings == ()
    tasks = {task.id: task for task in loaded.spec.tasks}
    assert set(tasks) == {*MODULES, "tidy"}
    for module in MODULES:
        assert tasks[module].scope.write == (f"billing/{module}.py",)
        assert tasks[module].blocked_by == ()
    assert {edge.task for edge in tasks["tidy"].blocked_by} == set(MODULES)
    for task in tasks.values():
        assert isinstance(task.agent, CommandAgent)
        assert {"tests/**", "tools/**", "pyproject.toml"} <= set(task.scope.protect)
        assert [type(check) for check in task.verify] == [RunCheck, RunCheck, DiffCheck]
    assert len(loaded.spec.acceptance) == 2
