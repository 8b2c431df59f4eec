"""The child process of a Python agent: `python -P -m workers.agents.child MODULE:FUNCTION FOLDER`.

Everything else comes by the environment contract. Its exit code is the agent's.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from workers.agents.python import NO_FUNCTION, BadFunction, Context, call
from workers.planstore import PlanStore


def main() -> int:
    """Run the function in the current folder and write its outputs. 127: there is no such function."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    workspace = Path.cwd()
    sys.path.insert(0, str(workspace))
    context = Context(
        plan=os.environ["DAGWARD_PLAN"],
        task=os.environ["DAGWARD_TASK"],
        attempt=int(os.environ["DAGWARD_ATTEMPT"]),
        params=json.loads((folder / "params.json").read_text(encoding="utf-8")),
        workspace=workspace,
        inputs=Path(os.environ["DAGWARD_INPUTS"]),
        prompt=Path(os.environ["DAGWARD_PROMPT"]).read_text(encoding="utf-8"),
        checklist=PlanStore(folder / "checklist.json"),
    )
    try:
        outputs = call(name, context)
    except BadFunction as error:
        sys.stderr.write(f"{error.message}\n")
        return NO_FUNCTION
    if outputs:
        Path(os.environ["DAGWARD_OUTPUTS"]).write_text(json.dumps(outputs), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
