"""Blobs of a node's own containerd store, read as they lie there: a complete image is a source for the others."""

import hashlib
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO

from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.nodes.child_env import child_environment
from reconciler.nodes.errors import NodeError
from reconciler.nodes.openssh import OpenSsh, failure, login_command
from reconciler.nodes.ssh import SshSession

CONTENT = "io.containerd.content.v1.content"
PROBE_S = 20.0
CHUNK_BYTES = 1 << 20
LARGEST_DOCUMENT = 16 << 20
END_S = 2.0
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")

_READ = (
    "hex=$1 from=$2; shift 2; "
    'for folder in "$@"; do file=$folder/blobs/sha256/$hex; '
    'for root in "" "sudo -n"; do '
    '$root test -r "$file" 2>/dev/null || continue; '
    'size=$($root wc -c "$file"); echo; echo "@@fleet blob ${size%% /*}"; exec $root tail -c "+$from" "$file"; '
    'done; done; echo; echo "@@fleet no blob"'
)
"""Arguments: the hash, the first byte to send counted from 1, the folders. Before the bytes: the whole blob's size."""

_PROBE = """
for folder in "$@"; do
  for root in "" "sudo -n"; do
    $root test -r "$folder/blobs/sha256" 2>/dev/null && { printf '\\n@@fleet folder %s\\n' "$folder"; break; }
  done
done
"""


async def probe(session: SshSession, docker_root: str = "/var/lib/docker") -> tuple[str, ...]:
    """The content folders of a node's containerd store that the login may read. Raises `NodeError`."""
    folders = (f"{docker_root}/containerd/daemon/{CONTENT}", f"/var/lib/containerd/{CONTENT}")
    lines = (await session.run_script(_PROBE, PROBE_S, *folders)).splitlines()
    return tuple(folder for folder in folders if f"@@fleet folder {folder}" in lines)


class NodeBlobs:
    """The blobs of one node, through an `ssh` child for each. A `BlobSource`."""

    def __init__(self, ssh: OpenSsh, folders: Sequence[str]) -> None:
        self._ssh = ssh
        self._folders = tuple(folders)

    @property
    def name(self) -> str:
        """For people."""
        return f"node {self._ssh.target.name}"

    def document(self, repository: str, digest: str) -> bytes:
        """A manifest, an index or a config, whole, and verified by its digest. Raises `SupplyError`."""
        content = bytearray()
        with self.blob(repository, digest) as chunks:
            for chunk in chunks:
                content += chunk
                if len(content) > LARGEST_DOCUMENT:
                    raise self._damaged(digest)
        if f"sha256:{hashlib.sha256(content).hexdigest()}" != digest:
            raise self._damaged(digest)
        return bytes(content)

    @contextmanager
    def blob(self, repository: str, digest: str, offset: int = 0) -> Iterator[Iterator[bytes]]:
        """The bytes of a blob from `offset` on, not verified. Raises `SupplyError`, also while iterating."""
        found = _DIGEST.fullmatch(digest)
        if found is None:
            raise SupplyError(SupplyErrorKind.REFUSED, f"{digest} is no digest that {self.name} could have")
        command = login_command(_READ, found[1], str(offset + 1), *self._folders)
        with TemporaryFile() as errors, self._child(command, errors) as output:
            yield self._bytes(output, errors, digest, offset)

    @contextmanager
    def _child(self, command: str, errors: IO[bytes]) -> Iterator[IO[bytes]]:
        child = self._started(command, errors)
        try:
            if child.stdout is None:
                raise TypeError("not a pipe")
            with child.stdout:
                yield child.stdout
        finally:
            _end(child)

    def _started(self, command: str, errors: IO[bytes]) -> "subprocess.Popen[bytes]":
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        try:
            argv = self._ssh.argv(command)
            return subprocess.Popen(
                argv, env=child_environment(), stdin=nothing, stdout=pipe, stderr=errors, start_new_session=True
            )
        except NodeError as error:
            raise SupplyError(SupplyErrorKind.NO_ANSWER, error.message, error.hint) from error
        except OSError as error:
            raise SupplyError(SupplyErrorKind.NO_ANSWER, f"{self.name} cannot be asked: {error}") from error

    def _bytes(self, output: IO[bytes], errors: IO[bytes], digest: str, offset: int) -> Iterator[bytes]:
        missing = self._size(output, errors, digest) - offset
        while missing > 0:
            chunk = output.read1(min(CHUNK_BYTES, missing))  # type: ignore[attr-defined]
            if not chunk:
                raise self._broken(errors, digest)
            missing -= len(chunk)
            yield chunk

    def _size(self, output: IO[bytes], errors: IO[bytes], digest: str) -> int:
        """Of the whole blob, by the line before its bytes. What the login shell's start-up files say is passed over."""
        for line in output:
            if line.startswith(b"@@fleet no blob"):
                hint = "a file of its content store is gone: `docker image rm` and pull it there again"
                raise SupplyError(SupplyErrorKind.NOT_FOUND, f"{self.name} has no readable blob {digest}", hint)
            if line.startswith(b"@@fleet blob "):
                return int(line.split()[2])
        raise self._broken(errors, digest)

    def _broken(self, errors: IO[bytes], digest: str) -> SupplyError:
        errors.seek(0)
        said = [line.strip() for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
        why = failure(self._ssh.target, (), said)
        return SupplyError(SupplyErrorKind.NO_ANSWER, f"{self.name} broke off in {digest}: {why.message}", why.hint)

    def _damaged(self, digest: str) -> SupplyError:
        hint = "its content store is damaged: `docker image rm` and pull it there again"
        return SupplyError(SupplyErrorKind.DAMAGED, f"what {self.name} has as {digest} is something else", hint)


def _end(child: "subprocess.Popen[bytes]") -> None:
    child.terminate()
    try:
        child.wait(END_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
