"""The last resort, archives of other nodes: who is asked, and what is told when nobody helps."""

import asyncio
from typing import Any, cast

import pytest

from reconciler.core.desired import ImagePin
from reconciler.core.lock import PUBLISHED
from reconciler.core.observed import LocalImage, SourceMissing
from reconciler.nodes import save_load
from reconciler.nodes.bringing import Bringing
from reconciler.nodes.distribution import Holder
from reconciler.nodes.errors import ErrorKind, NodeError

DIGEST = "sha256:" + "a" * 64
IMAGE = LocalImage(DIGEST, (DIGEST,))
PIN = ImagePin(f"{PUBLISHED}/mine:v1@{DIGEST}", DIGEST, "digest", PUBLISHED, "mine")


class PlayedDistribution:
    """Nobody but these nodes has the image."""

    from_nodes: frozenset[str] = frozenset()

    def __init__(self, *holders: Holder) -> None:
        self._holders = holders

    async def described(self, pin: ImagePin, node: str) -> SourceMissing:
        return SourceMissing(pin.digest, "it is in no vault")

    async def holders(self, pin: ImagePin, but: str) -> tuple[Holder, ...]:
        return self._holders

    def ssh(self, node: str) -> str:
        return node

    def turn(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(1)


class Brought(Bringing):
    """To a node that has it as soon as an archive was loaded there."""

    loaded = False

    @property
    def node(self) -> str:
        return "dgx9"

    async def _images(self, pulled: str | None = None) -> tuple[LocalImage, ...]:
        return (IMAGE,) if self.loaded else ()


def bringing(*holders: Holder) -> Brought:
    nobody = cast("Any", None)
    distribution = cast("Any", PlayedDistribution(*holders))
    return Brought(nobody, nobody, nobody, distribution, PIN, "linux/arm64", lambda news: None, None)


def holder(node: str, *, can_save: bool = True) -> Holder:
    return Holder(node, IMAGE, "mine:v1", can_save)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nodes asked for their archive: dgx1 breaks off, dgx2 fills the disk, all others have another image."""
    found: list[str] = []
    failures = {"dgx1": (ErrorKind.REFUSED, "dgx1 broke off"), "dgx2": (ErrorKind.NO_SPACE, "the disk is full")}

    async def copy(source: str, target: str, reference: str, on_bytes: save_load.OnBytes) -> None:
        found.append(source)
        if source in failures:
            raise NodeError(*failures[source])

    monkeypatch.setattr(save_load, "copy", copy)
    return found


async def test_a_node_that_fails_gives_way_to_the_next(asked: list[str]) -> None:
    subject = bringing(holder("dgx1"), holder("dgx3"))
    subject.loaded = True
    assert IMAGE == await subject.run()
    assert ["dgx1", "dgx3"] == asked


async def test_a_node_that_cannot_save_it_is_not_asked(asked: list[str]) -> None:
    with pytest.raises(NodeError, match=r"it is in no vault$"):
        await bringing(holder("dgx3", can_save=False)).run()
    assert [] == asked


async def test_when_nobody_helps_the_first_reason_is_told_with_the_nodes_own(asked: list[str]) -> None:
    with pytest.raises(NodeError) as told:
        await bringing(holder("dgx1"), holder("dgx3")).run()
    assert told.value.message.endswith("it is in no vault; dgx1 broke off")
    assert ErrorKind.NOT_FOUND is told.value.kind
    expected = (
        f"`fleet pin {PIN.reference} --from NODE --publish`, on a node that has it, brings it back into the vault"
    )
    assert expected == told.value.hint


async def test_a_full_disk_ends_it_at_once(asked: list[str]) -> None:
    with pytest.raises(NodeError) as told:
        await bringing(holder("dgx2"), holder("dgx3")).run()
    assert (ErrorKind.NO_SPACE, ["dgx2"]) == (told.value.kind, asked)
