"""The loader of the Lua scripts: named inputs, headers, and key names that agree with the prelude."""

from __future__ import annotations

import re
from importlib import resources

import pytest
import redis

from scheduler import scripts
from scheduler.store.keys import Keys


@pytest.mark.parametrize("name", scripts.names())
def test_every_script_says_its_inputs_and_uses_them(name: str) -> None:
    script = scripts.load(name)
    body = script.source[len(scripts.prelude()) :]
    for given in script.inputs:
        used = len(re.findall(rf"\b{given}\b", body))
        assert used >= 2, f"{name} does not use {given}"


@pytest.mark.parametrize("name", scripts.names())
def test_no_script_scans_or_lists_keys(name: str) -> None:
    source = scripts.load(name).source
    assert not re.search(r"'(KEYS|SCAN|HSCAN|SSCAN|ZSCAN|FLUSHALL|FLUSHDB)'", source)


@pytest.mark.parametrize("name", scripts.names())
def test_each_script_says_what_it_is_for(name: str) -> None:
    file = resources.files("scheduler").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")
    said = file.splitlines()[0]
    assert said.startswith("-- ")
    assert not said.startswith(("-- KEYS", "-- ARGV"))
    assert len(said) > 30


def test_wrong_names_are_refused_before_anything_is_sent() -> None:
    client = redis.Redis(unix_socket_path="/nonexistent")
    with pytest.raises(TypeError, match="renew takes session, lease; wrong or missing: lease"):
        scripts.load("renew").call(client, "r", {"session": "s"})
    with pytest.raises(TypeError, match="wrong or missing: more"):
        scripts.load("renew").call(client, "r", {"session": "s", "lease": 1, "more": 1})


def test_a_script_without_a_header_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "_read", lambda _: "return 1")
    scripts.load.cache_clear()
    with pytest.raises(ValueError, match="lacks its KEYS or ARGV header"):
        scripts.load("renew")
    scripts.load.cache_clear()


def test_the_prelude_and_keys_py_spell_the_same_names() -> None:
    """Each key function of the prelude has a namesake in Keys with the same prefix."""
    prelude = scripts.prelude()
    keys = Keys("x")
    pairs = {
        "p:": keys.plan("P"),
        "t:": keys.row("P", "T"),
        "o:": keys.order("P"),
        "e:": keys.events("P"),
        "lv:": keys.live("P"),
        "r:": keys.ready("q", "P"),
        "ev:": keys.evidence("P", "T", 1),
        "res:": keys.results("P", "T"),
        "x:": keys.executor("S"),
        "xh:": keys.held("S"),
        "in:": keys.inbox("S"),
        "idle:": keys.idle("q", ""),
        "sess": keys.sessions(),
        "lost": keys.lapsed(),
        "disp": keys.dispatch(),
        "later": keys.later(),
        "pools": keys.limits(),
        "used": keys.used(),
        "bell": keys.bell(),
        "active": keys.active(),
        "dirty": keys.dirty(),
    }
    for word, key in pairs.items():
        assert key.startswith(f"{keys.root}{word}"), key
        assert f"R .. '{word}'" in prelude, f"the prelude does not know {word}"
