"""YAML text to a tree, from the parser's events: bounded, positioned, and without YAML's traps.

Events, not PyYAML's composer: the composer recurses without a bound, and it drops duplicate keys.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from specs.diagnostics import Diagnostic, Place
from specs.scalars import is_text
from specs.source import Unusable, read_text
from specs.tree import Entry, Mapping, Scalar, Sequence, Tree

MAX_DEPTH = 64
MAX_VALUES = 500_000  # keys and values of all files, aliases written out: a fleet of many thousand nodes

# libyaml's parser is about ten times faster; both yield the same events.
_Parser: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Reader:
    """Reads the files of one spec; the bound on values holds for all of them together.

    Faults that leave the rest of a file readable go to `faults`.
    """

    def __init__(self, faults: list[Diagnostic]) -> None:
        self.faults = faults
        self.values_left = MAX_VALUES

    def read(self, path: Path) -> Mapping:
        """Return what the file says. Raises Unusable when it says nothing that can be used."""
        tree = _Build(path, self).tree_of(read_text(path))
        if tree is None:
            raise _fatal(Place(path), "the file is empty", "A spec starts with `fleet: NAME`.")
        if not isinstance(tree, Mapping):
            kind = "a list" if isinstance(tree, Sequence) else "text"
            raise _fatal(tree.place, f"a spec is a mapping, found {kind}", "A spec starts with `fleet: NAME`.")
        return tree


class _Frame:
    """A list or mapping that is still open."""

    __slots__ = ("anchor", "key", "tree")

    def __init__(self, tree: Sequence | Mapping, anchor: str | None) -> None:
        self.tree, self.anchor = tree, anchor
        self.key: tuple[Place, str | None] | None = None  # of a mapping: the key that waits for its value


class _Build:
    """Builds the tree of one file from its events."""

    def __init__(self, path: Path, reader: Reader) -> None:
        self.path, self.reader = path, reader
        self.root: Tree | None = None
        self.documents = 0
        self.stack: list[_Frame] = []
        self.anchors: dict[str, Tree | None] = {}  # None: still open

    def tree_of(self, text: str) -> Tree | None:
        try:
            for event in yaml.parse(text, Loader=_Parser):
                handle = _HANDLERS.get(type(event))
                if handle is not None:
                    handle(self, event)
        except yaml.MarkedYAMLError as error:
            raise _not_yaml(self.path, text, error) from None
        except (yaml.YAMLError, ValueError) as error:
            raise _fatal(Place(self.path), f"not valid YAML: {error}") from None
        return self.root

    def on_document(self, event: yaml.DocumentStartEvent) -> None:
        self.documents += 1
        if self.documents > 1:
            raise _fatal(
                self._place(event),
                "a second document starts here",
                "A file of a spec holds one YAML document.",
                "put it in a file of its own and `include` that",
            )

    def on_scalar(self, event: yaml.ScalarEvent) -> None:
        self._check_tag(event)
        place = self._place(event)
        text = event.value
        if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
            raise _fatal(place, "the text holds half of a surrogate pair", hint="write the character itself")
        if "\0" in text:
            self._fault(place, "the text holds a NUL character", "No path, argument or variable can hold one.")
            text = text.replace("\0", "")
        self._add(self._anchored(event, Scalar(place, text, not event.style)))

    def on_sequence(self, event: yaml.SequenceStartEvent) -> None:
        self._open(event, Sequence(self._place(event)))

    def on_mapping(self, event: yaml.MappingStartEvent) -> None:
        self._open(event, Mapping(self._place(event)))

    def on_end(self, _event: yaml.CollectionEndEvent) -> None:
        frame = self.stack.pop()
        if frame.anchor is not None:
            self.anchors[frame.anchor] = frame.tree
        self._add(frame.tree)

    def on_alias(self, event: yaml.AliasEvent) -> None:
        place, name = self._place(event), event.anchor
        if name not in self.anchors:
            raise _fatal(place, f"nothing is named '&{name}' above", "An alias repeats a value that has an anchor.")
        target = self.anchors[name]
        if target is None:
            raise _fatal(place, f"'*{name}' stands inside the value it repeats", "That value would have no end.")
        self._spend(place, target.size)
        self._check_depth(place, target.height)
        self._add(target)

    def _open(self, event: yaml.CollectionStartEvent, tree: Sequence | Mapping) -> None:
        self._check_tag(event)
        self._check_depth(tree.place, 1)
        anchor = event.anchor
        if anchor is not None:
            self.anchors[anchor] = None
        self._spend(tree.place, 1)
        self.stack.append(_Frame(tree, anchor))

    def _anchored(self, event: yaml.ScalarEvent, scalar: Scalar) -> Scalar:
        if event.anchor is not None:
            self.anchors[event.anchor] = scalar
        self._spend(scalar.place, 1)
        return scalar

    def _add(self, tree: Tree) -> None:
        if not self.stack:
            self.root = tree
            return
        frame = self.stack[-1]
        if isinstance(frame.tree, Sequence):
            frame.tree.items.append(tree)
        elif frame.key is None:
            frame.key = (tree.place, self._key(frame.tree, tree))
            frame.tree.size += tree.size
            return
        else:
            place, key = frame.key
            frame.key = None
            if key is not None:
                frame.tree.entries[key] = Entry(place, tree)
        frame.tree.size += tree.size
        frame.tree.height = max(frame.tree.height, tree.height + 1)

    def _key(self, mapping: Mapping, tree: Tree) -> str | None:
        """Return the key, or None after a fault: then its value is dropped."""
        if not isinstance(tree, Scalar):
            self._fault(
                tree.place, "a key is text, found a list or a mapping", hint="quote text that starts with { or ["
            )
        elif tree.plain and tree.text == "<<":
            self._fault(
                tree.place,
                "merge keys ('<<') are not supported",
                "They are no part of YAML 1.2, and hide which value wins.",
                "defaults of lanes live on their model, under `args`; write the other keys out",
            )
        elif tree.plain and not is_text(tree.text):
            self._fault(tree.place, f"the key {tree.text or 'without a name'} is not text", hint=f'write "{tree.text}"')
        elif tree.text in mapping.entries:
            first = mapping.entries[tree.text].place
            self._fault(tree.place, f"the key '{tree.text}' is set twice", f"It is first set at {first}.", "keep one")
        else:
            return tree.text
        return None

    def _check_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        if event.tag is not None:
            self._fault(
                self._place(event),
                f"the tag '{event.tag}' is not supported",
                "A spec holds text, numbers, true, false, lists and mappings.",
                "take the tag away, and quote what shall be text",
            )

    def _check_depth(self, place: Place, height: int) -> None:
        if len(self.stack) + height > MAX_DEPTH:
            raise _fatal(place, f"nested more than {MAX_DEPTH} levels deep")

    def _spend(self, place: Place, values: int) -> None:
        self.reader.values_left -= values
        if self.reader.values_left < 0:
            detail = f"A spec has at most {MAX_VALUES} keys and values, each alias counted as what it repeats."
            raise _fatal(place, "the spec is too large", detail)

    def _place(self, event: yaml.Event) -> Place:
        mark: Any = event.start_mark  # typed as optional, but a parser always sets it
        return Place(self.path, mark.line + 1, mark.column + 1)

    def _fault(self, place: Place, summary: str, detail: str = "", hint: str = "") -> None:
        self.reader.faults.append(Diagnostic.at(place, summary, detail, hint))


_HANDLERS: dict[type, Callable[[_Build, Any], None]] = {
    yaml.DocumentStartEvent: _Build.on_document,
    yaml.ScalarEvent: _Build.on_scalar,
    yaml.SequenceStartEvent: _Build.on_sequence,
    yaml.MappingStartEvent: _Build.on_mapping,
    yaml.SequenceEndEvent: _Build.on_end,
    yaml.MappingEndEvent: _Build.on_end,
    yaml.AliasEvent: _Build.on_alias,
}


def _not_yaml(path: Path, text: str, error: yaml.MarkedYAMLError) -> Unusable:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return _fatal(Place(path), f"not valid YAML: {error.problem}")
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    indent = line[: len(line) - len(line.lstrip())]
    if "\t" in indent:
        place = Place(path, mark.line + 1, indent.index("\t") + 1)
        return _fatal(place, "a tab in the indentation", "YAML indents with spaces only.", "replace it by spaces")
    context = f"{error.context}, which starts at line {error.context_mark.line + 1}" if error.context_mark else ""
    place = Place(path, mark.line + 1, mark.column + 1)
    advice = _ADVICE.get(line[mark.column : mark.column + 1], "")
    if advice and "flow" in context:
        advice += ", or add the ',' or '}' that is missing before it"
    return _fatal(place, f"not valid YAML: {error.problem}", context, advice)


_ADVICE = {
    ":": "quote text that holds ': '",
    "@": "quote text that starts with @",
    "`": "quote text that starts with `",
    "%": "quote text that starts with %",
    "\t": "replace the tab by spaces",
}


def _fatal(place: Place, summary: str, detail: str = "", hint: str = "") -> Unusable:
    return Unusable(Diagnostic.at(place, summary, detail, hint))
