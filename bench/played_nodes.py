"""`python -m bench.played_nodes COUNT FOLDER`: SSH servers in one process that answer what reading a node asks for.

One port a node. Docker's answers and those of the facts script were recorded in the lab; every other node has the
containerd store, and the id of its container and of its boot are its own. When all listen it prints the ports. It ends
with its stdin.
"""

import asyncio
import json
import sys
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import asyncssh

FIXTURES = Path(__file__).parents[1] / "tests" / "fixtures"
BOOT_ID = "7f36ab9e-8a6c-4d4a-9b07-"
INFO_FILLER = {f"Field{number}": "as long as what Docker says here" for number in range(70)}
"""The recorded `/info` has only what is read; a whole one has four kilobytes."""


@dataclass(frozen=True)
class PlayedNode:
    """The node of this number."""

    number: int

    @property
    def store(self) -> str:
        """Its image store."""
        return "containerd" if self.number % 2 else "classic"

    @property
    def container_id(self) -> str:
        """Of its one container."""
        return f"{self.number:064x}"

    @property
    def boot_id(self) -> str:
        """Of this boot."""
        return f"{BOOT_ID}{self.number:012x}"

    @cached_property
    def facts(self) -> str:
        """What the facts script prints."""
        recorded = (FIXTURES / "facts" / "lab-root.txt").read_text(encoding="utf-8")
        lines = recorded.splitlines()
        lines[lines.index("@@fleet boot") + 1] = self.boot_id
        return "\n".join(lines) + "\n"

    def answer(self, path: str) -> bytes | None:
        """The body for a path of Docker's API; None for one that is not played."""
        name, one = path.partition("?")[0], f"/containers/{self.container_id}/json"
        if name == "/info":
            return json.dumps(INFO_FILLER | self._recorded("info")).encode()
        if name == "/images/json":
            return json.dumps(self._recorded("images")).encode()
        if name == "/containers/json":
            return json.dumps([entry | {"Id": self.container_id} for entry in self._recorded("list")]).encode()
        return json.dumps(self._recorded("container") | {"Id": self.container_id}).encode() if name == one else None

    def _recorded(self, kind: str) -> Any:
        return json.loads((FIXTURES / "docker" / f"{kind}-{self.store}.json").read_text(encoding="utf-8"))


class _Server(asyncssh.SSHServer):
    """Lets the test key in, and its channels to the Docker socket."""

    def __init__(self, node: PlayedNode) -> None:
        self._node = node

    def unix_connection_requested(self, dest_path: str) -> Any:
        """A channel to Docker."""
        return partial(_docker, self._node)


async def _docker(node: PlayedNode, reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]) -> None:
    """Requests until the client has had enough, as Docker does."""
    try:
        while (head := await reader.readuntil(b"\r\n\r\n")).strip():
            body = node.answer(head.split(b" ", 2)[1].decode())
            status = "200 OK" if body is not None else "404 Not Found"
            body = body if body is not None else b'{"message": "not played"}'
            close = b"connection: close" in head.lower()
            more = "Connection: close\r\n" if close else ""
            lines = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}\r\n"
            writer.write(lines.encode() + body)
            if close:
                break
    except (asyncio.IncompleteReadError, asyncssh.Error, OSError):
        pass
    finally:
        writer.close()


async def _process(node: PlayedNode, process: "asyncssh.SSHServerProcess[str]") -> None:
    """Any command is the facts script, once it is there; `true` says nothing."""
    if process.command != "true":
        await process.stdin.read()
        process.stdout.write(node.facts)
    process.exit(0)


async def _serve(count: int, folder: Path) -> None:
    host_key = asyncssh.read_private_key(folder / "host")
    allowed = asyncssh.read_authorized_keys(str(folder / "client.pub"))
    ports = []
    for node in map(PlayedNode, range(count)):
        listener = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=partial(_Server, node),
            process_factory=partial(_process, node),
            server_host_keys=[host_key],
            authorized_client_keys=allowed,
            login_timeout=600,
            backlog=16,
        )
        ports.append(listener.get_port())
    print(json.dumps(ports), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def main() -> None:
    """Serve until stdin ends."""
    asyncio.run(_serve(int(sys.argv[1]), Path(sys.argv[2])))


if __name__ == "__main__":
    main()
