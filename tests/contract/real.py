"""The contract's real subject: a node of the lab, reached as in production."""

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from reconciler.core.desired import ImagePin
from reconciler.nodes.protocols import Fleet
from reconciler.nodes.ssh_fleet import SshFleet
from reconciler.nodes.targets import SshTarget
from tests.contract.subject import SHELF, TIGHT, Content, Trouble
from tests.lab import Lab

NODES = {"classic": "node1", "containerd": "node3"}
NEIGHBOUR = "node2"
PLATFORMS = {"amd64": "linux/amd64", "arm64": "linux/arm64"}


class LabSubject:
    """One node of the lab."""

    def __init__(self, lab: Lab, store: str) -> None:
        self.name = NODES[store]
        self.store = store
        self._node = lab.nodes[self.name]
        self._lab = lab
        self.image, self.engine_image = self._pin("tiny"), self._pin("llamacpp")
        self.platform = PLATFORMS[lab.built["tiny"].architecture]
        foreign = next(name for name, image in lab.built.items() if name.startswith("llamacpp-") and image.architecture)
        self.foreign_image = self._pin(foreign)
        absent = "sha256:" + "0" * 64
        self.missing = replace(
            self.image, digest=absent, reference=self.image.reference.partition("@")[0] + f"@{absent}"
        )
        self.address = self._node.address
        self.neighbour = NEIGHBOUR
        self.neighbour_address = lab.nodes[NEIGHBOUR].address
        self._dropped: list[str] = []
        self._forget_models()

    def _pin(self, image: str) -> ImagePin:
        reference = self._lab.images[image]
        name, _, digest = reference.partition("@")
        registry, _, repository = name.partition("/")
        return ImagePin(reference, digest, "digest", registry, repository)

    def play(self, check: Callable[[Fleet], Coroutine[Any, Any, None]]) -> None:
        async def main() -> None:
            fleet = SshFleet([self._target(), self._target(NEIGHBOUR)])
            try:
                await check(fleet)
            finally:
                await fleet.close()

        asyncio.run(main())

    def play_rivals(self, check: Callable[[Fleet, Fleet], Coroutine[Any, Any, None]]) -> None:
        async def main() -> None:
            ours, theirs = SshFleet([self._target()]), SshFleet([self._target()])
            try:
                await check(ours, theirs)
            finally:
                self._let_through()
                await asyncio.gather(ours.close(), theirs.close())

        asyncio.run(main())

    def silence(self, fleet: Fleet) -> None:
        """Drop the packets of its connection, on the node."""
        assert isinstance(fleet, SshFleet)
        port = fleet._nodes[self.name].session.connection.get_extra_info("sockname")[1]
        self._dropped.append(str(port))
        self._filter("-I")

    def unsilence(self, fleet: Fleet) -> None:
        self._let_through()

    def _let_through(self) -> None:
        if self._dropped:
            self._filter("-D")
            self._dropped.clear()

    def _filter(self, verb: str) -> None:
        for port in self._dropped:
            for chain, way in (("INPUT", "--sport"), ("OUTPUT", "--dport")):
                self._node.exec(["iptables", verb, chain, "-p", "tcp", way, port, "-j", "DROP"])

    def _target(self, name: str | None = None) -> SshTarget:
        node = self._lab.nodes[name or self.name]
        return SshTarget(
            name=node.name,
            host=node.address,
            user="root",
            identity_file=str(self._lab.identity_file),
            known_hosts=str(self._lab.known_hosts),
        )

    def forget_images(self) -> None:
        self._node.remove_images()

    def put_model(self, node: str, path: str, content: Content) -> None:
        place = self._on_disk(node, path)
        files = {place: content} if isinstance(content, bytes) else {place / key: data for key, data in content.items()}
        for file, data in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)

    def take_model(self, node: str, path: str) -> None:
        place = self._on_disk(node, path)
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)

    def fill_disk(self, leave_bytes: int) -> None:
        """A small disk of its own, or it would be this machine's that is full."""
        self._on_disk(self.name, TIGHT).mkdir(parents=True)
        self._node.exec(["mount", "-t", "tmpfs", "-o", f"size={leave_bytes}", "tmpfs", TIGHT])

    def power_off_neighbour(self) -> None:
        self._lab.nodes[self.neighbour].power_off()

    def _on_disk(self, node: str, path: str) -> Path:
        return self._lab.nodes[node].disk / path.removeprefix("/")

    def _forget_models(self) -> None:
        """What a test before put there, by whatever node it was about."""
        for name, node in self._lab.nodes.items():
            node.exec(["umount", TIGHT], check=False)
            shutil.rmtree(self._on_disk(name, SHELF), ignore_errors=True)

    def trouble(self, what: Trouble) -> None:
        if what == "link cut":
            self._node.cut_link()
        elif what == "power off":
            self._node.power_off()
        elif what == "docker down":
            self._node.stop_docker(crash=True)
        elif what == "host key changed":
            self._node.change_host_key()
        else:
            self._node.stop_sshd()
            self._node.start_sshd()

    def mend(self) -> None:
        self._node.mend()
