"""What is refused before anything is touched, check by check, with the exact words."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.core.checks import CHECKS
from reconciler.core.desired import Gang
from reconciler.core.observed import Container, Gpu, Listener, NodeFacts, SourceImage, SourceMissing, SourceUnknown
from reconciler.core.plan import Refusal
from tests.unit.core.build import GIB, PLATFORM, container, desired, digest, facts, foreign, gang, observed, plan

LANE = gang("a", ("n1",), container={"gpus": 1}, memory_bytes=96 * GIB, ports=(30000,), paths=("/models/a.gguf",))
SHORT = "ghcr.io/owner/engine@sha256:aaaaaaaaaaaa"


def refused(seen: NodeFacts, *sources: Any, of: Gang = LANE) -> list[tuple[str, str, str]]:
    made = plan(desired(of), observed(seen, sources=sources))
    assert all(isinstance(item, Refusal) and item.gang == of.address and item.node == "n1" for item in made.refusals)
    assert not (made.refusals and made.steps)
    return [(item.code, item.summary, item.hint) for item in made.refusals]


def source(size: int = GIB, *platforms: str) -> SourceImage:
    return SourceImage(digest(), tuple((name, size) for name in platforms or (PLATFORM,)))


def node(*found: Container, **others: Any) -> NodeFacts:
    return facts("n1", *found, **others)


def test_what_is_in_vaults_only_is_brought_back_from_a_node() -> None:
    reference = f"fleet.invalid/mine:v1@{digest()}"
    rank = LANE.ranks[0]
    pin = replace(rank.container.image, reference=reference, registry="fleet.invalid")
    lane = replace(LANE, ranks=(replace(rank, container=replace(rank.container, image=pin)),))
    (found,) = refused(node(images=()), SourceMissing(digest(), "404"), of=lane)
    hint = f"`fleet pin {reference} --from NODE --publish`, on a node that has it, brings it back into the vault"
    assert ("image-missing", hint) == (found[0], found[2])


def test_every_check_has_a_row_here() -> None:
    assert {code for code, *_ in ROWS} >= {"platform", "image-missing", "image-platform", "disk", "memory", "gpus"}
    assert {code for code, *_ in ROWS} >= {"foreign-gpu", "foreign-port", "name"}
    assert {code for code, *_ in ROWS} <= {check.id for check in CHECKS}


ROWS: list[tuple[str, str, str, NodeFacts, tuple[Any, ...]]] = [
    (
        "platform",
        "n1 is linux/amd64, the spec says linux/arm64",
        "correct `platform` of the node in the spec",
        node(platform="linux/amd64"),
        (),
    ),
    (
        "image-missing",
        f"image ghcr.io/owner/engine@{digest()} is not on n1, and its source does not have it: 404",
        "push the image, or pin a digest that the source has",
        node(images=()),
        (SourceMissing(digest(), "404"),),
    ),
    (
        "image-platform",
        f"image {SHORT} is made for linux/amd64, linux/s390x; n1 is linux/arm64",
        "pin the digest of an image (or index) that has this platform",
        node(images=()),
        (source(GIB, "linux/amd64", "linux/s390x"),),
    ),
    (
        "image-platform",
        f"image {SHORT} is made for no platform; n1 is linux/arm64",
        "pin the digest of an image (or index) that has this platform",
        node(images=()),
        (SourceImage(digest(), ()),),
    ),
    (
        "disk",
        f"n1 has 10.0 GiB free, and needs 47.2 GiB for image {SHORT} (14.5 GiB to fetch, 30.5 GiB unpacked)",
        "free space below /var/lib/docker on n1",
        node(images=(), disk_free_bytes=10 * GIB),
        (source(29 * GIB // 2),),
    ),
    (
        "memory",
        "the lane needs 96.0 GiB a rank; n1 has 64.0 GiB in all",
        "place the lane on other nodes, or correct `memory` of the lane",
        node(memory_total_bytes=64 * GIB),
        (),
    ),
    (
        "foreign-gpu",
        "GPU of n1 is held by foreign container open-webui (ghcr.io/open-webui:main)",
        "stop it yourself: ssh to n1 and `docker stop open-webui`",
        node(foreign(gpus=1)),
        (),
    ),
    (
        "foreign-port",
        "port 30000 of n1 is taken by foreign container open-webui (ghcr.io/open-webui:main)",
        "stop it yourself, or give the cluster or lane another port",
        node(foreign(), listeners=(Listener(30000, container_id="id-open-webui"),)),
        (),
    ),
    (
        "foreign-port",
        "port 30000 of n1 is taken by process nginx, which is not a container of this fleet",
        "stop it yourself, or give the cluster or lane another port",
        node(listeners=(Listener(30000, process="nginx"),)),
        (),
    ),
    (
        "foreign-port",
        "port 30000 of n1 is taken by something this fleet did not start (running there: a process outside Docker)",
        "stop it yourself, or give the cluster or lane another port",
        node(listeners=(Listener(30000),)),
        (),
    ),
    (
        "foreign-port",
        "port 30000 of n1 is taken by something this fleet did not start (running there: ollama, open-webui)",
        "stop it yourself, or give the cluster or lane another port",
        node(foreign(), foreign("ollama"), foreign("off", "exited"), listeners=(Listener(30000),)),
        (),
    ),
    (
        "foreign-port",
        "port 30000 of n1 is taken by foreign container open-webui (ghcr.io/open-webui:main)",
        "stop it yourself, or give the cluster or lane another port",
        node(foreign(published_ports=(80, 30000))),
        (),
    ),
    (
        "foreign-port",
        "port 30000 of n1 is taken by container fleet-x-r0-v1 of fleet other",
        "stop it yourself, or give the cluster or lane another port",
        node(
            container(gang("x", ("n1",)), fleet="other", published_ports=(30000,)),
        ),
        (),
    ),
    (
        "name",
        "another container of n1 has the name fleet-a-r0-v1, which fleet-a-r0-v1.unproved has to get",
        "look at both with `docker ps -a` on n1; rename or remove the one that is not needed",
        node(container(LANE, state="created", proved=False), foreign("fleet-a-r0-v1", "exited")),
        (),
    ),
    (
        "name",
        "another container of n1 has the name fleet-a-r0-v1.unproved, which fleet-a-r0-v1 has to get",
        "look at both with `docker ps -a` on n1; rename or remove the one that is not needed",
        node(container(LANE, state="exited"), foreign("fleet-a-r0-v1.unproved", "exited")),
        (),
    ),
    (
        "gpus",
        "the lane needs 2 GPUs a rank; n1 shows 1",
        "`nvidia-smi` there has to list them; a lane or node without GPUs says `gpus: 0`",
        node(gpus=(Gpu("GB10"),)),
        (),
    ),
    (
        "gpus",
        "the lane needs 2 GPUs a rank; n1 shows none",
        "`nvidia-smi` there has to list them; a lane or node without GPUs says `gpus: 0`",
        node(gpus=()),
        (),
    ),
    (
        "path",
        "/models/a.gguf is not there on n1, or is a link that leads nowhere",
        "bring it there, or correct `path` of the model or `mounts` of the lane",
        node(missing_paths=("/models/a.gguf", "/other")),
        (),
    ),
]


@pytest.mark.parametrize(
    ("code", "summary", "hint", "seen", "sources"), ROWS, ids=[f"{row[0]}: {row[1][:60]}" for row in ROWS]
)
def test_it_is_refused_in_these_words(
    code: str, summary: str, hint: str, seen: NodeFacts, sources: tuple[Any, ...]
) -> None:
    of = gang("a", ("n1",), container={"gpus": 2}) if code == "gpus" else LANE
    assert [(code, summary, hint)] == refused(seen, *sources, of=of)


OLD = gang("a", ("n1",), "serve", "--old", container={"gpus": 1}, ports=(30000,))

FINE: list[tuple[str, NodeFacts, tuple[Any, ...]]] = [
    ("an empty node with room", node(), ()),
    ("the image is there, whatever its source says", node(), (SourceMissing(digest(), "404"),)),
    ("the image is there, so the disk need not hold it again", node(disk_free_bytes=0), (source(),)),
    (
        "the image is there, made for this node; the source's platforms do not matter",
        node(),
        (source(1, "linux/s390x"),),
    ),
    ("the source could not be asked", node(images=()), (SourceUnknown(digest(), "timeout"),)),
    ("exactly enough disk", node(images=(), disk_free_bytes=3255), (source(1000),)),
    ("free disk is not known", node(images=(), disk_free_bytes=None), (source(GIB),)),
    ("exactly enough memory", node(memory_total_bytes=96 * GIB), ()),
    ("memory is not known", node(memory_total_bytes=None), ()),
    ("a path that another lane needs is missing", node(missing_paths=("/other",)), ()),
    ("a foreign container without a GPU", node(foreign()), ()),
    ("a foreign container with a GPU that does not run", node(foreign(state="exited", gpus=1)), ()),
    (
        "a foreign container that would publish the port and does not run",
        node(foreign(state="exited", published_ports=(30000,))),
        (),
    ),
    ("somebody on another port", node(listeners=(Listener(8080, process="nginx"),)), ()),
    (
        "our own lane holds GPU and port and is about to be stopped",
        node(container(OLD), listeners=(Listener(30000, container_id=container(OLD).id),)),
        (),
    ),
    (
        "our own lane holds the port, seen without the right to see whose it is",
        node(container(OLD), listeners=(Listener(30000),)),
        (),
    ),
]


@pytest.mark.parametrize(("what", "seen", "sources"), FINE, ids=[row[0] for row in FINE])
def test_it_is_not_refused(what: str, seen: NodeFacts, sources: tuple[Any, ...]) -> None:
    assert [] == refused(seen, *sources), what


def test_our_own_lane_that_has_stopped_does_not_explain_a_port_that_is_taken() -> None:
    seen = node(container(OLD, state="exited"), listeners=(Listener(30000),))
    assert ["foreign-port"] == [code for code, *_ in refused(seen)]


def test_a_lane_without_gpus_boots_beside_a_foreign_container_that_has_them() -> None:
    assert [] == refused(node(foreign(gpus=1)), of=gang("a", ("n1",)))


def test_a_lane_that_runs_as_wanted_is_not_judged_again() -> None:
    up = node(container(LANE), foreign(gpus=1), memory_total_bytes=1, platform="linux/amd64")
    assert [] == refused(up)


def test_everything_that_is_wrong_is_told_at_once_in_the_order_of_the_checks() -> None:
    pair = gang("a", ("n1", "n2"), container={"gpus": 1}, memory_bytes=96 * GIB)
    seen = [facts(name, foreign(gpus=1), memory_total_bytes=GIB) for name in pair.nodes]
    made = plan(desired(pair), observed(*seen))
    expected = [("memory", "n1"), ("memory", "n2"), ("foreign-gpu", "n1"), ("foreign-gpu", "n2")]
    assert expected == [(item.code, item.node) for item in made.refusals]


def test_refusals_do_not_depend_on_the_order_in_which_a_node_lists_things() -> None:
    found = (foreign("a", gpus=1), foreign("b", gpus=1, published_ports=(30000,)))
    listeners = (Listener(30000, "10.0.0.1", "x"), Listener(30000, "*", "y"))
    one = node(*found, listeners=listeners)
    two = replace(one, containers=found[::-1], listeners=listeners[::-1])
    assert refused(one) == refused(two)
    assert 3 == len(refused(one))
