"""TCP connections whose small writes leave together.

asyncssh writes each SSH packet by itself, with an empty one before it; asyncio sends each write at once. Opening a
channel and asking something on it would be a dozen segments and system calls. Here all that is written in one turn of
the event loop is sent at its end, in order, as one; and the empty packets can be left out.
"""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import asyncssh

MSG_IGNORE = 2
"""RFC 4253, 11.2."""

AT_ONCE_BYTES = 1 << 16
"""So much is not held back: a stream of an image gains nothing by waiting, and would be copied."""


class GatheringConnector:
    """What asyncssh calls a tunnel: it opens the connection below SSH. Given as `tunnel` to `asyncssh.connect`."""

    async def create_connection(
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.BaseTransport, asyncio.Protocol]:
        """A TCP connection for the protocol that `factory` makes. Raises `OSError` when there is none to be had."""
        loop = asyncio.get_running_loop()
        transport, first = await loop.create_connection(lambda: _Starting(factory()), host, port)
        return transport, first.protocol


def without_empty_packets(connection: asyncssh.SSHClientConnection) -> None:
    """Send no empty packet before each packet of this connection.

    They are there for ciphers in CBC mode, whose next initial vector they hide from who could choose what is sent.
    OpenSSH sends them with such ciphers alone. For others they double what is encrypted, and serve nothing.
    """
    send = connection.send_packet

    def sent(kind: int, *words: bytes, **options: Any) -> None:
        if kind != MSG_IGNORE:
            send(kind, *words, **options)

    connection.send_packet = sent  # type: ignore[assignment,method-assign]  # there is no setting


class _Starting(asyncio.Protocol):
    """Gives the connection to `protocol` the moment it is there, with the transport that gathers."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        self.protocol = protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """From here on the protocol gets what comes by itself."""
        below = cast("asyncio.Transport", transport)
        below.set_protocol(self.protocol)
        self.protocol.connection_made(GatheringTransport(below))


class GatheringTransport(asyncio.Transport):
    """What asyncssh uses of a transport."""

    def __init__(self, below: asyncio.Transport) -> None:
        super().__init__()
        self._below = below
        self._held = bytearray()
        self._loop = asyncio.get_running_loop()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send it at the end of this turn of the event loop, at the latest."""
        if not self._held:
            self._loop.call_soon(self._send)
        self._held += data
        if len(self._held) >= AT_ONCE_BYTES:
            self._send()

    def close(self) -> None:
        """Close when all is sent."""
        self._send()
        self._below.close()

    def abort(self) -> None:
        """Close at once; what was written before was sent as far as the peer takes it."""
        self._send()
        self._below.abort()

    def is_closing(self) -> bool:
        """Whether it is closed, or about to be."""
        return self._below.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As the transport below."""
        return self._below.get_extra_info(name, default)

    def _send(self) -> None:
        if self._held:
            held, self._held = self._held, bytearray()
            self._below.write(held)
