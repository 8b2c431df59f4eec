"""The checks `junit`, `weakening` and `python` on real trees with real processes, one for each way to be fooled."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import pytest
from pydantic import TypeAdapter

from scheduler.model import Check, FailureClass, Json, Result
from tests.workspace_kit import ProcessRunner
from workers.plugins import CheckTree, Finding
from workers.redact import Redactor
from workers.verifiers import verify

CHECK: TypeAdapter[Check] = TypeAdapter(Check)
WRITE = "printf '<testsuite>%s</testsuite>' \"$(cat cases)\" > r.xml"
"""A test command whose tests are what stands in `cases`."""


def cases(*names: str, more: str = "") -> str:
    return "".join(f'<testcase name="{name}"/>' for name in names) + more


@dataclass
class FolderBaseline:
    """A base that lies in a folder."""

    folder: Path
    of: CheckTree
    commit: str = "b"
    known: dict[str, Json] = field(default_factory=dict)
    runs: int = 0

    def tree(self) -> CheckTree:
        self.runs += 1
        (self.folder / "r.xml").unlink(missing_ok=True)
        return replace(self.of, path=self.folder, baseline=None, changed=())

    def read(self, path: str) -> bytes | None:
        place = self.folder / path
        return place.read_bytes() if place.is_file() else None

    def recall(self, name: str) -> Json:
        return self.known.get(name)

    def keep(self, name: str, value: Json) -> None:
        self.known[name] = value


class Scene:
    """A result, and its base when `base` files are given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("tree", "base", "logs"):
            (folder / name).mkdir()
        self.baseline: FolderBaseline | None = None
        self.task = "t"

    def write(self, files: dict[str, str], where: str = "tree") -> Scene:
        for name, text in files.items():
            place = self.folder / where / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return self

    def base(self, files: dict[str, str]) -> Scene:
        self.baseline = FolderBaseline(self.folder / "base", self._tree(()))
        return self.write(files, "base")

    def judge(
        self, check: dict[str, Json], changed: Sequence[str] = (), outputs: Mapping[str, Json] = MappingProxyType({})
    ) -> Finding:
        (self.folder / "tree/r.xml").unlink(missing_ok=True) if "r.xml" not in changed else None
        tree = replace(self._tree(changed, outputs), baseline=self.baseline)
        return verify(CHECK.validate_python(check), tree, ProcessRunner())

    def _tree(self, changed: Sequence[str], outputs: Mapping[str, Json] = MappingProxyType({})) -> CheckTree:
        return CheckTree(
            path=self.folder / "tree",
            result=Result(kind="commit", digest="d", base="b", exit_code=0, outputs=outputs),
            folder=self.folder / "logs",
            env={"PATH": "/usr/bin:/bin", "DAGWARD_PLAN": "p-1", "DAGWARD_TASK": "t"},
            base="b",
            task=self.task,
            attempt=1,
            redact=Redactor(["hunter2"]),
            changed=changed,
        )


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


JUNIT: dict[str, Json] = {"junit": "r.xml", "run": WRITE}


def test_junit_counts_tests_and_compares_with_the_base_once(scene: Scene) -> None:
    scene.write({"cases": cases("a", "b", "c")}).base({"cases": cases("a", "b")})
    assert scene.baseline is not None
    for _ in range(2):
        found = scene.judge(JUNIT)
        assert (found.accepted, found.reason) == (True, "3 tests passed, 2 at base")
    assert scene.baseline.runs == 1
    scene.task = "another"
    assert scene.judge(JUNIT).accepted
    assert scene.baseline.runs == 2


def test_junit_refuses_fewer_tests_than_at_base_and_names_them(scene: Scene) -> None:
    skipped = '<testcase name="b"><skipped/></testcase>'
    scene.write({"cases": cases("a", more=skipped)}).base({"cases": cases("a", "b")})
    found = scene.judge(JUNIT)
    assert (found.accepted, found.failure) == (False, FailureClass.REJECTED)
    assert found.reason == "1 test passed, 1 skipped, 2 at base"
    assert found.output.endswith("not run any more:\n  b\n")


@pytest.mark.parametrize(
    ("text", "run", "reason"),
    [
        (
            cases("a", more='<testcase name="b"><failure message="hunter2 is wrong"/></testcase>'),
            WRITE,
            "1 test failed: b",
        ),
        (cases("a", more='<testcase name="b"><failure/></testcase>'), f"{WRITE}; exit 1", "1 test failed: b"),
        (cases("a"), f"{WRITE}; exit 3", "exit code 3, though no test of the report failed"),
        ("", WRITE, "no test ran"),
        ('<testcase name="b"><skipped/></testcase>', WRITE, "no test ran: all 1 were skipped"),
        (cases("a"), "exit 1", "exit code 1; r.xml: the command wrote no report"),
        (cases("a"), "ln -s /etc/hostname r.xml", "r.xml: r.xml is a symbolic link"),
        (cases("a"), "echo nonsense > r.xml", "r.xml: it is not XML: syntax error: line 1, column 0"),
    ],
)
def test_junit_refuses(scene: Scene, text: str, run: str, reason: str) -> None:
    found = scene.write({"cases": text}).judge({**JUNIT, "run": run})
    assert (found.accepted, found.reason, found.failure) == (False, reason, FailureClass.REJECTED)
    assert "hunter2" not in found.output


def test_junit_puts_failed_tests_last_into_the_output(scene: Scene) -> None:
    broken = '<testcase classname="k" name="b"><failure message="1 != 2">at line 3</failure></testcase>'
    found = scene.write({"cases": cases("a", more=broken)}).judge({**JUNIT, "run": f"echo noise; {WRITE}"})
    assert found.output == "noise\n\nFAILED k::b: 1 != 2 | at line 3\n"


def test_junit_has_a_minimum(scene: Scene) -> None:
    found = scene.write({"cases": cases("a")}).judge({**JUNIT, "min": 2})
    assert (found.accepted, found.reason) == (False, "1 test passed; at least 2 must run")


def test_junit_believes_no_report_that_was_there_before(scene: Scene) -> None:
    scene.write({"cases": cases("a"), "r.xml": f"<testsuite>{cases('a')}</testsuite>"})
    found = scene.judge({**JUNIT, "run": "true"}, changed=["r.xml"])
    assert (found.accepted, found.failure) == (False, FailureClass.REJECTED)
    assert found.reason == "the result brings its own r.xml; a report is written by the check"
    (scene.folder / "tree/sub").mkdir()
    scene.write({"sub/r.xml": "x"})
    found = scene.judge({**JUNIT, "junit": "sub/r.xml"})
    assert (found.accepted, found.failure) == (False, FailureClass.CONFIGURATION)


def test_junit_that_writes_no_report_anywhere_is_the_plans_fault(scene: Scene) -> None:
    scene.write({"cases": cases("a")}).base({"cases": cases("a")})
    found = scene.judge({**JUNIT, "run": "true"})
    assert (found.accepted, found.failure) == (False, FailureClass.CONFIGURATION)
    assert found.reason == "r.xml: the command wrote no report, on the base neither"
    only_here = scene.judge({**JUNIT, "run": f"test -e stop || {WRITE}"})
    assert only_here.accepted
    scene.write({"stop": ""})
    found = scene.judge({**JUNIT, "run": f"test -e stop || {WRITE}"})
    assert (found.failure, found.reason) == (FailureClass.REJECTED, "r.xml: the command wrote no report")


def test_junit_that_cannot_run_or_end_is_judged_as_any_command(scene: Scene) -> None:
    assert scene.judge({**JUNIT, "run": "nosuch"}).failure is FailureClass.CONFIGURATION
    found = scene.judge({**JUNIT, "run": "sleep 60", "timeout": 200})
    assert (found.accepted, found.reason) == (False, "no end within 0.2 s")


TEST = "def test_a():\n    assert f() == 1\n"


def test_weakening_names_file_and_line(scene: Scene) -> None:
    scene.base({"tests/test_a.py": TEST, "tests/test_b.py": TEST})
    scene.write({"tests/test_a.py": TEST.replace(" == 1", ""), "ci/test.sh": "pytest || true\n"})
    found = scene.judge({"weakening": {}}, changed=["tests/test_a.py", "tests/test_b.py", "ci/test.sh", "src/a.py"])
    assert (found.accepted, found.failure) == (False, FailureClass.REJECTED)
    assert found.output.splitlines() == [
        "ci/test.sh:1: a failure is swallowed: pytest || true",
        "tests/test_a.py:2: loosened: assert f() == 1 became assert f()",
        "tests/test_b.py:1: deleted: test_a",
    ]
    assert found.reason == "ci/test.sh:1: a failure is swallowed: pytest || true (and 2 more)"


def test_weakening_accepts_what_adds_and_looks_only_where_it_is_told(scene: Scene) -> None:
    scene.base({"tests/test_a.py": TEST})
    scene.write({"tests/test_a.py": TEST + "\ndef test_b():\n    assert g() == 2\n"})
    found = scene.judge({"weakening": {}}, changed=["tests/test_a.py"])
    assert (found.accepted, found.reason) == (True, "nothing weakened in 1 changed file of tests")
    scene.write({"tests/test_a.py": ""})
    assert scene.judge({"weakening": {"paths": ["other/**"]}}, changed=["tests/test_a.py"]).accepted
    assert not scene.judge({"weakening": {"paths": ["tests/**"]}}, changed=["tests/test_a.py"]).accepted


def test_weakening_follows_no_link_and_needs_a_base(scene: Scene) -> None:
    assert scene.judge({"weakening": {}}).failure is FailureClass.CONFIGURATION
    scene.base({"tests/test_a.py": TEST}).write({"elsewhere.py": TEST})
    (scene.folder / "tree/tests").mkdir()
    (scene.folder / "tree/tests/test_a.py").symlink_to(scene.folder / "tree/elsewhere.py")
    found = scene.judge({"weakening": {}}, changed=["tests/test_a.py"])
    assert found.reason == "tests/test_a.py: cannot be compared: tests/test_a.py is a symbolic link"


JUDGES = """
def fair(context):
    return context.outputs["n"] == context.options["n"]

def told(context):
    print("looked at", context.tree.name, context.task, context.changed)
    return False, "hunter2: too few\\nlines"

def mapped(context):
    return {"accepted": True, "reason": f"{context.base} to {context.digest}"}

def asserts(context):
    assert (context.tree / "missing").exists(), "missing is not there"

def crashes(context):
    raise ValueError("no")

def leaves(context):
    import os
    os._exit(0)

def vague(context):
    return "yes"

def weak(context):
    return 1
"""


@pytest.mark.parametrize(
    ("name", "accepted", "reason", "failure"),
    [
        ("fair", True, "accepted", FailureClass.REJECTED),
        ("told", False, "***: too few lines", FailureClass.REJECTED),
        ("mapped", True, "b to d", FailureClass.REJECTED),
        ("asserts", False, "missing is not there", FailureClass.REJECTED),
        ("crashes", False, "ValueError: no", FailureClass.REJECTED),
        ("leaves", False, "the function ended its process without an answer", FailureClass.REJECTED),
        ("vague", False, "the check cannot run: it returned 'yes', which is no verdict: return True, False or (False, REASON)", FailureClass.CONFIGURATION),
        ("weak", False, "the check cannot run: it returned 1, which is no verdict: return True, False or (False, REASON)", FailureClass.CONFIGURATION),
        ("absent", False, "the check cannot run: tools.judge:absent: AttributeError: module 'tools.judge' has no attribute 'absent'", FailureClass.CONFIGURATION),
    ],
)  # fmt: skip
def test_python(scene: Scene, name: str, accepted: bool, reason: str, failure: FailureClass) -> None:
    scene.write({"tools/judge.py": JUDGES})
    found = scene.judge({"python": f"tools.judge:{name}", "with": {"n": 3}}, changed=["a"], outputs={"n": 3})
    assert (found.accepted, found.reason, found.failure) == (accepted, reason, failure)
    if name == "told":
        assert found.output == "looked at tree t ('a',)\n"


def test_python_lets_no_result_bring_its_own_judge_or_shadow_what_is_installed(scene: Scene) -> None:
    scene.write({"tools/judge.py": JUDGES, "json.py": "raise SystemExit(0)\n", "tools/__init__.py": ""})
    found = scene.judge({"python": "tools.judge:mapped"}, changed=["json.py"])
    assert (found.accepted, found.reason) == (True, "b to d")
    for path in ("tools/judge.py", "tools/__init__.py"):
        found = scene.judge({"python": "tools.judge:mapped"}, changed=[path])
        assert (found.accepted, found.failure) == (False, FailureClass.REJECTED)
        assert found.reason == f"the result changes {path}, which is the check itself"


def test_python_finds_installed_verifiers_by_entry_point(scene: Scene) -> None:
    found = scene.judge({"python": "house-rules"})
    assert (found.accepted, found.failure) == (False, FailureClass.CONFIGURATION)
    assert found.reason.startswith("the check cannot run: no entry point house-rules in the group dagward.verifiers")
    installed = scene.folder / "site"
    info = installed / "house_rules-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: house-rules\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dagward.verifiers]\nhouse-rules = house_rules:judge\n")
    (installed / "house_rules.py").write_text("def judge(context):\n    return True, 'by the house'\n")
    found = scene.judge({"python": "house-rules", "env": {"PYTHONPATH": str(installed)}})
    assert (found.accepted, found.reason) == (True, "by the house")


def test_python_has_a_limit(scene: Scene) -> None:
    scene.write({"slow.py": "import time\ndef judge(context):\n    time.sleep(60)\n"})
    found = scene.judge({"python": "slow:judge", "timeout": 500})
    assert (found.accepted, found.reason) == (False, "no end within 0.5 s")
    assert sys.executable
