"""Which way an image comes."""

import pytest

from reconciler.core.desired import ImagePin
from reconciler.nodes.endpoints import Endpoint, endpoint_of

DIGEST = "sha256:" + "ab" * 32


def pin(registry: str) -> ImagePin:
    return ImagePin(f"{registry}/org/x@{DIGEST}", DIGEST, "digest", registry, "org/x")


@pytest.mark.parametrize(
    ("registry", "expected"),
    [
        ("ghcr.io", Endpoint("http://127.0.0.1:5000", "127.0.0.1", 5000, 5917)),
        ("127.0.0.1:28029", Endpoint("http://127.0.0.1:28029", "127.0.0.1", 28029, 28029)),
        ("localhost:5001", Endpoint("http://localhost:5001", "localhost", 5001, 5001)),
        ("127.0.0.1:5002", Endpoint("http://vault.lan:80/", "vault.lan", 80, 5002)),
        ("corp.example", Endpoint("https://corp.example", "corp.example", 443, 5917)),
        ("quay.io", None),
    ],
)
def test_declared_and_loopback_registries_go_through_the_connection(registry: str, expected: Endpoint | None) -> None:
    endpoints = {
        "ghcr.io": "http://127.0.0.1:5000",
        "127.0.0.1:5002": "http://vault.lan:80/",
        "corp.example": "https://corp.example",
    }
    found = endpoint_of(pin(registry), endpoints)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert (found.url, found.host, found.port, found.listen_port) == (
        expected.url.rstrip("/"),
        expected.host,
        expected.port,
        expected.listen_port,
    )
    assert found.name_on_node == f"127.0.0.1:{expected.listen_port}"


def test_a_local_build_has_no_way() -> None:
    assert endpoint_of(ImagePin(DIGEST, DIGEST, "id"), {}) is None
