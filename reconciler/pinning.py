"""From the name of an image to its pin and to what `fleet.lock` keeps of it: the work of `fleet pin`, as a library."""

import re
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, cast

from pydantic_core import PydanticCustomError

import specs
from reconciler.core.desired import ImagePin
from reconciler.core.lock import PUBLISHED, Lock, LockedImage, LockedLayer, LockedPlatform, name_of
from reconciler.core.observed import LocalImage, NodeFacts
from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.images.publish import publish
from reconciler.images.supply import FROM_LOCK, Supply
from reconciler.images.vault import Vault, default_vault
from reconciler.nodes import protocols
from reconciler.threads import in_thread, with_chunks

DEFAULT_TAG = "latest"
DEFAULT_REGISTRY = "docker.io"
CONNECT_S = 20.0

_ID = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_NO_DIGEST = f"sha256:{'0' * 64}"

OnBytes = Callable[[int], None]
"""Bytes of an archive read so far. Called on a thread of its own."""


class Exports(Protocol):
    """Images of a node that can be read whole."""

    def export(self, reference: str) -> AsyncGenerator[bytes, None]:
        """The archive that `docker save` makes of it, as it comes. Raises `NodeError`."""
        ...


@dataclass(frozen=True)
class Pinned:
    """`reference` is what belongs into the spec; `image` what belongs into the lock, None where it is not known.

    `origin`: who told, for people; `remark`: what they should know beside that.
    """

    reference: str
    image: LockedImage | None
    origin: str
    remark: str = ""


@dataclass(frozen=True)
class ImageName:
    """An image as it is written. `name` is without the digest; `digest` is empty for a bare tag."""

    name: str
    registry: str
    repository: str
    tag: str
    digest: str

    @classmethod
    def parse(cls, text: str) -> "ImageName":
        """The name in a reference, pinned or not. Raises `SupplyError`."""
        if text.startswith("sha256:"):
            message = f"'{text[:80]}' is not the id of an image: that is sha256: and 64 digits 0-9a-f"
            raise SupplyError(SupplyErrorKind.REFUSED, message, "`docker image ls --no-trunc` shows whole ids")
        name, _, digest = text.partition("@")
        try:
            found = specs.ImageRef.parse(f"{name}@{digest or _NO_DIGEST}")
        except PydanticCustomError as error:
            told = error.context or {}
            raise SupplyError(SupplyErrorKind.REFUSED, error.message(), str(told.get("hint", ""))) from None
        tag = name.rpartition("/")[2].partition(":")[2] or DEFAULT_TAG
        return cls(name, found.registry, found.repository, tag, digest)

    def pin(self, digest: str) -> ImagePin:
        """This name at a digest."""
        return ImagePin(f"{self.name}@{digest}", digest, "digest", self.registry, self.repository)

    def is_of(self, name: str) -> bool:
        """Whether Docker's short form of a name is this one."""
        try:
            other = ImageName.parse(name)
        except SupplyError:
            return False
        same = (self.registry, self.repository, self.tag) == (other.registry, other.repository, other.tag)
        return same and not other.digest

    @property
    def on_nodes(self) -> "ImageName":
        """What it is called where it was built: a published one's registry is none."""
        if self.registry != PUBLISHED:
            return self
        return ImageName.parse(f"{self.repository}:{self.tag}")


def is_id(text: str) -> bool:
    """Whether a text is the id of a local build."""
    return _ID.fullmatch(text) is not None


def by_tag(text: str) -> str:
    """A pinned reference without its digest: what its tag is asked for by. As it is where no tag says what is meant."""
    name = text if is_id(text) else ImageName.parse(text).name
    return name if ":" in name.rpartition("/")[2] else text


def has_registry(text: str) -> bool:
    """Whether there is a registry that can be asked for it; of what is in vaults only, nodes can be."""
    return not is_id(text) and ImageName.parse(text).registry != PUBLISHED


def merged(lock: Lock, images: Iterable[LockedImage], in_use: Collection[str]) -> Lock:
    """The lock with these images, and without others of their names, but for those whose digest is `in_use`."""
    fresh = {image.digest: image for image in images}
    names = {image.name for image in fresh.values() if image.name}
    kept = (item for item in lock.images if item.digest not in fresh)
    return Lock((*(item for item in kept if item.name not in names or item.digest in in_use), *fresh.values()))


def only(lock: Lock, in_use: Collection[str]) -> Lock:
    """The lock without images that no digest of `in_use` names."""
    return Lock(tuple(image for image in lock.images if image.digest in in_use))


class Pinner:
    """Pins images. `nodes` is needed for what only a node can tell."""

    def __init__(
        self, supply: Supply, vault: Vault, nodes: protocols.Fleet | None = None, deadline_s: float = CONNECT_S
    ) -> None:
        self._supply, self._vault, self._nodes, self._deadline_s = supply, vault, nodes, deadline_s

    @classmethod
    def of(
        cls, spec: specs.Spec, lock: Lock, nodes: protocols.Fleet | None = None, deadline_s: float = CONNECT_S
    ) -> "Pinner":
        """For the images of a spec, of which the inventory is enough."""
        vault = Vault(spec.images.vault or default_vault())
        endpoints = {host: item.endpoint for host, item in spec.registries.items() if item.endpoint is not None}
        return cls(Supply(vault, endpoints, lock, owner=spec.fleet), vault, nodes, deadline_s)

    async def from_registry(self, text: str) -> Pinned:
        """What the image's registry says its tag is now; a digest that is written stays. Raises `SupplyError`."""
        if is_id(text):
            image = self._supply.in_lock(text)
            if image is not None:
                return Pinned(text, image, FROM_LOCK)
            hint = "`--from NODE` names a node that has it"
            raise SupplyError(SupplyErrorKind.REFUSED, f"{text} is a local build", hint)
        name = ImageName.parse(text)
        try:
            digest = name.digest or await in_thread(partial(self._resolve, name))
            return await self._locked(name.pin(digest))
        except SupplyError as error:
            hint = f"{error.hint}{error.hint and '; '}`--from NODE` asks a node that has it"
            raise SupplyError(error.kind, error.message, hint) from error

    async def from_node(self, text: str, node: str) -> Pinned:
        """What a node has under this name, id or digest. Raises `SupplyError` and `NodeError`.

        A digest is a registry's where the classic store knows it, which has it of nobody else; the containerd store
        gives one to local builds as well, so there the registry is asked, and believed when it does not have it.
        """
        session = await self._node(node)
        facts, image = await session.observer.observe(), await self._image_on(session, text)
        error = None
        for digest in () if is_id(text) else self._candidates(ImageName.parse(text), image):
            pin = ImageName.parse(text).pin(digest)
            try:
                return await self._locked(pin, f"{node}, ")
            except SupplyError as raised:
                error = raised
            if facts.store == "classic" or error.kind is SupplyErrorKind.NO_ANSWER:
                remark = f"its layers are not known, so fleet.lock gets no entry: {error.message}"
                if facts.store == "containerd":
                    remark += f". If it is {_advice(node)}"
                return Pinned(pin.reference, None, node, remark)
        return Pinned(image.id, _local_build(image, facts), node, _advice(node))

    async def published(self, text: str, node: str, on_bytes: OnBytes = lambda count: None) -> Pinned:
        """The image of a node, read whole into the vault; the digest it has there. Raises as `from_node`."""
        session = await self._node(node)
        facts, image = await session.observer.observe(), await self._image_on(session, text)
        if facts.store == "containerd" and not image.complete:
            message = f"{node} can run {text}, but does not have all its bytes (its layers came with other images)"
            raise SupplyError(SupplyErrorKind.REFUSED, message, "pull it again there, or publish it from another node")
        locked = await self._exported(session, text, image, on_bytes)
        locked = replace(locked, name=_published_name(text, image, locked.digest))
        await in_thread(partial(self._vault.keep, self._supply.owner, locked.digest))
        return Pinned(f"{locked.name}@{locked.digest}", locked, f"{node}, now in the vault {self._vault.folder}")

    async def _exported(self, session: protocols.Node, text: str, image: LocalImage, on_bytes: OnBytes) -> LockedImage:
        """Its archive, in the vault. One that comes cut or changed is asked for once more."""
        read = partial(self._read, session, text, image, on_bytes)
        try:
            return await read()
        except SupplyError as error:
            if error.kind is not SupplyErrorKind.DAMAGED:
                raise
        return await read()

    async def _read(self, session: protocols.Node, text: str, image: LocalImage, on_bytes: OnBytes) -> LockedImage:
        chunks = cast("Exports", session.images).export(image.id)
        try:
            return await with_chunks(chunks, partial(self._publish, image, on_bytes))
        except SupplyError as error:
            message = f"{text} of {session.name} cannot be published: {error.message}"
            raise SupplyError(error.kind, message, error.hint) from error

    def _publish(self, image: LocalImage, on_bytes: OnBytes, chunks: Iterator[bytes]) -> LockedImage:
        return publish(_counted(chunks, on_bytes), image.id, PUBLISHED, self._vault)

    def _resolve(self, name: ImageName) -> str:
        return self._supply.upstream(name.registry).resolve(name.repository, name.tag)

    async def _locked(self, pin: ImagePin, teller: str = "") -> Pinned:
        image = await in_thread(partial(self._supply.checked, pin))
        return Pinned(pin.reference, replace(image, name=name_of(pin.reference)), f"{teller}{self._supply.teller(pin)}")

    async def _node(self, node: str) -> protocols.Node:
        if self._nodes is None:
            raise SupplyError(SupplyErrorKind.REFUSED, f"nobody said how {node} is reached")
        return await self._nodes.connect(node, self._deadline_s)

    async def _image_on(self, session: protocols.Node, text: str) -> LocalImage:
        """The image of the node that has this id, digest or name. Raises `SupplyError`.

        What was published is known by its config, too: the node it was built on never heard of its digest.
        """
        name = None if is_id(text) else ImageName.parse(text)
        called = name and name.on_nodes
        digest = name.digest if name else text
        locked = self._supply.in_lock(digest)
        wanted = {digest, *(item.config for item in locked.platforms)} if locked else {digest}
        for image in await session.images.inventory():
            known = {image.id, *image.digests}
            if known & wanted if digest else any(_is_called(image, one) for one in (name, called)):
                if image.usable:
                    return image
                message = f"{session.name} lists {text}, but its content is not there"
                raise SupplyError(SupplyErrorKind.NOT_FOUND, message, "pull it again there, or name another node")
        hint = f"`docker image ls --digests` on {session.name} shows what is there"
        raise SupplyError(SupplyErrorKind.NOT_FOUND, f"{session.name} has no image {text}", hint)

    @staticmethod
    def _candidates(name: ImageName, image: LocalImage) -> tuple[str, ...]:
        return (name.digest,) if name.digest else image.digests


def _is_called(image: LocalImage, name: ImageName | None) -> bool:
    return name is not None and any(map(name.is_of, image.names))


def _local_build(image: LocalImage, facts: NodeFacts) -> LockedImage:
    """What an image's own node tells of it. Its id is the config digest in the classic store, and only there."""
    config = image.id if facts.store == "classic" else ""
    layers = tuple(LockedLayer("", 0, diff_id) for diff_id in image.diff_ids)
    return LockedImage("", image.id, "id", (LockedPlatform(facts.platform, "", 0, config, 0, layers),))


def _advice(node: str) -> str:
    return f"a local build: other nodes cannot pull it; with --publish it gets a digest and comes from here, not {node}"


def _published_name(text: str, image: LocalImage, digest: str) -> str:
    """The image's own name where it names a registry and the digest is the one it has there; else one of the vault's.

    The containerd store gives local builds a digest under Docker Hub's name, where nobody ever pushed them.
    """
    written = text if not is_id(text) else next((item for item in image.names if "@" not in item), "local")
    name = ImageName.parse(written)
    if digest in image.digests and name.registry not in {DEFAULT_REGISTRY, PUBLISHED}:
        return name.name
    return f"{PUBLISHED}/{name.repository.removeprefix('library/')}:{name.tag}"


def _counted(chunks: Iterator[bytes], on_bytes: OnBytes) -> Iterator[bytes]:
    count = 0
    for chunk in chunks:
        count += len(chunk)
        on_bytes(count)
        yield chunk
