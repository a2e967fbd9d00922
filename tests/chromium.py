"""A real Chromium for tests of pages: the system's own, or Debian's package, installed once where we may."""

import shutil

import pytest

from tests.lab import packages
from tests.lab.cache import locked

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def program() -> str:
    """Where Chromium is. Skips the test where it is not there and cannot be installed, saying why."""
    if found := _found():
        return found
    if reason := packages.unsupported():
        pytest.skip(f"there is no Chromium here, and it cannot be installed: {reason}")
    with locked("packages"):
        if not _found():
            packages.install(["chromium"])
    found = _found()
    assert found is not None, "chromium was installed and is not there"
    return found


def _found() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)
