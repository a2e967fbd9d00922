"""All images that one plan brings: which node lacks what, who passes it on, and what it takes of time and disk.

A relay by a node of the gang lets each byte leave the controller once. The star (each node gets its own from the
controller) is for where that cannot be, or is no gain: N nodes that fetch C bytes each and unpack them to U are not
held up by the controller's uplink B while N*C/B <= U/r, since a node unpacks no faster than r.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from reconciler.core.classify import GangView
from reconciler.core.desired import Gang, ImagePin, TransferSettings
from reconciler.core.missing import Missing, missing_on
from reconciler.core.observed import NodeFacts, Observed, SourceImage
from reconciler.core.transfer import Transfer


@dataclass(frozen=True)
class Want:
    """An image that a node has to get for its rank of a gang. `missing` is None when nothing is known of it."""

    gang: Gang
    facts: NodeFacts
    pin: ImagePin
    missing: Missing | None

    @property
    def bytes(self) -> int:
        """What has to be fetched, as far as it is known."""
        return self.missing.compressed_bytes if self.missing else 0

    @property
    def unpacked_bytes(self) -> int:
        """What that unpacks to."""
        return self.missing.unpacked_bytes if self.missing else 0


@dataclass(frozen=True)
class Group:
    """The nodes of one gang that lack the same image. `seed` is None for the star; `holds`: the seed has it already."""

    wants: tuple[Want, ...]
    seed: str | None = None
    holds: bool = False

    @cached_property
    def biggest(self) -> int:
        """The most that one of the nodes has to fetch, in bytes: what a relay has to have."""
        return max(want.bytes for want in self.wants)

    @property
    def sent_bytes(self) -> int:
        """What leaves the controller."""
        if self.holds:
            return 0
        return self.biggest if self.seed else sum(want.bytes for want in self.wants)

    @property
    def streams(self) -> int:
        """How many share the controller's uplink. Nodes that get the same by a seed are one."""
        if self.holds:
            return 0
        sizes = [want.bytes for want in self.wants if want.bytes]
        return len(set(sizes)) if self.seed else len(sizes)


@dataclass(frozen=True)
class Staging:
    """The images of one plan, and how they get to their nodes."""

    wants: tuple[Want, ...]
    settings: TransferSettings
    observed: Observed

    @classmethod
    def of(cls, views: Iterable[GangView], settings: TransferSettings, observed: Observed) -> "Staging":
        """What has to be brought for these gangs: to each rank that has no fitting container, nor its image."""
        found = [
            Want(view.gang, rank.facts, image, missing_on(rank.facts, image, observed))
            for view in sorted(views, key=lambda item: item.gang.address)
            for rank in view.ranks
            if rank.fit is None and rank.facts.image_for(image := rank.rank.container.image) is None
        ]
        return cls(tuple(found), settings, observed)

    @cached_property
    def _by_node(self) -> Mapping[str, Mapping[str, Want]]:
        """By node and digest: what two lanes want is brought once."""
        found: dict[str, dict[str, Want]] = {}
        for want in self.wants:
            found.setdefault(want.facts.node, {})[want.pin.digest] = want
        return found

    def on(self, node: str) -> tuple[Want, ...]:
        """The images that the node gets, each once."""
        return tuple(self._by_node.get(node, {}).values())

    def peak_bytes(self, node: str) -> int:
        """What the node needs of its disk while all of its images come."""
        return sum(want.missing.peak_bytes for want in self.on(node) if want.missing)

    def kept_bytes(self, node: str) -> int:
        """What the node's disk has less of afterwards."""
        return sum(want.missing.kept_bytes(want.facts.store) for want in self.on(node) if want.missing)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Star or relay, for each gang and image."""
        parts: dict[tuple[str, str], list[Want]] = {}
        for want in self.wants:
            parts.setdefault((want.gang.address, want.pin.digest), []).append(want)
        spools: dict[str, int] = {}
        return tuple(self._group(tuple(wants), spools) for wants in parts.values())

    def _group(self, wants: tuple[Want, ...], spools: dict[str, int]) -> Group:
        """`spools`: what the seeds chosen so far have to keep while they pass it on, by node."""
        group = Group(wants)
        if not self.settings.relay or group.biggest == 0:
            return group
        holder = self._holder(wants[0])
        if holder is not None:
            return Group(wants, holder, holds=True)
        seed = self._seed(group, spools) if self._is_worth_it(group) else None
        if seed is not None:
            spools[seed] = spools.get(seed, 0) + group.biggest
        return Group(wants, seed)

    def _holder(self, want: Want) -> str | None:
        """A node of the gang that has all of the image's bytes, and can pass them on: the controller sends nothing."""
        for node in want.gang.nodes:
            facts = self.observed.facts(node)
            image = facts.image_for(want.pin) if facts else None
            if facts and image and facts.store == "containerd" and image.complete and facts.has_python:
                return node
        return None

    def _is_worth_it(self, group: Group) -> bool:
        """Whether the star would be held up by the controller's uplink."""
        if sum(want.bytes > 0 for want in group.wants) < 2:
            return False
        wire_s = group.sent_bytes / self.settings.uplink_bytes_s
        return wire_s > max(want.unpacked_bytes for want in group.wants) / self.settings.unpack_bytes_s

    def _seed(self, group: Group, spools: Mapping[str, int]) -> str | None:
        """The first node that lacks it and has a python3, and the disk to keep what it passes on."""
        for want in group.wants:
            node, free = want.facts.node, want.facts.disk_free_bytes
            need = self.peak_bytes(node) + spools.get(node, 0) + group.biggest
            if want.bytes and want.facts.has_python and (free is None or need <= free):
                return node
        return None

    @cached_property
    def transfers(self) -> tuple[Transfer, ...]:
        """What the plan says of each pull, by gang and rank."""
        return tuple(self._transfer(want, group) for group in self.groups for want in group.wants)

    def lacks(self, gang: Gang) -> bool:
        """Whether something is brought for the gang."""
        return gang.address in self._lacking

    @cached_property
    def _lacking(self) -> frozenset[str]:
        return frozenset(want.gang.address for want in self.wants)

    def transfer(self, gang: str, node: str) -> Transfer | None:
        """What is brought to this node for this gang, None when nothing is."""
        return self._transfers_by_rank.get((gang, node))

    @cached_property
    def _transfers_by_rank(self) -> Mapping[tuple[str, str], Transfer]:
        return {(item.gang, item.node): item for item in self.transfers}

    def _transfer(self, want: Want, group: Group) -> Transfer:
        source, lacks = self.observed.sources.get(want.pin.digest), want.missing
        free = want.facts.disk_free_bytes
        is_known = free is not None and lacks is not None
        return Transfer(
            gang=want.gang.address,
            node=want.facts.node,
            image=want.pin.reference,
            origin=source.origin if isinstance(source, SourceImage) else "",
            missing_bytes=lacks.compressed_bytes if lacks else None,
            unpacked_bytes=lacks.unpacked_bytes if lacks else None,
            layers_shared=lacks.layers_shared if lacks else 0,
            layers=lacks.layers if lacks else 0,
            disk_free_bytes=free,
            disk_free_after_bytes=max((free or 0) - self.kept_bytes(want.facts.node), 0) if is_known else None,
            seconds=self._seconds(want, group) if lacks else None,
            seed=group.seed if want.bytes else None,
            seed_holds=bool(want.bytes) and group.holds,
        )

    @cached_property
    def _uplink(self) -> tuple[int, int]:
        """What leaves the controller, in bytes, and in how many streams."""
        return sum(item.sent_bytes for item in self.groups), sum(item.streams for item in self.groups)

    def _seconds(self, want: Want, group: Group) -> int:
        """Downloading and unpacking overlap, so the slower one counts. All that comes at once shares the uplink."""
        sent_bytes, streams = self._uplink
        wire_bytes = 0 if group.holds else min(sent_bytes, want.bytes * streams)
        unpack_s = want.unpacked_bytes / self.settings.unpack_bytes_s
        return ceil(max(wire_bytes / self.settings.uplink_bytes_s, unpack_s))
