"""News by apprise, the optional extra `notify`: one URL for each place that is told.

A URL has tokens and passwords in it, so it is shown nowhere: people read which one it is and its scheme, and the state
has a name made of it, slowly enough that nobody guesses a password from it.
"""

import hashlib
import importlib.util
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

EXTRA = "notify"
LOGGERS = ("apprise", "urllib3")
"""They tell URLs."""


class NotifyError(Exception):
    """Nobody can be told, or was. `hint`: what a person can do."""

    def __init__(self, summary: str, hint: str = "") -> None:
        super().__init__(summary)
        self.hint = hint


@dataclass(frozen=True)
class Address:
    """Where news go. As text it is without its secrets: "json:// (address 2)"."""

    number: int
    url: str = field(repr=False)

    def __str__(self) -> str:
        scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]{0,15}(?=://)", self.url)
        return f"{scheme[0]}:// (address {self.number})" if scheme else f"address {self.number}"

    def name(self, fleet: str) -> str:
        """What the state calls it: sixteen digits, costly to compute, of the fleet and the URL."""
        salt = f"fleet notify {fleet}".encode()
        return hashlib.scrypt(self.url.encode(), salt=salt, n=2**14, r=8, p=1, dklen=8).hex()


class _Service(Protocol):
    """What of a service of apprise is used."""

    def notify(self, *, body: str, title: str, notify_type: object) -> bool: ...


def addresses(urls: Iterable[str]) -> tuple[Address, ...]:
    """The addresses of URLs, each once. Raises `NotifyError` without the extra, and for a URL that apprise does not
    know."""
    found = tuple(Address(number, url) for number, url in enumerate(dict.fromkeys(urls), start=1))
    if found and importlib.util.find_spec("apprise") is None:
        raise NotifyError(
            "news are sent by apprise, which is not installed",
            f"Install the extra, from a checkout: pip install '.[{EXTRA}]'",
        )
    for address in found:
        _service(address)
    return found


def send(address: Address, title: str, body: str, level: str = "info") -> None:
    """Tell one address. Blocks for some seconds where nobody answers. Raises `NotifyError`.

    `level`: "failure", "warning", "info" or "success".
    """
    import apprise  # noqa: PLC0415 - see below

    service = _service(address)
    kind = getattr(apprise.NotifyType, level.upper())
    try:
        is_told = service.notify(body=body, title=title, notify_type=kind)
    except Exception as error:  # noqa: BLE001 - a hundred services of others; what they say may hold the URL
        raise NotifyError(f"{address} was not told ({type(error).__name__})") from None
    if not is_told:
        raise NotifyError(f"{address} was not told: it cannot be reached, or refused")


def _service(address: Address) -> "_Service":
    """What sends to the address. apprise logs what it fails at, URL and all: nothing of that is let out."""
    import apprise  # noqa: PLC0415 - a quarter of a second, for those who ask for it

    for logger in map(logging.getLogger, LOGGERS):
        logger.propagate = False
        logger.handlers = [logging.NullHandler()]
    asset = apprise.AppriseAsset(storage_mode=apprise.PersistentStoreMode.MEMORY, storage_path=None)
    service = apprise.Apprise.instantiate(address.url, asset=asset, suppress_exceptions=True)
    if service is None:
        raise NotifyError(f"{address} is no URL that apprise knows", "See the list of its services for their URLs.")
    found: _Service = service
    return found
