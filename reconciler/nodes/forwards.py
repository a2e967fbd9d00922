"""Ports that an `ssh` child joins, one way or the other."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

Server = int | Path
"""Of the controller: a port of 127.0.0.1, or a Unix socket."""


@dataclass(frozen=True)
class Forward:
    """`127.0.0.1:listen_port` of the node leads to a server of the controller. 0: sshd takes a free one."""

    option: ClassVar[str] = "-R"
    listen_port: int
    server: Server

    def __str__(self) -> str:
        """As `option` of `ssh` takes it."""
        server = f"127.0.0.1:{self.server}" if isinstance(self.server, int) else self.server
        return f"127.0.0.1:{self.listen_port}:{server}"


@dataclass(frozen=True)
class LocalForward(Forward):
    """The other way: `127.0.0.1:listen_port` of the controller leads to `127.0.0.1:server` of the node."""

    option: ClassVar[str] = "-L"
