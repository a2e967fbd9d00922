"""Lanes that share a node open different ports there, also those that their engines choose."""

from pathlib import Path

import pytest

from reconciler.engines import RULES
from specs import SpecErrors, load
from tests.unit.engines.fleets import HEAD, IMAGE

LLAMA = "engine: llamacpp, model: tiny, nodes: 2"
SGLANG = "engine: sglang, model: plain, parallel: {tensor: 2}"


def said(folder: Path, first: str, second: str, clusters: tuple[str, str] = ("two", "next")) -> list[str]:
    """What is said of two lanes that share, on clusters of the same two nodes with ports of their own."""
    more = (
        "  next: {nodes: [dgx2, dgx1], interface: f0, port: 30009, rendezvous_port: 29509}\n"
        "  again: {nodes: [dgx1, dgx2], interface: f0, port: 30007, rendezvous_port: 29507}\n"
    )
    head = HEAD.replace("models:\n", f"{more}models:\n").replace(
        "  hub:", '  plain: {path: "{paths.models}/p"}\n  hub:'
    )
    lanes = "".join(
        f"  {name}: {{image: {IMAGE}, shares: true, {lane}}}\n" for name, lane in (("a", first), ("b", second))
    )
    places = f"  - {{lane: a, cluster: {clusters[0]}}}\n  - {{lane: b, cluster: {clusters[1]}}}\n"
    path = folder / "fleet.yaml"
    path.write_text(f"{head}lanes:\n{lanes}placements:\n{places}", encoding="utf-8")
    try:
        load(path, RULES)
    except SpecErrors as errors:
        return [item.summary for item in errors.diagnostics]
    return []


def test_a_default_that_one_lane_has_and_the_other_writes_is_refused(tmp_path: Path) -> None:
    custom = "engine: custom, argv: [serve], nodes: 2, ports: {own: 50052}"
    assert ["port 50052 is opened twice on dgx2"] == said(tmp_path, LLAMA, custom)


def test_workers_of_one_lane_and_the_head_of_another_are_apart(tmp_path: Path) -> None:
    same = f"{SGLANG}, gpus: 0"
    assert [] == said(tmp_path, same, same)
    other = "engine: custom, argv: [serve], nodes: 2, gpus: 0, ports: {own: 30000}"
    expected = ["port 30000 is opened twice on dgx2", "port 30000 is taken twice on dgx1"]
    assert expected == said(tmp_path, same, other)  # a worker's page, and a head's, which the spec shows


@pytest.mark.parametrize(("count", "lane"), [(1, LLAMA), (0, f"{LLAMA}, ports: {{rpc: 50053}}")])
def test_two_lanes_with_workers_on_one_node(tmp_path: Path, count: int, lane: str) -> None:
    assert ["port 50052 is opened twice on dgx2"] * count == said(tmp_path, LLAMA, lane, ("two", "again"))
