"""No rule is quadratic: a large fleet costs what its size says."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from specs import SpecErrors, load
from tests.unit.specs.helpers import DIGEST, write


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


def _calls(path: Path, load_it: Callable[[Path], object]) -> int:
    """How many Python and C functions run: the same on every machine, unlike seconds."""
    count = 0

    def tick(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(tick)
    try:
        load_it(path)
    finally:
        sys.setprofile(None)
    return count


def test_four_times_the_nodes_are_about_four_times_the_work(tmp_path: Path) -> None:
    small, large = write(tmp_path, _fleet(250), "s.yaml"), write(tmp_path, _fleet(1000), "l.yaml")
    assert _calls(large, lambda path: load(path).fingerprint) < 5 * _calls(small, lambda path: load(path).fingerprint)


def test_four_times_the_faults_are_about_four_times_the_work(tmp_path: Path) -> None:
    def faulty(nodes: int) -> str:
        return _fleet(nodes).replace("lane: l", "lane: x").replace("[n", "[m")

    small, large = write(tmp_path, faulty(250), "s.yaml"), write(tmp_path, faulty(1000), "l.yaml")
    assert 500 == len(_faults(large).diagnostics)
    assert _calls(large, _faults) < 5 * _calls(small, _faults)


def _faults(path: Path) -> SpecErrors:
    with pytest.raises(SpecErrors) as caught:
        load(path)
    return caught.value
