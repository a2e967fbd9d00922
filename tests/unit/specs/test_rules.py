"""What must hold between objects: each rule, the exact place it points at, and what it accepts."""

from pathlib import Path

import pytest

from specs.fields import ULIMITS
from tests.unit.specs.helpers import DIGEST, edited, faults, loaded, messages

Edit = tuple[str, str]

PLACED = "  - {lane: duo, cluster: pair}"
SHARED = ("    nodes: 2\n", "    nodes: 2\n    shares: true\n")
SOLO_SHARED = ("  solo:\n", "  solo:\n    shares: true\n")

CASES: dict[str, tuple[str, list[Edit]]] = {
    "a node of a cluster is not defined": ("7:22: no node is named 'n9'", [("[n1, n2]", "[n1, n9]")]),
    "an interface is missing on a node": (
        "8:42: clusters.trio.interface: no interface 'f0' on n3",
        [("port: 30001", "interface: f0")],
    ),
    "a model is not defined": ("16:12: no model is named 'mm'", [("model: m\n", "model: mm\n")]),
    "a lane is not defined": ("21:12: no lane is named 'dou'", [("lane: duo", "lane: dou")]),
    "a cluster is not defined": ("21:26: no cluster is named 'pear'", [("cluster: pair", "cluster: pear")]),
    "a parked lane is placed": (
        "22:12: the lane 'duo' is parked",
        [("    nodes: 2\n", "    nodes: 2\n    parked: {reason: it hangs}\n")],
    ),
    "a mount names a path a node lacks": (
        "16:23: no path 'cache' on n1, n2",
        [("    nodes: 2\n", '    nodes: 2\n    mounts: [{source: "{paths.cache}", target: /c}]\n')],
    ),
    "a model names a path a node lacks": ("10:13: no path 'models' on n1", [("paths: {models: /m}", "paths: {}")]),
    "a command line names a path a node lacks": (
        "15:17: no path 'x' on n1, n2",
        [("    nodes: 2\n", '    argv: [run, "{paths.x}/y"]\n    nodes: 2\n')],
    ),
    "an entrypoint names a path a node lacks": (
        "15:18: no path 'x' on n1, n2",
        [("    nodes: 2\n", '    entrypoint: ["{paths.x}/y"]\n    nodes: 2\n')],
    ),
    "a model drafts for itself": (
        "10:40: the model 'm' is named as its own drafter",
        [('"{paths.models}/m"', '"{paths.models}/m", draft: m')],
    ),
    "a cluster is too small": ("21:26: the lane 'duo' takes 4 nodes, the cluster has 2", [("nodes: 2", "nodes: 4")]),
    "a lane cannot be spread evenly over its nodes": (
        "16:15: tensor 3 = 3 GPUs cannot be spread evenly over 2 nodes",
        [("    nodes: 2\n", "    nodes: 2\n    parallel: {tensor: 3}\n")],
    ),
    "a lane wants more GPUs than its nodes have": (
        "16:15: tensor 2 x pipeline 2 = 4 GPUs on 2 nodes is 2 a node, too many for n1, n2 (n1 has 1)",
        [("    nodes: 2\n", "    nodes: 2\n    parallel: {tensor: 2, pipeline: 2}\n")],
    ),
    "a node without GPUs among nodes that have some": (
        "16:15: tensor 2 = 2 GPUs on 2 nodes is 1 a node, too many for n2 (n2 has 0)",
        [
            ("    nodes: 2\n", "    nodes: 2\n    parallel: {tensor: 2}\n"),
            ("2.lan}, platform: linux/arm64, gpus: 1", "2.lan}, platform: linux/arm64"),
        ],
    ),
    "a lane takes fewer GPUs a rank than it is split over": (
        "16:15: tensor 4 = 4 GPUs on 2 nodes is 2 a node, too many for n1, n2 (n1 has 1)",
        [("    nodes: 2\n", "    nodes: 2\n    parallel: {tensor: 4}\n    gpus: 1\n"), ("gpus: 1", "gpus: 2")],
    ),
    "two interfaces of a node are one": (
        "3:135: 'f1' and 'f0' of n1 are the same interface e0",
        [("address: 10.0.0.1}}", "address: 10.0.0.1}, f1: {name: e0, address: 10.0.1.1}}")],
    ),
    "a lane needs RDMA on a cluster without a fabric": (
        "23:26: the cluster 'pair' has no fabric: duo needs RDMA",
        [("    nodes: 2\n", "    nodes: 2\n    rdma: true\n    devices: [/dev/infiniband]\n"),
         ("[n1, n2], interface: f0", "[n1, n2]")],
    ),
    "a lane needs RDMA and a node names no adapter": (
        "4:93: interface 'f0' of n2 names no `hca`: duo needs RDMA",
        [("    nodes: 2\n", "    nodes: 2\n    rdma: true\n    devices: [/dev/infiniband/uverbs0]\n"),
         ("name: e0", "name: e0, hca: r0")],
    ),
    "a cluster is too small for the parallelism": (
        "21:26: the lane 'duo' takes 8 nodes, the cluster has 2",
        [("nodes: 2", "parallel: {tensor: 2, pipeline: 2, data: 2}")],
    ),
    "a placement names a node outside of its cluster": (
        "21:44: 'n3' is no node of the cluster 'pair'",
        [("cluster: pair}", "cluster: pair, nodes: [n1, n3]}")],
    ),
    "a placement names too few nodes": (
        "21:39: the lane 'duo' takes 2 nodes, 1 named here",
        [("cluster: pair}", "cluster: pair, nodes: [n1]}")],
    ),
    "a placement names a node twice": (
        "21:44: placements[0].nodes[1]: 'n1' is named twice",
        [("cluster: pair}", "cluster: pair, nodes: [n1, n1]}")],
    ),
    "a rank needs more memory than its node has": (
        "16:13: a rank needs 128 GiB, too much for n1, n2 (n1 has 64 GiB)",
        [("    nodes: 2\n", "    nodes: 2\n    memory: 128GiB\n")],
    ),
    "a rank takes more GPUs than its node has": (
        "16:11: a rank takes 2 GPUs, too many for n1, n2 (n1 has 1)",
        [("    nodes: 2\n", "    nodes: 2\n    gpus: 2\n")],
    ),
    "lanes that share need more memory than the node has": (
        "26:5: the lanes that share n1 need 80 GiB on n1, which has 64 GiB",
        [
            ("    nodes: 2\n", "    nodes: 2\n    memory: 40GiB\n    shares: true\n"),
            ("  solo:\n", "  solo:\n    memory: 40GiB\n    shares: true\n"),
            (PLACED, f"{PLACED}\n  - {{lane: solo, cluster: trio}}"),
        ],
    ),
    "a lane is placed twice on a cluster": (
        "22:5: duo is placed on pair twice",
        [(PLACED, f"{PLACED}\n{PLACED}")],
    ),
    "two lanes on one node": (
        "22:5: solo on trio and duo on pair share n1",
        [(PLACED, f"{PLACED}\n  - {{lane: solo, cluster: trio}}")],
    ),
    "two lanes on one node, the first of which shares": (
        "23:5: solo on trio and duo on pair share n1",
        [SHARED, (PLACED, f"{PLACED}\n  - {{lane: solo, cluster: trio}}")],
    ),
    "two lanes on one node, the second of which shares": (
        "23:5: solo on trio and duo on pair share n1",
        [SOLO_SHARED, (PLACED, f"{PLACED}\n  - {{lane: solo, cluster: trio}}")],
    ),
    "a lane placed twice on one node by two clusters": (
        "22:5: duo on trio and duo on pair share n1, n2",
        [(PLACED, f"{PLACED}\n  - {{lane: duo, cluster: trio}}")],
    ),
    "lanes that share have one port": (
        "24:5: port 30000 is taken twice on n1",
        [SHARED, SOLO_SHARED, (", port: 30001", ""), (PLACED, f"{PLACED}\n  - {{lane: solo, cluster: trio}}")],
    ),
    "a port of a lane is the port of its cluster": (
        "22:5: port 30000 is taken twice on n1",
        [("    nodes: 2\n", "    nodes: 2\n    ports: {rpc: 30000}\n")],
    ),
    "two ports of a lane are the same": (
        "22:5: port 50052 is taken twice on n1, n2",
        [("    nodes: 2\n", "    nodes: 2\n    ports: {rpc: 50052, metrics: 50052}\n")],
    ),
    "the rendezvous port is the HTTP port": (
        "21:5: port 29501 is taken twice on n1",
        [("interface: f0}\n  trio", "interface: f0, port: 29501}\n  trio")],
    ),
    "a lane sets the interface of the fabric": (
        "15:11: lanes.duo.env: `NCCL_SOCKET_IFNAME` belongs to the cluster",
        [("    nodes: 2\n", "    env: {NCCL_SOCKET_IFNAME: e0}\n    nodes: 2\n")],
    ),
    "a lane sets the address of the rendezvous": (
        "15:12: lanes.duo.args: `master_addr` belongs to the cluster",
        [("    nodes: 2\n", "    args: {master_addr: n1}\n    nodes: 2\n")],
    ),
    "a model sets the port": (
        "10:40: models.m.args: `port` belongs to the cluster",
        [('/m"}', '/m", args: {port: 1}}')],
    ),
    "a limit that Docker does not know": (
        "15:15: lanes.duo.ulimits: 'memlok' is not the name of a limit",
        [("    nodes: 2\n", "    ulimits: {memlok: -1}\n    nodes: 2\n")],
    ),
    "two mounts have one target": (
        "15:61: lanes.duo.mounts[1].target: '/m/' is mounted twice",
        [("    nodes: 2\n", "    mounts: [{source: /a, target: /m}, {source: /b, target: /m/}]\n    nodes: 2\n")],
    ),
    "two mounts have one target, written in another way": (
        "15:63: lanes.duo.mounts[1].target: '//m' is mounted twice",
        [("    nodes: 2\n", "    mounts: [{source: /a, target: /./m}, {source: /b, target: //m}]\n    nodes: 2\n")],
    ),
    "a mount takes the place of the image": (
        "15:35: lanes.duo.mounts[0].target: nothing can be mounted at /",
        [("    nodes: 2\n", "    mounts: [{source: /a, target: //}]\n    nodes: 2\n")],
    ),
    "two nodes are one machine": (
        "4:20: 'n2' and 'n1' are the same machine: N1.lan port 22",
        [("host: n2.lan", "host: N1.lan")],
    ),
    "two nodes have one address": (
        "4:113: 'n2' and 'n1' have the same address 10.0.0.1",
        [("10.0.0.2", "10.0.0.1")],
    ),
    "ranks meet at a loopback address": (
        "3:113: 127.0.0.1 is a loopback address: no other node can reach it",
        [("10.0.0.1", "127.0.0.1")],
    ),
    "ranks meet at a loopback SSH host": (
        "3:20: localhost is a loopback address: no other node can reach it",
        [("host: n1.lan", "host: localhost"), (", interface: f0", "")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("expected", "edits"), CASES.values(), ids=CASES.keys())
def test_a_rule_points_at_the_fault_and_says_nothing_else(tmp_path: Path, expected: str, edits: list[Edit]) -> None:
    assert [expected] == faults(tmp_path, edited(*edits))


ACCEPTED: dict[str, list[Edit]] = {
    "a parked lane that is not placed": [("  solo:\n", "  solo:\n    parked: {reason: it hangs, reopen_when: x}\n")],
    "a lane on the first nodes of a larger cluster": [("cluster: pair", "cluster: trio")],
    "the nodes in an order of the user's": [("cluster: pair}", "cluster: pair, nodes: [n2, n1]}")],
    "a lane on the CPU": [("    nodes: 2\n", "    nodes: 2\n    gpus: 0\n    parallel: {tensor: 4}\n")],
    "attention in data parallel groups of the tensor parallel ones": [
        ("    nodes: 2\n", "    parallel: {tensor: 2, data: 2}\n    args: {enable-dp-attention: true}\n")
    ],
    "a lane that needs RDMA, on one node": [("  solo:\n", "  solo:\n    rdma: true\n    devices: [/dev/infiniband]\n")],
    "lanes that share, with ports of their own": [
        SHARED,
        SOLO_SHARED,
        (PLACED, f"{PLACED}\n  - {{lane: solo, cluster: trio}}"),
    ],
    "two lanes on nodes of their own": [(PLACED, f"{PLACED}\n  - {{lane: solo, cluster: trio, nodes: [n3]}}")],
    "clusters that share nodes": [("[n1, n2, n3]", "[n1, n2]")],
    "memory that nobody declares": [
        (", memory: 64GiB", ""),
        (", memory: 64GiB", ""),
        ("    nodes: 2\n", "    nodes: 2\n    memory: 1TiB\n"),
    ],
    "a loopback address of a lane on one node": [("10.0.0.1", "127.0.0.1"), ("nodes: 2", "nodes: 1")],
    "a loopback address of two nodes": [("10.0.0.1", "127.0.0.1"), ("10.0.0.2", "127.0.0.1"), (PLACED, "  []")],
    "one host behind two jump hosts": [
        ("host: n1.lan", "host: node, proxy_jump: a"),
        ("host: n2.lan", "host: node, proxy_jump: b"),
    ],
    "one host with two ports": [("host: n1.lan", "host: h, port: 1"), ("host: n2.lan", "host: h, port: 2")],
    "variables of NCCL that are no part of the fabric": [("nodes: 2", "nodes: 2\n    env: {NCCL_ALGO: Ring}")],
    "a path of the nodes that are taken only": [("cluster: pair", "cluster: trio")],
    "mounts one below the other": [
        ("nodes: 2", "nodes: 2\n    mounts: [{source: /a, target: /m}, {source: /b, target: /m/n}]")
    ],
    "every limit that Docker knows": [
        ("nodes: 2", f"nodes: 2\n    ulimits: {{{', '.join(f'{name}: 1' for name in ULIMITS)}}}")
    ],
    "a registry at its own name": [("nodes:\n", "registries: {ghcr.io: {}}\nnodes:\n")],
    "braces in a command line": [("nodes: 2", "nodes: 2\n    argv: ['{\"a\": 1}', '{paths.models}']")],
}


@pytest.mark.parametrize("edits", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_no_rule_forbids_is_accepted(tmp_path: Path, edits: list[Edit]) -> None:
    assert loaded(tmp_path, edited(*edits)).fleet


@pytest.mark.parametrize(
    ("said", "edits"),
    [
        ("did you mean 'n2'?", [("[n1, n2]", "[n1, n2x]")]),
        ("Defined: duo, solo.", [("lane: duo", "lane: dou")]),
        ("did you mean 'duo'?", [("lane: duo", "lane: dou")]),
        ("did you mean 'f0'?", [("interface: f0}", "interface: f00}")]),
        ("did you mean 'models'?", [("{paths.models}", "{paths.model}")]),
        ("The reason: it hangs", [("nodes: 2", "nodes: 2\n    parked: {reason: it hangs}")]),
        (
            "It can be placed again when 0.9 is out.",
            [("nodes: 2", "nodes: 2\n    parked: {reason: x, reopen_when: 0.9 is out}")],
        ),
        ("The lane says `nodes: 4`.", [("nodes: 2", "nodes: 4")]),
        (
            "The lane does not say `nodes`, so it takes tensor 4 x pipeline 1 x data 1, one GPU a node.",
            [("nodes: 2", "parallel: {tensor: 4}")],
        ),
        (
            "solo on trio is placed at fleet.yaml:22:5, duo on pair at fleet.yaml:21:5.",
            [(PLACED, f"{PLACED}\n  - {{lane: solo, cluster: trio}}")],
        ),
        ("It is first placed at fleet.yaml:21:5.", [(PLACED, f"{PLACED}\n{PLACED}")]),
        ("It follows from the cluster's `nccl.gid_index`.", [("nodes: 2", "env: {NCCL_IB_GID_INDEX: 3}")]),
        ("did you mean 'memlock'?", [("nodes: 2", "ulimits: {memlok: -1}")]),
        (
            "mounts[0] has the target '/m': one would hide the other.",
            [("nodes: 2", "mounts: [{source: /a, target: /m}, {source: /b, target: /m/}]")],
        ),
        ("'n1' has it at fleet.yaml:3:20.", [("host: n2.lan", "host: n1.lan")]),
        ("The 2 ranks of duo on pair at fleet.yaml:21:5 must reach each other.", [("10.0.0.1", "127.0.0.1")]),
        ("It is the port `rpc` of duo on pair, and the HTTP port of duo on pair at fleet.yaml:22:5.",
         [("    nodes: 2\n", "    nodes: 2\n    ports: {rpc: 30000}\n")]),
    ],
)  # fmt: skip
def test_a_rule_says_why_and_what_to_do(tmp_path: Path, said: str, edits: list[Edit]) -> None:
    assert said in [line.strip() for line in messages(tmp_path, edited(*edits)).splitlines()]


@pytest.mark.parametrize(
    "key",
    [
        "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "GLOO_SOCKET_IFNAME", "UCX_NET_DEVICES",
        "TP_SOCKET_IFNAME", "OMPI_MCA_btl_tcp_if_include", "MASTER_ADDR", "MASTER_PORT", "VLLM_HOST_IP", "NODE_RANK",
        "RANK", "WORLD_SIZE",
    ],
)  # fmt: skip
def test_the_cluster_owns_the_environment_of_the_fabric(tmp_path: Path, key: str) -> None:
    text = edited(("    nodes: 2\n", f"    env: {{{key}: x}}\n    nodes: 2\n"))
    assert [f"15:11: lanes.duo.env: `{key}` belongs to the cluster"] == faults(tmp_path, text)


@pytest.mark.parametrize(
    "key",
    ["master-addr", "master_port", "node-rank", "nnodes", "dist-init-addr", "host", "port", "rpc", "headless", "Host"],
)
def test_the_cluster_owns_the_arguments_of_the_fabric(tmp_path: Path, key: str) -> None:
    text = edited(("    nodes: 2\n", f"    args: {{{key}: x}}\n    nodes: 2\n"))
    assert [f"15:12: lanes.duo.args: `{key}` belongs to the cluster"] == faults(tmp_path, text)


def test_names_are_checked_in_objects_that_are_not_valid(tmp_path: Path) -> None:
    lane = f"  bad:\n    engine: []\n    image: {DIGEST}\n    model: mm\n    env: {{RANK: 1}}\n"
    text = edited(("placements:\n", f"{lane}placements:\n  - {{lane: dou, clstr: pair}}\n"))
    expected = [
        "21:13: lanes.bad.engine: wants text, found a list",
        "23:12: no model is named 'mm'",
        "24:11: lanes.bad.env: `RANK` belongs to the cluster",
        "26:5: placements[0]: `cluster` is missing",
        "26:12: no lane is named 'dou'",
        "26:17: placements[0]: unknown key 'clstr'",
    ]
    assert expected == faults(tmp_path, text)


def test_an_object_that_is_not_valid_is_still_defined(tmp_path: Path) -> None:
    text = edited(("n1.lan}, platform: linux/arm64", "n1.lan}"), ("engine: vllm", "engine: []"))
    assert ["3:3: nodes.n1: `platform` is missing", "13:13: lanes.duo.engine: wants text, found a list"] == faults(
        tmp_path, text
    )
