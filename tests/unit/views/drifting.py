"""Drift reports that are shown in golden files and in a browser."""

from dataclasses import replace

from reconciler.core.drift import (
    ClusterDrawn,
    Finding,
    Ignore,
    Kind,
    NodeDrawn,
    Past,
    Report,
    Severity,
    Suppressed,
)
from reconciler.core.gate import Health
from reconciler.core.observed import Unknown, UnknownKind
from reconciler.core.plan import Foreign
from reconciler.core.status import FleetStatus, LaneStatus, RankStatus, Reach, Sync, Unwanted
from reconciler.core.withhold import Held

NOON_S = 1_796_040_000.0
"""2026-11-30, 12:00 UTC."""
HOUR_S = 3600.0
QUAD, PAIR, CODER, SMALL = (
    "4nodes-switch/mimo26-flash-4x",
    "dgx56/glm53-kindling-2x",
    "solo-7/qwen-coder",
    "dac/qwen-2x",
)
C977 = "ghcr.io/fujitsupolycom/sparkring@sha256:c977a2d2e41b09c37d15ce1a3bb0f2f8d9f5b1c7706bd1a29c2a9a3be4a0b6d1"
OTHER = C977.replace("c977a2d2", "1f00beef")
DAC, SPARE = ClusterDrawn("dac", ("dgx1", "dgx2")), ClusterDrawn("spare", ("dgx8",))

FINDINGS = (
    Finding(
        Kind.RUNTIME,
        f"{PAIR}/1@dgx6",
        "state",
        "running",
        "exited with 137 (out of memory)",
        "boots the whole gang again",
        "2026-11-30T09:12:44Z",
        "the container's state, and the daemon's event `oom`",
        Severity.OUTAGE,
    ),
    Finding(
        Kind.CONFIG,
        f"{QUAD}/2@dgx3",
        "env.VLLM_KV_CACHE_LAYOUT",
        "BLHNC",
        "NHD",
        "replaces the gang: dark for about 4m10s",
        "2026-11-29T22:41:09Z",
        "the live container's environment",
    ),
    Finding(
        Kind.CONFIG,
        f"{QUAD}/2@dgx3",
        "restart",
        "no",
        "always",
        "replaces the gang: dark for about 4m10s",
        "2026-11-29T22:41:09Z",
        "the live container's restart policy",
    ),
    Finding(
        Kind.IDENTITY,
        f"{QUAD}/0@dgx1",
        "image",
        C977,
        OTHER,
        "replaces the gang: dark for about 4m10s",
        "",
        "the content behind the container's image",
    ),
    Finding(
        Kind.INTENT,
        "solo-7/llama-old",
        "placement",
        "no such lane",
        "1 container, running",
        "stops and removes it",
        "2026-11-28T07:00:00Z",
        "the labels of its containers",
        Severity.NOTICE,
    ),
    Finding(
        Kind.HOST,
        "dgx7",
        "reach",
        "reachable",
        "no answer in 10 s",
        "nothing, until it can be read",
        "2026-11-30T06:00:03Z",
        "the connection that was tried",
        Severity.OUTAGE,
    ),
    Finding(
        Kind.HOST,
        "dgx2",
        "disk",
        "at least 60 GiB free on /var/lib/docker",
        "12.4 GiB free",
        "nothing: `fleet images gc` makes room",
        "",
        "df",
        Severity.NOTICE,
    ),
)


def lane(address: str, *nodes: str, health: Health = Health.HEALTHY, sync: Sync = Sync.IN_SYNC) -> LaneStatus:
    """A lane that is so on all its nodes."""
    cluster, _, name = address.partition("/")
    ranks = tuple(
        RankStatus(rank, node, "worker" if rank else "head", f"{name}-{rank}", sync, health, Reach.REACHABLE, "running")
        for rank, node in enumerate(nodes)
    )
    url = f"http://{nodes[0]}.lan:30000/v1"
    return LaneStatus(address, name, cluster, url, name, sync, health, Reach.REACHABLE, "", ranks)


def lanes() -> tuple[LaneStatus, ...]:
    """One lane in each state that is worth a look."""
    quad = lane(QUAD, "dgx1", "dgx2", "dgx3", "dgx4", sync=Sync.OUT_OF_SYNC)
    quad = replace(quad, detail="other settings: env.VLLM_KV_CACHE_LAYOUT, restart; another image")
    pair = lane(PAIR, "dgx5", "dgx6", health=Health.DEGRADED, sync=Sync.OUT_OF_SYNC)
    dead = replace(pair.ranks[1], health=Health.DEGRADED, detail="exited with 137 (out of memory) 3 h ago")
    alive = replace(pair.ranks[0], health=Health.HEALTHY, sync=Sync.IN_SYNC)
    pair = replace(pair, ranks=(alive, dead), detail="rank 1 on dgx6 exited with 137 (out of memory)")
    pair = replace(pair, stand_ins=("dgx56/glm52-2x",))
    lost = lane(CODER, "dgx7", health=Health.UNKNOWN, sync=Sync.UNKNOWN)
    away = replace(lost.ranks[0], reach=Reach.UNREACHABLE, detail="no answer in 10 s")
    lost = replace(lost, reach=Reach.UNREACHABLE, ranks=(away,), detail="dgx7: no answer in 10 s")
    small = lane(SMALL, "dgx1", "dgx2", health=Health.PROGRESSING)
    return quad, pair, lost, replace(small, detail="loading weights, 2m04s since its start", phase="weights")


def status() -> FleetStatus:
    """What the nodes serve."""
    unknown = (Unknown("dgx7", UnknownKind.TIMEOUT, "no answer in 10 s", "is it on? `ssh dgx7` tells more"),)
    held = Held("h1", "lane", "mimo26-flash-4x", "ana", "a measurement runs", "2026-12-01T08:00:00Z")
    foreign = (Foreign("dgx3", "open-webui", (8080,)),)
    return FleetStatus(
        "dgx-lab", lanes(), (Unwanted("solo-7/llama-old", ("dgx7",), 1),), unknown, foreign, holds=(held,)
    )


def past(number: int) -> Past:
    """An earlier report; the higher, the longer ago."""
    counts = {Kind.INTENT: number % 3 == 0, Kind.CONFIG: max(0, 4 - number // 3), Kind.RUNTIME: number in {4, 5, 11}}
    counts |= {Kind.HOST: 1 + number % 2}
    return Past(NOON_S - number * HOUR_S, {kind: int(n) for kind, n in counts.items()}, int(number in {1, 2, 9}))


def demo() -> Report:
    """A morning after a night: one lane dark, one changed by hand, one node away, one switched off."""
    nodes = [NodeDrawn(f"dgx{number}", "reachable") for number in range(1, 7)]
    nodes += [NodeDrawn("dgx7", "unreachable", "no answer in 10 s"), NodeDrawn("dgx8", "off", "declared off")]
    rule = Ignore("config", "4nodes-switch/*", "env.NCCL_DEBUG", "measuring the switch", "2026-12-04")
    old = Ignore("host", "dgx2", "disk", "a new disk is on its way", "2026-11-27")
    return Report(
        fleet="dgx-lab",
        at_s=NOON_S,
        commit="4f2c1ab09d3e7731b5d2c6a19f0e8d7c6b5a4f3e",
        spec="9d41f2c07a3be15c0f66a1d4be90873ab5cc",
        tool="fleet 0.1.0",
        findings=FINDINGS,
        suppressed=(Suppressed(rule, 4),),
        expired=(old,),
        status=status(),
        clusters=(
            ClusterDrawn("4nodes-switch", ("dgx1", "dgx2", "dgx3", "dgx4")),
            DAC,
            ClusterDrawn("dgx56", ("dgx5", "dgx6")),
            ClusterDrawn("solo-7", ("dgx7",)),
            SPARE,
        ),
        nodes=tuple(nodes),
        history=tuple(past(number) for number in range(24, 0, -1)),
        new=frozenset({FINDINGS[0].id, FINDINGS[5].id}),
        gone=1,
    )


def calm() -> Report:
    """Nothing is other than wanted, and there was no report before."""
    good = (lane(QUAD, "dgx1", "dgx2", "dgx3", "dgx4"),)
    return replace(
        demo(),
        findings=(),
        suppressed=(),
        expired=(),
        status=FleetStatus("dgx-lab", good, (), (), ()),
        clusters=(ClusterDrawn("4nodes-switch", ("dgx1", "dgx2", "dgx3", "dgx4")),),
        nodes=tuple(NodeDrawn(f"dgx{number}", "reachable") for number in range(1, 5)),
        history=(),
        new=frozenset(),
        gone=0,
    )


EVIL = (
    "<script>alert(1)</script>",
    "\"' onmouseover=alert(1) x='\"",
    "</style></script><img src=http://evil.example/x onerror=alert(1)>",
    "javascript:alert(1)",
    "{{ 7*7 }}{% raw %}]]>--><!--",
    "abc\u202egnp.exe",
    "nul\x00nul\x1b[31m",
    "w" * 3000,
    "\N{ROCKET}\N{FAMILY}\u200d\N{GIRL} \u0645\u0631\u062d\u0628\u0627 \N{PILE OF POO}",
)


def hostile() -> Report:
    """Every text from outside as somebody who means harm would choose it."""
    made = demo()
    findings = tuple(
        Finding(kind, f"{evil}/{evil}/0@{evil}", evil, evil, f"{evil} found", evil, evil, evil, severity)
        for evil in EVIL
        for kind, severity in ((Kind.CONFIG, Severity.OUTAGE), (Kind.HOST, Severity.NOTICE))
    )
    drawn = tuple(lane(f"{evil}/{evil}", evil, evil) for evil in EVIL)
    bad = tuple(replace(item, detail=evil, url=evil, served_name=evil) for item, evil in zip(drawn, EVIL, strict=True))
    rule = Ignore("*", EVIL[0], EVIL[1], EVIL[2], "2026-12-04")
    return replace(
        made,
        fleet=EVIL[2],
        commit=EVIL[0],
        spec=EVIL[0],
        tool=EVIL[1],
        findings=findings,
        suppressed=(Suppressed(rule, 1),),
        expired=(rule,),
        status=replace(made.status, lanes=bad, foreign=tuple(Foreign(evil, evil) for evil in EVIL)),
        clusters=tuple(ClusterDrawn(evil, (evil,)) for evil in EVIL),
        nodes=tuple(NodeDrawn(evil, "unreachable", evil) for evil in EVIL),
        new=frozenset(item.id for item in findings if item.kind is Kind.HOST),
    )
