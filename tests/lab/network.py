"""The lab's network: one bridge, and for each node a namespace on a pair of virtual interfaces."""

import ipaddress
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from . import procs
from .cache import locked
from .config import LabConfig, NodeConfig, labs_dir
from .shell import LabError, run, tail_of, wait_until

# A Docker daemon with iptables anywhere on the machine makes bridged frames pass through iptables, and drops them.
BRIDGE_FILTER = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
NAMESPACES = Path("/run/netns")
SLOW_WIRE = Path(__file__).with_name("delay.py")


def namespace_path(name: str) -> Path:
    return NAMESPACES / name


def ip(*argv: str, check: bool = True) -> str:
    return run(["ip", *argv], check=check).stdout


def create_bridge(config: LabConfig) -> None:
    """The bridge carries the controller's own address: the lab's controller is this machine."""
    with locked("network"):
        require_free(config)
        add_bridge(config)
    open_bridge_filter()


def require_free(config: LabConfig) -> None:
    """Refuse a subnet that something else has: answers would come from the other one's machines."""
    for interface in json.loads(ip("-json", "-4", "address")):
        if interface["ifname"] == config.bridge:  # of this very lab: it is made anew
            continue
        for address in interface["addr_info"]:
            taken = ipaddress.IPv4Network(f"{address['local']}/{address['prefixlen']}", strict=False)
            if taken.overlaps(config.network):
                raise LabError(f"subnet {config.subnet} of lab {config.name}: {interface['ifname']} has {taken}")


def add_bridge(config: LabConfig) -> None:
    ip("link", "add", config.bridge, "type", "bridge", "forward_delay", "0")
    ip("addr", "add", f"{config.gateway}/{config.network.prefixlen}", "dev", config.bridge)
    ip("link", "set", config.bridge, "up")


def open_bridge_filter() -> None:
    """Let bridged frames pass, and note what the setting was before the first lab."""
    if not BRIDGE_FILTER.exists() or (value := BRIDGE_FILTER.read_text().strip()) == "0":
        return
    before = labs_dir() / BRIDGE_FILTER.name
    if not before.exists():
        before.write_text(value)
    BRIDGE_FILTER.write_text("0")


def restore_bridge_filter() -> None:
    """Put the setting back when the last lab is gone."""
    before = labs_dir() / BRIDGE_FILTER.name
    if before.exists() and not any(entry.is_dir() for entry in labs_dir().iterdir()):
        BRIDGE_FILTER.write_text(before.read_text())
        before.unlink()


def connect(config: LabConfig, node: NodeConfig) -> None:
    """A namespace with `eth0` in it, on the bridge."""
    inside = ["-n", node.namespace]
    ip("netns", "add", node.namespace)
    ip("link", "add", node.link, "type", "veth", "peer", "name", "eth0", "netns", node.namespace)
    ip("link", "set", node.link, "master", config.bridge, "up")
    ip(*inside, "link", "set", "lo", "up")
    ip(*inside, "addr", "add", f"{node.address}/{node.prefix}", "dev", "eth0")
    ip(*inside, "link", "set", "eth0", "up")
    ip(*inside, "route", "add", "default", "via", node.gateway)


def links(name: str) -> list[str]:
    """All interfaces of a lab on this machine, from whatever run."""
    names = [path.name for path in Path("/sys/class/net").iterdir()]
    return sorted(link for link in names if link.startswith(f"{name}-"))


def namespaces(name: str) -> list[str]:
    """All network namespaces of a lab, from whatever run."""
    if not NAMESPACES.exists():
        return []
    return sorted(path.name for path in NAMESPACES.iterdir() if path.name.startswith(f"{name}-node"))


def remove(name: str) -> None:
    """End what lives in the lab's namespaces and take everything away."""
    for wire in (labs_dir() / name).glob("*/wire"):
        procs.end(wire)
    for namespace in namespaces(name):
        procs.end_inside(namespace_path(namespace))
        ip("netns", "delete", namespace)
    for link in links(name):
        ip("link", "delete", link, check=False)  # one end of a pair takes the other along


def set_link(link: str, *, up: bool) -> None:
    ip("link", "set", link, "up" if up else "down")


def missing(config: LabConfig) -> Sequence[str]:
    """What of the lab's network is not there."""
    wanted = [config.bridge, *(node.link for node in config.all_nodes())]
    lost = sorted(set(wanted) - set(links(config.name)))
    return lost + sorted({node.namespace for node in config.all_nodes()} - set(namespaces(config.name)))


def slow_down(node: NodeConfig, milliseconds: int) -> None:
    """Put a slow wire between the node's link and the bridge: this long each way."""
    speed_up(node)
    if not Path("/dev/net/tun").exists():
        raise LabError("a slow link needs /dev/net/tun, which this machine does not have")
    tap, log = f"{node.link}t", node.folder / "wire.log"
    argv = [sys.executable, str(SLOW_WIRE), node.link, tap, str(milliseconds)]
    procs.spawn(argv, record=node.folder / "wire", log=log)
    wait_until("the slow wire", lambda: tap in links(node.lab), seconds=10, detail=lambda: tail_of(log))
    ip("link", "set", node.link, "nomaster", "arp", "off")  # or this machine would answer past the wire
    ip("link", "set", tap, "master", node.bridge, "up")


def speed_up(node: NodeConfig) -> None:
    """Take the slow wire away."""
    if (record := node.folder / "wire").exists():
        procs.end(record)
        ip("link", "set", node.link, "master", node.bridge, "arp", "on")
