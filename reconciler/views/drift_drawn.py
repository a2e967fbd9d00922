"""The fleet of a drift report drawn: clusters with their nodes as tiles, what runs on each; and charts of the past.

Values for the page's template only: it decides nothing and finds out nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from reconciler.core.drift import ClusterDrawn, Kind, NodeDrawn, Report, worst_first
from reconciler.core.gate import Health
from reconciler.core.status import LaneStatus, RankStatus, Sync
from reconciler.views import drift_words as words

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
    """A node as one of its clusters shows it. `elsewhere`: its other clusters; `findings`: ids of what is found
    about the node itself."""

    node: NodeDrawn
    elsewhere: tuple[str, ...]
    ranks: tuple[Here, ...]
    findings: tuple[str, ...]

    @property
    def tone(self) -> str:
        """The worst of what is here."""
        if self.node.reach != "reachable":
            return "dim" if self.node.reach == "off" else "bad"
        tones = {item.tone for item in self.ranks}
        return next((tone for tone in ("bad", "warn", "dim", "busy", "ok") if tone in tones), "idle")


@dataclass(frozen=True)
class LaneDrawn:
    """A lane with its tone. `findings`: ids of what is found about it, the worst first."""

    status: LaneStatus
    tone: str
    sync: str
    findings: tuple[str, ...]


@dataclass(frozen=True)
class Card:
    """A cluster: its lanes, its nodes; whether it is shown unfolded."""

    name: str
    lanes: tuple[LaneDrawn, ...]
    tiles: tuple[Tile, ...]
    is_open: bool

    @property
    def tone(self) -> str:
        """The worst of its lanes, or of its nodes where it has no lane."""
        tones = {item.tone for item in self.lanes or self.tiles}
        return next((tone for tone in ("bad", "warn", "dim", "busy", "ok") if tone in tones), "idle")


@dataclass(frozen=True)
class Chart:
    """One figure over the last reports, the oldest first; the last one is of now. `path`, `last`: SVG path data."""

    name: str
    figures: tuple[int, ...]
    path: str
    last: str
    width: int


def cards(report: Report) -> tuple[Card, ...]:
    """Every cluster in the spec's order, then what none of them has."""
    nodes, found = {node.name: node for node in report.nodes}, _found(report)
    drawn = tuple(_clusters(report))
    homes: dict[str, list[str]] = {}
    for cluster in drawn:
        for name in cluster.nodes:
            homes.setdefault(name, []).append(cluster.name)
    lanes: dict[str, list[LaneStatus]] = {}
    for lane in report.status.lanes:
        lanes.setdefault(lane.cluster, []).append(lane)
    made = []
    for cluster in drawn:
        here = lanes.get(cluster.name, [])
        tiles = tuple(
            Tile(
                nodes.get(name, NodeDrawn(name, "unreachable")),
                tuple(home for home in homes[name] if home != cluster.name),
                tuple(_ranks(here, name)),
                tuple(found.get(name, ())),
            )
            for name in cluster.nodes
        )
        shown = tuple(
            LaneDrawn(lane, tone_of(lane.health, lane.sync), SYNCS[lane.sync], tuple(found.get(lane.gang, ())))
            for lane in here
        )
        made.append(Card(cluster.name, shown, tiles, len(drawn) <= OPEN or any(_is_matter(shown, tiles))))
    return tuple(made)


def tone_of(health: Health, sync: Sync) -> str:
    """Healthy, but not as wanted, is a warning, not fine."""
    tone = TONES.get(health, "bad")
    return "warn" if tone == "ok" and sync is Sync.OUT_OF_SYNC else tone


def _found(report: Report) -> dict[str, list[str]]:
    """The ids of findings by "cluster/lane", or by node, the worst first."""
    found: dict[str, list[str]] = {}
    for item in worst_first(report.findings):
        found.setdefault("/".join(item.address.split("/")[:2]), []).append(item.id)
    return found


def _is_matter(lanes: Iterable[LaneDrawn], tiles: Iterable[Tile]) -> Iterator[bool]:
    yield from (lane.tone != "ok" for lane in lanes)
    yield from (tile.node.reach == "unreachable" for tile in tiles)


def _clusters(report: Report) -> Iterator[ClusterDrawn]:
    yield from report.clusters
    known = {cluster.name for cluster in report.clusters}
    for lane in report.status.lanes:
        if lane.cluster not in known:
            known.add(lane.cluster)
            yield ClusterDrawn(lane.cluster, tuple(dict.fromkeys(rank.node for rank in lane.ranks)))
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
