"""Whether a node as such is in order: clock, Docker, disk, what was left behind on it."""

import re
from collections.abc import Iterator

from reconciler.core.checks.case import Site
from reconciler.core.checks.finding import Finding, Result
from reconciler.core.figures import size
from reconciler.core.observed import Container, Owner

CLOCK_WARN_S = 2.0
CLOCK_FAIL_S = 60.0
"""Beyond a minute tokens and certificates are refused, and nobody can tell which of two ranks failed first."""

OLDEST_DOCKER = (20, 10)
"""The oldest that fleet is tested with."""

OFTEN = 3
"""So many boots in a day are no maintenance any more."""

DISK_LOW_BYTES = 20 * 2**30
"""Less than the smallest engine image takes while it comes."""

GPU_HELD_BYTES = 2**30
"""A desktop takes less."""


def clock(site: Site) -> Iterator[Finding]:
    """Against the controller's: what is within the round trip is not told apart."""
    found = site.facts.host.clock
    if found is None:
        yield site.found("clock", Result.UNKNOWN, "the clock is not told")
        return
    way = "ahead of" if found.offset_s > 0 else "behind"
    told = f"the clock of {site.node} is {abs(found.offset_s):.0f} s {way} this machine's"
    mend = "start its time service: `timedatectl set-ntp true`; where every node says so, this machine's clock is off"
    if found.surely_off_s > CLOCK_FAIL_S:
        yield site.found("clock", Result.FAIL, told, mend)
    elif found.surely_off_s > CLOCK_WARN_S:
        yield site.found("clock", Result.WARN, told, mend)


def docker_version(site: Site) -> Iterator[Finding]:
    """`28.5.2`, `20.10.24+dfsg1`."""
    version = site.facts.docker_version
    match = re.match(r"(\d+)\.(\d+)", version)
    least = ".".join(str(part) for part in OLDEST_DOCKER)
    if match is None:
        yield site.found("docker-version", Result.UNKNOWN, f"Docker says its version is {version or 'nothing'}")
    elif (int(match[1]), int(match[2])) < OLDEST_DOCKER:
        yield site.found(
            "docker-version",
            Result.FAIL,
            f"{site.node} has Docker {version}; fleet needs {least} or later",
            "install a later Docker Engine there",
        )
    else:
        yield site.found("docker-version", Result.OK, f"Docker {version}")


def reboots(site: Site) -> Iterator[Finding]:
    """A machine that falls over takes its lanes along."""
    boots = site.facts.host.boots_in_a_day
    if boots is None:
        yield site.found("reboots", Result.UNKNOWN, "how often it started is not told (`last` says nothing there)")
    elif boots >= OFTEN:
        yield site.found(
            "reboots",
            Result.WARN,
            f"{site.node} started {boots} times within a day",
            f"`last -x reboot` and `journalctl -b -1 -e` on {site.node} say when and why: power, heat, kernel",
        )


def disk_low(site: Site) -> Iterator[Finding]:
    """Logs and caches grow also where no image comes."""
    free = site.facts.disk_free_bytes
    if free is None:
        yield site.found("disk-low", Result.UNKNOWN, "free disk is not told")
    elif free < DISK_LOW_BYTES:
        yield site.found(
            "disk-low",
            Result.WARN,
            f"{site.node} has {size(free)} free below {site.facts.docker_root}",
            "`fleet images gc` shows what of the images nothing uses",
        )
    else:
        yield site.found("disk-low", Result.OK, f"{size(free)} free")


def gpu_count(site: Site) -> Iterator[Finding]:
    """What the spec says a node has; one that says nothing has none that matter."""
    declared, there = site.declared.gpus, len(site.facts.gpus)
    if declared and declared != there:
        yield site.found(
            "gpu-count",
            Result.WARN,
            f"the spec says {site.node} has {declared} GPUs; `nvidia-smi` there lists {there or 'none'}",
            "correct `gpus` of the node in the spec, or look why the driver does not see them",
        )


def gpu_process(site: Site) -> Iterator[Finding]:
    """A notebook that somebody left running."""
    known = {item.id for item in site.facts.containers}
    for item in site.facts.host.gpu_processes or ():
        if item.container_id not in known and (item.memory_bytes or 0) >= GPU_HELD_BYTES:
            yield site.found(
                "gpu-process",
                Result.WARN,
                f"process {item.name} ({item.pid}) of {site.node} holds {size(item.memory_bytes or 0)} of a GPU, "
                "and is in no container",
                f"find whose it is: `ps -fp {item.pid}` on {site.node}",
            )


def image_store(site: Site) -> Iterator[Finding]:
    """The store lists an image whose content for this platform is not there: pulls of it can look done."""
    wanted = {rank.container.image.digest for rank in site.ranks}
    for image in site.facts.images:
        held = sorted(wanted & {image.id, *image.digests})
        if held and not image.usable:
            yield site.found(
                "image-store",
                Result.WARN,
                f"{site.node} lists image {held[0][:19]}, and its content for {site.facts.platform} is not there",
                "the next apply brings it; `docker image rm` there takes the empty entry away",
            )


def orphan(site: Site) -> Iterator[Finding]:
    """A rank that runs while others of its gang do not serves nobody, and holds its memory."""
    for item in site.ours():
        if item.owner is not None and item.owner.size > 1:
            missing = [index for index in range(item.owner.size) if not _runs(site, item.owner, index)]
            away = [node for node in sorted(site.observed.nodes) if site.observed.facts(node) is None]
            if missing and away:
                yield site.found("orphan", Result.UNKNOWN, f"ranks of {item.owner.gang} may be on {', '.join(away)}")
            elif missing:
                yield site.found("orphan", Result.WARN, *_orphaned(site, item, item.owner, missing))


def _runs(site: Site, owner: Owner, index: int) -> bool:
    known = (facts for node in site.observed.nodes if (facts := site.observed.facts(node)) is not None)
    owners = (item.owner for facts in known for item in facts.containers if item.is_running)
    return any(one and (one.fleet, one.gang, one.rank) == (owner.fleet, owner.gang, index) for one in owners)


def _orphaned(site: Site, item: Container, owner: Owner, missing: list[int]) -> tuple[str, str]:
    """The head is what the others wait for: a worker without it is of no use at all."""
    ranks = f"rank{'s' * (len(missing) > 1)} {', '.join(str(index) for index in missing)}"
    lost = "its head (rank 0)" if 0 in missing else ranks
    is_wanted = any(gang.address == owner.gang for gang in site.desired.gangs)
    mend = "`fleet apply` boots the gang again" if is_wanted else "`fleet apply` stops it: no placement wants it"
    return f"{item.name} runs on {site.node} without {lost} of {owner.gang}", mend
