"""The key under which secrets are marked. It lies beside the user's own settings: no part of any state or spec.

Operators who share the file tell each other's changes; with another key, or none, nothing is told and nothing changed.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "FLEET_SECRET_KEY_FILE"
KEY_BYTES = 32
MARK_DIGITS = 16
ID_DIGITS = 8


class SecretKeyError(Exception):
    """There is no key that can be used: why."""


@dataclass(frozen=True)
class SecretKey:
    """A key. It is never shown: not by `repr` either."""

    _key: bytes

    def __repr__(self) -> str:
        """For tracebacks."""
        return f"SecretKey({self.id})"

    @property
    def id(self) -> str:
        """Names the key without telling it."""
        return self._digest(b"fleet key id")[:ID_DIGITS]

    def mark(self, reference: str, value: str) -> str:
        """The mark of a value. Under another reference it is another one: equal secrets do not show as equal."""
        return self._digest(b"fleet secret\0" + reference.encode() + b"\0" + value.encode())[:MARK_DIGITS]

    def _digest(self, message: bytes) -> str:
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()


def key_file() -> Path:
    """Where the key is: $FLEET_SECRET_KEY_FILE, or secret.key among the user's settings of fleet."""
    named = os.environ.get(VARIABLE, "")
    if named:
        return Path(named).expanduser().absolute()
    settings = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    base = settings if settings.is_absolute() else _home() / ".config"
    return base / "fleet" / "secret.key"


def read_key() -> SecretKey:
    """The key. Raises `SecretKeyError` when there is none here, or what is there is none."""
    path = key_file()
    try:
        text = path.read_text(encoding="ascii").strip()
        raw = bytes.fromhex(text)
    except FileNotFoundError:
        raise SecretKeyError(f"there is no key here: {path}") from None
    except OSError as error:
        raise SecretKeyError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    except ValueError:
        raise SecretKeyError(f"{path} holds no key, which is {KEY_BYTES * 2} digits 0-9a-f") from None
    if len(raw) < KEY_BYTES:
        raise SecretKeyError(f"{path} holds no key, which is {KEY_BYTES * 2} digits 0-9a-f")
    return SecretKey(raw)


def made_key() -> SecretKey:
    """The key; made now where there is none yet. Raises `SecretKeyError`."""
    path = key_file()
    if not path.exists():
        try:
            _make(path)
        except OSError as error:
            raise SecretKeyError(f"no key can be made: {path}: {(error.strerror or str(error)).lower()}") from None
    return read_key()


def _make(path: Path) -> None:
    """Whole or not at all, and only one of several at once: whoever comes second takes what is there."""
    if VARIABLE not in os.environ and not _home().is_dir():  # a service's account without a home gets none
        raise FileNotFoundError(2, "there is no home folder", str(path))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(secrets.token_hex(KEY_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # neither HOME nor an entry in the user database
        return Path("/nonexistent")
