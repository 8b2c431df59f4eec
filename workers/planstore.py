"""The attempt's checklist: what one agent plans and ticks off for itself. A view for people, never proof of anything.

One object per attempt, made with that attempt's file and nothing else, so it cannot reach another's. Must not know
tasks, states or evidence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scheduler.errors import Conflict, Refusal

StepState = Literal["pending", "active", "done"]
STATES: tuple[StepState, ...] = ("pending", "active", "done")
MAX_STEPS = 200


@dataclass(frozen=True, slots=True)
class Step:
    """One item of a checklist."""

    text: str
    state: StepState = "pending"


class PlanStore:
    """The checklist of one attempt. Each write replaces it whole and raises its revision by one."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.revision = 0
        self.steps: tuple[Step, ...] = ()
        if file.exists():
            stored = json.loads(file.read_text(encoding="utf-8"))
            self.revision = int(stored["revision"])
            self.steps = tuple(Step(step["text"], step["state"]) for step in stored["steps"])

    def write(self, steps: Sequence[Step], revision: int | None = None) -> int:
        """Replace the checklist. `revision`, when given, must be the current one. Returns the new revision."""
        if revision is not None and revision != self.revision:
            raise Conflict(f"the checklist is at revision {self.revision}, not {revision}", hint="Read it again.")
        if len(steps) > MAX_STEPS:
            raise Refusal(f"a checklist has at most {MAX_STEPS} steps, not {len(steps)}", hint="Write fewer steps.")
        for step in steps:
            if step.state not in STATES or not step.text.strip():
                raise Refusal(f"not a step: {step}", hint=f"A step has a text and a state of {', '.join(STATES)}.")
        self.revision += 1
        self.steps = tuple(steps)
        self._save()
        return self.revision

    def render(self) -> str:
        """The active steps word for word, one a line, as they are put before the agent again."""
        marks = {"pending": " ", "active": ">", "done": "x"}
        return "\n".join(f"[{marks[step.state]}] {step.text}" for step in self.steps)

    def _save(self) -> None:
        steps = [{"text": step.text, "state": step.state} for step in self.steps]
        temporary = self._file.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps({"revision": self.revision, "steps": steps}), encoding="utf-8")
        temporary.replace(self._file)
