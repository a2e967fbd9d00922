"""The key of the marks: made once, for the user alone, and never shown."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reconciler.execution.secret_key import SecretKeyError, key_file, made_key, read_key


def test_reading_makes_none(own_secret_key: Path) -> None:
    with pytest.raises(SecretKeyError, match="there is no key here"):
        read_key()
    assert not own_secret_key.exists()


def test_it_is_made_at_first_use_for_the_user_alone(own_secret_key: Path) -> None:
    made = made_key()
    assert made == made_key() == read_key()
    assert 0o600 == stat.S_IMODE(own_secret_key.stat().st_mode)
    assert 0o700 == stat.S_IMODE(own_secret_key.parent.stat().st_mode)
    assert [own_secret_key] == list(own_secret_key.parent.iterdir())


def test_of_several_at_once_one_makes_it(own_secret_key: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda _: made_key(), range(16)))
    assert {read_key().id} == {key.id for key in keys}


def test_marks_are_of_key_reference_and_value(own_secret_key: Path) -> None:
    key = made_key()
    own_secret_key.unlink()
    other = made_key()
    marks = [key.mark("env:A", "x"), key.mark("env:B", "x"), key.mark("env:A", "y"), other.mark("env:A", "x")]
    assert 4 == len({*marks})
    assert key.mark("env:A", "x") == marks[0]
    assert {16} == {len(mark) for mark in marks}
    assert key.id != other.id


def test_it_shows_in_no_repr(own_secret_key: Path) -> None:
    key = made_key()
    text = own_secret_key.read_text().strip()
    assert f"SecretKey({key.id})" == repr(key)
    assert key.id not in text
    assert text not in f"{vars(key)!s}"


@pytest.mark.parametrize("content", [b"", b"not hex", b"abcd", b"\xff"])
def test_what_is_no_key_is_not_used_and_not_overwritten(content: bytes, own_secret_key: Path) -> None:
    own_secret_key.parent.mkdir()
    own_secret_key.write_bytes(content)
    with pytest.raises(SecretKeyError, match="holds no key"):
        made_key()
    assert content == own_secret_key.read_bytes()


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert tmp_path / "settings/secret.key" == key_file()
    monkeypatch.delenv("FLEET_SECRET_KEY_FILE")
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tmp_path / ".config/fleet/secret.key" == key_file()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    assert tmp_path / "own/fleet/secret.key" == key_file()


def test_an_account_without_a_home_gets_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FLEET_SECRET_KEY_FILE")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    with pytest.raises(SecretKeyError, match=r"no key can be made: .*: there is no home folder"):
        made_key()
    assert not (tmp_path / "nobody").exists()


def test_a_place_that_cannot_be_written_gives_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLEET_SECRET_KEY_FILE", str(tmp_path / "file" / "secret.key"))
    with pytest.raises(SecretKeyError):
        made_key()
