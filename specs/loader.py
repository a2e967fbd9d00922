"""From files to a spec: read, check each object by itself, then all together."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from specs.diagnostics import Diagnostic, SpecErrors
from specs.draft import Draft
from specs.drift import Drift
from specs.fields import Name, RegistryHost, StatePlace
from specs.files import Files
from specs.gitops import Gitops
from specs.hooks import Hooks
from specs.inventory import Cluster, Images, Node, Registry
from specs.lanes import Lane, Model, Placement
from specs.model import RETAIN, Retain, Spec
from specs.policies import Policies
from specs.problems import explain
from specs.records import Record
from specs.rules import RULES, Rule
from specs.scalars import Mode, Shape, to_data
from specs.silences import Checks
from specs.tree import Entry, Loc, Mapping, Sequence, Tree, value_place

T = TypeVar("T")

_SECTIONS: dict[str, type[Record]] = {
    "registries": Registry,
    "nodes": Node,
    "clusters": Cluster,
    "models": Model,
    "lanes": Lane,
}

_SETTINGS: dict[str, type[Record]] = {
    "checks": Checks,
    "drift": Drift,
    "gitops": Gitops,
    "policies": Policies,
    "hooks": Hooks,
}
"""Sections that are one object each, every key of which has a default."""

_WORDS: Shape = {"*": Mode.TEXT}
_COMMAND: dict[str, Mode | Shape] = {"env": _WORDS, "argv": _WORDS, "entrypoint": _WORDS}
_SHAPES: dict[str, Shape] = {
    "images": {"vault": Mode.PATH},
    "nodes": {"ssh": {"identity_file": Mode.PATH, "known_hosts": Mode.PATH}},
    "models": {
        "args": Mode.JSON,
        "config": Mode.JSON,
        "requires": {"*": {"env": _WORDS, "args": Mode.JSON}},
    },
    "hooks": {"*": {"*": {"command": _WORDS, "env": _WORDS, "headers": _WORDS}}},
    "lanes": {"args": Mode.JSON, **_COMMAND, "roles": {"*": _COMMAND}},
}

_NAME: TypeAdapter[str] = TypeAdapter(Name)
_STATE: TypeAdapter[str] = TypeAdapter(StatePlace)
_RETAIN: TypeAdapter[int] = TypeAdapter(Retain)
_REGISTRY_HOST: TypeAdapter[str] = TypeAdapter(RegistryHost)


def load(path: Path, rules: tuple[Rule, ...] = ()) -> Spec:
    """Read, validate and return the spec whose main file is `path`.

    `rules` are checked beside the spec's own: what only the caller knows, such as the names of engines. Raises
    SpecErrors with every fault of every file, sorted by file and line.
    """
    faults: list[Diagnostic] = []
    files = Files(Path(path), faults)
    parts = _Parts(files.tree, faults)
    fleet = parts.fleet(required=files.complete)
    sections = {name: parts.section(name) for name in _SECTIONS}
    placements = parts.placements()
    images, state, retain = parts.images(), parts.state(), parts.retain()
    settings = {name: parts.settings(name) for name in _SETTINGS}
    draft = _draft(sections, placements, files)
    for rule in (*RULES, *rules):
        faults.extend(rule(draft))
    if faults or fleet is None or images is None:
        raise SpecErrors(faults)
    kept: dict[str, Any] = {"images": images, "state": state, "retain": retain, **settings, **sections}
    spec = Spec(fleet=fleet, placements=tuple(placements.values()), **kept)
    return spec.with_source(files.order[0].parent.absolute(), tuple(files.order), partial(value_place, files.tree))


def load_inventory(path: Path) -> Spec:
    """Return the fleet, its registries and nodes, the settings of images and of the state, and nothing it serves.

    For what has to work before the lanes are valid. Raises SpecErrors with the faults of these.
    """
    faults: list[Diagnostic] = []
    files = Files(Path(path), faults)
    parts = _Parts(files.tree, faults)
    fleet, images, state = parts.fleet(required=files.complete), parts.images(), parts.state()
    registries, nodes = parts.section("registries"), parts.section("nodes")
    if faults or fleet is None or images is None:
        raise SpecErrors(faults)
    spec = Spec(fleet=fleet, images=images, state=state, registries=registries, nodes=nodes)
    return spec.with_source(files.order[0].parent.absolute(), tuple(files.order), partial(value_place, files.tree))


def _draft(sections: dict[str, dict[str, Any]], placements: dict[int, Placement], files: Files) -> Draft:
    return Draft(
        nodes=sections["nodes"],
        clusters=sections["clusters"],
        models=sections["models"],
        lanes=sections["lanes"],
        placements=placements,
        declared={name: _entries(files.tree, name).keys() for name in _SECTIONS},
        complete=files.complete,
        tree=files.tree,
    )


class _Parts:
    """Validates each object of a spec by itself, so that a fault in one hides no fault in another."""

    def __init__(self, tree: Mapping, faults: list[Diagnostic]) -> None:
        self.tree, self.faults = tree, faults

    def fleet(self, *, required: bool) -> str | None:
        """Return the name of the fleet, or None after a fault."""
        entry = self.tree.entries.get("fleet")
        if entry is not None:
            return self._check(_NAME.validate_python, entry.value, ("fleet",))
        if required:
            hint = "write `fleet: NAME` into the main file"
            self.faults.append(Diagnostic.at(self.tree.place, "`fleet` is missing", "A spec names its fleet.", hint))
        return None

    def section(self, name: str) -> dict[str, Any]:
        """Return the valid objects of a section by name."""
        model, shape = _SECTIONS[name], _SHAPES.get(name, Mode.CORE)
        names = _REGISTRY_HOST if name == "registries" else _NAME
        valid = {}
        for key, entry in _entries(self.tree, name).items():
            self._check_key(names, key, (name, key))
            item = self._check(model.model_validate, entry.value, (name, key), shape, model)
            if item is not None:
                valid[key] = item
        return valid

    def images(self) -> Images | None:
        """Return the settings of images, those nobody wrote by default, or None after a fault."""
        entry = self.tree.entries.get("images")
        if entry is None:
            return Images()
        return self._check(Images.model_validate, entry.value, ("images",), _SHAPES["images"], Images)

    def state(self) -> str | None:
        """Return where the state is, or None where nobody says so, or after a fault."""
        entry = self.tree.entries.get("state")
        return self._check(_STATE.validate_python, entry.value, ("state",)) if entry else None

    def retain(self) -> int:
        """Return how many earlier generations stay; the default where nobody says so, or after a fault."""
        entry = self.tree.entries.get("retain")
        found = self._check(_RETAIN.validate_python, entry.value, ("retain",)) if entry else None
        return RETAIN if found is None else found

    def settings(self, name: str) -> Record:
        """Return a section of settings; the default where nobody says so, or after a fault."""
        model, entry, shape = _SETTINGS[name], self.tree.entries.get(name), _SHAPES.get(name, Mode.CORE)
        found = self._check(model.model_validate, entry.value, (name,), shape, model) if entry else None
        return model() if found is None else found

    def placements(self) -> dict[int, Placement]:
        """Return the valid placements by their position in the list."""
        section = self.tree.entries.get("placements")
        items = section.value.items if section and isinstance(section.value, Sequence) else []
        valid = {}
        for index, item in enumerate(items):
            placement = self._check(Placement.model_validate, item, ("placements", index), model=Placement)
            if placement is not None:
                valid[index] = placement
        return valid

    def _check(
        self,
        validate: Callable[[object], T],
        tree: Tree,
        loc: Loc,
        shape: Shape = Mode.CORE,
        model: type[Record] | None = None,
    ) -> T | None:
        """Return the validated value at `loc`, or None after a fault."""
        faults: list[Diagnostic] = []
        data = to_data(tree, shape, faults)
        # A scalar that could not be read is None in `data`: what validation says of it is no news.
        reported = {fault.place for fault in faults}
        valid = None
        try:
            valid = validate(data)
        except ValidationError as error:
            faults += [fault for fault in explain(error, self.tree, loc, model) if fault.place not in reported]
        self.faults += faults
        return valid

    def _check_key(self, names: TypeAdapter[str], key: str, loc: Loc) -> None:
        try:
            names.validate_python(key)
        except ValidationError as error:
            self.faults += explain(error, self.tree, (*loc, "[key]"))


def _entries(tree: Mapping, section: str) -> dict[str, Entry]:
    entry = tree.entries.get(section)
    return entry.value.entries if entry and isinstance(entry.value, Mapping) else {}
