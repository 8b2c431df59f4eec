"""`validate`, `schema`, `init`, `graph FILE`: no server, and the state folder is not touched."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command import Ran, dagward

CHECKED = 'defaults: {verify: [{run: "true"}]}\n'
GOOD = """\
name: small
goal: Try it.
{checked}tasks:
  - {id: a, agent: {use: command, run: "true"}}
  - {id: b, agent: {use: command, run: "true"}, blocked_by: [a]}
""".replace("{checked}", CHECKED)
BAD = """\
name: small
goal: Try it.
tasks:
  - {id: a, agent: {use: command, run: "true"}, verify: [{run: "true"}], blocked_by: [z]}
  - {id: a, agent: {use: command, run: "true"}, verify: [{run: "true"}], timeout: soon}
"""


@pytest.fixture
def call(tmp_path: Path) -> Any:
    def run(*words: str) -> Ran:
        done = dagward(tmp_path / "state", *words, cwd=tmp_path)
        assert not (tmp_path / "state").exists(), "the state folder was touched"
        return done

    return run


def test_a_valid_file_is_said_in_one_line(call: Any, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(GOOD)
    done = call("validate", "plan.yaml")
    assert done.code == 0
    made = call("validate", "plan.yaml", "--json").json()
    assert done.out == f"plan.yaml: valid, 2 tasks, 1 edge, 2 layers, hash {made['hash'][:12]}\n"
    assert (made["schema"], made["valid"], made["errors"], made["edges"]) == ("dagward/validate/1", True, [], 1)
    assert len(made["hash"]) == 64


def test_all_errors_at_once_with_2(call: Any, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(BAD)
    done = call("validate", "plan.yaml")
    assert done.code == 2
    assert done.out == ""
    lines = done.err.splitlines()
    assert [line.split(":")[:2] for line in lines[:3]] == [["plan.yaml", "4"], ["plan.yaml", "5"], ["plan.yaml", "5"]]
    assert "error: plan.yaml: 3 errors" in lines
    asked = call("validate", "plan.yaml", "--json")
    assert asked.code == 2
    made = asked.json()
    assert (made["valid"], made["hash"]) == (False, None)
    assert len(made["errors"]) == 3
    assert set(made["errors"][0]) == {"file", "line", "column", "field", "message", "remedy"}


def test_warnings_do_not_stop_a_plan(call: Any, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(GOOD.replace(CHECKED, ""))
    done = call("validate", "plan.yaml")
    assert done.code == 0
    assert done.err.count("warning: plan.yaml:") == 2
    assert "2 warnings" in done.out


def test_params_reach_the_file(call: Any, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(GOOD + "params: {module: null}\n")
    assert call("validate", "plan.yaml").code == 2
    assert call("validate", "plan.yaml", "--param", "module=billing").code == 0


def test_schema_is_json_on_stdout_and_its_use_on_stderr(call: Any) -> None:
    done = call("schema")
    assert json.loads(done.out)["title"] == "dagward plan file"
    assert "# yaml-language-server: $schema=plan.schema.json" in done.err


def test_graph_of_a_file_needs_no_server(call: Any, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(GOOD)
    assert call("graph", "plan.yaml").out.splitlines()[-1] == "    └── b ← a"
    assert '"a" -> "b";' in call("graph", "plan.yaml", "--format", "dot").out
    missing = call("graph", "other.yaml")
    assert missing.code == 2
    assert "there is no such file" in missing.err


def test_init_writes_a_scratch_plan_and_never_overwrites(call: Any, tmp_path: Path) -> None:
    done = call("init")
    assert done.code == 0
    assert "next: dagward run plan.yaml" in done.err
    valid = call("validate", "plan.yaml")
    assert (valid.code, valid.err) == (0, "")
    text = (tmp_path / "plan.yaml").read_text()
    assert "repo:" not in text
    again = call("init")
    assert again.code == 2
    assert "plan.yaml exists already; nothing was written" in again.err
    assert (tmp_path / "plan.yaml").read_text() == text


def test_init_in_a_git_repository_writes_a_plan_for_it(call: Any, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "below").mkdir()
    assert call("init", "below/first.yaml", "--json").json()["kind"] == "repo"
    valid = call("validate", "below/first.yaml")
    assert (valid.code, valid.err) == (0, "")
    assert "repo: .." in (tmp_path / "below/first.yaml").read_text()


def test_init_into_a_folder_that_is_not_there(call: Any) -> None:
    done = call("init", "nowhere/plan.yaml")
    assert done.code == 2
    assert "cannot write nowhere/plan.yaml" in done.err


def test_lint_warns_before_work_starts(call: Any, tmp_path: Path) -> None:
    text = GOOD.replace('a, agent: {use: command, run: "true"', 'a, agent: {use: command, run: "no-such-program-here"')
    (tmp_path / "plan.yaml").write_text(text)
    assert call("validate", "plan.yaml").err == ""
    done = call("validate", "plan.yaml", "--lint")
    assert done.code == 0
    assert '"no-such-program-here" is not on PATH here; install it where the workers run' in done.err
    assert "this check cannot fail: nothing in it can fail" in done.err
    made = call("validate", "plan.yaml", "--lint", "--json").json()
    assert made["valid"]
    assert {each["remedy"] for each in made["warnings"]} >= {"install it where the workers run"}
