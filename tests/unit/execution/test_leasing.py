"""The leases of one run: all or none, proved before each effect, and given back whatever hangs."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from reconciler.core.leases import Claim, Holder
from reconciler.execution.leasing import RELEASE_S, SETTLE_S, LeaseKeeper
from reconciler.nodes.errors import ErrorKind, LeaseHeldError, LeaseLostError, NodeError
from reconciler.nodes.lease_program import LAPSE_S
from reconciler.testing import Fault, SimulatedFleet, run_simulated, sim_nodes
from reconciler.testing.leases import LeaseSpan

OURS = Claim("ops@laptop", "apply of plan 1a2b", "run-1")
THEIRS = Claim("ci@runner", "apply of plan 3c4d", "run-2")
ALL = ("n1", "n2", "n3")

Play = Callable[["Pair"], Awaitable[None]]


class Pair:
    """Two controllers on three nodes."""

    def __init__(self) -> None:
        self.fleet = SimulatedFleet(sim_nodes(3), seed=5)
        self.ours = LeaseKeeper(self.fleet, OURS)
        self.theirs = LeaseKeeper(self.fleet.second("rival"), THEIRS)

    def spans(self, node: str) -> list[LeaseSpan]:
        return self.fleet.node(node).leases.spans

    def holders(self) -> dict[str, str | None]:
        """Whose run holds which node now."""
        held = {node.name: node.leases.held for node in self.fleet.nodes}
        return {name: span.claim.run_id if span else None for name, span in held.items()}


def played(play: Play) -> Callable[[], None]:
    """A test in virtual time."""

    def test() -> None:
        async def main() -> None:
            await play(Pair())

        run_simulated(main(), seed=5)

    test.__name__, test.__doc__ = play.__name__, play.__doc__
    return test


def now_s() -> float:
    return asyncio.get_running_loop().time()


@played
async def test_all_leases_are_taken_and_given_back(pair: Pair) -> None:
    assert {} == await pair.ours.take(ALL)
    assert frozenset(ALL) == pair.ours.nodes
    assert dict.fromkeys(ALL, "run-1") == pair.holders()
    await pair.ours.release()
    await pair.ours.release()
    assert dict.fromkeys(ALL) == pair.holders()
    assert frozenset() == pair.ours.nodes


@played
async def test_none_is_kept_when_one_is_held_by_another(pair: Pair) -> None:
    await pair.theirs.take(["n2"])
    with pytest.raises(LeaseHeldError) as held:
        await pair.ours.take(ALL)
    assert ("n2", THEIRS) == (held.value.node, held.value.holder.claim)
    assert "ci@runner" in held.value.message
    assert "fleet lease break n2" in held.value.hint
    assert {"n1": None, "n2": "run-2", "n3": None} == pair.holders()


@played
async def test_what_was_held_before_stays_when_more_cannot_be_had(pair: Pair) -> None:
    await pair.ours.take(["n1"])
    await pair.theirs.take(["n3"])
    with pytest.raises(LeaseHeldError):
        await pair.ours.take(ALL)
    assert {"n1": "run-1", "n2": None, "n3": "run-2"} == pair.holders()


@played
async def test_whoever_waits_gets_it_when_it_is_free_and_is_told_for_whom(pair: Pair) -> None:
    told: list[tuple[str, Holder]] = []
    await pair.theirs.take(["n2"])
    waiting = asyncio.create_task(pair.ours.take(ALL, None, lambda holder, node: told.append((node, holder))))
    await asyncio.sleep(100)
    assert [("n2", THEIRS)] == [(node, holder.claim) for node, holder in told]
    assert {"n1": "run-1", "n2": "run-2", "n3": None} == pair.holders(), "only what comes before is kept meanwhile"
    await pair.theirs.release()
    assert {} == await waiting
    assert dict.fromkeys(ALL, "run-1") == pair.holders()


@played
async def test_waiting_has_an_end(pair: Pair) -> None:
    await pair.theirs.take(["n2"])
    began_s = now_s()
    with pytest.raises(LeaseHeldError):
        await pair.ours.take(ALL, wait_s=30)
    assert 30 <= now_s() - began_s < 33


@played
async def test_waiting_can_be_cancelled_and_keeps_nothing(pair: Pair) -> None:
    await pair.theirs.take(["n2"])
    waiting = asyncio.create_task(pair.ours.take(ALL, None))
    await asyncio.sleep(10)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert {"n1": None, "n2": "run-2", "n3": None} == pair.holders()


@played
async def test_of_two_who_want_all_at_one_moment_one_gets_all(pair: Pair) -> None:
    ends = await asyncio.gather(pair.ours.take(ALL), pair.theirs.take(ALL), return_exceptions=True)
    assert 1 == sum(end == {} for end in ends), ends
    assert 1 == len(set(pair.holders().values()))


@played
async def test_two_who_wait_for_each_other_both_get_there(pair: Pair) -> None:
    async def turn(keeper: LeaseKeeper) -> None:
        for _ in range(5):
            await keeper.take(ALL, None)
            await asyncio.sleep(7)
            await keeper.release()

    await asyncio.gather(turn(pair.ours), turn(pair.theirs))
    assert {"run-1", "run-2"} == {span.claim.run_id for span in pair.spans("n1")}


@played
async def test_nodes_that_cannot_be_reached_are_told_and_left_out(pair: Pair) -> None:
    pair.fleet.node("n1").power_off()
    pair.fleet.node("n2").cut_link()
    left_out = await pair.ours.take(ALL)
    assert {"n1", "n2"} == left_out.keys()
    assert frozenset({"n3"}) == pair.ours.nodes


@played
async def test_a_node_that_has_no_lease_to_give_is_an_error(pair: Pair) -> None:
    pair.fleet.inject(Fault.fail("n2", "lease", ErrorKind.NO_SPACE))
    with pytest.raises(NodeError) as refused:
        await pair.ours.take(ALL)
    assert ErrorKind.NO_SPACE is refused.value.kind
    assert dict.fromkeys(ALL) == pair.holders()


@played
async def test_a_held_lease_is_confirmed_for_as_long_as_it_takes(pair: Pair) -> None:
    await pair.ours.take(["n1"])
    node = await pair.fleet.connect("n1", 10)
    for _ in range(5):
        await asyncio.sleep(600)
        await pair.ours.confirm(node)
    assert 1 == len(pair.spans("n1"))


@played
async def test_after_a_lost_connection_it_is_taken_again(pair: Pair) -> None:
    await pair.ours.take(["n1"])
    node = await pair.fleet.connect("n1", 10)
    pair.fleet.node("n1").drop_sessions()
    with pytest.raises(NodeError) as lost:
        await pair.ours.confirm(node)
    assert lost.value.is_transport, "whoever wants the effect connects again"
    await pair.ours.confirm(await pair.fleet.connect("n1", 10))
    assert "run-1" == pair.holders()["n1"]


@played
async def test_a_node_had_by_another_meanwhile_is_stale_until_somebody_looks_again(pair: Pair) -> None:
    await pair.ours.take(["n1"])
    pair.fleet.node("n1").drop_sessions()
    await pair.theirs.take(["n1"])
    with pytest.raises(LeaseHeldError):
        await pair.ours.confirm(await pair.fleet.connect("n1", 10))
    await pair.theirs.release()
    for _ in range(2):
        with pytest.raises(LeaseLostError) as lost:
            await pair.ours.confirm(await pair.fleet.connect("n1", 10))
        assert "another run" in lost.value.message
    assert "run-1" == pair.holders()["n1"], "nobody comes in between"
    pair.ours.accept("n1")
    await pair.ours.confirm(await pair.fleet.connect("n1", 10))


@played
async def test_a_broken_lease_is_stale_though_nobody_had_it(pair: Pair) -> None:
    await pair.ours.take(["n1"])
    rival = await pair.fleet.second("rival").connect("n1", 10)
    await rival.leases.break_held()
    with pytest.raises(LeaseLostError):
        await pair.ours.confirm(await pair.fleet.connect("n1", 10))


@played
async def test_a_reboot_makes_it_stale(pair: Pair) -> None:
    await pair.ours.take(["n1"])
    pair.fleet.node("n1").reboot()
    with pytest.raises(LeaseLostError) as lost:
        await pair.ours.confirm(await pair.fleet.connect("n1", 10))
    assert "booted" in lost.value.message
    assert lost.value.is_reboot


@played
async def test_a_reboot_after_which_another_had_it_is_no_mere_reboot(pair: Pair) -> None:
    await pair.ours.take(["n1"])
    pair.fleet.node("n1").reboot()
    await pair.theirs.take(["n1"])
    await pair.theirs.release()
    with pytest.raises(LeaseLostError) as lost:
        await pair.ours.confirm(await pair.fleet.connect("n1", 10))
    assert "another run" in lost.value.message
    assert not lost.value.is_reboot


@played
async def test_a_controller_cut_off_for_too_long_reaches_the_node_no_more_by_its_old_session(pair: Pair) -> None:
    await pair.ours.take(["n1"])
    node = await pair.fleet.connect("n1", 10)
    pair.fleet.node("n1").cut_link()
    await asyncio.sleep(LAPSE_S + 4)
    pair.fleet.node("n1").mend_link()
    with pytest.raises(NodeError) as lost:
        await node.containers.rename("nothing", "nothing-else")
    assert lost.value.is_transport


@played
async def test_a_short_silence_costs_nothing(pair: Pair) -> None:
    await pair.ours.take(["n1"])
    node = await pair.fleet.connect("n1", 10)
    pair.fleet.node("n1").cut_link()
    await asyncio.sleep(LAPSE_S - 6)
    pair.fleet.node("n1").mend_link()
    await pair.ours.confirm(node)


@played
async def test_a_node_that_was_left_out_gets_its_lease_with_its_first_effect(pair: Pair) -> None:
    pair.fleet.node("n1").power_off()
    await pair.ours.take(["n1"])
    pair.fleet.node("n1").power_on()
    await pair.ours.confirm(await pair.fleet.connect("n1", 10))
    assert "run-1" == pair.holders()["n1"]


@played
async def test_many_effects_at_once_take_a_lost_lease_again_once(pair: Pair) -> None:
    await pair.ours.take(["n1"])
    pair.fleet.node("n1").drop_sessions()
    node = await pair.fleet.connect("n1", 10)
    await asyncio.gather(*(pair.ours.confirm(node) for _ in range(10)))
    assert 2 == len(pair.spans("n1"))


@played
async def test_giving_back_waits_for_no_silent_node(pair: Pair) -> None:
    await pair.ours.take(ALL)
    for name in ("n1", "n3"):
        pair.fleet.node(name).cut_link()
    began_s = now_s()
    await pair.ours.release()
    assert now_s() - began_s <= RELEASE_S
    assert {"n1": "run-1", "n2": None, "n3": "run-1"} == pair.holders()
    await asyncio.sleep(LAPSE_S + 4)
    assert dict.fromkeys(ALL) == pair.holders(), "they lapse"


@played
async def test_a_rival_that_lets_go_at_once_is_no_refusal(pair: Pair) -> None:
    """Who fails elsewhere gives back what it took: that is not a lease held by somebody."""
    await pair.theirs.take(["n1"])

    async def gone() -> None:
        await asyncio.sleep(SETTLE_S / 2)
        await pair.theirs.release()

    _, left_out = await asyncio.gather(gone(), pair.ours.take(["n1"]))
    assert {} == left_out


@played
async def test_what_could_not_be_given_back_is_free_when_the_node_hears_of_it(pair: Pair) -> None:
    await pair.ours.take(["n1"])
    pair.fleet.node("n1").cut_link()
    await pair.ours.release()
    pair.fleet.node("n1").mend_link()
    assert {} == await pair.theirs.take(["n1"])


def test_a_killed_controller_leaves_no_lease() -> None:
    pair = Pair()
    pair.fleet.inject(Fault.kill("n3", "lease"))
    with pytest.raises(SystemExit):
        run_simulated(_taken(pair.ours), seed=5)
    run_simulated(_taken(pair.theirs), seed=5)
    assert dict.fromkeys(ALL, "run-2") == pair.holders()


async def _taken(keeper: LeaseKeeper) -> None:
    await keeper.take(ALL)
