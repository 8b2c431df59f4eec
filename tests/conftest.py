"""Shared by all floors: a real server on a unix socket, waiting for predicates, a check for leftovers."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scheduler.embedded import Embedded
from scheduler.lifecycle import Timing
from scheduler.store import Store, StoreConfig, Views, connect
from scheduler.store.keys import Keys

if TYPE_CHECKING:
    from tests.run_kit import Place


def wait_until(predicate: Callable[[], object], what: str, seconds: float = 20.0) -> None:
    """Poll until `predicate` holds; fail with `what` otherwise."""
    end = time.monotonic() + seconds
    while not predicate():
        if time.monotonic() > end:
            pytest.fail(f"waited {seconds} s for: {what}")
        time.sleep(0.005)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """One embedded server for the whole session of this process."""
    embedded = Embedded(tmp_path_factory.mktemp("state", numbered=True))
    embedded.join()
    yield embedded
    embedded.leave()


_names = itertools.count()


@pytest.fixture
def keys() -> Keys:
    """An installation of its own for each test."""
    return Keys(f"t{os.getpid()}-{next(_names)}")


@pytest.fixture
def store(server: Embedded, keys: Keys) -> Iterator[Store]:
    """A store with short leases over the session's server."""
    client = connect(StoreConfig(server.url))
    store = Store(client, keys, Timing(lease=1_000, dispatch=1_000))
    store.set_limits({"default": 1000, "llm": 1000, "system": 1000})
    yield store
    client.close()


@pytest.fixture
def views(store: Store) -> Views:
    """The reading side of the same store."""
    return Views(store.client, store.keys)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A private state folder."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A folder in which real commands run; a process that is left behind fails the test."""
    from tests import run_kit

    yield from run_kit.place(tmp_path)
