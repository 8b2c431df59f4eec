"""`scripts/demo` for real: a refactor of a real package, one refused attempt, a branch whose suite passes; twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.demo_kit import MODULES, Checkout, run

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("demo")]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout in which the demo has run twice."""
    checkout = Checkout.make(tmp_path_factory.mktemp("demo") / "dagward")
    for _ in range(2):
        done = checkout.demo()
        assert done.returncode == 0, done.stdout + done.stderr
        assert "56 passed" in done.stdout
    return checkout


def plans(ran: Checkout) -> list[str]:
    return [plan["plan"] for plan in ran.ask("ps")["plans"]]


def records(ran: Checkout, *args: str) -> list[tuple[int, int, bool]]:
    """(attempt, check, accepted) of evidence."""
    return [(one["attempt"], one["check"], one["accepted"]) for one in ran.ask("evidence", *args)["evidence"]]


def test_each_run_leaves_a_branch_with_one_commit_per_task(ran: Checkout) -> None:
    assert len(plans(ran)) == 2
    branches = ran.git("branch", "--list", "dagward/*", "--format=%(refname:short)")
    assert sorted(branches) == sorted(f"dagward/{plan}" for plan in plans(ran))
    for branch in branches:
        tasks = ran.git(
            "log", "--reverse", "--format=%(trailers:key=Dagward-Task,valueonly,separator=%x20)", f"main..{branch}"
        )
        assert sorted(tasks[:-1]) == sorted(MODULES)
        assert tasks[-1] == "tidy"
        for task, changed in zip(
            tasks[:-1], ran.git("log", "--reverse", "--format=%H", f"main..{branch}"), strict=False
        ):
            assert ran.git("diff", "--name-only", f"{changed}^", changed) == [f"billing/{task}.py"]
    assert ran.git("status", "--porcelain") == []
    assert ran.git("rev-list", "--count", "main") == ["1"]


def test_the_suite_of_the_branch_passes_in_a_fresh_checkout(ran: Checkout, tmp_path: Path) -> None:
    ran.git("clone", "-q", "-b", f"dagward/{plans(ran)[0]}", str(ran.repo), str(tmp_path / "fresh"))
    suite = run(tmp_path / "fresh", "python", "-m", "pytest", "-q")
    assert suite.returncode == 0, suite.stdout
    linted = run(tmp_path / "fresh", "python", "-m", "ruff", "check", "--no-cache", "billing")
    assert linted.returncode == 0, linted.stdout
    text = (tmp_path / "fresh" / "billing" / "storage.py").read_text()
    assert "except BaseException:" in text
    assert "except Exception:" in text


def test_storage_was_refused_once_and_accepted_after_reading_why(ran: Checkout) -> None:
    for plan in plans(ran):
        tasks = {task["task"]: task for task in ran.ask("show", plan)["tasks"]}
        assert {name: task["attempt"] for name, task in tasks.items() if name in MODULES} == {
            name: 2 if name == "storage" else 1 for name in MODULES
        }
        assert records(ran, plan, "storage", "--attempt", "1") == [(1, 0, False), (1, 1, True), (1, 2, True)]
        assert records(ran, plan, "storage") == [(2, 0, True), (2, 1, True), (2, 2, True)]
        [refused, *_] = ran.ask("evidence", plan, "storage", "--attempt", "1")["evidence"]
        assert "FAILED tests/test_storage.py::test_ctrl_c" in refused["output"]
        said = ran.path / ".demo" / "state" / "attempts" / plan / "storage" / "2" / "agent.log"
        assert "careful in save: refused by test_ctrl_c" in said.read_text()


def test_every_task_has_its_proof_after_the_run(ran: Checkout) -> None:
    plan = plans(ran)[0]
    proofs: dict[str, list[bool]] = {}
    for one in ran.ask("evidence", plan)["evidence"]:
        proofs.setdefault(one["task"], []).append(one["accepted"])
    assert proofs == {**dict.fromkeys((*MODULES, "tidy"), [True] * 3), "_integrate": [True] * 2}
    for task in ("storage", "tidy"):
        assert ran.ask("why", plan, task)["state"] == "completed"
