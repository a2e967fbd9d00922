"""Under which name an image comes."""

import pytest

from reconciler.core.desired import ImagePin
from reconciler.nodes.endpoints import LISTEN_PORT, listen_port, name_on_node

DIGEST = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("registry", "expected"),
    [
        ("ghcr.io", LISTEN_PORT),
        ("corp.example:5000", LISTEN_PORT),
        ("127.0.0.1:28029", 28029),
        ("localhost:5001", 5001),
        ("127.0.0.1", LISTEN_PORT),
    ],
)
def test_a_registry_of_the_controllers_loopback_keeps_its_port(registry: str, expected: int) -> None:
    pin = ImagePin(f"{registry}/org/x@{DIGEST}", DIGEST, "digest", registry, "org/x")
    assert expected == listen_port(pin)
    assert f"127.0.0.1:{expected}" == name_on_node(listen_port(pin))
