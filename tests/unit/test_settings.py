"""Where settings come from, in which order, and what a wrong one says."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler import errors, settings


def load(
    tmp_path: Path, text: str | None = None, environ: dict[str, str] | None = None, **over: object
) -> settings.Settings:
    env = {"XDG_STATE_HOME": str(tmp_path / "s"), "XDG_CONFIG_HOME": str(tmp_path / "c"), **(environ or {})}
    if text is not None:
        file = tmp_path / "c" / "dagward" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return settings.load(over, env)


def test_defaults(tmp_path: Path) -> None:
    got = load(tmp_path)
    assert got.state_dir == tmp_path / "s" / "dagward"
    assert got.embedded
    assert got.limits == {"default": 1000, "llm": 8, "system": 1}


def test_the_order_is_command_line_environment_file(tmp_path: Path) -> None:
    text = 'lease = 1000\ngrace = 1\nlog_level = "error"\n[pools.gpu]\nlimit = 3\n'
    got = load(tmp_path, text, {"DAGWARD_LEASE": "2000", "DAGWARD_GRACE": "2"}, grace=3)
    assert (got.lease, got.grace, got.log_level) == (2000, 3, "error")
    assert got.limits["gpu"] == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lease = 'x'\n", "setting lease: input should be a valid integer"),
        ("leese = 1\n", "setting leese: extra inputs are not permitted"),
        ("[pools.a]\nlimit = 0\n", "setting pools.a.limit: input should be greater than or equal to 1"),
        ("lease = \n", "config.toml: Invalid value"),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(errors.Refusal) as caught:
        load(tmp_path, text)
    assert words in caught.value.message


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(errors.Refusal, match="does not exist"):
        load(tmp_path, environ={"DAGWARD_CONFIG": str(tmp_path / "no.toml")})


def test_the_shipped_default_file_says_the_defaults(tmp_path: Path) -> None:
    shipped = Path(__file__).parents[2] / "config" / "default.toml"
    env = {"XDG_STATE_HOME": str(tmp_path)}
    got, plain = settings.load({}, env, shipped), settings.load({}, env)
    assert got.model_dump(exclude={"pools"}) == plain.model_dump(exclude={"pools"})
    assert got.limits == plain.limits
    text = shipped.read_text()
    for key in settings.Settings.model_fields:
        assert key in text, f"config/default.toml does not show {key}"


def test_a_password_is_never_shown(tmp_path: Path) -> None:
    got = load(tmp_path, environ={"REDIS_URL": "redis://me:s3cret@localhost:1234/0"})
    assert "s3cret" not in str(got.public())
    assert got.store_config().public_url == "redis://***@localhost:1234/0"
