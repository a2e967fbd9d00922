"""Any spec on simulated nodes: they are as it says, and nothing of it touches the real record."""

from pathlib import Path

import pytest

import specs
from examples import simulated
from reconciler.core.host import ROCE_V2
from reconciler.engines import RULES
from tests.unit.engines.fleets import HEAD, IMAGE

LOCAL = "sha256:" + "cd" * 32
SPEC = f"""{HEAD}lanes:
  it:
    engine: llamacpp
    image: {IMAGE}
    model: tiny
    health: {{probes: [{{chat: Who?, expect: me}}, {{chat: Wer?, expect_regex: "^a$|ich|me"}}]}}
  own: {{engine: custom, image: "{LOCAL}", argv: [serve]}}
placements:
  - {{lane: it, cluster: two}}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.yaml"
    path.write_text(SPEC, encoding="utf-8")
    return path


def test_nodes_are_as_the_spec_says(spec: Path) -> None:
    loaded = specs.load(spec, RULES)
    fleet = simulated.simulated(loaded, simulated.images_of(loaded))
    assert ["dgx1", "dgx2", "dgx3", "dgx4"] == [node.name for node in fleet.nodes]
    facts = fleet.node("dgx2").facts()
    assert ("linux/arm64", 1) == (facts.platform, len(facts.gpus))
    assert [LOCAL] == [image.id for image in facts.images]
    host = facts.host
    assert host.interfaces is not None
    assert [("enp2s0", ("10.10.0.2",))] == [(item.name, item.addresses) for item in host.interfaces]
    assert host.rdma is not None
    assert [("rocep2s0", 3, ROCE_V2)] == [(port.device, port.gids[0].index, port.gids[0].kind) for port in host.rdma]


def test_an_engine_answers_what_its_probes_expect(
    spec: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("FLEET_STATE", "FLEET_VAULT", "FLEET_FILE"):
        monkeypatch.setenv(name, "unused")
    monkeypatch.setattr("sys.argv", ["simulated", str(spec), "apply --yes", "plan --detailed-exitcode", "status"])
    assert 0 == simulated.main()
    said = capsys.readouterr().out
    assert "1 booted\n(exit 0)\n\n$ fleet plan --detailed-exitcode\n" in said
    assert "1 lane wanted: 1 healthy" in said
    assert [spec] == list(tmp_path.iterdir())  # no record beside the spec


def test_a_spec_with_faults_is_told_of_and_nothing_runs(
    spec: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec.write_text(SPEC.replace("engine: llamacpp", "engine: lamacpp"), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["simulated", str(spec), "plan"])
    assert 1 == simulated.main()
    printed = capsys.readouterr()
    assert "unknown engine 'lamacpp'" in printed.err
    assert "" == printed.out
