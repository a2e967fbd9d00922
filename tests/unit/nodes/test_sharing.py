"""What several use at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from reconciler.nodes.sharing import Shared


class Maker:
    """Counts what it made and what of that is there."""

    def __init__(self) -> None:
        self.made = self.there = 0

    @asynccontextmanager
    async def make(self) -> AsyncIterator[int]:
        self.made += 1
        self.there += 1
        try:
            yield self.made
        finally:
            self.there -= 1


async def test_the_first_makes_it_and_the_last_ends_it() -> None:
    maker, shared = Maker(), Shared[int]()
    first, second = shared.use("port", 1, maker.make), shared.use("port", 1, maker.make)
    assert 1 == await first.__aenter__()
    assert 1 == await second.__aenter__()
    await first.__aexit__(None, None, None)
    assert (1, True) == (maker.there, shared.has("port"))
    await second.__aexit__(None, None, None)
    assert (0, False) == (maker.there, shared.has("port"))
    async with shared.use("port", 1, maker.make) as again:
        assert 2 == again


async def test_another_kind_waits_and_another_place_does_not() -> None:
    maker, shared = Maker(), Shared[int]()

    async def use(place: str, kind: int) -> int:
        async with shared.use(place, kind, maker.make) as thing:
            return thing

    async with shared.use("port", 1, maker.make):
        waiting = asyncio.create_task(use("port", 2))
        assert 2 == await use("another", 2)
        assert not waiting.done()
    assert 3 == await waiting


async def test_who_cannot_make_it_leaves_the_place_free() -> None:
    maker, shared = Maker(), Shared[int]()

    @asynccontextmanager
    async def broken() -> AsyncIterator[int]:
        raise OSError
        yield 0

    with pytest.raises(OSError):
        async with shared.use("port", 1, broken):
            pass
    assert not shared.has("port")
    async with shared.use("port", 2, maker.make) as thing:
        assert 1 == thing


async def test_being_cancelled_gives_it_back() -> None:
    maker, shared = Maker(), Shared[int]()

    async def hold() -> None:
        async with shared.use("port", 1, maker.make):
            await asyncio.sleep(60)

    holding = asyncio.create_task(hold())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert 1 == maker.there
    holding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holding
    await asyncio.sleep(0)
    assert (0, False) == (maker.there, shared.has("port"))
