"""What moved in a pull, and by which ways: for whoever watches, and for the record."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from reconciler.core.figures import size
from reconciler.nodes.protocols import Progress

OnProgress = Callable[[Progress], None]


@dataclass
class Moved:
    """Passes progress on, and remembers what moved and by which ways. `relayed`: how a relay is told of here."""

    on_progress: OnProgress
    relayed: str = ""
    bytes: int = 0
    ways: dict[str, None] = field(default_factory=dict)

    def __call__(self, news: Progress) -> None:
        """Take news of the pull, and pass them on."""
        self.bytes = max(self.bytes, news.done_bytes)
        via = (self.relayed or news.via) if news.via else ""
        if via and news.done_bytes:
            self.ways[via] = None
        self.on_progress(replace(news, doing=", ".join(word for word in (news.doing, via) if word)))

    def told(self) -> str:
        """ "1.2 GiB, from dgx1"; empty when no bytes were told."""
        return ", ".join((size(self.bytes), *self.ways)) if self.bytes else ""
