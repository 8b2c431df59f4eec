"""The fields and words that the design names and this version does not build: refused, each with what to write instead.

Must not know how a file is read. A part that is built loses its line here.
"""

from __future__ import annotations

LATER: dict[str, dict[str, str]] = {
    "plan": {
        "on_conflict": "remove it; a merge conflict fails the task",
        "replan": "remove it; a failed plan is gone on with by `dagward run --resume`",
        "budget": "remove it; limit retries.max and timeout instead",
        "assumptions": "remove it",
        "risks": "remove it",
        "facts": "remove it",
    },
    "task": {
        "account": "remove it",
        "locks": "remove it; order the tasks with blocked_by",
        "assumes": "remove it",
        "budget": "remove it; limit retries.max and timeout instead",
        "approve": "remove it; use `approval: required` of the plan",
        "on_conflict": "remove it; a merge conflict fails the task",
    },
    "scope": {
        "read": "remove it; everything in the workspace can be read",
        "network": "remove it; the network is not limited",
        "commands": "remove it",
        "tools": "remove it",
        "secrets": "write env: {secrets: [...]} at the task",
        "deploy": "remove it",
    },
    "retries": {"on": "remove it; the kind of failure decides"},
    "agent": {"checklist": "remove it"},
}
"""Kind of mapping -> field -> remedy."""

LATER_AGENTS = ("codex", "claude", "acp", "llm", "human", "http", "plan")
LATER_CHECKS = ("human", "judge")
LATER_WHEN = ("integrated",)
LATER_ON_FAILURE = ("replan",)


def later_remedy(kind: str, name: str) -> str | None:
    """What to write instead of a field that is not in this version; None when the design does not know it either."""
    found = LATER.get(kind.split(maxsplit=1)[0], {}).get(name)
    if found is None and kind.startswith("check ") and name in LATER_CHECKS:
        return "remove it"
    return found
