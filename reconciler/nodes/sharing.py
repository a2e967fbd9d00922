"""Things that several use at the same time: made by the first, closed by the last."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class _Place(Generic[T]):
    change: asyncio.Condition = field(default_factory=asyncio.Condition)
    made: AsyncExitStack = field(default_factory=AsyncExitStack)
    things: list[T] = field(default_factory=list)
    kind: Hashable = None
    users: int = 0


class Shared(Generic[T]):
    """At each place there is one thing at a time. Who wants one of another kind there waits until it is free."""

    def __init__(self) -> None:
        self._places: defaultdict[Hashable, _Place[T]] = defaultdict(_Place)

    def has(self, at: Hashable) -> bool:
        """Whether there is one in use at this place."""
        return bool(self._places[at].users)

    @asynccontextmanager
    async def use(
        self, at: Hashable, kind: Hashable, make: Callable[[], AbstractAsyncContextManager[T]]
    ) -> AsyncIterator[T]:
        """The one at this place inside the block; raises what `make` raises."""
        place = self._places[at]
        async with place.change:
            await place.change.wait_for(lambda: not place.users or place.kind == kind)
            if not place.users:
                place.things = [await place.made.enter_async_context(make())]
                place.kind = kind
            place.users += 1
        try:
            yield place.things[0]
        finally:
            await asyncio.shield(_leave(place))


async def _leave(place: _Place[T]) -> None:
    async with place.change:
        place.users -= 1
        try:
            if not place.users:
                await place.made.aclose()
        finally:
            place.change.notify_all()
