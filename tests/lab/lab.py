"""The lab: a real fleet on one machine. Nodes with their own sshd and Docker, a registry, an engine, two models."""

import functools
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

from . import disk, facts, network, packages, record, registry, tunnel
from .cache import locked
from .config import LabConfig
from .image import ImageSet
from .node import Node
from .prepare import BOOT_SCRIPT, prepare
from .record import Record
from .registry import Registry
from .removal import remove
from .shell import LabError, Progress, side_by_side


class Lab:
    """A running lab. Make one with `Lab.up`, find one with `Lab.attach`."""

    def __init__(self, made: Record) -> None:
        self.record = made
        self.config = made.config
        self.name = made.config.name
        self.folder = made.config.folder
        self.registry = Registry(self.folder / "registry", made.port)
        self.nodes = {node.name: Node(node, runtime=made.runtime) for node in made.config.all_nodes()}
        self.images = {image.name: self.registry.reference(image) for image in made.images}
        self.built = {image.name: image for image in made.images}

    @property
    def identity_file(self) -> Path:
        """The private key that every node accepts, for root, ops and guest."""
        return self.folder / "identity"

    @property
    def known_hosts(self) -> Path:
        """The pinned host keys, by address and by name."""
        return self.folder / "known_hosts"

    @property
    def ssh_config(self) -> Path:
        """For use by hand: `ssh -F FILE node1`."""
        return self.folder / "ssh_config"

    @property
    def models(self) -> dict[str, str]:
        """The models by name, as paths in the nodes."""
        return {path.stem: f"/srv/models/{path.name}" for path in self.record.models}

    @classmethod
    def up(
        cls,
        name: str = "fleetlab",
        subnet: str | None = None,
        nodes: int | None = None,
        *,
        small_disk_mb: Mapping[str, int] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Have a lab: the one that is there if it is what was asked for, mended where needed, else a new one.

        What is not said is as in the lab of this name that was made before; without one, as `LabConfig` has it.
        """
        packages.require_supported()
        with locked(f"lab-{name}"):
            config = _config(name, subnet, nodes, small_disk_mb)
            return cls._up(config, progress or Progress(quiet=True))

    @classmethod
    def _up(cls, config: LabConfig, progress: Progress) -> Self:
        wanted, images = prepare(config, progress)
        if cls._stands(wanted):
            lab = cls(wanted)
            progress.step(f"{config.name} is already up", lab.mend)
            return lab
        network.require_free(config)
        progress.step("whatever had this name removed", lambda: remove(config.name))
        lab = cls(wanted)
        try:
            lab._build(images, progress)
        except BaseException:
            remove(config.name)
            raise
        return lab

    @classmethod
    def _stands(cls, wanted: Record) -> bool:
        """Whether this very lab is there, down to its network: a rebooted machine has only its files."""
        try:
            found = record.load(wanted.config.name)
        except LabError:
            return False
        return found is not None and found == wanted and not network.missing(wanted.config)

    @classmethod
    def attach(cls, name: str = "fleetlab") -> Self:
        """Find a lab that is up."""
        found = record.load(name)
        if found is None or network.missing(found.config):
            raise LabError(f"no lab named {name} is up (python -m tests.lab up --name {name})")
        return cls(found)

    def down(self) -> None:
        """Take the lab away, whole."""
        self.remove(self.name)

    @staticmethod
    def remove(name: str) -> None:
        """Take away all that carries a lab's name, from whatever run, in whatever state."""
        packages.require_supported()
        with locked(f"lab-{name}"):
            remove(name)

    def mend(self) -> None:
        """Undo every fault, on every node and in the registry."""
        if not self.registry.alive:
            self.registry.stop()
            self.registry.start()
        side_by_side(node.mend for node in self.nodes.values())

    def reset(self, *, images: bool = False) -> None:
        """Between tests: everything mended, no containers, good models; without any image if so asked."""
        self.mend()
        side_by_side(functools.partial(self._reset_node, node, images=images) for node in self.nodes.values())

    def _reset_node(self, node: Node, *, images: bool) -> None:
        node.remove_containers()
        if images:
            node.remove_images()
        disk.place_models(node.config, self.record.models)

    def preload(self, image: str, nodes: Iterable[str] | None = None) -> None:
        """Have an image on nodes under its reference, pulled as in real life: from the registry, through SSH."""
        targets = [self.nodes[name] for name in (self.nodes if nodes is None else nodes)]
        side_by_side(functools.partial(self._pull, node, self.images[image]) for node in targets)

    def _pull(self, node: Node, reference: str) -> None:
        if not node.exec(["docker", "image", "inspect", reference], check=False).returncode:
            return
        with tunnel.remote_forward(self.ssh_config, node, self.registry.port):
            node.docker("pull", "-q", reference)

    def _state(self, node: Node) -> str:
        if not node.is_on:
            return "OFF"
        return "on" if node.docker_answers else "on, Docker down"

    def status(self) -> list[str]:
        """One line per thing, for people."""
        lines = [f"registry  {self.registry.endpoint}  {'up' if self.registry.alive else 'DOWN'}"]
        return lines + [
            f"{node.name:8}  {node.address:14}  {node.store:10}  {self._state(node)}" for node in self.nodes.values()
        ]

    # making it

    def _build(self, images: ImageSet, progress: Progress) -> None:
        self.folder.mkdir(parents=True)
        shutil.copyfile(BOOT_SCRIPT, self.folder / BOOT_SCRIPT.name)
        disk.new_key(self.identity_file, comment=self.name)
        progress.step("network", self._build_network)
        progress.step("disks", self._build_disks)
        boots = [functools.partial(self._boot, node, progress) for node in self.nodes.values()]
        side_by_side([*boots, functools.partial(self._fill_registry, images, progress)])
        self._write_ssh_files()
        record.save(self.record, facts.of_lab(self))

    def _build_network(self) -> None:
        network.create_bridge(self.config)
        for node in self.config.all_nodes():
            network.connect(self.config, node)

    def _build_disks(self) -> None:
        key = self.identity_file.with_suffix(".pub").read_text()
        hosts = {node.name: node.address for node in self.nodes.values()}
        for node in self.nodes.values():
            disk.create(node.config, hosts=hosts, authorized_key=key)
            disk.place_models(node.config, self.record.models)

    def _boot(self, node: Node, progress: Progress) -> None:
        progress.step(f"{node.name} at {node.address}, {node.store} image store", node.power_on)

    def _fill_registry(self, images: ImageSet, progress: Progress) -> None:
        since = time.monotonic()
        self.registry.start()
        registry.push(self.registry, images)
        progress.done(f"registry at {self.registry.endpoint} with {len(images.images)} images", since)

    def _write_ssh_files(self) -> None:
        nodes = self.nodes.values()
        self.known_hosts.write_text("".join(f"{node.address},{node.name} {node.host_key}\n" for node in nodes))
        hosts = "".join(f"Host {node.name}\n  HostName {node.address}\n" for node in nodes)
        common = f"  User root\n  IdentityFile {self.identity_file}\n  IdentitiesOnly yes\n"
        strict = (
            f"  UserKnownHostsFile {self.known_hosts}\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n"
        )
        self.ssh_config.write_text(f"{hosts}Host *\n{common}{strict}")


def _config(name: str, subnet: str | None, nodes: int | None, small_disk_mb: Mapping[str, int] | None) -> LabConfig:
    """What is asked for; what is not said stays as it was."""
    try:
        found = record.load(name)
    except LabError:  # of another version: nothing can be taken over
        found = None
    before = found.config if found else LabConfig(name=name)
    count = before.nodes if nodes is None else nodes
    kept = {node: size for node, size in before.small_disk_mb.items() if int(node.removeprefix("node")) <= count}
    disks = kept if small_disk_mb is None else small_disk_mb
    return LabConfig(name=name, subnet=subnet or before.subnet, nodes=count, small_disk_mb=dict(disks))
