"""The steps of one gang and of one unit. Dependencies only ever point to an earlier phase or an earlier step."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace

from reconciler.core.classify import GangView, RankView
from reconciler.core.fetching import Fetch, fetches_of
from reconciler.core.identity import container_name, is_proved, unproved_name
from reconciler.core.observed import RUNNING_STATES
from reconciler.core.plan import Op, Phase, Step
from reconciler.core.preflight import preflight_step
from reconciler.core.room import needs_room
from reconciler.core.staging import Staging
from reconciler.core.transfer import Transfer
from reconciler.core.units import Candidate

STOPPED_STATES = ("created", "dead", "exited")

FOREIGN_GRACE_S = 30.0
"""What a container that is nobody's gets to stop."""


def _running_states() -> tuple[str, ...]:
    return tuple(sorted(RUNNING_STATES))


def _ids(steps: Iterable[Step]) -> tuple[str, ...]:
    return tuple(step.id for step in steps)


def next_revision(view: GangView, taken: Container[tuple[str, str]] = ()) -> int:
    """The revision of containers that have to be created: that of the fitting ones while it is the newest of the gang.

    A lower number than one that is there would make them look like history. `taken`: names (node, name) that others of
    the same plan are going to have.
    """
    found = [item.container for item in view.spare] + [rank.fit for rank in view.ranks if rank.fit]
    numbers = [item.owner.revision for item in found if item.owner]
    fitting = [rank.fit.owner.revision for rank in view.ranks if rank.fit and rank.fit.owner]
    newest = max(numbers, default=0)
    revision = newest if newest in fitting else newest + 1
    while not _names_free(view, revision, taken):
        revision += 1
    return revision


def new_names(view: GangView, revision: int) -> Iterator[tuple[str, str]]:
    """Node and final name of every container that has to be created."""
    for rank in view.ranks:
        if rank.fit is None:
            yield rank.rank.node, container_name(view.gang.lane, rank.rank.index, revision)


def _names_free(view: GangView, revision: int, taken: Container[tuple[str, str]]) -> bool:
    facts = {rank.rank.node: rank.facts for rank in view.ranks}
    return not any(
        (node, name) in taken or facts[node].container(name) or facts[node].container(unproved_name(name))
        for node, name in new_names(view, revision)
    )


@dataclass(frozen=True)
class GangSteps:
    """The steps of one gang, by phase."""

    stage: tuple[Step, ...] = ()
    cut: tuple[Step, ...] = ()
    boot: tuple[Step, ...] = ()
    verify: tuple[Step, ...] = ()
    confirm: tuple[Step, ...] = ()
    undo: tuple[Step, ...] = ()

    def all(self) -> tuple[Step, ...]:
        """Everything that runs when all goes well."""
        return self.stage + self.cut + self.boot + self.verify + self.confirm

    def confirmed_after(self, verifies: tuple[Step, ...]) -> "GangSteps":
        """The same with every confirm behind all of these."""
        return replace(self, confirm=tuple(replace(step, requires=_ids(verifies)) for step in self.confirm))


@dataclass(frozen=True)
class Builder:
    """Makes the steps of one candidate. `reason` is the sentence a person reads."""

    candidate: Candidate
    staging: Staging
    reason: str
    revision: int

    @property
    def _address(self) -> str:
        return self.candidate.address

    def _step(self, phase: Phase, op: Op, node: str | None, target: str) -> Step:
        where = f"/{node}" if node else ""
        return Step(f"{self._address}/{phase}{where}/{op}", self._address, phase, op, node, target, self.reason)

    def _name(self, rank: RankView) -> str:
        """The name the rank's container has while it is not proved."""
        if rank.fit is not None:
            return unproved_name(rank.fit.name)
        return unproved_name(container_name(self.candidate.view.gang.lane, rank.rank.index, self.revision))

    def _of_rank(self, phase: Phase, op: Op, rank: RankView) -> Step:
        step = self._step(phase, op, rank.rank.node, self._name(rank))
        fit = rank.fit
        revision = fit.owner.revision if fit is not None and fit.owner is not None else self.revision
        return replace(step, rank=rank.rank.index, revision=revision, container_id=fit.id if fit else None)

    def stage(self) -> tuple[Step, ...]:
        """Images and containers of the ranks that have no fitting one, and between them the gang's preflight."""
        new = [rank for rank in self.candidate.view.ranks if rank.fit is None]
        pulls = {rank.rank.index: pull for rank in new if (pull := self._pull(rank)) is not None}
        fetches = tuple(
            fetch_step(item, self.reason) for item in fetches_of(self.candidate.view, self.staging.observed)
        )
        tried = tuple(self._preflight(new, (*pulls.values(), *fetches)))
        creates = [self._create(rank, pulls.get(rank.rank.index), tried) for rank in new]
        creates = [replace(step, requires=(*step.requires, *_ids(_on(fetches, step.node)))) for step in creates]
        return (*pulls.values(), *fetches, *tried, *creates)

    def _pull(self, rank: RankView) -> Step | None:
        transfer = self.staging.transfer(self._address, rank.rank.node)
        return pull_step(transfer, rank.rank.index, self.reason) if transfer is not None else None

    def _preflight(self, new: Iterable[RankView], brought: tuple[Step, ...]) -> Iterator[Step]:
        """Behind what its node is brought. A rank whose container is there was tried out when that was made."""
        gang = self.candidate.view.gang
        for rank in new:
            if gang.preflight is not None and gang.preflight.rank == rank.rank.index:
                yield preflight_step(gang, gang.preflight, self.reason, _ids(_on(brought, rank.rank.node)))

    def _create(self, rank: RankView, pull: Step | None, tried: tuple[Step, ...]) -> Step:
        """Behind the preflight: what is refused leaves no containers."""
        before = (pull, *tried) if pull is not None else tried
        return replace(self._of_rank(Phase.STAGE, Op.CREATE, rank), requires=_ids(before))

    def unprove(self, stage: tuple[Step, ...], stops: tuple[Step, ...]) -> tuple[Step, ...]:
        """Take the mark of proof off containers that boot again."""
        return tuple(
            replace(
                self._of_rank(Phase.CUT, Op.UNPROVE, rank),
                target=rank.fit.name,
                states=STOPPED_STATES,
                requires=_ids(stage) + _ids(stops),
            )
            for rank in self.candidate.view.ranks
            if rank.fit is not None and is_proved(rank.fit.name)
        )

    def displace(self, after: tuple[Step, ...]) -> tuple[Step, ...]:
        """Stop the foreign containers that may go, once everything in `after` is done."""
        return tuple(
            replace(
                self._step(Phase.CUT, Op.STOP, item.node, item.container.name),
                id=f"{self._address}/{Phase.CUT}/{item.node}/{Op.STOP}/{item.container.name}",
                reason=f"makes room for {self._address}, as `may_stop` allows",
                container_id=item.container.id,
                states=_running_states(),
                grace_s=FOREIGN_GRACE_S,
                requires=_ids(after),
            )
            for item in self.candidate.view.displaced
        )

    def room(self, before: tuple[Step, ...]) -> tuple[Step, ...]:
        """Wait for memory on each node: what a lane declares of the machine's, and that of the GPUs it asks for."""
        return tuple(
            replace(self._of_rank(Phase.CUT, Op.ROOM, rank), requires=_ids(before))
            for rank in self.candidate.view.ranks
            if needs_room(rank.rank)
        )

    def boot(self, before: tuple[Step, ...]) -> tuple[Step, ...]:
        """Start wave by wave; a wave waits for the ranks of the one before."""
        waves = self.candidate.view.gang.boot_order
        steps: list[Step] = []
        gate = _ids(before)
        for number, wave in enumerate(waves):
            ranks = [self.candidate.view.ranks[index] for index in wave]
            starts = [replace(self._start(rank), requires=gate) for rank in ranks]
            ready = [self._ready(rank) for rank in ranks if rank.rank.ready and number + 1 < len(waves)]
            steps += starts + ready
            gate = _ids(starts + ready)
        return tuple(steps)

    def _start(self, rank: RankView) -> Step:
        return replace(self._of_rank(Phase.BOOT, Op.START, rank), states=STOPPED_STATES)

    def _ready(self, rank: RankView) -> Step:
        step = self._of_rank(Phase.BOOT, Op.READY, rank)
        return replace(step, requires=(self._start(rank).id,))

    def verify(self, boot: tuple[Step, ...]) -> Step:
        """The health gate of the whole gang."""
        return replace(self._step(Phase.VERIFY, Op.VERIFY, None, self._address), requires=_ids(boot))

    def confirm(self, verify: Step) -> tuple[Step, ...]:
        """Mark every rank as proved."""
        return tuple(
            replace(self._of_rank(Phase.CONFIRM, Op.CONFIRM, rank), states=("running",), requires=(verify.id,))
            for rank in self.candidate.view.ranks
        )

    def undo(self) -> tuple[Step, ...]:
        """Stop what was started, the head first, when the gang fails. Containers are kept for their logs."""
        order = [index for wave in reversed(self.candidate.view.gang.boot_order) for index in wave]
        ranks = [self.candidate.view.ranks[index] for index in order]
        return tuple(
            replace(self._of_rank(Phase.ROLLBACK, Op.STOP, rank), grace_s=rank.rank.stop_grace_s) for rank in ranks
        )


def pull_step(transfer: Transfer, rank: int, reason: str) -> Step:
    """Bring the image of one rank to its node."""
    step_id = f"{transfer.gang}/{Phase.STAGE}/{transfer.node}/{Op.PULL}"
    step = Step(step_id, transfer.gang, Phase.STAGE, Op.PULL, transfer.node, transfer.image, reason, rank=rank)
    return replace(step, estimate_bytes=transfer.missing_bytes, seed=transfer.seed)


def fetch_step(fetch: Fetch, reason: str) -> Step:
    """Copy a model to the node of one rank."""
    step_id = f"{fetch.gang}/{Phase.STAGE}/{fetch.node}/{Op.FETCH}/{fetch.want.name}"
    step = Step(step_id, fetch.gang, Phase.STAGE, Op.FETCH, fetch.node, fetch.want.name, reason, rank=fetch.rank)
    return replace(step, estimate_bytes=fetch.bytes, seed=fetch.source.node)


def _on(steps: Iterable[Step], node: str | None) -> Iterable[Step]:
    return (step for step in steps if step.node == node)


def boot_steps(
    builder: Builder, stage: tuple[Step, ...], stops: tuple[Step, ...], staged: tuple[Step, ...]
) -> GangSteps:
    """All steps of a gang that boots, after `stops` have made room.

    `staged`: what has to be there before anything stops or boots: the gang's own `stage`, and that of all that it
    succeeds or fails with.
    """
    displaced = builder.displace(staged)
    unprove = builder.unprove(staged, stops + displaced)
    room = builder.room(staged + stops + displaced)
    boot = builder.boot(staged + stops + displaced + unprove + room)
    verify = builder.verify(boot)
    cut = displaced + unprove + room
    return GangSteps(stage, cut, boot, (verify,), builder.confirm(verify), builder.undo())


def prove_steps(builder: Builder) -> GangSteps:
    """All steps of a gang that runs as wanted and was never proved."""
    verify = builder.verify(())
    return GangSteps(verify=(verify,), confirm=builder.confirm(verify), undo=builder.undo())
