"""News by apprise, to a server of the test: what is sent, and that a URL shows nowhere."""

import logging
from collections.abc import Iterator

import pytest

from reconciler.notify import NotifyError, addresses, send
from tests.inbox import POISON, Inbox, opened


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with opened() as server:
        yield server


def test_what_is_sent_arrives(inbox: Inbox) -> None:
    (address,) = addresses([inbox.url])
    send(address, "fleet lab: 1 finding", "<b> & ünïcode\nsecond line", "failure")
    (message,) = inbox.messages
    assert "failure" == message["type"]
    assert ("fleet lab: 1 finding", "<b> & ünïcode\nsecond line") == (message["title"], message["message"])


@pytest.mark.parametrize("status", [401, 500])
def test_a_refusal_is_told_without_the_url(
    inbox: Inbox, status: int, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    inbox.status = status
    (address,) = addresses([inbox.url])
    with caplog.at_level(logging.DEBUG), pytest.raises(NotifyError) as error:
        send(address, "title", "body")
    assert "json:// (address 1) was not told: it cannot be reached, or refused" == str(error.value)
    said = capfd.readouterr()
    assert POISON not in f"{error.value!r}{address!r}{address}{caplog.text}{said.out}{said.err}"


def test_nobody_who_answers_is_told_apart_from_nothing() -> None:
    (address,) = addresses([f"json://{POISON}@127.0.0.1:1/"])
    with pytest.raises(NotifyError, match="cannot be reached"):
        send(address, "title", "body")


@pytest.mark.parametrize(
    ("url", "shown"), [(f"nope://{POISON}", "nope:// (address 2)"), (POISON, "address 2"), ("", "address 2")]
)
def test_a_url_of_no_service_is_refused_at_once_and_not_shown(url: str, shown: str) -> None:
    with pytest.raises(NotifyError) as error:
        addresses(["json://localhost", url])
    assert f"{shown} is no URL that apprise knows" == str(error.value)


def test_without_the_extra_its_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert () == addresses([])
    with pytest.raises(NotifyError) as error:
        addresses(["json://localhost"])
    assert "Install the extra, from a checkout: pip install '.[notify]'" == error.value.hint


def test_the_name_in_the_state_is_of_fleet_and_url_and_shows_neither() -> None:
    one, other = addresses([f"json://{POISON}", f"json://{POISON}/other", f"json://{POISON}"])
    assert 3 == len({one.name("lab"), other.name("lab"), one.name("den")})
    assert 16 == len(one.name("lab"))
