"""The drift job under cron, by the very files of `examples/cron`, on a fleet that others have their hands in."""

import hashlib
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import docker
import pytest

from . import Lab, disk, serving
from .fleet_cli import FLEET, Desk, containers, desk, names
from .node import Node
from .shell import run, wait_until

pytestmark = pytest.mark.lab

EXAMPLES = Path(__file__).parents[2] / "examples"
SOLO, PAIR = ("solo", "single-3"), ("pair", "pair-a")


@dataclass(frozen=True)
class Cron:
    """A fleet in which all is as wanted, and the line of the example's crontab."""

    lab: Lab
    desk: Desk
    report: Path

    def look(self, **env: str) -> "subprocess.CompletedProcess[str]":
        """Run the line as cron does: its own environment and shell, no home, no terminal. Nothing may change."""
        before = containers(self.lab)
        settings, line = crontab()
        places = {"FLEET": FLEET, "SPEC": str(self.desk.folder / "fleet.yaml"), "REPORT": str(self.report)}
        places["DRIFT_REPORT"] = str(EXAMPLES / "cron/drift-report")
        assert places.keys() < settings.keys()
        words = [f"{name}={value}" for name, value in {**settings, **places, **env}.items()]
        done = run(["env", "-i", *words, "/bin/sh", "-c", line], cwd=Path("/"), check=False, timeout=60)
        assert before == containers(self.lab)
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        assert {path.name for path in self.report.parent.iterdir()} == {"report.md", "report.md.lock"}
        return done

    def findings(self) -> list[tuple[str, ...]]:
        """The rows of the report: class, where, field, expected, found, remedy."""
        text = self.report.read_text()
        rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
        assert text.endswith("\n")
        assert re.search(rf"^{len(rows)} findings?$", text, re.MULTILINE)
        return [tuple(cell.strip().strip("`") for cell in row.strip("|").split("|")) for row in rows]


def crontab() -> tuple[dict[str, str], str]:
    """The variables and the one command of the example."""
    lines = (EXAMPLES / "cron/crontab").read_text().splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    settings = dict(line.split("=", 1) for line in lines if re.match(r"[A-Z_]+=", line))
    (command,) = [line for line in lines if line.split("=", 1)[0] not in settings]
    *when, line = command.split(maxsplit=5)
    assert len(when) == 5
    assert "%" not in line  # a line break, to cron
    return settings, line


@pytest.fixture(scope="module")
def watched(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A fleet to look at: each test spoils it, and `fleet apply` mends it."""
    lab.reset()
    yield desk(lab, tmp_path_factory.mktemp("watched"), SOLO, PAIR)
    lab.reset()


@pytest.fixture
def cron(watched: Desk, tmp_path: Path) -> Cron:
    watched.lab.mend()
    watched.apply()
    made = Cron(watched.lab, watched, tmp_path / "reports/report.md")
    made.report.parent.mkdir()
    return made


def test_cron_is_silent_when_all_is_as_wanted(cron: Cron) -> None:
    done = cron.look()
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
    assert [] == cron.findings()


@pytest.mark.parametrize(
    "env",
    [
        {"LANG": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"LC_ALL": "POSIX"},
        {"PYTHONIOENCODING": "ascii"},
    ],
    ids="-".join,
)
def test_cron_works_whatever_the_locale(cron: Cron, env: dict[str, str]) -> None:
    cron.lab.nodes["node2"].docker("kill", running(cron.lab, "node2"))
    done = cron.look(**env)
    assert (2, "") == (done.returncode, done.stderr)
    assert "pair-a/pair/1@node2" in {row[1] for row in cron.findings()}
    shown = cron.desk.fleet("drift", env=env)
    assert shown.rc == 2
    assert re.match(r"fleet lab [·?] \d+ finding", shown.out)


def running(lab: Lab, node: str) -> str:
    """The one container that runs on a node."""
    (name,) = names(lab)[node]
    return name


def kill(lab: Lab) -> None:
    lab.nodes["node2"].docker("kill", running(lab, "node2"))


def set_restart(lab: Lab) -> None:
    lab.nodes["node3"].docker("update", "--restart", "always", running(lab, "node3"))


def remove_rank(lab: Lab) -> None:
    lab.nodes["node2"].docker("rm", "-f", running(lab, "node2"))


def remove_lane(lab: Lab) -> None:
    lab.nodes["node3"].docker("rm", "-f", running(lab, "node3"))


@pytest.mark.parametrize(
    ("spoil", "kind", "where", "field"),
    [
        (kill, "runtime", "pair-a/pair/1@node2", "state"),
        (set_restart, "config", "single-3/solo/0@node3", "restart"),
        (remove_rank, "runtime", "pair-a/pair/1@node2", "state"),
        (remove_lane, "intent", "single-3/solo", "placement"),
    ],
)
def test_cron_reports_drift(cron: Cron, spoil: Callable[[Lab], None], kind: str, where: str, field: str) -> None:
    spoil(cron.lab)
    done = cron.look()
    assert (2, "") == (done.returncode, done.stderr)
    assert (kind, where, field) in {row[:3] for row in cron.findings()}
    assert done.stdout.startswith("Drift: ")
    assert done.stdout.endswith(cron.report.read_text())
    mended = cron.desk.apply()
    assert cron.look().returncode == 0, mended.said
    assert cron.findings() == []


@pytest.mark.parametrize("cut", [False, True], ids=["off", "silent"])
def test_cron_tells_a_node_that_does_not_answer_within_the_deadline(cron: Cron, cut: bool) -> None:
    set_restart(cron.lab)
    node = cron.lab.nodes["node2"]
    if cut:
        node.cut_link()
    else:
        node.power_off()
    since = time.monotonic()
    done = cron.look()
    assert time.monotonic() - since < 20  # 10 s is the deadline
    assert (4, "") == (done.returncode, done.stderr)
    assert {("host", "node2", "reach"), ("config", "single-3/solo/0@node3", "restart")} == {
        row[:3] for row in cron.findings()
    }


def test_cron_tells_a_look_that_failed_and_keeps_the_last_report(cron: Cron) -> None:
    cron.look()
    last = cron.report.read_text()
    spec = cron.desk.folder / "fleet.yaml"
    good = spec.read_text()
    spec.write_text("fleet: [\n")
    done = cron.look()
    spec.write_text(good)
    assert done.returncode == 1
    assert "fleet.yaml:2:1: not valid YAML" in done.stderr
    assert "failed (exit 1)" in done.stdout
    assert last == cron.report.read_text()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock as another run would."""
    argv = ["flock", str(path), "sh", "-c", "echo; exec cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        holder.stdout.readline()
        yield


def test_looks_do_not_pile_up(cron: Cron) -> None:
    cron.look()
    with locked(Path(f"{cron.report}.lock")):
        done = cron.look()
    assert (75, "", "") == (done.returncode, done.stdout, done.stderr)
    assert cron.look().returncode == 0


# every class of drift, caused for real


def recreate(node: Node, change: Callable[[dict[str, Any]], object]) -> None:
    """Somebody makes a node's one container anew by hand: the same name and labels, and a change of what it is."""
    (name,) = node.docker("ps", "--format", "{{.Names}}").split()
    api = docker.APIClient(base_url=f"unix://{node.docker_socket}", version="auto")
    made = api.inspect_container(name)
    config: dict[str, Any] = {**made["Config"], "HostConfig": made["HostConfig"]}
    del config["Hostname"]
    change(config)
    node.docker("rm", "-f", name)
    api.start(cast("Any", api).create_container_from_config(config, name)["Id"])
    api.close()


def other_content(node: Node) -> None:
    """The container runs what somebody made of the image, under the name it had."""
    (name,) = node.docker("ps", "--format", "{{.Names}}").split()
    node.docker("commit", "-m", "by hand", name, "localhost/by-hand:1")
    recreate(node, lambda config: config.update(Image="localhost/by-hand:1"))


def kill_process(node: Node) -> None:
    """As the kernel does when memory is short: the process, not Docker."""
    (name,) = node.docker("ps", "--format", "{{.Names}}").split()
    node.exec(["kill", "-9", node.docker("inspect", "-f", "{{.State.Pid}}", name)])
    wait_until("the rank to end", lambda: not node.docker("ps", "-q"), seconds=20)


SOMEBODYS = ("run", "-d", "--name", "somebodys", "--network", "host", "--entrypoint", "sleep")
"""A container that fleet did not make."""


@contextmanager
def listening(node: Node, port: int) -> Iterator[None]:
    """A process of somebody's that has a port."""
    program = f"import socket, time; s = socket.create_server(('0.0.0.0', {port})); time.sleep(100)"
    pid = node.exec(["sh", "-c", f'python3 -c "{program}" >/dev/null 2>&1 & echo $!']).stdout.strip()
    try:
        wait_until("the port", lambda: bool(node.exec(["ss", "-Hltn", f"sport = :{port}"]).stdout), seconds=10)
        yield
    finally:
        node.exec(["kill", pid])


def look_as_data(cron: Cron, *words: str) -> tuple[int, dict[str, Any]]:
    """The report as JSON, under cron's environment."""
    argv = [FLEET, "drift", "--json", "--deadline", "4", "--file", str(cron.desk.folder / "fleet.yaml"), *words]
    done = run(["env", "-i", "PATH=/usr/bin:/bin", "LANG=C", *argv], cwd=Path("/"), check=False, timeout=60)
    return done.returncode, cast("dict[str, Any]", json.loads(done.stdout))


def places(report: dict[str, Any]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The findings by class, address and field."""
    return {(row["class"], row["address"], row["field"]): row for row in report["findings"]}


def flip_model(node: Node) -> None:
    """A bit of the model is another: somewhere in its weights, so that what runs goes on."""
    with (node.disk / "srv/models/good.gguf").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        byte = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([byte[0] ^ 1]))


def switch_off(cron: Cron, name: str) -> None:
    """As at night, and the spec says so."""
    cron.desk.edit("inventory.yaml", lambda content: content["nodes"][name].update(off={"reason": "night"}))
    cron.lab.nodes[name].power_off()


def ignore_foreign(content: dict[str, Any]) -> None:
    rule = {"class": "host", "address": "node3", "field": "container *", "reason": "known", "until": "2999-12-31"}
    content["drift"] = {"ignore": [rule]}


def pin_model(content: dict[str, Any], lab: Lab) -> None:
    sum_ = hashlib.sha256((lab.nodes["node3"].disk / "srv/models/good.gguf").read_bytes()).hexdigest()
    content["models"]["bigram"]["verify"] = {"good.gguf": f"sha256:{sum_}"}


def spoil(cron: Cron, undone: ExitStack) -> None:
    """Something of each class."""
    nodes = cron.lab.nodes
    recreate(nodes["node1"], lambda config: config["Env"].append("MODE=by hand"))
    set_restart_of(nodes["node1"])
    kill_process(nodes["node2"])
    undone.enter_context(listening(nodes["node2"], 50052))
    other_content(nodes["node3"])
    url = f"http://{nodes['node3'].address}:30000/health"
    wait_until("the lane made by hand", lambda: serving.status(url) == 200, seconds=20)
    flip_model(nodes["node3"])
    nodes["node3"].docker(*SOMEBODYS, cron.lab.images["llamacpp"], "600")
    undone.callback(nodes["node3"].docker, "rm", "-f", "somebodys")
    cron.desk.edit_lane("pair", args={"ctx-size": 256})


CAUSED = {
    ("intent", "pair-a/pair", "argv"): False,
    ("config", "pair-a/pair/0@node1", "restart"): False,
    ("config", "pair-a/pair/0@node1", "env.MODE"): True,
    ("runtime", "pair-a/pair/1@node2", "state"): True,
    ("identity", "single-3/solo/0@node3", "image"): True,
    ("identity", "single-3/solo@node3", "model-verify"): False,
    ("host", "node2", "foreign-port"): False,
    ("host", "node3", "container somebodys"): True,
}
"""What is found of it, and whether there is a time from which it is so."""


def test_each_class_of_drift_is_found_with_since_and_evidence_and_gone_after_an_apply(cron: Cron) -> None:
    cron.desk.edit("lanes.yaml", lambda content: pin_model(content, cron.lab))
    cron.desk.edit_lane("pair", env={"MODE": "as wanted"})
    cron.desk.apply()
    switch_off(cron, "node4")
    assert (0, []) == (cron.look().returncode, cron.findings())
    with ExitStack() as undone:
        spoil(cron, undone)
        code, report = look_as_data(cron)
        cron.desk.edit("fleet.yaml", ignore_foreign)
        _, sifted = look_as_data(cron)
    found = places(report)
    assert (2, dict.fromkeys(("node4",), "off")) == (code, unread(report))
    assert CAUSED.keys() <= found.keys()
    for key, is_dated in CAUSED.items():
        assert found[key]["evidence"], key
        assert not is_dated or found[key]["since"].startswith("20"), key
    assert [1] == [rule["count"] for rule in sifted["suppressed"]]
    assert found.keys() - places(sifted).keys() == {("host", "node3", "container somebodys")}
    assert {row["id"] for row in sifted["findings"]} < {row["id"] for row in report["findings"]}
    cron.lab.nodes["node4"].power_on()
    disk.place_models(cron.lab.nodes["node3"].config, cron.lab.record.models)
    cron.desk.apply()
    assert (0, []) == (cron.look().returncode, cron.findings())


def unread(report: dict[str, Any]) -> dict[str, str]:
    return {node["name"]: node["reach"] for node in report["nodes"] if node["reach"] != "reachable"}


def set_restart_of(node: Node) -> None:
    node.docker("update", "--restart", "always", *node.docker("ps", "--format", "{{.Names}}").split())
