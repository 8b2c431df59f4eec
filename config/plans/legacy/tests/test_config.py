import os

import pytest

from billing.config import Config, ConfigError, read


@pytest.fixture
def settings(tmp_path):
    path = tmp_path / "billing.conf"
    path.write_text("# ours\ndue_days = 14  # two weeks\ndata=store\n")
    return str(path)


def test_file_then_defaults(settings):
    config = read(settings, {})
    assert config.number("due_days") == 14
    assert config.get("currency") == "EUR"
    assert config.get("nothing") is None
    assert config.get("nothing", "x") == "x"


def test_environment_wins(settings):
    assert read(settings, {"BILLING_DUE_DAYS": "7", "BILLING_CURRENCY": ""}).number("due_days") == 7


def test_data_folder_is_beside_the_file(settings, tmp_path):
    assert read(settings, {}).data_folder() == str(tmp_path / "store")


def test_template_is_none_unless_it_exists(tmp_path):
    config = Config({"templates": "mine"}, str(tmp_path))
    assert config.template("reminder") is None
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "reminder.txt").write_text("x")
    assert config.template("reminder") == os.path.join(str(tmp_path), "mine", "reminder.txt")
    assert Config({}, str(tmp_path)).template("reminder") is None


def test_says_what_is_wrong(tmp_path):
    with pytest.raises(ConfigError, match="no settings file"):
        read(str(tmp_path / "none"))
    bad = tmp_path / "bad.conf"
    bad.write_text("a = 1\nwhat\n")
    with pytest.raises(ConfigError) as caught:
        read(str(bad), {})
    assert str(caught.value) == "bad.conf:2: expected key = value"
    with pytest.raises(ConfigError, match="due_days must be a number, not 'soon'"):
        Config({"due_days": "soon"}, "").number("due_days")
