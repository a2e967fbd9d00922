"""A large fleet loads in about a second, and no rule is quadratic."""
# ruff: noqa: SIM300 - what is expected stands on the left

import time
from pathlib import Path

from specs import load
from tests.unit.specs.helpers import DIGEST, errors, write


def _fleet(nodes: int) -> str:
    lines = ["fleet: large", "nodes:"]
    for i in range(nodes):
        address = f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}"
        lines.append(
            f"  n{i}: {{ssh: {{host: n{i}.lan, user: ops}}, platform: linux/arm64, gpus: 1, memory: 128GiB,"
            f" interfaces: {{f0: {{name: e0, hca: mlx5_0, address: {address}}}}}, paths: {{models: /m}}}}"
        )
    quarter = range(nodes // 4)
    lines.append("clusters:")
    lines += [
        f"  c{i}: {{nodes: [n{4 * i}, n{4 * i + 1}, n{4 * i + 2}, n{4 * i + 3}], interface: f0}}" for i in quarter
    ]
    lines.append("lanes:")
    for i in quarter:
        lines += [
            f"  l{i}:",
            "    engine: vllm",
            f"    image: ghcr.io/owner/engine@{DIGEST}",
            "    parallel: {tensor: 4}",
            "    memory: 96GiB",
            "    args: {kv-cache-dtype: bfloat16, max-num-seqs: 16, compilation-config: {sizes: [1, 2, 4]}}",
            '    env: {A: b, HF_TOKEN: {secret: "env:HF_TOKEN"}}',
            '    mounts: [{source: "{paths.models}/x", target: /models}]',
            "    health: {boot: 40m, probes: [{chat: hello, expect: hello}]}",
        ]
    lines.append("placements:")
    lines += [f"  - {{lane: l{i}, cluster: c{i}}}" for i in quarter]
    return "\n".join(lines) + "\n"


def _seconds(path: Path) -> float:
    start = time.perf_counter()
    load(path).fingerprint  # noqa: B018 - what is measured
    return time.perf_counter() - start


def test_a_thousand_nodes_load_in_about_a_second(tmp_path: Path) -> None:
    path = write(tmp_path, _fleet(1000))
    assert min(_seconds(path) for _ in range(3)) < 3.0  # a third of a second on an idle machine


def test_four_times_the_nodes_take_about_four_times_as_long(tmp_path: Path) -> None:
    small, large = write(tmp_path, _fleet(500), "s.yaml"), write(tmp_path, _fleet(2000), "l.yaml")
    assert min(_seconds(large) for _ in range(3)) < 10 * min(_seconds(small) for _ in range(3))


def test_a_thousand_faults_are_found_in_seconds(tmp_path: Path) -> None:
    text = _fleet(1000).replace("lane: l", "lane: x").replace("[n", "[m")
    start = time.perf_counter()
    assert 500 == len(errors(tmp_path, text).diagnostics)
    assert time.perf_counter() - start < 10.0
