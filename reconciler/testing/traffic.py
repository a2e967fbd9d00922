"""Which bytes of images went over which link of the simulated fleet."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

Part = tuple[str, int]
"""A layer's digest and which part of it."""


class Traffic:
    """Bytes by link. A seed fetches each part once from the controller and keeps it while anybody still asks."""

    def __init__(self) -> None:
        self.from_controller = 0
        self.received: Counter[str] = Counter()
        self.relayed: Counter[str] = Counter()
        self._spools: dict[str, set[Part]] = {}
        self._users: Counter[str] = Counter()

    @contextmanager
    def using(self, seed: str | None) -> Iterator[None]:
        """While a pull goes by this seed."""
        if seed is None:
            yield
            return
        self._users[seed] += 1
        try:
            yield
        finally:
            self._users[seed] -= 1
            if not self._users[seed]:
                self._spools.pop(seed, None)

    def direct(self, node: str, count: int) -> None:
        """From the controller to the node."""
        self.received[node] += count
        self.from_controller += count

    def passed_on(self, node: str, count: int, part: Part, seed: str, *, holds: bool) -> None:
        """By the seed, which may be the node itself. `holds`: the seed has the image already."""
        self.received[node] += count
        if node != seed:
            self.relayed[seed] += count
        spool = self._spools.setdefault(seed, set())
        if not holds and part not in spool:
            spool.add(part)
            self.from_controller += count
