"""The images of lanes as they are written, pinned or not, and another text put in their place.

For what makes a spec valid: a lane whose image is a bare tag does not load.
"""

import codecs
import re
from dataclasses import dataclass
from pathlib import Path

from specs.diagnostics import Diagnostic, Place, SpecErrors
from specs.files import Files
from specs.scalars import is_text
from specs.tree import Scalar, select

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_ANCHOR = re.compile(r"&[^\s,\[\]{}]+[ \t]+")


@dataclass(frozen=True, slots=True)
class ImageText:
    """What a lane's `image` says, and where it stands."""

    text: str
    place: Place


def image_texts(path: Path) -> dict[str, ImageText]:
    """Return what is written as the image of each lane, by lane; lanes without a text there are left out.

    Raises SpecErrors when a file cannot be read as YAML; whether the spec is valid is not looked at.
    """
    faults: list[Diagnostic] = []
    files = Files(Path(path), faults)
    if not files.complete:
        raise SpecErrors(faults)
    found = {}
    for loc, entry in select(files.tree, "lanes", "*", "image"):
        value = entry.value
        if isinstance(value, Scalar) and value.text and not (value.plain and not is_text(value.text)):
            found[str(loc[1])] = ImageText(value.text, value.place)
    return found


def rewritten(data: bytes, old: ImageText, new: str) -> bytes:
    """Return a file's bytes with the text at its place replaced, all others as they are, its quotes among them.

    Raises SpecErrors when the text does not stand there as it is: written over several lines, or with escapes.
    """
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    text = data[len(mark) :].decode()
    begin = _offset(text, old.place)
    anchor = _ANCHOR.match(text, begin)
    begin = anchor.end() if anchor else begin
    quote = text[begin : begin + 1] if text[begin : begin + 1] in {"'", '"'} else ""
    begin += len(quote)
    end = begin + len(old.text)
    if text[begin:end] != old.text or not text[end:].startswith(quote):
        detail = "Only a text on one line, plain or in quotes without escapes, is replaced."
        raise SpecErrors(
            [Diagnostic.at(old.place, "the image cannot be replaced here", detail, f"write {new} yourself")]
        )
    return mark + f"{text[:begin]}{new}{text[end:]}".encode()


def _offset(text: str, place: Place) -> int:
    """Return where a place is, in characters from the beginning."""
    lines = [0, *(found.end() for found in _BREAK.finditer(text))]
    return lines[min(place.line, len(lines)) - 1] + place.column - 1
