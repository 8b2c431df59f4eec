"""What a command believes of its surroundings: the terminal, the state folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from scheduler import errors
from scheduler.cli.context import App, terminal_width
from scheduler.store import StoreConfig, connect


def test_a_terminal_that_says_it_has_no_columns_gets_a_readable_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terminals made by `script`, by containers and by CI often have no size."""
    monkeypatch.delenv("COLUMNS", raising=False)
    leader, follower = os.openpty()
    with os.fdopen(leader), os.fdopen(follower, "w") as terminal:
        assert os.get_terminal_size(terminal.fileno()).columns == 0
        monkeypatch.setattr(sys, "stdout", terminal)
        monkeypatch.setattr(sys, "__stdout__", terminal)
        assert terminal_width() == 80
        monkeypatch.setenv("COLUMNS", "132")
        assert terminal_width() == 132


def test_a_state_folder_is_private_also_beside_a_server_of_ones_own(tmp_path: Path) -> None:
    app = App({"state_dir": str(tmp_path / "state"), "redis_url": "unix:///nowhere"}, None)
    with app.server() as embedded:
        assert embedded is None
        assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("url", ["foo", "http://x", "redis://h:abc"])
def test_a_url_that_is_none_is_the_persons_mistake_not_a_defect(url: str) -> None:
    with pytest.raises(errors.Refusal) as refused:
        connect(StoreConfig(url))
    assert url not in refused.value.message, "it may hold a password"
    assert "redis://HOST:PORT" in refused.value.hint
