"""The program that holds a lease, in the shells that nodes have, under a process that is named as sshd's is."""

import contextlib
import json
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.nodes.lease_program import MARK, Verb, script

SHELLS = {
    name: words
    for name, words in {"dash": ("dash",), "bash": ("bash", "--posix"), "busybox": ("busybox", "sh")}.items()
    if shutil.which(words[0])
}

OURS, THEIRS = json.dumps({"run_id": 'it\'s "ours"'}), json.dumps({"run_id": "theirs"})


class Machine:
    """A Docker socket, a way to start programs under an sshd, and the lease's folder."""

    def __init__(self, folder: Path, shell: tuple[str, ...]) -> None:
        self._key = f"test-{secrets.token_hex(6)}"
        self._shell = shell
        self.sshd = folder / "sshd"
        shutil.copy(shutil.which("bash") or "", self.sshd)
        self.socket = folder / "docker.sock"
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(self.socket))
        listening.close()
        self.folder = Path(f"/tmp/fleet-lease-{self._key}")
        self.sessions: list[Session] = []

    def start(self, verb: Verb, claim: str = OURS) -> "Session":
        text = script(verb, self._key, str(self.socket), claim)
        self.sessions.append(Session(self.sshd, self._shell, text))
        return self.sessions[-1]

    def forget(self) -> None:
        for session in self.sessions:
            session.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Session:
    """One connection: a process named sshd, and the program below it."""

    def __init__(self, sshd: Path, shell: tuple[str, ...], text: str) -> None:
        argv = [str(sshd), "-c", 'setsid "$@"; :', "sshd", *shell, "-c", text]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def said(self) -> list[str]:
        """The words of the next thing that it says; none at its end."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith(MARK) or not line
        return line.removeprefix(MARK).split()

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def hang_up(self) -> None:
        """What it reads ends, and nothing else."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):  # what was not read any more
                stream.close()


@pytest.fixture(params=list(SHELLS.values()), ids=list(SHELLS))
def machine(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Machine]:
    made = Machine(tmp_path, request.param)
    yield made
    made.forget()


def test_one_takes_it_the_other_is_told_who_has_it(machine: Machine) -> None:
    ours = machine.start("take")
    word, fence, _, former = ours.said()
    assert ("taken", "none") == (word, former)
    ours.tell("1")
    assert ["beat", "1"] == ours.said()
    told = machine.start("take", THEIRS).said()
    assert ["held", fence] == told[:2]
    assert OURS == " ".join(told[3:])
    assert ["held", fence] == machine.start("look").said()[:2]
    ours.tell("release")
    assert ["released"] == ours.said()
    assert ["free"] == machine.start("look").said()
    assert ["taken", str(int(fence) + 1)] == machine.start("take", THEIRS).said()[:2]


def test_the_session_ends_before_the_lock_is_free(machine: Machine) -> None:
    """The other is asked for by a look that waits for nothing: as soon as it is free, the first session is gone."""
    ours = machine.start("take")
    ours.said()
    ours.hang_up()
    while machine.start("look").said() != ["free"]:
        pass
    assert -9 == ours.process.wait(timeout=1)


def test_a_claim_that_comes_back_ends_its_session_of_before(machine: Machine) -> None:
    ours = machine.start("take")
    _, fence, *_ = ours.said()
    again = machine.start("take").said()
    assert ["taken", fence] == again[:2]
    assert "same" == again[3]
    assert -9 == ours.process.wait(timeout=5)


def test_a_broken_lease_is_gone_with_its_session_and_its_number(machine: Machine) -> None:
    ours = machine.start("take")
    _, fence, *_ = ours.said()
    assert ["broken", fence] == machine.start("break").said()[:2]
    assert -9 == ours.process.wait(timeout=5)
    word, later, _, former = machine.start("take").said()
    assert ("taken", "other") == (word, former)
    assert int(later) > int(fence)


def test_a_damaged_note_is_told_as_unknown(machine: Machine) -> None:
    machine.start("take").said()
    (machine.folder / "note").write_bytes(b"\0\xff $(touch /tmp/x) *\n")
    assert ["held", "-", "-"] == machine.start("look").said()


def test_without_an_sshd_above_there_is_no_lease(machine: Machine) -> None:
    machine.sshd = machine.sshd.rename(machine.sshd.with_name("other"))
    ended = machine.start("take").said()
    assert ["error", "no-session"] == ended or "taken" == ended[0], "the tests themselves may run below an sshd"


def test_the_folder_has_the_rights_of_the_docker_socket(machine: Machine) -> None:
    machine.socket.chmod(0o660)
    machine.start("take").said()
    assert 0o2770 == machine.folder.stat().st_mode & 0o7777
    assert machine.socket.stat().st_gid == machine.folder.stat().st_gid
    assert {"lock", "note"} == {path.name for path in machine.folder.iterdir()}
    assert {0o660} == {path.stat().st_mode & 0o777 for path in machine.folder.iterdir()}
