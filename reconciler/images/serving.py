"""The controller's registry, which nodes reach through SSH forwards: on a Unix socket, or on loopback.

What is offered and not in the vault is fetched when a node asks for it, so that nothing comes that no node lacks.
"""

import io
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from reconciler.images.blob_server import Allowance, Handler, Registry
from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.images.shelf import Shelf
from reconciler.images.stores import Draft, LastingError, Store
from reconciler.images.vault import Vault

LOOPBACK = "127.0.0.1"
GOODBYE_S = 2.0  # what is fetched and proved by then is kept; anything else goes on from its part next time

BlobFetch = Callable[[str, int], AbstractContextManager[Iterator[bytes]]]
"""Digest and offset -> the bytes from there on. Raises `SupplyError`, also while iterating."""


class UnwantedError(LastingError):
    """Nobody is offered the blob any more."""


class _Watched(Store):
    """A vault whose blobs are hashed when they are asked for again: a node that asks twice did not like what it got."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    def open(self, digest: str) -> io.FileIO | None:
        """See `Store`. A blob that went bad is taken out and is not here."""
        with self._lock:
            self._asked[digest] += 1
            is_sound = self._asked[digest] != 2 or not self._vault.has(digest) or self._vault.verify(digest)
        return self._vault.open(digest) if is_sound else None

    def begin(self, digest: str) -> AbstractContextManager[Draft]:
        """See `Store`."""
        return self._vault.begin(digest)

    def discard(self, digest: str) -> None:
        """See `Store`."""
        self._vault.discard(digest)


class _SocketHandler(Handler):
    """One connection on a Unix socket, where there is no algorithm of Nagle's to disable."""

    disable_nagle_algorithm = False


class SocketRegistry:
    """Serves the blobs of a vault to whoever comes in from this machine. Used on threads, by several at once."""

    def __init__(
        self, vault: Vault, fetch: BlobFetch, bandwidth_bytes_s: int | None = None, at: Path | None = None
    ) -> None:
        """`bandwidth_bytes_s`: how much is sent at most, to all together.

        `at`: a Unix socket to listen on, which takes a quarter of the processor time of TCP away; None: a free port.
        """
        self._at = at
        self._source = fetch
        self._allowance = Allowance(bandwidth_bytes_s)
        self._offers: Counter[str] = Counter()
        self._sizes: dict[str, int | None] = {}
        self._shelf = Shelf((_Watched(vault),), self._fetch, self._sizes.get)
        self._lock = threading.Lock()
        self._registry: Registry | None = None

    @property
    def sent_bytes(self) -> int:
        """Bytes of blobs that went to nodes so far."""
        return self._shelf.traffic.sent

    @property
    def received_bytes(self) -> int:
        """Bytes of blobs that came from sources so far."""
        return self._shelf.traffic.received

    def start(self) -> int:
        """Listen; the port on 127.0.0.1, 0 on a Unix socket. Again: the same port."""
        with self._lock:
            if self._registry is None:
                host, handler = (str(self._at), _SocketHandler) if self._at else (LOOPBACK, Handler)
                self._registry = Registry(host, 0, self._shelf, self._sizes.__contains__, self._allowance, handler)
                self._registry.start()
            return self._registry.port

    @contextmanager
    def offering(self, digests: Mapping[str, int | None]) -> Iterator[None]:
        """Serve these digests, with their sizes in bytes where they are known, inside the block. Blocks may overlap."""
        with self._lock:
            self._offers.update(digests.keys())
            self._sizes.update({digest: size or self._sizes.get(digest) for digest, size in digests.items()})
        try:
            yield
        finally:
            with self._lock:
                self._offers.subtract(digests.keys())
                for digest in digests:
                    if not self._offers[digest]:
                        del self._offers[digest], self._sizes[digest]

    def last_error(self, digest: str) -> SupplyError | None:
        """Why the blob could not be fetched; None when it could, and when nobody asked for it."""
        error: BaseException | None = self._shelf.errors.get(digest)
        if error is None or isinstance(error, UnwantedError):
            return None
        told = error
        while error is not None and not isinstance(error, SupplyError):
            error = error.__cause__
        return error or SupplyError(SupplyErrorKind.NO_ANSWER, str(told))

    def has_given_up(self, digest: str) -> bool:
        """Whether the blob was waited for in vain a moment ago."""
        return self._shelf.has_given_up(digest)

    def close(self) -> None:
        """Stop listening, cut connections, fetch no more."""
        with self._lock:
            registry, self._registry = self._registry, None
            self._offers.clear()
            self._sizes.clear()
        if registry:
            registry.close()
        if self._at is not None:
            self._at.unlink(missing_ok=True)
        self._shelf.settle(GOODBYE_S)

    @contextmanager
    def _fetch(self, digest: str, offset: int) -> Iterator[tuple[int | None, Iterator[bytes]]]:
        """See `shelf.Fetch`: of the source's errors, no answer is worth another try."""
        try:
            with ExitStack() as stack:
                yield None, self._wanted(digest, self._opened(stack, digest, offset))
        except SupplyError as error:
            again = error.kind is SupplyErrorKind.NO_ANSWER
            raise (ConnectionError if again else LastingError)(error.message) from error

    def _opened(self, stack: ExitStack, digest: str, offset: int) -> Iterator[bytes]:
        """The source's bytes from the offset on, also of one that can only start at the beginning."""
        try:
            return stack.enter_context(self._source(digest, offset))
        except SupplyError as error:
            if not offset or error.kind is not SupplyErrorKind.REFUSED:
                raise
        return behind(offset, stack.enter_context(self._source(digest, 0)))

    def _wanted(self, digest: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            if digest not in self._sizes:
                raise UnwantedError(f"{digest} is not offered any more")
            yield chunk


def behind(offset: int, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The bytes from an offset on."""
    for chunk in chunks:
        if offset < len(chunk):
            yield chunk[offset:]
        offset = max(0, offset - len(chunk))
