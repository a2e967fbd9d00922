"""Star or relay, disk by store, the estimate: what a plan says of the images it brings."""

from dataclasses import replace

import pytest

from reconciler.core.classify import view_of
from reconciler.core.desired import Gang, ImagePin, TransferSettings
from reconciler.core.observed import LocalImage, NodeFacts, SourceUnknown
from reconciler.core.plan import Op, only_gangs
from reconciler.core.staging import Staging
from reconciler.core.transfer import Relay, Transfer
from tests.unit.core.build import (
    GIB,
    desired,
    digest,
    facts,
    gang,
    holding,
    layer,
    observed,
    of_op,
    pin,
    plan,
    source,
)

MIB = 2**20
NODES = ("n1", "n2", "n3", "n4")
LANE = gang("quad", NODES)
BIG = source("a", layer("base", 10 * GIB), layer("top", 4 * GIB))
SETTINGS = TransferSettings(uplink_bytes_s=100 * MIB, unpack_bytes_s=200 * MIB)


def node(name: str, images: tuple[LocalImage, ...] = (), **others: object) -> NodeFacts:
    """A node that lacks the image, and could pass it on."""
    return replace(facts(name, images=(), has_python=True), images=images, **others)  # type: ignore[arg-type]


def whole(image: ImagePin, **others: object) -> LocalImage:
    """What a containerd store has of the image once it is pulled."""
    return replace(LocalImage(image.digest, (image.digest,), complete=True), **others)  # type: ignore[arg-type]


def staged(*nodes: NodeFacts, of: Gang = LANE, settings: TransferSettings = SETTINGS) -> dict[str, Transfer]:
    seen = observed(*nodes, sources=[BIG])
    staging = Staging.of([view_of(of, (), seen)], settings, seen)
    return {item.node: item for item in staging.transfers}


def seeds(*nodes: NodeFacts, settings: TransferSettings = SETTINGS) -> set[str | None]:
    return {item.seed for item in staged(*nodes, settings=settings).values()}


def four(**others: object) -> tuple[NodeFacts, ...]:
    return tuple(node(name, **others) for name in NODES)  # type: ignore[arg-type]


def test_the_first_node_that_lacks_it_passes_it_on_to_the_others() -> None:
    assert {"n1"} == seeds(*four())
    assert {"n2"} == seeds(replace(node("n1"), images=(LocalImage("x", (digest(),)),)), *four()[1:])


def test_one_node_gets_it_from_the_controller() -> None:
    there = [replace(facts(name), has_python=True) for name in NODES[1:]]
    assert {None} == seeds(node("n1"), *there)


def test_the_star_is_kept_while_the_uplink_does_not_hold_up_the_nodes() -> None:
    fast = replace(SETTINGS, uplink_bytes_s=4 * 2 * 100 * MIB)
    assert {None} == seeds(*four(), settings=fast)  # 4 * 14 GiB / 800 MiB/s = 72 s <= 29.4 GiB / 200 MiB/s = 151 s
    assert {"n1"} == seeds(*four(), settings=replace(SETTINGS, uplink_bytes_s=380 * MIB))  # 151.0 > 150.5 s


def test_a_spec_without_relays_keeps_the_star() -> None:
    off = replace(SETTINGS, relay=False)
    holder = node("n1", (whole(pin()),))
    assert {None} == seeds(*four(), settings=off) == seeds(holder, *four()[1:], settings=off)


def test_a_seed_needs_a_python() -> None:
    assert {"n3"} == seeds(*(replace(one, has_python=one.node == "n3") for one in four()))
    assert {None} == seeds(*four(has_python=False))


def test_a_seed_needs_the_disk_to_keep_what_it_passes_on() -> None:
    peak = round((14 + 14 * 2.1) * GIB * 1.05)
    short = replace(node("n1"), disk_free_bytes=peak + 14 * GIB - 10 * MIB)
    enough = replace(node("n2"), disk_free_bytes=peak + 14 * GIB + 10 * MIB)
    assert {"n2"} == seeds(short, enough, *four()[2:])


def test_a_node_that_has_all_of_it_is_the_best_seed_even_for_one_neighbour() -> None:
    holder = node("n3", (whole(pin()),))
    pair = gang("pair", ("n1", "n3"))
    found = staged(node("n1"), holder, of=pair)
    assert ["n1"] == list(found)
    assert ("n3", True) == (found["n1"].seed, found["n1"].seed_holds)


@pytest.mark.parametrize(
    "holder",
    [
        replace(node("n3", (whole(pin()),)), has_python=False),
        node("n3", (whole(pin(), complete=False),)),
        node("n3", (whole(pin(), usable=False),)),
        replace(node("n3", (whole(pin()),)), store="classic"),
    ],
    ids=["no python", "not all blobs", "not usable", "the classic store keeps no blobs"],
)
def test_a_node_that_cannot_serve_it_whole_is_no_holder(holder: NodeFacts) -> None:
    found = staged(node("n1"), holder, of=gang("pair", ("n1", "n3")))
    assert "n3" != found["n1"].seed


def test_what_is_there_already_needs_no_seed() -> None:
    same = holding(layer("base"), layer("top"))
    found = staged(*(node(name, (same,)) for name in NODES))
    assert {(0, None, 0, True)} == {
        (item.missing_bytes, item.seed, item.seconds, item.is_naming) for item in found.values()
    }


def test_a_relay_listens_at_the_seeds_address_for_its_neighbours_alone() -> None:
    assert Relay("n2", "n2.fabric", ("n1.fabric", "n3.fabric", "n4.fabric")) == Relay.of(LANE, "n2")


def test_the_slower_of_wire_and_unpacking_is_the_estimate() -> None:
    found = staged(*four())
    assert {151} == {item.seconds for item in found.values()}  # 29.4 GiB at 200 MiB/s; the wire: 14 GiB once, in 144 s
    slow = replace(SETTINGS, uplink_bytes_s=50 * MIB)
    assert {287} == {item.seconds for item in staged(*four(), settings=slow).values()}
    star = staged(*four(has_python=False))
    assert {574} == {item.seconds for item in star.values()}


def test_from_a_neighbour_that_has_it_the_unpacking_is_the_estimate() -> None:
    slow = replace(SETTINGS, uplink_bytes_s=MIB)
    found = staged(node("n4", (whole(pin()),)), *four()[:3], settings=slow)
    assert {(151, "n4")} == {(item.seconds, item.seed) for item in found.values()}


def test_disk_afterwards_is_by_store() -> None:
    found = staged(node("n1", store="classic"), node("n2", store="containerd"), *four()[2:])
    free = 500 * GIB
    unpacked = round(10 * GIB * 2.1) + round(4 * GIB * 2.1)
    assert (free, free - unpacked) == (found["n1"].disk_free_bytes, found["n1"].disk_free_after_bytes)
    assert free - unpacked - 14 * GIB == found["n2"].disk_free_after_bytes


def test_two_images_on_one_node_are_summed_and_one_for_two_lanes_is_not() -> None:
    other = source("b", layer("other", 4 * GIB))
    lanes = [gang("a", ("n1",)), gang("b", ("n1",), cluster="d"), gang("c", ("n1",), cluster="e", image=pin("b"))]
    seen = observed(node("n1"), sources=[BIG, other])
    staging = Staging.of([view_of(lane, (), seen) for lane in lanes], SETTINGS, seen)
    assert {pin("a"), pin("b")} == {want.pin for want in staging.on("n1")}
    assert round((14 + 14 * 2.1) * GIB * 1.05) + round((4 + 4 * 2.1) * GIB * 1.05) == pytest.approx(
        staging.peak_bytes("n1"), abs=10
    )


def test_the_plan_refuses_when_the_sum_does_not_fit_though_each_would() -> None:
    lanes = [gang("a", ("n1",), shares=True), gang("c", ("n1",), image=pin("b"), shares=True, ports=(30001,))]
    tight = node("n1", disk_free_bytes=50 * GIB)
    sources = [BIG, source("b", layer("other", 4 * GIB))]
    assert () == plan(desired(lanes[0]), observed(tight, sources=sources)).refusals
    both = plan(desired(*lanes), observed(tight, sources=sources))
    assert ["disk", "disk"] == [item.code for item in both.refusals]
    assert "(14.0 GiB to fetch, 29.4 GiB unpacked) and image" in both.refusals[0].summary


def test_a_pull_says_what_is_missing_and_who_passes_it_on() -> None:
    shared = holding(layer("base", 10 * GIB))
    made = plan(replace(desired(LANE), transfer=SETTINGS), observed(node("n1", (shared,)), *four()[1:], sources=[BIG]))
    pulls = of_op(made, Op.PULL)
    assert [4 * GIB, 14 * GIB, 14 * GIB, 14 * GIB] == [step.estimate_bytes for step in pulls]
    assert {"n1"} == {step.seed for step in pulls}
    assert [1, 0, 0, 0] == [item.layers_shared for item in made.transfers]
    assert {"vault"} == {item.origin for item in made.transfers}


def test_an_image_of_which_nothing_is_known_is_told_without_figures() -> None:
    made = plan(desired(LANE), observed(*four(), sources=[SourceUnknown(digest(), "timeout")]))
    assert {(None, None, None, None)} == {
        (item.missing_bytes, item.seconds, item.disk_free_after_bytes, item.seed) for item in made.transfers
    }


def test_free_disk_is_told_and_is_no_part_of_the_plans_id() -> None:
    plans = [
        plan(desired(LANE), observed(*four(disk_free_bytes=free), sources=[BIG])) for free in (200 * GIB, 201 * GIB)
    ]
    assert plans[0].id == plans[1].id
    assert plans[0].transfers != plans[1].transfers


def test_a_part_of_a_plan_has_its_own_transfers() -> None:
    solo = gang("solo", ("n5",))
    made = plan(desired(LANE, solo), observed(*four(), node("n5"), sources=[BIG]))
    assert {"n5"} == {item.node for item in only_gangs(made, lambda address: address == "c/solo").transfers}
