"""Blobs that can be read while they come: each is fetched once, however many ask for it.

Stdlib only, Python 3.8: this text is also run on nodes (`relay.py`).
"""

from __future__ import annotations

import http.client
import io
import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reconciler.images.stores import DamagedError, Draft, LastingError, Store, comes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    Fetch = Callable[[str, int], AbstractContextManager[tuple[int | None, Iterator[bytes]]]]
    """Digest and offset -> the size of the whole blob where it is known, and its bytes from the offset on.

    Raises `OSError` or `HTTPException` where another try may help, anything else where not; also while iterating.
    """

PATIENCE_S = 60.0  # without a new byte; Docker's own patience with a registry is about that long
FIRST_PATIENCE_S = 8.0  # without any byte: a source that is down from the beginning
GIVEN_UP_S = 30.0  # for so long, whoever asks again for what was waited for in vain is told so at once
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 8.0


class FetchError(Exception):
    """Fetching a blob has ended without it; the cause says why."""


class Blob:
    """The bytes of one digest, whole or coming, for any number of readers; the last who holds it closes the file."""

    def __init__(self, size: int | None, file: io.FileIO | None = None) -> None:
        self.size, self.file = size, file
        self.have, self.whole = size if size and file else 0, file is not None
        self.error: Exception | None = None
        self.holders = 0
        self.changed = threading.Condition()

    @property
    def ready(self) -> int:
        """How many bytes may be sent. Until the hash is proved the last one stays here: nobody has a false whole."""
        return self.have if self.whole else min(self.have, self.size or self.have) - 1

    def hold(self) -> None:
        """One more uses it."""
        with self.changed:
            self.holders += 1

    def release(self) -> None:
        """One less uses it."""
        with self.changed:
            self.holders -= 1
            if self.file and not self.holders:
                self.file.close()

    def grow(self, draft: Draft, whole: bool = False) -> None:
        """The draft has more; `whole`: all, and proved."""
        with self.changed:
            self.file = self.file or io.FileIO(os.dup(draft.file.fileno()))
            self.have, self.whole = draft.offset, whole
            self.size = draft.offset if whole else self.size
            self.changed.notify_all()

    def fail(self, error: Exception) -> None:
        """No more will come."""
        with self.changed:
            self.error = None if self.whole else error
            self.changed.notify_all()

    def until(self, ready: Callable[[], bool], seconds: float | None = None) -> None:
        """Wait for `ready`, at most `seconds`. Raises `FetchError` when no more will come."""
        with self.changed:
            self.changed.wait_for(lambda: self.error or self.whole or ready(), seconds)
            if self.error:
                raise FetchError(str(self.error)) from self.error


class Traffic:
    """Bytes of blobs that came and went."""

    def __init__(self) -> None:
        self.received = self.sent = 0
        self.lock = threading.Lock()

    def add(self, received: int = 0, sent: int = 0) -> None:
        """So many more."""
        with self.lock:
            self.received += received
            self.sent += sent


class Shelf:
    """The blobs of some stores. What none has is fetched into the last of them and can be read while it comes."""

    def __init__(
        self,
        stores: Sequence[Store],
        fetch: Fetch,
        size_of: Callable[[str], int | None],
        patience_s: float = PATIENCE_S,
    ) -> None:
        """`size_of`: what is known of a blob's size. `patience_s`: how long a fetch goes on without a new byte."""
        self.stores, self.fetch, self.size_of, self.patience_s = stores, fetch, size_of, patience_s
        self.traffic = Traffic()
        self.errors: dict[str, Exception] = {}
        """Of each blob that could not be fetched, or not at the first try, the last error; none once it is whole."""
        self._growing: dict[str, Blob] = {}
        self._given_up: dict[str, float] = {}
        self._lock = threading.Condition()

    @contextmanager
    def blob(self, digest: str) -> Iterator[Blob]:
        """The blob, to be read inside the block. Where it is missing, its fetch starts, unless one is under way."""
        with self._lock:
            blob = self._growing.get(digest) or self._kept(digest) or self._begin(digest)
            blob.hold()
        try:
            yield blob
        finally:
            blob.release()

    def size(self, digest: str) -> int | None:
        """What is known of the blob's size without fetching it."""
        size = self.size_of(digest)
        kept = self._kept(digest) if size is None else None
        if kept and kept.file:
            kept.file.close()
        return kept.size if kept else size

    def has_given_up(self, digest: str) -> bool:
        """Whether the blob was waited for in vain a moment ago, and no other is asked for it now."""
        return time.monotonic() < self._given_up.get(digest, 0.0)

    def settle(self, seconds: float) -> None:
        """Wait until no fetch is under way, at most `seconds`."""
        with self._lock:
            self._lock.wait_for(lambda: not self._growing, seconds)

    def _kept(self, digest: str) -> Blob | None:
        """The blob out of the first store that has it in its right size."""
        expected = self.size_of(digest)
        for store in self.stores:
            file = store.open(digest)
            if file is None:
                continue
            size = os.fstat(file.fileno()).st_size
            if expected in {None, size}:
                return Blob(size, file)
            file.close()
            store.discard(digest)
        return None

    def _begin(self, digest: str) -> Blob:
        if self.has_given_up(digest):
            blob = Blob(self.size_of(digest))
            blob.fail(self.errors[digest])
            return blob
        blob = self._growing[digest] = Blob(self.size_of(digest))
        blob.hold()
        threading.Thread(target=self._fill, args=(digest, blob), daemon=True, name="fleet-blob").start()
        return blob

    def _fill(self, digest: str, blob: Blob) -> None:
        """Fetch the blob; readers have its end as soon as it is proved, which is before it is safe on the disk."""
        try:
            with self.stores[-1].begin(digest) as draft:
                self._bring(blob, draft)
                draft.check()
                blob.grow(draft, whole=True)
                draft.keep()
            self.errors.pop(digest, None)
            self._forget(digest)
        except Exception as error:  # noqa: BLE001  (whatever it was: readers must not wait for ever)
            if comes_of(error, DamagedError) and comes_of(self.errors.get(digest), DamagedError):
                self._given_up[digest] = time.monotonic() + GIVEN_UP_S  # whoever lies twice does so again
            self.errors[digest] = error
            self._forget(digest)  # first, so that whoever asks now has a new fetch
            blob.fail(error)
        blob.release()

    def _forget(self, digest: str) -> None:
        with self._lock:
            del self._growing[digest]
            self._lock.notify_all()

    def _bring(self, blob: Blob, draft: Draft) -> None:
        """Fetch what the draft lacks, in several tries, each from where the last one broke off.

        Where the size is not known, the end of a stream is the end of the blob.
        """
        blob.grow(draft)
        began = draft.offset
        deadline, pause_s = time.monotonic() + min(FIRST_PATIENCE_S, self.patience_s), FIRST_PAUSE_S
        while not draft.whole and (blob.size is None or draft.offset < blob.size):
            before = draft.offset
            try:
                self._read(blob, draft)
            except (OSError, http.client.HTTPException) as error:
                if draft.offset > before:
                    deadline, pause_s = time.monotonic() + self.patience_s, FIRST_PAUSE_S
                if time.monotonic() + pause_s > deadline:
                    if draft.offset > began:  # it may go on from here
                        raise
                    self._given_up[draft.digest] = time.monotonic() + GIVEN_UP_S
                    raise LastingError(str(error)) from error
                self.errors[draft.digest] = error
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                return

    def _read(self, blob: Blob, draft: Draft) -> None:
        """One try, to the end. Raises `DamagedError` when more comes than there can be."""
        with self.fetch(draft.digest, draft.offset) as (size, chunks):
            blob.size = size if blob.size is None else blob.size
            for chunk in chunks:
                draft.write(chunk)
                self.traffic.add(received=len(chunk))
                if blob.size is not None and draft.offset > blob.size:
                    raise DamagedError(f"more came for {draft.digest} than its {blob.size} bytes")
                blob.grow(draft)
        if blob.size is not None and draft.offset < blob.size:
            raise ConnectionError(f"{draft.digest} broke off at byte {draft.offset} of {blob.size}")
