"""Models from node to node with rsync: the one that has it serves it, the one that lacks it fetches.

The giving node runs an rsync daemon for as long as the copy takes: read-only, for one model, with a password of its own
that the controller makes for it, on the node's address in the cluster and for one peer. Where that cannot be had (the
address is not the node's, the peer cannot reach it), both talk over loopback ports that `ssh` children join here. No
node needs a key for another. rsync proves each file by its checksum before it gets its name, and goes on where an
earlier try ended (`--partial-dir`).
"""

import asyncio
import base64
import re
import secrets
import shlex
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from reconciler.core.models import ModelCopy
from reconciler.nodes.errors import ErrorKind, NodeError, NodeUnknownError
from reconciler.nodes.forwards import Forward, LocalForward
from reconciler.nodes.openssh import Child, OpenSsh
from reconciler.nodes.protocols import OnProgress, Progress
from reconciler.nodes.targets import silent

LOOPBACK = "127.0.0.1"
START_S = 20.0
SILENCE_S = 120.0
"""rsync says each second how far it is, once it moves; lists of files and checksums of big ones take their time."""

NO_WAY = frozenset({5, 10, 35})
"""rsync's exit codes (its manual, "EXIT VALUES") for a server that cannot be reached or does not answer."""

_BOOT = 'IFS= read -r code; code=$(printf %s "$code" | base64 -d); eval "$code"'
_FIGURES = re.compile(r"^\s*([\d,.]+)\s+\d+%")
_ENDED = re.compile(r"^@@ended (\d+)$")

GIVE = r"""
umask 077
LC_ALL=C; export LC_ALL
command -v rsync >/dev/null || { echo "@@no rsync is not there"; exit; }
dir=$(mktemp -d) || { echo "@@no there is no room for a folder in /tmp"; exit; }
trap 'trap "" TERM; rm -rf "$dir"; kill 0' EXIT
trap 'exit 1' HUP INT TERM PIPE
who=$(id -u)
printf '%s\n' "fleet:$token" >"$dir/secret"
{
  printf '%s\n' 'use chroot = no' 'munge symlinks = no' 'read only = yes' 'list = no' 'reverse lookup = no'
  [ "$who" = 0 ] && printf '%s\n' 'uid = 0' 'gid = 0'
  for module in base folder; do
    printf '%s\n' "[$module]" 'auth users = fleet' "secrets file = $dir/secret" "hosts allow = 127.0.0.1 ::1 $peer"
    eval "printf 'path = %s\n' \"\$$module\""
  done
} >"$dir/conf"
try=0 daemon=
while [ $try -lt 5 ]; do
  try=$((try + 1))
  port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))
  rsync --daemon --no-detach --config="$dir/conf" --address="$address" --port=$port --log-file="$dir/log" \
    </dev/null >"$dir/said" 2>&1 &
  daemon=$!
  sleep 0.5
  kill -0 $daemon 2>/dev/null && { echo "@@port $port"; cat >/dev/null; exit; }
done
echo "@@no $(cat "$dir/said" "$dir/log" 2>/dev/null | tail -n 1)"
"""
"""Ends, and takes the daemon and its files along, with its standard input.

The daemon forks for each peer, and such a child outlives it: all of the session's process group ends together.
"""

TAKE = r"""
LC_ALL=C; export LC_ALL
RSYNC_PASSWORD=$token; export RSYNC_PASSWORD
command -v rsync >/dev/null || { echo "@@no rsync is not there"; exit; }
exec 3<&0
{ cat <&3; kill 0; } >/dev/null 2>&1 &
get() {
  rsync -rlpt --partial-dir=.fleet-partial --contimeout=10 --timeout=60 --no-inc-recursive --info=progress2 --outbuf=L \
    "$@" 3<&-
}
ended() { printf '\n@@ended %s\n' "$1"; exit; }
said=$(mkdir -p "$target_base" "$arrives" 2>&1) || { echo "@@no $(printf %s "$said" | tail -n 1)"; exit; }
if [ -n "$through" ]; then
  printf '%s\n' "$through" | get --files-from=- "rsync://fleet@$host:$port/base/" "$target_base/" || ended $?
fi
if [ -n "$files" ]; then
  printf '%s\n' "$files" | get --files-from=- "rsync://fleet@$host:$port/folder/" "$arrives/" || ended $?
else
  get --exclude=/.git --exclude=/.cache "rsync://fleet@$host:$port/folder/" "$arrives/" || ended $?
fi
ended 0
"""
"""Ends with its standard input, too: what came so far stays for the next time.

Where rsync fails, its last line of progress has no end: ours begins with one.
"""


async def copied(ssh: Callable[[str], OpenSsh], node: str, copy: ModelCopy, on_progress: OnProgress) -> None:
    """Let the files come to `node`. Raises `NodeError`."""
    token = secrets.token_hex(16)
    try:
        async with _giving(ssh(copy.source), copy, copy.address, token) as port:
            await _taken(ssh(node), copy, (copy.address, port), token, on_progress, f"from {copy.source}")
    except _NoWayError:
        await _through_controller(ssh, node, copy, token, on_progress)


class _NoWayError(Exception):
    """The one node cannot reach the other so."""


async def _through_controller(
    ssh: Callable[[str], OpenSsh], node: str, copy: ModelCopy, token: str, on_progress: OnProgress
) -> None:
    via = f"from {copy.source} through the controller"
    try:
        async with _giving(ssh(copy.source), copy, LOOPBACK, token) as port:
            here = _free_port()
            async with ssh(copy.source).spawn(LocalForward(here, port)), ssh(node).spawn(Forward(0, here)) as child:
                await _taken(ssh(node), copy, (LOOPBACK, child.ports[0]), token, on_progress, via)
    except _NoWayError as error:
        message = f"no way for a model from {copy.source} to {node}: {error}"
        raise NodeError(ErrorKind.REFUSED, message, "is forwarding of ports allowed by sshd on both?") from error


def _free_port() -> int:
    """A port of this machine's loopback that nobody listens on now."""
    with socket.socket() as found:
        found.bind((LOOPBACK, 0))
        return int(found.getsockname()[1])


@asynccontextmanager
async def _giving(ssh: OpenSsh, copy: ModelCopy, address: str, token: str) -> AsyncIterator[int]:
    """The port at which the giving node serves its model, inside the block. Raises `_NoWayError` where it cannot."""
    words = {"token": token, "peer": copy.peer, "base": copy.base, "folder": copy.folder, "address": address}
    async with ssh.spawn(script=_BOOT) as child:
        await child.write(_line(words, GIVE))
        try:
            async with asyncio.timeout(START_S):
                said = await child.line()
        except TimeoutError:
            said = None
        if said is None or not said.startswith("@@port "):
            raise _NoWayError((said or "@@no it said nothing").removeprefix("@@no "))
        yield int(said.removeprefix("@@port "))


async def _taken(
    ssh: OpenSsh, copy: ModelCopy, door: tuple[str, int], token: str, on_progress: OnProgress, via: str
) -> None:
    """Fetch to the end."""
    words = {
        "token": token,
        "host": f"[{door[0]}]" if ":" in door[0] else door[0],
        "port": str(door[1]),
        "target_base": copy.target_base,
        "arrives": copy.arrives,
        "through": "\n".join(copy.through),
        "files": "\n".join(copy.files),
    }
    async with ssh.spawn(script=_BOOT) as child:
        await child.write(_line(words, TAKE))
        code = await _end_of(child, copy, on_progress, via)
        if code in NO_WAY:
            raise _NoWayError(await child.words())
        if code != 0:
            raise await _failure(child, code, copy)


async def _end_of(child: Child, copy: ModelCopy, on_progress: OnProgress, via: str) -> int | None:
    """rsync's exit code; None where the child ended without a word."""
    meter = _Meter(copy.bytes, on_progress, via)
    rest = ""
    while True:
        try:
            async with asyncio.timeout(SILENCE_S):
                data = await child.stdout.read(1 << 16)
        except TimeoutError:
            raise NodeUnknownError(silent(child.target, SILENCE_S)) from None
        if not data:
            return None
        *lines, rest = re.split(r"[\r\n]", rest + data.decode(errors="replace"))
        for line in lines:
            if match := _ENDED.match(line):
                return int(match[1])
            if line.startswith("@@no "):
                raise NodeError(_kind(line), f"{child.target.name}: {line.removeprefix('@@no ')}")
            meter.take(line)


class _Meter:
    """Bytes of both runs of rsync together."""

    def __init__(self, total_bytes: int, on_progress: OnProgress, via: str) -> None:
        self._total_bytes, self._on_progress, self._via = total_bytes, on_progress, via
        self._before = self._now = 0

    def take(self, line: str) -> None:
        """A line of rsync's: bytes so far, and how many percent of what it found to do."""
        if match := _FIGURES.match(line):
            done = int(re.sub(r"\D", "", match[1]))
            if done < self._now:
                self._before += self._now
            self._now = done
            told = min(self._before + self._now, self._total_bytes)
            self._on_progress(Progress(told, self._total_bytes, "", self._via))


async def _failure(child: Child, code: int | None, copy: ModelCopy) -> NodeError:
    words = await child.words()
    last = words.splitlines()[-1] if words else "it said nothing"
    if code is None:
        return await child.failure()
    said = next((line for line in words.splitlines() if "No space left" in line), last)
    return NodeError(_kind(words), f"rsync from {copy.source} to {child.target.name} failed with {code}: {said}")


def _kind(words: str) -> ErrorKind:
    """What the node's programs mean, by the C library's own words for it."""
    return ErrorKind.NO_SPACE if "No space left" in words else ErrorKind.REFUSED


def _line(words: dict[str, str], script: str) -> bytes:
    """The script with its values, as the one line that `_BOOT` reads: no login shell sees it."""
    values = "".join(f"{name}={shlex.quote(value)}\n" for name, value in words.items())
    return base64.b64encode((values + script).encode()) + b"\n"
