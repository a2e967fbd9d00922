"""The operator's fleet loads, and says what was wrong with it when it is changed into what once failed."""

import re
import shutil
from pathlib import Path

import pytest

import specs
from reconciler.engines import RULES, desired_fleet

EXAMPLE = Path(__file__).parents[3] / "examples/dgx-lab"
MAINS = ("fleet", "evening", "bench", "fastline")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The example's folder, to be changed."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "dgx-lab", ignore=shutil.ignore_patterns(".fleet")))


def edit(path: Path, *edits: tuple[str, str]) -> None:
    """Replace each old text, which must be there, once."""
    text = path.read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    path.write_text(text, encoding="utf-8")


def lane_edit(folder: Path, lane: str, old: str, new: str) -> None:
    """Replace a text in one lane."""
    for path in sorted((folder / "lanes").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        start = text.find(f"\n  {lane}:\n")
        if start >= 0:
            assert old in text[start:], old
            path.write_text(text[:start] + text[start:].replace(old, new, 1), encoding="utf-8")
            return
    raise AssertionError(f"no lane {lane}")


def said(folder: Path, main: str = "fleet") -> list[str]:
    """What is said of the spec: each fault as its lines, without the place."""
    with pytest.raises(specs.SpecErrors) as caught:
        specs.load(folder / f"{main}.yaml", RULES)
    return [line.strip() for item in caught.value.diagnostics for line in (item.summary, item.detail, item.hint)]


@pytest.mark.parametrize("main", MAINS)
def test_the_fleet_is_valid_with_all_its_placements(main: str) -> None:
    spec = specs.load(EXAMPLE / f"{main}.yaml", RULES)
    assert (8, 6, 9) == (len(spec.nodes), len(spec.clusters), len(spec.lanes))
    gangs = desired_fleet(spec).gangs
    nodes = [node for gang in gangs for node in gang.nodes]
    assert len(set(nodes)) == len(nodes)
    assert all(len(gang.ranks) == spec.lanes[gang.lane].parallel.tensor for gang in gangs)


def test_all_files_are_one_fleet() -> None:
    loaded = [specs.load(EXAMPLE / f"{main}.yaml", RULES) for main in MAINS]
    assert {"dgx-lab"} == {spec.fleet for spec in loaded}
    assert [loaded[0].lanes] * 4 == [spec.lanes for spec in loaded]


def test_the_wrapper_gets_the_flags_of_vllm_and_each_rank_its_own_place() -> None:
    spec = specs.load(EXAMPLE / "evening.yaml", RULES)
    ranks = desired_fleet(spec).gangs[0].ranks
    assert 8 == len(ranks)
    for rank in ranks:
        assert ("toolchain.py", "serve") == rank.container.entrypoint
        words = rank.container.command
        assert str(rank.index) == words[words.index("--node-rank") + 1]
        assert "10.10.0.1" == words[words.index("--master-addr") + 1]
        assert "--no-enable-flashinfer-autotune" in words
        assert "--kernel-config" not in words
        env = dict(rank.container.env)
        assert "rocep1s0f0,roceP2p1s0f0" == env["NCCL_IB_HCA"]
        assert ("BLHNC", "3") == (env["VLLM_KV_CACHE_LAYOUT"], env["NCCL_IB_GID_INDEX"])
        assert ("--headless" in words) == (rank.index > 0)


def test_mimo_pro_on_six_nodes_is_refused_with_the_arithmetic(copy: Path) -> None:
    lane_edit(copy, "mimo26-pro-mopd-8x-sparkring", "parallel: {tensor: 8}", "parallel: {tensor: 6}")
    edit(copy / "placements/evening.yaml", ("8nodes-switch", "6nodes-switch"))
    found = said(copy, "evening")
    assert (
        "the lane 'mimo26-pro-mopd-8x-sparkring' cannot be split so: "
        "128 attention heads and 8 KV heads cannot be divided by tensor 6: tensor can be 1, 2, 4, 8"
    ) == found[0]
    assert 3 == len(found)


def test_flags_that_exclude_each_other_are_refused(copy: Path) -> None:
    flag = "enable-flashinfer-autotune: false # not"
    kernel = "kernel-config: {enable_flashinfer_autotune: false}\n      "
    lane_edit(copy, "mimo26-pro-mopd-8x-sparkring", flag, f"{kernel}{flag}")
    found = said(copy)
    pair = "`enable-flashinfer-autotune` and `kernel-config.enable_flashinfer_autotune` exclude each other"
    assert pair == found[0]
    assert "mutually exclusive" in found[1]


LAYOUT = (
    "Its KV pages have two sizes (131072 and 163840); the layout LBNHC cannot express them.",
    "write `VLLM_KV_CACHE_LAYOUT: BLHNC` into `env` of the lane",
)


@pytest.mark.parametrize(
    ("has", "new"), [("'LBNHC'", "VLLM_KV_CACHE_LAYOUT: LBNHC\n"), ("not set", "VLLM_OTHER: BLHNC\n")]
)
def test_a_layout_that_cannot_express_the_pages_is_refused(copy: Path, has: str, new: str) -> None:
    lane_edit(copy, "mimo26-flash-mopd-4x-sparkring", "VLLM_KV_CACHE_LAYOUT: BLHNC\n", new)
    found = said(copy)
    summary = f"the lane 'mimo26-flash-mopd-4x-sparkring' needs VLLM_KV_CACHE_LAYOUT=BLHNC in `env`; it is {has}"
    assert [summary, LAYOUT[1]] == [found[0], found[2]]
    assert found[1].startswith(LAYOUT[0])


def test_a_loader_that_made_junk_is_refused(copy: Path) -> None:
    lane_edit(copy, "mimo26-pro-mopd-8x-sparkring", "load-format: b12x", "load-format: instanttensor")
    found = said(copy)
    assert (
        'the lane \'mimo26-pro-mopd-8x-sparkring\' needs `load-format: "b12x"` in `args`; it is "instanttensor"'
    ) == found[0]
    assert "The lane then answers junk in many languages." in found[1]


def test_speed_beyond_the_context_is_refused(copy: Path) -> None:
    lane_edit(
        copy, "glm53-kindling-2x", "      stall: 10m\n",
        "      stall: 10m\n      performance: {context: 262144, at_least: 20}\n",
    )  # fmt: skip
    assert (
        "measured with a context of 262144 and 128 more, a stream is 262272 tokens; the lane 'glm53-kindling-2x' takes "
        "163840 at most (`max-model-len`)"
    ) == said(copy)[0]


SIX = "the lane 'glm53-kindling-6x' cannot be split so: "


def test_six_nodes_need_the_padded_model_and_the_padded_drafter(copy: Path) -> None:
    lane_edit(copy, "glm53-kindling-6x", "model: glm53-flash-tp6pad", "model: glm53-flash")
    found = [line for line in said(copy) if line.startswith(SIX)]
    assert [
        f"{SIX}32 attention heads and 8 KV heads cannot be divided by tensor 6: tensor can be 1, 2, 4, 8",
        f"{SIX}64 attention heads cannot be divided by tensor 6: tensor can be 1, 2, 4",
    ] == found


def test_the_parked_lane_says_why_and_what_has_to_happen(copy: Path) -> None:
    edit(copy / "placements/day.yaml", ("lane: mimo26-flash-mopd-4x,", "lane: mimo26-flash-mopd-4x-vllm,"))
    found = said(copy)
    assert "the lane 'mimo26-flash-mopd-4x-vllm' is parked" == found[0]
    assert "its pages have two sizes" in found[1]
    assert "It can be placed again when the wrapper sits on a vLLM that was qualified for MiMo" in found[1]


def test_the_fabric_is_the_clusters(copy: Path) -> None:
    lane_edit(copy, "mimo26-flash-mopd-4x", "env: {HF_HUB_OFFLINE: 1}", "env: {NCCL_IB_HCA: mlx5_0}")
    assert "lanes.mimo26-flash-mopd-4x.env: `NCCL_IB_HCA` belongs to the cluster" == said(copy)[0]


def test_two_lanes_on_one_node_are_refused(copy: Path) -> None:
    line = "placements:\n  - {lane: glm53-kindling-6x, cluster: 6nodes-switch}"
    edit(copy / "placements/bench.yaml", ("placements:", line))
    found = said(copy, "bench")
    shared = "mimo26-flash-mopd-4x on 4nodes-switch and glm53-kindling-6x on 6nodes-switch share dgx1, dgx2, dgx3, dgx4"
    assert shared == found[0]


def test_a_fabric_without_the_wires_is_refused(copy: Path) -> None:
    edit(copy / "placements/day.yaml", ("cluster: 4nodes-switch", "cluster: 2nodes-dac"), ("-4x,", "-2x-sparkring,"))
    assert specs.load(copy / "fleet.yaml", RULES)
    edit(copy / "nodes.yaml", ('f1: {name: enp1s0f1np1, hca: "rocep1s0f1,roceP2p1s0f1"', "f1: {name: enp1s0f1np1"))
    assert "interface 'f1' of dgx1 names no `hca`: mimo26-flash-mopd-2x-sparkring needs RDMA" == said(copy)[0]


def test_what_is_invented_is_marked() -> None:
    made_up = re.compile(r"^.*sha256:[0-9a-f]{1,12}0{48,}.*$", re.MULTILINE)
    for path in sorted(EXAMPLE.rglob("*.yaml")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            if made_up.match(line):
                assert "invented" in " ".join(lines[max(0, number - 2) : number + 1]), f"{path.name}: {line}"
