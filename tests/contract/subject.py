"""What the contract is put to, and how its scenes are played."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from reconciler.core import identity
from reconciler.core.desired import ContainerSpec, Gang, HealthGate, ImagePin, RankSpec
from reconciler.core.observed import Container
from reconciler.nodes.protocols import Fleet, Node, Progress

Trouble = Literal["link cut", "power off", "docker down", "host key changed", "sessions dropped"]

NAME = "fleet-tiny-r0-v1"
MODELS = "/srv/models"
NOWHERE = "/no/such/folder"
SHELF = f"{MODELS}/contract"
"""Where tests put their models."""

TIGHT = f"{SHELF}/tight"
"""Where they are on a disk that is almost full, once it is."""

Content = bytes | Mapping[str, bytes]


@dataclass
class Scene:
    """One played scene: an open fleet, and the node it is about."""

    fleet: Fleet
    node: Node
    image: ImagePin
    image_id: str

    async def create(self, command: tuple[str, ...], name: str = NAME, labels: dict[str, str] | None = None) -> str:
        """A container of the usual image; its id."""
        return await self.node.containers.create(name, self.spec(command), self.image_id, labels or {}, {})

    async def run(self, command: tuple[str, ...], name: str = NAME) -> str:
        """A started container; its id."""
        made = await self.create(command, name)
        await self.node.containers.start(made)
        return made

    def spec(self, command: tuple[str, ...]) -> ContainerSpec:
        return ContainerSpec(self.image, command)

    async def found(self, ref: str) -> Container:
        """A container that is there."""
        found = await self.node.containers.inspect(ref)
        assert found is not None
        return found

    async def ended(self, ref: str) -> Container:
        """A container, once it has ended."""
        return await self.eventually(ref, lambda container: container.state == "exited")

    async def eventually(self, ref: str, is_so: Callable[[Container], bool], within_s: float = 20.0) -> Container:
        async with asyncio.timeout(within_s):
            while not is_so(found := await self.found(ref)):
                await asyncio.sleep(0.1)
        return found


Check = Callable[[Scene], Awaitable[None]]


class Subject(Protocol):
    """A fleet under test. `name`: the node of the wanted image store; `missing` is pinned well and exists nowhere.

    `neighbour`: another node of the fleet, and where the first reaches it.
    """

    name: str
    neighbour: str
    neighbour_address: str
    store: str
    platform: str
    address: str
    image: ImagePin
    engine_image: ImagePin
    foreign_image: ImagePin
    missing: ImagePin

    def play(self, check: Callable[[Fleet], Coroutine[Any, Any, None]]) -> None:
        """Run `check` with a new fleet, in a loop of its own, and close the fleet."""
        ...

    def play_rivals(self, check: Callable[[Fleet, Fleet], Coroutine[Any, Any, None]]) -> None:
        """Run `check` with the fleets of two controllers that share nothing but the nodes, and close them."""
        ...

    def silence(self, fleet: Fleet) -> None:
        """Nothing that this controller sends comes through, and it does not notice."""
        ...

    def unsilence(self, fleet: Fleet) -> None:
        """What it sends comes through again."""
        ...

    def forget_images(self) -> None:
        """Take every image off the node."""
        ...

    def put_model(self, node: str, path: str, content: Content) -> None:
        """Have a model below `SHELF` on a node: a file, or a folder of files."""
        ...

    def take_model(self, node: str, path: str) -> None:
        """Have nothing there."""
        ...

    def fill_disk(self, leave_bytes: int) -> None:
        """The disk that `TIGHT` is on has only so much room left on the node."""
        ...

    def power_off_neighbour(self) -> None:
        """It dies at once."""
        ...

    def trouble(self, what: Trouble) -> None:
        """Do this to the node."""
        ...

    def mend(self) -> None:
        """Undo every trouble; what was off is on."""
        ...


@dataclass
class Told:
    """Progress that was told."""

    steps: list[Progress] = field(default_factory=list)

    def __call__(self, progress: Progress) -> None:
        self.steps.append(progress)


def scene(check: Callable[[Scene, Subject], Awaitable[None]]) -> Callable[[Subject], None]:
    """A test of a scene on the subject's node, with the usual image staged."""

    def test(subject: Subject) -> None:
        async def play(fleet: Fleet) -> None:
            node = await fleet.connect(subject.name, 10)
            image = await node.images.stage(subject.image, subject.platform, Told())
            await check(Scene(fleet, node, subject.image, image.id), subject)

        subject.play(play)

    return named_after(check, test)


def fleet_scene(check: Callable[[Fleet, Subject], Awaitable[None]]) -> Callable[[Subject], None]:
    """A test of a whole fleet, with nothing prepared."""

    def test(subject: Subject) -> None:
        async def play(fleet: Fleet) -> None:
            await check(fleet, subject)

        subject.play(play)

    return named_after(check, test)


def rivals_scene(check: Callable[[Fleet, Fleet, Subject], Awaitable[None]]) -> Callable[[Subject], None]:
    """A test of two controllers."""

    def test(subject: Subject) -> None:
        async def play(ours: Fleet, theirs: Fleet) -> None:
            await check(ours, theirs, subject)

        subject.play_rivals(play)

    return named_after(check, test)


def named_after(check: Callable[..., object], test: Callable[[Subject], None]) -> Callable[[Subject], None]:
    test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
    return test


def a_rank(spec: ContainerSpec, node: str) -> tuple[Gang, RankSpec]:
    """A gang of one rank that runs `spec`."""
    rank = RankSpec(0, node, "head", "10.0.0.1", spec, (30000,), stop_grace_s=7.0)
    gate = HealthGate("10.0.0.1", 30000)
    return Gang("tiny", "solo", "custom", (rank,), ((0,),), gate, "http://10.0.0.1:30000/v1"), rank


def labels_of(spec: ContainerSpec, node: str, image_id: str, revision: int = 1) -> dict[str, str]:
    """The labels of that rank."""
    gang, rank = a_rank(spec, node)
    return identity.labels("lab", gang, rank, revision, "op-1", image_id)
