"""The container engine of one simulated node: what Docker does, as plain state changes at the world's time."""

import re
from collections.abc import Callable, Mapping

from reconciler.core import identity
from reconciler.core.desired import ContainerSpec, SecretRef
from reconciler.core.preflight import preflight_mark
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.testing.behaviours import Moment
from reconciler.testing.containers import SimContainer
from reconciler.testing.history import Happening, What
from reconciler.testing.images import SimImage, sha256
from reconciler.testing.world import World

NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")
KILLED = 137

Accepts = Callable[[str, int], bool]
"""Whether an address and port accept a connection, as seen from this node."""


class Runtime:
    """Containers by id, in the order of their creation. `host_ports` are taken by programs outside containers."""

    def __init__(self, node: str, world: World, seed: int, gpus: int, memory_bytes: int, free_delay_s: float) -> None:
        self.containers: dict[str, SimContainer] = {}
        self.host_ports: dict[int, str] = {}
        self.available_bytes = memory_bytes
        self.accepts: Accepts = lambda address, port: False
        self._node = node
        self._world = world
        self._seed = seed
        self._gpus = gpus
        self._memory_bytes = memory_bytes
        self._free_delay_s = free_delay_s
        self._boot = 0
        self._made = 0

    def find(self, ref: str) -> SimContainer | None:
        """The container of this id or name."""
        found = self.containers.get(ref)
        return found or next((item for item in self.containers.values() if item.name == ref), None)

    def require(self, ref: str) -> SimContainer:
        """The container of this id or name. Raises `NodeError` NOT_FOUND."""
        found = self.find(ref)
        if found is None:
            raise NodeError(ErrorKind.NOT_FOUND, f"No such container: {ref}")
        return found

    def is_running(self, ref: str) -> bool:
        """Whether there is such a container and it runs."""
        found = self.find(ref)
        return found is not None and found.is_running

    def create(
        self,
        name: str,
        spec: ContainerSpec,
        image: SimImage,
        image_id: str,
        labels: Mapping[str, str],
        secrets: Mapping[str, str],
    ) -> SimContainer:
        """A new container, not started. Raises `NodeError` CONFLICT when the name is taken."""
        self._check_name(name)
        self._made += 1
        made = SimContainer(
            id=sha256(f"{self._seed} {self._node} {self._made}").removeprefix("sha256:"),
            name=name,
            spec=spec,
            image_id=image_id,
            labels=dict(labels),
            env=_env(spec, image, secrets),
            entrypoint=spec.entrypoint or image.entrypoint,
            behaviour=image.try_out(spec) if preflight_mark(name, labels) else image.behave(spec),
            created_s=self._world.now_s,
        )
        self.containers[made.id] = made
        self._record("created", made)
        return made

    def start(self, ref: str) -> None:
        """Start, and let its moments come. No effect when it runs."""
        found = self.require(ref)
        if found.is_running:
            return
        if found.spec.gpus > self._gpus:
            found.error = 'could not select device driver "" with capabilities: [[gpu]]'
            raise NodeError(ErrorKind.REFUSED, found.error)
        found.state, found.life, found.started_s = "running", found.life + 1, self._world.now_s
        found.exit_code, found.finished_s, found.oom_killed, found.error = None, None, False, ""
        found.first_line = len(found.logs)
        self._record("started", found)
        for moment in sorted(found.behaviour.moments(), key=lambda item: item.after_s):
            self._world.after(moment.after_s, self._later(found, moment))
        self._world.sync()

    def stop(self, ref: str, grace_s: float) -> None:
        """Ask it to end, and kill it after `grace_s` seconds. Returns at once."""
        found = self.require(ref)
        if not found.is_running:
            return
        takes_s = found.behaviour.stop_s
        if takes_s is None or takes_s > grace_s:
            self._world.after(grace_s, self._later(found, Moment(grace_s, "exit", code=KILLED)))
        else:
            self._world.after(takes_s, self._later(found, Moment(takes_s, "exit", code=found.behaviour.stop_code)))

    def rename(self, ref: str, name: str) -> None:
        """Another name. Raises `NodeError` CONFLICT when it is taken."""
        found = self.require(ref)
        self._check_name(name)
        before, found.name = found.name, name
        self._record("renamed", found, f"was {before}")

    def remove(self, ref: str) -> None:
        """Forget a stopped container. Raises `NodeError` CONFLICT when it runs."""
        found = self.find(ref)
        if found is None:
            return
        if found.is_running:
            raise NodeError(ErrorKind.CONFLICT, f"You cannot remove a running container {found.id}")
        del self.containers[found.id]
        self._record("removed", found)

    def end(self, found: SimContainer, code: int, *, oom: bool = False, error: str = "") -> None:
        """Its process is gone. The memory comes back later."""
        if not found.is_running:
            return
        found.state, found.exit_code, found.oom_killed, found.error = "exited", code, oom, error
        found.finished_s, found.is_listening, found.is_ready = self._world.now_s, False, False
        self._release(found)
        self._record("exited", found, f"code {code}")

    def lose_power(self) -> None:
        """Everything ends at once, and the memory is empty."""
        self._boot += 1
        for found in self.containers.values():
            self.end(found, 255)
        self.available_bytes = self._memory_bytes

    def listening(self, port: int) -> SimContainer | None:
        """The container that listens on `port`."""
        running = (item for item in self.containers.values() if item.is_listening)
        return next((item for item in running if port in {number for _, number in item.behaviour.ports}), None)

    def _check_name(self, name: str) -> None:
        if NAME.fullmatch(name) is None:
            raise NodeError(ErrorKind.REFUSED, f"Invalid container name ({name}), only {NAME.pattern} are allowed")
        holder = self.find(name)
        if holder is not None:
            text = f'The container name "/{name}" is already in use by container "{holder.id}"'
            raise NodeError(ErrorKind.CONFLICT, text)

    def _later(self, found: SimContainer, moment: Moment) -> Callable[[], None]:
        life = found.life

        def happen() -> None:
            if found.is_running and found.life == life:
                self._happen(found, moment)

        return happen

    def _happen(self, found: SimContainer, moment: Moment) -> None:
        if moment.kind == "log":
            found.logs.append(moment.text)
        elif moment.kind == "listen":
            self._listen(found)
        elif moment.kind == "join":
            self._join(found)
        elif moment.kind == "allocate":
            self._allocate(found, found.behaviour.memory_bytes)
        elif moment.kind == "grow":
            self._allocate(found, moment.memory_bytes)
        elif moment.kind == "restart":
            self.end(found, moment.code)
            found.restart_count += 1
            self.start(found.id)
        elif moment.kind == "ready":
            found.is_ready = True
        else:
            self.end(found, moment.code, oom=moment.oom)

    def _listen(self, found: SimContainer) -> None:
        for host, port in found.behaviour.ports:
            if port in self.host_ports or self.listening(port):
                found.logs.append(f"bind to {host}:{port}: Address already in use")
                self.end(found, 1)
                return
        found.is_listening = True

    def _join(self, found: SimContainer) -> None:
        for address, port in found.behaviour.peers:
            if not self.accepts(address, port):
                found.logs.append(f"failed to connect to {address}:{port}")
                self.end(found, 1)
                return

    def _allocate(self, found: SimContainer, count: int) -> None:
        if count > self.available_bytes:
            self.end(found, KILLED, oom=True)
            return
        found.held_bytes += count
        self.available_bytes -= count

    def _release(self, found: SimContainer) -> None:
        held, boot, found.held_bytes = found.held_bytes, self._boot, 0

        def release() -> None:
            if self._boot == boot:
                self.available_bytes += held

        self._world.after(self._free_delay_s, release)

    def _record(self, what: What, found: SimContainer, detail: str = "") -> None:
        owner = identity.owner_of(found.labels)
        now_s, gpus = self._world.now_s, found.spec.gpus
        self._world.record(Happening(now_s, self._node, what, found.name, found.id, owner, gpus, detail))


def _env(spec: ContainerSpec, image: SimImage, secrets: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The spec's, then what only the image has. Values of secrets go no further than into this container."""
    own = {key: secrets[value.secret] if isinstance(value, SecretRef) else value for key, value in spec.env}
    return tuple({**own, **{key: value for key, value in image.env if key not in own}}.items())
