"""Under which name a node's daemon pulls what the controller serves. Pure."""

from ipaddress import ip_address

from reconciler.core.desired import ImagePin
from reconciler.nodes.targets import split_port

LISTEN_PORT = 5917
"""Where the controller's registry is offered on the node's loopback. Fixed: Docker keeps the name an image was pulled
by, so another port each time would give it another name each time."""


def listen_port(pin: ImagePin) -> int:
    """The port on the node's loopback. A registry of the controller's own loopback keeps its port, and so the name."""
    host, port = split_port(pin.registry or "")
    return port if port and is_loopback(host) else LISTEN_PORT


def name_on_node(port: int) -> str:
    """The registry's name for the node's daemon, which takes plain HTTP from loopback without configuration."""
    return f"127.0.0.1:{port}"


def is_loopback(host: str) -> bool:
    """Whether `host` means the machine itself."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
