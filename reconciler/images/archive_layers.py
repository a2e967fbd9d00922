"""The layers of an archive of `docker save`, on their way into the vault."""

import gzip
import hashlib
import os
import tempfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.images.vault_draft import trouble

if TYPE_CHECKING:
    from reconciler.images.vault import Vault

CHUNK_BYTES = 1 << 20
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
GZIP_FORMAT = 31
"""zlib's number for it. Its header is without a time, so that the same layer has the same bytes each time."""
LEVEL = 6
BLOCK_BYTES = 4 << 20
"""Of a layer that are compressed for themselves. Fixed: it is part of what makes the bytes the same each time."""
BLOBS = "blobs/sha256/"


@dataclass(frozen=True)
class Layer:
    """A layer in the vault. `diff_id` is empty where nobody here can unpack it (zstd): the nodes' daemons do."""

    digest: str
    size_bytes: int
    diff_id: str


class Layers:
    """Takes layers, and knows them by where they stood in the archive, by their digest and by their content."""

    def __init__(self, vault: "Vault") -> None:
        self._vault = vault
        self._at: dict[str, Layer] = {}

    def take(self, name: str, chunks: Iterator[bytes]) -> None:
        """One that comes. Compressed ones are kept as they are. Raises `SupplyError`."""
        first = next(chunks, b"")
        if not first.startswith((GZIP, ZSTD)):
            self._at[name] = self._compressed(name, first, chunks)
        elif name.startswith(BLOBS):
            self._at[name] = self._kept(f"sha256:{name.removeprefix(BLOBS)}", first, chunks)
        else:
            raise damaged(f"it has a compressed layer in an unknown place, {name}")

    def at(self, name: str) -> Layer:
        """The one that stood there. Raises `SupplyError`."""
        if name not in self._at:
            raise damaged(f"it lacks the layer {name}")
        return self._at[name]

    def has(self, digest: str) -> bool:
        """Whether there is one of this digest, or of this content."""
        return any(digest in {layer.digest, layer.diff_id} for layer in self._at.values())

    def insist(self, digest: str, diff_id: str) -> None:
        """Raises `SupplyError` unless there is a blob of this digest that unpacks to this content."""
        found = next((layer for layer in self._at.values() if layer.digest == digest), None)
        if found is None:
            self._restore(digest)
        elif found.diff_id not in {"", diff_id}:
            raise damaged(f"the layer {digest} is not what its config says")

    def _kept(self, digest: str, first: bytes, chunks: Iterator[bytes]) -> Layer:
        unpacked = _Unpacked() if first.startswith(GZIP) else None
        own, size = hashlib.sha256(), 0
        with self._vault.begin(digest) as draft:
            if not draft.whole:
                draft.restart()
            for chunk in chain((first,), chunks):
                own.update(chunk)
                size += len(chunk)
                if unpacked is not None:
                    unpacked.feed(chunk)
                if not draft.whole:
                    draft.write(chunk)
            draft.check()
            draft.keep()
        if f"sha256:{own.hexdigest()}" != digest:
            raise damaged(f"the bytes of {digest} are others")
        return Layer(digest, size, unpacked.diff_id() if unpacked is not None else "")

    def _compressed(self, name: str, first: bytes, chunks: Iterator[bytes]) -> Layer:
        """Its digest is only known at its end: until then it is in a file without a name."""
        raw, own, size = hashlib.sha256(), hashlib.sha256(), 0
        with self._nameless() as file:
            for packed in _gzipped(_blocks(chain((first,), chunks), raw.update)):
                own.update(packed)
                size += len(packed)
                _write(file, packed, self._vault.folder)
            diff_id = f"sha256:{raw.hexdigest()}"
            if name.startswith(BLOBS) and diff_id != f"sha256:{name.removeprefix(BLOBS)}":
                raise damaged(f"the bytes of {name} are others")
            digest = f"sha256:{own.hexdigest()}"
            file.seek(0)
            self._put(digest, file)
        return Layer(digest, size, diff_id)

    def _restore(self, digest: str) -> None:
        """A containerd store may also keep uncompressed layers; such a one was compressed here when it came."""
        found = next((layer for layer in self._at.values() if layer.diff_id == digest), None)
        file = self._vault.open(found.digest) if found else None
        if found is None or file is None:
            raise damaged(f"it lacks the layer {digest}")
        with file, gzip.open(file) as raw:
            self._put(digest, raw)

    def _put(self, digest: str, file: IO[bytes] | gzip.GzipFile) -> None:
        with self._vault.begin(digest) as draft:
            if not draft.whole:
                draft.restart()
                while chunk := file.read(CHUNK_BYTES):
                    draft.write(chunk)
            draft.check()
            draft.keep()

    def _nameless(self) -> IO[bytes]:
        """A file that goes with this process, however it ends, on the vault's disk."""
        try:
            self._vault.folder.mkdir(parents=True, exist_ok=True)
            return tempfile.TemporaryFile(dir=self._vault.folder, buffering=0)
        except OSError as error:
            raise trouble(error, self._vault.folder) from error


class _Unpacked:
    """The content of a gzip stream, which may have several members."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._member = zlib.decompressobj(GZIP_FORMAT)

    def feed(self, chunk: bytes) -> None:
        """More of it. Raises `SupplyError` for what is no gzip."""
        while chunk:
            if self._member.eof:
                self._member = zlib.decompressobj(GZIP_FORMAT)
            try:
                self._hash.update(self._member.decompress(chunk, CHUNK_BYTES))
            except zlib.error as error:
                raise damaged(f"a layer cannot be unpacked ({error})") from error
            chunk = self._member.unused_data if self._member.eof else self._member.unconsumed_tail

    def diff_id(self) -> str:
        """The digest of the content. Raises `SupplyError` when the end is missing."""
        if not self._member.eof:
            raise damaged("a layer ends too early")
        return f"sha256:{self._hash.hexdigest()}"


def damaged(what: str) -> SupplyError:
    """Something is wrong with the archive."""
    hint = "try again; if it stays so, the image on the node is damaged: build or pull it there again"
    return SupplyError(SupplyErrorKind.DAMAGED, f"the archive cannot be used: {what}", hint)


def _blocks(chunks: Iterator[bytes], on_chunk: Callable[[bytes], object]) -> Iterator[bytes]:
    """The same bytes in blocks of one size, but for the last; one empty block where there are none."""
    rest, count = bytearray(), 0
    for chunk in chunks:
        on_chunk(chunk)
        rest += chunk
        while len(rest) >= BLOCK_BYTES:
            yield bytes(rest[:BLOCK_BYTES])
            del rest[:BLOCK_BYTES]
            count += 1
    if rest or not count:
        yield bytes(rest)


def _gzipped(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Each block as a gzip member, on all processors; members one after the other are a gzip stream as well."""
    workers = os.cpu_count() or 1
    with ThreadPoolExecutor(workers, "fleet-gzip") as pool:
        coming: deque[Future[bytes]] = deque()
        for block in blocks:
            coming.append(pool.submit(_member, block))
            if len(coming) > 2 * workers:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()


def _member(block: bytes) -> bytes:
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_FORMAT)
    return packer.compress(block) + packer.flush()


def _write(file: IO[bytes], data: bytes, folder: Path) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[file.write(rest) :]
        except OSError as error:
            raise trouble(error, folder) from error
