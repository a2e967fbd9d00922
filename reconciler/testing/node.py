"""A simulated node: what it is, what it holds, and the switches a test can pull."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from reconciler.core.desired import ContainerSpec
from reconciler.core.host import Interface, RdmaPort
from reconciler.core.observed import Container, Gpu, Listener, LocalImage, NodeFacts, Unknown, UnknownKind
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.testing.behaviours import GIB, Behaviour, Listens
from reconciler.testing.clock import rfc3339
from reconciler.testing.history import Happening
from reconciler.testing.hosts import sim_host, with_processes
from reconciler.testing.images import SimImage, Store, sha256
from reconciler.testing.leases import LeaseBook
from reconciler.testing.models import SimShelf
from reconciler.testing.runtime import KILLED, Runtime
from reconciler.testing.store import SimStore
from reconciler.testing.world import World

HOST_SHARE = 32
"""One part in so many of the memory is taken by the system itself."""


@dataclass(frozen=True)
class SimNodeConfig:
    """A node. `images`: digests that are there from the beginning. `bytes_per_s`: how fast an image comes.

    `free_delay_s`: how long after the end of a container its memory is free again. `interfaces` and
    `rdma` None: not told.
    """

    name: str
    address: str
    platform: str = "linux/amd64"
    store: Store = "classic"
    gpus: int = 1
    memory_bytes: int = 128 * GIB
    disk_bytes: int = 500 * 10**9
    images: tuple[str, ...] = ()
    bytes_per_s: float = 100e6
    free_delay_s: float = 3.0
    has_python: bool = True
    interfaces: tuple[Interface, ...] | None = None
    rdma: tuple[RdmaPort, ...] | None = None

    @property
    def addresses(self) -> frozenset[str]:
        """Everything by which others reach it: its name, and each of its addresses."""
        more = (address for interface in self.interfaces or () for address in interface.addresses)
        return frozenset({self.name, self.address, *more})


def sim_nodes(count: int, platform: str = "linux/amd64", gpus: int = 1) -> tuple[SimNodeConfig, ...]:
    """Nodes n1, n2, ... at 10.0.0.1, 10.0.0.2, ... of their eth0, with the two image stores in turn."""
    return tuple(_sim_node(number, f"10.0.0.{number}", platform, gpus) for number in range(1, count + 1))


def _sim_node(number: int, address: str, platform: str, gpus: int) -> SimNodeConfig:
    store: Store = "classic" if number % 2 else "containerd"
    eth0 = Interface("eth0", True, (address,))
    return SimNodeConfig(f"n{number}", address, platform, store, gpus, interfaces=(eth0,), rdma=())


class SimNode:
    """One machine. Its methods are a person with hands on it: nothing here is a call of ours, nothing is logged.

    `host`: what it says of its wires, clock and boots; a test may put another one there.
    """

    def __init__(self, config: SimNodeConfig, world: World, images: dict[str, SimImage], seed: int) -> None:
        self.config = config
        self.name = config.name
        self.is_on = True
        self.is_linked = True
        self.has_docker = True
        self.denial: Unknown | None = None
        self.missing_paths: set[str] = set()
        self.session_epoch = 0
        self.host = sim_host(config.interfaces, config.rdma, config.gpus)
        usable = config.memory_bytes - config.memory_bytes // HOST_SHARE
        self.runtime = Runtime(config.name, world, seed, config.gpus, usable, config.free_delay_s)
        self.free_bytes = config.disk_bytes
        self._world = world
        self._seed = seed
        self._boots = 1
        self._known = images
        self.leases = LeaseBook(self, world)
        self.models = SimShelf(self.missing_paths, lambda: self.free_bytes)
        self.store = SimStore(config.store, config.platform, images, lambda: rfc3339(world.now_s))
        for digest in config.images:
            self.load_image(digest)

    # switches

    def power_off(self) -> None:
        """Pull the plug. Connections are refused from now on."""
        self._world.sync()
        self.is_on, self.session_epoch = False, self.session_epoch + 1
        self.runtime.lose_power()

    def power_on(self) -> None:
        """Boot: another boot id, no container runs."""
        self._world.sync()
        if not self.is_on:
            self.is_on, self.has_docker, self._boots = True, True, self._boots + 1

    def reboot(self) -> None:
        """Off and on again."""
        self.power_off()
        self.power_on()

    def cut_link(self) -> None:
        """Silence: nothing is refused, nothing answers. What runs goes on running."""
        self._world.sync()
        self.is_linked = False

    def mend_link(self) -> None:
        """The link is back, and so are the sessions over it."""
        self._world.sync()
        self.is_linked = True

    def drop_sessions(self) -> None:
        """All SSH sessions end now; new ones can be had."""
        self._world.sync()
        self.session_epoch += 1

    def stop_docker(self, *, crash: bool = True) -> None:
        """The daemon ends: killed, which leaves its containers running, or asked to, which stops them."""
        self._world.sync()
        self.has_docker = False
        for found in () if crash else tuple(self.runtime.containers.values()):
            self.runtime.end(found, found.behaviour.stop_code)

    def start_docker(self) -> None:
        """The daemon is back."""
        self._world.sync()
        self.has_docker = True

    def restart_docker(self, down_s: float = 5.0, *, crash: bool = False) -> None:
        """The daemon ends, and is back after `down_s` seconds unless the node has lost its power meanwhile."""
        self.stop_docker(crash=crash)
        boots = self._boots
        self._world.after(down_s, lambda: self.start_docker() if self.is_on and self._boots == boots else None)

    def deny(self, kind: UnknownKind, reason: str = "", hint: str = "") -> None:
        """No session can be had any more, for this reason (a changed host key, a refused login)."""
        self._world.sync()
        self.denial = Unknown(self.name, kind, reason or f"simulated: {kind}", hint)
        self.session_epoch += 1

    def admit(self) -> None:
        """Sessions can be had again."""
        self._world.sync()
        self.denial = None

    def fill_disk(self, leave_bytes: int = 0) -> None:
        """Leave so much of the disk free."""
        self._world.sync()
        self.free_bytes = leave_bytes

    def kill(self, ref: str, code: int = KILLED, *, oom: bool = False) -> None:
        """End a container's process."""
        self._world.sync()
        self.runtime.end(self.runtime.require(ref), code, oom=oom)

    def start_container(self, ref: str) -> None:
        """`docker start` by a person."""
        self._world.sync()
        self.runtime.start(ref)

    def stop_container(self, ref: str) -> None:
        """`docker stop` by a person; it has ended when this returns."""
        self._world.sync()
        found = self.runtime.require(ref)
        self.runtime.end(found, found.behaviour.stop_code)

    def delete_container(self, ref: str) -> None:
        """`docker rm -f` by a person."""
        self._world.sync()
        self.runtime.end(self.runtime.require(ref), KILLED)
        self.runtime.remove(ref)

    def add_foreign(self, name: str, ports: tuple[int, ...] = (), gpus: int = 0, memory_bytes: int = 0) -> str:
        """A running container that is not ours; its id."""
        behaviour = Listens(ports, memory_bytes=memory_bytes)
        return self.run(name, behaviour, gpus)

    def run(self, name: str, behaviour: Behaviour, gpus: int = 0) -> str:
        """A started container without labels, whose image is nobody's; its id."""
        self._world.sync()
        image = SimImage.named(f"docker.io/library/{name}", behaviour)
        spec = ContainerSpec(image.pin, (name,), gpus=gpus)
        made = self.runtime.create(name, spec, image, image.digest, {}, {})
        self.runtime.start(made.id)
        return made.id

    def listen(self, port: int, process: str = "nginx") -> None:
        """A program outside any container listens on `port`."""
        self._world.sync()
        self.runtime.host_ports[port] = process

    # images

    def load_image(self, digest: str, *, usable: bool = True, attached: bool = True) -> LocalImage:
        """Have an image, by whatever way. Not `attached`: without the digest it is known by (save and load)."""
        self._world.sync()
        made = self.store.load(digest, usable=usable, attached=attached)
        self._world.record(Happening(self._world.now_s, self.name, "image", self._known[digest].reference))
        return made

    def remove_image(self, digest: str) -> None:
        """Forget an image."""
        self._world.sync()
        self.store.forget(digest)

    def prune_images(self, *, everything: bool = False) -> None:
        """`docker image prune`, or with `everything` the same with `-a`."""
        self._world.sync()
        self.store.prune(self._used(), everything=everything)

    def delete_layer(self, digest: str, number: int = -1) -> None:
        """Delete the files of one layer of an image behind the store's back: it lists the image as before."""
        self._world.sync()
        self.store.deleted.add(self._known[digest].layers_for(self.config.platform)[number].diff_id)

    def inventory(self) -> tuple[LocalImage, ...]:
        """All images with their layers, sizes and times."""
        self._world.sync()
        return self.store.inventory()

    def _used(self) -> set[str]:
        return {item.image_id for item in self.runtime.containers.values()}

    def remove_local(self, image_id: str) -> None:
        """What `docker rmi` does. Raises `NodeError` CONFLICT while a container uses the image."""
        self.store.remove(image_id, self._used())

    def create(
        self, name: str, spec: ContainerSpec, image_id: str, labels: Mapping[str, str], secrets: Mapping[str, str]
    ) -> str:
        """A container from a local image; its id. Raises `NodeError`."""
        for mount in spec.mounts:
            if mount.source in self.missing_paths:
                text = f"invalid mount config: bind source path does not exist: {mount.source}"
                raise NodeError(ErrorKind.REFUSED, text)
        return self.runtime.create(name, spec, self.store.image_of(image_id), image_id, labels, secrets).id

    # reading

    @property
    def boot_id(self) -> str:
        """Another one after each boot."""
        return sha256(f"boot {self._seed} {self.name} {self._boots}").removeprefix("sha256:")[:32]

    def container(self, ref: str) -> Container | None:
        """A container as it is now."""
        self._world.sync()
        found = self.runtime.find(ref)
        return found.fact() if found else None

    def facts(self, paths: Collection[str] = ()) -> NodeFacts:
        """Everything, as it is now, and which of `paths` are not there."""
        self._world.sync()
        config = self.config
        total = config.memory_bytes
        return NodeFacts(
            node=self.name,
            platform=config.platform,
            boot_id=self.boot_id,
            store=config.store,
            docker_version="20.10.24" if config.store == "classic" else "28.5.2",
            docker_root="/var/lib/docker",
            disk_free_bytes=self.free_bytes,
            memory_available_bytes=self.runtime.available_bytes,
            memory_total_bytes=total,
            containers=tuple(item.fact() for item in self.runtime.containers.values()),
            images=self.store.listed(),
            listeners=self._listeners(),
            gpus=(Gpu("NVIDIA GB10", None, "580.95.05"),) * config.gpus,
            missing_paths=tuple(sorted(self.missing_paths & set(paths))),
            has_python=config.has_python,
            defaults=self.store.defaults(self.runtime.containers.values()),
            host=with_processes(self.host, config.gpus, self.runtime.containers.values()),
        )

    def _listeners(self) -> tuple[Listener, ...]:
        outside = [Listener(port, process=process) for port, process in self.runtime.host_ports.items()]
        inside = [
            Listener(port, "*" if host == "0.0.0.0" else host, "engine", item.id)  # noqa: S104 - compared, not bound
            for item in self.runtime.containers.values()
            if item.is_listening
            for host, port in item.behaviour.ports
        ]
        return tuple(sorted(outside + inside, key=lambda item: (item.port, item.address)))
