"""Bad input and faults, each ending in a clear message, the right exit code, and nothing changed that must not be.

In the first part a lane stands on node3 and another is wanted on node1 and node2; whatever goes wrong there, `plan`
and `apply --yes` say the same, and no container of any node is touched. The rest has labs of its own making: boots
that fail, faults in the middle of an apply, a state that cannot be written, disks that are full.
"""

import functools
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from state.errors import HARMLESS

from . import Lab, disk, serving, specfile
from .fleet_cli import FLEET, Desk, Ran, checked, containers, desk, environment, names, read_until
from .node import Node
from .shell import side_by_side
from .test_lab import beside, free_subnet

pytestmark = pytest.mark.lab

PAIR, SOLO = ("pair", "pair-a"), ("solo", "single-3")


@pytest.fixture(scope="module")
def standing(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lane on node3; node1 and node2 have its image and nothing else."""
    lab.reset()
    lab.preload("llamacpp", ["node1", "node2"])
    lab.preload("tiny", ["node1"])
    desk(lab, tmp_path_factory.mktemp("standing"), SOLO).apply()
    yield lab
    lab.reset()


@pytest.fixture
def wanting(standing: Lab, tmp_path: Path) -> Desk:
    """A desk where one lane is in sync, and one is missing."""
    return desk(standing, tmp_path, PAIR, SOLO)


def assert_says(ran: Ran, rc: int, *phrases: str) -> None:
    assert rc == ran.rc, ran.said
    for phrase in phrases:
        assert phrase in ran.said, f"{phrase!r} is not in:\n{ran.said}"


def assert_changes_nothing(made: Desk, rc: int, *phrases: str) -> None:
    """`plan` and `apply --yes` say so, and all containers are as before."""
    before = containers(made.lab)
    commands = (["plan"], ["apply", "--yes"])
    for ran in side_by_side(functools.partial(made.fleet, *command, "--deadline", "3") for command in commands):
        assert_says(ran, rc, *phrases)
    assert before == containers(made.lab)


# specs that are wrong


@dataclass(frozen=True)
class Wrong:
    """One mistake: the file it is in, what is replaced by what, and what the message has to say."""

    name: str
    file: str
    old: str
    new: str
    phrases: tuple[str, ...]


SPECS = (
    Wrong("unknown key", "fleet.yaml", "placements:", "placemnts:", ("unknown key", "did you mean 'placements'?")),
    Wrong("wrong type", "lanes.yaml", "nodes: 2", "nodes: two", ("lanes.pair.nodes: wants a whole number",)),
    Wrong("no such lane", "fleet.yaml", "lane: pair", "lane: piar", ("no lane is named 'piar'", "did you mean 'pair'")),
    Wrong("no such cluster", "fleet.yaml", "cluster: pair-a", "cluster: pair-b", ("no cluster is named 'pair-b'",)),
    Wrong("no such node", "inventory.yaml", "- node3", "- node9", ("no node is named 'node9'",)),
    Wrong("no such model", "lanes.yaml", "model: bigram", "model: bigrm", ("did you mean 'bigram'?",)),
    Wrong("tag", "lanes.yaml", "@sha256:[0-9a-f]*", ":latest", ("is not pinned by digest", "fleet pin")),
    Wrong("no such engine", "lanes.yaml", "engine: llamacpp", "engine: llamacp", ("did you mean 'llamacpp'?",)),
    Wrong(
        "no such file",
        "fleet.yaml",
        "lanes.yaml",
        "lane.yaml",
        ("include: no file matches 'lane.yaml'", "looked for in /"),
    ),
)


@pytest.mark.parametrize("wrong", SPECS, ids=lambda wrong: wrong.name)
def test_a_wrong_spec_is_told_with_its_place(wanting: Desk, wrong: Wrong) -> None:
    path = wanting.folder / wrong.file
    text, times = re.subn(wrong.old, wrong.new, path.read_text(), count=1)
    assert times == 1
    path.write_text(text)
    assert_refused_spec(wanting, *wrong.phrases)


CONTENTS = {
    "empty": (b"", "the file is empty"),
    "not YAML": (b"{{{: not yaml [", "not valid YAML"),
    "not text": (bytes(range(128, 256)), "is not UTF-8"),
    "binary": (b"\x7fELF\x00\x01\x02", "control character"),
    "a list": (b"[]", "a spec is a mapping, found a list"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_that_is_no_spec(wanting: Desk, name: str) -> None:
    content, phrase = CONTENTS[name]
    (wanting.folder / "fleet.yaml").write_bytes(content)
    assert_refused_spec(wanting, "fleet.yaml:1:", phrase)


def test_lanes_that_want_the_same_nodes_are_both_named_with_their_places(wanting: Desk) -> None:
    wanting.place(PAIR, ("quad", "quad"))
    assert_refused_spec(wanting, "fleet.yaml:10:3", "fleet.yaml:8:3", "quad on quad", "pair on pair-a", "node1, node2")


def test_a_spec_that_is_not_there(wanting: Desk) -> None:
    for name, phrase in {"none.yaml": "no such file", ".": "is a folder, not a file"}.items():
        assert_says(wanting.fleet("plan", "--file", name), 1, name, phrase)


def assert_refused_spec(made: Desk, *phrases: str) -> None:
    """Exit 1, the place as file:line:column, nothing on standard output, and no node was even asked."""
    ran = made.fleet("apply", "--yes")
    assert_says(ran, 1, *phrases)
    assert re.search(r"[a-z]+\.yaml:\d+:\d+: ", ran.err), ran.err
    assert ran.out == ""
    assert not (made.folder / ".fleet").exists()


def test_a_spec_that_places_nothing_is_taken_for_a_mistake(wanting: Desk) -> None:
    wanting.place()
    assert_changes_nothing(wanting, 3, "the spec places no lane, and these run: single-3/solo", "fleet down --all")


# nodes that cannot be reached


def stranger(made: Desk) -> str:
    path = made.folder / "stranger"
    disk.new_key(path, comment="stranger")
    return str(path)


@dataclass(frozen=True)
class Way:
    """A way in to node1 that does not work: what the spec has under `ssh`, and what is said."""

    ssh: dict[str, object]
    phrases: tuple[str, ...]


WAYS = {
    "no such name": Way(
        {"host": "no-such-host.invalid"}, ("the name no-such-host.invalid does not resolve", "check ssh.host")
    ),
    "refused": Way({"port": 2222}, (":2222 refused the connection", "is sshd running")),
    "no permission on the Docker socket": Way(
        {"user": "guest"}, ("guest may not use the Docker socket /var/run/docker.sock", "usermod -aG docker guest")
    ),
    "no key file": Way(
        {"identity_file": "/nonexistent/key"}, ("the key /nonexistent/key cannot be used", "ssh.identity_file")
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_a_node_that_does_not_let_us_in(wanting: Desk, name: str) -> None:
    wanting.edit_node("node1", **WAYS[name].ssh)
    assert_node1_left_alone(wanting, *WAYS[name].phrases)


def test_a_key_that_the_node_does_not_know(wanting: Desk) -> None:
    wanting.edit_node("node1", identity_file=stranger(wanting))
    assert_node1_left_alone(
        wanting, "did not let root in by key", str(wanting.folder / "stranger"), "ssh-copy-id", "name the key"
    )


def test_an_unknown_host_key_comes_with_the_line_to_add(wanting: Desk) -> None:
    """And with that line added the node is let in."""
    known = wanting.folder / "known_hosts"
    wanting.edit_node("node1", host_key=None, known_hosts=str(known))
    line = f"{wanting.lab.nodes['node1'].address} {' '.join(wanting.lab.nodes['node1'].host_key.split()[:2])}"
    assert_node1_left_alone(wanting, "is not known", line, str(known), "ssh-keygen -lf")
    known.write_text(line + "\n")
    assert wanting.fleet("plan").rc == 0


def break_host_key(node: Node) -> None:
    node.change_host_key()


FAULTS: dict[str, tuple[Callable[[Node], object], tuple[str, ...]]] = {
    "sshd stopped": (Node.stop_sshd, ("refused the connection", "is sshd running")),
    "link cut": (Node.cut_link, (":22 did not answer within 3 s", "is the machine on", "Try `ssh root@10.")),
    "powered off": (Node.power_off, ("10.", "sshd")),
    "another host key": (break_host_key, ("the host key of", "changed", "somebody may be in between")),
    "Docker not running": (lambda node: node.stop_docker(crash=True), ("Docker on", "does not answer", "systemctl")),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_node_that_is_broken(wanting: Desk, name: str) -> None:
    act, phrases = FAULTS[name]
    node = wanting.lab.nodes["node1"]
    act(node)
    try:
        since = time.monotonic()
        assert_node1_left_alone(wanting, *phrases)
        assert time.monotonic() - since < 2 * (3 + 4)
    finally:
        node.mend()


def assert_node1_left_alone(made: Desk, *phrases: str) -> None:
    """The gang on it is deferred, what else there is goes on: here, nothing."""
    assert_changes_nothing(
        made, 4, "1 unreachable", "! node1: ", "deferred: pair-a/pair: node1 cannot be read", *phrases
    )


# what is refused before anything is touched


def test_an_image_that_its_source_does_not_have(wanting: Desk) -> None:
    other = wanting.lab.images["llamacpp"][:-4] + "0000"
    wanting.edit_lane("pair", image=other)
    assert_changes_nothing(
        wanting, 3, "x pair-a/pair", other, "is not on node1, and its source does not have it", "push the image"
    )


def test_an_image_of_another_architecture(wanting: Desk) -> None:
    name = next(name for name in wanting.lab.images if name.startswith("llamacpp-"))
    wanting.edit_lane("pair", image=wanting.lab.images[name])
    assert_changes_nothing(wanting, 3, "is made for linux/", "; node1 is linux/", "pin the digest of an image")


def test_a_node_that_is_declared_as_what_it_is_not(wanting: Desk) -> None:
    wanting.edit("inventory.yaml", lambda content: content["nodes"]["node1"].update(platform="linux/s390x"))
    assert_changes_nothing(wanting, 3, "node1 is linux/", "the spec says linux/s390x", "correct `platform`")


def test_a_port_that_a_foreign_container_has(wanting: Desk) -> None:
    node = wanting.lab.nodes["node1"]
    serve = [wanting.lab.images["tiny"], "httpd", "-f", "-p", "30000"]
    node.docker("run", "-d", "--name", "squatter", "--network", "host", *serve)
    try:
        assert_changes_nothing(
            wanting, 3, "port 30000 of node1 is taken by foreign container squatter", "stop it yourself"
        )
        assert "foreign: squatter on node1 (port 30000)" in wanting.fleet("plan").out
    finally:
        node.docker("rm", "-f", "squatter")


def test_a_port_that_a_process_has(wanting: Desk) -> None:
    node = wanting.lab.nodes["node1"]
    node.exec(["/usr/sbin/sshd", "-p", "30000", "-o", "PidFile=/run/second.pid"])
    try:
        assert_changes_nothing(wanting, 3, "port 30000 of node1 is taken by process sshd", "or give the cluster")
    finally:
        node.exec(["sh", "-c", "kill $(cat /run/second.pid)"])


def test_a_secret_that_is_not_set_fails_before_the_cut_and_is_never_shown(wanting: Desk) -> None:
    wanting.place(SOLO)
    wanting.edit_lane("solo", env={"HF_TOKEN": {"secret": "env:HF_TOKEN"}})
    before = containers(wanting.lab)
    unset = wanting.fleet("apply", "--yes")
    assert_says(unset, 6, "secret env:HF_TOKEN: the variable is not set here", "failed before anything was stopped")
    assert before == containers(wanting.lab)
    for command in ("plan", "plan --json", "status --json", "drift --format json"):
        assert "hush-hush" not in wanting.fleet(*command.split(), env={"HF_TOKEN": "hush-hush"}).said


# using it wrongly, and using it in pipes

USES: tuple[tuple[list[str], str], ...] = (
    ([], "Usage: fleet"),
    (["aply"], "No such command 'aply'"),
    (["plan", "--frobnicate"], "No such option: --frobnicate"),
    (["plan", "--deadline", "soon"], "--deadline"),
    (["plan", "--deadline", "0"], "greater than"),
    (["plan", "--format", "xml"], "markdown"),
    (["plan", "--out", "none/plan.json"], "none/plan.json: no such file or directory"),
    (["down", "--yes"], "name one lane, or say --all"),
    (["down", "solo", "--all", "--yes"], "name one lane, or say --all"),
    (["down", "nolane", "--yes"], "no lane named 'nolane' (known: pair, quad, solo)"),
    (["logs", "nolane"], "it has: pair, quad, solo"),
    (["logs"], "Missing argument"),
)


def test_wrong_use_is_exit_one(wanting: Desk) -> None:
    before = containers(wanting.lab)
    said = side_by_side(functools.partial(wanting.fleet, *args) for args, _ in USES)
    for ran, (_, phrase) in zip(said, USES, strict=True):
        assert_says(ran, 1, phrase)
    assert before == containers(wanting.lab)


@pytest.mark.parametrize("command", [["apply"], ["down", "solo"], ["down", "--all"]])
def test_without_a_terminal_nobody_is_asked_and_nothing_is_done(wanting: Desk, command: list[str]) -> None:
    before = containers(wanting.lab)
    assert_says(wanting.fleet(*command, stdin="y\n"), 1, "nobody to ask: say --yes")
    assert before == containers(wanting.lab)


def test_streams_that_are_closed_are_no_trouble(wanting: Desk) -> None:
    """As some supervisors start their children: without the three streams every program counts on."""
    for command, rc, said in (("apply <&-", 1, "nobody to ask"), ("plan >&-", 0, ""), ("plan <&- >&- 2>&-", 0, "")):
        argv = ["sh", "-c", f'"$0" {command}', FLEET]
        done = subprocess.run(
            argv, cwd=wanting.folder, env=environment(), capture_output=True, text=True, check=False, timeout=30
        )
        assert_says(checked(Ran(done.returncode, done.stdout, done.stderr)), rc, said)


@pytest.mark.parametrize("command", ["plan", "plan --json", "status", "drift", "logs solo --tail 1000"])
def test_a_reader_that_goes_away_is_no_trouble(wanting: Desk, command: str) -> None:
    with wanting.started(*command.split()) as process:
        assert process.stdout
        process.stdout.close()
        assert process.stderr
        said = process.stderr.read()
        assert process.wait(30) in {0, 1}
    assert said == ""


def test_an_apply_goes_on_when_nobody_reads(wanting: Desk) -> None:
    """Half a gang because `head` had seen enough would be a bad joke."""
    wanting.edit_lane("pair", args={"ctx-size": 256})
    with wanting.started("apply", "--yes") as process:
        assert process.stdout
        read_until(process, "creating")
        process.stdout.close()
        process.wait(60)
        assert process.stderr
        assert "Traceback" not in process.stderr.read()
    assert names(wanting.lab).keys() == {"node1", "node2", "node3"}
    assert wanting.fleet("plan", "--detailed-exitcode").rc == 0
    assert wanting.fleet("down", "pair", "--yes").rc == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_only_looks_ends_at_once(wanting: Desk, number: int) -> None:
    node = wanting.lab.nodes["node2"]
    node.cut_link()
    try:
        with wanting.started("plan", "--deadline", "30") as process:
            time.sleep(2.5)  # it waits for node2 now
            since = time.monotonic()
            process.send_signal(number)
            out, err = process.communicate(timeout=20)
    finally:
        node.mend_link()
    assert (process.returncode, out, err) == (130, "", "fleet: interrupted\n")
    assert time.monotonic() - since < 5


# a state that cannot be used: checked before the first effect


@dataclass(frozen=True)
class Bad:
    """A `.fleet` that cannot be used: made and undone, and what is said."""

    make: Callable[[Path], object]
    undo: Callable[[Path], object]
    phrases: tuple[str, ...]


def run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)


def damaged(folder: Path) -> None:
    folder.mkdir()
    (folder / "state.db").write_bytes(b"no database at all " * 500)


def tiny(folder: Path) -> None:
    folder.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=300k", "none", str(folder))


def read_only(folder: Path) -> None:
    folder.mkdir()
    run("mount", "-t", "tmpfs", "-o", "ro", "none", str(folder))


def unmounted(folder: Path) -> None:
    run("umount", str(folder))


STATES = {
    "a file": Bad(lambda folder: folder.write_text(""), Path.unlink, ("is no folder", "mv ", HARMLESS)),
    "read-only": Bad(read_only, unmounted, ("cannot be opened: ", "Make ")),
    "damaged": Bad(damaged, shutil.rmtree, ("is damaged, or not a state", "Start anew with `mv ", HARMLESS)),
    "full": Bad(tiny, unmounted, ("the disk is full", "Free some disk space")),
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_that_cannot_be_written_ends_an_apply_before_its_first_effect(wanting: Desk, name: str) -> None:
    """And the plan is the same as without."""
    bad, folder = STATES[name], wanting.folder / ".fleet"
    plan, before = wanting.fleet("plan", "--json"), containers(wanting.lab)
    bad.make(folder)
    try:
        assert_says(wanting.fleet("apply", "--yes"), 1, str(folder), *bad.phrases)
        again = wanting.fleet("plan", "--json")
        assert (plan.rc, plan.out) == (again.rc, again.out)  # beside it, that holds cannot be shown
        assert before == containers(wanting.lab)
    finally:
        bad.undo(folder)


def test_a_plan_does_without_the_boot_times_of_a_damaged_state(wanting: Desk) -> None:
    damaged(wanting.folder / ".fleet")
    wanting.place(("quad", "quad"))
    assert_says(wanting.fleet("plan"), 0, "no boot times in this plan: ", "is damaged", "no boot is recorded yet")


def test_a_state_that_fills_up_in_the_middle_ends_the_run_and_says_how_to_go_on(wanting: Desk) -> None:
    folder = wanting.folder / ".fleet"
    folder.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=18m", "none", str(folder))
    try:
        with wanting.started("apply", "--yes") as process:
            read = read_until(process, "ok  creating")
            with pytest.raises(OSError), (folder / "ballast").open("wb") as file:
                file.write(b"x" * 2**25)
            out, err = process.communicate(timeout=60)
        ran = checked(Ran(process.returncode, read + out, err))
        assert ran.rc in {6, 7}
        assert_says(ran, ran.rc, "nothing goes on unrecorded", "the disk is full", "`fleet apply` goes on from here")
        (folder / "ballast").unlink()
        wanting.apply()
        assert names(wanting.lab).keys() == {"node1", "node2", "node3"}
    finally:
        unmounted(folder)
    assert wanting.fleet("down", "pair", "--yes").rc == 0


# boots that fail


@pytest.fixture
def serving_solo(clean_lab: Lab, tmp_path: Path) -> Desk:
    """A lane that serves on node3, about to be replaced there by the lane `next`."""
    made = desk(clean_lab, tmp_path, SOLO)
    made.apply()
    clean_lab.preload("tiny", ["node3"])
    made.place(("next", "single-3"))
    return made


BOOTS: dict[str, tuple[str, dict[str, object], tuple[str, ...]]] = {
    "exits at once": ("echo boom; exit 3", {}, ("rank 0 on node3 exited 3", "last log line:", "| boom")),
    "never healthy": (
        "echo waiting; exec sleep 600",
        {"boot": "3s"},
        ("not healthy within its boot budget of 3 s", "30000/health on node3: nothing listens there", "| waiting"),
    ),
    "stalls": (
        "echo loading; exec sleep 600",
        {"boot": "60s", "stall": "2s"},
        ("no progress for 2s, neither in the logs nor in memory or disk", "| loading"),
    ),
}


@pytest.mark.parametrize("name", BOOTS)
def test_a_boot_that_fails_leaves_nothing_unproved_and_keeps_what_was(serving_solo: Desk, name: str) -> None:
    script, health, phrases = BOOTS[name]
    serving_solo.custom("next", script, health={"boot": "4s", "interval": "200ms", **health})
    ran = serving_solo.fleet("apply", "--yes")
    back = "its boot failed and was rolled back; what ran before serves again: single-3/solo"
    assert_says(ran, 6, *phrases, f"single-3/next: {back}", "to try the same again: `fleet apply --retry`")
    found = [line.split()[1:] for line in containers(serving_solo.lab)["node3"]]
    assert sorted(found) == [["fleet-next-r0-v1.unproved", "exited"], ["fleet-solo-r0-v1", "running"]]
    assert_says(serving_solo.fleet("apply", "--yes"), 3, "this version was put aside at ", "`fleet apply --retry`")
    serving_solo.place(SOLO)
    serving_solo.apply()
    assert {"node3": ["fleet-solo-r0-v1"]} == names(serving_solo.lab)


def test_garbage_is_not_let_live(serving_solo: Desk) -> None:
    """It is healthy, lists its model and answers with 200."""
    serving_solo.place(SOLO)
    path = "{paths.models}/garbage.gguf"
    serving_solo.edit("lanes.yaml", lambda content: content["models"]["bigram"].update(path=path))
    ran = serving_solo.fleet("apply", "--yes")
    assert_says(
        ran, 6, f"{specfile.QUESTION!r} got ", "expected 'Paris'", "last 20 log lines", "serves again: single-3/solo"
    )
    assert {"node3": ["fleet-solo-r0-v1"]} == names(serving_solo.lab)
    assert "single-3/solo: healthy, out-of-sync" in serving_solo.fleet("status").out


def test_a_worker_that_dies_in_the_boot_ends_it_for_the_gang(clean_lab: Lab, tmp_path: Path) -> None:
    """Another gang of the same run is confirmed all the same."""
    made = desk(clean_lab, tmp_path, PAIR, SOLO)
    script = 'case "$0" in *rpc*) echo out of luck; exit 9;; esac; exec "$0" "$@"'
    made.edit_lane("pair", entrypoint=["sh", "-c", script])
    ran = made.fleet("apply", "--yes")
    assert_says(
        ran, 6, "rank 1 on node2 exited 9", "| out of luck", "pair: its boot failed and was rolled back; nothing served"
    )
    assert {"node3": ["fleet-solo-r0-v1"]} == names(clean_lab)
    assert "single-3/solo: healthy, in-sync, reachable" in made.fleet("status").out


# nodes and images that fail in the middle


def test_a_node_that_is_off_holds_up_only_its_own_lane(clean_lab: Lab, tmp_path: Path) -> None:
    clean_lab.nodes["node2"].power_off()
    made = desk(clean_lab, tmp_path, PAIR, SOLO)
    assert_says(
        made.fleet("apply", "--yes", "--deadline", "3"), 4, "deferred: pair-a/pair", "1 booted; not reached: node2"
    )
    assert {"node3": ["fleet-solo-r0-v1"]} == names_of(clean_lab, "node1", "node3", "node4")
    assert "pair-a/pair: unknown, unknown, unreachable" in made.fleet("status", "--deadline", "3").out


def test_two_applies_at_once_make_one_set_of_containers(clean_lab: Lab, tmp_path: Path) -> None:
    """Whoever comes second stands back or does the same; nothing is there twice, and one more apply settles it."""
    clean_lab.preload("llamacpp", ["node1", "node2"])
    made = desk(clean_lab, tmp_path, PAIR)
    both = side_by_side([functools.partial(made.fleet, "apply", "--yes")] * 2)
    assert {ran.rc for ran in both} <= {0, 3, 5}, "\n".join(ran.said for ran in both)
    made.apply()
    found = {name: len(there) for name, there in containers(clean_lab).items()}
    assert {"node1": 1, "node2": 1, "node3": 0, "node4": 0} == found


def test_a_node_that_dies_in_the_middle_of_an_apply(clean_lab: Lab, tmp_path: Path) -> None:
    """Told with the node and the way on; when it is back, the next apply goes on with what is there."""
    made = desk(clean_lab, tmp_path, PAIR, SOLO)
    with made.started("apply", "--yes") as process:
        read = read_until(process, "ok  creating fleet-pair")
        clean_lab.nodes["node2"].power_off()
        out, err = process.communicate(timeout=90)
    ran = checked(Ran(process.returncode, read + out, err))
    assert ran.rc in {6, 7}, ran.said
    assert_says(ran, ran.rc, "[unreachable]", "when node2 can be reached again: `fleet apply` goes on from here")
    assert {"node3": ["fleet-solo-r0-v1"]} == names_of(clean_lab, "node1", "node3", "node4")
    clean_lab.nodes["node2"].power_on()
    made.apply()
    assert names(clean_lab).keys() == {"node1", "node2", "node3"}


def test_a_lost_reply_is_settled_by_looking(clean_lab: Lab, tmp_path: Path) -> None:
    """sshd dies with its sessions while a rank starts, and comes back: the run goes on and starts nothing twice."""
    made = desk(clean_lab, tmp_path, PAIR)
    node = clean_lab.nodes["node2"]
    since = time.time()
    with made.started("apply", "--yes") as process:
        read = read_until(process, "ok  creating fleet-pair-r1")
        node.stop_sshd()
        time.sleep(0.5)
        node.start_sshd()
        out, err = process.communicate(timeout=90)
    checked(Ran(process.returncode, read + out, err))
    assert process.returncode == 0, read + out + err
    window = ["--since", f"{since:.3f}", "--until", f"{time.time():.3f}"]
    happened = node.docker("events", *window, "--filter", "type=container", "--format", "{{.Action}}").split()
    assert {"create": 1, "start": 1} == {action: happened.count(action) for action in ("create", "start")}
    url = f"http://{clean_lab.nodes['node1'].address}:30000"
    assert "Paris" in serving.ask(url)


def test_a_registry_that_is_down_is_not_missed_where_a_node_has_the_image(serving_solo: Desk) -> None:
    made = serving_solo
    made.lab.nodes["node4"].remove_images()
    made.place(("quad", "quad"))
    made.lab.registry.stop()
    try:
        assert_says(made.fleet("plan"), 0, "missing on node4")
        made.apply()
    finally:
        made.lab.registry.start()
    assert 4 == len(names(made.lab))


def test_a_registry_that_is_down_stops_no_lane(serving_solo: Desk) -> None:
    """The new image is nowhere else."""
    made = serving_solo
    before = containers(made.lab)
    made.place(("quad", "quad"))
    made.edit_lane("quad", image=made.lab.images["tiny-multi"])
    made.lab.registry.stop()
    try:
        assert_says(made.fleet("plan"), 0, "node1 node2 node3 node4")
        ran = made.fleet("apply", "--yes")
    finally:
        made.lab.registry.start()
    assert_says(
        ran,
        6,
        "cannot be brought to node4",
        made.lab.registry.endpoint,
        "quad/quad: failed before anything was stopped",
    )
    assert before["node3"] == [line for line in containers(made.lab)["node3"] if "solo" in line]
    assert {"node3": ["fleet-solo-r0-v1"]} == names(made.lab)


def test_a_foreign_container_with_our_name_is_left_alone(clean_lab: Lab, tmp_path: Path) -> None:
    clean_lab.preload("tiny", ["node3"])
    node = clean_lab.nodes["node3"]
    for name in ("fleet-solo-r0-v1", "fleet-solo-r0-v2.unproved"):
        node.docker("create", "--name", name, clean_lab.images["tiny"], "sleep", "600")
    before = set(containers(clean_lab)["node3"])
    made = desk(clean_lab, tmp_path, SOLO)
    made.apply()
    assert {"node3": ["fleet-solo-r0-v3"]} == names(clean_lab)
    assert made.fleet("down", "--all", "--yes").rc == 0
    assert before == set(containers(clean_lab)["node3"])


def test_a_disk_that_fills_up_in_the_pull_stops_no_lane(lab: Lab, tmp_path: Path) -> None:
    second = Lab.up(beside(lab), free_subnet(), 3, small_disk_mb={"node2": 200})
    try:
        made = desk(second, tmp_path, SOLO)
        made.edit(
            "inventory.yaml",
            lambda content: content["clusters"].update(all={"nodes": ["node3", "node2"], "interface": "f0"}),
        )
        made.apply()
        before = containers(second)
        made.place(("pair", "all"))
        second.nodes["node2"].fill_disk(leave_mb=40)
        refused = made.fleet("apply", "--yes")
        assert_says(refused, 3, "node2 has", "MiB free, and needs", "to fetch", "unpacked", "free space below")
        assert_says(made.fleet("drift"), 2, "disk-low", "node2 has", "MiB free below /var/lib/docker")
        assert before == containers(second)
        second.nodes["node2"].free_disk()
        second.nodes["node2"].fill_disk(leave_mb=74)  # as much as an image of this size takes, most of the time
        ran = made.fleet("apply", "--yes")
        assert_says(
            ran, 6, "no space left on device", "node2", "docker system df", "failed before anything was stopped"
        )
        assert before["node3"] == [line for line in containers(second)["node3"] if "solo" in line]
        second.nodes["node2"].free_disk()
        second.nodes["node2"].fill_disk(leave_mb=5)
        assert_says(made.fleet("apply", "--yes"), 3, "node2 has", "free space below")
        second.nodes["node2"].free_disk()
        made.apply()
        assert {"node2": ["fleet-pair-r1-v1"], "node3": ["fleet-pair-r0-v1"]} == names(second)
    finally:
        second.down()


def names_of(lab: Lab, *nodes: str) -> dict[str, list[str]]:
    found = {name: lab.nodes[name].docker("ps", "--format", "{{.Names}}").split() for name in nodes}
    return {name: sorted(there) for name, there in found.items() if there}
