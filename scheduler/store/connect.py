"""Opening a server: patient and impatient connections, what it must promise, which installation it is.

Must not start a server (that is `embedded`) and must not know what is stored.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

from scheduler import errors
from scheduler.store.keys import STORE_FORMAT, Keys

PATIENT_TRIES = 120
OLDEST_SERVER = (7, 0)


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """Where the store is. `url` may carry a password: it is never logged, see `public_url`."""

    url: str
    name: str = "main"
    allow_volatile: bool = False

    @property
    def public_url(self) -> str:
        """The URL without its password."""
        parts = urlsplit(self.url)
        if parts.password is None:
            return self.url
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
        return parts._replace(netloc=f"***@{host}{port}").geturl()


def _retry(patient: bool) -> Retry:
    tries = PATIENT_TRIES if patient else 0
    return Retry(
        ExponentialBackoff(cap=1.0, base=0.02),
        tries,
        supported_errors=(redis.exceptions.ConnectionError, redis.exceptions.TimeoutError),
    )


_URL_FORMS = "Write redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH/TO/SOCKET as --redis or REDIS_URL."


def connect(config: StoreConfig, *, patient: bool = True, timeout: float | None = None) -> redis.Redis:
    """A client. Patient ones outlive an outage of about two minutes; impatient ones fail within `timeout` seconds.

    Nothing is sent yet.
    """
    try:
        return redis.Redis.from_url(
            config.url,
            decode_responses=True,
            retry=_retry(patient),
            socket_timeout=timeout,
            socket_connect_timeout=timeout or 5.0,
            health_check_interval=0,
            protocol=2,
        )
    except ValueError:
        raise errors.Refusal("the URL of the server has a form that is not known", hint=_URL_FORMS) from None


def rq_connection(config: StoreConfig) -> redis.Redis:
    """A patient client as RQ wants it: raw bytes, no read timeout of ours."""
    return redis.Redis.from_url(config.url, retry=_retry(True), protocol=2)


def ask(client: redis.Redis, config: StoreConfig) -> None:
    """Raise StoreUnavailable, with the next step, when the server does not answer."""
    try:
        client.ping()
    except redis.exceptions.AuthenticationError as error:
        raise errors.StoreUnavailable(f"the server at {config.public_url} refuses the password") from error
    except redis.exceptions.RedisError as error:
        raise errors.StoreUnavailable(f"no server answers at {config.public_url}: {error}") from error


def preflight(client: redis.Redis, config: StoreConfig) -> list[str]:
    """Refuse a server that loses acknowledged writes; return warnings for one that may lose a second of them."""
    ask(client, config)
    info = client.info("server")
    version = str(info.get("valkey_version") or info.get("redis_version"))
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_SERVER:
        raise errors.StoreRefused(f"the server is version {version}; 7.0 or newer is needed")
    warnings: list[str] = []
    try:
        settings = {**client.config_get("append*"), **client.config_get("maxmemory-policy")}
    except redis.exceptions.ResponseError:
        return ["the server hides its configuration; make sure that it has `appendonly yes` and `noeviction`"]
    if settings.get("maxmemory-policy", "noeviction") != "noeviction":
        policy = settings["maxmemory-policy"]
        raise errors.StoreRefused(f"the server evicts keys when memory is short (maxmemory-policy {policy})")
    if settings.get("appendonly") != "yes":
        if not config.allow_volatile:
            raise errors.StoreRefused(
                "the server keeps no append-only file, so a restart would lose what it acknowledged",
                hint="Set `appendonly yes` on the server, or accept the loss with --allow-volatile.",
            )
        warnings.append("the server keeps no append-only file: a restart loses every plan (--allow-volatile)")
    elif settings.get("appendfsync") != "always":
        warnings.append(f"appendfsync is {settings.get('appendfsync')}: a power cut may lose the last second")
    return warnings


def open_store(client: redis.Redis, keys: Keys, epoch_file: Path) -> str:
    """Create or recognise the installation. Returns its epoch.

    A state folder remembers the epoch of its store: an empty or other store is refused, never taken for a new one.
    """
    meta = {str(k): str(v) for k, v in client.hgetall(keys.meta()).items()}
    known = epoch_file.read_text(encoding="utf-8").strip() if epoch_file.exists() else None
    if not meta:
        if known is not None:
            raise errors.EpochMismatch(f"the store is empty, but this state folder knows it as epoch {known}")
        with client.pipeline(transaction=True) as pipe:
            pipe.hsetnx(keys.meta(), "format", STORE_FORMAT)
            pipe.hsetnx(keys.meta(), "epoch", secrets.token_hex(8))
            pipe.execute()
        meta = {str(k): str(v) for k, v in client.hgetall(keys.meta()).items()}
    if meta.get("format") != STORE_FORMAT:
        raise errors.FormatMismatch(f"the store has format {meta.get('format')}, this dagward writes {STORE_FORMAT}")
    epoch = meta["epoch"]
    if known is None:
        _remember(epoch_file, epoch)
    elif known != epoch:
        raise errors.EpochMismatch(f"the store has epoch {epoch}, this state folder knows epoch {known}")
    return epoch


def _remember(file: Path, epoch: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = file.with_suffix(f".{os.getpid()}")
    temporary.write_text(epoch + "\n", encoding="utf-8")
    temporary.replace(file)
