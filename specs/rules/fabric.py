"""Rules on the fabric, which belongs to the cluster, and on the addresses of nodes."""

import ipaddress
from collections.abc import Iterator
from itertools import chain

from specs.diagnostics import Diagnostic
from specs.draft import Draft, Placed
from specs.problems import dotted
from specs.tree import Loc

_INTERFACE = "the cluster's `interface`"
_RENDEZVOUS = "the cluster's `rendezvous_port` and the head of its nodes"
_ORDER = "the order of the cluster's `nodes`"

OWNED_ENV = {
    "NCCL_SOCKET_IFNAME": _INTERFACE,
    "NCCL_IB_HCA": "the `hca` of the interface of each node",
    "NCCL_IB_GID_INDEX": "the cluster's `nccl.gid_index`",
    "GLOO_SOCKET_IFNAME": _INTERFACE,
    "TP_SOCKET_IFNAME": _INTERFACE,
    "UCX_NET_DEVICES": "the `hca` of the interface of each node",
    "OMPI_MCA_btl_tcp_if_include": _INTERFACE,
    "MASTER_ADDR": _RENDEZVOUS,
    "MASTER_PORT": _RENDEZVOUS,
    "VLLM_HOST_IP": "the `address` of the interface of each node",
    "NODE_RANK": _ORDER,
    "RANK": _ORDER,
    "LOCAL_RANK": _ORDER,
    "WORLD_SIZE": _ORDER,
}
"""Environment variables that the cluster sets, with what in the spec decides them."""

OWNED_ARGS = {
    "master-addr": _RENDEZVOUS,
    "master-port": _RENDEZVOUS,
    "dist-init-addr": _RENDEZVOUS,
    "node-rank": _ORDER,
    "nnodes": "the lane's `nodes`",
    "host": "the cluster, for the HTTP server of the head",
    "port": "the cluster's `port`",
    "rpc": "the cluster's `nodes` and the lane's `ports.rpc`",
    "headless": _ORDER,
}
"""Engine arguments that the cluster sets, with what in the spec decides them; '_' counts as '-'."""


def env_leaves_the_fabric_alone(draft: Draft) -> Iterator[Diagnostic]:
    """No lane sets an environment variable that the cluster owns."""
    for loc in chain(draft.keys("lanes", "*", "env", "*"), draft.keys("lanes", "*", "roles", "*", "env", "*")):
        if (owner := OWNED_ENV.get(str(loc[-1]))) is not None:
            yield _owned(draft, loc, owner)


def args_leave_the_fabric_alone(draft: Draft) -> Iterator[Diagnostic]:
    """No lane and no model sets an engine argument that the cluster owns."""
    for section in ("models", "lanes"):
        for loc in draft.keys(section, "*", "args", "*"):
            if (owner := OWNED_ARGS.get(_flag(str(loc[-1])))) is not None:
                yield _owned(draft, loc, owner)


def hosts_differ(draft: Draft) -> Iterator[Diagnostic]:
    """Two nodes are two machines: no two have the same SSH host and port."""
    first: dict[tuple[str, int, str | None], str] = {}
    for name, node in draft.nodes.items():
        # Behind another jump host, the same host name is another machine.
        seen = first.setdefault((node.ssh.host.lower(), node.ssh.port, node.ssh.proxy_jump), name)
        if seen != name:
            yield draft.at(
                ("nodes", name, "ssh", "host"),
                f"'{name}' and '{seen}' are the same machine: {node.ssh.host} port {node.ssh.port}",
                f"'{seen}' has it at {draft.place('nodes', seen, 'ssh', 'host')}.",
                "give each machine one name",
            )


def addresses_differ(draft: Draft) -> Iterator[Diagnostic]:
    """No two nodes have the same address on a fabric."""
    first: dict[str, tuple[str, Loc]] = {}
    for name, node in draft.nodes.items():
        for key, interface in node.interfaces.items():
            loc: Loc = ("nodes", name, "interfaces", key, "address")
            seen, its = first.setdefault(interface.address, (name, loc))
            if seen != name and not _loopback(interface.address):
                yield draft.at(
                    loc,
                    f"'{name}' and '{seen}' have the same address {interface.address}",
                    f"'{seen}' has it at {draft.place(*its)}.",
                )


def interfaces_differ(draft: Draft) -> Iterator[Diagnostic]:
    """The fabric interfaces of one node are as many in its kernel."""
    for node, spec in draft.nodes.items():
        first: dict[str, str] = {}
        for key, interface in spec.interfaces.items():
            seen = first.setdefault(interface.name, key)
            if seen != key:
                yield draft.at(
                    ("nodes", node, "interfaces", key, "name"),
                    f"'{key}' and '{seen}' of {node} are the same interface {interface.name}",
                    f"'{seen}' has it at {draft.place('nodes', node, 'interfaces', seen, 'name')}.",
                    f"`ip link` on {node} shows the names",
                )


def rdma_is_there(draft: Draft) -> Iterator[Diagnostic]:
    """A lane that needs RDMA is on a cluster that says which adapter of each node is the fabric's."""
    for placed in draft.placed():
        if placed.lane.rdma and len(placed.nodes) > 1:
            yield from _without_rdma(draft, placed)


def _without_rdma(draft: Draft, placed: Placed) -> Iterator[Diagnostic]:
    key, cluster = placed.cluster.interface, placed.placement.cluster
    why = f"The lane {placed.placement.lane} needs RDMA (`rdma: true`); {draft.place(*placed.loc)} places it there."
    if key is None:
        summary = f"the cluster '{cluster}' has no fabric: {placed.placement.lane} needs RDMA"
        yield draft.at((*placed.loc, "cluster"), summary, why, "set `interface` of the cluster")
        return
    for node in placed.nodes:
        interface = draft.nodes[node].interfaces.get(key) if node in draft.nodes else None
        if interface is not None and interface.hca is None:
            summary = f"interface '{key}' of {node} names no `hca`: {placed.placement.lane} needs RDMA"
            hint = f"`rdma link` on {node} shows the adapter"
            yield draft.at(("nodes", node, "interfaces", key), summary, why, hint)


def rendezvous_is_reachable(draft: Draft) -> Iterator[Diagnostic]:
    """The ranks of a lane on several nodes do not meet at a loopback address."""
    for placed in draft.placed():
        if len(placed.nodes) < 2:
            continue
        for loc, address in _fabric(draft, placed):
            if _loopback(address):
                yield draft.at(
                    loc,
                    f"{address} is a loopback address: no other node can reach it",
                    f"The {len(placed.nodes)} ranks of {placed} at {draft.place(*placed.loc)} must reach each other.",
                    "write the address of the node on the fabric",
                )


def _fabric(draft: Draft, placed: Placed) -> Iterator[tuple[Loc, str]]:
    """Yield the address of each node of a placement on the fabric, and where it is written."""
    key = placed.cluster.interface
    for name in placed.nodes:
        node = draft.nodes.get(name)
        if node is None:
            continue
        if key is None:
            yield ("nodes", name, "ssh", "host"), node.ssh.host
        elif key in node.interfaces:
            yield ("nodes", name, "interfaces", key, "address"), node.interfaces[key].address


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() in ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")


def _flag(arg: str) -> str:
    return arg.replace("_", "-").lower()


def _owned(draft: Draft, loc: Loc, owner: str) -> Diagnostic:
    summary = f"{dotted(loc[:-1])}: `{loc[-1]}` belongs to the cluster"
    return draft.at_key(loc, summary, f"It follows from {owner}.", "remove it here")
