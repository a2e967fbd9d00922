"""`fleet gitops run`: the agent that follows a branch, as a command: its signals, its endpoint, its log."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.recording import Events, tell
from reconciler.cli.wiring import AsJson, load, run, say_json, stop_on_signals

if TYPE_CHECKING:
    from reconciler.fleet import Fleet
    from reconciler.gitops.agent import Agent
    from reconciler.gitops.log import Log
    from reconciler.gitops.workplace import Workplace


class Heal(StrEnum):
    """What is done about lanes that drifted."""

    OFF = "off"
    REPORT = "report"
    ON = "on"


RUN = """Follow a branch: each new commit becomes the fleet, on a box that reaches the nodes. Runs until it is stopped.

Only forward: a branch that was rewritten stops it (`fleet gitops accept`). One attempt for a commit and what was seen;
a newer commit takes over, also in the middle of a long boot, by a safe interrupt. A commit whose spec has a fault
changes nothing. What the spec says under `gitops` (windows, budget, healing, protected lanes) binds it.

The work folder has its copy of the branch, the files of commits, its lock, and the recorded state unless FLEET_STATE or
the spec says otherwise. SIGHUP, or `fleet gitops trigger`, has it look at once; SIGTERM ends it within five seconds.

For example: fleet gitops run --repo /srv/fleet.git --work /var/lib/fleet/gitops --heal report
"""
DEFAULT_WORK = Path(".fleet-gitops")

Repo = Annotated[str, typer.Option("--repo", metavar="URL", help="The repository, as git names it.")]
Branch = Annotated[str, typer.Option("--branch", help="The branch that is followed.", show_default=True)]
Within = Annotated[str, typer.Option("--path", metavar="DIR", help="Where in it the spec is: a folder, or a file.")]
Interval = Annotated[str, typer.Option("--interval", metavar="DURATION", help="Between two looks.", show_default=True)]
Once = Annotated[bool, typer.Option("--once", help="Look, do what there is to do, and end: for a timer.")]
Work = Annotated[
    Path, typer.Option("--work", envvar="FLEET_GITOPS_WORK", help="The agent's folder.", show_default=True)
]
Healing = Annotated[Heal | None, typer.Option("--heal", help="What to do about drift; default: as the spec says.")]
Signers = Annotated[
    Path | None,
    typer.Option("--allowed-signers", metavar="FILE", help="Only commits signed by a key of this file (ssh-keygen)."),
]
Listen = Annotated[
    str | None,
    typer.Option("--metrics-listen", metavar="HOST:PORT", help="Serve /metrics and /healthz; only PORT: on loopback."),
]
LogJson = Annotated[bool, typer.Option("--log-json", help="Log lines as JSON.")]


def follow(
    context: typer.Context,
    repo: Repo,
    branch: Branch = "main",
    path: Within = ".",
    interval: Interval = "60s",
    once: Once = False,
    work: Work = DEFAULT_WORK,
    heal: Healing = None,
    allowed_signers: Signers = None,
    metrics_listen: Listen = None,
    log_json: LogJson = False,
    as_json: AsJson = False,
    events: Events = None,
) -> None:
    """Take the folder, then follow the branch."""
    from reconciler.gitops.agent import Agent, Options
    from reconciler.gitops.git import source_of
    from reconciler.gitops.log import Log
    from reconciler.gitops.looking import is_within
    from reconciler.gitops.mirror import Mirror
    from reconciler.gitops.workplace import Workplace

    if not is_within(path):
        raise typer.BadParameter(f"--path {path} leads out of the repository")
    place = Workplace(work.absolute())
    mirror = Mirror(place.mirror, source_of(repo), branch, allowed_signers)
    options = Options(path, _seconds(interval), heal)
    log = Log(_to_stderr, time.time, is_json=log_json)

    def loaded(file: Path) -> "Fleet":
        return load(context, file)

    async def work_on() -> int:
        agent = Agent(place, mirror, options, loaded, log, tell)
        agent.has_folder = is_taken
        with _endpoint(agent, metrics_listen, log), _woken(agent, place):
            return await agent.run(once=once)

    with place.taken() as is_taken:
        code = run(context, work_on())
    if as_json:
        say_json(place.told())
    raise typer.Exit(code)


@contextmanager
def _woken(agent: "Agent", place: "Workplace") -> Iterator[None]:
    """What people and systemd tell the agent while it runs: look now, stop; and what systemd is told."""
    import asyncio
    import os

    from reconciler.cli.signals import on_signal
    from reconciler.gitops import systemd

    loop = asyncio.get_running_loop()
    agent.stopping = stop_on_signals("stopping: what is under way ends safely; once more to leave at once")
    on_signal(signal.SIGHUP, agent.wake.set)
    wakes = place.wakes()

    def woken() -> None:
        os.read(wakes, 4096)
        agent.wake.set()

    loop.add_reader(wakes, woken)
    alive = loop.create_task(_signs_of_life(agent))
    systemd.tell("READY=1")
    try:
        yield
    finally:
        systemd.tell("STOPPING=1")
        alive.cancel()
        loop.remove_reader(wakes)
        os.close(wakes)


async def _signs_of_life(agent: "Agent") -> None:
    import asyncio

    from reconciler.gitops import systemd

    every_s = systemd.watchdog_s()
    while every_s is not None:
        if agent.is_alive:
            systemd.tell("WATCHDOG=1")
        await asyncio.sleep(every_s / 3)


@contextmanager
def _endpoint(agent: "Agent", listen: str | None, journal: "Log") -> Iterator[None]:
    """The metrics and the health of the agent, while it runs."""
    from reconciler.gitops.endpoint import Endpoint, address_of
    from reconciler.gitops.workplace import WorkError

    if listen is None:
        yield
        return
    try:
        host, port = address_of(listen)
    except ValueError as error:
        raise typer.BadParameter(f"--metrics-listen: {error}") from None
    try:
        server = Endpoint(host, port, agent.metrics, lambda: agent.is_alive)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise WorkError(f"--metrics-listen {listen}: {why}", "name another port, or end who has it") from None
    journal.info(f"metrics and health at http://{host}:{server.port}", port=server.port)
    try:
        yield
    finally:
        server.close()


def _seconds(text: str) -> float:
    import specs

    try:
        seconds = specs.parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(f"--interval: {error}; write for example 60s or 5m") from None
    if seconds <= 0:
        raise typer.BadParameter("--interval has to be longer than nothing")
    return seconds


def _to_stderr(line: str) -> None:
    """A journal that is gone is no reason to stop."""
    import contextlib

    with contextlib.suppress(OSError):
        sys.stderr.write(line)
        sys.stderr.flush()
