"""The embedded server: shared by lock, last one out stops it, healed when killed, private, nothing lost."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import pytest

from scheduler import errors
from scheduler.embedded import Embedded, socket_path
from scheduler.store import StoreConfig, connect, open_store, preflight
from scheduler.store.keys import Keys
from tests.conftest import wait_until


def test_the_last_one_out_stops_it(state: Path) -> None:
    one, two = Embedded(state), Embedded(state)
    one.join()
    pid = one.pid()
    two.join()
    assert two.pid() == pid
    one.leave()
    assert two.pid() == pid
    two.leave()
    assert two.pid() is None


def test_a_killed_server_is_started_again_with_everything(state: Path) -> None:
    embedded = Embedded(state)
    embedded.join()
    try:
        client = connect(StoreConfig(embedded.url))
        for n in range(100):
            client.set(f"k{n}", n)
        pid = embedded.pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: embedded.pid() is None, "the server to die")
        assert embedded.ensure() is True
        assert embedded.ensure() is False
        assert client.dbsize() == 100
    finally:
        embedded.leave()


def test_it_is_private(state: Path) -> None:
    embedded = Embedded(state)
    embedded.join()
    try:
        path = socket_path(state)
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        client = connect(StoreConfig(embedded.url))
        assert client.config_get("port")["port"] == "0"
        assert preflight(client, StoreConfig(embedded.url)) == []
    finally:
        embedded.leave()


def test_a_long_state_folder_gets_a_short_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    deep = tmp_path / ("x" * 120)
    assert str(socket_path(deep)).startswith(str(runtime))
    assert len(str(socket_path(deep).name)) < 100


def test_an_emptied_or_other_store_is_refused(state: Path) -> None:
    embedded = Embedded(state)
    embedded.join()
    try:
        client = connect(StoreConfig(embedded.url))
        keys, file = Keys("main"), state / "epochs" / "e"
        epoch = open_store(client, keys, file)
        assert open_store(client, keys, file) == epoch
        client.hset(keys.meta(), "epoch", "another")
        with pytest.raises(errors.EpochMismatch, match="has epoch another"):
            open_store(client, keys, file)
        client.flushall()
        with pytest.raises(errors.EpochMismatch, match="is empty"):
            open_store(client, keys, file)
        assert client.dbsize() == 0
        client.hset(keys.meta(), mapping={"format": "999", "epoch": epoch})
        with pytest.raises(errors.FormatMismatch, match="format 999"):
            open_store(client, keys, file)
    finally:
        embedded.leave()


def test_a_server_that_loses_writes_is_refused(state: Path) -> None:
    embedded = Embedded(state)
    embedded.join()
    try:
        config = StoreConfig(embedded.url)
        client = connect(config)
        client.config_set("appendfsync", "everysec")
        assert "power cut" in preflight(client, config)[0]
        client.config_set("appendonly", "no")
        with pytest.raises(errors.StoreRefused, match="no append-only file"):
            preflight(client, config)
        assert "loses every plan" in preflight(client, StoreConfig(embedded.url, allow_volatile=True))[0]
        client.config_set("maxmemory-policy", "allkeys-lru")
        with pytest.raises(errors.StoreRefused, match="evicts"):
            preflight(client, config)
    finally:
        embedded.leave()


def test_no_server_at_the_url_says_so(tmp_path: Path) -> None:
    config = StoreConfig(f"unix://{tmp_path}/none.sock")
    with pytest.raises(errors.StoreUnavailable, match="no server answers"):
        preflight(connect(config, patient=False, timeout=1), config)
