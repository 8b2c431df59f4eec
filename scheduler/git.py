"""Runs git with nothing of the outside in it: no configuration, hooks, filters, monitors or prompts of anyone else.

Must not know what a plan, a mirror or a work tree is for.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scheduler.errors import Infrastructure

OLDEST = (2, 38)
"""`git merge-tree --write-tree` came with 2.38."""

NETWORK_LIMIT = 1800.0
"""Seconds for a command that talks to another repository."""

SETTINGS: Mapping[str, str] = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.fileMode": "true",
    "core.symlinks": "true",
    "core.ignoreCase": "false",
    "core.trustctime": "true",
    "core.checkStat": "default",
    "core.sparseCheckout": "false",
    "core.splitIndex": "false",
    "core.untrackedCache": "false",
    "core.fsyncMethod": "batch",
    "index.sparse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "fetch.writeCommitGraph": "false",
    "fetch.recurseSubmodules": "false",
    "submodule.recurse": "false",
    "commit.gpgSign": "false",
    "merge.directoryRenames": "false",
    "protocol.ext.allow": "never",
    "advice.addEmbeddedRepo": "false",
    "credential.interactive": "false",
}
_PASSED = ("PATH", "TMPDIR", "SSH_AUTH_SOCK", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR")


def _settings(extra: Mapping[str, str]) -> dict[str, str]:
    """Settings by environment: they win over every file, and argv stays short."""
    pairs = {**SETTINGS, **extra}
    env = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs.items()):
        env[f"GIT_CONFIG_KEY_{number}"] = key
        env[f"GIT_CONFIG_VALUE_{number}"] = value
    return env


def environment(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a git command. Nothing named GIT_* is inherited."""
    kept = {name: os.environ[name] for name in _PASSED if name in os.environ}
    return {
        "PATH": os.defpath,
        **kept,
        "HOME": "/dev/null",
        "XDG_CONFIG_HOME": "/dev/null",
        "LC_ALL": "C",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LITERAL_PATHSPECS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
        **_settings(settings or {}),
    }


def without_password(text: str) -> str:
    """The text with `***` for the user and password of every address in it."""
    return re.sub(r"(?<=://)[^/\s@]+@", "***@", text)


class GitFailed(Infrastructure):
    """Look at the repository by hand with the same command; `dagward doctor` checks the state folder."""

    code = "git_failed"

    def __init__(self, command: str, status: int, stderr: str) -> None:
        lines = [line.strip() for line in stderr.splitlines() if line.strip()]
        causes = [line for line in lines if line.startswith(("fatal:", "error:"))]
        said = "; ".join(causes[:3] or lines[-3:]) or f"it ended with {status}"
        super().__init__(without_password(f"git {command}: {said}"))
        self.status = status
        self.stderr = stderr


@dataclass(frozen=True, slots=True)
class Done:
    """What a git command that was allowed to fail came to."""

    status: int
    stdout: bytes
    stderr: str


@dataclass(frozen=True, slots=True)
class Git:
    """Where git commands run. With `git_dir` nothing is discovered: a `.git` in the work tree has no say."""

    git_dir: Path | None = None
    work_tree: Path | None = None
    index: Path | None = None
    cwd: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def run(self, *args: str, data: bytes = b"", network: bool = False) -> bytes:
        """Standard output of `git ARGS`; raises `GitFailed` when it does not end with 0."""
        done = self.attempt(*args, data=data, network=network)
        if done.status != 0:
            raise GitFailed(args[0], done.status, done.stderr)
        return done.stdout

    def text(self, *args: str, network: bool = False) -> str:
        """Standard output as text without the line end."""
        return self.run(*args, network=network).decode("utf-8", "backslashreplace").rstrip("\n")

    def attempt(self, *args: str, data: bytes = b"", network: bool = False, ok: Collection[int] | None = None) -> Done:
        """Run and tell; raises `GitFailed` only for a status outside `ok` when that is given."""
        try:
            done = subprocess.run(
                ["git", *args],
                input=data,
                capture_output=True,
                check=False,
                cwd=self._cwd(),
                env=self._environment(),
                # No limit on local work: frozen time would count in it.
                timeout=NETWORK_LIMIT if network else None,
            )
        except FileNotFoundError as error:
            if error.filename not in (None, "git"):
                raise Infrastructure(f"{error.filename} does not exist") from None
            raise Infrastructure("git is not on PATH", hint="Install git 2.38 or newer.") from None
        except subprocess.TimeoutExpired:
            message = f"git {args[0]}: no answer within {NETWORK_LIMIT:.0f} s"
            raise Infrastructure(message, hint="Check the network and the repository's address.") from None
        stderr = done.stderr.decode("utf-8", "backslashreplace")
        if ok is not None and done.returncode not in ok:
            raise GitFailed(args[0], done.returncode, stderr)
        return Done(done.returncode, done.stdout, stderr)

    def _cwd(self) -> Path | None:
        return self.cwd or self.work_tree or self.git_dir

    def _environment(self) -> dict[str, str]:
        env = environment(self.settings)
        for name, path in (
            ("GIT_DIR", self.git_dir),
            ("GIT_WORK_TREE", self.work_tree),
            ("GIT_INDEX_FILE", self.index),
        ):
            if path is not None:
                env[name] = str(path)
        return env


def version() -> tuple[int, ...]:
    """The version of the git on PATH, such as (2, 39, 5)."""
    said = Git().text("version")
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", said)
    if found is None:
        raise Infrastructure(f"git says {said!r} for its version", hint="Install git 2.38 or newer.")
    return tuple(int(part) for part in found.groups() if part)


def require_git() -> None:
    """Refuse a git that is missing or too old."""
    have = version()
    if have < OLDEST:
        text = ".".join(map(str, have))
        raise Infrastructure(f"git {text} is too old", hint="Install git 2.38 or newer.")
