"""The stock of models, and what reading them came to, as text and JSON."""

import json
from collections.abc import Iterable, Iterator, Sequence

from reconciler.core.canonical import jsonable
from reconciler.core.model_stock import ModelHolding, ModelStock, Proof
from reconciler.core.observed import Unknown
from reconciler.views.words import count, one_line, size

SCHEMA = "fleet.models/1"
PROOF_SCHEMA = "fleet.models.proof/1"
HEAD = ("MODEL", "NODE", "STATE", "SIZE", "REVISION", "WHERE", "WHY")

NO_CHECKSUM = "it has no checksums; write some in `verify` of the model"


def model_stock_text(stock: ModelStock) -> str:
    """What is where: one line a model and node."""
    return _text(_stock(stock))


def _stock(stock: ModelStock) -> Iterator[str]:
    yield from _unknown(stock.unknown)
    if not stock.holdings:
        yield "No model of the spec has a path on a node that answers."
        return
    rows = [HEAD, *(_row(item) for item in stock.holdings)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _row(item: ModelHolding) -> tuple[str, ...]:
    there = size(item.facts.bytes) if item.facts.is_there else "-"
    revision = item.facts.revision[:12] or "-"
    return (item.want.name, item.node, item.standing, there, revision, item.want.place.path, item.why)


def model_stock_json(stock: ModelStock) -> str:
    """A versioned document."""
    holdings = [
        {
            "model": item.want.name,
            "node": item.node,
            "path": item.want.place.path,
            "state": item.standing,
            "why": item.why,
            "bytes": item.facts.bytes,
            "files": len(item.facts.files),
            "revision": item.facts.revision or None,
            "missing": list(item.facts.missing),
            "bad_links": jsonable(item.facts.bad_links),
            "lanes": list(item.lanes),
        }
        for item in stock.holdings
    ]
    document = {"schema": SCHEMA, "fleet": stock.fleet, "models": holdings, "unknown": jsonable(stock.unknown)}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def proof_text(proof: Proof | Unknown) -> str:
    """What reading one model on one node came to."""
    return _text(_unknown([proof]) if isinstance(proof, Unknown) else _proof(proof))


def _proof(proof: Proof) -> Iterator[str]:
    read = f"{count(proof.files, 'file')} ({size(proof.bytes)}) right by checksum"
    bad = f"{count(len(proof.faults), 'fault')}; " if proof.faults else ""
    none = "no file is right by checksum" if proof.faults else f"nothing to compare: {NO_CHECKSUM}"
    yield f"{proof.model} on {proof.node}: {bad}{read if proof.files else none}"
    yield from (f"  x {fault.path}{' ' if fault.path else 'it '}{fault.why}" for fault in proof.faults)


def proofs_json(fleet: str, proofs: Iterable[Proof | Unknown]) -> str:
    """A versioned document."""
    told = list(proofs)
    document = {
        "schema": PROOF_SCHEMA,
        "fleet": fleet,
        "proofs": [jsonable(item) for item in told if isinstance(item, Proof)],
        "unknown": [jsonable(item) for item in told if isinstance(item, Unknown)],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _unknown(states: Sequence[Unknown]) -> Iterator[str]:
    for state in states:
        yield f"{'-' if state.is_declared else '!'} {state.node}: {state.reason}"
        yield from (f"    {line}" for line in state.hint.splitlines())


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{one_line(line)}\n" for line in lines)
