"""The text of a first plan file, for `dagward init`. Pure; its plans are valid, without a warning, and run."""

from __future__ import annotations

import re

_HEAD = """\
# A dagward plan. Check it: dagward validate {file}   Run it: dagward run {file}
# For an editor that checks while you type: dagward schema
"""

_SCRATCH = """\
name: "{name}"
goal: Write a greeting in one folder, and count its words in another.
defaults: {{timeout: 1m, retries: {{max: 1}}}}
tasks:
  - id: greet
    title: Write a greeting
    agent:
      use: command
      run: |
        echo "Hello from $DAGWARD_TASK" > greeting.txt
    verify:
      - file: {{path: greeting.txt, nonempty: true}}

  - id: count
    title: Count its words
    blocked_by: [greet]          # starts when greet's checks have accepted its result
    agent:
      use: command
      run: |
        wc -w < "$DAGWARD_INPUTS/greet/files/greeting.txt" | tr -d ' ' > words.txt
    verify:                      # another process checks a clean copy of the result
      - run: 'test "$(cat words.txt)" -eq 3'
"""

_REPO = """\
name: "{name}"
goal: List the files of this repository in {listing}, on a branch of its own.
repo: {repo}                     # its last commit; the result is the branch dagward/<plan id>
scope: {{write: [{listing}]}}      # a result that touches anything else is refused
defaults: {{timeout: 5m, retries: {{max: 1}}}}
tasks:
  - id: survey
    title: Count the files
    agent:
      use: command
      run: |
        count=$(find . -type f -not -path './.git/*' | wc -l | tr -d ' ')
        printf '{{"files": %s}}' "$count" > "$DAGWARD_OUTPUTS"
    verify:
      - outputs: {{schema: {{type: object, required: [files], properties: {{files: {{type: integer, minimum: 1}}}}}}}}

  - id: listing
    title: Write the list
    blocked_by: [survey]         # starts when survey's checks have accepted its result
    agent:
      use: command
      run: |
        find . -type f -not -path './.git/*' -not -path './{listing}' | sort > {listing}
    verify:                      # another process checks a clean checkout of the result
      - file: {{path: {listing}, nonempty: true}}
      - diff: {{only: [{listing}]}}
"""

LISTING = "dagward-files.txt"


def plan_text(name: str, repo: str | None, file: str = "plan.yaml") -> str:
    """A small plan; `repo` is the path of a git repository from the file's folder, None makes a scratch plan."""
    head = _HEAD.format(file=file)
    if repo is None:
        return head + _SCRATCH.format(name=plan_name(name))
    return head + _REPO.format(name=plan_name(name), repo=repo, listing=LISTING)


def plan_name(text: str) -> str:
    """A plan name made of the letters, digits, `_` and `-` of a folder's name."""
    made = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_")[:40]
    return made if made and not made.isdigit() else "first"
