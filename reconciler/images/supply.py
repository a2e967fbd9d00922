"""What the controller knows of images, and where it gets their bytes: its vault, nodes that have them, registries."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from reconciler.core.desired import ImagePin
from reconciler.core.lock import NO_LOCK, PUBLISHED, Lock, LockedImage, name_of
from reconciler.core.observed import Source, SourceImage, SourceMissing, SourceUnknown
from reconciler.images.documents import locked_image
from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.images.sources import BlobSource
from reconciler.images.upstream import Upstream, endpoint_url
from reconciler.threads import in_thread

if TYPE_CHECKING:
    from reconciler.images.vault import Vault

FROM_LOCK = "fleet.lock"
FROM_VAULT = "the vault"


class Supply:
    """What is known of images, learnt once for its life. Methods that are not async may block: they are for threads.

    `endpoints` maps a registry's host to the URL where the controller reaches it. `from_nodes`: registries that the
    nodes' own daemons may ask. `owner`: whose images these are in the vault.
    """

    def __init__(
        self,
        vault: "Vault",
        endpoints: Mapping[str, str],
        lock: Lock = NO_LOCK,
        from_nodes: frozenset[str] = frozenset(),
        owner: str = "fleet",
    ) -> None:
        self.owner = owner
        self._vault, self._endpoints, self._lock, self._from_nodes = vault, dict(endpoints), lock, from_nodes
        self._told: dict[ImagePin, Source] = {}
        self._images: dict[str, LockedImage] = {}
        self._tellers: dict[str, str] = {}
        self._pins: dict[str, dict[ImagePin, None]] = {}
        self._documents: set[str] = set()
        self._nodes: dict[str, dict[str, BlobSource]] = {}
        self._upstreams: dict[str, Upstream] = {}
        self._guard = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}

    # what is known

    async def describe(self, pin: ImagePin) -> Source:
        """What the source says of the image. Never raises for an absent image or an unreachable source."""
        if pin not in self._told:
            self._told[pin] = await self._described(pin)
        return self._told[pin]

    async def _described(self, pin: ImagePin) -> Source:
        if pin.kind == "id":
            return SourceUnknown(pin.digest, "a local build has no registry")
        try:
            image = await in_thread(partial(self._agreed, pin))
        except SupplyError as error:
            return self._unsupplied(pin, error)
        except OSError as error:
            return SourceUnknown(pin.digest, f"the vault cannot be used: {error}")
        sizes = tuple((item.platform, item.compressed_bytes) for item in image.platforms)
        return SourceImage(pin.digest, sizes, image, await in_thread(partial(self._origin, pin, image)))

    def _origin(self, pin: ImagePin, image: LockedImage) -> str:
        """Where its layers would come from, as far as this is known without asking anybody; empty for nowhere."""
        there = [[self._is_kept(layer.digest) for layer in item.layers] for item in image.platforms]
        if any(map(all, there)):
            return FROM_VAULT
        kept = FROM_VAULT if any(map(any, there)) else ""
        elsewhere = next((source.name for source, _ in self._places((pin,))), "")
        return " and ".join(filter(None, (kept, elsewhere)))

    def _is_kept(self, digest: str) -> bool:
        try:
            return self._vault.has(digest)
        except SupplyError:  # a vault that cannot be used has nothing
            return False

    def _unsupplied(self, pin: ImagePin, error: SupplyError) -> Source:
        if error.kind is SupplyErrorKind.NOT_FOUND:
            return SourceMissing(pin.digest, error.message)
        reason = f"{error.message} ({error.hint})" if error.kind is SupplyErrorKind.DENIED else error.message
        only = "; the spec lets the nodes' own daemons ask it (from_nodes)" if pin.registry in self._from_nodes else ""
        return SourceUnknown(pin.digest, f"{reason}{only}")

    def locked(self, pin: ImagePin) -> LockedImage:
        """The image down to its layers: from the lock, the vault, a node or upstream. Raises `SupplyError`."""
        with self._turns.setdefault(pin.digest, threading.Lock()):
            found = self._remembered(pin)
            if found is None:
                found, teller = self._learnt(pin)
                self._remember(pin, found, teller)
            return found

    def checked(self, pin: ImagePin) -> LockedImage:
        """The image down to its layers by its documents, whose bytes are hashed. Raises `SupplyError`.

        The lock is believed only where nobody answers who has the documents.
        """
        try:
            found, teller = self._learnt(pin)
        except SupplyError as error:
            told = self._lock.find(pin.digest)
            if told is None or error.kind is not SupplyErrorKind.NO_ANSWER:
                raise
            found, teller = told, FROM_LOCK
        self._remember(pin, found, teller)
        self._tellers[pin.digest] = teller
        return found

    def _agreed(self, pin: ImagePin) -> LockedImage:
        """What is known of it. Raises `SupplyError` when the lock says other than the documents that are here."""
        image = self.locked(pin)
        try:
            documents = locked_image(image.name, pin.digest, partial(self._kept, SupplyErrorKind.NO_ANSWER))
        except SupplyError:
            return image
        if _content(image).items() <= _content(documents).items():
            return image
        message = f"fleet.lock says of {pin.short} what its own documents do not"
        raise SupplyError(SupplyErrorKind.DAMAGED, message, "`fleet pin --all` writes it anew")

    def teller(self, pin: ImagePin) -> str:
        """Who told what is known of the image, for people; empty while nothing is known."""
        return self._tellers.get(pin.digest, "")

    def in_lock(self, digest: str) -> LockedImage | None:
        """What the lock has under this digest."""
        return self._lock.find(digest)

    def blobs_of(self, pin: ImagePin, platform: str) -> dict[str, int]:
        """Digest -> size in bytes of everything a node's daemon may ask for. Raises `SupplyError`.

        Does not block for an image that was described. A local build has nothing that could be asked for.
        """
        image = self._remembered(pin) or self.locked(pin)
        if image.kind == "id":
            return {}
        item = image.platform(platform)
        if item is None:
            made = ", ".join(other.platform for other in image.platforms)
            raise SupplyError(SupplyErrorKind.REFUSED, f"{pin.short} is made for {made}, not for {platform}")
        top = image.size_bytes or self._vault.size(pin.digest) or 0
        sizes = {pin.digest: top, item.manifest: item.manifest_bytes, item.config: item.config_bytes}
        return {**sizes, **{layer.digest: layer.size_bytes for layer in item.layers}}

    def _remembered(self, pin: ImagePin) -> LockedImage | None:
        """What is known already. It costs nothing, so it also notes by whom the image may be asked for."""
        image = self._images.get(pin.digest) or self._lock.find(pin.digest)
        if image is not None and pin not in self._pins.get(pin.digest, {}):
            self._remember(pin, image, self._tellers.get(pin.digest, FROM_LOCK))
        return image

    def _remember(self, pin: ImagePin, image: LockedImage, teller: str) -> None:
        with self._guard:
            self._images[pin.digest] = image
            self._tellers.setdefault(pin.digest, teller)
            documents = {image.digest}.union(*((item.manifest, item.config) for item in image.platforms))
            self._documents |= documents
            layers = {layer.digest for item in image.platforms for layer in item.layers}
            for digest in documents | layers:
                self._pins.setdefault(digest, {})[pin] = None

    def _learnt(self, pin: ImagePin) -> tuple[LockedImage, str]:
        """From documents: all of the vault's; else those of other sources; else the vault's, whatever is there."""
        name = name_of(pin.reference)
        with suppress(SupplyError):  # what is not there, or not whole, is had elsewhere
            return locked_image(name, pin.digest, partial(self._kept, SupplyErrorKind.NO_ANSWER)), FROM_VAULT
        tellers: list[str] = []
        try:
            return locked_image(name, pin.digest, partial(self._document, pin, tellers)), (tellers or [FROM_VAULT])[0]
        except SupplyError:
            with suppress(SupplyError):  # what went wrong before says more
                return locked_image(name, pin.digest, partial(self._kept, SupplyErrorKind.NOT_FOUND)), FROM_VAULT
            raise

    def _kept(self, absent: SupplyErrorKind, digest: str, largest: int) -> bytes:
        """A document of the vault. `absent`: what it means that it is not there."""
        size = self._vault.size(digest)
        if size is None or size > largest:
            raise SupplyError(absent, f"the vault has no {digest}")
        return self._vault.read(digest)

    def _document(self, pin: ImagePin, tellers: list[str], digest: str, largest: int) -> bytes:
        """A document of the vault, or from elsewhere: then it is kept, so that the next run needs nobody."""
        with suppress(SupplyError):
            return self._kept(SupplyErrorKind.NOT_FOUND, digest, largest)
        failures: list[SupplyError] = []
        for source, repository in self._places((pin,)):
            try:
                data = source.document(repository, digest)
            except SupplyError as error:
                failures.append(error)
                continue
            tellers.append(source.name)
            self._keep(data)
            return data
        raise _failed(failures)

    def _keep(self, data: bytes) -> None:
        with suppress(SupplyError, OSError):  # a full disk is no reason not to know the image
            self._vault.put(data)

    # where bytes are

    def add_source(self, pin: ImagePin, source: BlobSource) -> None:
        """Somebody who has all bytes of the image: asked before its registry."""
        with self._guard:
            self._nodes.setdefault(pin.digest, {})[source.name] = source
        self._told.pop(pin, None)

    def upstream(self, registry: str) -> Upstream:
        """The registry of this name. Raises `SupplyError` for the one that is none."""
        if registry == PUBLISHED:
            raise _only_in_vaults()
        with self._guard:
            if registry not in self._upstreams:
                self._upstreams[registry] = Upstream(endpoint_url(registry, self._endpoints), registry)
            return self._upstreams[registry]

    @contextmanager
    def fetch(self, digest: str, offset: int = 0) -> Iterator[Iterator[bytes]]:
        """The bytes of a blob of a known image from `offset` on, as they come, not verified. Raises `SupplyError`.

        A source that fails before its first byte gives way to the next. The kind is REFUSED when another try from
        offset 0 could do better.
        """
        pins = tuple(self._pins.get(digest, ()))
        if not pins:
            raise SupplyError(SupplyErrorKind.NOT_FOUND, f"{digest} is part of no image that is known here")
        with ExitStack() as stack:
            yield self._begun(stack, pins, digest, offset)

    def _begun(self, stack: ExitStack, pins: tuple[ImagePin, ...], digest: str, offset: int) -> Iterator[bytes]:
        failures: list[SupplyError] = []
        for source, repository in self._places(pins):
            with ExitStack() as attempt:
                try:
                    chunks = attempt.enter_context(self._from(source, repository, digest, offset))
                    first = next(chunks, b"")
                except SupplyError as error:
                    failures.append(error)
                    continue
                stack.enter_context(attempt.pop_all())
                return chain((first,), chunks)
        raise _failed(failures)

    @contextmanager
    def _from(self, source: BlobSource, repository: str, digest: str, offset: int) -> Iterator[Iterator[bytes]]:
        """A blob; documents are asked for as such: a registry has them elsewhere."""
        if digest in self._documents:
            yield iter((source.document(repository, digest)[offset:],))
        else:
            with source.blob(repository, digest, offset) as chunks:
                yield chunks

    def _places(self, pins: tuple[ImagePin, ...]) -> Iterator[tuple[BlobSource, str]]:
        """Who may have what is part of these images, and in which repository: nodes first, each once."""
        for pin in pins:
            for source in tuple(self._nodes.get(pin.digest, {}).values()):
                yield source, pin.repository or ""
        places = dict.fromkeys((pin.registry, pin.repository) for pin in pins)
        for registry, repository in places:
            if registry and repository and registry != PUBLISHED:
                yield self.upstream(registry), repository


def _content(image: LockedImage) -> dict[str, object]:
    """What the documents say, by platform; how large layers are unpacked is not in them."""
    return {
        item.platform: (item.manifest, item.config, [(one.digest, one.size_bytes, one.diff_id) for one in item.layers])
        for item in image.platforms
    }


def _failed(failures: Sequence[SupplyError]) -> SupplyError:
    """What all the sources said together; the last one's kind, unless one would go on from the beginning."""
    if not failures:
        return _only_in_vaults()
    told = "; ".join(dict.fromkeys(error.message for error in failures))
    refused = any(error.kind is SupplyErrorKind.REFUSED for error in failures)
    return SupplyError(SupplyErrorKind.REFUSED if refused else failures[-1].kind, told, failures[-1].hint)


def _only_in_vaults() -> SupplyError:
    message = f"it is not in this vault, and {PUBLISHED} is no registry: it stands for the vaults that have an image"
    hint = "`fleet pin NAME --from NODE --publish`, on a node that has it, brings it back into the vault"
    return SupplyError(SupplyErrorKind.NOT_FOUND, message, hint)
