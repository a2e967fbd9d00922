"""The narrow doors to a node. Real nodes (`reconciler.nodes`) and simulated ones (`reconciler.testing`) pass one
contract suite (`tests/contract`).

Every call may raise `NodeError`. A call that changes something is safe to look at afterwards: names are deterministic
and labels carry the operation, so after a lost reply the caller inspects instead of repeating blindly.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from reconciler.core.desired import ContainerSpec, ImagePin
from reconciler.core.hooks import HookCall
from reconciler.core.leases import Claim, Holder
from reconciler.core.observed import Container, LocalImage, NodeFacts, Source
from reconciler.core.secret_marks import Mark
from reconciler.core.transfer import Relay
from reconciler.nodes.model_door import Models as Models  # noqa: PLC0414 - of these doors, too
from reconciler.nodes.progress import OnProgress as OnProgress  # noqa: PLC0414
from reconciler.nodes.progress import Progress as Progress  # noqa: PLC0414


@dataclass(frozen=True)
class HttpReply:
    """Status and body of an engine's answer."""

    status: int
    body: bytes


@dataclass(frozen=True)
class ProgramEnd:
    """The exit code of a program, and the beginning of what it printed, stdout and stderr mixed."""

    code: int
    output: bytes


class Observer(Protocol):
    """Reads a node."""

    async def observe(self, paths: Collection[str] = ()) -> NodeFacts:
        """All facts of the node, read in few round trips, and which of `paths` are not there. Changes nothing."""
        ...


class Containers(Protocol):
    """The containers of a node. `ref` is an id or a name."""

    async def inspect(self, ref: str) -> Container | None:
        """The container now, or None when there is none."""
        ...

    async def create(
        self, name: str, spec: ContainerSpec, image_id: str, labels: Mapping[str, str], secrets: Mapping[str, str]
    ) -> str:
        """Create without starting, from the local image `image_id`; the new container's id.

        `secrets` maps each `SecretRef.secret` of the spec to its value. Raises `NodeError` of kind CONFLICT when the
        name is taken.
        """
        ...

    async def start(self, ref: str) -> None:
        """Start; no effect when it runs."""
        ...

    async def stop(self, ref: str, grace_s: float) -> None:
        """SIGTERM, and SIGKILL after `grace_s`; returns when it is stopped; no effect when it is."""
        ...

    async def rename(self, ref: str, name: str) -> None:
        """Give another name."""
        ...

    async def remove(self, ref: str) -> None:
        """Remove a stopped container; a running one is refused; no effect when there is none."""
        ...

    async def logs(self, ref: str, tail: int, since: str = "") -> Sequence[str]:
        """The last `tail` lines, stdout and stderr mixed, without line ends.

        `since`: only what was said since this time, as Docker tells of times ("started_at" of a container); what was
        said in the second before may be among it.
        """
        ...

    async def run(self, ref: str, words: Sequence[str], timeout_s: float) -> ProgramEnd:
        """Run a program in a running container, and wait for its end within `timeout_s`; one that cannot be found ends
        with 126 or 127. Past its time it is ended, where the container has a shell. Raises `NodeError` of kind CONFLICT
        where nothing runs.
        """
        ...

    async def live_marks(self, ref: str, mark: Mark) -> Mapping[str, str]:
        """The mark of the value that each secret of a container has in it now, by env key: no value is told. Empty when
        there is no container.
        """
        ...

    def follow(self, ref: str, tail: int) -> AsyncIterator[str]:
        """The last `tail` lines and then each new one until the container stops."""
        ...


class Images(Protocol):
    """Brings images to a node by digest."""

    async def present(self, pin: ImagePin) -> LocalImage | None:
        """The usable local image with this content, or None."""
        ...

    async def stage(
        self, pin: ImagePin, platform: str, on_progress: OnProgress, relay: Relay | None = None
    ) -> LocalImage:
        """Make the image present and usable, verified by content; the local image. No effect when it is.

        `relay`: who passes the bytes on, this node or a neighbour; where that cannot be, they come from the controller.
        """
        ...

    async def inventory(self) -> tuple[LocalImage, ...]:
        """All images with their layers, sizes and times. Changes nothing."""
        ...

    async def remove(self, image: LocalImage) -> None:
        """Take away the image with all its names. Raises `NodeError` of kind CONFLICT while a container uses it."""
        ...


class EngineAccess(Protocol):
    """Talks to the engines of a node through the node's own connection."""

    async def http(
        self, address: str, port: int, method: str, path: str, body: Mapping[str, object] | None, timeout_s: float
    ) -> HttpReply:
        """One HTTP request to `address:port` as seen from the node."""
        ...

    async def accepts(self, address: str, port: int, timeout_s: float) -> bool:
        """Whether `address:port` accepts a TCP connection, as seen from the node."""
        ...


class Lease(Protocol):
    """The exclusive right to change a node, had by one session. It keeps itself alive until it is released.

    It ends by itself when its session does, and when nothing was heard of the controller for a while; the session is
    ended first, so that nothing comes over it afterwards.
    """

    @property
    def fence(self) -> int:
        """The claim's number on the node, greater than that of every claim before it.

        A claim that comes back finds it unchanged, unless another had the lease meanwhile or it was broken.
        """
        ...

    @property
    def boot_id(self) -> str:
        """The node's boot id when it was taken."""
        ...

    @property
    def follows_another(self) -> bool:
        """Whether the lease before it, of which the node knows, was another claim's, or was broken."""
        ...

    async def check(self) -> None:
        """Prove by a round trip that it is held right now. Raises `LeaseLostError`, or `NodeError` of transport."""
        ...

    async def release(self) -> None:
        """Give it back; the node is free at once. Never raises; no effect when it is lost or released already.

        Returns within seconds whatever hangs: what could not be given back lapses by itself.
        """
        ...


class Leases(Protocol):
    """The lease of a node: one for its Docker engine, whatever name, user or controller asks for it."""

    async def take(self, claim: Claim) -> Lease:
        """The lease. Raises `LeaseHeldError` when another claim has it.

        Of the same claim, an earlier session is ended first: its connection was lost, and the node may not know yet.
        """
        ...

    async def holder(self) -> Holder | None:
        """Who has it now; None when nobody does. Changes nothing."""
        ...

    async def break_held(self) -> Holder | None:
        """End the lease, whoever has it, and their session first; who had it. None, and no effect, when nobody does.

        Raises `NodeError` DENIED when the holder does not end and may not be ended by this login.
        """
        ...


class Node(Protocol):
    """An open session with one node."""

    @property
    def name(self) -> str:
        """The node's name in the spec."""
        ...

    @property
    def observer(self) -> Observer:
        """Reads the node."""
        ...

    @property
    def containers(self) -> Containers:
        """Its containers."""
        ...

    @property
    def images(self) -> Images:
        """Its images."""
        ...

    @property
    def models(self) -> Models:
        """Its models."""
        ...

    @property
    def engines(self) -> EngineAccess:
        """Its engines."""
        ...

    @property
    def leases(self) -> Leases:
        """Its lease."""
        ...

    async def close(self) -> None:
        """End the session."""
        ...


class Sources(Protocol):
    """Where images come from, as the controller sees it."""

    async def describe(self, pin: ImagePin) -> Source:
        """What the source says of the image. Never raises for an absent image or an unreachable source."""
        ...


class Hooks(Protocol):
    """What the controller calls around a change."""

    async def call(self, call: HookCall) -> str:
        """Call it, wait for its end; the end of what it said. Raises `HookError`.

        Cancelled, or when its time is over, what it started is ended with it.
        """
        ...


class Fleet(Protocol):
    """All nodes of a fleet: how to reach each, and where images come from."""

    @property
    def sources(self) -> Sources:
        """Where images come from."""
        ...

    @property
    def hooks(self) -> Hooks:
        """What the controller calls around a change."""
        ...

    @property
    def sent_bytes(self) -> int:
        """Bytes of images that left the controller so far."""
        ...

    async def connect(self, node: str, deadline_s: float) -> Node:
        """An open session with `node`. Raises `NodeUnknownError` when it cannot be had within `deadline_s`.

        Sessions are shared: asking again gives the open one, or a new one when that was lost.
        """
        ...

    async def close(self) -> None:
        """End all sessions."""
        ...
