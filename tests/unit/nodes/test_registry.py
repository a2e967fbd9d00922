"""What a registry says of an image, from one that runs here."""

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from reconciler.core.desired import ImagePin
from reconciler.core.observed import SourceImage, SourceMissing, SourceUnknown
from reconciler.nodes.registry import RegistrySources

INDEX_TYPE = "application/vnd.oci.image.index.v1+json"


class Registry:
    """Documents by path; every other path is not found."""

    def __init__(self) -> None:
        self.documents: dict[str, tuple[int, bytes]] = {}
        self.host = ""

    def add(self, kind: str, content: Any, status: int = 200) -> str:
        body = json.dumps(content).encode()
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        self.documents[f"/v2/org/x/{kind}/{digest}"] = (status, body)
        return digest

    def image(self, architecture: str, layers: tuple[int, ...]) -> tuple[str, int]:
        """The digest of a new image's manifest, and the bytes of its config and layers."""
        config = self.add("blobs", {"os": "linux", "architecture": architecture})
        manifest = {"config": {"digest": config, "size": 10}, "layers": [{"size": size} for size in layers]}
        return self.add("manifests", manifest), 10 + sum(layers)

    def pin(self, digest: str) -> ImagePin:
        return ImagePin(f"{self.host}/org/x@{digest}", digest, "digest", self.host, "org/x")


@pytest.fixture
def registry() -> Iterator[Registry]:
    found = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = found.documents.get(self.path, (404, b"{}"))
            if "manifests" in self.path:
                assert INDEX_TYPE in self.headers["Accept"]
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found.host = f"127.0.0.1:{server.server_port}"
    yield found
    server.shutdown()
    server.server_close()


async def test_a_single_manifest(registry: Registry) -> None:
    digest, size = registry.image("arm64", (100, 200))
    told = await RegistrySources({}).describe(registry.pin(digest))
    assert told == SourceImage(digest, (("linux/arm64", size),))


async def test_an_index_tells_the_size_for_each_platform(registry: Registry) -> None:
    """Attestations are no platform."""
    arm, arm_size = registry.image("arm64", (100,))
    amd, amd_size = registry.image("amd64", (300, 400))
    entries = [
        {"digest": arm, "platform": {"os": "linux", "architecture": "arm64", "variant": "v8"}},
        {"digest": amd, "platform": {"os": "linux", "architecture": "amd64"}},
        {"digest": "sha256:0", "platform": {"os": "unknown", "architecture": "unknown"}},
    ]
    digest = registry.add("manifests", {"mediaType": INDEX_TYPE, "manifests": entries})
    told = await RegistrySources({}).describe(registry.pin(digest))
    assert told == SourceImage(digest, (("linux/amd64", amd_size), ("linux/arm64", arm_size)))


async def test_what_is_not_there_is_missing(registry: Registry) -> None:
    told = await RegistrySources({}).describe(registry.pin("sha256:" + "0" * 64))
    assert isinstance(told, SourceMissing)


async def test_a_registry_that_cannot_be_asked_is_unknown(registry: Registry) -> None:
    secret = registry.add("manifests", {"manifests": []}, status=401)
    broken = registry.add("manifests", {"manifests": []}, status=500)
    strange = registry.add("manifests", ["not", "a", "manifest"])
    incomplete = registry.add("manifests", {"config": {}})
    for digest in (secret, broken, strange, incomplete):
        assert isinstance(await RegistrySources({}).describe(registry.pin(digest)), SourceUnknown)
    nobody = ImagePin("x", secret, "digest", "127.0.0.1:1", "org/x")
    assert isinstance(await RegistrySources({}).describe(nobody), SourceUnknown)
    assert isinstance(await RegistrySources({}).describe(ImagePin(secret, secret, "id")), SourceUnknown)


async def test_bytes_that_are_not_the_digest_are_not_believed(registry: Registry) -> None:
    digest, _ = registry.image("arm64", (100,))
    path = f"/v2/org/x/manifests/{digest}"
    status, body = registry.documents[path]
    registry.documents[path] = (status, body + b" ")
    told = await RegistrySources({}).describe(registry.pin(digest))
    assert isinstance(told, SourceUnknown)
    assert "something else" in told.reason


async def test_a_declared_endpoint_stands_for_the_registry(registry: Registry) -> None:
    digest, size = registry.image("arm64", (1,))
    pin = ImagePin("x", digest, "digest", "ghcr.io", "org/x")
    told = await RegistrySources({"ghcr.io": f"http://{registry.host}/"}).describe(pin)
    assert told == SourceImage(digest, (("linux/arm64", size),))
    undeclared = await RegistrySources({}).describe(pin)
    assert isinstance(undeclared, SourceUnknown)
    assert "registries.ghcr.io.endpoint" in undeclared.reason
