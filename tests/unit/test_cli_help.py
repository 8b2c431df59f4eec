"""Help of every command: there is an example, it is fast to load, and the group imports no heavy library."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from scheduler.cli import COMMANDS, cli

HEAVY = ("pydantic", "redis", "rq", "networkx", "structlog", "yaml", "jinja2", "asyncio")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_has_an_example_and_json(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    shown = CliRunner().invoke(cli, [name, "--help"])
    assert shown.exit_code == 0, shown.output
    assert f"dagward {name}" in shown.output.partition("Options:")[0].partition("\n")[2], "no example"
    if name not in ("up", "scheduler", "worker", "config"):
        assert "--json" in shown.output


def test_config_show_has_help() -> None:
    shown = CliRunner().invoke(cli, ["config", "show", "--help"])
    assert shown.exit_code == 0
    assert "--json" in shown.output


def test_every_command_of_the_issue_is_there() -> None:
    wanted = "run up scheduler worker submit wait validate schema init ps show graph logs evidence events why approve"
    assert set(wanted.split()) | {"cancel", "queues", "workers", "doctor", "config"} == set(COMMANDS)


@pytest.mark.parametrize("arguments", [["--help"], ["ps", "--help"], ["doctor", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "from scheduler.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        f"print('LOADED', [m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert "LOADED []" in done.stderr, done.stderr


def test_mistyped_command_is_suggested() -> None:
    shown = CliRunner().invoke(cli, ["evidense"])
    assert shown.exit_code == 2
    assert "Did you mean `evidence`?" in shown.output
