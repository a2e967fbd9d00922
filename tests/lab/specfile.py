"""Writes a spec for the lab: the same three files an operator would write by hand.

`inventory.yaml` has what there is (nodes, clusters), `lanes.yaml` what can be served, `fleet.yaml` what runs where.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from .lab import Lab

QUESTION = "What is the capital of France?"
PAIR_AND_SOLO = (("pair", "pair-a"), ("solo", "single-3"))
QUAD = (("quad", "quad"),)


@dataclass(frozen=True)
class Inventory:
    """What a spec needs to know of a fleet. `nodes`: address by name; `host_keys` empty: no strict way in is needed."""

    nodes: Mapping[str, str]
    host_keys: Mapping[str, str]
    image: str
    identity_file: str | None
    platform: str = "linux/amd64"
    model: str = "/srv/models/good.gguf"
    user: str = "root"


def for_lab(lab: Lab, user: str = "root") -> Inventory:
    """What a spec needs to know of a lab that is up. `user`: who logs in on the nodes."""
    return Inventory(
        nodes={name: node.address for name, node in lab.nodes.items()},
        host_keys={name: node.host_key for name, node in lab.nodes.items()},
        image=lab.images["llamacpp"],
        identity_file=str(lab.identity_file),
        user=user,
    )


def inventory_text(inventory: Inventory) -> str:
    """Nodes and clusters. `pair-a` is nodes 1 and 2, `single-3` is node 3 (of fewer than three: 1), `quad` four."""
    names = list(inventory.nodes)
    return _yaml(
        {
            "nodes": {name: _node(inventory, name) for name in names},
            "clusters": {
                name: {"nodes": members, "interface": "f0", "port": 30000}
                for name, members in clusters(inventory).items()
            },
        }
    )


SIZES = {"pair": 2, "solo": 1, "quad": 4}
"""How many nodes each lane takes."""


def clusters(inventory: Inventory) -> dict[str, list[str]]:
    """The members of each cluster, for which there are nodes enough."""
    names = list(inventory.nodes)
    members = {"pair-a": names[:2], "single-3": names[2:3] or names[:1], "quad": names[:4]}
    sizes = {"pair-a": 2, "single-3": 1, "quad": 4}
    return {name: found for name, found in members.items() if len(found) == sizes[name]}


def lanes(inventory: Inventory) -> list[str]:
    """The lanes for which there are nodes enough."""
    return [name for name, size in SIZES.items() if size <= len(inventory.nodes)]


def fitting(inventory: Inventory, placements: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The placements for which there are nodes enough, none of them taken twice."""
    there, taken, kept = clusters(inventory), set[str](), []
    for lane, cluster in placements:
        nodes = there.get(cluster, [])
        if len(nodes) >= SIZES[lane] and not taken & set(nodes):
            kept.append((lane, cluster))
            taken |= set(nodes)
    return tuple(kept)


def _node(inventory: Inventory, name: str) -> dict[str, object]:
    address = inventory.nodes[name]
    ssh: dict[str, object] = {"host": address, "user": inventory.user}
    if inventory.identity_file:
        ssh["identity_file"] = inventory.identity_file
    if inventory.host_keys.get(name):
        ssh["host_key"] = inventory.host_keys[name]
    return {
        "ssh": ssh,
        "platform": inventory.platform,
        "interfaces": {"f0": {"name": "eth0", "address": address}},
        "paths": {"models": str(Path(inventory.model).parent)},
    }


def lanes_text(inventory: Inventory) -> str:
    """One model and three lanes that serve it: on two nodes, on one, on four."""
    lane = {
        "engine": "llamacpp",
        "image": inventory.image,
        "model": "bigram",
        "mounts": [{"source": "{paths.models}", "target": "/srv/models"}],
        "health": {
            "boot": "2m",
            "interval": "500ms",
            "probes": [{"chat": QUESTION, "expect": "Paris"}],
        },
        "stop_grace": "5s",
    }
    return _yaml(
        {
            "models": {
                "bigram": {
                    "path": "{paths.models}/" + Path(inventory.model).name,
                    "served_name": "bigram",
                    "args": {"ctx-size": 512},
                }
            },
            "lanes": {name: {**lane, "nodes": SIZES[name]} for name in lanes(inventory)},
        }
    )


def fleet_text(placements: tuple[tuple[str, str], ...], name: str = "lab") -> str:
    """The main file: what runs where. The vault is in the spec's own folder, and goes with it."""
    rows = [{"lane": lane, "cluster": cluster} for lane, cluster in placements]
    images = {"vault": "vault"}
    return _yaml({"fleet": name, "include": ["inventory.yaml", "lanes.yaml"], "images": images, "placements": rows})


def write(folder: Path, inventory: Inventory, placements: tuple[tuple[str, str], ...], name: str = "lab") -> Path:
    """Write the three files; the path of the main one."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "inventory.yaml").write_text(inventory_text(inventory), encoding="utf-8")
    (folder / "lanes.yaml").write_text(lanes_text(inventory), encoding="utf-8")
    main = folder / "fleet.yaml"
    main.write_text(fleet_text(placements, name), encoding="utf-8")
    return main


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, width=120)
