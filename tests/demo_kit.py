"""The demo's parts for tests: where they are, its codemod as a package, and a checkout in which `scripts/demo` runs."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[1]
PLANS = TOP / "config" / "plans"
MODULES = ("config", "invoices", "mailer", "money", "reports", "storage")

sys.path.insert(0, str(PLANS / "codemods"))


def package(folder: Path) -> Path:
    """A copy of the legacy package with its tool, as the demo lays it out, without git."""
    ours = shutil.ignore_patterns("__pycache__", ".*_cache")
    shutil.copytree(PLANS / "legacy", folder, ignore=ours)
    shutil.copytree(PLANS / "codemods", folder / "tools", ignore=ours)
    return folder


def environment(**more: str) -> dict[str, str]:
    """Of a person's shell in which this interpreter's programs come first, without traces of the running tests."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DAGWARD_", "PYTEST_", "GIT_"))}
    for name in ("REDIS_URL", "PYTHONDONTWRITEBYTECODE"):
        env.pop(name, None)
    path = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', os.defpath)}"
    return {**env, "PATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **more}


def run(folder: Path, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder with `environment`."""
    return subprocess.run(
        argv, cwd=folder, env=environment(**more), capture_output=True, text=True, timeout=240, check=False
    )


@dataclass(frozen=True)
class Checkout:
    """A copy of scripts and plans whose `.venv` is this interpreter's environment instead of a new one."""

    path: Path

    @classmethod
    def make(cls, path: Path) -> Checkout:
        for name in ("scripts", "config"):
            shutil.copytree(TOP / name, path / name, ignore=shutil.ignore_patterns("__pycache__"))
        # The demo installs nothing here: what it would install is what runs this test.
        (path / "scripts" / "_env.sh").write_text(
            'set -eu\ntop=$(CDPATH="" cd -- "$(dirname -- "$0")/.." && pwd)\ncd "$top"\nmake_env() { :; }\n'
        )
        programs = {
            "python": [sys.executable],
            "ruff": [sys.executable, "-m", "ruff"],
            "dagward": [sys.executable, "-P", "-c", "from scheduler.cli import main; main()"],
        }
        (path / ".venv" / "bin").mkdir(parents=True)
        for name, argv in programs.items():
            program = path / ".venv" / "bin" / name
            program.write_text(f'#!/bin/sh\nexec {shlex.join(argv)} "$@"\n')
            program.chmod(0o755)
        return cls(path)

    @property
    def repo(self) -> Path:
        return self.path / ".demo" / "billing"

    def demo(self) -> subprocess.CompletedProcess[str]:
        return run(self.path, "scripts/demo", PYTHONPATH=str(TOP))

    def git(self, *args: str) -> list[str]:
        done = run(self.repo, "git", *args)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def ask(self, *args: str) -> Any:
        """The JSON of a reading command, as the demo's last lines name it."""
        argv = (".venv/bin/dagward", "--config", ".demo/config.toml", *args, "--json")
        done = run(self.path, *argv, PYTHONPATH=str(TOP))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
