"""What Docker says during a pull -> progress and errors. Pure.

The answer is HTTP 200 long before it is known how the pull ends: failures come inside the stream.
"""

import json
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.protocols import Progress

ANSWERS: tuple[tuple[str, ErrorKind, str], ...] = (
    (r"no space left on device", ErrorKind.NO_SPACE, "`docker image prune` and `docker system df` on the node"),
    (
        r"no matching manifest|does not match the (specified )?platform|no match for platform",
        ErrorKind.REFUSED,
        "the image is not built for this node's platform: pin one that is",
    ),
    (r"unauthorized|authentication required|access .*denied", ErrorKind.DENIED, "log in with `docker login`"),
    (r"manifest unknown|not found|name unknown", ErrorKind.NOT_FOUND, "is it pushed, under this name and digest?"),
    (
        r"connection re(set|fused)|dial tcp|i/o timeout|no such host|handshake timeout|unexpected EOF|: EOF$",
        ErrorKind.REFUSED,
        "is the registry up? It is reached from here when the spec has an endpoint for it, else from the node",
    ),
)
"""Docker has no codes inside the stream, only sentences; these are the same in the releases from 20.10 to 29."""


def failure(doing: str, message: str) -> NodeError:
    """Docker's sentence as an error of the right kind. The image is not there: it said so itself."""
    for pattern, kind, hint in ANSWERS:
        if re.search(pattern, message, re.IGNORECASE):
            return NodeError(kind, f"{doing}: {message}", hint)
    return NodeError(ErrorKind.REFUSED, f"{doing}: {message}")


class PullStream:
    """Takes the stream's bytes as they come and keeps the sum over all layers.

    `sizes`: compressed bytes by layer digest, where they are known: then the total is known as soon as Docker has said
    which layers it has already. Without them it grows with each layer that begins.
    """

    def __init__(self, doing: str, sizes: Mapping[str, int] = MappingProxyType({})) -> None:
        self._doing = doing
        self._sizes = {digest.removeprefix("sha256:")[:12]: size for digest, size in sizes.items()}
        self._unread = b""
        self._done: dict[str, int] = {}
        self._total: dict[str, int] = {}
        self._state: dict[str, str] = {}
        self.is_over = False
        """Docker has said how the pull ended: all that comes now is the end of its answer."""

    def feed(self, data: bytes) -> Progress | None:
        """The progress after `data`, None when it brought no whole message. Raises `NodeError` for a failure."""
        *lines, self._unread = (self._unread + data).split(b"\n")
        try:
            messages = [json.loads(line) for line in lines if line.strip()]
        except ValueError as error:
            raise failure(self._doing, f"Docker's report is no JSON ({error})") from error
        for message in messages:
            self._take(message)
        return self._progress() if messages else None

    def end(self) -> None:
        """The stream has ended; what is left of it must be whole too."""
        if self._unread.strip():
            self.feed(b"\n")

    def _take(self, message: Mapping[str, Any]) -> None:
        problem = (message.get("errorDetail") or {}).get("message") or message.get("error")
        if problem:
            raise failure(self._doing, str(problem))
        layer, status = str(message.get("id") or ""), str(message.get("status") or "")
        self.is_over |= status.startswith("Status: ")
        if not re.fullmatch(r"[0-9a-f]{12,}", layer):
            return
        self._state[layer] = status
        if status != "Already exists" and layer in self._sizes:
            self._total.setdefault(layer, self._sizes[layer])
        elif status == "Already exists":
            self._total.pop(layer, None)
        detail = message.get("progressDetail") or {}
        if status == "Downloading":
            self._done[layer] = int(detail.get("current") or 0)
            told = int(detail.get("total") or 0)
            self._total[layer] = max(told, self._done[layer], self._sizes.get(layer, 0))
        elif status in {"Download complete", "Pull complete"} and layer in self._total:
            self._done[layer] = self._total[layer]

    def _progress(self) -> Progress:
        total = sum(self._total.values()) if self._total else None
        return Progress(sum(self._done.values()), total, _doing(self._state.values()))


def _doing(states: Iterable[str]) -> str:
    states = list(states)
    ready = sum(state in {"Pull complete", "Already exists"} for state in states)
    if not states:
        return "asking the registry"
    if ready == len(states):
        return "registering"
    downloading = any(state in {"Downloading", "Waiting", "Pulling fs layer"} for state in states)
    return f"{'downloading' if downloading else 'unpacking'}, {ready} of {len(states)} layers ready"
