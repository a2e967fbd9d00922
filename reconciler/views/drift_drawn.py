"""The fleet of a drift report drawn: clusters with their nodes as tiles, what runs on each; and charts of the past.

Values for the page's template only: it decides nothing and finds out nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from reconciler.core.drift import ClusterDrawn, Kind, NodeDrawn, Report, worst_first
from reconciler.core.gate import Health
from reconciler.core.status import LaneStatus, RankStatus, Sync, Unwanted
from reconciler.views import drift_words as words

T = TypeVar("T")

TONES = {Health.HEALTHY: "ok", Health.PROGRESSING: "busy", Health.UNKNOWN: "dim"}
"""How a health looks; every other one is bad. The page has a colour and a sign for each tone."""
SYNCS = {Sync.IN_SYNC: "in sync", Sync.OUT_OF_SYNC: "out of sync", Sync.UNKNOWN: "sync unknown"}
OPEN = 12
"""Up to so many clusters are all open; of more, those where something is the matter."""
CHARTED = 30
"""Reports in a chart, the present one included."""
HEIGHT, WIDTH, GAP = 44, 10, 3
"""Of a chart, and of a bar with the gap behind it, in units of the drawing."""


@dataclass(frozen=True)
class Here:
    """A rank on a tile."""

    lane: str
    rank: RankStatus
    tone: str


@dataclass(frozen=True)
class Tile:
    """A node as one of its clusters shows it.

    `elsewhere`: its other clusters, `taken`: those of them that have a rank on it; `unwanted`: lanes of this cluster
    that are on it and that nobody wants; `findings`: ids of what is found about the node itself.
    """

    node: NodeDrawn
    elsewhere: tuple[str, ...]
    taken: tuple[str, ...]
    ranks: tuple[Here, ...]
    unwanted: tuple[str, ...]
    findings: tuple[str, ...]

    @property
    def tone(self) -> str:
        """The worst of what is here."""
        if self.node.reach != "reachable":
            return "dim" if self.node.reach == "off" else "bad"
        tones = {item.tone for item in self.ranks} | ({"warn"} if self.unwanted else set())
        return _worst(tones)


@dataclass(frozen=True)
class LaneDrawn:
    """A lane with its tone. `findings`: ids of what is found about it, the worst first."""

    status: LaneStatus
    tone: str
    sync: str
    findings: tuple[str, ...]


@dataclass(frozen=True)
class UnwantedDrawn:
    """A lane that is there and that nobody wants. `findings`: as of a lane."""

    status: Unwanted
    lane: str
    findings: tuple[str, ...]


@dataclass(frozen=True)
class Card:
    """A cluster: its lanes, those that nobody wants, its nodes; whether it is shown unfolded."""

    name: str
    lanes: tuple[LaneDrawn, ...]
    unwanted: tuple[UnwantedDrawn, ...]
    tiles: tuple[Tile, ...]
    is_open: bool

    @property
    def is_used(self) -> bool:
        """Whether a lane is, or is to be, on it."""
        return bool(self.lanes or self.unwanted)

    @property
    def tone(self) -> str:
        """The worst of its lanes, or of its nodes where it has no lane."""
        tones = {item.tone for item in self.lanes or self.tiles} | ({"warn"} if self.unwanted else set())
        return _worst(tones)


@dataclass(frozen=True)
class Chart:
    """One figure over the last reports, the oldest first; the last one is of now. `path`, `last`: SVG path data."""

    name: str
    figures: tuple[int, ...]
    path: str
    last: str
    width: int


def cards(report: Report) -> tuple[Card, ...]:
    """Every cluster in the spec's order, and what none of them has; those without a lane come last."""
    drawn = tuple(_clusters(report))
    seen = _Seen.of(report, drawn)
    made = [_card(cluster, seen, is_few=len(drawn) <= OPEN) for cluster in drawn]
    return tuple(sorted(made, key=lambda card: not card.is_used))


@dataclass(frozen=True)
class _Seen:
    """What a report knows, by what it is asked for: nodes by name, clusters by node, lanes by cluster, finding ids."""

    nodes: Mapping[str, NodeDrawn]
    homes: Mapping[str, list[str]]
    taken: Mapping[str, list[str]]
    lanes: Mapping[str, list[LaneStatus]]
    unwanted: Mapping[str, list[Unwanted]]
    found: Mapping[str, list[str]]

    @classmethod
    def of(cls, report: Report, clusters: Sequence[ClusterDrawn]) -> Self:
        """The same report, sorted."""
        lanes, status = report.status.lanes, report.status
        return cls(
            nodes={node.name: node for node in report.nodes},
            homes=_sorted((name, cluster.name) for cluster in clusters for name in cluster.nodes),
            taken=_sorted((rank.node, lane.cluster) for lane in lanes for rank in lane.ranks),
            lanes=_sorted((lane.cluster, lane) for lane in lanes),
            unwanted=_sorted((item.gang.partition("/")[0], item) for item in status.unwanted),
            found=_sorted(("/".join(it.address.split("/")[:2]), it.id) for it in worst_first(report.findings)),
        )


def _sorted(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def _card(cluster: ClusterDrawn, seen: _Seen, *, is_few: bool) -> Card:
    """One without a lane is unfolded only for nodes that are drawn nowhere else."""
    lanes = tuple(
        LaneDrawn(lane, tone_of(lane.health, lane.sync), SYNCS[lane.sync], tuple(seen.found.get(lane.gang, ())))
        for lane in seen.lanes.get(cluster.name, ())
    )
    unwanted = tuple(
        UnwantedDrawn(item, item.gang.partition("/")[2], tuple(seen.found.get(item.gang, ())))
        for item in seen.unwanted.get(cluster.name, ())
    )
    tiles = tuple(_tile(name, cluster.name, seen) for name in cluster.nodes)
    if lanes or unwanted:
        is_open = is_few or bool(unwanted) or any(_is_matter(lanes, tiles))
    else:
        is_open = any(not tile.elsewhere and (is_few or tile.tone == "bad") for tile in tiles)
    return Card(cluster.name, lanes, unwanted, tiles, is_open)


def _tile(name: str, cluster: str, seen: _Seen) -> Tile:
    return Tile(
        node=seen.nodes.get(name, NodeDrawn(name, "unreachable")),
        elsewhere=tuple(home for home in seen.homes[name] if home != cluster),
        taken=tuple(dict.fromkeys(home for home in seen.taken.get(name, ()) if home != cluster)),
        ranks=tuple(_ranks(seen.lanes.get(cluster, ()), name)),
        unwanted=tuple(it.gang.partition("/")[2] for it in seen.unwanted.get(cluster, ()) if name in it.nodes),
        findings=tuple(seen.found.get(name, ())),
    )


def _worst(tones: Collection[str]) -> str:
    return next((tone for tone in ("bad", "warn", "dim", "busy", "ok") if tone in tones), "idle")


def tone_of(health: Health, sync: Sync) -> str:
    """Healthy, but not as wanted, is a warning, not fine."""
    tone = TONES.get(health, "bad")
    return "warn" if tone == "ok" and sync is Sync.OUT_OF_SYNC else tone


def _is_matter(lanes: Iterable[LaneDrawn], tiles: Iterable[Tile]) -> Iterator[bool]:
    yield from (lane.tone != "ok" for lane in lanes)
    yield from (tile.node.reach == "unreachable" for tile in tiles)


def _clusters(report: Report) -> Iterator[ClusterDrawn]:
    yield from report.clusters
    known = {cluster.name for cluster in report.clusters}
    there = [(lane.cluster, tuple(dict.fromkeys(rank.node for rank in lane.ranks))) for lane in report.status.lanes]
    there += [(item.gang.partition("/")[0], item.nodes) for item in report.status.unwanted]
    for name, nodes in there:
        if name not in known:
            known.add(name)
            yield ClusterDrawn(name, nodes)
    at_home = {name for cluster in report.clusters for name in cluster.nodes}
    if alone := tuple(node.name for node in report.nodes if node.name not in at_home):
        yield ClusterDrawn("in no cluster", alone)


def _ranks(lanes: Iterable[LaneStatus], node: str) -> Iterator[Here]:
    for lane in lanes:
        yield from (Here(lane.lane, rank, tone_of(rank.health, rank.sync)) for rank in lane.ranks if rank.node == node)


def moments(report: Report) -> tuple[str, ...]:
    """When the charted reports were made, the oldest first."""
    past = report.history[-(CHARTED - 1) :]
    return (*(words.utc(item.at_s) for item in past), words.utc(report.at_s))


def charts(report: Report) -> tuple[Chart, ...]:
    """A chart for each class, and one for nodes that did not answer."""
    past, now = report.history[-(CHARTED - 1) :], words.by_kind(report.findings)
    found = [_chart(kind, [*(item.counts.get(kind, 0) for item in past), now[kind]]) for kind in Kind]
    lost = [*(item.unreachable for item in past), len(words.unreachable(report))]
    return (*found, _chart("unreachable nodes", lost))


def _chart(name: str, figures: Sequence[int]) -> Chart:
    """Bars from the ground, the last one at the right; zero is a line, so that a calm report is seen to be there."""
    top = max(*figures, 1)
    bars = []
    for number, figure in enumerate(figures, CHARTED - len(figures)):
        height = max(round(figure / top * (HEIGHT - 2)), 5 if figure else 1)
        bars.append(f"M{number * (WIDTH + GAP)} {HEIGHT}v-{height}h{WIDTH}v{height}z")
    return Chart(name, tuple(figures), "".join(bars[:-1]), bars[-1], CHARTED * (WIDTH + GAP) - GAP)
