"""Contract of `protocols.Leases`: one holder at a time, whoever asks, and an end whatever happens to the holder."""

import asyncio

import pytest

from reconciler.core.leases import Claim
from reconciler.nodes.errors import ErrorKind, LeaseHeldError, NodeError
from reconciler.nodes.lease_program import LAPSE_S
from reconciler.nodes.protocols import Fleet, Lease, Node
from tests.contract.subject import Subject, fleet_scene, rivals_scene

OURS = Claim("ops@laptop", "apply of plan 1a2b", "run-1")
THEIRS = Claim("ci@runner", 'apply of plan 3c4d (it\'s "theirs") \u00e4\n', "run-2")


async def connected(fleet: Fleet, subject: Subject) -> Node:
    return await fleet.connect(subject.name, 10)


async def taken(fleet: Fleet, subject: Subject, claim: Claim = OURS) -> Lease:
    node = await connected(fleet, subject)
    return await node.leases.take(claim)


async def eventually_taken(fleet: Fleet, subject: Subject, claim: Claim, within_s: float) -> Lease:
    """The lease, as soon as it is free."""
    async with asyncio.timeout(within_s):
        while True:
            try:
                return await taken(fleet, subject, claim)
            except LeaseHeldError:
                await asyncio.sleep(0.5)


@fleet_scene
async def test_nobody_has_the_lease_of_a_node_that_was_never_changed(fleet: Fleet, subject: Subject) -> None:
    assert await (await connected(fleet, subject)).leases.holder() is None


@fleet_scene
async def test_a_lease_is_held_until_it_is_released(fleet: Fleet, subject: Subject) -> None:
    node = await connected(fleet, subject)
    lease = await node.leases.take(OURS)
    await lease.check()
    holder = await node.leases.holder()
    assert holder is not None
    assert (OURS, lease.fence) == (holder.claim, holder.fence)
    assert holder.age_s is not None
    assert 0 <= holder.age_s < 30
    await lease.release()
    assert await node.leases.holder() is None


@fleet_scene
async def test_a_released_lease_fails_its_check_and_may_be_released_again(fleet: Fleet, subject: Subject) -> None:
    node = await connected(fleet, subject)
    lease = await node.leases.take(OURS)
    await lease.release()
    await lease.release()
    with pytest.raises(NodeError) as lost:
        await lease.check()
    assert ErrorKind.LEASE_LOST is lost.value.kind
    assert await node.observer.observe(), "the session goes on"


@fleet_scene
async def test_a_lease_says_in_which_boot_it_was_taken(fleet: Fleet, subject: Subject) -> None:
    node = await connected(fleet, subject)
    lease = await node.leases.take(OURS)
    assert (await node.observer.observe()).boot_id == lease.boot_id


@fleet_scene
async def test_many_checks_at_once_are_all_answered(fleet: Fleet, subject: Subject) -> None:
    lease = await taken(fleet, subject)
    await asyncio.gather(*(lease.check() for _ in range(20)))


@fleet_scene
async def test_a_lease_keeps_itself_for_longer_than_it_takes_to_lapse(fleet: Fleet, subject: Subject) -> None:
    lease = await taken(fleet, subject)
    await asyncio.sleep(LAPSE_S + 5)
    await lease.check()


@rivals_scene
async def test_two_controllers_never_have_it_at_once(ours: Fleet, theirs: Fleet, subject: Subject) -> None:
    lease = await taken(ours, subject)
    with pytest.raises(LeaseHeldError) as held:
        await taken(theirs, subject, THEIRS)
    assert (OURS, lease.fence) == (held.value.holder.claim, held.value.holder.fence)
    assert OURS.owner in held.value.message
    await lease.release()
    after = await taken(theirs, subject, THEIRS)
    assert after.fence > lease.fence


@rivals_scene
async def test_one_of_two_who_ask_at_one_moment_gets_it(ours: Fleet, theirs: Fleet, subject: Subject) -> None:
    await asyncio.gather(connected(ours, subject), connected(theirs, subject))
    asked = (taken(ours, subject), taken(theirs, subject, THEIRS))
    one, other = await asyncio.gather(*asked, return_exceptions=True)
    assert 1 == sum(isinstance(end, LeaseHeldError) for end in (one, other)), (one, other)


@rivals_scene
async def test_whoever_comes_back_finds_its_number_unless_another_had_it(
    ours: Fleet, theirs: Fleet, subject: Subject
) -> None:
    first = await taken(ours, subject)
    await first.release()
    second = await taken(ours, subject)
    assert first.fence == second.fence
    await second.release()
    await (await taken(theirs, subject, THEIRS)).release()
    third = await taken(ours, subject)
    assert third.fence > second.fence
    assert (False, True) == (second.follows_another, third.follows_another)


@fleet_scene
async def test_a_lost_connection_does_not_keep_a_claim_from_itself(fleet: Fleet, subject: Subject) -> None:
    lease = await taken(fleet, subject)
    subject.trouble("sessions dropped")
    with pytest.raises(NodeError) as lost:
        await lease.check()
    assert lost.value.is_transport
    again = await taken(fleet, subject)
    assert lease.fence == again.fence
    await again.check()


@rivals_scene
async def test_the_same_claim_by_another_session_ends_the_one_before(
    ours: Fleet, theirs: Fleet, subject: Subject
) -> None:
    """As after a link that was cut: the controller has a new session, and the node still believes in the old one."""
    node = await connected(ours, subject)
    lease = await node.leases.take(OURS)
    again = await taken(theirs, subject, OURS)
    assert lease.fence == again.fence
    await again.check()
    with pytest.raises(NodeError):
        await node.observer.observe()


@rivals_scene
async def test_the_end_of_the_holders_session_frees_it(ours: Fleet, theirs: Fleet, subject: Subject) -> None:
    await taken(ours, subject)
    await ours.close()
    lease = await eventually_taken(theirs, subject, THEIRS, 5)
    await lease.check()


@rivals_scene
async def test_a_silent_holder_loses_it_and_its_session(ours: Fleet, theirs: Fleet, subject: Subject) -> None:
    node = await connected(ours, subject)
    lease = await node.leases.take(OURS)
    await connected(theirs, subject)
    subject.silence(ours)
    began_s = asyncio.get_running_loop().time()
    after = await eventually_taken(theirs, subject, THEIRS, 3 * LAPSE_S)
    waited_s = asyncio.get_running_loop().time() - began_s
    assert LAPSE_S - 4 < waited_s
    assert after.fence > lease.fence
    subject.unsilence(ours)
    with pytest.raises(NodeError):
        await node.containers.rename("nothing", "nothing-else")
    with pytest.raises(NodeError) as lost:
        await lease.check()
    assert lost.value.is_transport


@rivals_scene
async def test_a_broken_lease_ends_with_its_session(ours: Fleet, theirs: Fleet, subject: Subject) -> None:
    node = await connected(ours, subject)
    lease = await node.leases.take(OURS)
    rival = await connected(theirs, subject)
    broken = await rival.leases.break_held()
    assert broken is not None
    assert OURS == broken.claim
    assert await rival.leases.holder() is None
    with pytest.raises(NodeError):
        await node.observer.observe()
    again = await taken(ours, subject)
    assert again.fence > lease.fence, "it is told that it was broken"


@fleet_scene
async def test_there_is_nothing_to_break_where_nobody_has_it(fleet: Fleet, subject: Subject) -> None:
    node = await connected(fleet, subject)
    assert await node.leases.break_held() is None
    await (await node.leases.take(OURS)).release()
    assert await node.leases.break_held() is None


@rivals_scene
async def test_power_off_ends_it(ours: Fleet, theirs: Fleet, subject: Subject) -> None:
    lease = await taken(ours, subject)
    subject.trouble("power off")
    subject.mend()
    with pytest.raises(NodeError):
        await lease.check()
    await taken(theirs, subject, THEIRS)


@fleet_scene
async def test_a_release_does_not_wait_for_a_silent_node(fleet: Fleet, subject: Subject) -> None:
    lease = await taken(fleet, subject)
    subject.trouble("link cut")
    async with asyncio.timeout(2):
        await lease.release()


@fleet_scene
async def test_a_lease_outlives_the_docker_daemon(fleet: Fleet, subject: Subject) -> None:
    """A daemon that is restarted in the middle of an apply frees nobody's node."""
    lease = await taken(fleet, subject)
    subject.trouble("docker down")
    await lease.check()
