"""System tasks: work of dagward itself that runs outside the daemon. Not writable in a plan file."""

from __future__ import annotations

from typing import Literal

from scheduler.model.base import Frozen


class SystemAgent(Frozen):
    """`integrate` puts one commit per completed task on the plan's branch; `accept` only gathers results."""

    use: Literal["system"]
    work: Literal["integrate", "accept"]
