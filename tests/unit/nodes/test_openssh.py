"""The generated configuration, the words of `ssh`, and children that end for certain."""

import asyncio
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.core.observed import UnknownKind
from reconciler.nodes import openssh
from reconciler.nodes.errors import ErrorKind, NodeError, NodeUnknownError
from reconciler.nodes.forwards import Forward
from reconciler.nodes.openssh import OpenSsh, failure, login_command
from reconciler.nodes.ssh_config import render
from reconciler.nodes.targets import SshTarget

from .local_ssh import LocalSsh

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJq3ZPZ0cgAcMrTHGGdTTR4ZIQ5Iu4H2jcEpMc1u0a2o"
PLAIN = SshTarget(name="dgx1", host="10.0.0.1", user="ops", known_hosts="/k/known_hosts")

needs_ssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh program")


def effective(target: SshTarget, folder: Path, name: str = "node") -> dict[str, list[str]]:
    """What OpenSSH itself makes of the files."""
    for file, text in render(target, folder).items():
        (folder / file).write_text(text)
    argv = ["ssh", "-G", "-F", str(folder / "config"), name]
    lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    found: dict[str, list[str]] = {}
    for line in lines:
        key, _, value = line.partition(" ")
        found.setdefault(key, []).append(value)
    return found


@needs_ssh
def test_openssh_takes_it_as_it_is_meant(tmp_path: Path) -> None:
    found = effective(replace(PLAIN, port=2222, identity_file="/keys/100% mine"), tmp_path)
    wanted = {
        "hostname": ["10.0.0.1"],
        "port": ["2222"],
        "user": ["ops"],
        "batchmode": ["yes"],
        "identityfile": ["/keys/100%% mine"],
        "userknownhostsfile": ["/k/known_hosts"],
        "globalknownhostsfile": ["/dev/null"],
        "stricthostkeychecking": ["true"],
        "updatehostkeys": ["false"],
        "compression": ["no"],
        "controlmaster": ["false"],
        "exitonforwardfailure": ["yes"],
        "serveraliveinterval": ["15"],
        "serveralivecountmax": ["8"],
        "tcpkeepalive": ["yes"],
    }
    assert wanted == {key: found.get(key) for key in wanted}
    assert found["ciphers"][0].startswith("aes128-gcm@openssh.com,")


@needs_ssh
def test_a_jump_host_is_a_block_of_its_own(tmp_path: Path) -> None:
    target = replace(PLAIN, proxy_jump="gate@10.0.0.9:2200", host_key=KEY)
    assert ["jump"] == effective(target, tmp_path)["proxyjump"]
    jump = effective(target, tmp_path, "jump")
    assert (["10.0.0.9"], ["2200"], ["gate"]) == (jump["hostname"], jump["port"], jump["user"])
    assert ["/k/known_hosts"] == jump["userknownhostsfile"], "the node's pinned key is not the jump host's"
    assert ["yes"] == jump["batchmode"]
    assert "proxyjump" not in jump


def test_a_pinned_key_is_the_only_one_known(tmp_path: Path) -> None:
    files = render(replace(PLAIN, host_key=KEY, port=2222), tmp_path)
    assert f"[10.0.0.1]:2222 {KEY}\n" == files["node.keys"]
    assert f'UserKnownHostsFile "{tmp_path}/node.keys"' in files["config"]
    assert f"10.0.0.1 {KEY}\n" == render(replace(PLAIN, host_key=KEY), tmp_path)["node.keys"]


def test_the_type_of_the_known_key_comes_first(tmp_path: Path) -> None:
    """Or another key of the machine, which is not known, would be offered."""
    known = tmp_path / "known"
    ecdsa = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBKJs9"
    made = subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(tmp_path / "k")], check=False)
    if made.returncode == 0:
        ecdsa = (tmp_path / "k.pub").read_text()
    known.write_text(f"10.0.0.1 {ecdsa}")
    config = render(replace(PLAIN, known_hosts=str(known)), tmp_path)["config"]
    [algorithms] = [line.split()[1] for line in config.splitlines() if "HostKeyAlgorithms" in line]
    assert algorithms.startswith("ecdsa-sha2-nistp256,ssh-ed25519,")


def test_without_any_key_file_there_is_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not OpenSSH's own list, which it looks up by the passwd entry."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert 'IdentityFile "none"' in render(PLAIN, tmp_path)["config"]
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519").write_text("")
    config = render(PLAIN, tmp_path)["config"]
    assert f'IdentityFile "{tmp_path}/.ssh/id_ed25519"' in config
    assert '"none"' not in config


def test_the_files_are_for_nobody_else() -> None:
    ssh = OpenSsh(PLAIN)
    argv = ssh.argv("true", Forward(5917, 4000), Forward(0, Path("/run/x/0")))
    config = Path(argv[argv.index("-F") + 1])
    assert 0o700 == stat.S_IMODE(config.parent.stat().st_mode)
    assert ["-R", "127.0.0.1:5917:127.0.0.1:4000", "-R", "127.0.0.1:0:/run/x/0", "node", "true"] == argv[-6:]
    ssh.close()
    assert not config.exists()


def test_without_the_program_it_is_not_available(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not openssh.available()
    (tmp_path / "ssh").write_text("#!/bin/sh\n")
    (tmp_path / "ssh").chmod(0o755)
    assert openssh.available()


@pytest.mark.parametrize("script", ["echo it's", "[ ! -e x ]", "printf '\\n'", "a\nb"])
def test_a_script_that_some_login_shell_misreads_is_refused(script: str) -> None:
    with pytest.raises(ValueError, match="login shell"):
        login_command(script)


def test_arguments_reach_the_script_as_they_are() -> None:
    command = login_command('echo "$2-$1"', "it's a b", "$HOME")
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert "$HOME-it's a b\n" == done.stdout


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Host key verification failed.", UnknownKind.HOST_KEY_UNKNOWN),
        ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @", UnknownKind.HOST_KEY_CHANGED),
        ("ops@10.0.0.1: Permission denied (publickey).", UnknownKind.AUTH),
        ("ssh: connect to host 10.0.0.1 port 22: Connection refused", UnknownKind.REFUSED),
        ("ssh: connect to host 10.0.0.1 port 22: Connection timed out", UnknownKind.TIMEOUT),
        ("ssh: Could not resolve hostname x: Name or service not known", UnknownKind.UNRESOLVED),
        ("Connection to 10.0.0.1 closed by remote host.", UnknownKind.LOST),
    ],
)
def test_the_last_words_of_ssh_say_why(words: str, kind: UnknownKind) -> None:
    error = failure(PLAIN, (), [words])
    assert isinstance(error, NodeUnknownError)
    assert kind is error.fact.kind
    assert words in error.message


def test_a_port_that_cannot_be_had_is_a_conflict_and_no_port_at_all_is_denied() -> None:
    taken = failure(PLAIN, (Forward(5917, 1),), ["Error: remote port forwarding failed for listen port 5917"])
    denied = failure(PLAIN, (Forward(0, 1),), ["Error: remote port forwarding failed for listen port 0"])
    assert (ErrorKind.CONFLICT, ErrorKind.DENIED) == (taken.kind, denied.kind)
    assert "5917" in taken.message


async def test_noise_of_the_login_shell_is_passed_over() -> None:
    async with LocalSsh(noise="echo Welcome; echo hello >&2").spawn(script="echo first; read -r x; echo $x") as child:
        assert "first" == await child.line()
        await child.write(b"second\n")
        assert "second" == await child.line()
        assert None is await child.line()


async def test_a_child_has_no_terminal_signals_and_ends_with_its_block() -> None:
    async with LocalSsh().spawn() as child:
        assert os.getsid(child.process.pid) == child.process.pid != os.getsid(0)
    assert child.process.returncode is not None


async def test_a_child_that_does_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openssh, "END_S", 0.2)
    async with LocalSsh().spawn(script='trap "" TERM; echo on; while :; do read -r x || sleep 1; done') as child:
        assert "on" == await child.line()
    assert -signal.SIGKILL == await child.ended()


async def test_one_that_ends_before_it_is_ready_says_why() -> None:
    with pytest.raises(NodeUnknownError) as error:
        await LocalSsh(noise="echo kex_exchange: Connection refused >&2; exit 255").open()
    assert UnknownKind.REFUSED is error.value.fact.kind


async def test_one_that_is_never_ready_is_ended() -> None:
    with pytest.raises(NodeError) as error:
        await LocalSsh(noise="exec sleep 60").open(deadline_s=0.3)
    assert ErrorKind.TIMEOUT is error.value.kind


async def test_being_cancelled_ends_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    make = asyncio.create_subprocess_exec

    async def noting(*argv: str, **options: object) -> asyncio.subprocess.Process:
        process = await make(*argv, **options)  # type: ignore[arg-type]
        started.append(process.pid)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noting)
    opening = asyncio.create_task(LocalSsh(noise="exec sleep 60").open())
    await _until(lambda: bool(started))
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await _until(lambda: not Path(f"/proc/{started[0]}/status").exists())


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.02)
