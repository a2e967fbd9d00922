"""Readings over one channel: asked at once, answered in their order, and asked anew where the channel breaks."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import asyncssh
import pytest

from reconciler.nodes.docker_engine import DockerEngine
from reconciler.nodes.docker_line import DockerLine
from reconciler.nodes.errors import ErrorKind, NodeError

Answer = Callable[[str], bytes]


def ok(path: str) -> bytes:
    """What was asked for, as JSON."""
    body = f'"{path}"'.encode()
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


class PlayedDocker:
    """An engine on a Unix socket. `answers`: by path; `ends_after`: how many answers the first channel has."""

    def __init__(self, ends_after: int | None = None) -> None:
        self.answers: dict[str, Answer] = {}
        self.slow: set[str] = set()
        self.asked: list[list[str]] = []
        self._ends_after = ends_after

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked: list[str] = []
        self.asked.append(asked)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if self._ends_after is not None and self.asked[0] is asked and len(asked) == self._ends_after:
                    break
                path = head.split(b" ", 2)[1].decode()
                asked.append(path)
                if path in self.slow:
                    await asyncio.sleep(60)
                writer.write(self.answers.get(path, ok)(path))
                if b"close" in head:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


class Channel(asyncio.Protocol):
    """What asyncssh calls a channel, on a Unix socket of this machine."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._session.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self._session.data_received(data, None)

    def eof_received(self) -> bool:
        return bool(self._session.eof_received())

    def connection_lost(self, exc: Exception | None) -> None:
        self._session.connection_lost(exc)


async def create_unix_connection(session_factory: Callable[[], Any], path: str) -> None:
    await asyncio.get_running_loop().create_unix_connection(lambda: Channel(session_factory()), path)


@asynccontextmanager
async def line_to(docker: PlayedDocker, folder: Path) -> AsyncIterator[DockerLine]:
    socket = str(folder / "docker.sock")
    connection = SimpleNamespace(
        create_unix_connection=create_unix_connection, open_unix_connection=asyncio.open_unix_connection
    )
    target = SimpleNamespace(docker_socket=socket, host="dgx1", name="dgx1")
    session = cast("Any", SimpleNamespace(connection=connection, target=target))
    async with await asyncio.start_unix_server(docker.serve, socket), DockerLine(DockerEngine(session)) as line:
        yield line


async def test_readings_share_one_channel_and_each_gets_its_own_answer(tmp_path: Path) -> None:
    docker, paths = PlayedDocker(), ["/info", "/images/json?manifests=1", "/containers/a/json"]
    async with line_to(docker, tmp_path) as line:
        asked = line.get("/info"), line.get("/images/json", manifests="1"), line.get(paths[2])
        found: list[object] = list(await asyncio.gather(*asked))
        assert "/again" == await line.get("/again")
    assert paths == found
    assert [[*paths, "/again"]] == docker.asked


async def test_a_refusal_leaves_the_channel_to_the_others(tmp_path: Path) -> None:
    docker = PlayedDocker()
    docker.answers["/gone"] = lambda path: b'HTTP/1.1 404 Not Found\r\nContent-Length: 16\r\n\r\n{"message":"no"}'
    async with line_to(docker, tmp_path) as line:
        both = [line.get("/gone"), line.get("/info")]
        gone, found = list(await asyncio.gather(*both, return_exceptions=True))
    assert "/info" == found
    assert isinstance(gone, NodeError)
    assert ErrorKind.NOT_FOUND is gone.kind
    assert [["/gone", "/info"]] == docker.asked


@pytest.mark.parametrize("answered", [0, 1])
async def test_what_has_no_answer_when_the_channel_ends_is_asked_anew(tmp_path: Path, answered: int) -> None:
    docker, paths = PlayedDocker(ends_after=answered), ["/info", "/a", "/b"]
    async with line_to(docker, tmp_path) as line:
        assert paths == await asyncio.gather(*map(line.get, paths))
    assert paths[:answered] == docker.asked[0]
    assert sorted([path] for path in paths[answered:]) == sorted(docker.asked[1:])


async def test_an_engine_that_says_it_closes_is_asked_anew(tmp_path: Path) -> None:
    docker = PlayedDocker()
    docker.answers["/info"] = lambda path: b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n1"
    async with line_to(docker, tmp_path) as line:
        assert 1 == await line.get("/info")
        assert "/b" == await line.get("/b")
    assert ["/b"] == docker.asked[1]


async def test_after_a_late_answer_no_other_reading_takes_it_for_its_own(tmp_path: Path) -> None:
    docker = PlayedDocker()
    docker.slow.add("/slow")
    async with line_to(docker, tmp_path) as line:
        both = [line.get("/slow", deadline_s=0.2), line.get("/b")]
        late, found = list(await asyncio.gather(*both, return_exceptions=True))
    assert isinstance(late, NodeError)
    assert ErrorKind.TIMEOUT is late.kind
    assert "/b" == found


async def test_an_answer_in_pieces_is_put_together_and_many_in_one_piece_are_told_apart(tmp_path: Path) -> None:
    docker = PlayedDocker()
    docker.answers["/info"] = lambda path: ok(path)[:40]  # the rest comes with the next answer, in one piece
    docker.answers["/a"] = lambda path: ok("/info")[40:] + ok(path) + ok("/b")
    docker.answers["/b"] = lambda path: b""
    async with line_to(docker, tmp_path) as line:
        assert ["/info", "/a", "/b"] == await asyncio.gather(*map(line.get, ["/info", "/a", "/b"]))
    assert [["/info", "/a", "/b"]] == docker.asked


async def test_an_answer_nobody_asked_for_makes_the_channel_useless(tmp_path: Path) -> None:
    docker = PlayedDocker()
    docker.answers["/info"] = lambda path: ok(path) + ok("/evil")
    async with line_to(docker, tmp_path) as line:
        assert "/info" == await line.get("/info")
        assert "/b" == await line.get("/b")
    assert ["/b"] == docker.asked[1]


async def test_a_reading_that_is_given_up_does_not_hold_up_the_next(tmp_path: Path) -> None:
    docker = PlayedDocker()
    docker.slow.add("/slow")
    async with line_to(docker, tmp_path) as line:
        given_up = asyncio.ensure_future(line.get("/slow"))
        behind = asyncio.ensure_future(line.get("/b"))
        await asyncio.sleep(0.1)
        given_up.cancel()
        assert "/b" == await behind


async def test_a_channel_that_cannot_be_opened_leaves_the_reason_to_the_engine(tmp_path: Path) -> None:
    async with line_to(PlayedDocker(), tmp_path) as line:
        line._engine.session.connection.create_unix_connection = _refused  # type: ignore[method-assign, assignment]
        assert ["/a", "/b"] == await asyncio.gather(*map(line.get, ["/a", "/b"]))


async def _refused(session_factory: object, path: str) -> None:
    raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, "refused")


async def test_a_pulls_news_come_as_they_are_at_hand_and_a_broken_end_is_told_behind_them(tmp_path: Path) -> None:
    docker = PlayedDocker()
    docker.answers["/news"] = lambda path: (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\nnonsense\r\n"
    )
    came: list[bytes] = []
    async with line_to(docker, tmp_path) as line:
        engine = line._engine  # the same played socket
        engine.why = _broken  # type: ignore[method-assign]
        with pytest.raises(NodeError, match=r"^pulling: "):
            await _read_all(engine, came)
    assert b"onetwo" == b"".join(came)


async def _read_all(engine: DockerEngine, came: list[bytes]) -> None:
    async with engine.stream("pulling", "GET", "/news", {}) as chunks:
        async for chunk in chunks:
            came.append(chunk)


async def _broken(doing: str, error: Exception) -> NodeError:
    return NodeError(ErrorKind.LOST, f"{doing}: {error}")
