"""The spec: everything a user declares about one fleet."""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field, PrivateAttr, Strict

from specs.diagnostics import Place
from specs.drift import Drift
from specs.fields import Name, RegistryHost, StatePlace
from specs.gitops import Gitops
from specs.hooks import Hooks
from specs.inventory import Cluster, Images, Node, Registry
from specs.lanes import Lane, Model, Placement
from specs.policies import Policies
from specs.records import Record
from specs.silences import Checks
from specs.tree import Loc

RETAIN = 1
Retain = Annotated[int, Field(ge=0, le=10)]

_BESIDE = {"images", "state", "drift", "policies", "hooks", "gitops"}
"""What changes nothing of what runs."""

CANONICAL_VERSION = 1  # part of every fingerprint: raise it when the canonical form changes


@dataclass(frozen=True)
class _Origin:
    """Where a spec was read. It takes no part in comparing specs."""

    root: Path = field(default=Path(), compare=False)
    files: tuple[Path, ...] = field(default=(), compare=False)
    find: Callable[[Loc], Place] | None = field(default=None, compare=False)


class Spec(Record):
    """A validated spec. Made by `specs.load`; can be made directly in tests, without the cross-object rules."""

    fleet: Name = Field(description="the name of the fleet")
    registries: dict[RegistryHost, Registry] = Field(
        default_factory=dict, description="registries by the host that image references name, e.g. ghcr.io"
    )
    images: Images = Field(default=Images(), description="how images are kept, moved and cleaned up")
    state: StatePlace | None = Field(
        default=None,
        description="where runs and revisions are recorded: a folder, relative to the main file, or a PostgreSQL URL "
        "without its password (postgresql://USER@HOST/DATABASE); the variable FLEET_STATE goes before it; default: "
        ".fleet",
    )
    retain: Retain = Field(
        default=RETAIN,
        description="how many earlier generations of each placement stay on its nodes, stopped, for `fleet rollback`",
    )
    checks: Checks = Field(default=Checks(), description="how checks are taken; `fleet doctor --list` explains each")
    drift: Drift = Field(default=Drift(), description="what `fleet drift` lets pass")
    nodes: dict[Name, Node] = Field(default_factory=dict, description="the machines by name")
    clusters: dict[Name, Cluster] = Field(default_factory=dict, description="ordered sets of nodes by name")
    models: dict[Name, Model] = Field(default_factory=dict, description="models by name")
    lanes: dict[Name, Lane] = Field(default_factory=dict, description="lanes by name")
    placements: Annotated[tuple[Placement, ...], Strict(strict=False)] = Field(
        default=(), description="which lane runs on which cluster: the desired state"
    )
    gitops: Gitops = Field(default=Gitops(), description="what `fleet gitops run` may do by itself, and when")
    policies: Policies = Field(default=Policies(), description="what plans must not do, whatever they are made for")
    hooks: Hooks = Field(default=Hooks(), description="what is called around a change, on the controller")

    _origin: _Origin = PrivateAttr(default=_Origin())

    @property
    def root(self) -> Path:
        """The folder of the main file."""
        return self._origin.root

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file the spec was read from, the main file first."""
        return self._origin.files

    @property
    def fingerprint(self) -> str:
        """ "sha256:<hex>" of the content: independent of the order of keys, comments, the layout in files.

        Values that equal their default do not count, so that a new field does not change old fingerprints; nor does how
        images are moved, where the state is, what drift is let pass, what is called around a change, what plans must
        not do and what the agent may do, which change nothing of what runs.
        """
        canonical = json.dumps(self._canonical(), sort_keys=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"

    def with_source(self, root: Path, files: tuple[Path, ...], find: Callable[[Loc], Place]) -> "Spec":
        """Return the spec with a note of where it was read: for loaders."""
        spec = self.model_copy()
        spec._origin = _Origin(root, files, find)  # noqa: SLF001 - of its own class
        return spec

    def nodes_of(self, placement: Placement) -> tuple[str, ...]:
        """Return the nodes the placement takes, rank 0 (the head) first."""
        if placement.nodes is not None:
            return placement.nodes
        return self.clusters[placement.cluster].nodes[: self.lanes[placement.lane].node_count]

    def place(self, *loc: str | int) -> Place:
        """Return where a value was written, e.g. `spec.place("lanes", "x", "engine")`.

        For a value nobody wrote, it is the place of the nearest thing around it.
        """
        origin = self._origin
        return origin.find(loc) if origin.find else Place(origin.root)

    def _canonical(self) -> dict[str, object]:
        content = self.model_dump(mode="json", exclude_defaults=True, exclude=_BESIDE)
        for name, node in self.nodes.items():
            ssh = content["nodes"][name]["ssh"]
            for key in ("identity_file", "known_hosts"):
                if (path := getattr(node.ssh, key)) is not None:
                    ssh[key] = self._portable(path)
        content["placements"] = sorted(content.get("placements", ()), key=lambda p: json.dumps(p, sort_keys=True))
        return {"version": CANONICAL_VERSION, "spec": content}

    def _portable(self, path: Path) -> str:
        """Return a path of the controller without what differs between two checkouts of one spec."""
        if path.is_relative_to(self.root):
            return os.path.normpath(path.relative_to(self.root))
        return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)
