"""`queues` and `workers`: pools and who serves them. Writes nothing."""

from __future__ import annotations

import click

from scheduler.cli.context import App, json_option, pass_app, put_json, put_rows, say
from scheduler.cli.paint import put_table


@click.command()
@json_option
@pass_app
def queues(app: App, as_json: bool) -> None:
    """List pools: limit, slots in use, ready tasks of all active plans, workers, idle workers.

    \b
    dagward queues
    """
    from scheduler.report.lists import POOLS, pool_row, with_configured

    with app.store() as (_, views):
        pools = with_configured(views.pools(), app.settings.limits)
    if as_json:
        put_json({"schema": "dagward/queues/1", "queues": [pool.model_dump(mode="json") for pool in pools]})
        return
    put_rows(POOLS, [pool_row(pool) for pool in pools])


@click.command()
@json_option
@pass_app
def workers(app: App, as_json: bool) -> None:
    """List workers: where they run, what they serve, what they hold, what is left of their lease.

    \b
    dagward workers
    """
    from scheduler.report.lists import WORKERS, worker_row

    with app.store() as (_, views):
        found = views.workers()
    if as_json:
        put_json({"schema": "dagward/workers/1", "workers": [worker.model_dump(mode="json") for worker in found]})
        return
    if found:
        put_table(WORKERS, [worker_row(worker) for worker in found], 5)
    else:
        say("no worker is registered: `dagward run FILE` and `dagward up` start some")
