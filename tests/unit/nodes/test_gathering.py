"""Connections whose small writes leave together."""

import asyncio
from typing import Any, cast

import asyncssh
import pytest

from reconciler.nodes.gathering import (
    AT_ONCE_BYTES,
    MSG_IGNORE,
    GatheringConnector,
    GatheringTransport,
    without_empty_packets,
)


class Below(asyncio.Transport):
    """Notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[object] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.told.append(bytes(data))

    def close(self) -> None:
        self.told.append("close")

    def abort(self) -> None:
        self.told.append("abort")


async def test_what_is_written_in_one_turn_is_one_write_in_order() -> None:
    below = Below()
    transport = GatheringTransport(below)
    transport.write(b"one")
    transport.write(b"two")
    assert [] == below.told
    await asyncio.sleep(0)
    transport.write(b"three")
    await asyncio.sleep(0)
    assert [b"onetwo", b"three"] == below.told


async def test_much_is_not_held_back() -> None:
    below = Below()
    transport = GatheringTransport(below)
    transport.write(b"head")
    transport.write(bytes(AT_ONCE_BYTES))
    assert [b"head" + bytes(AT_ONCE_BYTES)] == below.told
    transport.write(b"next")
    await asyncio.sleep(0)
    assert b"next" == below.told[-1]


@pytest.mark.parametrize("end", ["close", "abort"])
async def test_what_was_written_leaves_before_the_end(end: str) -> None:
    below = Below()
    transport = GatheringTransport(below)
    transport.write(b"bye")
    getattr(transport, end)()
    await asyncio.sleep(0)
    assert [b"bye", end] == below.told


class Protocol(asyncio.Protocol):
    """Says two words at once, and notes what comes."""

    def __init__(self) -> None:
        self.came = b""
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.peer = transport.get_extra_info("peername")
        transport.write(b"one ")
        transport.write(b"two")

    def data_received(self, data: bytes) -> None:
        self.came += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(None)


async def test_a_protocol_gets_what_comes_and_the_end() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(len(b"one two")))
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        address = server.sockets[0].getsockname()
        _, protocol = await GatheringConnector().create_connection(Protocol, *address)
        assert isinstance(protocol, Protocol)
        await protocol.lost
    assert b"one two" == protocol.came
    assert address == protocol.peer


async def test_nobody_there_is_an_os_error() -> None:
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
        address = server.sockets[0].getsockname()
    with pytest.raises(ConnectionRefusedError):
        await GatheringConnector().create_connection(Protocol, *address)


class Connection:
    """Sends as asyncssh does: an empty packet before each that is encrypted."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, tuple[bytes, ...], object]] = []

    def send_packet(self, pkttype: int, *args: bytes, handler: object = None) -> None:
        if pkttype != MSG_IGNORE:
            self.send_packet(MSG_IGNORE, b"")
        self.sent.append((pkttype, args, handler))


def test_empty_packets_are_left_out_and_no_others() -> None:
    connection = Connection()
    without_empty_packets(cast("asyncssh.SSHClientConnection", connection))
    connection.send_packet(94, b"words", b"more", handler="channel")
    connection.send_packet(97)
    assert [(94, (b"words", b"more"), "channel"), (97, (), None)] == connection.sent


async def test_asyncssh_sends_its_empty_packets_where_they_are_left_out() -> None:
    """Else leaving them out would do nothing any more."""
    kinds: list[int] = []

    class Client(asyncssh.SSHClient):
        def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
            send = conn.send_packet

            def noted(kind: int, *words: bytes, **options: Any) -> None:
                kinds.append(kind)
                send(kind, *words, **options)

            conn.send_packet = noted  # type: ignore[assignment,method-assign]

    class Open(asyncssh.SSHServer):
        def begin_auth(self, username: str) -> bool:
            return False

    key = asyncssh.generate_private_key("ssh-ed25519")
    options: dict[str, Any] = {"username": "ops", "known_hosts": None, "config": None, "client_keys": None}
    async with await asyncssh.listen("127.0.0.1", 0, server_factory=Open, server_host_keys=[key]) as server:
        connecting = asyncssh.connect("127.0.0.1", server.get_port(), client_factory=Client, agent_path=None, **options)
        async with connecting:
            assert MSG_IGNORE in kinds
