"""Fleets that are shown in the golden files."""

from dataclasses import replace

from reconciler.core.desired import Desired, HealthGate, Ready, SecretRef, TransferSettings
from reconciler.core.gate import Health, Verdict
from reconciler.core.observed import Listener, NodeFacts, Observed, SourceImage, SourceUnknown, Unknown, UnknownKind
from reconciler.core.options import PlanOptions
from reconciler.core.plan import Plan
from reconciler.core.status import FleetStatus, lane_status, unwanted, views
from reconciler.core.sync import make_sync_plan
from reconciler.core.withhold import Failed, Held, withhold
from tests.unit.core.build import (
    GIB,
    PLATFORM,
    container,
    desired,
    digest,
    facts,
    foreign,
    gang,
    holding,
    layer,
    observed,
    pin,
    plan,
    unknown,
    world,
)
from tests.unit.core.build import source as image_source

GATE = HealthGate("127.0.0.1", 30000, served_name="mimo-v26-flash", boot_s=2400.0)
SPARKRING = pin("c", "ghcr.io/fujitsupolycom/sparkring")

PAIR = gang("glm53-kindling-2x", ("dgx1", "dgx2"), cluster="2nodes-dac", gate=replace(GATE, served_name="glm53"))
SOLO = gang("qwen-coder", ("dgx3",), cluster="single-3")
QUAD = gang(
    "mimo26-flash-4x",
    ("dgx1", "dgx2", "dgx3", "dgx4"),
    "vllm",
    "serve",
    cluster="4nodes-switch",
    image=SPARKRING,
    gate=GATE,
    container={"env": (("HF_TOKEN", SecretRef("env:HF_TOKEN")),)},
    memory_bytes=96 * GIB,
    ready=Ready(50052),
    boot_order=((1, 2, 3), (0,)),
)
BOOTS = {QUAD.address: (178.0, 200.0, 221.0, 199.0, 205.0), PAIR.address: (88.0,)}


def demo() -> Plan:
    """Two lanes make room for one over all their nodes, and the image is missing on three of four."""
    last = facts("dgx4", images=[SPARKRING])
    source = SourceImage(SPARKRING.digest, ((PLATFORM, 15_246_417_152),))
    seen = observed(*world(PAIR, SOLO).nodes.values(), last, sources=[source])
    return plan(desired(QUAD), seen, commit="4f2c1ab09d3e77")


def _images() -> tuple[Desired, Observed]:
    layers = [layer(f"{number}", size) for number, size in enumerate((9 * GIB, 4 * GIB, 1200 * 2**20, 30 * 2**20))]
    source = replace(image_source("c", *layers), origin="https://ghcr.io")
    old = holding(*layers[:2], layer("old"), name="before")
    same = holding(*layers, name="mirror", names=("mirror.lan/x:1",))
    nodes = [
        facts(name, images=(), has_python=True, disk_free_bytes=free * GIB)
        for name, free in (("dgx1", 200), ("dgx2", 200), ("dgx3", 180), ("dgx4", 90))
    ]
    nodes[2], nodes[3] = replace(nodes[2], images=(old,)), replace(nodes[3], images=(same,))
    solo = gang("solo", ("dgx5",), image=pin("d", "ghcr.io/owner/small"), cluster="single-5")
    small = replace(image_source("d", layer("small", 300 * 2**20)), origin="vault")
    unasked = gang("local", ("dgx6",), image=pin("e", "registry.lab/own"), cluster="single-6")
    further = (facts("dgx5", images=()), facts("dgx6", images=()))
    unknown_source = SourceUnknown(digest("e"), "registry.lab does not answer")
    wanted = replace(desired(QUAD, solo, unasked), transfer=TransferSettings(110 * 2**20, 170 * 2**20))
    return wanted, observed(*nodes, *further, sources=[source, small, unknown_source])


def images() -> Plan:
    """Nodes that lack different parts of an image, one that has it under another name; one image of no known size."""
    return plan(*_images())


def sync() -> Plan:
    """The same images, and no lane."""
    return make_sync_plan(*_images(), options=PlanOptions("fleet 0"))


def _everything() -> tuple[Desired, Observed]:
    changed = gang(
        "changed",
        ("n1", "n2"),
        "serve",
        "--ctx",
        "1024",
        image=pin("b"),
        container={"env": (("TOKEN", SecretRef("env:TOKEN")),)},
    )
    before = gang("changed", ("n1", "n2"), "serve", "--ctx", "512", container={"env": (("TOKEN", "hunter2"),)})
    broken = gang("broken", ("n3", "n4"))
    proving, littered, fine = gang("proving", ("n5",)), gang("littered", ("n6",)), gang("fine", ("n7",))
    away, new, gone = gang("away", ("n8",)), gang("new", ("n9",)), gang("gone", ("n10", "n11"))
    old_litter = gang("littered", ("n6",), "serve", "--old")
    dead = container(broken, 1, state="exited", exit_code=137, oom_killed=True, finished_at="2026-03-01T11:02:03.4Z")
    left = (container(old_litter, revision=1, state="exited"), container(old_litter, revision=2))
    webui = (Listener(8080, container_id="id-open-webui"),)
    hint = "ssh-keyscan n8 >> known_hosts\nthen compare it with the machine's own"
    lost = Unknown("n8", UnknownKind.HOST_KEY_UNKNOWN, "its host key is not known", hint)
    nodes: tuple[NodeFacts | Unknown, ...] = (
        *(facts(one.node, container(before, one.index), images=(pin(), pin("b"))) for one in before.ranks),
        facts("n3", container(broken, 0)),
        facts("n4", dead),
        facts("n5", container(proving, proved=False), foreign(gpus=1), listeners=webui),
        facts("n6", container(littered, revision=3), *left),
        facts("n7", container(fine)),
        lost,
        facts("n9"),
        *(facts(one.node, container(gone, one.index)) for one in gone.ranks),
    )
    wanted = desired(changed, broken, proving, littered, fine, away, new, nodes=("n10", "n11"))
    return wanted, observed(*nodes)


def everything() -> Plan:
    """One lane of each kind: changed, broken, unproved, littered, as wanted, on an unknown node, new, unwanted."""
    return plan(*_everything())


def everything_desired() -> Desired:
    return _everything()[0]


def everything_observed() -> Observed:
    return _everything()[1]


def everything_status() -> FleetStatus:
    wanted, seen = _everything()
    made = plan(wanted, seen)
    health = {
        "c/fine": Verdict(Health.HEALTHY, "serving"),
        "c/littered": Verdict(Health.PROGRESSING, "loading", "/health answers 503"),
        "c/changed": Verdict(Health.HEALTHY, "serving"),
        "c/proving": Verdict(Health.DEGRADED, "probe", "'Capital of France?' got '!!!!', expected 'Paris'"),
    }
    lanes = tuple(lane_status(view, health.get(view.gang.address)) for view in views(wanted, seen))
    hold = Held("1f00c0de", "node", "n3", "ops@laptop", "a fan is replaced")
    failed = Failed("c/broken", "f1", "rank 1 exited 137", "8a2f01c4de77", "2026-11-30 10:00 UTC")
    return FleetStatus(wanted.fleet, lanes, unwanted(wanted, seen), made.unknown, made.foreign, (hold,), (failed,))


def refused() -> Plan:
    """A lane whose port a foreign container has; another lane could go on and does not while this stands."""
    taken = facts(
        "dgx3", foreign(), listeners=(Listener(30000, container_id="id-open-webui"),), disk_free_bytes=GIB, images=()
    )
    source = SourceImage(digest(), ((PLATFORM, 15_246_417_152),))
    return plan(desired(SOLO, PAIR), observed(taken, facts("dgx1"), facts("dgx2"), sources=[source]))


HOSTILE = "x|y`z`\n## **bold** <b>[link](http://evil)</b> @all #1 \x1b[31m```\n\u202egnp.exe"


def hostile() -> Plan:
    """Names and values as somebody who means harm would choose them."""
    evil = gang(HOSTILE, ("n1",))
    wanted = gang("a", ("n2",), container={"env": (("E", "new"),)})
    live = container(gang("a", ("n2",), container={"env": (("E", HOSTILE * 3),)}))
    lost = replace(unknown("n3", reason=HOSTILE), hint=HOSTILE)
    taken = foreign(HOSTILE, published_ports=(30000,))
    third = gang("third", ("n4",))
    nodes = (facts("n1", container(evil, name="x")), facts("n2", live), lost, facts("n4", taken))
    return plan(desired(wanted, third, gang("b", ("n3",)), nodes=("n1",)), observed(*nodes), commit=HOSTILE)


def settled() -> Plan:
    """Nothing to do."""
    return plan(desired(SOLO), world(SOLO))


def large(lanes: int = 300) -> Plan:
    """So many changed lanes that a delete and a refusal between them would be lost; the last one is deleted."""
    old = [
        gang(f"lane{number:03}", (f"node{number:03}",), *(f"--a{word}={number}" for word in range(20)))
        for number in range(lanes)
    ]
    new = [replace(one, ranks=gang(one.lane, one.nodes, "serve", "--new").ranks) for one in old]
    gone = gang("zzz-gone", ("zz1",))
    refused = gang("zz-refused", ("zz2",))
    seen = world(*old, gone).nodes.values()
    nodes = (*seen, facts("zz2", foreign(published_ports=(30000,))))
    return plan(desired(*new, refused, nodes=("zz1",)), observed(*nodes))


def withheld() -> Plan:
    """A lane is held, and with it what makes room for it; a version of another lane failed before."""
    other = gang("solo", ("n3",))
    made = plan(desired(QUAD, other), observed(*world(PAIR, nodes=("dgx3", "dgx4", "n3")).nodes.values()))
    hold = Held("1f00c0de", "lane", QUAD.lane, "ops@laptop", "a demo until eight", "2026-12-01 20:00 UTC")
    failed = Failed(other.address, other.fingerprint, "rank 0 exited 137", "8a2f01c4de77", "2026-11-30 10:00 UTC")
    return withhold(made, [hold], [failed])


SPLIT = gang("quad", ("n1", "n2", "n3"), cluster="all")


def split() -> Plan:
    """One lane makes room for two."""
    return plan(desired(gang("pair", ("n1", "n2")), gang("solo", ("n3",))), world(SPLIT))
