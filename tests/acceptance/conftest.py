"""One served scene for each module that asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.command import Scene, scene


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A served state folder, shared by the tests of one module."""
    folder = tmp_path_factory.mktemp("served") / "state"
    folder.mkdir(mode=0o700)
    with scene(folder) as made:
        yield made
