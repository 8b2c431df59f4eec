"""What a host remembers of a plan between attempts: small JSON values by name, below `<state>/facts/<plan>/`.

Only what can be found out again is kept here; a value that cannot be read counts as not there. Must not know checks.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from scheduler.model import Json


@dataclass(frozen=True, slots=True)
class Facts:
    """The memory of one plan on this host. Several workers may use it at once; the last one to write wins."""

    folder: Path

    @classmethod
    def of(cls, state: Path, plan: str) -> Facts:
        """The plan's memory in a state folder."""
        return cls(state / "facts" / plan)

    def recall(self, name: str) -> Json:
        """What was kept under this name, None when nothing was."""
        try:
            value: Json = json.loads(self._file(name).read_bytes())
        except (OSError, ValueError):
            return None
        return value.get("value") if isinstance(value, dict) and value.get("name") == name else None

    def keep(self, name: str, value: Json) -> None:
        """Remember a value. It is whole or not there, whenever the process dies."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile("w", dir=self.folder, delete=False, encoding="utf-8") as file:
            json.dump({"name": name, "value": value}, file)
        os.replace(file.name, self._file(name))  # noqa: PTH105 -- a name, not a Path

    def _file(self, name: str) -> Path:
        return self.folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"
