"""What drift is: five classes, from the live objects, with the spec that was applied in between."""

import dataclasses
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.desired import Desired, Gang, Mount
from reconciler.core.drift import Finding, Ignore, Kind, Severity, findings, sift, worst_first
from reconciler.core.gate import Health, Verdict
from reconciler.core.host import Clock, Host
from reconciler.core.image_defaults import ImageDefaults
from reconciler.core.observed import Container, LocalImage, Observed, PreflightMark
from reconciler.core.standins import with_put_aside
from reconciler.core.status import FleetStatus, lane_status, unwanted, views
from reconciler.core.withhold import Failed
from tests.unit.core.build import container, desired, facts, foreign, gang, observed, pin, spec, unknown, world

WORDS = {"env": (("FOO", "1"),), "mounts": (Mount("/models", "/models"),), "devices": ("/dev/infiniband",)}
PAIR = gang("a", ("n1", "n2"), container=WORDS)
OLD = gang("a", ("n1", "n2"), "serve", "--old", container=WORDS)
UP = (container(PAIR, 0), container(PAIR, 1))
DEAD = container(PAIR, 1, state="exited", finished_at="2026-03-01T11:00:00Z", exit_code=137, oom_killed=True)
TRIAL = foreign("t", "exited", preflight=PreflightMark("lab", "c/a", "o"))
SERVING = Verdict(Health.HEALTHY, "serving")

Row = tuple[str, str, str, str, str, str]


def pair(first: Container | None, second: Container | None) -> Observed:
    return observed(*(facts(node, *([one] if one else [])) for node, one in (("n1", first), ("n2", second))))


def found(seen: Observed, verdict: Verdict | None = None, of: Gang = PAIR) -> tuple[Finding, ...]:
    return findings(desired(of, nodes=seen.nodes), seen, {of.address: verdict} if verdict else {})


def rows(items: Iterable[Finding]) -> list[Row]:
    return [(item.kind, item.severity, item.address, item.field, item.expected, item.found) for item in items]


DRIFT: list[tuple[str, Observed, Verdict | None, list[Row]]] = [
    ("as wanted", pair(*UP), SERVING, []),
    ("as wanted, nobody asked", pair(*UP), None, []),
    ("not there", pair(None, None), None, [("intent", "outage", "c/a", "placement", "running", "not there")]),
    (
        "another lane",
        observed(facts("n1", UP[0], container(gang("x", ("n1",)))), facts("n2", UP[1])),
        None,
        [("intent", "degraded", "c/x", "placement", "no placement", "1 running on n1")],
    ),
    (
        "another lane that stopped",
        observed(facts("n1", UP[0], container(gang("x", ("n1",)), state="exited")), facts("n2", UP[1])),
        None,
        [("intent", "notice", "c/x", "placement", "no placement", "stopped containers on n1")],
    ),
    (
        "the spec moved on: told once for both ranks",
        world(OLD),
        SERVING,
        [("intent", "degraded", "c/a", "argv", "not set", "--old")],
    ),
    (
        "the spec moved on, and somebody laid hands on what was applied",
        pair(container(OLD, 0, restart_policy="always"), container(OLD, 1)),
        None,
        [
            ("intent", "degraded", "c/a", "argv", "not set", "--old"),
            ("config", "degraded", "c/a/0@n1", "restart", "no", "always"),
        ],
    ),
    (
        "other content under the same name",
        pair(replace(UP[0], image_id="sha256:x"), UP[1]),
        None,
        [("identity", "degraded", "c/a/0@n1", "image", "content sha256:n1-aaaaaaaaaaaa", "content sha256:x")],
    ),
    (
        "renamed by hand: it is nobody's now",
        pair(replace(UP[0], name="mine", owner=None, claims=UP[0].owner), UP[1]),
        None,
        [
            ("config", "degraded", "c/a/0@n1", "name", "fleet-a-r0-v1", "mine"),
            ("runtime", "outage", "c/a/0@n1", "state", "running", "is missing"),
        ],
    ),
    (
        "a dead rank",
        pair(UP[0], DEAD),
        None,
        [("runtime", "outage", "c/a/1@n2", "state", "running", "exited 137 (out of memory)")],
    ),
    ("a missing rank", pair(UP[0], None), None, [("runtime", "outage", "c/a/1@n2", "state", "running", "is missing")]),
    (
        "a paused rank",
        pair(UP[0], replace(UP[1], state="paused")),
        None,
        [("runtime", "outage", "c/a/1@n2", "state", "running", "is paused")],
    ),
    (
        "never proved",
        pair(UP[0], container(PAIR, 1, proved=False)),
        None,
        [("runtime", "degraded", "c/a/1@n2", "proof", "proved healthy", "never proved")],
    ),
    (
        "restarted by Docker",
        pair(UP[0], replace(UP[1], restart_count=3)),
        None,
        [("runtime", "degraded", "c/a/1@n2", "restarts", "none", "restarted by Docker")],
    ),
    (
        "a child killed for lack of memory",
        pair(UP[0], replace(UP[1], oom_killed=True)),
        None,
        [("runtime", "degraded", "c/a/1@n2", "memory", "enough", "a process of it was killed for lack of memory")],
    ),
    (
        "a rank that was started again alone",
        pair(UP[0], replace(UP[1], started_at="2026-03-02T10:00:00Z", finished_at="2026-03-02T09:59:00Z")),
        None,
        [("runtime", "degraded", "c/a/1@n2", "start", "together with the other ranks", "started again alone")],
    ),
    (
        "a gang that came back whole",
        pair(*(replace(one, started_at="2026-03-02T10:00:00Z", finished_at="2026-03-02T09:00:00Z") for one in UP)),
        None,
        [],
    ),
    (
        "garble",
        pair(*UP),
        Verdict(Health.DEGRADED, "probe", "'of of!', expected 'Paris'"),
        [("runtime", "degraded", "c/a", "health", "healthy", "'of of!', expected 'Paris'")],
    ),
    (
        "another model",
        pair(*UP),
        Verdict(Health.DEGRADED, "models", "serves x, not a"),
        [("runtime", "outage", "c/a", "health", "healthy", "serves x, not a")],
    ),
    (
        "left of a preflight",
        observed(facts("n1", UP[0], TRIAL), facts("n2", UP[1])),
        None,
        [("runtime", "notice", "c/a@n1", "container t", "not there", "is left from a preflight")],
    ),
    (
        "an earlier generation is left",
        observed(facts("n1", UP[0], container(OLD, 0, revision=0, state="exited")), facts("n2", UP[1])),
        None,
        [("runtime", "notice", "c/a@n1", "container fleet-a-r0-v0", "not there", "is left, stopped")],
    ),
    (
        "it runs on another node only",
        observed(facts("n1"), facts("n2"), facts("n3", container(PAIR, 0, node="n3"))),
        None,
        [
            ("intent", "outage", "c/a", "placement", "running", "not there"),
            ("runtime", "degraded", "c/a@n3", "container fleet-a-r0-v1", "not there", "runs"),
        ],
    ),
    (
        "a node that cannot be read tells of itself alone",
        observed(facts("n1", container(OLD, 0)), unknown("n2")),
        None,
        [("host", "degraded", "n2", "reach", "reachable", "no answer in 10 s")],
    ),
    (
        "a foreign container beside a lane; one that stopped, or elsewhere, is nobody's business",
        observed(facts("n1", UP[0], foreign(), foreign("old", "exited")), facts("n2", UP[1]), facts("n3", foreign())),
        None,
        [("host", "notice", "n1", "container open-webui", "not there", "runs ghcr.io/open-webui:main")],
    ),
    (
        "a full disk",
        observed(facts("n1", UP[0], disk_free_bytes=3 * 2**30), facts("n2", UP[1])),
        None,
        [("host", "notice", "n1", "disk-low", "in order", "n1 has 3.0 GiB free below /var/lib/docker")],
    ),
]


@pytest.mark.parametrize(("what", "seen", "verdict", "expected"), DRIFT, ids=[row[0] for row in DRIFT])
def test_findings(what: str, seen: Observed, verdict: Verdict | None, expected: list[Row]) -> None:
    assert expected == rows(found(seen, verdict)), what


HANDS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "env": ({"env": (("FOO", "2"),)}, "env.FOO", "1", "2"),
    "env gone": ({"env": ()}, "env.FOO", "1", "not set"),
    "argv": ({"command": ("serve", "--mine")}, "argv", "not set", "--mine"),
    "mount": ({"mounts": (Mount("/other", "/models"),)}, "mount /models", "/models ro", "/other ro"),
    "a mount more": ({"mounts": (*PAIR.ranks[0].container.mounts, Mount("/x", "/x"))}, "mount /x", "not set", "/x ro"),
    "restart policy": ({"restart_policy": "always"}, "restart", "no", "always"),
    "network": ({"network_mode": "bridge"}, "network", "host", "bridge"),
    "devices": ({"devices": ()}, "devices", "/dev/infiniband", "not set"),
    "gpus": ({"gpus": 1}, "gpus", "0", "1"),
    "removes itself": ({"auto_remove": True}, "auto_remove", "false", "true"),
    "docker update": ({"unasked": (("Memory", "1073741824"),)}, "Memory", "not set", "1073741824"),
}


@pytest.mark.parametrize("what", HANDS)
def test_what_a_hand_changed_is_config_with_where_it_shows(what: str) -> None:
    changed, field, expected, is_now = HANDS[what]
    (item,) = found(pair(replace(UP[0], **changed), UP[1]), SERVING)
    assert [("config", "degraded", "c/a/0@n1", field, expected, is_now)] == rows([item])
    assert "docker inspect fleet-a-r0-v1: " in item.evidence


GIVEN = (("PATH", "/bin"), ("FOO", "0"))
OF_IMAGE = (("User", "engine"), ("label maker", "us"))


def of_image(**changed: Any) -> Observed:
    """A lane of one rank, whose image gives variables, an entrypoint, a user and a label; the spec has FOO=1."""
    made = container(ALONE, entrypoint=("serve",), env=(("FOO", "1"), GIVEN[0]), settings=OF_IMAGE)
    image = ImageDefaults(made.image_id, GIVEN, ("serve",), OF_IMAGE)
    return observed(facts("n1", replace(made, **changed), defaults=(image,)))


ALONE = gang("b", ("n1",), container=WORDS)
ANOTHER = "a value, not shown"
BEYOND: dict[str, tuple[dict[str, Any], list[tuple[str, str, str, str]] | None]] = {
    "nothing": ({}, []),
    "a variable": ({"env": (*GIVEN[:1], ("FOO", "1"), ("KEY", "x"))}, [("degraded", "env.KEY", "not set", ANOTHER)]),
    "a variable of the image": ({"env": (("PATH", "/x"), ("FOO", "1"))}, [("degraded", "env.PATH", "/bin", ANOTHER)]),
    "entrypoint": ({"entrypoint": ("sh", "-c")}, [("degraded", "entrypoint", "serve", "sh -c")]),
    "user": ({"settings": (("User", "0"), OF_IMAGE[1])}, [("degraded", "User", "engine", "0")]),
    "folder": ({"settings": (*OF_IMAGE, ("WorkingDir", "/x"))}, [("degraded", "WorkingDir", "not set", "/x")]),
    "label": ({"settings": (*OF_IMAGE, ("label who", "me"))}, [("notice", "label who", "not set", "me")]),
    "of another image": ({"image_id": "sha256:x", "env": (("KEY", "x"), ("FOO", "1"))}, None),
}
"""What a hand changed of it, and what is found; None: of that, nothing is known."""


@pytest.mark.parametrize("what", BEYOND)
def test_what_neither_spec_nor_image_gives_is_a_hands_and_undeclared_values_are_not_shown(what: str) -> None:
    changed, expected = BEYOND[what]
    told = [item for item in found(of_image(**changed), of=ALONE) if item.kind is Kind.CONFIG]
    assert (expected or []) == [row[1:2] + row[3:] for row in rows(told)]
    assert all(item.since and "neither its spec nor its image" in item.evidence for item in told)


def test_what_an_image_gives_is_no_difference_where_the_spec_says_otherwise() -> None:
    whole = gang("b", ("n1",), container={**WORDS, "entrypoint": ("run",)})
    image = ImageDefaults(container(whole).image_id, GIVEN, ("serve",))
    assert () == found(observed(facts("n1", container(whole), defaults=(image,))), of=whole)


def test_what_docker_updates_in_place_says_no_time_and_what_was_made_anew_does() -> None:
    (updated,) = found(pair(replace(UP[0], restart_policy="always"), UP[1]))
    (made,) = found(pair(replace(UP[0], env=(("FOO", "2"),)), UP[1]))
    assert ("", UP[0].created_at) == (updated.since, made.since)


@pytest.mark.parametrize(
    ("setting", "is_dated"),
    [("Memory", False), ("CpusetCpus", False), ("PidsLimit", False), ("Networks", False), ("CapAdd", True)],
)
def test_only_a_setting_that_needs_a_new_container_has_a_time(setting: str, is_dated: bool) -> None:
    (item,) = found(pair(replace(UP[0], unasked=((setting, "1"),)), UP[1]))
    assert is_dated == bool(item.since)


def starts(first: tuple[str, Host], second: tuple[str, Host]) -> list[str]:
    """The ranks that were started again alone, of two that were made at 10:00 by the clock here. Of each: when the life
    before ended, and what its node says of clock and boot."""
    states = (
        facts(node, replace(item, finished_at=end), host=host)
        for node, item, (end, host) in zip(("n1", "n2"), UP, (first, second), strict=True)
    )
    return [item.address for item in found(observed(*states)) if item.field == "start"]


MADE_S = 1772359200.0
"""2026-03-01T10:00:00Z, at which these containers were made."""
AHEAD = Host(clock=Clock(300.0, 0.1))


@pytest.mark.parametrize(
    ("what", "first", "second", "expected"),
    [
        ("nothing", ("", Host()), ("", Host()), []),
        ("ended later", ("", Host()), ("2026-03-01T10:01:00Z", Host()), ["c/a/1@n2"]),
        ("ended before, by a clock that is ahead", ("", Host()), ("2026-03-01T10:04:00Z", AHEAD), []),
        ("ended later, by a clock that is ahead", ("", Host()), ("2026-03-01T10:06:00Z", AHEAD), ["c/a/1@n2"]),
        ("its node booted since", ("", Host(booted_s=MADE_S + 60)), ("", Host()), ["c/a/0@n1"]),
        ("its node booted before", ("", Host(booted_s=MADE_S - 60)), ("", Host()), []),
        ("no time at all", ("", Host()), ("yesterday", Host()), []),
    ],
)
def test_a_rank_that_was_started_again_is_told_by_the_clock_here_and_by_its_nodes_boot(
    what: str, first: tuple[str, Host], second: tuple[str, Host], expected: list[str]
) -> None:
    assert expected == starts(first, second), what


def test_a_dead_rank_tells_since_when_and_how_we_know() -> None:
    (item,) = found(pair(UP[0], DEAD))
    expected = "docker inspect fleet-a-r1-v1: State.Status exited, exit code 137, OOMKilled"
    assert ("2026-03-01T11:00:00Z", expected) == (item.since, item.evidence)


def test_the_cause_that_was_read_from_its_log_is_evidence() -> None:
    wanted, seen = desired(PAIR), pair(UP[0], DEAD)
    (lane,) = (lane_status(view, None) for view in views(wanted, seen))
    told = replace(lane.ranks[1], detail=f"{lane.ranks[1].detail}: it ran out of memory")
    status = FleetStatus("lab", (replace(lane, ranks=(lane.ranks[0], told)),), (), (), ())
    (item,) = findings(wanted, seen, {}, status)
    assert item.evidence.endswith("exit code 137, OOMKilled; it ran out of memory")


def test_labels_of_two_specs_are_a_finding_and_the_container_is_held_against_what_is_wanted() -> None:
    owner = UP[0].owner
    assert owner is not None
    mixed = replace(owner, container_text=owner.container_text.replace("serve", "other"))
    seen = pair(replace(UP[0], owner=mixed, restart_policy="always"), UP[1])
    assert ["labels", "restart"] == [item.field for item in found(seen)]


def test_a_difference_that_no_field_shows_is_a_finding_all_the_same() -> None:
    """The spec names the entrypoint that the image has anyway: another fingerprint, the same live container."""
    named = gang("a", ("n1",), container={"entrypoint": ("serve",)})
    before = gang("a", ("n1",))
    expected = (named.ranks[0].fingerprint[:12], before.ranks[0].fingerprint[:12])
    seen = observed(facts("n1", container(before, entrypoint=("serve",))))
    assert [("intent", "degraded", "c/a", "fingerprint", *expected)] == rows(found(seen, of=named))


def test_a_pin_that_changed_is_one_finding_of_the_lane() -> None:
    new = gang("a", ("n1", "n2"), image=pin("b"))
    assert spec(image=pin("b")) == new.ranks[0].container
    assert [("intent", "c/a", "image")] == [
        (item.kind, item.address, item.field) for item in found(world(gang("a", ("n1", "n2"))), of=new)
    ]


def test_the_tag_that_keeps_an_image_is_told_when_it_is_on_other_content() -> None:
    moved = LocalImage("sha256:z", ("sha256:z",), ("ghcr.io/owner/engine:sha-aaaaaaaaaaaa",))
    own = facts("n1").images
    (item,) = found(observed(replace(facts("n1", UP[0]), images=(*own, moved)), facts("n2", UP[1])))
    assert ("identity", "notice", "tag ghcr.io/owner/engine:sha-aaaaaaaaaaaa") == (item.kind, item.severity, item.field)


def aside(wanted: Desired, seen: Observed, of: Gang) -> FleetStatus:
    """The status, with this gang's version put aside."""
    lanes = tuple(lane_status(view, None) for view in views(wanted, seen))
    status = FleetStatus("lab", lanes, unwanted(wanted, seen), (), ())
    return with_put_aside(status, [Failed(of.address, of.fingerprint, "it answers nonsense", "r1", "today")])


def test_a_rollback_to_another_lane_is_one_finding_and_neither_lane_is_called_wrong() -> None:
    new, before = gang("new", ("n1",)), gang("before", ("n1",))
    failed = container(new, state="exited", proved=False)
    wanted, seen = desired(new), observed(facts("n1", container(before), failed))
    status = aside(wanted, seen, new)
    assert ("missing", ("c/before",)) == (status.lanes[0].health, status.lanes[0].stand_ins)
    assert ["c/new"] == [item.instead_of for item in status.unwanted]
    told = "put aside after it failed; c/before serves in its place"
    (item,) = findings(wanted, seen, {}, status)
    assert ("intent", "degraded", "c/new", "version", told, "run r1: it answers nonsense") == (
        item.kind,
        item.severity,
        item.address,
        item.field,
        item.found,
        item.evidence,
    )


def test_after_a_rollback_of_its_own_the_version_before_serves() -> None:
    wanted = desired(PAIR)
    status = aside(wanted, world(OLD), PAIR)
    assert "this version failed and was put aside; the one before it serves" == status.lanes[0].detail
    (item,) = findings(wanted, world(OLD), {}, status)
    assert "put aside after it failed; the version before it serves" == item.found


def test_with_nothing_in_its_place_it_is_an_outage() -> None:
    seen = pair(container(PAIR, 0, state="exited"), container(PAIR, 1, state="exited"))
    (item,) = findings(desired(PAIR), seen, {}, aside(desired(PAIR), seen, PAIR))
    assert (Severity.OUTAGE, "version") == (item.severity, item.field)


def test_a_version_that_was_put_aside_and_runs_now_is_judged_like_any_other() -> None:
    status = aside(desired(PAIR), pair(*UP), PAIR)
    assert () == findings(desired(PAIR), pair(*UP), {}, status)


def low_disk(gib: int) -> Observed:
    return observed(facts("n1", UP[0], disk_free_bytes=gib * 2**30), facts("n2", UP[1]))


def test_ids_hold_while_the_finding_does() -> None:
    """Free bytes, times and details move; the finding is the same."""
    for first, second in (
        (low_disk(3), low_disk(1)),
        (pair(UP[0], DEAD), pair(UP[0], replace(DEAD, finished_at="2026-04-01T11:00:00Z"))),
    ):
        both = [{item.id for item in found(seen)} for seen in (first, second)]
        assert both[0] == both[1]
        assert both[0]


def test_ids_of_findings_hold_over_versions() -> None:
    plain = gang("a", ("n1", "n2"))
    seen = pair(container(plain, 0, restart_policy="always"), container(plain, 1))
    assert ["2e4c7f7a8416"] == [item.id for item in found(seen, of=plain)]


def test_the_id_is_another_when_the_finding_changes() -> None:
    one = Finding(Kind.CONFIG, "c/a/0@n1", "restart", "no", "always", "replace", "2026-03-01")
    assert one.id == replace(one, since="2026-04-01", remedy="something else", evidence="x").id
    others = [replace(one, address="x"), replace(one, field="x"), replace(one, expected="x"), replace(one, found="x")]
    assert 6 == len({one.id, replace(one, kind=Kind.HOST).id, *(item.id for item in others)})
    assert 12 == len(one.id)


@given(st.permutations(["n1", "n2", "n3"]), st.randoms())
def test_nothing_depends_on_the_order_in_which_nodes_and_containers_are_told(order: list[str], dice: object) -> None:
    states = {
        "n1": facts("n1", replace(UP[0], restart_policy="always"), foreign("b"), foreign("a")),
        "n2": facts("n2", DEAD, container(OLD, 1, revision=0, state="exited")),
        "n3": facts("n3", container(gang("x", ("n3",)))),
    }
    wanted = desired(PAIR, nodes=states)
    expected = findings(wanted, Observed(states, {}), {})
    turned = {node: replace(states[node], containers=tuple(reversed(states[node].containers))) for node in order}
    assert expected == findings(wanted, Observed(turned, {}), {})


SETTINGS = ("entrypoint", "command", "env", "mounts", "devices", "gpus", "network_mode", "restart_policy", "unasked")
OTHERS: dict[str, Any] = {
    "entrypoint": ("other",),
    "command": ("other",),
    "env": (),
    "mounts": (),
    "devices": (),
    "gpus": 3,
    "network_mode": "none",
    "restart_policy": "on-failure",
    "unasked": (("NanoCpus", "1"),),
}


@given(st.sets(st.sampled_from(SETTINGS), min_size=1), st.sampled_from([0, 1]))
def test_each_mutation_of_a_live_container_is_config_and_nothing_else(fields: set[str], index: int) -> None:
    whole = gang("a", ("n1", "n2"), container={**WORDS, "entrypoint": ("run",)})
    up = [container(whole, one) for one in (0, 1)]
    up[index] = replace(up[index], **{field: OTHERS[field] for field in fields})
    told = found(pair(up[0], up[1]), SERVING, of=whole)
    assert {(Kind.CONFIG, f"c/a/{index}@n{index + 1}")} == {(item.kind, item.address) for item in told}
    assert len(fields) == len(told)


def test_the_worst_come_first() -> None:
    seen = observed(facts("n1", UP[0], foreign(), container(gang("x", ("n1",)))), facts("n2", DEAD))
    assert ["outage", "degraded", "notice"] == [item.severity for item in worst_first(found(seen))]


def test_rules_let_pass_what_they_fit_through_their_day_and_are_counted() -> None:
    items = found(pair(replace(UP[0], restart_policy="always"), DEAD))
    rules = (
        Ignore("config", "c/a/*", "rest*", "known", "2026-12-24"),
        Ignore("*", "elsewhere", "*", "none", "2026-12-24"),
        Ignore("runtime", "*", "*", "over", "2026-12-23"),
    )
    sifted = sift(items, rules, "2026-12-24")
    assert ["runtime"] == [item.kind for item in sifted.findings]
    assert [(rules[0], 1), (rules[1], 0)] == [(item.rule, item.count) for item in sifted.suppressed]
    assert (rules[2],) == sifted.expired
    assert 2 == len(sift(items, rules, "2026-12-25").findings)


def test_every_field_of_a_container_that_a_hand_can_change_is_looked_at() -> None:
    """A new field of `Container` is either compared, or listed here as one that is no setting."""
    told = {"id", "name", "state", "image_id", "image", "owner", "preflight", "claims", "exit_code", "oom_killed"}
    told |= {"error", "created_at", "started_at", "finished_at", "restart_count", "published_ports"}
    compared = {*SETTINGS, "shm_bytes", "ulimits", "auto_remove", "settings", "live_secrets"}
    assert {field.name for field in dataclasses.fields(Container)} == told | compared


def test_a_boot_is_one_finding_all_the_way_through_its_phases() -> None:
    made = pair(container(PAIR, 0, proved=False), container(PAIR, 1, proved=False))
    said = [Verdict(Health.PROGRESSING, phase, f"in {phase}") for phase in ("loading", "weights", "models")]
    ids = [[item.id for item in found(made, verdict)] for verdict in said]
    assert [1, 1, 1] == [len(each) for each in ids]
    assert 1 == len({each[0] for each in ids})
    assert {"proof"} == {item.field for item in found(made, SERVING)}
