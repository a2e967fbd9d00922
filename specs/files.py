"""The files of a spec: the main one and what it includes, merged into one tree."""

import glob
from itertools import islice
from pathlib import Path

from specs.diagnostics import Diagnostic, Place, did_you_mean, listing
from specs.model import Spec
from specs.problems import found
from specs.scalars import is_text
from specs.source import Unusable
from specs.tree import Entry, Mapping, Scalar, Sequence, Tree
from specs.yaml_tree import Reader

MAX_FILES = 2000
MAX_INCLUDE_DEPTH = 16

KEYS = ("include", *Spec.model_fields)

RECORDS = ("images", "state", "retain", "checks")
"""Sections that are one value, not objects by name: written in one file, whole."""


class Files:
    """Reads a main file and all it includes.

    `tree` is the merged content and `order` the files, the main one first. `complete` is false when a file could not
    be used: then a name that is not defined may well be defined there.
    """

    def __init__(self, main: Path, faults: list[Diagnostic]) -> None:
        self.faults = faults
        self.order: list[Path] = []
        self.complete = True
        self.tree = Mapping(Place(main))
        self._reader = Reader(faults)
        self._seen: set[Path] = set()
        self._read(main, (), Place(main))

    def _read(self, path: Path, parents: tuple[Path, ...], asked: Place) -> None:
        """Read one file, which `asked` includes; `parents` are the files that are being read around it."""
        identity = _identity(path)
        if identity in parents:
            self._fault(asked, f"{path} includes itself", "The files would have no end.", "narrow the pattern")
            return
        if identity in self._seen:  # two patterns may match one file
            return
        self._seen.add(identity)
        self.order.append(path)
        try:
            tree = self._reader.read(path)
        except Unusable as unusable:
            self.faults.append(unusable.diagnostic)
            self.complete = False
            return
        self._merge(tree)
        self._include(tree, path, (*parents, identity))

    def _include(self, tree: Mapping, path: Path, parents: tuple[Path, ...]) -> None:
        if "include" not in tree.entries:
            return
        patterns = tree.entries["include"].value
        if not isinstance(patterns, Sequence):
            self._fault(patterns.place, f"include: wants a list, found {found(patterns)}", hint="write [lanes/*.yaml]")
            self.complete = False
            return
        for pattern in patterns.items:
            for included in self._matches(pattern, path.parent, parents):
                self._read(included, parents, pattern.place)

    def _matches(self, pattern: Tree, folder: Path, parents: tuple[Path, ...]) -> list[Path]:
        """Return the files a pattern matches, sorted; nothing after a fault."""
        summary, detail = "", ""
        if not isinstance(pattern, Scalar) or not pattern.text or (pattern.plain and not is_text(pattern.text)):
            summary = f"include: wants a file or a pattern such as lanes/*.yaml, found {found(pattern)}"
        elif pattern.text.startswith(("/", "~")):
            summary, detail = "include: an absolute path", "A spec must mean the same wherever it is checked out."
        elif len(parents) >= MAX_INCLUDE_DEPTH:
            summary = f"include: more than {MAX_INCLUDE_DEPTH} files deep"
        else:
            # Not Path.glob: that would match hidden files, such as what an editor leaves.
            found_names = glob.iglob(pattern.text, root_dir=folder, recursive=True)  # noqa: PTH207
            names = sorted(islice(found_names, MAX_FILES + 1))
            if names and len(names) + len(self.order) <= MAX_FILES:
                return [folder / name for name in names]
            many = f"include: more than {MAX_FILES} files"
            summary = many if names else f"include: no file matches '{pattern.text[:80]}'"
            detail = "" if names else f"It is looked for in {folder.absolute()}, the folder of this file."
        self._fault(pattern.place, summary, detail)
        self.complete = False
        return []

    def _merge(self, tree: Mapping) -> None:
        for key, entry in tree.entries.items():
            if key not in KEYS:
                detail = f"The keys here are {listing(KEYS)}."
                self._fault(entry.place, f"unknown key '{key[:80]}'", detail, did_you_mean(key, KEYS))
            elif key == "fleet":
                self._merge_fleet(entry)
            elif key in RECORDS:
                self._merge_record(key, entry)
            elif key != "include":
                self._merge_section(key, entry)

    def _merge_fleet(self, entry: Entry) -> None:
        first = self.tree.entries.setdefault("fleet", entry)
        texts = [e.value.text for e in (first, entry) if isinstance(e.value, Scalar)]
        if len(set(texts)) > 1:
            detail = f"It is '{texts[0][:80]}' at {first.place}. One spec describes one fleet."
            self._fault(entry.value.place, "fleet: another name than before", detail, "set it in the main file only")

    def _merge_record(self, key: str, entry: Entry) -> None:
        first = self.tree.entries.setdefault(key, entry)
        if first is not entry:
            detail = f"It is first defined at {first.place}. Settings of one fleet stand in one file."
            self._fault(entry.place, f"{key} is defined twice", detail, "put them together, into either file")

    def _merge_section(self, key: str, entry: Entry) -> None:
        """Add a section of a file to what the files before said. A section of the wrong type is a fault."""
        value = entry.value
        if key == "placements" and isinstance(value, Sequence):
            section = self._section(key, entry, Sequence(value.place))
            if isinstance(section, Sequence):
                section.items.extend(value.items)
        elif key != "placements" and isinstance(value, Mapping):
            section = self._section(key, entry, Mapping(value.place))
            if isinstance(section, Mapping):
                self._define(key, section, value)
        else:
            wants, empty = ("a list", "[]") if key == "placements" else ("a mapping", "{}")
            hint = f"write {empty} for none" if found(value) == "nothing" else ""
            self._fault(value.place, f"{key}: wants {wants}, found {found(value)}", hint=hint)

    def _section(self, key: str, entry: Entry, empty: Tree) -> Tree:
        return self.tree.entries.setdefault(key, Entry(entry.place, empty)).value

    def _define(self, key: str, section: Mapping, more: Mapping) -> None:
        for name, entry in more.entries.items():
            first = section.entries.setdefault(name, entry)
            if first is not entry:
                detail = f"It is first defined at {first.place}."
                self._fault(entry.place, f"{key}.{name} is defined twice", detail, "rename or remove one")

    def _fault(self, place: Place, summary: str, detail: str = "", hint: str = "") -> None:
        self.faults.append(Diagnostic.at(place, summary, detail, hint))


def _identity(path: Path) -> Path:
    """Return the path without symlinks, by which a file is known again."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):  # a path no file can have, or a loop: reading it will say so
        return path
