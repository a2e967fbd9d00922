"""A command that is told to stop is gone within five seconds, whatever it was doing, and leaves nothing behind.

With the real command on real nodes: what is measured is the wall time from the signal to the end of the process.
"""

import functools
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import state
from reconciler.nodes.sockets import PREFIX

from . import Lab, network, procs
from .fleet_cli import Desk, Ran, checked, desk, names, read_until
from .node import Node
from .shell import run, wait_until
from .test_nodes_images import slow_registry

pytestmark = pytest.mark.lab

PROMISED_S = 5.0
PAIR, SOLO = ("pair", "pair-a"), ("solo", "single-3")
ELSEWHERE = "registry.example"
NEVER = "trap '' TERM; echo waiting; while :; do sleep 1; done"


@dataclass(frozen=True)
class Scene:
    """A command at the moment of the signal. `moment`: the output that is waited for; `pause_s`: and so long after it.

    `until`: what has to hold after the moment, given the command's pid. `fault`: what breaks then, before the signal.
    """

    args: tuple[str, ...]
    moment: str | None = None
    pause_s: float = 1.0
    fault: Callable[[], object] = lambda: None
    until: Callable[[int], bool] = lambda pid: True


APPLY = ("apply", "--yes")


def stopped(made: Desk, scene: Scene, number: int = signal.SIGINT) -> Ran:
    """Run up to the moment, send the signal; how the command ended, which has to be in time and without a trace."""
    with made.started(*scene.args) as process:
        read = read_until(process, scene.moment) if scene.moment else ""
        wait_until(f"what {scene} is about", functools.partial(scene.until, process.pid), seconds=60)
        scene.fault()
        time.sleep(scene.pause_s)
        assert process.poll() is None, read + process.communicate()[0]
        ran, seconds = signalled(process, number, read)
    left = [*children_of(process.pid), *folders_of(process.pid)]
    assert (130, []) == (ran.rc, left), ran.said
    assert seconds < PROMISED_S, ran.said
    assert_readable(made)
    return ran


def talks_to(node: Node, pid: int) -> bool:
    """Whether a command or a child of it has a connection to a node, or waits for one."""
    ours = [pid, *(other for other in procs.all_pids() if procs.status(other, "PPid") == [str(pid)])]
    connections = run(["ss", "-Htnp", "dst", node.address]).stdout
    return any(f"pid={each}," in connections for each in ours)


def signalled(process: "subprocess.Popen[str]", number: int, read: str) -> tuple[Ran, float]:
    since = time.monotonic()
    process.send_signal(number)
    process.wait(30)
    seconds = time.monotonic() - since
    out, err = process.communicate(timeout=5)
    return checked(Ran(process.returncode, read + out, err)), seconds


def children_of(pid: int) -> list[str]:
    """Command lines of `ssh` programs that read a configuration which this controller wrote."""
    lines = (command_line(other) for other in procs.all_pids())
    return [line for line in lines if f"{PREFIX}{pid}-" in line]


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:  # gone in the meantime
        return ""


def folders_of(pid: int) -> list[str]:
    return [str(path) for path in Path("/tmp").glob(f"{PREFIX}{pid}-*")]


def assert_readable(made: Desk) -> None:
    """The journal is whole: every run that is not ended has open entries, or none at all."""
    store = state.read_store(made.folder / ".fleet")
    if store is None:
        return
    try:
        assert () == store.verify()
    finally:
        store.close()


def sessions(node: Node) -> list[str]:
    """What sshd does on a node for somebody: sessions, forwards and programs. Own daemons are no part of it."""
    found = node.exec(["ps", "-eo", "args"]).stdout.splitlines()
    return [line for line in found if line.startswith("sshd: ") and "[listener]" not in line]


def listeners(node: Node) -> set[str]:
    return {line.split()[3] for line in node.exec(["ss", "-Hltn"]).stdout.splitlines()}


@pytest.fixture
def quiet_lab(clean_lab: Lab) -> Iterator[Lab]:
    """A lab on which nothing of a controller is left after the test: no session, no forward, no program."""
    before = {name: listeners(node) for name, node in clean_lab.nodes.items()}
    yield clean_lab
    clean_lab.mend()
    for name, node in clean_lab.nodes.items():
        wait_until(f"the sessions on {name} to end", functools.partial(_is_quiet, node, before[name]), seconds=20)


def _is_quiet(node: Node, before: set[str]) -> bool:
    relay = "fleet" in node.exec(["sh", "-c", "ps -eo args | grep '[p]ython' || true"]).stdout
    ports = {item for item in listeners(node) - before if item.startswith("127.0.0.1:")}
    return not sessions(node) and not relay and not ports


@contextmanager
def frozen(node: Node, program: str) -> Iterator[Callable[[], None]]:
    """A function that freezes a program of the node, with all its sessions; it goes on at the end."""
    home = network.namespace_path(node.config.namespace)

    def tell(number: int) -> None:
        procs.end_all(home, procs.named(procs.inside(home), program), number)

    try:
        yield lambda: tell(signal.SIGSTOP)
    finally:
        tell(signal.SIGCONT)


@contextmanager
def cut(node: Node) -> Iterator[Callable[[], None]]:
    try:
        yield node.cut_link
    finally:
        node.mend_link()


FAULTS: dict[str, Callable[[Node], "object"]] = {
    "sshd": functools.partial(frozen, program="sshd"),
    "dockerd": functools.partial(frozen, program="dockerd"),
    "link": cut,
}


@contextmanager
def fault(kind: str, node: Node) -> Iterator[Callable[[], None]]:
    with FAULTS[kind](node) as break_it:  # type: ignore[attr-defined]
        yield break_it


def slow(lab: Lab, folder: Path) -> Desk:
    """A desk with a lane of one rank on node3 that never gets healthy, and does not end when it is asked to."""
    lab.preload("tiny", ["node3"])
    made = desk(lab, folder, ("slow", "single-3"))
    made.custom("slow", NEVER, health={"boot": "5m", "interval": "200ms"}, stop_grace="20s")
    return made


# a lane that is booted, followed and taken down


def test_a_lane_that_never_gets_healthy(quiet_lab: Lab, tmp_path: Path) -> None:
    """Its proof, its logs and its end take long. What the last one came to is found by looking."""
    made = slow(quiet_lab, tmp_path)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        ran = stopped(made, Scene(APPLY, "... proving"), number)
        assert "interrupted; was proving single-3/slow" in ran.out
        assert "`fleet resume` goes on from here" in ran.out
    stopped(made, Scene(("logs", "slow", "--follow"), "waiting"))
    stopped(made, Scene(("down", "slow", "--yes"), "... stopping"))
    quiet_lab.nodes["node3"].docker("kill", "fleet-slow-r0-v1.unproved", check=False)
    assert "stopping fleet-slow-r0-v1.unproved on node3: settled by looking" in made.fleet("resume", "--yes").out
    assert {} == names(quiet_lab)


LOOKS: dict[str, list[tuple[str, int]]] = {
    "sshd": [("plan", signal.SIGINT), ("apply --yes --deadline 30", signal.SIGTERM), ("logs slow", signal.SIGHUP)],
    "dockerd": [
        ("drift", signal.SIGTERM),
        ("apply --yes --deadline 30", signal.SIGINT),
        ("pin slow --from node3", signal.SIGINT),
        ("images gc --yes", signal.SIGTERM),
    ],
    "link": [("status", signal.SIGHUP), ("resume --yes", signal.SIGINT), ("images ls", signal.SIGTERM)],
}
"""What waits for a node that hangs in this way, and by which signal it is ended."""


@pytest.mark.parametrize("kind", FAULTS)
def test_a_node_that_hangs(quiet_lab: Lab, tmp_path: Path, kind: str) -> None:
    """As its lane is proved, as its logs are followed, and before a command has looked at it."""
    made, node = slow(quiet_lab, tmp_path), quiet_lab.nodes["node3"]
    with fault(kind, node) as break_it:
        stopped(made, Scene(APPLY, "... proving", 2.0, break_it))
    with fault(kind, node) as break_it:
        assert "" == stopped(made, Scene(("logs", "slow", "--follow"), "waiting", 1.0, break_it)).err
        for line, number in LOOKS[kind]:
            ran = stopped(made, Scene(tuple(line.split()), until=functools.partial(talks_to, node)), number)
            assert "fleet: interrupted\n" == ran.err, line


# waits and effects of an apply


def test_a_wait_for_memory(quiet_lab: Lab, tmp_path: Path) -> None:
    total_kib = int(Path("/proc/meminfo").read_text().split()[1])
    made = slow(quiet_lab, tmp_path)
    made.edit_lane("slow", memory=f"{total_kib // 1024 - 200}MiB")
    ran = stopped(made, Scene(APPLY, "... waiting for free memory"))
    assert "interrupted; was waiting for free memory" in ran.out


@pytest.mark.parametrize("kind", ["dockerd", "link"])
def test_a_node_that_hangs_in_a_short_effect(quiet_lab: Lab, tmp_path: Path, kind: str) -> None:
    """Creating a container takes no time, unless its node hangs: the intent stays open, and is settled later."""
    quiet_lab.preload("llamacpp", ["node1", "node2"])
    made = desk(quiet_lab, tmp_path, PAIR)
    with fault(kind, quiet_lab.nodes["node1"]) as break_it:
        ran = stopped(made, Scene(APPLY, " steps", 2.0, break_it))
    assert "interrupted; was " in ran.out


def test_the_last_look_at_all_nodes(quiet_lab: Lab, tmp_path: Path) -> None:
    """Another node than those of the plan does not answer when all is done."""
    quiet_lab.preload("llamacpp", ["node3"])
    made = desk(quiet_lab, tmp_path, SOLO)
    with fault("link", quiet_lab.nodes["node4"]) as break_it, made.started(*APPLY) as process:
        read = read_until(process, "... proving")
        break_it()
        read += read_until(process, "ok  confirming")
        time.sleep(1.0)
        ran, seconds = signalled(process, signal.SIGINT, read)
    assert (130, True) == (ran.rc, "interrupted before it was looked at once more" in ran.out), ran.said
    assert seconds < PROMISED_S, ran.said
    assert_readable(made)
    assert ["fleet-solo-r0-v1"] == names(quiet_lab)["node3"]


# pulls


@contextmanager
def elsewhere(lab: Lab, folder: Path, *placements: tuple[str, str]) -> Iterator[Desk]:
    """A desk whose image comes from a slow registry that only the controller reaches."""
    made = desk(lab, folder, *placements)
    name = lab.images["llamacpp"].partition("/")[2]
    with slow_registry(lab, pause_s=0.2) as url:
        made.edit("fleet.yaml", lambda spec: spec.update(registries={ELSEWHERE: {"endpoint": url}}))
        for lane, _ in placements:
            made.edit_lane(lane, image=f"{ELSEWHERE}/{name}")
        yield made


@pytest.mark.parametrize(
    ("placement", "args"),
    [(SOLO, APPLY), (PAIR, ("images", "sync", "--yes"))],
    ids=["from the controller", "by a relay"],
)
def test_a_pull(
    bare_lab: Lab, quiet_lab: Lab, tmp_path: Path, placement: tuple[str, str], args: tuple[str, ...]
) -> None:
    with elsewhere(bare_lab, tmp_path, placement) as made:
        ran = stopped(made, Scene(args, "... pulling", 3.0))
    assert "interrupted; was pulling" in ran.out


@pytest.mark.parametrize("kind", ["dockerd", "link"])
def test_a_pull_by_a_relay_that_hangs(bare_lab: Lab, quiet_lab: Lab, tmp_path: Path, kind: str) -> None:
    with ExitStack() as faults, elsewhere(bare_lab, tmp_path, PAIR) as made:
        both = [faults.enter_context(fault(kind, bare_lab.nodes[name])) for name in ("node1", "node2")]
        hang = Scene(APPLY, "... pulling", 3.0, lambda: [break_it() for break_it in both])
        assert "interrupted; was pulling" in stopped(made, hang).out


def test_a_copy_of_another_nodes_archive(bare_lab: Lab, quiet_lab: Lab, tmp_path: Path) -> None:
    """The registry is gone, node2 hands out its archive, and the node that loads it hangs."""
    bare_lab.preload("llamacpp", ["node2"])
    made, node = desk(bare_lab, tmp_path, ("solo", "single-1")), bare_lab.nodes["node1"]
    made.edit(
        "inventory.yaml",
        lambda spec: spec["clusters"].update({"single-1": {**spec["clusters"]["single-3"], "nodes": ["node1"]}}),
    )
    bare_lab.registry.stop()
    with fault("dockerd", node) as break_it:

        def break_it_in_the_middle() -> None:
            break_it()
            assert loads(node)

        ran = stopped(made, Scene(APPLY, "... pulling", 1.0, break_it_in_the_middle, lambda pid: loads(node)))
        assert "interrupted; was pulling" in ran.out


def loads(node: Node) -> bool:
    """Whether bytes of an archive have come to a node's `docker load`, and not all of them."""
    inside = procs.named(procs.inside(network.namespace_path(node.config.namespace)), "docker")
    return any(read_bytes(pid) > 2**20 for pid in inside if " load" in command_line(pid))


def read_bytes(pid: int) -> int:
    """All that a process has read so far."""
    try:
        return int(Path(f"/proc/{pid}/io").read_text().split()[1])
    except OSError:  # gone in the meantime
        return 0


# more than one signal


def test_a_second_signal_ends_it_at_once_and_takes_its_children_along(
    bare_lab: Lab, quiet_lab: Lab, tmp_path: Path
) -> None:
    with elsewhere(bare_lab, tmp_path, PAIR) as made, ExitStack() as faults:
        both = [faults.enter_context(fault("sshd", bare_lab.nodes[name])) for name in ("node1", "node2")]
        with made.started(*APPLY) as process:
            read = read_until(process, "... pulling")
            time.sleep(3)
            for break_it in both:
                break_it()
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
            ran, seconds = signalled(process, signal.SIGTERM, read)
        assert (130, []) == (ran.rc, [*children_of(process.pid), *folders_of(process.pid)])
        assert seconds < 1
        assert_readable(made)


def test_what_a_ci_job_is_sent_when_it_is_cancelled(quiet_lab: Lab, tmp_path: Path) -> None:
    """SIGINT, SIGTERM 7.5 s later, SIGKILL 2.5 s after that: whichever ends it, the next apply goes on."""
    quiet_lab.preload("llamacpp", ["node1", "node2"])
    made = desk(quiet_lab, tmp_path, PAIR)
    with made.started(*APPLY) as process:
        read_until(process, "... proving")
        for number, patience_s in ((signal.SIGINT, 7.5), (signal.SIGTERM, 2.5), (signal.SIGKILL, 5.0)):
            process.send_signal(number)
            try:
                process.wait(patience_s)
                break
            except subprocess.TimeoutExpired:
                continue
    assert_readable(made)
    made.apply()
    assert {"node1": ["fleet-pair-r0-v1"], "node2": ["fleet-pair-r1-v1"]} == names(quiet_lab)
