"""Reading many nodes: what goes wrong with one is a fact about that one."""

import asyncio
import time
from collections.abc import Collection
from typing import Any, cast

import pytest

from reconciler.core.observed import NodeFacts, Unknown, UnknownKind
from reconciler.nodes.errors import ErrorKind, NodeError, NodeUnknownError
from reconciler.nodes.observation import observe_all
from reconciler.nodes.protocols import Fleet
from reconciler.threads import in_thread


class Scripted:
    """A fleet whose nodes do what their names say."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    async def connect(self, node: str, deadline_s: float) -> Any:
        if node == "stranger":
            raise NodeUnknownError(Unknown(node, UnknownKind.HOST_KEY_UNKNOWN, "unknown key", "add it"))
        return Scripted(node)

    @property
    def observer(self) -> "Scripted":
        return self

    async def observe(self, paths: Collection[str] = ()) -> NodeFacts:
        if self.name == "silent":
            await asyncio.sleep(60)
        if self.name == "broken":
            raise NodeError(ErrorKind.REFUSED, "nonsense")
        if self.name == "cut":
            raise NodeError(ErrorKind.LOST, "gone")
        if self.name == "strange":
            raise TypeError("string indices must be integers")
        return NodeFacts(self.name, "linux/arm64", "b", "classic", "29", "/d", None, None, None)


async def test_every_node_is_known_or_unknown_with_a_reason() -> None:
    names = ["good", "stranger", "silent", "broken", "cut", "strange", "good"]
    since = time.monotonic()
    found = await observe_all(cast("Fleet", Scripted()), names, deadline_s=0.2)
    assert time.monotonic() - since < 2
    assert list(found) == ["good", "stranger", "silent", "broken", "cut", "strange"]
    kinds = {name: item.kind for name, item in found.items() if isinstance(item, Unknown)}
    assert kinds == {
        "stranger": UnknownKind.HOST_KEY_UNKNOWN,
        "silent": UnknownKind.TIMEOUT,
        "broken": UnknownKind.BAD_REPLY,
        "cut": UnknownKind.LOST,
        "strange": UnknownKind.BAD_REPLY,
    }


async def test_a_thread_gives_its_value_or_its_error() -> None:
    assert await in_thread(lambda: 42) == 42

    def fail() -> None:
        raise LookupError("here")

    with pytest.raises(LookupError, match="here"):
        await in_thread(fail)


async def test_a_cancelled_call_does_not_wait_for_its_thread() -> None:
    since = time.monotonic()
    try:
        async with asyncio.timeout(0.05):
            await in_thread(lambda: time.sleep(5))
    except TimeoutError:
        pass
    assert time.monotonic() - since < 1
