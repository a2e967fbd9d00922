"""The spec's nodes and registries -> what this package works with."""

from reconciler.nodes.ssh_fleet import SshFleet
from reconciler.nodes.targets import SshTarget
from specs import Node, Spec


def fleet_from_spec(spec: Spec) -> SshFleet:
    """The real fleet of a spec. Connects to nothing yet."""
    targets = (target_of(name, node) for name, node in spec.nodes.items())
    return SshFleet(targets, {host: str(registry.endpoint) for host, registry in spec.registries.items()})


def target_of(name: str, node: Node) -> SshTarget:
    """One node's way in."""
    ssh = node.ssh
    return SshTarget(
        name=name,
        host=ssh.host,
        port=ssh.port,
        user=ssh.user,
        identity_file=str(ssh.identity_file) if ssh.identity_file else None,
        known_hosts=str(ssh.known_hosts) if ssh.known_hosts else None,
        host_key=ssh.host_key,
        proxy_jump=ssh.proxy_jump,
        docker_socket=node.docker.socket,
    )
