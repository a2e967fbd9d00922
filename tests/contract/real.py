"""The contract's real subject: a node of the lab, reached as in production."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from reconciler.core.desired import ImagePin
from reconciler.nodes.protocols import Fleet
from reconciler.nodes.ssh_fleet import SshFleet
from reconciler.nodes.targets import SshTarget
from tests.contract.subject import Trouble
from tests.lab import Lab

NODES = {"classic": "node1", "containerd": "node3"}
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
        self._dropped: list[str] = []

    def _pin(self, image: str) -> ImagePin:
        reference = self._lab.images[image]
        name, _, digest = reference.partition("@")
        registry, _, repository = name.partition("/")
        return ImagePin(reference, digest, "digest", registry, repository)

    def play(self, check: Callable[[Fleet], Coroutine[Any, Any, None]]) -> None:
        async def main() -> None:
            fleet = SshFleet([self._target()])
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

    def _target(self) -> SshTarget:
        return SshTarget(
            name=self.name,
            host=self._node.address,
            user="root",
            identity_file=str(self._lab.identity_file),
            known_hosts=str(self._lab.known_hosts),
        )

    def forget_images(self) -> None:
        self._node.remove_images()

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
