"""The checks beside the oldest ones (`test_admission`), in their words; and that what is not known refuses nothing."""

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.checks import BUILT_IN, Finding, Judge, NodeCheck, Result
from reconciler.core.checks.check import guarded
from reconciler.core.desired import Desired, Gang, NodeDeclaration, Silence, Wire
from reconciler.core.doctor import Diagnosis, examine, limited
from reconciler.core.host import (
    NOTHING_KNOWN,
    ROCE_V2,
    Clock,
    Gid,
    GpuSupport,
    Host,
    Interface,
    Process,
    RdmaPort,
)
from reconciler.core.observed import Gpu, Listener, NodeFacts, Unknown
from tests.unit.core.build import GIB, container, desired, facts, foreign, gang, observed, pin, plan, unknown

WIRE = Wire("e0", "10.0.0.1", ("mlx5_0",), 3)
GIDS = (Gid(1, "fe80::1", ROCE_V2, "e0"), Gid(2, "10.0.0.1", "IB/RoCE v1", "e0"), Gid(3, "10.0.0.1", ROCE_V2, "e0"))
PORT = RdmaPort("mlx5_0", 1, "ACTIVE", "Ethernet", GIDS)
HOST = Host(
    interfaces=(Interface("e0", True, ("10.0.0.1",)), Interface("e1", True, ("10.1.0.1",))),
    rdma=(PORT, RdmaPort("mlx5_1", 1, "DOWN", "Ethernet")),
    clock=Clock(0.5, 0.1),
    uptime_s=1e6,
    boots_in_a_day=0,
    gpu_support=GpuSupport(("nvidia", "runc")),
    gpu_processes=(),
    top_processes=(Process(9, "python3", 60 * GIB),),
)
PAIR = gang("a", ("n1", "n2"), container={"gpus": 1}, ports=(30000,), memory_bytes=GIB, wire=WIRE)
SOLO = gang("a", ("n1",), container={"gpus": 1}, ports=(30000,), memory_bytes=GIB, wire=WIRE)


def told(*states: NodeFacts | Unknown, of: Gang = PAIR, fleet: Desired | None = None, **how: Any) -> Diagnosis:
    """What doctor says of n1 as given, and of a second node in good order. All ranks have one wire here."""
    fine = facts("n2", host=HOST)
    wanted = fleet or replace(
        desired(of), nodes=tuple(replace(node, gpus=1) for node in desired(of, nodes=["n2"]).nodes)
    )
    return examine(wanted, observed(*states, *(() if len(states) > 1 else (fine,))), Judge.of(wanted, **how))


def faults(found: Diagnosis, node: str = "n1") -> list[tuple[str, str, str]]:
    shown = (item for item in found.findings if item.result in {Result.FAIL, Result.WARN} and item.node == node)
    return [(item.check, item.result.value, item.evidence) for item in shown]


def on(**changed: Any) -> NodeFacts:
    return facts("n1", host=replace(HOST, **changed))


def rdma(*ports: RdmaPort) -> NodeFacts:
    return on(rdma=ports)


ROWS: list[tuple[str, str, str, NodeFacts]] = [
    (
        "interface",
        "fail",
        "n1 has no interface e0; 10.0.0.1 is on eth7",
        on(interfaces=(Interface("eth7", True, ("10.0.0.1",)),)),
    ),
    ("interface", "fail", "n1 has no interface e0; no interface has 10.0.0.1", on(interfaces=(Interface("lo", None),))),
    ("interface", "fail", "e0 of n1 is down", on(interfaces=(Interface("e0", False, ("10.0.0.1",)),))),
    (
        "interface",
        "fail",
        "e0 of n1 has 10.0.0.9; no interface has 10.0.0.1",
        on(interfaces=(Interface("e0", True, ("10.0.0.9",)),)),
    ),
    (
        "interface",
        "fail",
        "e0 of n1 has no address; 10.0.0.1 is on e1",
        on(interfaces=(Interface("e0", True), Interface("e1", True, ("10.0.0.1",)))),
    ),
    ("hca", "fail", "n1 has no RDMA device mlx5_0; there: mlx4_0", rdma(replace(PORT, device="mlx4_0"))),
    ("hca", "fail", "n1 has no RDMA device mlx5_0; there: none", rdma()),
    ("hca", "fail", "on n1 mlx5_0 port 1 is DOWN", rdma(replace(PORT, state="DOWN"))),
    ("gid", "fail", "on n1 mlx5_0 port 1 has no GID at index 3; there: 1, 2", rdma(replace(PORT, gids=GIDS[:2]))),
    (
        "gid",
        "fail",
        "on n1 GID 3 of mlx5_0 is IB/RoCE v1 (10.0.0.1), not RoCE v2",
        rdma(replace(PORT, gids=(replace(GIDS[1], index=3),))),
    ),
    (
        "gpu-runtime",
        "fail",
        "Docker on n1 has no way to give a container a GPU (runtimes: runc)",
        on(gpu_support=GpuSupport(("runc",), cdi_devices=())),
    ),
    (
        "driver",
        "warn",
        "n2 has driver 570.1, and n1 580.2",
        replace(on(), gpus=(Gpu("GB10", driver="580.2"),)),
    ),
    (
        "docker-version",
        "fail",
        "n1 has Docker 19.03.15; fleet needs 20.10 or later",
        replace(on(), docker_version="19.03.15"),
    ),
    ("clock", "fail", "the clock of n1 is 90 s behind this machine's", on(clock=Clock(-90.0, 0.1))),
    ("clock", "warn", "the clock of n1 is 5 s ahead of this machine's", on(clock=Clock(5.0, 0.1))),
    ("reboots", "warn", "n1 started 3 times within a day", on(boots_in_a_day=3)),
    ("disk-low", "warn", "n1 has 1.0 GiB free below /var/lib/docker", replace(on(), disk_free_bytes=GIB)),
    (
        "gpu-count",
        "warn",
        "the spec says n1 has 1 GPUs; `nvidia-smi` there lists 2",
        replace(on(), gpus=(Gpu("GB10"), Gpu("GB10"))),
    ),
    (
        "gpu-process",
        "warn",
        "process jupyter (7) of n1 holds 4.0 GiB of a GPU, and is in no container",
        on(gpu_processes=(Process(7, "jupyter", 4 * GIB), Process(8, "Xorg", 1), Process(9, "x", None))),
    ),
    (
        "memory-free",
        "warn",
        "the lane needs 1.0 GiB a rank; n1 has 1.0 KiB free; most of it is taken by python3 (process 9, 60.0 GiB)",
        replace(on(), memory_available_bytes=1024),
    ),
]


@pytest.mark.parametrize(
    ("check", "result", "evidence", "seen"), ROWS, ids=[f"{row[0]}: {row[2][:50]}" for row in ROWS]
)
def test_it_is_found_in_these_words(check: str, result: str, evidence: str, seen: NodeFacts) -> None:
    where, gpus = ("n2", (Gpu("GB10", driver="570.1"),)) if check == "driver" else ("n1", (Gpu("GB10"),))
    other = facts("n2", host=HOST, gpus=gpus)
    assert [(check, result, evidence)] == faults(told(seen, other), where)
    refused = [item.code for item in plan(desired(PAIR), observed(seen, other)).refusals]
    assert ([check] if result == "fail" else []) == refused


def test_every_check_that_refuses_has_a_mend_and_an_id_of_its_own() -> None:
    ids = [check.id for check in BUILT_IN]
    assert sorted(set(ids)) == sorted(ids)
    assert [] == [check.id for check in BUILT_IN if not check.mend or not check.title.endswith((".", "?"))]


FINE: list[tuple[str, NodeFacts]] = [
    ("a node in good order", on()),
    ("a node that tells nothing", facts("n1")),
    ("a clock within the round trip", on(clock=Clock(80.0, 79.0))),
    ("an interface that does not say whether it is up", on(interfaces=(Interface("e0", None, ("10.0.0.1",)),))),
    ("an adapter on InfiniBand has other GIDs", rdma(replace(PORT, link="InfiniBand", gids=(Gid(0, "fe80::1"),)))),
    ("NCCL takes the beginning of a name", rdma(replace(PORT, device="mlx5_00"))),
    ("CDI without a runtime", on(gpu_support=GpuSupport(("runc",), cdi_devices=("nvidia.com/gpu=0",)))),
    ("the hook without a runtime", on(gpu_support=GpuSupport(("runc",), hook=True))),
    ("a version nobody can read", replace(on(), docker_version="unknown")),
]


@pytest.mark.parametrize(("what", "seen"), FINE, ids=[row[0] for row in FINE])
def test_nothing_is_found(what: str, seen: NodeFacts) -> None:
    assert [] == faults(told(seen)), what


def test_a_rank_alone_is_not_refused_for_its_wire() -> None:
    found = told(on(interfaces=(Interface("e0", False, ("10.0.0.1",)),)), of=SOLO)
    assert [("interface", "warn", "e0 of n1 is down")] == faults(found)


def test_a_wire_that_no_lane_uses_is_told_and_refuses_nothing() -> None:
    spare = NodeDeclaration("n1", "linux/arm64", 1, wires=(Wire("f9", "10.9.0.1"), Wire("e0", "10.0.0.1")))
    found = told(on(), fleet=replace(desired(SOLO), nodes=(spare,)))
    assert [("unused-interface", "warn", "n1 has no interface f9; no interface has 10.9.0.1")] == faults(found)


def test_a_worker_without_its_head_is_an_orphan_whether_it_is_wanted_or_not() -> None:
    worker = facts("n2", container(PAIR, 1), host=HOST)
    expected = "fleet-a-r1-v1 runs on n2 without its head (rank 0) of c/a"
    for wanted in (desired(PAIR), desired(nodes=["n1", "n2"])):
        found = examine(wanted, observed(facts("n1", host=HOST), worker), Judge.of(wanted))
        orphans = [item for item in found.findings if item.check == "orphan" and item.result is Result.WARN]
        assert [expected] == [item.evidence for item in orphans]
    away = examine(desired(PAIR), observed(unknown("n1"), worker), Judge.of(desired(PAIR)))
    assert [Result.UNKNOWN] == [item.result for item in away.findings if item.check == "orphan"]
    whole = examine(desired(PAIR), observed(facts("n1", container(PAIR)), worker), Judge.of(desired(PAIR)))
    assert {Result.OK} == {item.result for item in whole.findings if item.check == "orphan"}


def test_a_process_beside_a_lane_that_runs_is_a_stray() -> None:
    up = container(SOLO)
    beside = (Listener(30000, "*", "engine", up.id), Listener(30000, "10.0.0.1", "nginx"))
    found = told(facts("n1", up, host=HOST, listeners=beside), of=SOLO)
    assert [("stray-port", "warn", "process nginx listens on port 30000 of n1 beside the lane")] == faults(found)
    hidden = (Listener(30000, "*"), Listener(30000, "10.0.0.1", "nginx"))
    assert [] == faults(told(facts("n1", up, host=HOST, listeners=hidden), of=SOLO)), "whose it is cannot be told"


def test_an_image_whose_content_is_not_there_is_told() -> None:
    empty = replace(facts("n1").images[0], usable=False)
    found = told(replace(on(), images=(empty,)), of=SOLO)
    assert ("image-store", "warn") in [(check, result) for check, result, _ in faults(found)]
    assert pin().digest[:19] in next(text for check, _, text in faults(found) if check == "image-store")


unknowns = st.fixed_dictionaries({name: st.sampled_from((None, getattr(HOST, name))) for name in Host.__annotations__})


@given(unknowns, st.sampled_from((None, 500 * GIB)), st.sampled_from((None, 128 * GIB)))
def test_what_is_not_known_refuses_nothing(known: dict[str, Any], disk: int | None, memory: int | None) -> None:
    seen = facts(
        "n1", host=Host(**known), disk_free_bytes=disk, memory_total_bytes=memory, memory_available_bytes=memory
    )
    other = replace(seen, node="n2")
    assert () == plan(desired(PAIR), observed(seen, other)).refusals
    assert [] == [item for item in told(seen, other).findings if item.result is Result.FAIL]


# silences

DOWN = on(interfaces=(Interface("e0", False, ("10.0.0.1",)),))
LET = Silence("interface", "n1", "cabled on Friday", "2026-12-24")


def silenced(silence: Silence, today: str, seen: NodeFacts = DOWN) -> tuple[list[str], list[str], list[str]]:
    """Codes that are refused, checks that are let pass, and what the plan warns of."""
    wanted = replace(desired(PAIR), silences=(silence,))
    made = plan(wanted, observed(seen, facts("n2", host=HOST)), today=today)
    assert bool(made.steps) == (not made.refusals)
    return (
        [item.code for item in made.refusals],
        [item.finding.check for item in made.silenced],
        [item.evidence for item in made.notices],
    )


def test_a_silence_lets_a_boot_go_on_through_its_last_day_and_is_shown() -> None:
    assert ([], ["interface"], []) == silenced(LET, "2026-12-24")
    over = "the silence of interface at n1 ended on 2026-12-24"
    assert (["interface"], [], [over]) == silenced(LET, "2026-12-25")
    assert (["interface"], [], []) == silenced(LET, ""), "without a day none holds"


@pytest.mark.parametrize("address", ["n1", "c/a", "*", "c/*"])
def test_a_silence_is_of_a_node_or_a_placement(address: str) -> None:
    assert ([], ["interface"], []) == silenced(replace(LET, address=address), "2026-12-01")


def test_a_silence_of_something_else_lets_nothing_pass() -> None:
    assert (["interface"], [], []) == silenced(replace(LET, address="n2"), "2026-12-01")
    unknown_check = "the silence of intreface at n1 names no check there is"
    assert (["interface"], [], [unknown_check]) == silenced(replace(LET, check="intreface"), "2026-12-01")


def test_what_guards_others_cannot_be_silenced() -> None:
    held = facts("n1", foreign(gpus=1), host=HOST)
    codes, passed, notices = silenced(replace(LET, check="foreign-*"), "2026-12-01", held)
    assert (["foreign-gpu"], []) == (codes, passed)
    assert "cannot be silenced: what is not of this fleet" in notices[0]


def test_the_plan_is_the_same_plan_whatever_is_said_of_it() -> None:
    """A figure that wanders is no other plan."""
    wanted = replace(desired(PAIR), silences=(LET,))
    ahead = (replace(DOWN, host=replace(DOWN.host, clock=Clock(offset, 0.1))) for offset in (5.0, 9.0))
    one, two = (plan(wanted, observed(seen, facts("n2", host=HOST)), today="2026-12-01") for seen in ahead)
    assert one.notices != two.notices
    assert one.id == two.id


# checks of a user's packages


def _raises(site: object) -> list[Finding]:
    raise RuntimeError("no such thing")


def _exits(site: object) -> list[Finding]:
    raise SystemExit(9)


BAD_LOOKS: dict[str, Any] = {
    "raises": _raises,
    "exits": _exits,
    "no list": lambda site: None,
    "text": lambda site: ["text"],
    "no result": lambda site: [Finding("mine", "n1", cast("Result", "banana"))],
    "no evidence": lambda site: [Finding("mine", "n1", Result.FAIL, cast("str", None))],
}


@pytest.mark.parametrize("look", BAD_LOOKS.values(), ids=BAD_LOOKS.keys())
def test_a_broken_check_is_a_finding_and_changes_no_refusal_of_others(look: Any) -> None:
    mine = guarded(NodeCheck("mine", "Is it so?", "mend it", look, holds_up_boots=True))
    seen = observed(DOWN, facts("n2", host=HOST))
    bare, with_mine = plan(desired(PAIR), seen), plan(desired(PAIR), seen, checks=(mine,))
    assert bare.refusals == with_mine.refusals
    assert {"mine"} == {item.check for item in with_mine.notices}
    assert all("the check itself is broken" in item.evidence for item in with_mine.notices)
    found = told(DOWN, more=(mine,))
    assert {Result.UNKNOWN} == {item.result for item in found.findings if item.check == "mine"}


def test_a_check_of_a_package_refuses_and_can_be_silenced() -> None:
    bad = NodeCheck("mine", "?", "mend it", lambda site: [site.found("other", Result.FAIL, "bad")], holds_up_boots=True)
    seen = observed(facts("n1", host=HOST), facts("n2", host=HOST))
    refused = plan(desired(PAIR), seen, checks=(guarded(bad),)).refusals
    assert [("mine", "c/a", "n1"), ("mine", "c/a", "n2")] == [(item.code, item.gang, item.node) for item in refused]
    wanted = replace(desired(PAIR), silences=(replace(LET, check="mine", address="*"),))
    assert () == plan(wanted, seen, checks=(bad,), today="2026-12-01").refusals


def test_a_finding_without_a_mend_gets_the_one_of_its_check() -> None:
    bad = NodeCheck("mine", "?", "mend it", lambda site: [site.found("mine", Result.WARN, "bad")])
    found = told(facts("n1", host=HOST), more=(bad,))
    assert {"mend it"} == {item.mend for item in found.findings if item.check == "mine" and item.evidence}


def test_the_check_of_the_documents_refuses_a_boot_on_a_small_node(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/checks.md").read_text(encoding="utf-8")
    (tmp_path / "package.py").write_text(page.split("```python\n")[1].split("```")[0], encoding="utf-8")
    large = runpy.run_path(str(tmp_path / "package.py"))["CHECK"]
    seen = observed(facts("n1", host=HOST, memory_total_bytes=64 * GIB), facts("n2", host=HOST))
    (refusal,) = plan(desired(PAIR), seen, checks=(large,)).refusals
    assert ("large", "n1 has 64 GiB", large.mend) == (refusal.code, refusal.summary, refusal.hint)


def test_a_part_of_a_diagnosis_is_about_what_was_asked_for() -> None:
    found = told(DOWN)
    part = limited(found, frozenset({"n1"}), frozenset(), frozenset())
    assert {"n1"} == {item.address for item in part.findings}
    assert {"interface"} == {item.check for item in limited(found, None, None, frozenset({"interface"})).findings}


def test_what_a_node_says_of_itself_is_no_reason_to_call_a_saved_plan_stale() -> None:
    bare = plan(desired(PAIR), observed(facts("n1", host=HOST), facts("n2", host=HOST)))
    later = plan(desired(PAIR), observed(facts("n1", host=NOTHING_KNOWN), facts("n2", host=HOST)))
    assert (bare.id, bare.observed) == (later.id, later.observed)
