"""The relay program at work on a node, held by an `ssh` child: a seed, or a peer's forwarder to it."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from reconciler.core.transfer import Relay
from reconciler.images import relay as program
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.forwards import Forward, Server
from reconciler.nodes.loopback import insist_on_loopback
from reconciler.nodes.node_blobs import CONTENT
from reconciler.nodes.openssh import Child, OpenSsh
from reconciler.nodes.ways import at_last

ANSWER_S = 30.0
SILENCE_S = 60.0
"""A seed reports at least every 30 s. Longer than a link that is cut for 20 s; shorter than Docker's patience."""

SSH_FAILED = 255
CONTENT_FOLDERS = (f"/var/lib/docker/containerd/daemon/{CONTENT}", f"/var/lib/containerd/{CONTENT}")
SPOOL_FOLDERS = ("/var/tmp", "/var/lib/docker/tmp")  # noqa: S108 - on the node, for files without a name
"""Not /tmp: it may be memory, which the engines need."""

_NO_PYTHON = "@@fleet no python"
_RUN = f'command -v python3 >/dev/null || {{ echo "{_NO_PYTHON}"; exit 0; }}; exec python3 -I -u -c "$1"'

_KINDS = {"port-taken": ErrorKind.CONFLICT, "no-space": ErrorKind.NO_SPACE, "refused": ErrorKind.DENIED}
"""All others are REFUSED."""


@dataclass
class Seed:
    """A node that passes blobs on. `port`: where peers come in. `gone`: it does so no more."""

    ssh: OpenSsh
    relay: Relay
    child: Child
    port: int
    token: str = field(repr=False)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    admitted: set[str] = field(default_factory=set)

    @property
    def node(self) -> str:
        """The node's name."""
        return self.ssh.target.name

    async def admit(self, blobs: Mapping[str, int], peers: Sequence[str] = ()) -> None:
        """Pass these on as well, and to these peers. No effect when it is gone."""
        new = {digest: size for digest, size in blobs.items() if digest not in self.admitted}
        self.admitted.update(new)
        with suppress(NodeError):
            await self.child.write(program.line({"allow": new, "peers": list(peers)}))

    async def watch(self) -> None:
        """Hear its reports until it ends or has been silent for too long."""
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout(SILENCE_S):
                    if await self.child.line() is None:
                        break
        self.gone.set()


@asynccontextmanager
async def seed_at_work(
    ssh: OpenSsh,
    relay: Relay,
    listen_port: int,
    server: Server,
    blobs: Mapping[str, int],
    content_folders: Sequence[str] = CONTENT_FOLDERS,
    spool_folders: Sequence[str] = SPOOL_FOLDERS,
) -> AsyncIterator[Seed]:
    """A seed that serves its own node's Docker on `listen_port` and the relay's peers on its address in the fabric.

    What it lacks it fetches once from the controller's `server`. Raises `NodeError`: CONFLICT (`listen_port` is
    taken), NO_SPACE (no spool folder has room), DENIED, REFUSED (no Python, not its address), or of transport.
    """
    config = {
        "role": "seed",
        "listen_port": listen_port,
        "address": relay.address,
        "peers": relay.peers,
        "token": secrets.token_hex(32),
        "content": content_folders,
        "spool": spool_folders,
        "need_bytes": sum(blobs.values()),
        "allow": dict(blobs),
    }
    child, port = await at_last(lambda: _seed_child(ssh, config, server))
    seed = Seed(ssh, relay, child, port, str(config["token"]), admitted=set(blobs))
    watching = asyncio.create_task(seed.watch())
    try:
        yield seed
    finally:
        watching.cancel()
        seed.gone.set()
        await asyncio.shield(child.close())


async def _seed_child(ssh: OpenSsh, config: Mapping[str, object], server: Server) -> tuple[Child, int]:
    child = await ssh.open(Forward(0, server), script=_RUN, arguments=(program.bootstrap(),))
    [upstream_port] = child.ports
    try:
        insist_on_loopback(ssh.target, upstream_port, child.listeners)
        answer = await _answer(child, {**config, "upstream_port": upstream_port})
    except BaseException:
        await child.close()
        raise
    return child, int(answer["port"])


@dataclass
class Forwarder:
    """A peer's way to the seed. It stands for as long as both do."""

    child: Child
    seed: Seed

    async def ended(self) -> None:
        """See `Standing`."""
        ends = [asyncio.ensure_future(self.child.ended()), asyncio.ensure_future(self.seed.gone.wait())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()

    async def close(self) -> None:
        """See `Standing`."""
        await self.child.close()


async def forwarder(ssh: OpenSsh, seed: Seed, listen_port: int) -> Forwarder:
    """The way from a peer's `listen_port` to the seed. Raises `NodeError` as `seed_at_work` does."""
    child = await ssh.open(script=_RUN, arguments=(program.bootstrap(),))
    config = {
        "role": "peer",
        "listen_port": listen_port,
        "address": seed.relay.address,
        "port": seed.port,
        "token": seed.token,
    }
    try:
        await _answer(child, config)
    except BaseException:
        await child.close()
        raise
    return Forwarder(child, seed)


async def _answer(child: Child, config: Mapping[str, object]) -> dict[str, Any]:
    """Give the program its configuration; what it says when it is ready."""
    node = child.target.name
    try:
        async with asyncio.timeout(ANSWER_S):
            await child.write(program.start_bytes(config))
            said = await child.line()
    except TimeoutError:
        raise NodeError(ErrorKind.REFUSED, f"the relay on {node} did not start within {ANSWER_S:g} s") from None
    if said == _NO_PYTHON:
        raise NodeError(ErrorKind.REFUSED, f"there is no python3 on {node}")
    if said is None:
        raise await _died(child)
    answer: dict[str, Any] = json.loads(said)
    if "error" in answer:
        raise NodeError(_KINDS.get(answer["kind"], ErrorKind.REFUSED), f"no relay on {node}: {answer['error']}")
    return answer


async def _died(child: Child) -> NodeError:
    if await child.ended() == SSH_FAILED:
        return await child.failure()
    last = (await child.words()).splitlines()[-1:] or ["it said nothing"]
    return NodeError(ErrorKind.REFUSED, f"the relay on {child.target.name} ended as it started: {last[0]}")
