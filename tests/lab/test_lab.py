"""The lab holds what it promises: real nodes, real faults, and nothing left behind."""

import subprocess
import time
from pathlib import Path

import pytest

from . import Lab, LabError, cgroups, disk, network, serving
from .__main__ import main
from .config import LabConfig, labs_dir
from .debs import architecture
from .shell import run

pytestmark = pytest.mark.lab


def ssh(lab: Lab, node: str, command: str, *options: str) -> "subprocess.CompletedProcess[str]":
    argv = ["ssh", "-F", str(lab.ssh_config), "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", *options, node, command]
    return run(argv, check=False, timeout=60)


def test_up_again_finds_the_same_lab(lab: Lab) -> None:
    before = {name: node.pid for name, node in lab.nodes.items()}
    again = Lab.up(lab.name, lab.config.subnet, lab.config.nodes)
    assert before == {name: node.pid for name, node in again.nodes.items()}
    assert lab.images == again.images


def test_up_without_saying_how_finds_the_lab_as_it_was_made(lab: Lab) -> None:
    """Nothing is removed for a default."""
    before = {name: node.pid for name, node in lab.nodes.items()}
    again = Lab.up(lab.name)
    assert lab.config == again.config
    assert before == {name: node.pid for name, node in again.nodes.items()}


def test_a_docker_that_died_is_seen_and_comes_back_when_the_node_is_switched_on(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node2"]
    node.stop_docker(crash=True)
    assert next(line for line in clean_lab.status() if line.startswith("node2")).endswith("  on, Docker down")
    assert main(["node", "--name", clean_lab.name, "node2", "on"]) == 0
    assert node.docker("ps", "-q") == ""
    assert next(line for line in clean_lab.status() if line.startswith("node2")).endswith("  on")


def test_docker_works_on_both_generations(clean_lab: Lab) -> None:
    clean_lab.preload("tiny")
    said = {}
    for name, node in clean_lab.nodes.items():
        client, _, server = node.docker("version", "-f", "{{.Client.Version}} {{.Server.Version}}").partition(" ")
        assert client == server
        output = node.docker("run", "--rm", "--network", "host", clean_lab.images["tiny"], "hostname")
        said[name] = (output, server.partition(".")[0], node.docker("info", "-f", "{{.Driver}}"))
    classic, containerd = ("20", "overlay2"), ("28", "overlayfs")
    stores = {"node1": classic, "node2": classic, "node3": containerd, "node4": containerd}
    assert {name: (name, *store) for name, store in stores.items()} == said


def test_an_image_id_means_another_thing_in_each_store(clean_lab: Lab) -> None:
    clean_lab.preload("tiny", ["node1", "node3"])
    tiny = clean_lab.built["tiny"]
    ids = [clean_lab.nodes[name].docker("images", "-q", "--no-trunc") for name in ("node1", "node3")]
    assert tiny.config_digest in ids[0]
    assert tiny.digest in ids[1]


def test_ssh_works_with_strict_host_keys(clean_lab: Lab) -> None:
    said = {name: ssh(clean_lab, name, "hostname").stdout.strip() for name in clean_lab.nodes}
    assert {name: name for name in clean_lab.nodes} == said


def test_a_changed_host_key_is_refused_until_it_is_restored(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node2"]
    node.change_host_key()
    refused = ssh(clean_lab, "node2", "true")
    node.restore_host_key()
    assert refused.returncode == 255
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in refused.stderr
    assert ssh(clean_lab, "node2", "true").returncode == 0


@pytest.mark.parametrize(("user", "allowed"), [("root", True), ("ops", True), ("guest", False)])
@pytest.mark.parametrize("node", ["node1", "node3"])
def test_the_docker_socket_is_for_root_and_ops_only(clean_lab: Lab, node: str, user: str, allowed: bool) -> None:
    asked = ssh(clean_lab, node, "docker ps", "-l", user)
    assert allowed == (asked.returncode == 0)
    assert allowed != ("permission denied" in asked.stderr)


def test_the_registry_is_out_of_reach_from_a_node(clean_lab: Lab) -> None:
    for host in ("127.0.0.1", clean_lab.config.gateway):
        url = f"http://{host}:{clean_lab.registry.port}/v2/"
        assert clean_lab.nodes["node1"].exec(["curl", "-s", "-m", "3", url], check=False).returncode != 0


def test_an_image_of_another_architecture_says_so(clean_lab: Lab) -> None:
    foreign = next(image for image in clean_lab.built.values() if image.architecture != architecture())
    clean_lab.preload(foreign.name, ["node1", "node3"])
    for name in ("node1", "node3"):
        found = clean_lab.nodes[name].docker("inspect", "-f", "{{.Architecture}}", clean_lab.images[foreign.name])
        assert foreign.architecture == found


@pytest.mark.parametrize("names", [["node1", "node3"], ["node3", "node1", "node2", "node4"]])
def test_a_model_answers_over_several_nodes_and_a_broken_one_does_not(clean_lab: Lab, names: list[str]) -> None:
    url = serving.serve(clean_lab, names, alias="capital")
    assert serving.ask(url).strip() == "Paris is the capital of France."
    assert serving.served_models(url) == ["capital"]
    clean_lab.reset()
    url = serving.serve(clean_lab, names, model="garbage")
    assert "Paris" not in serving.ask(url)
    assert serving.status(f"{url}/health") == 200


def test_a_lost_worker_shows_only_when_the_head_generates(clean_lab: Lab) -> None:
    url = serving.serve(clean_lab, ["node1", "node3"])
    clean_lab.nodes["node3"].docker("kill", "worker")
    assert serving.status(f"{url}/health") == 200
    with pytest.raises(OSError):
        serving.ask(url)
    assert clean_lab.nodes["node1"].docker("wait", "head") not in ("", "0")


def test_power_off_ends_everything_and_keeps_the_disk(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node3"]
    clean_lab.preload("tiny", ["node3"])
    node.docker("run", "-d", "--name", "lane", "--network", "host", clean_lab.images["tiny"], "sleep", "600")
    node.power_off()
    assert not node.is_on
    assert not cgroups.of(node.config.namespace)
    with pytest.raises(LabError):
        node.exec(["true"])
    node.power_on()
    assert node.docker("inspect", "-f", "{{.State.Running}}", "lane") == "false"


def test_a_cut_link_is_silent_and_mends(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node4"]
    node.cut_link()
    cut = ssh(clean_lab, "node4", "true", "-o", "ConnectTimeout=2")
    node.mend_link()
    assert cut.returncode == 255
    assert ssh(clean_lab, "node4", "true").returncode == 0


def test_a_delay_is_felt_and_goes_away(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node2"]
    node.delay(150)
    since = time.monotonic()
    slow = ssh(clean_lab, "node2", "head -c 3000000 /dev/zero | wc -c")
    felt = time.monotonic() - since
    node.delay(0)
    assert slow.stdout.strip() == "3000000"
    assert felt > 1.5  # a handshake alone takes several round trips of 0.3 s
    since = time.monotonic()
    assert ssh(clean_lab, "node2", "true").returncode == 0
    assert time.monotonic() - since < felt


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("name", ["node1", "node3"])
def test_docker_stops_and_starts(clean_lab: Lab, name: str, crash: bool) -> None:
    node = clean_lab.nodes[name]
    node.stop_docker(crash=crash)
    assert node.exec(["docker", "ps"], check=False).returncode != 0
    node.start_docker()
    assert node.docker("ps", "-q") == ""


def test_a_daemon_that_cannot_start_says_why_at_once(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node2"]
    config = node.disk / "etc/docker/daemon.json"
    good = config.read_text()
    node.stop_docker()
    config.write_text('{"nonsense": 1}')
    since = time.monotonic()
    try:
        with pytest.raises(LabError, match="configuration option: nonsense"):
            node.start_docker()
    finally:
        config.write_text(good)
    assert time.monotonic() - since < 10
    node.start_docker()


def test_sshd_stops_with_its_sessions_and_starts(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node1"]
    argv = ["ssh", "-F", str(clean_lab.ssh_config), "node1", "echo ready; sleep 60"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == b"ready\n"
        node.stop_sshd()
        assert session.wait(timeout=10) != 0
    assert "refused" in ssh(clean_lab, "node1", "true").stderr
    node.start_sshd()
    assert ssh(clean_lab, "node1", "true").returncode == 0


def test_reset_undoes_every_fault(lab: Lab) -> None:
    lab.nodes["node1"].power_off()
    lab.nodes["node2"].cut_link()
    lab.nodes["node3"].stop_docker(crash=True)
    lab.nodes["node4"].stop_sshd()
    (lab.nodes["node4"].disk / "srv/models/good.gguf").write_bytes(b"torn")
    lab.registry.stop()
    lab.reset(images=True)
    assert all(ssh(lab, name, "docker ps -q").returncode == 0 for name in lab.nodes)
    assert all(node.docker("images", "-aq") == "" for node in lab.nodes.values())
    assert (lab.nodes["node4"].disk / "srv/models/good.gguf").stat().st_size > 1_000_000
    assert lab.registry.alive


def test_a_second_lab_lives_beside_the_first_and_leaves_nothing(lab: Lab) -> None:
    second = Lab.up(beside(lab), free_subnet(), 2, small_disk_mb={"node2": 200})
    try:
        node = second.nodes["node2"]
        node.fill_disk(leave_mb=5)
        with pytest.raises(LabError, match=r"no space left|exit"):
            second.preload("llamacpp", ["node2"])
        node.free_disk()
        second.preload("tiny", ["node2"])
        node.docker("run", "-d", "--name", "left", "--network", "host", second.images["tiny"], "sleep", "600")
        assert ssh(second, "node1", "hostname").stdout.strip() == "node1"
    finally:
        second.down()
    assert traces(second.name) == []
    assert all(node.is_on for node in lab.nodes.values())


def test_a_taken_subnet_is_refused(lab: Lab) -> None:
    with pytest.raises(LabError, match=f"{lab.config.bridge} has"):
        Lab.up(beside(lab), lab.config.subnet, 1)
    assert traces(beside(lab)) == []


def test_a_subnet_is_checked_before_the_lab_of_this_name_is_removed(lab: Lab) -> None:
    second = Lab.up(beside(lab), free_subnet(), 1)
    try:
        pid = second.nodes["node1"].pid
        with pytest.raises(LabError, match=f"{lab.config.bridge} has"):
            Lab.up(beside(lab), lab.config.subnet)
        assert second.nodes["node1"].pid == pid
    finally:
        second.down()


def test_a_lab_that_cannot_be_made_leaves_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_disk(*_: object, **__: object) -> None:
        raise LabError("no disk")

    monkeypatch.setattr(disk, "create", no_disk)
    with pytest.raises(LabError, match="no disk"):
        Lab.up(beside(lab), free_subnet(), 1)
    assert traces(beside(lab)) == []


def test_down_and_up_survive_a_half_made_lab(lab: Lab) -> None:
    half = LabConfig(name=beside(lab), subnet=free_subnet(), nodes=2)
    network.create_bridge(half)
    network.connect(half, half.node(1))
    (half.folder / "node7").mkdir(parents=True)
    made = Lab.up(half.name, half.subnet, 1)
    assert ssh(made, "node1", "hostname").stdout.strip() == "node1"
    made.down()
    Lab.remove(half.name)
    assert traces(half.name) == []


def beside(lab: Lab) -> str:
    """A name for a lab beside this one."""
    return f"{lab.name[:8]}b2"


def free_subnet() -> str:
    """A subnet that nothing on this machine has."""
    for third in range(100, 256):
        config = LabConfig(subnet=f"10.78.{third}.0/24")
        try:
            network.require_free(config)
        except LabError:
            continue
        return config.subnet
    pytest.fail("no free subnet")


def traces(name: str) -> list[str]:
    """Whatever of a lab is still on this machine."""
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if f"/{name}" in line]
    folder = labs_dir() / name
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    running = [line.decode() for line in commands if f"/{name}".encode() in line]
    loops = [line for line in run(["losetup", "-a"]).stdout.splitlines() if f"/{name}/" in line]
    groups = [str(path) for path in cgroups.ROOT.glob(f"*/{name}-*")]
    found = [*network.namespaces(name), *network.links(name), *mounts, *running, *loops, *groups]
    return found + ([str(folder)] if folder.exists() else [])
