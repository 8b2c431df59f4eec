"""The environment contract: which variables and files an agent and a check get. An allow-list, never an inheritance.

Values reach a shell only through variables and files. Secrets reach the agent alone. Must not start anything.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scheduler import lineage, prompts
from scheduler.errors import Infrastructure
from scheduler.instances import item_text
from scheduler.model import Attempt
from workers.sweep import SESSION_MARK, TASK_MARK

INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "USER", "LOGNAME", "SSL_CERT_FILE", "SSL_CERT_DIR")


class MissingEnvironment(Infrastructure):
    """Set the variable where the worker is started, or take its name out of the plan's `env`."""

    code = "missing_environment"


@dataclass(frozen=True, slots=True)
class Folder:
    """The private folder of one attempt: what it is given, what it writes, what is kept of it."""

    path: Path

    @classmethod
    def make(cls, state: Path, plan: str, task: str, attempt: int) -> Folder:
        """`<state>/attempts/<plan>/<task>/<attempt>/`, mode 0700."""
        path = state / "attempts" / plan / task / str(attempt)
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return cls(path)

    @property
    def log(self) -> Path:
        """The agent's output."""
        return self.path / "agent.log"

    @property
    def inputs(self) -> Path:
        """What the blockers produced, read-only."""
        return self.path / "inputs"

    @property
    def written(self) -> Path:
        """Where the agent writes outputs and usage."""
        return self.path / "written"


def secrets_of(attempt: Attempt, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The secret values that this attempt's agent gets, from the worker's own environment."""
    missing = [name for name in attempt.task.env.secrets if name not in environ]
    if missing:
        raise MissingEnvironment(f"{attempt.task.id} needs {', '.join(missing)}, which this worker does not have")
    return {name: environ[name] for name in attempt.task.env.secrets}


def base_env(attempt: Attempt, session: str, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What agents and checks share: the allow-list, the task's `pass` and `set`, the names of the attempt."""
    declared = attempt.task.env
    missing = [name for name in declared.pass_ if name not in environ]
    if missing:
        raise MissingEnvironment(f"{attempt.task.id} needs {', '.join(missing)}, which this worker does not have")
    env = {name: environ[name] for name in (*INHERITED, *declared.pass_) if name in environ}
    env.setdefault("PATH", os.defpath)
    env |= dict(declared.set)
    env |= {
        "DAGWARD_PLAN": attempt.plan,
        "DAGWARD_TASK": attempt.task.id,
        "DAGWARD_ATTEMPT": str(attempt.attempt),
        SESSION_MARK: session,
        TASK_MARK: f"{attempt.plan}/{attempt.task.id}",
    }
    if attempt.has_item:
        env["DAGWARD_ITEM"] = item_text(attempt.item)
    env |= {f"DAGWARD_PARAM_{name.upper()}": value for name, value in attempt.params.items() if value is not None}
    return env


def prepare(attempt: Attempt, folder: Folder) -> dict[str, str]:
    """Write the files of the contract; returns the variables that name them. Inputs are written by the workspace."""
    folder.written.mkdir(exist_ok=True, mode=0o700)
    outputs = lineage.outputs(attempt.ancestors)
    prompt = folder.path / "prompt.md"
    item = attempt.item if attempt.has_item else prompts.NO_ITEM
    text = prompts.render(attempt.task.prompt, params=attempt.params, outputs=outputs, item=item)
    prompt.write_text(text, encoding="utf-8")
    env = {
        "DAGWARD_PROMPT": str(prompt),
        "DAGWARD_INPUTS": str(folder.inputs),
        "DAGWARD_OUTPUTS": str(folder.written / "outputs.json"),
        "DAGWARD_USAGE": str(folder.written / "usage.json"),
    }
    (folder.path / "params.json").write_text(json.dumps(attempt.params), encoding="utf-8")
    evidence = _evidence(attempt)
    if evidence is not None:
        file = folder.path / "evidence.json"
        file.write_text(json.dumps(evidence, indent=2) + "\n", encoding="utf-8")
        env["DAGWARD_EVIDENCE"] = str(file)
    return env


def _evidence(attempt: Attempt) -> dict[str, object] | None:
    if attempt.last_failure is None:
        return None
    return {
        "failure": attempt.last_failure.model_dump(mode="json"),
        "checks": [e.model_dump(mode="json", exclude={"token"}) for e in attempt.rejected],
    }
