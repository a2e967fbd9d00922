"""`docker save` into `docker load`, with programs of that name that do as the real ones do."""

import asyncio
from pathlib import Path

import pytest

from reconciler.nodes import save_load
from reconciler.nodes.errors import ErrorKind, NodeError, NodeUnknownError

from .local_ssh import LocalSsh

SAVE_1_MIB = "head -c 1048576 /dev/zero"
LOAD = 'cat > "$OUT"; echo "Loaded image: $DOCKER_HOST"'


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "loaded"


def node(tmp_path: Path, name: str, docker: str | None, socket: str = "/run/d.sock") -> LocalSsh:
    """A node whose `docker` is this script."""
    folder = tmp_path / name
    folder.mkdir()
    for program in ("sh", "cat", "head", "sleep"):
        (folder / program).symlink_to(f"/bin/{program}")
    if docker is not None:
        (folder / "docker").write_text(f"#!/bin/sh\n{docker}\n")
        (folder / "docker").chmod(0o755)
    noise = f"export PATH={folder} OUT={tmp_path}/loaded; echo Welcome"
    return LocalSsh(name, noise, docker_socket=socket)


async def copy(tmp_path: Path, save: str | None, load: str | None) -> list[int]:
    told: list[int] = []
    await save_load.copy(node(tmp_path, "a", save), node(tmp_path, "b", load), "x/y:1", told.append)
    return told


async def failed(tmp_path: Path, save: str | None, load: str | None) -> NodeError:
    with pytest.raises(NodeError) as error:
        await copy(tmp_path, save, load)
    return error.value


async def test_the_archive_arrives_as_it_is_and_its_bytes_are_told(tmp_path: Path, out: Path) -> None:
    told = await copy(tmp_path, SAVE_1_MIB, LOAD)
    assert bytes(1 << 20) == out.read_bytes(), "with the login shell's words in it, it is no archive"
    assert 1 << 20 == told[-1]
    assert told == sorted(told)


async def test_the_declared_socket_is_asked(tmp_path: Path, out: Path) -> None:
    save = 'echo "$DOCKER_HOST $*"'
    ends = node(tmp_path, "a", save, "/run/user/7/d.sock"), node(tmp_path, "b", LOAD)
    await save_load.copy(*ends, "x/y:1", lambda _: None)
    assert "unix:///run/user/7/d.sock save x/y:1\n" == out.read_text()


async def test_a_save_that_fails_is_told_as_such(tmp_path: Path) -> None:
    missing = await failed(tmp_path, "echo Error response from daemon: No such image: x/y:1 >&2; exit 1", LOAD)
    assert ErrorKind.NOT_FOUND is missing.kind
    assert missing.message.startswith("docker save x/y:1 on a failed")


async def test_a_save_that_fails_in_the_middle_is_not_taken_for_whole(tmp_path: Path) -> None:
    error = await failed(tmp_path, f"{SAVE_1_MIB}; echo unexpected EOF >&2; exit 1", LOAD)
    assert "docker save x/y:1 on a failed: unexpected EOF" == error.message


async def test_a_load_that_fails_is_told_as_such(tmp_path: Path) -> None:
    """Also when it ends early, and `docker save` writes into a pipe that nobody reads."""
    error = await failed(tmp_path, "head -c 50000000 /dev/zero", "echo Cannot connect to the daemon >&2; exit 1")
    assert ErrorKind.REFUSED is error.kind
    assert "docker load of x/y:1 on b failed: Cannot connect to the daemon" == error.message


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Error unpacking image x/y:1: apply layer: wrong digest", ErrorKind.REFUSED),
        ("write /var/lib/docker/tmp/x: no space left on device", ErrorKind.NO_SPACE),
    ],
)
async def test_a_load_that_ends_well_and_says_otherwise_has_failed(tmp_path: Path, words: str, kind: ErrorKind) -> None:
    error = await failed(tmp_path, SAVE_1_MIB, f"cat >/dev/null; echo {words}; echo Loaded image: x/y:1")
    assert kind is error.kind
    assert words in error.message


async def test_a_source_without_space_is_no_full_disk_of_the_target(tmp_path: Path) -> None:
    error = await failed(tmp_path, "echo write /tmp/x: no space left on device >&2; exit 1", LOAD)
    assert ErrorKind.REFUSED is error.kind
    assert "docker save x/y:1 on a failed" in error.message


@pytest.mark.parametrize(("save", "load", "where"), [(None, LOAD, "a"), (SAVE_1_MIB, None, "b")])
async def test_without_a_docker_program_there_is_a_hint(
    tmp_path: Path, save: str | None, load: str | None, where: str
) -> None:
    error = await failed(tmp_path, save, load)
    assert f"on {where} failed: no docker program there" in error.message
    assert "command line" in error.hint


async def test_a_connection_that_ends_is_no_answer(tmp_path: Path) -> None:
    error = await failed(tmp_path, f"{SAVE_1_MIB}; echo Connection closed >&2; exit 255", LOAD)
    assert isinstance(error, NodeUnknownError)


async def test_cancelling_ends_both(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    hold = f"echo $$ >> {pids}; exec sleep 60"
    copying = asyncio.create_task(copy(tmp_path, hold, hold))
    async with asyncio.timeout(10):
        while not pids.exists() or len(pids.read_text().split()) < 2:
            await asyncio.sleep(0.02)
    copying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await copying
    async with asyncio.timeout(10):
        while any(Path(f"/proc/{pid}/status").exists() for pid in pids.read_text().split()):
            await asyncio.sleep(0.02)


async def test_an_archive_can_be_read_here(tmp_path: Path) -> None:
    chunks = [chunk async for chunk in save_load.export(node(tmp_path, "a", SAVE_1_MIB), "x/y:1")]
    assert bytes(1 << 20) == b"".join(chunks)
    with pytest.raises(NodeError):
        [chunk async for chunk in save_load.export(node(tmp_path, "b", "echo no >&2; exit 1"), "x/y:1")]
