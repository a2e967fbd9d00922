"""Which way an image comes: through the controller's registry, or by the node's own daemon. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from reconciler.core.desired import ImagePin
from reconciler.nodes.targets import split_port

LISTEN_PORT = 5917
"""Where a forwarded registry listens on the node's loopback. Fixed: Docker keeps the name an image was pulled by, so
another port each time would give it another name each time."""


@dataclass(frozen=True)
class Endpoint:
    """Where the controller reaches a registry, and on which port of the node's loopback that is offered."""

    url: str
    host: str
    port: int
    listen_port: int

    @property
    def name_on_node(self) -> str:
        """The registry's name for the node's daemon, which takes plain HTTP from loopback without configuration."""
        return f"127.0.0.1:{self.listen_port}"


def endpoint_of(pin: ImagePin, endpoints: Mapping[str, str]) -> Endpoint | None:
    """The pin's registry as the controller reaches it: declared, or on its own loopback. None: it does not."""
    registry = pin.registry or ""
    host, port = split_port(registry)
    loopback = is_loopback(host)
    url = endpoints.get(registry) or (f"http://{registry}" if loopback else None)
    if url is None or pin.repository is None:
        return None
    parts = urlsplit(url)
    return Endpoint(
        url=url.rstrip("/"),
        host=parts.hostname or "",
        port=parts.port or (443 if parts.scheme == "https" else 80),
        listen_port=port if loopback and port else LISTEN_PORT,
    )


def is_loopback(host: str) -> bool:
    """Whether `host` means the machine itself."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
