"""`fleet pin`: from a tag to a digest, and to `fleet.lock`, which has what the image is made of."""

import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.pin_report import Granted, Report, Wish, as_json_value
from reconciler.cli.recording import Events, tell
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

Target = Annotated[
    str | None,
    typer.Argument(metavar="LANE|IMAGE", help="A lane of the spec, or an image with a tag, a registry or a digest."),
]
FromNode = Annotated[
    str | None,
    typer.Option("--from", metavar="NODE", help="Ask this node, not the registry; for what only a node has."),
]
Publish = Annotated[
    bool,
    typer.Option(
        "--publish",
        help="Needs --from: read the node's image into the vault; that gives a local build a digest, and from there "
        "other nodes get it.",
    ),
]
Update = Annotated[
    bool, typer.Option("--update", help="Of what is pinned, too, ask what its tag is now, and take that.")
]
All = Annotated[bool, typer.Option("--all", help="Pin the image of every lane; forget images that no lane has.")]
Write = Annotated[
    bool, typer.Option("--write", help="Of a LANE, or of --all: put the pinned reference into the spec, in its place.")
]

HELP = """Pin images by digest: resolve a tag, write fleet.lock, show the line for the spec.

fleet.lock stands beside the spec, and says what each pinned image is made of; commit both. The vault is the folder on
this machine from which nodes get images (`images.vault` of the spec).

\b
Examples:
  fleet pin chat --write                          the image of lane chat, into the spec
  fleet pin chat --update --write                 its tag has moved: take what it is now
  fleet pin ghcr.io/owner/name:v1                 an image that no lane has yet
  fleet pin mine:local --from NODE --publish      a local build, for all nodes
  fleet pin --all                                 every lane; forget the rest
"""

SHOWN_EVERY_S = 0.2


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("pin", help=HELP)(pin)


@dataclass(frozen=True)
class Ask:
    """How to ask: which node, if any, whether into the vault, and whether for what a tag is now."""

    node: str | None
    publish: bool
    update: bool


def pin(
    context: typer.Context,
    target: Target = None,
    file: SpecFile = DEFAULT_SPEC,
    node: FromNode = None,
    publish: Publish = False,
    update: Update = False,
    every: All = False,
    write: Write = False,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
    events: Events = None,
) -> None:
    """Resolve, lock, show."""
    import specs
    from reconciler.core.events import ImagePinned
    from reconciler.images import lockfile

    if every == (target is not None):
        raise typer.BadParameter("name one lane or image, or say --all", param_hint="LANE|IMAGE")
    if publish and node is None:
        raise typer.BadParameter("it needs --from NODE", param_hint="--publish")
    texts = specs.image_texts(file)
    _insist_on_spec(file, texts)
    if target is not None and node is None:
        _insist_on_lane(target, texts)
    wishes = _wishes(target, texts)
    if write and not any(wish.lanes for wish in wishes):
        raise typer.BadParameter(f"no lane is named {target}, so there is nothing to write to", param_hint="--write")
    inventory = specs.load_inventory(file)
    lock = _lock(inventory.root, every)
    ask = Ask(node, publish, update)
    granted, failures = run(context, _pinned(context.obj, inventory, lock, wishes, ask, deadline))
    changed = _store(inventory.root, lock, granted, texts, every=every)
    if write:
        _write(granted, texts)
        changed |= _store(inventory.root, lock, granted, specs.image_texts(file), every=every)
    for item in granted:
        tell(ImagePinned(item.wish.written, item.pinned.reference))
    if as_json:
        say_json({"pins": [as_json_value(item) for item in granted], "failures": failures})
    else:
        path = inventory.root / lockfile.NAME
        say(Report(granted, len(failures), texts, path, written=write, changed=changed, updated=update).text())
    for written, reason in failures.items():
        warn(f"{written} is not pinned: {reason}")
    raise typer.Exit(1 if failures else 0)


def _insist_on_spec(file: Path, texts: "Mapping[str, specs.ImageText]") -> None:
    """Raises `specs.SpecErrors` for all that is wrong with the spec but the images, which are what pinning is for."""
    import specs
    from reconciler.engines import RULES

    images = {found.place for found in texts.values()}
    try:
        specs.load(file, RULES)
    except specs.SpecErrors as error:
        others = [fault for fault in error.diagnostics if fault.place not in images]
        if others:
            raise specs.SpecErrors(others) from None


def _wishes(target: str | None, texts: "Mapping[str, specs.ImageText]") -> list[Wish]:
    """All lanes' images, each once; or the lane's that is named so; or else the image itself."""
    if target is not None and target not in texts:
        return [Wish(target, ())]
    lanes: dict[str, list[str]] = {}
    for lane, found in texts.items():
        if target in {None, lane}:
            lanes.setdefault(found.text, []).append(lane)
    return [Wish(written, tuple(names)) for written, names in lanes.items()]


def _insist_on_lane(word: str, lanes: Collection[str]) -> None:
    """A bare word is a lane: one that is misspelled is not asked for at Docker Hub. On a node, it may be an image."""
    import specs

    if word in lanes or set(word) & set("/:@"):
        return
    close = specs.did_you_mean(word, lanes)
    known = f"there are {', '.join(sorted(lanes))}" if lanes else "the spec has none"
    message = f"no lane named '{word}': {close or known}\nAn image is written with a tag or a registry: {word}:latest"
    raise typer.BadParameter(message, param_hint="LANE|IMAGE")


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
    ask: Ask,
    deadline_s: float,
) -> tuple[list[Granted], dict[str, str]]:
    """What came of each wish, and why not of others. The only one's failure is raised."""
    from reconciler.images.errors import SupplyError
    from reconciler.nodes.errors import NodeError
    from reconciler.pinning import Pinner

    nodes = _nodes(wiring, inventory, ask.node) if ask.node is not None else None
    pinner = Pinner.of(inventory, lock, nodes, deadline_s)
    granted, failures = [], {}
    try:
        for wish in wishes:
            try:
                granted.append(Granted(wish, await _one(pinner, wish.written, ask)))
            except (SupplyError, NodeError) as error:
                if len(wishes) == 1:
                    raise
                failures[wish.written] = str(error)
    finally:
        if nodes is not None:
            await nodes.close()
    return granted, failures


def _nodes(wiring: Wiring, inventory: "specs.Spec", node: str) -> "protocols.Fleet":
    import time

    import specs
    from reconciler.fleet import over_ssh
    from reconciler.nodes.absent import without_absent

    if node not in inventory.nodes:
        hint = specs.did_you_mean(node, inventory.nodes)
        raise typer.BadParameter(f"there is no node {node} in the spec. {hint}".strip(), param_hint="--from")
    return without_absent((wiring.connect or over_ssh)(inventory), inventory, time.strftime("%Y-%m-%d"))


async def _one(pinner: "Pinner", written: str, ask: Ask) -> "Pinned":
    from reconciler import pinning

    asked = pinning.by_tag(written) if ask.update else written
    if ask.node is None:
        return await pinner.from_registry(asked if pinning.has_registry(written) else written)
    if ask.publish:
        return await pinner.published(asked, ask.node, _reading(ask.node))
    return await pinner.from_node(asked, ask.node)


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
) -> bool:
    """Whether that changed it."""
    from reconciler import pinning
    from reconciler.images import lockfile

    in_use = {found.text.rpartition("@")[2] for found in texts.values()}
    images = [item.pinned.image for item in granted if item.pinned.image is not None]
    changed = pinning.merged(lock, images, in_use)
    if every:
        changed = pinning.only(changed, in_use | {image.digest for image in images})
    return lockfile.write(folder, changed)


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
