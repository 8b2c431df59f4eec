from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from scheduler.model import Check, FailureClass, Json, Result
from tests.workspace_kit import ProcessRunner
from workers.plugins import CheckTree, Command, Ended, EndReason, Finding
from workers.redact import Redactor
from workers.verifiers import VERIFIERS, title, verify

CHECK: TypeAdapter[Check] = TypeAdapter(Check)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    (tmp_path / "logs").mkdir()
    return tmp_path


def tree(folder: Path, result: Result | None = None, changed: Sequence[str] = ()) -> CheckTree:
    return CheckTree(
        path=folder / "tree",
        result=result or Result(kind="commit", digest="d", exit_code=0),
        folder=folder / "logs",
        env={"PATH": "/usr/bin:/bin", "DAGWARD_TASK": "t"},
        base=None,
        task="t",
        attempt=1,
        redact=Redactor(["hunter2"]),
        changed=changed,
    )


def judge(check: dict[str, Json], on: CheckTree) -> Finding:
    return verify(CHECK.validate_python(check), on, ProcessRunner())


def test_run_accepts_by_exit_code_and_keeps_the_output(folder: Path) -> None:
    (folder / "tree" / "f").write_text("x")
    check: dict[str, Json] = {"run": 'cat f; echo "$DAGWARD_TASK $EXTRA hunter2"; pwd', "env": {"EXTRA": "more"}}
    found = judge(check, tree(folder))
    assert (found.accepted, found.exit_code, found.reason) == (True, 0, "exit code 0")
    assert found.output == f"xt more ***\n{folder}/tree\n"
    rejected = judge({"run": "echo why >&2; exit 3"}, tree(folder))
    assert (rejected.accepted, rejected.exit_code, rejected.failure) == (False, 3, FailureClass.REJECTED)
    assert (rejected.reason, rejected.output) == ("exit code 3", "why\n")
    assert sorted(path.name for path in (folder / "logs").iterdir()) == ["check-0.log", "check-1.log"]


def test_run_names_a_missing_command_as_a_configuration_failure(folder: Path) -> None:
    found = judge({"run": "no-such-tool --check"}, tree(folder))
    assert (found.accepted, found.failure) == (False, FailureClass.CONFIGURATION)
    assert found.reason == "the check cannot run: no-such-tool: not found"
    (folder / "tree" / "script").write_text("x")
    found = judge({"run": "./script"}, tree(folder))
    assert (found.failure, found.exit_code) == (FailureClass.CONFIGURATION, 126)
    assert found.reason == "the check cannot run: ./script: Permission denied"
    silent = judge({"run": "exit 127"}, tree(folder))
    assert silent.reason == "the check cannot run: exit: not found or not executable"


def test_run_has_a_limit(folder: Path) -> None:
    found = judge({"run": "echo begun; sleep 60", "timeout": 300}, tree(folder))
    assert (found.accepted, found.reason, found.failure) == (False, "no end within 0.3 s", FailureClass.REJECTED)
    assert found.output == "begun\n"


def test_run_keeps_the_last_8_kib_decoded_and_redacted(folder: Path) -> None:
    found = judge({"run": r"yes hunter2-line | head -n 5000; printf '\377end\n'; exit 1"}, tree(folder))
    assert len(found.output.encode()) <= 8192
    assert found.output.endswith("***-line\n\N{REPLACEMENT CHARACTER}end\n")
    assert found.output.startswith("***-line\n")
    assert "hunter" not in found.output


class Ending:
    """A Runner whose command came to this end."""

    def __init__(self, reason: EndReason, **rest: int | str | None) -> None:
        self.ended = Ended(reason, None, message=str(rest.get("message", "")), survivors=int(rest.get("left") or 0))

    def run(self, command: Command) -> Ended:
        return self.ended


@pytest.mark.parametrize(
    ("runner", "failure", "reason"),
    [
        (Ending("spawn", message="bad cwd"), FailureClass.CONFIGURATION, "the check cannot be started: bad cwd"),
        (Ending("cancelled"), FailureClass.INFRASTRUCTURE, "the check was stopped: cancelled"),
        (Ending("exit", left=2), FailureClass.INFRASTRUCTURE, "2 processes of the check could not be killed"),
    ],
)
def test_an_end_that_is_not_the_checks_own_never_accepts(
    folder: Path, runner: Ending, failure: FailureClass, reason: str
) -> None:
    found = verify(CHECK.validate_python({"run": "true"}), tree(folder), runner)
    assert (found.accepted, found.failure, found.reason) == (False, failure, reason)


@pytest.mark.parametrize(
    ("code", "terminal", "accepted", "reason"),
    [
        (0, True, True, "the agent ended with exit code 0"),
        (1, True, False, "the agent ended with exit code 1"),
        (None, True, False, "the agent ended with exit code None"),
        (0, False, False, "the agent ended without its terminal event"),
    ],
)
def test_exit(folder: Path, code: int | None, terminal: bool, accepted: bool, reason: str) -> None:
    result = Result(kind="commit", digest="d", exit_code=code, terminal=terminal)
    found = judge({"exit": True}, tree(folder, result))
    assert (found.accepted, found.reason) == (accepted, reason)


def outputs(folder: Path, schema: Json, value: dict[str, Json]) -> Finding:
    result = Result(kind="commit", digest="d", exit_code=0, outputs=value)
    return judge({"outputs": {"schema": schema}}, tree(folder, result))


def test_outputs_name_every_error_by_its_path(folder: Path) -> None:
    schema: Json = {
        "type": "object",
        "required": ["modules"],
        "properties": {"modules": {"type": "array", "items": {"type": "string"}}, "n": {"maximum": 3}},
    }
    assert outputs(folder, schema, {"modules": ["a"]}).accepted
    missing = outputs(folder, schema, {})
    assert (missing.accepted, missing.reason) == (False, "$: 'modules' is a required property")
    wrong = outputs(folder, schema, {"modules": ["a", 1, "hunter2", None], "n": 9})
    assert wrong.output.splitlines() == [
        "$.modules[1]: 1 is not of type 'string'",
        "$.modules[3]: None is not of type 'string'",
        "$.n: 9 is greater than the maximum of 3",
    ]
    many = outputs(folder, schema, {"modules": list(range(15))})
    assert len(many.output.splitlines()) == 11
    assert many.output.splitlines()[-1] == "and 5 more"


def test_outputs_are_redacted(folder: Path) -> None:
    found = outputs(folder, {"properties": {"a": {"type": "number"}}}, {"a": "hunter2"})
    assert found.reason == "$.a: '***' is not of type 'number'"


@pytest.mark.parametrize(
    "schema",
    [{"type": "nonsense"}, {"$ref": "http://127.0.0.1:1/x.json"}, {"$ref": "#/nowhere"}, {"$ref": "#"}],
)
def test_a_schema_that_cannot_be_used_is_a_configuration_failure(folder: Path, schema: Json) -> None:
    found = outputs(folder, schema, {"a": 1})
    assert (found.accepted, found.failure) == (False, FailureClass.CONFIGURATION)


def test_file(folder: Path) -> None:
    place = folder / "tree" / "d"
    place.mkdir()
    (place / "full").write_text("x")
    (place / "empty").write_text("")
    (folder / "secret").write_text("x")
    (place / "link").symlink_to(folder / "secret")
    digest = hashlib.sha256(b"x").hexdigest()
    assert judge({"file": {"path": "d/full", "nonempty": True, "sha256": digest}}, tree(folder)).accepted
    assert judge({"file": {"path": "d/empty"}}, tree(folder)).accepted
    reasons = {
        ("d/empty", True, None): "d/empty is empty",
        ("d/missing", False, None): "d/missing: no such file",
        ("d", False, None): "d is not a regular file",
        ("d/link", False, None): "d/link is a symbolic link",
        ("d/full", False, "0" * 64): f"d/full has sha256 {digest}, expected {'0' * 64}",
    }
    for (path, nonempty, wanted), reason in reasons.items():
        found = judge({"file": {"path": path, "nonempty": nonempty, "sha256": wanted}}, tree(folder))
        assert (found.accepted, found.reason, found.failure) == (False, reason, FailureClass.REJECTED)
    for path in ("../secret", str(folder / "secret")):
        found = judge({"file": {"path": path}}, tree(folder))
        assert (found.accepted, found.failure) == (False, FailureClass.CONFIGURATION)


def test_diff(folder: Path) -> None:
    changed = ["src/a.py", "docs/x.md"]
    assert judge({"diff": {"nonempty": True}}, tree(folder, changed=changed)).accepted
    assert judge({"diff": {"only": ["src/**", "docs/x.md"]}}, tree(folder, changed=changed)).accepted
    empty = judge({"diff": {"nonempty": True}}, tree(folder))
    assert (empty.accepted, empty.reason) == (False, "the result changes nothing")
    outside = judge({"diff": {"only": ["src/**"]}}, tree(folder, changed=changed))
    assert (outside.accepted, outside.reason) == (False, "changed outside `only`: docs/x.md")
    assert not judge({"diff": {"only": []}}, tree(folder, changed=changed)).accepted
    assert judge({"diff": {"only": []}}, tree(folder)).accepted


def test_every_kind_has_a_title_for_people() -> None:
    checks: dict[str, Json] = {
        "run": "pytest -q\nmore",
        "exit": True,
        "outputs": {"schema": {}},
        "file": {"path": "a"},
        "diff": {"nonempty": True, "only": ["src/**"]},
        "junit": "r.xml",
        "weakening": {"paths": ["tests/**"]},
        "python": "tools.judge:fair",
    }
    beside: dict[str, dict[str, Json]] = {"junit": {"run": "pytest"}}
    titles = {
        kind: title(CHECK.validate_python({kind: value, **beside.get(kind, {})})) for kind, value in checks.items()
    }
    assert set(titles) == set(VERIFIERS)
    assert titles == {
        "run": "pytest -q ...",
        "exit": "exit code 0",
        "outputs": "outputs match the schema",
        "file": "file a",
        "diff": "diff not empty and only src/**",
        "junit": "pytest (report r.xml)",
        "weakening": "no test weakened in tests/**",
        "python": "python tools.judge:fair",
    }
    assert title(CHECK.validate_python({"weakening": {}})) == "no test weakened"
