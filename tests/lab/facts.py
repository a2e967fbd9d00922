"""The public part of `lab.json`, for programs that use a lab and do not import it."""

from typing import TYPE_CHECKING

from .node import Node

if TYPE_CHECKING:
    from .lab import Lab


def of_lab(lab: "Lab") -> dict[str, object]:
    return {
        "name": lab.name,
        "subnet": lab.config.subnet,
        "identity_file": str(lab.identity_file),
        "known_hosts": str(lab.known_hosts),
        "ssh_config": str(lab.ssh_config),
        "registry": {"endpoint": lab.registry.endpoint, "port": lab.registry.port},
        "images": {name: of_image(lab, name) for name in lab.images},
        "models": lab.models,
        "nodes": {node.name: of_node(node) for node in lab.nodes.values()},
    }


def of_image(lab: "Lab", name: str) -> dict[str, object]:
    image = lab.built[name]
    return {
        "reference": lab.images[name],
        "digest": image.digest,
        "config_digest": image.config_digest,
        "architecture": image.architecture,
        "compressed_bytes": image.compressed_bytes,
    }


def of_node(node: Node) -> dict[str, object]:
    return {
        "address": node.address,
        "store": node.store,
        "host_key": node.host_key,
        "disk": str(node.disk),
        "namespace": node.config.namespace,
        "link": node.config.link,
    }
