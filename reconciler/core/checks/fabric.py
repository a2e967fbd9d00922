"""Whether the wires of a cluster are there as the spec says: interface, address, RDMA device, GID.

`NCCL_SOCKET_IFNAME`, `NCCL_IB_HCA` and `NCCL_IB_GID_INDEX` are made of these; NCCL's documentation says how it reads
them: a device is named exactly, or by how its name begins.
"""

from collections.abc import Iterator

from reconciler.core.checks.case import Case, Site
from reconciler.core.checks.finding import Finding, Result
from reconciler.core.classify import RankView
from reconciler.core.desired import Wire
from reconciler.core.host import ROCE_V2, Host, RdmaPort

ETHERNET = "Ethernet"


def interface(case: Case, rank: RankView) -> Iterator[Finding]:
    """A rank alone needs no wire to others: then a fault of it is only told."""
    wire, host = rank.rank.wire, rank.facts.host
    if wire is None:
        return
    if host.interfaces is None:
        yield case.unknown("interface", rank, "the interfaces are not told (`ip` is missing there)")
    elif fault := _interface_fault(host, wire, rank.rank.node):
        tell = case.refuse if len(case.view.gang.ranks) > 1 else case.warn
        yield tell("interface", rank, *fault)
    else:
        yield case.fine("interface", rank, f"{wire.interface} is up with {wire.address}")


def unused_interface(site: Site) -> Iterator[Finding]:
    """What the spec declares and no lane uses now may be needed tomorrow."""
    used = {rank.wire.interface for rank in site.ranks if rank.wire is not None}
    for wire in site.declared.wires:
        if wire.interface not in used and site.facts.host.interfaces is not None:
            fault = _interface_fault(site.facts.host, wire, site.node)
            if fault:
                yield site.found("unused-interface", Result.WARN, *fault)


def _interface_fault(host: Host, wire: Wire, node: str) -> tuple[str, str] | None:
    """What is wrong with it, and what to do; None when nothing is."""
    found, holder = host.interface(wire.interface), host.with_address(wire.address)
    where = f"{wire.address} is on {holder.name}" if holder else f"no interface has {wire.address}"
    if found is None:
        near = f"write `name: {holder.name}`" if holder else f"`ip -br addr` on {node} lists what there is"
        return f"{node} has no interface {wire.interface}; {where}", f"correct the interface in the spec: {near}"
    if found.is_up is False:
        mend = f"look at cable and switch; `ip link set {wire.interface} up` there"
        return f"{wire.interface} of {node} is down", mend
    if wire.address not in found.addresses:
        has = ", ".join(found.addresses) or "no address"
        mend = f"`name: {holder.name}`, if that is the right wire" if holder else f"give {wire.interface} its address"
        return f"{wire.interface} of {node} has {has}; {where}", f"{mend}, or correct the interface in the spec"
    return None


def hca(case: Case, rank: RankView) -> Iterator[Finding]:
    """Each RDMA device that the spec names has a port that is active."""
    wire, host = rank.rank.wire, rank.facts.host
    for device in wire.hcas if wire else ():
        ports = _ports(host, device)
        if host.rdma is None:
            yield case.unknown("hca", rank, "the RDMA devices are not told")
        elif not ports:
            there = ", ".join(sorted({port.device for port in host.rdma})) or "none"
            yield case.refuse(
                "hca",
                rank,
                f"{rank.rank.node} has no RDMA device {device}; there: {there}",
                "correct `hca` of the interface in the spec, or load the driver of the device there",
            )
        elif not any(port.state == "ACTIVE" for port in ports):
            states = ", ".join(f"{port.device} port {port.port} is {port.state or 'not told'}" for port in ports)
            mend = "look at cable and switch; `rdma link` there shows the state"
            yield case.refuse("hca", rank, f"on {rank.rank.node} {states}", mend)
        else:
            yield case.fine("hca", rank, f"{device} is active")


def gid(case: Case, rank: RankView) -> Iterator[Finding]:
    """The GID at the cluster's index is one of RoCE v2, on each active Ethernet port."""
    wire, host = rank.rank.wire, rank.facts.host
    if wire is None or wire.gid_index is None or host.rdma is None:
        return
    for port in (port for device in wire.hcas for port in _ports(host, device)):
        if port.state == "ACTIVE" and port.link == ETHERNET and port.gids:
            fault = _gid_fault(port, wire, wire.gid_index)
            if fault:
                yield case.refuse("gid", rank, f"on {rank.rank.node} {fault}", _better(port, wire))
            else:
                yield case.fine("gid", rank, f"GID {wire.gid_index} of {port.device} is {ROCE_V2}")


def _gid_fault(port: RdmaPort, wire: Wire, index: int) -> str:
    entry = next((gid for gid in port.gids if gid.index == index), None)
    if entry is None:
        there = ", ".join(str(gid.index) for gid in port.gids)
        return f"{port.device} port {port.port} has no GID at index {index}; there: {there}"
    if entry.kind and entry.kind != ROCE_V2:
        return f"GID {index} of {port.device} is {entry.kind} ({entry.address}), not {ROCE_V2}"
    return ""


def _better(port: RdmaPort, wire: Wire) -> str:
    fitting = [gid for gid in port.gids if gid.kind == ROCE_V2]
    best = next((gid for gid in fitting if gid.address == wire.address), fitting[0] if fitting else None)
    if best is None:
        return f"give {wire.interface} its address: the kernel makes the GID of it"
    return f"`nccl: {{gid_index: {best.index}}}` of the cluster is {ROCE_V2} with {best.address}"


def _ports(host: Host, device: str) -> tuple[RdmaPort, ...]:
    """NCCL takes a name for how names begin when no device has it exactly."""
    name, _, port = device.partition(":")
    begun = (item for item in host.rdma or () if item.device.startswith(name) and port in {"", str(item.port)})
    return host.rdma_ports(device) or tuple(begun)
