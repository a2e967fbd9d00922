"""`fleet pin`: from a tag to a digest, and to `fleet.lock`, which has what the image is made of."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.wiring import (
    DEFAULT_DEADLINE_S,
    DEFAULT_SPEC,
    AsJson,
    Deadline,
    SpecFile,
    Wiring,
    run,
    say,
    say_json,
    warn,
    write_whole,
)

if TYPE_CHECKING:
    import specs
    from reconciler.core.lock import Lock
    from reconciler.nodes import protocols
    from reconciler.pinning import Pinned, Pinner

Target = Annotated[str | None, typer.Argument(metavar="LANE|IMAGE", help="A lane of the spec, or an image.")]
FromNode = Annotated[str | None, typer.Option("--from", metavar="NODE", help="Ask this node, not the registry.")]
Publish = Annotated[
    bool, typer.Option("--publish", help="Read the node's image into the vault; that gives a local build a digest.")
]
All = Annotated[bool, typer.Option("--all", help="Pin the image of every lane; forget images that no lane has.")]
Write = Annotated[bool, typer.Option("--write", help="Put the pinned reference into the spec, where the image stands.")]

SHOWN_EVERY_S = 0.2


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("pin", help="Pin images by digest: resolve a tag, write fleet.lock, show the line for the spec.")(pin)


@dataclass(frozen=True)
class Wish:
    """What to pin: an image as it is written, and the lanes that it is the image of."""

    written: str
    lanes: tuple[str, ...]


@dataclass(frozen=True)
class Granted:
    """A wish and what came of it."""

    wish: Wish
    pinned: "Pinned"


def pin(
    context: typer.Context,
    target: Target = None,
    file: SpecFile = DEFAULT_SPEC,
    node: FromNode = None,
    publish: Publish = False,
    every: All = False,
    write: Write = False,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
) -> None:
    """Resolve, lock, show."""
    import specs

    if every == (target is not None):
        raise typer.BadParameter("name one lane or image, or say --all", param_hint="LANE|IMAGE")
    if publish and node is None:
        raise typer.BadParameter("it needs --from NODE", param_hint="--publish")
    texts = specs.image_texts(file)
    wishes = _wishes(target, texts)
    if write and not any(wish.lanes for wish in wishes):
        raise typer.BadParameter(f"no lane is named {target}, so there is nothing to write to", param_hint="--write")
    inventory = specs.load_inventory(file)
    lock = _lock(inventory.root, every)
    granted, failures = run(context, _pinned(context.obj, inventory, lock, wishes, node, publish, deadline))
    _store(inventory.root, lock, granted, texts, every=every)
    if write:
        _write(granted, texts)
        _store(inventory.root, lock, granted, specs.image_texts(file), every=every)
    if as_json:
        say_json({"pins": [_as_json(item) for item in granted], "failures": failures})
    else:
        say("".join(_as_text(item, texts, write=write) for item in granted))
    for written, reason in failures.items():
        warn(f"{written} is not pinned: {reason}")
    raise typer.Exit(1 if failures else 0)


def _wishes(target: str | None, texts: "Mapping[str, specs.ImageText]") -> list[Wish]:
    """All lanes' images, each once; or the lane's that is named so; or else the image itself."""
    if target is not None and target not in texts:
        return [Wish(target, ())]
    lanes: dict[str, list[str]] = {}
    for lane, found in texts.items():
        if target in {None, lane}:
            lanes.setdefault(found.text, []).append(lane)
    return [Wish(written, tuple(names)) for written, names in lanes.items()]


def _lock(folder: Path, every: bool) -> "Lock":
    """The lock as it is; with --all one that is broken is written anew."""
    from reconciler.core.lock import NO_LOCK, LockError
    from reconciler.images import lockfile

    try:
        return lockfile.read(folder)
    except LockError as error:
        if not every:
            raise
        warn(f"{error.message}; it is written anew")
        return NO_LOCK


async def _pinned(
    wiring: Wiring,
    inventory: "specs.Spec",
    lock: "Lock",
    wishes: list[Wish],
    node: str | None,
    publish: bool,
    deadline_s: float,
) -> tuple[list[Granted], dict[str, str]]:
    """What came of each wish, and why not of others. The only one's failure is raised."""
    from reconciler.images.errors import SupplyError
    from reconciler.nodes.errors import NodeError
    from reconciler.pinning import Pinner

    nodes = _nodes(wiring, inventory, node) if node is not None else None
    pinner = Pinner.of(inventory, lock, nodes, deadline_s)
    granted, failures = [], {}
    try:
        for wish in wishes:
            try:
                granted.append(Granted(wish, await _one(pinner, wish.written, node, publish)))
            except (SupplyError, NodeError) as error:
                if len(wishes) == 1:
                    raise
                failures[wish.written] = str(error)
    finally:
        if nodes is not None:
            await nodes.close()
    return granted, failures


def _nodes(wiring: Wiring, inventory: "specs.Spec", node: str) -> "protocols.Fleet":
    import specs
    from reconciler.fleet import over_ssh

    if node not in inventory.nodes:
        hint = specs.did_you_mean(node, inventory.nodes)
        raise typer.BadParameter(f"there is no node {node} in the spec. {hint}".strip(), param_hint="--from")
    return (wiring.connect or over_ssh)(inventory)


async def _one(pinner: "Pinner", written: str, node: str | None, publish: bool) -> "Pinned":
    if node is None:
        return await pinner.from_registry(written)
    if publish:
        return await pinner.published(written, node, _reading(node))
    return await pinner.from_node(written, node)


def _reading(node: str) -> Callable[[int], None]:
    """Shows on a terminal how much of an archive has come."""
    from reconciler.core.figures import size

    shown_s = 0.0

    def show(count: int) -> None:
        nonlocal shown_s
        now_s = time.monotonic()
        if now_s - shown_s > SHOWN_EVERY_S:
            shown_s = now_s
            sys.stderr.write(f"\rreading from {node}: {size(count)} \x1b[K\r")
            sys.stderr.flush()

    return show if sys.stderr.isatty() else lambda count: None


def _store(
    folder: Path, lock: "Lock", granted: Iterable[Granted], texts: "Mapping[str, specs.ImageText]", *, every: bool
) -> None:
    from reconciler import pinning
    from reconciler.images import lockfile

    in_use = {found.text.rpartition("@")[2] for found in texts.values()}
    images = [item.pinned.image for item in granted if item.pinned.image is not None]
    changed = pinning.merged(lock, images, in_use)
    if every:
        changed = pinning.only(changed, in_use | {image.digest for image in images})
    lockfile.write(folder, changed)


def _write(granted: Iterable[Granted], texts: "Mapping[str, specs.ImageText]") -> None:
    """All or none; in a file the last text first, so that the places of the others stay true."""
    import specs

    wanted = {texts[lane]: item.pinned.reference for item in granted for lane in item.wish.lanes}
    contents: dict[Path, bytes] = {}
    for old, new in sorted(wanted.items(), key=lambda edit: edit[0].place, reverse=True):
        path = old.place.path
        contents[path] = specs.rewritten(contents.get(path) or path.read_bytes(), old, new)
    for path, data in contents.items():
        mode = path.stat().st_mode
        write_whole(path, data.decode())
        path.chmod(mode)


def _as_text(item: Granted, texts: "Mapping[str, specs.ImageText]", *, write: bool) -> str:
    from reconciler.core.figures import size
    from reconciler.views.words import count, one_line

    lines = [item.pinned.reference, f"  known from {one_line(item.pinned.origin)}"]
    for platform in item.pinned.image.platforms if item.pinned.image else ():
        bytes_ = f", {size(platform.compressed_bytes)} to move" if platform.compressed_bytes else ""
        lines.append(f"  {platform.platform}: {count(len(platform.layers), 'layer')}{bytes_}")
    if item.pinned.remark:
        lines.append(f"  {one_line(item.pinned.remark)}")
    for lane in item.wish.lanes:
        if item.wish.written != item.pinned.reference:
            doing = "written to" if write else "put this reference into"
            lines.append(f"  {doing} lanes.{lane}.image, {texts[lane].place}")
    return "\n".join(lines) + "\n"


def _as_json(item: Granted) -> dict[str, object]:
    image = item.pinned.image
    return {
        "written": item.wish.written,
        "lanes": list(item.wish.lanes),
        "reference": item.pinned.reference,
        "origin": item.pinned.origin,
        "remark": item.pinned.remark,
        "locked": image is not None,
        "bytes_by_platform": {one.platform: one.compressed_bytes for one in image.platforms} if image else {},
    }
