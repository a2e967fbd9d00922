"""What a registry says of a pinned image, asked from the controller (OCI distribution, `GET /v2/...`)."""

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reconciler.core.desired import ImagePin
from reconciler.core.observed import Source, SourceImage, SourceMissing, SourceUnknown
from reconciler.nodes.endpoints import Endpoint, endpoint_of
from reconciler.nodes.inspect import platform_of

if TYPE_CHECKING:
    import httpx

Json = Mapping[str, Any]

ASK_S = 10.0
MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
LARGEST_DOCUMENT = 16 * 1024 * 1024
"""Bytes. Manifests are kilobytes; a config of a long build some hundred."""


class _NoAnswerError(Exception):
    """The registry could not be asked, or answered with what was not asked for."""


class _AbsentError(Exception):
    """The registry says it does not have it."""


class RegistrySources:
    """Asks the registries the controller reaches: the declared endpoints, and those on its own loopback."""

    def __init__(self, endpoints: Mapping[str, str]) -> None:
        self._endpoints = endpoints

    async def describe(self, pin: ImagePin) -> Source:
        """What the source says of the image. Never raises for an absent image or an unreachable source."""
        endpoint = endpoint_of(pin, self._endpoints)
        if endpoint is None:
            return SourceUnknown(pin.digest, _unasked(pin))
        try:
            return await _describe(pin, endpoint)
        except _AbsentError:
            return SourceMissing(pin.digest, f"{endpoint.url} has no {pin.repository}@{pin.digest}")
        except _NoAnswerError as error:
            return SourceUnknown(pin.digest, f"{endpoint.url}: {error}")


def _unasked(pin: ImagePin) -> str:
    if pin.kind == "id":
        return "a local build has no registry"
    return f"the spec has no registries.{pin.registry}.endpoint: only the nodes themselves may reach it"


async def _describe(pin: ImagePin, endpoint: Endpoint) -> Source:
    import httpx  # noqa: PLC0415 - 50 ms, and most commands ask no registry

    base = f"{endpoint.url}/v2/{pin.repository}"
    async with httpx.AsyncClient(timeout=ASK_S, follow_redirects=True, trust_env=False) as client:
        try:
            top = await _document(client, f"{base}/manifests/{pin.digest}", pin.digest)
            entries = await _entries(client, base, top)
        except httpx.HTTPError as error:
            raise _NoAnswerError(str(error) or type(error).__name__) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _NoAnswerError(f"its answer is no manifest ({error!r})") from error
    return SourceImage(pin.digest, tuple(sorted(entries.items())))


async def _entries(client: "httpx.AsyncClient", base: str, top: Json) -> dict[str, int]:
    """Compressed bytes by platform, of an index or of a single manifest."""
    if "manifests" not in top:
        config = await _document(client, f"{base}/blobs/{top['config']['digest']}", top["config"]["digest"])
        return {platform_of(config): size_of(top)}
    found: dict[str, int] = {}
    for entry in top["manifests"]:
        platform = platform_of(entry.get("platform") or {})
        if platform not in {"/", "unknown/unknown"} and platform not in found:
            found[platform] = size_of(await _document(client, f"{base}/manifests/{entry['digest']}", entry["digest"]))
    return found


def size_of(manifest: Json) -> int:
    """What a node without any of it has to fetch: config and layers, compressed."""
    return int(manifest["config"]["size"]) + sum(int(layer["size"]) for layer in manifest["layers"])


async def _document(client: "httpx.AsyncClient", url: str, digest: str) -> Json:
    """A JSON document by digest, and really that one."""
    response = await client.get(url, headers={"Accept": ", ".join(MANIFESTS)})
    if response.status_code == 404:
        raise _AbsentError
    if response.status_code in {401, 403}:
        raise _NoAnswerError("it wants a login")
    response.raise_for_status()
    if len(response.content) > LARGEST_DOCUMENT:
        raise _NoAnswerError(f"a document of {len(response.content)} bytes is no manifest")
    if f"sha256:{hashlib.sha256(response.content).hexdigest()}" != digest:
        raise _NoAnswerError(f"what it sent for {digest} is something else")
    found = json.loads(response.content)
    if not isinstance(found, dict):
        raise _NoAnswerError("its answer is no manifest")
    return found
