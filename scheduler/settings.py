"""Configuration file and environment -> Settings. One place; everything else gets a value.

Order: command line, environment (`REDIS_URL`, `DAGWARD_*`), configuration file, defaults. Must not open a connection.
Read with the standard library and pydantic: a settings library would double the start of every reading command.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from scheduler import errors
from scheduler.lifecycle import Timing
from scheduler.model.base import Frozen
from scheduler.store.connect import StoreConfig
from scheduler.store.keys import Keys

DEFAULT_POOLS: Mapping[str, int] = {"default": 1000, "llm": 8, "system": 1}


class Pool(Frozen):
    """A resource class: at most `limit` attempts at once over all plans."""

    limit: Annotated[int, Field(ge=1, le=100_000)]


class Settings(Frozen):
    """Everything that a command, the daemon or a worker is configured with. Durations in milliseconds."""

    redis_url: str = ""
    installation: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")] = "main"
    allow_volatile: bool = False
    state_dir: Path
    lease: Annotated[int, Field(ge=200, le=600_000)] = 8_000
    dispatch: Annotated[int, Field(ge=200, le=600_000)] = 6_000
    output_cap: Annotated[int, Field(ge=1_000)] = 10_000_000
    grace: Annotated[int, Field(ge=0, le=600_000)] = 2_000
    frozen_limit: Annotated[int, Field(ge=1_000)] = 600_000
    drain: Annotated[int, Field(ge=0)] = 10_000
    in_process: tuple[str, ...] = ()
    log_level: Annotated[str, Field(pattern=r"^(debug|info|warning|error)$")] = "info"
    pools: dict[str, Pool] = {}

    @property
    def limits(self) -> dict[str, int]:
        """Every pool with its limit, the shipped ones included."""
        return {**DEFAULT_POOLS, **{name: pool.limit for name, pool in self.pools.items()}}

    @property
    def embedded(self) -> bool:
        """Whether the private server of the state folder serves."""
        return not self.redis_url

    @property
    def timing(self) -> Timing:
        """The times that hang on the lease."""
        return Timing(lease=self.lease, dispatch=self.dispatch)

    @property
    def keys(self) -> Keys:
        """Key names of this installation."""
        return Keys(self.installation)

    def store_config(self) -> StoreConfig:
        """Where the store is."""
        from scheduler.embedded import socket_path

        url = self.redis_url or f"unix://{socket_path(self.state_dir)}"
        return StoreConfig(url, self.installation, self.allow_volatile or self.embedded)

    def public(self) -> dict[str, object]:
        """For `config show`: everything but passwords."""
        shown = self.model_dump(mode="json")
        shown["redis_url"] = self.store_config().public_url
        shown["pools"] = self.limits
        return shown


def epoch_file(settings: Settings) -> Path:
    """Where the state folder remembers the epoch of the store behind a URL."""
    config = settings.store_config()
    name = "embedded" if settings.embedded else hashlib.sha256(config.public_url.encode()).hexdigest()[:16]
    return settings.state_dir / "epochs" / f"{name}-{settings.installation}"


_ENVIRONMENT: Mapping[str, str] = {
    "REDIS_URL": "redis_url",
    "DAGWARD_REDIS_URL": "redis_url",
    "DAGWARD_INSTALLATION": "installation",
    "DAGWARD_ALLOW_VOLATILE": "allow_volatile",
    "DAGWARD_STATE_DIR": "state_dir",
    "DAGWARD_LEASE": "lease",
    "DAGWARD_DISPATCH": "dispatch",
    "DAGWARD_OUTPUT_CAP": "output_cap",
    "DAGWARD_GRACE": "grace",
    "DAGWARD_FROZEN_LIMIT": "frozen_limit",
    "DAGWARD_DRAIN": "drain",
    "DAGWARD_LOG_LEVEL": "log_level",
}


def default_state_dir(environ: Mapping[str, str]) -> Path:
    """`$XDG_STATE_HOME/dagward`, else `~/.local/state/dagward`."""
    base = environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "dagward"


def config_file(environ: Mapping[str, str]) -> Path:
    """`$DAGWARD_CONFIG`, else `$XDG_CONFIG_HOME/dagward/config.toml`."""
    named = environ.get("DAGWARD_CONFIG")
    if named:
        return Path(named)
    base = environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "dagward" / "config.toml"


def load(
    overrides: Mapping[str, object] | None = None, environ: Mapping[str, str] = os.environ, config: Path | None = None
) -> Settings:
    """Settings by the order above. Refusal that names file and key when something does not fit.

    A child of a supervisor gets its parent's settings whole (`DAGWARD_SETTINGS`), so that both mean the same.
    """
    given = environ.get("DAGWARD_SETTINGS")
    if given and not overrides and config is None:
        return Settings.model_validate_json(given)
    file = config or config_file(environ)
    values: dict[str, object] = {"state_dir": default_state_dir(environ)}
    if file.exists():
        values |= _read(file)
    elif config is not None or environ.get("DAGWARD_CONFIG"):
        raise errors.Refusal(
            f"the configuration file {file} does not exist", hint="Correct --config or DAGWARD_CONFIG."
        )
    values |= {field: environ[name] for name, field in _ENVIRONMENT.items() if environ.get(name)}
    values |= {k: v for k, v in (overrides or {}).items() if v is not None}
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise errors.Refusal(
            f"setting {where}: {first['msg'].lower()}",
            hint=f"Correct it in {file}, in the environment or on the command line; `dagward config show` lists all.",
        ) from error
    return settings.model_copy(update={"state_dir": settings.state_dir.expanduser().absolute()})


def _read(file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise errors.Refusal(f"cannot read {file}: {error}", hint="Correct the file or DAGWARD_CONFIG.") from error
    except tomllib.TOMLDecodeError as error:
        raise errors.Refusal(
            f"{file}: {error}", hint="Correct the TOML; config/default.toml shows every key."
        ) from error
