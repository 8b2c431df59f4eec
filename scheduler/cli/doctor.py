"""`doctor` and `config`: is everything there that dagward needs, and which configuration holds."""

from __future__ import annotations

import time

import click

from scheduler import errors
from scheduler.cli.context import App, json_option, pass_app, put_json, say, suggest
from scheduler.cli.paint import COLOURS, coloured


@click.command()
@json_option
@pass_app
def doctor(app: App, as_json: bool) -> int:
    """Check Python, packages, git, server, state folder, kernel and what dead workers left. A fail exits with 5.

    \b
    dagward doctor
    """
    from scheduler.checkup import checkup
    from scheduler.logs import redacted

    found = []
    for finding in checkup(app.settings, app.server, time.time()):
        found.append(finding)
        if as_json:
            continue
        word = finding.status.ljust(4)
        click.echo(f"{click.style(word, fg=COLOURS[finding.status]) if coloured() else word}  "
                   f"{finding.check}: {redacted(finding.detail)}")  # fmt: skip
        if finding.remedy and finding.status != "ok":
            click.echo(suggest(f"      {redacted(finding.remedy)}"))
    failed = [finding for finding in found if finding.status == "fail"]
    if as_json:
        listed = [
            {
                "check": each.check,
                "status": each.status,
                "detail": redacted(each.detail),
                "remedy": redacted(each.remedy) if each.status != "ok" else "",
            }
            for each in found
        ]
        put_json({"schema": "dagward/doctor/1", "ok": not failed, "checks": listed})
    elif failed:
        say(f"{len(failed)} of {len(found)} checks failed")
    return errors.EXIT_INFRASTRUCTURE if failed else 0


@click.group()
def config() -> None:
    """Show the configuration that holds.

    \b
    dagward config show
    """


@config.command()
@json_option
@pass_app
def show(app: App, as_json: bool) -> None:
    """Every setting with the value that holds: command line, environment, file, default, in this order.

    \b
    dagward config show
    dagward --state-dir /tmp/trial config show --json
    """
    values = app.settings.public()
    if as_json:
        put_json({"schema": "dagward/config/1", "settings": values})
        return
    for name, value in values.items():
        click.echo(f"{name}\t{_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={each}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(str(each) for each in value)
    return str(value).lower() if isinstance(value, bool) else str(value)
