"""Checks that can fail, in whole plans: what they refuse, how the plan ends, and what the evidence says."""

from __future__ import annotations

from pathlib import Path

from tests.run_kit import Place
from tests.workspace_kit import Repo, make_repo

CODEMODS = Path(__file__).parents[2] / "config/plans/codemods"
FILES = {
    "pkg/__init__.py": "def add(a, b):\n    return a + b\n",
    "tests/test_add.py": (
        "import pytest\nfrom pkg import add\n\n\n@pytest.mark.parametrize('a', [1, 2])\ndef test_add(a):\n"
        "    assert add(a, 1) == a + 1\n"
    ),
    "tools/judges.py": (CODEMODS / "judges.py").read_text(),
    ".gitignore": "__pycache__/\n",
}
HEAD = """\
name: checks
goal: Show what checks refuse.
repo: repo
scope: {protect: ["tools/**"]}
defaults: {retries: {max: 0}, env: {set: {PYTHONDONTWRITEBYTECODE: "1", PYTEST_ADDOPTS: "-p no:cacheprovider"}}}
"""
JUNIT = '{junit: report.xml, run: "echo ran >> $DAGWARD_PARAM_SEEN; python -m pytest -q --junitxml=report.xml"}'


def repository(place: Place) -> Repo:
    return make_repo(place.folder / "repo", FILES)


def run(place: Place, tasks: str, head: str = "") -> tuple[int, str]:
    seen = place.folder / "seen"
    text = f"{HEAD}params: {{seen: '{seen}'}}\n{head}tasks:\n{tasks}"
    done = place.command("run", str(place.plan(text)))
    return done.returncode, done.stderr


def evidence(place: Place) -> dict[tuple[str, int], dict[str, object]]:
    answer = place.json("evidence", "checks")
    assert isinstance(answer, dict)
    return {(row["task"], row["check"]): row for row in answer["evidence"]}


def test_an_honest_result_passes_and_its_checks_are_seen_to_refuse(place: Place) -> None:
    repository(place)
    doc = r"""run: 'sed -i "1a\    \"\"\"Sum.\"\"\"" pkg/__init__.py'"""
    tasks = f"""
  - id: one
    agent: {{use: command, {doc}}}
    verify:
      - {JUNIT[:-1]}, prove: true}}
      - weakening: true
      - python: tools.judges:same_interface
  - id: two
    agent: {{use: command, run: "echo '# two' > two.py"}}
    blocked_by: [one]
    verify: [{JUNIT}]
"""
    code, out = run(place, tasks, f"acceptance: [{JUNIT}]\n")
    assert code == 0, out
    found = evidence(place)
    assert (
        found["one", 0]["reason"] == "2 tests passed, 2 at base; proved: it refuses pkg/__init__.py broken on purpose"
    )
    assert found["one", 1]["reason"] == "nothing weakened in 0 changed files of tests"
    assert found["one", 2]["reason"] == "1 changed modules have the interface of their base"
    # one: result, base, broken; two: result, base; acceptance: result, base.
    assert place.lines("seen") == 7


def test_instances_share_a_proof_and_each_runs_its_base_once(place: Place) -> None:
    repository(place)
    append = """run: 'echo "# $DAGWARD_ITEM" >> "pkg/$DAGWARD_ITEM.py"; test -n "$DAGWARD_EVIDENCE" || printf "def" >> pkg/__init__.py'"""
    tasks = f"""
  - id: list
    agent: {{use: command, run: "echo '{{\\"names\\": [\\"a\\", \\"b\\"]}}' > $DAGWARD_OUTPUTS"}}
  - id: each
    for_each: list.names
    agent: {{use: command, {append}}}
    retries: {{max: 1, backoff: 0s}}
    verify: [{JUNIT}, {{run: "python -m compileall -q pkg", prove: true}}]
"""
    code, out = run(place, tasks, "concurrency: 1\n")
    assert code == 0, out
    found = evidence(place)
    assert found["each.0", 1]["reason"] == "exit code 0; proved: it refuses pkg/a.py broken on purpose"
    assert found["each.1", 1]["reason"] == "exit code 0; proved before: it refuses pkg/a.py broken on purpose"
    # Each instance: refused, accepted, and its base once: what runs may depend on the item.
    assert place.lines("seen") == 6


def test_a_check_that_cannot_refuse_fails_the_task_and_is_not_tried_again(place: Place) -> None:
    repository(place)
    tasks = """
  - id: a
    agent: {use: command, run: "echo '# more' >> pkg/__init__.py"}
    retries: {max: 3}
    verify: [{run: "test -e pkg/__init__.py", prove: true}]
"""
    code, out = run(place, tasks)
    assert code == 1
    reason = "the check accepts a result that is broken on purpose (pkg/__init__.py), so it proves nothing"
    assert f"a failed after 1 of 4 attempts: configuration: test -e pkg/__init__.py: {reason}" in out


def test_an_agent_that_loosens_a_test_is_refused_and_told_where(place: Place) -> None:
    repository(place)
    tasks = """
  - id: cheat
    agent: {use: command, run: "sed -i 's/ == a + 1/ is not None/' tests/test_add.py; sed -i 's/a + b/a - b/' pkg/__init__.py"}
    verify:
      - {run: "python -m pytest -q"}
      - weakening: true
"""
    code, out = run(place, tasks)
    assert code == 1
    what = "tests/test_add.py:7: loosened: assert add(a, 1) == a + 1 became assert add(a, 1) is not None"
    assert f"cheat failed after 1 of 1 attempts: rejected: no test weakened: {what}" in out
    found = evidence(place)
    assert (found["cheat", 0]["accepted"], found["cheat", 1]["accepted"]) == (True, False)


def test_a_retry_reads_the_failed_tests(place: Place) -> None:
    repository(place)
    agent = (
        'if grep -q "FAILED tests.test_add::test_add.1." "$DAGWARD_EVIDENCE" 2>/dev/null; '
        "then echo '# seen' >> pkg/__init__.py; else sed -i 's/a + b/a - b/' pkg/__init__.py; fi"
    )
    tasks = f"""
  - id: a
    agent:
      use: command
      run: |
        {agent}
    retries: {{max: 1, backoff: 0s}}
    verify: [{JUNIT}]
"""
    code, out = run(place, tasks)
    assert code == 0, out
    assert "2 tests failed: tests.test_add::test_add[1], tests.test_add::test_add[2]" in out


def test_a_check_that_writes_into_its_tree_is_a_fault_of_the_plan(place: Place) -> None:
    repository(place)
    task = "  - {id: a, agent: {use: command, run: 'true'}, verify: [{run: 'echo >> pkg/__init__.py'}]}\n"
    code, out = run(place, task)
    assert code == 1
    assert "configuration: echo >> pkg/__init__.py: the check changed tracked files of the result" in out


def test_a_scratch_result_is_broken_on_purpose_too(place: Place) -> None:
    text = """\
name: checks
goal: Prove checks of a scratch plan.
defaults: {retries: {max: 0}}
tasks:
  - {id: good, agent: {use: command, run: "echo 1 > n"}, verify: [{run: "grep -qx 1 n", prove: true}]}
  - {id: vain, agent: {use: command, run: "echo 1 > n"}, verify: [{run: "test -s n", prove: true}]}
"""
    done = place.command("run", str(place.plan(text)))
    assert done.returncode == 1
    assert evidence(place)["good", 0]["reason"] == "exit code 0; proved: it refuses n broken on purpose"
    assert "vain failed after 1 of 1 attempts: configuration: test -s n: the check accepts a result" in done.stderr
