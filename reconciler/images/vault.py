"""The vault: image blobs on the controller, kept by their digest across runs, in the form of an OCI layout.

A blob gets its name only after its hash was proved and it is safe on the disk. What is there of one that is still
coming is `HEX.part`; its writer holds a lock, so that two controllers never write the same one.
"""

import fcntl
import io
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, unquote

from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.images.stores import DamagedError, Store
from reconciler.images.vault_draft import FILE_MODE, VaultDraft, digest_of, hashed, hex_of, is_still, trouble

HEX = re.compile(r"[0-9a-f]{64}")
LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'
FOLDER_MODE = 0o700  # images may be private


class Vault(Store):
    """A folder of blobs, made when something is first written. Used on threads, and by several processes at once.

    Every method may raise `SupplyError`: kind REFUSED for a digest that is not SHA-256 and a folder that cannot be
    used, NO_SPACE for a full disk.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._blobs = folder / "blobs" / "sha256"
        self._roots = folder / "roots"

    def path(self, digest: str) -> Path:
        """Where the blob is, or would be."""
        return self._blobs / hex_of(digest)

    def has(self, digest: str) -> bool:
        """Whether the whole blob is here."""
        return self.size(digest) is not None

    def size(self, digest: str) -> int | None:
        """The blob's size in bytes; None when it is not here."""
        try:
            return self.path(digest).stat().st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error) from error

    def read(self, digest: str) -> bytes:
        """A small blob, whole and verified. Raises `SupplyError`: NOT_FOUND, or DAMAGED, and then it is gone."""
        try:
            data = self.path(digest).read_bytes()
        except FileNotFoundError:
            raise SupplyError(SupplyErrorKind.NOT_FOUND, f"{digest} is not in the vault {self.folder}") from None
        except OSError as error:
            raise self._unusable(error) from error
        if digest != digest_of(data):
            self.discard(digest)
            raise SupplyError(SupplyErrorKind.DAMAGED, f"{digest} was damaged in the vault {self.folder} and is gone")
        return data

    def put(self, data: bytes) -> str:
        """Keep a small blob; its digest."""
        digest = digest_of(data)
        if not self.has(digest):
            with self.begin(digest) as draft:
                if not draft.whole:
                    draft.restart()
                    draft.write(data)
                    draft.check()
                    draft.keep()
        return digest

    def open(self, digest: str) -> io.FileIO | None:
        """The whole blob to read from, to be closed; None when it is not here."""
        try:
            return io.FileIO(self.path(digest))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error) from error

    @contextmanager
    def begin(self, digest: str) -> Iterator[VaultDraft]:
        """The blob to write on, for one writer at a time: `write`, `check`, `keep`. Waits while another writes it.

        What is there of it, also from an earlier run, stays: `draft.offset` bytes. When the other writer made it, the
        draft is `whole` and there is nothing to do. On `DamagedError` it is dropped and raised as a `SupplyError`.
        """
        try:
            draft = self._draft(digest)
        except OSError as error:
            raise self._unusable(error) from error
        try:
            yield draft
        except DamagedError as error:
            draft.part.unlink(missing_ok=True)
            raise SupplyError(SupplyErrorKind.DAMAGED, str(error)) from error
        finally:
            draft.close()

    def verify(self, digest: str) -> bool:
        """Whether the blob is here and its bytes are those of its digest. One that is damaged is removed."""
        file = self.open(digest)
        if file is None:
            return False
        with file:
            sound = digest == f"sha256:{hashed(file).hexdigest()}"
        if not sound:
            self.discard(digest)
        return sound

    def discard(self, digest: str) -> None:
        """Remove the blob; no effect when it is not here."""
        with suppress(FileNotFoundError):
            self.path(digest).unlink()

    def remove(self, digest: str) -> int:
        """Remove the blob, or what is there of one that nobody is writing; how many bytes that frees."""
        freed = self.size(digest) or 0
        self.discard(digest)
        part = self.path(digest).with_suffix(".part")
        with suppress(FileNotFoundError, BlockingIOError), io.FileIO(part) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_still(part, file):
                freed += os.fstat(file.fileno()).st_size
                part.unlink()
        return freed

    def digests(self) -> Iterator[tuple[str, int, float]]:
        """Every whole blob: digest, size in bytes, and when it came (seconds since 1970)."""
        return self._entries("")

    def parts(self) -> Iterator[tuple[str, int, float]]:
        """Every blob that is not whole: digest, bytes that are there, and when the last of them came."""
        return self._entries(".part")

    def keep(self, owner: str, top: str) -> None:
        """Mark an image, by its top digest, as one that `owner` (a fleet's name) needs; again: renews the mark."""
        folder = self._roots / quoted(owner)
        try:
            self._make(folder)
            (folder / hex_of(top)).touch(FILE_MODE)
        except OSError as error:
            raise self._unusable(error) from error

    def release(self, owner: str, top: str) -> None:
        """Take the mark away; no effect when there is none."""
        with suppress(FileNotFoundError):
            (self._roots / quoted(owner) / hex_of(top)).unlink()

    def roots(self) -> Mapping[str, frozenset[str]]:
        """Each owner and the top digests of the images it needs."""
        owners = sorted(self._roots.iterdir()) if self._roots.is_dir() else ()
        return {
            unquote(owner.name): frozenset(
                f"sha256:{mark.name}" for mark in owner.iterdir() if HEX.fullmatch(mark.name)
            )
            for owner in owners
        }

    def _entries(self, suffix: str) -> Iterator[tuple[str, int, float]]:
        for path in sorted(self._blobs.iterdir()) if self._blobs.is_dir() else ():
            if path.suffix == suffix and HEX.fullmatch(path.stem):
                with suppress(FileNotFoundError):
                    facts = path.stat()
                    yield f"sha256:{path.stem}", facts.st_size, facts.st_mtime

    def _draft(self, digest: str) -> VaultDraft:
        """The part, locked. A lock may come late: on a part that another writer has made a blob of, or dropped."""
        path = self.path(digest)
        part = path.with_suffix(".part")
        self._lay_out()
        while True:
            file = os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE), "rb+", buffering=0)
            fcntl.flock(file, fcntl.LOCK_EX)
            if not is_still(part, file):
                file.close()
            elif path.exists():
                part.unlink()
                file.close()
                return VaultDraft(digest, path, io.FileIO(path), whole=True)
            else:
                return VaultDraft(digest, path, file, whole=False)

    def _lay_out(self) -> None:
        self._make(self._blobs)
        marker = self.folder / "oci-layout"
        if not marker.exists():
            new = marker.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            new.write_bytes(LAYOUT)
            new.replace(marker)

    def _make(self, folder: Path) -> None:
        """Folders of our own are for this user alone; those above are made as others make them."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        for step in (*reversed(folder.relative_to(self.folder).parents), folder.relative_to(self.folder)):
            (self.folder / step).mkdir(FOLDER_MODE, exist_ok=True)

    def _unusable(self, error: OSError) -> SupplyError:
        return trouble(error, self.folder)


def default_vault() -> Path:
    """Where the vault is unless the spec says it: FLEET_VAULT, else fleet/vault in the user's cache folder.

    Raises `SupplyError` when the user has no home folder.
    """
    named = os.environ.get("FLEET_VAULT")
    cache = os.environ.get("XDG_CACHE_HOME", "")
    try:
        if named:
            return Path(named).expanduser().absolute()
        base = Path(cache) if Path(cache).is_absolute() else Path("~/.cache").expanduser()
    except RuntimeError as error:
        hint = "set `images.vault` in the spec, or FLEET_VAULT"
        raise SupplyError(SupplyErrorKind.REFUSED, "there is no home folder to keep images in", hint) from error
    return base / "fleet" / "vault"


def quoted(owner: str) -> str:
    """An owner as the name of a folder, whatever is in it."""
    return quote(owner, safe="").replace(".", "%2E")
