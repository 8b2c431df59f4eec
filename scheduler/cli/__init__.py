"""The command `dagward`: parse, one call, print. The only place that turns errors into exit codes.

Commands are imported when they are called, so `--help` and reading commands start fast.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

import click

from scheduler import __version__, errors


class Entry(NamedTuple):
    """Where a command lives and its one line in the list."""

    module: str
    section: str
    help: str


COMMANDS: dict[str, Entry] = {
    "run": Entry("run", "Run", "Run a plan file to its end and exit by its outcome."),
    "up": Entry("serve", "Run", "Serve all plans: server, daemon and workers, until signalled."),
    "scheduler": Entry("serve", "Run", "Run one daemon in this process."),
    "worker": Entry("serve", "Run", "Run one worker in this process."),
    "submit": Entry("submit", "Run", "Store a plan for `up`, `scheduler` and `worker` to run."),
    "wait": Entry("submit", "Run", "Wait for a plan and exit by its outcome."),
    "validate": Entry("planfile", "Plan files", "Check a plan file; all errors at once."),
    "schema": Entry("planfile", "Plan files", "Print the JSON Schema of plan files, for editors."),
    "init": Entry("planfile", "Plan files", "Write a first plan file."),
    "ps": Entry("look", "Look", "List plans."),
    "show": Entry("look", "Look", "Show a plan and its tasks."),
    "graph": Entry("look", "Look", "Draw a plan's tasks and edges."),
    "events": Entry("look", "Look", "Print a plan's history."),
    "logs": Entry("attempts", "Look", "Print an attempt's output."),
    "evidence": Entry("attempts", "Look", "Show what was verified by what."),
    "why": Entry("attempts", "Look", "Say why a task waits, and what moves it."),
    "queues": Entry("queues", "Look", "List pools: limits, use, ready tasks, workers."),
    "workers": Entry("queues", "Look", "List workers and what they hold."),
    "approve": Entry("operate", "Operate", "Approve a version of a plan by its hash."),
    "cancel": Entry("operate", "Operate", "Cancel a plan or one task; agents are proven gone."),
    "doctor": Entry("doctor", "Operate", "Check server, git, packages and this host."),
    "config": Entry("doctor", "Operate", "Show the configuration that holds."),
}


class Group(click.Group):
    """Imports a command's module when it is asked for; lists them by section without importing any."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's shape
        """All commands, in the order of their sections."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- click's shape
        """The command, imported now."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(f"scheduler.cli.{entry.module}")
        command = getattr(module, cmd_name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{cmd_name} is not a command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click, with a suggestion for a mistyped name."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(name, COMMANDS, 1)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            raise click.UsageError(f"No such command '{name}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """As click, but a reader that has gone ends a command quietly: click would exit with 1, a failed task."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """One list per section."""
        for section in dict.fromkeys(entry.section for entry in COMMANDS.values()):
            with formatter.section(section):
                formatter.write_dl([(n, e.help) for n, e in COMMANDS.items() if e.section == section])


EPILOG = """\b
Exit codes: 0 all verified, 1 a task or acceptance failed or the plan was cancelled, 2 refused input or usage,
3 nothing can move but a person, 5 server, git, agent or worker missing, 6 deadlocked, 130 interrupted.
\b
Environment: REDIS_URL and DAGWARD_* override the configuration file (dagward config show).
"""


@click.command(
    cls=Group, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "DAGWARD"}
)
@click.version_option(__version__, prog_name="dagward", message="%(prog)s %(version)s")
@click.option("--state-dir", type=click.Path(), help="Where server, mirrors, trees and logs live.")
@click.option("--config", "config_file", type=click.Path(), envvar="DAGWARD_CONFIG", help="Configuration file.")
@click.option("--redis", "redis_url", envvar="REDIS_URL", help="URL of a server; default: a private embedded one.")
@click.option("--allow-volatile", is_flag=True, default=None, help="Accept a server without append-only file.")
@click.pass_context
def cli(
    ctx: click.Context,
    state_dir: str | None,
    config_file: str | None,
    redis_url: str | None,
    allow_volatile: bool | None,
) -> None:
    """dagward runs batches of agent work as a DAG and proves what it calls completed.

    \b
    dagward init                     write a first plan
    dagward run plan.yaml            run it to its end
    dagward why PLAN TASK            why does this task wait?
    """
    from scheduler.cli.context import App, remember_options

    typed = click.core.ParameterSource.COMMANDLINE
    named = (("--state-dir", "state_dir", state_dir), ("--config", "config_file", config_file))
    remember_options(
        [w for option, name, v in named if v and ctx.get_parameter_source(name) is typed for w in (option, v)]
    )
    ctx.obj = App(
        {"state_dir": state_dir, "redis_url": redis_url, "allow_volatile": allow_volatile or None}, config_file
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script: run a command, print its error with the next step, exit by its code."""
    _print_anything()
    try:
        code = cli.main(args=arguments, prog_name="dagward", standalone_mode=False)
    except click.exceptions.Exit as done:
        code = done.exit_code
    except click.Abort:
        code = errors.EXIT_INTERRUPTED
    except click.ClickException as error:
        error.show()
        code = errors.EXIT_REFUSED
    except errors.DagwardError as error:
        code = _explain(error)
    except KeyboardInterrupt:
        code = errors.EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 -- the last resort: one line instead of a traceback
        code = _unexpected(error)
    sys.exit(code if isinstance(code, int) else 0)


def _print_anything() -> None:
    """A character that the terminal's encoding lacks is shown escaped; it never ends a command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _explain(error: errors.DagwardError) -> int:
    from scheduler.cli.context import suggest
    from scheduler.logs import redacted

    if isinstance(error, errors.InvalidPlan):
        for problem in error.problems.errors:
            click.echo(problem.render(error.problems.file), err=True)
    click.echo(f"error: {redacted(error.message)}", err=True)
    if error.hint:
        click.echo(suggest(redacted(error.hint)), err=True)
    return error.exit_code


def _unexpected(error: Exception) -> int:
    import redis

    if isinstance(error, redis.exceptions.ConnectionError | redis.exceptions.TimeoutError):
        return _explain(errors.StoreUnavailable(f"the server does not answer: {error}"))
    if isinstance(error, redis.exceptions.RedisError):
        return _explain(errors.StoreRefused(f"the server refused: {error}", hint="Run `dagward doctor`."))
    if os.environ.get("DAGWARD_DEBUG"):
        raise error
    text = f"{type(error).__name__}: {error}"
    hint = "This is a defect of dagward. Set DAGWARD_DEBUG=1 to see where, and report it."
    return _explain(errors.DagwardError(text, hint=hint))
