"""Text of spec files: read with a bound, decoded with a position for every fault."""

import codecs
import os
import re
from pathlib import Path

from specs.diagnostics import Diagnostic, Place

MAX_FILE_BYTES = 4 * 2**20

_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


class Unusable(Exception):  # noqa: N818 - it says what became of a file, and never leaves this package
    """Reading a file cannot go on; holds the one diagnostic that says why."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic)
        self.diagnostic = diagnostic


def read_text(path: Path) -> str:
    """Return the text of a file, without a byte order mark.

    Raises Unusable when the file cannot be read, is over 4 MiB, is not UTF-8 or holds control characters.
    """
    data = _read_bytes(path)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise _unusable(Place(path), "the file is UTF-16", "A spec is UTF-8 text.", "save it as UTF-8")
    text = _decode(data.removeprefix(codecs.BOM_UTF8), path)
    if match := _FORBIDDEN.search(text):
        summary = f"the file holds the control character U+{ord(match[0]):04X}"
        raise _unusable(_place(path, text[: match.start()]), summary, hint='write it as an escape in "double quotes"')
    return text


def _read_bytes(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise _unusable(_whole(path), "is a folder, not a file", hint="name the main file, for example fleet.yaml")
        # A pipe or a device could block or never end.
        if path.exists() and not path.is_file():
            raise _unusable(_whole(path), "is not a regular file")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise _too_large(path)
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno).lower() if isinstance(error, OSError) and error.errno else str(error)
        raise _unusable(_whole(path), f"the file cannot be read: {reason}") from None
    if len(data) > MAX_FILE_BYTES:
        raise _too_large(path)
    return data


def _decode(data: bytes, path: Path) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        place = _place(path, data[: error.start].decode())
        summary = f"the byte 0x{data[error.start]:02X} is not UTF-8"
        raise _unusable(place, summary, "A spec is UTF-8 text.", "save the file as UTF-8") from None


def _whole(path: Path) -> Place:
    return Place(path, 0, 0)


def _place(path: Path, before: str) -> Place:
    return Place(path, before.count("\n") + 1, len(before) - before.rfind("\n"))


def _too_large(path: Path) -> Unusable:
    detail = f"A file of a spec has at most {MAX_FILE_BYTES // 2**20} MiB."
    return _unusable(Place(path), "the file is too large", detail, "split it and `include` the parts")


def _unusable(place: Place, summary: str, detail: str = "", hint: str = "") -> Unusable:
    return Unusable(Diagnostic.at(place, summary, detail, hint))
