"""The stock of images, and what is collected of it, as text and JSON."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from reconciler.core.canonical import jsonable
from reconciler.core.garbage import Blob, Collected, Ending, GcPlan, Removed, Stock, VaultFacts, VaultPlan
from reconciler.core.observed import LocalImage, Unknown
from reconciler.core.retention import Holding, Standing
from reconciler.views.words import count, one_line, size

SCHEMA = "fleet.images/1"

HEAD = ("NODE", "IMAGE", "STATE", "SIZE", "TAGGED", "WHY")
VAULT = "vault"
"""Where a removal was, when it was on no node."""
RIGHT = 3
"""The column of sizes: figures stand to the right."""


def stock_text(stock: Stock) -> str:
    """What is where: one line an image, then the vault."""
    return _text(_stock(stock))


def stock_json(stock: Stock) -> str:
    """A versioned document."""
    holdings = [{"name": item.name, **jsonable(item)} for item in stock.holdings]
    document = {
        "schema": SCHEMA,
        "fleet": stock.fleet,
        "images": holdings,
        "vault": _vault_json(stock.vault),
        "unknown": jsonable(stock.unknown),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def gc_text(plan: GcPlan) -> str:
    """What would be removed where, and what stays."""
    return _text(_gc(plan))


def removed_text(removed: Removed) -> str:
    """One line, as it happens; more where it failed."""
    why = f": {removed.detail}" if removed.detail else ""
    if removed.where == VAULT:
        return _text([f"vault {removed.what}: {_vault_ended(removed)}{why}", *_indented(removed.hint)])
    lines = [f"{removed.where}: {WORDS[removed.ending]} {removed.what}{why}", *_indented(removed.hint)]
    return _text(lines)


def _vault_ended(removed: Removed) -> str:
    """What went of the vault, and what goes later."""
    if removed.vault is None:
        return "gone already" if removed.ending is Ending.GONE else "NOT collected"
    vault = removed.vault
    went = [count(len(vault.blobs), "blob")] if vault.blobs else []
    went += [count(len(vault.parts), "half transfer")] if vault.parts else []
    told = [f"let go of {count(len(vault.released), 'image')}"] if vault.released else []
    told += [f"removed {' and '.join(went)}"] if went else []
    said = ", ".join(told) or "nothing had to go any more"
    return f"{said}; {_later(vault)}" if vault.young else said


def _later(vault: VaultPlan) -> str:
    """Why gc does not take at once what it let go of."""
    blobs = f"{count(vault.young, 'blob')} ({size(vault.young_bytes)})"
    stays = "stays until it is" if vault.young == 1 else "stay until they are"
    return f"{blobs} {stays} an hour old, since a transfer may need {'it' if vault.young == 1 else 'them'}"


def collected_text(done: Collected) -> str:
    """What was freed, and what was not done."""
    return _text(_collected(done))


WORDS = {Ending.REMOVED: "removed", Ending.GONE: "gone already:", Ending.LEFT: "left", Ending.FAILED: "NOT removed"}


def _stock(stock: Stock) -> Iterator[str]:
    holdings = stock.holdings
    spare = [item for item in holdings if item.standing is Standing.SPARE]
    yield f"fleet {stock.fleet} · {_head(stock)}"
    yield from _unknown(stock.unknown, "")
    bare = [(node, "(none)", *[""] * (len(HEAD) - 2)) for node in set(stock.nodes) - {item.node for item in holdings}]
    if holdings or bare:
        yield ""
        yield from _table([HEAD, *sorted([*map(_row, holdings), *bare], key=lambda row: row[0])])
        yield ""
    if holdings:
        yield from _totals(holdings)
    yield _vault(stock)
    if spare:
        yield f"`fleet images gc` would remove {count(len(spare), 'spare image')}: up to {size(_bytes(spare))}"


def _head(stock: Stock) -> str:
    """One image on three nodes is three copies."""
    images = len({item.name for item in stock.holdings})
    nodes = {*stock.nodes, *(item.node for item in stock.holdings)}
    copies = "copy" if len(stock.holdings) == 1 else "copies"
    return f"{count(images, 'image')}, {len(stock.holdings)} {copies} on {count(len(nodes), 'node')}"


def _row(item: Holding) -> tuple[str, ...]:
    image = item.image
    state = item.standing if image.usable else f"{item.standing}, unusable"
    tagged = "" if image.tagged_at.startswith("0001-") else image.tagged_at[:16].replace("T", " ")
    return (item.node, item.name, state, _size_of(image), tagged, item.reason)


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            text.rjust(width) if column == RIGHT else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _totals(holdings: Sequence[Holding]) -> Iterator[str]:
    """By standing, in the order in which it is decided; layers that images share are in each of them."""
    found = Counter(item.standing for item in holdings)
    told = (
        f"{found[standing]} {standing} ({size(_bytes(item for item in holdings if item.standing is standing))})"
        for standing in Standing
        if found[standing]
    )
    yield f"unpacked, with the layers they share: {', '.join(told)}"


def _vault(stock: Stock) -> str:
    vault = stock.vault
    if vault is None:
        return "vault: none yet"
    own = len(vault.roots.get(stock.fleet, ()))
    others = sum(len(tops) for owner, tops in vault.roots.items() if owner != stock.fleet)
    told = [count(len(vault.blobs), "blob"), f"{count(own, 'image')} of this fleet"]
    told += [f"{others} of others"] if others else []
    told += [count(len(vault.parts), "half transfer")] if vault.parts else []
    protected = f"; protected: {vault.protected_by}" if vault.protected_by else ""
    return f"vault {vault.path}: {size(vault.size_bytes)} in {', '.join(told)}{protected}"


def _vault_json(vault: VaultFacts | None) -> object:
    if vault is None:
        return None
    return {
        "path": vault.path,
        "bytes": vault.size_bytes,
        "blobs": len(vault.blobs),
        "half_transfers": len(vault.parts),
        "roots": jsonable(vault.roots),
        "protected_by": vault.protected_by,
    }


def _gc(plan: GcPlan) -> Iterator[str]:
    nodes = sorted({item.node for item in plan.removals})
    yield f"fleet {plan.fleet} · {_gc_head(plan, nodes)}"
    yield from _unknown(plan.unknown, "; its images are not touched")
    for node in nodes:
        yield ""
        at_most = plan.bytes_of(node)
        yield f"{node}: up to {size(at_most)}" if at_most else f"{node}:"
        for item in (item for item in plan.removals if item.node == node):
            yield f"  - {item.name}  {_size_of(item.image)}  {item.reason}"
    if plan.vault is not None and (plan.vault.note or plan.vault.young or not plan.vault.is_empty):
        yield ""
        yield from _gc_vault(plan.vault)
    found = Counter(item.standing for item in plan.stays)
    if found:
        yield ""
        yield f"stays: {', '.join(f'{found[standing]} {standing}' for standing in Standing if found[standing])}"


def _gc_head(plan: GcPlan, nodes: Sequence[str]) -> str:
    if plan.is_empty:
        return "nothing to collect"
    told = []
    if plan.removals:
        at_most = size(_bytes(plan.removals))
        told.append(f"{count(len(plan.removals), 'image')} to remove on {count(len(nodes), 'node')}, up to {at_most}")
    if plan.vault is not None and plan.vault.bytes:
        told.append(f"{size(plan.vault.bytes)} of the vault")
    elif plan.vault is not None and plan.vault.released:
        told.append(f"{count(len(plan.vault.released), 'image')} to let go of in the vault")
    return "; ".join(told)


def _gc_vault(vault: VaultPlan) -> Iterator[str]:
    yield f"vault {vault.path}: {_vault_head(vault)}"
    for top in vault.released:
        yield f"  - {vault.names.get(top, top[:19])}: no lane and no node of this fleet needs it"
    if vault.blobs:
        yield f"  - {count(len(vault.blobs), 'blob')} that no image needs: {size(_size(vault.blobs))}"
    if vault.parts:
        yield f"  - {count(len(vault.parts), 'half transfer')} older than a day: {size(_size(vault.parts))}"
    if vault.young:
        are = "is" if vault.young == 1 else "are"
        young = f"{count(vault.young, 'blob')} ({size(vault.young_bytes)}) {are} younger than an hour"
        yield f"  ! {young} and may be part of a transfer: kept until a later gc"
    if vault.note:
        yield f"  ! {vault.note}"


def _vault_head(vault: VaultPlan) -> str:
    if vault.bytes:
        return size(vault.bytes)
    return f"lets go of {count(len(vault.released), 'image')}" if vault.released else "nothing"


def _collected(done: Collected) -> Iterator[str]:
    yield from _unknown(done.unknown, "; what is left of its images stays")
    endings = Counter(item.ending for item in done.removals if item.where != VAULT)
    told = [f"{endings[ending]} {ending}" for ending in Ending if endings[ending]]
    if told or done.unknown:
        yield f"images: {', '.join(told) or 'none removed'}"
    for where, freed in sorted(done.freed_bytes.items()):
        if where == VAULT and not freed:
            continue  # what went of it is told, and nothing of it was to go yet
        yield (
            f"{where}: about {size(freed)} freed" if freed is not None else f"{where}: how much was freed is not known"
        )


def _unknown(states: Iterable[Unknown], so: str) -> Iterator[str]:
    for state in states:
        yield f"  {'-' if state.is_declared else '!'} {state.node}: {state.reason}{so}"
        yield from _indented(state.hint)


def _indented(hint: str) -> Iterator[str]:
    return (f"      {line}" for line in hint.splitlines())


def _size_of(image: LocalImage) -> str:
    return "?" if image.size_bytes is None else size(image.size_bytes)


def _bytes(holdings: Iterable[Holding]) -> int:
    return sum(item.image.size_bytes or 0 for item in holdings)


def _size(blobs: Iterable[Blob]) -> int:
    return sum(item.size_bytes for item in blobs)


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{one_line(line)}\n" for line in lines)
