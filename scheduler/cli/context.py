"""What commands share: settings, an opened store, JSON or text. No command's own logic lives here."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from scheduler import errors

if TYPE_CHECKING:
    from scheduler.embedded import Embedded
    from scheduler.settings import Settings
    from scheduler.store import Store, Views

F = TypeVar("F", bound=Callable[..., object])


class App:
    """One command's surroundings. Everything is made when it is asked for."""

    def __init__(self, overrides: Mapping[str, object], config_file: str | None) -> None:
        self._overrides = overrides
        self._config_file = config_file

    @cached_property
    def settings(self) -> Settings:
        """Command line, environment, file, defaults."""
        from scheduler import settings

        return settings.load(self._overrides, os.environ, Path(self._config_file) if self._config_file else None)

    @contextlib.contextmanager
    def server(self) -> Iterator[Embedded | None]:
        """A share of the embedded server while the command runs; nothing when a URL is given."""
        self._make_state_dir()
        if not self.settings.embedded:
            yield None
            return
        from scheduler.embedded import Embedded

        embedded = Embedded(self.settings.state_dir)
        embedded.join()
        try:
            yield embedded
        finally:
            embedded.leave()

    def _make_state_dir(self) -> None:
        folder = self.settings.state_dir
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise errors.Infrastructure(
                f"cannot make the state folder {folder}: {error.strerror}", hint="Name another one by --state-dir."
            ) from None

    @contextlib.contextmanager
    def store(self) -> Iterator[tuple[Store, Views]]:
        """The opened store, judged and recognised, for a command that does one thing and ends."""
        with self.server():
            yield self.open()

    def open(self, *, patient: bool = False) -> tuple[Store, Views]:
        """Connect to the server that is there. Impatient unless told: a person waits."""
        from scheduler.settings import epoch_file
        from scheduler.store import Store, Views, connect, open_store, preflight

        config = self.settings.store_config()
        client = connect(config, patient=patient, timeout=None if patient else 10.0)
        for warning in preflight(client, config):
            click.echo(f"warning: {warning}", err=True)
        open_store(client, self.settings.keys, epoch_file(self.settings))
        return Store(client, self.settings.keys, self.settings.timing), Views(client, self.settings.keys)


pass_app = click.make_pass_decorator(App)


def json_option(function: F) -> F:
    """`--json`: the documented, stable form of a command's answer on stdout."""
    decorated: F = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")(function)
    return decorated


_OPTIONS: list[str] = []


def remember_options(options: Sequence[str]) -> None:
    """The global options that were typed: every command that we suggest repeats them."""
    _OPTIONS[:] = options


def suggest(text: str) -> str:
    """The text with our own commands completed by the global options of this one."""
    if not _OPTIONS:
        return text
    from scheduler.cli import COMMANDS

    words = "|".join(COMMANDS)
    return re.sub(rf"\bdagward (?=(?:{words})\b)", f"dagward {shlex.join(_OPTIONS)} ", text)


def say(text: str) -> None:
    """Talk goes to stderr; stdout is for data."""
    click.echo(suggest(text), err=True)


def put_json(value: object) -> None:
    """One JSON value on stdout."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def put_rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table: aligned on a terminal, tab-separated with a header line elsewhere."""
    from scheduler.report.table import render

    click.echo(render(header, rows, width=terminal_width()), nl=False)


def terminal_width() -> int | None:
    """Columns of the terminal on stdout; None when stdout is not one."""
    if not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns  # COLUMNS counts, and a terminal that claims to have none has 80


def who() -> str:
    """The OS user, for events."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def refuse_inside_attempt(action: str) -> None:
    """A process that carries DAGWARD_ATTEMPT may not submit, run or approve."""
    if os.environ.get("DAGWARD_ATTEMPT"):
        raise errors.Refusal(
            f"an agent may not {action}: this process carries DAGWARD_ATTEMPT",
            hint="Run it from a shell of your own, outside of any attempt.",
        )
