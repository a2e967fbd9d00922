"""The facts script's output, recorded, and what is read from it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from reconciler.core.observed import Gpu, Listener
from reconciler.nodes.facts import SCRIPT, HostFacts, parse

SAMPLES = Path(__file__).parents[2] / "fixtures" / "facts"
CONTAINER = "0f1e2d3c4b5a69788796a5b4c3d2e1f0" * 2


def sample(name: str) -> HostFacts:
    found = parse((SAMPLES / name).read_text())
    assert found is not None
    return found


def test_root_sees_processes_and_their_containers() -> None:
    found = sample("lab-root.txt")
    inside = "f36ec6b69ce4f0378741b741a41fb33c68dd082a99bd5c9b3ca9c1a54e79aec4"
    assert found.listeners == (Listener(22, "10.79.0.11", "sshd"), Listener(8123, "*", "busybox", inside))
    assert (found.machine, found.boot_id) == ("x86_64", "03c3151f-f07f-4f4e-bd00-af1a69e6bac2")
    assert (found.memory_total_bytes, found.memory_available_bytes) == (24683656 * 1024, 22623476 * 1024)
    assert found.disk_free == {"/var/lib/docker": 81108312 * 1024}


def test_another_user_sees_the_ports_alone() -> None:
    assert sample("lab-guest.txt").listeners == (Listener(22, "10.79.0.13"), Listener(8123))


def test_noise_around_the_output_does_no_harm() -> None:
    """Start-up files may print anything, before and after; systemd names a container's cgroup its own way."""
    found = sample("gb10-noisy.txt")
    assert found.machine == "aarch64"
    assert Listener(30000, "*", "VLLM::EngineCor", CONTAINER) in found.listeners
    assert {item.address for item in found.listeners} == {"127.0.0.53", "*", "::1"}


def test_a_gpu_that_shares_the_memory_does_not_say_how_much() -> None:
    assert sample("gb10-noisy.txt").gpus == (Gpu("NVIDIA GB10", None, "580.95.05"),)


def test_missing_tools_leave_facts_unknown() -> None:
    """No uname, no df, no ss: the kernel's own table of sockets does."""
    found = sample("no-tools.txt")
    assert (found.machine, found.memory_total_bytes, found.disk_free) == (None, None, {})
    addresses = [(item.port, item.address) for item in found.listeners]
    assert addresses == [(22, "10.79.0.11"), (8080, "127.0.0.1"), (8123, "*"), (8124, "::1")]
    assert found.gpus == (Gpu("NVIDIA H200", 143771 * 1024 * 1024, "570.124.06"),) * 2
    assert not found.has_python


@pytest.mark.parametrize("output", ["", "This account is not available.\n", "\n@@fleet begin\n\n@@fleet machine\n"])
def test_a_script_that_did_not_run_to_its_end_says_nothing(output: str) -> None:
    assert parse(output) is None


@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
def test_the_script_runs_here(shell: str, tmp_path: Path) -> None:
    """In the shells of the distributions we meet, and with arguments."""
    (tmp_path / "link").symlink_to("nowhere")
    lost = [str(tmp_path / "link"), str(tmp_path / "no" / "such file"), "/nothing"]
    paths = [f"path:{path}" for path in [*lost, str(tmp_path), "/"]]
    argv = [shell, "-s", "--", "disk:/", "disk:/no such folder", *paths]
    done = subprocess.run(argv, input=SCRIPT, capture_output=True, text=True, check=True)
    found = parse(done.stdout)
    assert found is not None
    assert found.disk_free["/"] > 0
    assert "/no such folder" not in found.disk_free
    assert tuple(lost) == found.missing_paths
    assert done.stderr == ""
    assert found.has_python is (shutil.which("python3") is not None)
