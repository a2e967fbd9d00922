"""Engines that answer as no engine should: an error of the node's, in time, and never all of the memory."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

import pytest

from reconciler.nodes.engine_access import LARGEST_ANSWER, SshEngines
from reconciler.nodes.errors import NodeError
from reconciler.nodes.ssh import SshSession

Answer = Callable[[asyncio.StreamWriter], None]


class Near:
    """In place of an SSH session: its channels lead to an engine that is here."""

    name = "node1"

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._serving: set[asyncio.Future[None]] = set()

    @property
    def target(self) -> "Near":
        return self

    @property
    def connection(self) -> "Near":
        return self

    async def open_connection(self, _host: str, _port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        near, far = socket.socketpair()
        serving = asyncio.ensure_future(self._serve(*await asyncio.open_connection(sock=far)))
        self._serving.add(serving)
        return await asyncio.open_connection(sock=near)

    async def end(self) -> None:
        for serving in self._serving:
            serving.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self._answer(writer)
        writer.close()


@asynccontextmanager
async def engine(answer: Answer) -> AsyncIterator[SshEngines]:
    near = Near(answer)
    try:
        yield SshEngines(cast("SshSession", near))
    finally:
        await near.end()


def says(*parts: bytes) -> Answer:
    return lambda writer: writer.writelines(parts)


async def test_what_is_said_to_be_compressed_and_is_not_is_taken_as_it_comes() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n"
    async with engine(says(head, b"abc")) as engines:
        reply = await engines.http("127.0.0.1", 1, "GET", "/health", None, 5)
    assert (200, b"abc") == (reply.status, reply.body)


@pytest.mark.parametrize("junk", [b"\x1b[2J\0\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 10**6 + b"\r\n\r\n"])
async def test_an_answer_that_is_no_http_is_the_engine_breaking_off(junk: bytes) -> None:
    async with engine(says(junk)) as engines:
        with pytest.raises(NodeError, match="the engine broke off"):
            await engines.http("127.0.0.1", 1, "GET", "/health", None, 5)


async def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    length = 2 * LARGEST_ANSWER
    async with engine(says(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode(), b"x" * length)) as engines:
        with pytest.raises(NodeError, match="more than 16 MiB"):
            await engines.http("127.0.0.1", 1, "GET", "/health", None, 20)


@pytest.mark.parametrize("path", ["/he\x01alth", "/health\r\nX: y"])
async def test_a_path_that_cannot_be_in_a_request_says_so(path: str) -> None:
    async with engine(says(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as engines:
        with pytest.raises(NodeError, match="cannot be asked") as refused:
            await engines.http("127.0.0.1", 1, "GET", path, None, 5)
    assert "health.path" in refused.value.hint


async def test_what_is_asked_comes_whole_and_the_path_escaped() -> None:
    heard = bytearray()

    class Listening(Near):
        async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.extend(await reader.readuntil(b"}"))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            writer.close()

    near = Listening(says())
    reply = await SshEngines(cast("SshSession", near)).http("::1", 80, "POST", "/a b?c=%20&d=é", {"a": "é"}, 5)
    await near.end()
    head, _, body = bytes(heard).partition(b"\r\n\r\n")
    assert reply.status == 200
    assert head.startswith(b"POST /a%20b?c=%20&d=%C3%A9 HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n")
    assert b"\r\nContent-Length: 10" in head
    assert body == '{"a":"é"}'.encode()


async def test_an_answer_that_breaks_off_is_no_answer() -> None:
    async with engine(says(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")) as engines:
        with pytest.raises(NodeError, match="the engine broke off"):
            await engines.http("127.0.0.1", 1, "GET", "/health", None, 5)
