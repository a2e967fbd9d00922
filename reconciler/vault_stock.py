"""The stock of the vault: what is in it, and the removal of what nobody needs."""

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import specs
from reconciler.core.garbage import (
    Blob,
    Ending,
    GcPlan,
    Removed,
    Stock,
    VaultFacts,
    VaultPlan,
    gc_plan,
)
from reconciler.core.lock import Lock
from reconciler.core.retention import Rules
from reconciler.images.documents import LARGEST_DOCUMENT, descriptor, parsed, read_document
from reconciler.images.errors import SupplyError
from reconciler.images.vault import Vault, default_vault

VAULT = "vault"
"""Stands where a node's name would."""


def vault_path(spec: specs.Spec) -> Path:
    """Where the vault of this spec is, or would be."""
    return spec.images.vault or default_vault()


Named = tuple[tuple[str, ...], tuple[str, ...]]
"""What a document refers to: the manifests of an index; the config and the layers of a manifest."""

NOTHING: Named = ((), ())


def look(path: Path, protect: tuple[str, ...], lock: Lock) -> VaultFacts | None:
    """The vault as it is; None when there is none. Raises `SupplyError` when it cannot be read."""
    if not path.is_dir():
        return None
    vault = Vault(path)
    roots = {owner: tuple(sorted(tops)) for owner, tops in vault.roots().items()}
    below, damaged = _references(vault, (top for tops in roots.values() for top in tops), lock)
    blobs = tuple(Blob(*told) for told in vault.digests())
    whole = {blob.digest for blob in blobs}
    return VaultFacts(
        path=str(path),
        seen_s=time.time(),
        roots=roots,
        blobs=blobs,
        parts=tuple(part for part in (Blob(*told) for told in vault.parts()) if part.digest not in whole),
        below=below,
        damaged=damaged,
        protected_by=_protected_by(path, protect),
    )


def _references(vault: Vault, tops: Iterable[str], lock: Lock) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """What each index and manifest refers to, and which of them are damaged and not in the lock either: what those
    refer to is not known. What is not there refers to nothing.
    """
    locked = _locked(lock)
    below: dict[str, tuple[str, ...]] = {}
    damaged: set[str] = set()
    open_ends = [*tops]
    while open_ends:
        digest = open_ends.pop()
        if digest in below:
            continue
        try:
            documents, blobs = _named_in(vault.path(digest), digest)
        except (SupplyError, OSError) as error:
            documents, blobs = locked.get(digest, NOTHING)
            if digest not in locked and not isinstance(error, FileNotFoundError):
                damaged.add(digest)
        below[digest] = documents + blobs
        open_ends += documents
    return below, tuple(sorted(damaged))


def _locked(lock: Lock) -> dict[str, Named]:
    found: dict[str, Named] = {}
    images = [image for image in lock.images if image.kind == "digest"]
    for platform in (item for image in images for item in image.platforms):
        found[platform.manifest] = (), (platform.config, *(layer.digest for layer in platform.layers))
    for image in (image for image in images if image.digest not in found):
        found[image.digest] = tuple(platform.manifest for platform in image.platforms), ()
    return found


def _named_in(path: Path, digest: str) -> Named:
    """The manifests an index names, and the config and the layers a manifest names. Raises `SupplyError`, `OSError`.

    Not by `Vault.read`, which drops what is damaged: looking changes nothing.
    """
    with path.open("rb") as file:
        told = parsed(read_document(digest, LARGEST_DOCUMENT, lambda _, most: file.read(most)), digest)
    manifests, layers = (told[key] if isinstance(told.get(key), list) else [] for key in ("manifests", "layers"))
    parts = [*layers, *([told["config"]] if told.get("config") else [])]
    return tuple(descriptor(item, digest)[0] for item in manifests), tuple(
        descriptor(item, digest)[0] for item in parts
    )


def _protected_by(vault: Path, protect: Iterable[str]) -> str:
    """The path of `protect` that the vault is below, or that is in it; "" when there is none."""
    own = {vault.absolute(), vault.resolve()}
    for entry in (item for item in protect if item.startswith("/")):
        places = {Path(entry), Path(entry).resolve()}
        if any(a.is_relative_to(b) or b.is_relative_to(a) for a in own for b in places):
            return entry
    return ""


def sweep(plan: GcPlan, rules: Rules, path: Path, lock: Lock) -> tuple[Removed, int]:
    """Remove what the plan says and a fresh look still says; with the bytes that were freed."""
    freed = 0
    try:
        facts = look(path, rules.protect, lock)
        fresh = gc_plan(Stock(plan.fleet, rules, plan.stays, plan.unknown, facts)).vault
        if plan.vault is None or fresh is None:
            return Removed(VAULT, str(path), Ending.GONE), freed
        due, vault = _both(plan.vault, fresh), Vault(path)
        for top in due.released:
            vault.release(plan.fleet, top)
        for blob in (*due.blobs, *due.parts):
            freed += vault.remove(blob.digest)
    except (SupplyError, OSError) as error:
        return Removed(VAULT, str(path), Ending.FAILED, str(error), getattr(error, "hint", "")), freed
    return Removed(VAULT, str(path), Ending.REMOVED, vault=due), freed


def _both(planned: VaultPlan, fresh: VaultPlan) -> VaultPlan:
    """What both say. A blob that was planned and is needed again since is left."""
    names = {item.digest for item in (*planned.blobs, *planned.parts)}
    return replace(
        fresh,
        names=planned.names,
        released=tuple(top for top in fresh.released if top in planned.released),
        blobs=tuple(item for item in fresh.blobs if item.digest in names),
        parts=tuple(item for item in fresh.parts if item.digest in names),
    )
