"""The `fleet` command on the lab, as a person or a CI job runs it: a process of its own, its output in a pipe."""

import functools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from . import Lab, specfile
from .node import Node
from .shell import LabError, side_by_side

FLEET = str(Path(sys.executable).with_name("fleet"))
Edit = Callable[[dict[str, Any]], object]
HEALTH = {"boot": "30s", "interval": "200ms", "probes": [{"chat": specfile.QUESTION, "expect": "Paris"}]}


class Ran(NamedTuple):
    """How a command ended and what it said."""

    rc: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Everything it said, for searching and for messages of failed assertions."""
        return f"{self.out}{self.err}"


@dataclass(frozen=True)
class Desk:
    """Where an operator sits: a folder with a spec for the lab, and the command. Edit the three files at will."""

    lab: Lab
    folder: Path

    def place(self, *placements: tuple[str, str]) -> None:
        """What runs where, from now on: pairs of lane and cluster."""
        (self.folder / "fleet.yaml").write_text(specfile.fleet_text(placements))

    def edit(self, file: str, edit: Edit) -> None:
        """Change a file of the spec by its parsed content."""
        path = self.folder / file
        content = yaml.safe_load(path.read_text())
        edit(content)
        path.write_text(yaml.safe_dump(content, sort_keys=False))

    def edit_lane(self, lane: str, **keys: object) -> None:
        """Set keys of a lane; None takes a key away."""

        def change(content: dict[str, Any]) -> None:
            found = content["lanes"].setdefault(lane, {})
            found.update(keys)
            content["lanes"][lane] = {key: value for key, value in found.items() if value is not None}

        self.edit("lanes.yaml", change)

    def edit_node(self, node: str, **ssh: object) -> None:
        """Set keys of a node's `ssh`; None takes a key away."""

        def change(content: dict[str, Any]) -> None:
            found = {**content["nodes"][node]["ssh"], **ssh}
            content["nodes"][node]["ssh"] = {key: value for key, value in found.items() if value is not None}

        self.edit("inventory.yaml", change)

    def custom(self, lane: str, script: str, **keys: object) -> None:
        """A lane of one rank whose engine is a shell script in the lab's small image."""
        argv = ["sh", "-c", script]
        health = {"boot": "4s", "interval": "200ms"}
        own = {"engine": "custom", "image": self.lab.images["tiny"], "nodes": 1, "argv": argv, "health": health}
        self.edit_lane(lane, **{**own, "stop_grace": "1s", **keys})

    def fleet(self, *args: str, stdin: str = "", timeout: float = 90, env: Mapping[str, str] | None = None) -> Ran:
        """Run the command to its end. No output of it ever holds a traceback, nor an escape code: this is a pipe."""
        done = subprocess.run(
            [FLEET, *args],
            cwd=self.folder,
            env=environment(env),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return checked(Ran(done.returncode, done.stdout, done.stderr))

    def apply(self, *args: str) -> Ran:
        """`fleet apply --yes` that has to succeed."""
        ran = self.fleet("apply", "--yes", *args)
        assert ran.rc == 0, ran.said
        return ran

    @contextmanager
    def started(self, *args: str) -> Iterator["subprocess.Popen[str]"]:
        """The command while it runs, for interrupting it; its output is unbuffered lines. Killed at the end."""
        with subprocess.Popen(
            [FLEET, *args],
            cwd=self.folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        ) as process:
            try:
                yield process
            finally:
                process.kill()


def desk(lab: Lab, folder: Path, *placements: tuple[str, str]) -> Desk:
    """A desk with the lab's spec, quick to give up and to stop."""
    inventory = specfile.Inventory(
        nodes={name: node.address for name, node in lab.nodes.items()},
        host_keys={name: node.host_key for name, node in lab.nodes.items()},
        image=lab.images["llamacpp"],
        identity_file=str(lab.identity_file),
    )
    specfile.write(folder, inventory, placements)
    made = Desk(lab, folder)
    for lane in specfile.lanes(inventory):
        made.edit_lane(lane, health=HEALTH, stop_grace="1s")
    return made


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """What cron gives, and nothing that the tests' own environment has."""
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8", **(more or {})}


def checked(ran: Ran) -> Ran:
    """What holds for every output there is. An engine's traceback is shown behind a bar, never at a line's start."""
    assert re.search(r"^Traceback", ran.said, re.MULTILINE) is None, ran.said
    assert "\x1b" not in ran.said, ran.said
    assert "Task exception was never retrieved" not in ran.said, ran.said
    return ran


def read_until(process: "subprocess.Popen[str]", wanted: str, seconds: float = 60) -> str:
    """Read the process's lines up to the first that holds `wanted`; all that was read."""
    assert process.stdout
    read = ""
    deadline = time.monotonic() + seconds
    for line in process.stdout:
        read += line
        if wanted in line:
            return read
        if time.monotonic() > deadline:
            break
    raise LabError(f"no line with {wanted!r} came:\n{read}")


def interrupted(process: "subprocess.Popen[str]", read: str = "") -> tuple[Ran, float]:
    """Send Ctrl-C; how the command ended, and after how many seconds. `read`: what was read of its output before."""
    since = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    return checked(Ran(process.returncode, read + out, err)), time.monotonic() - since


def containers(lab: Lab) -> dict[str, list[str]]:
    """Every container of every node whose Docker answers: id, name and state, whoever made it."""
    form = "{{.ID}} {{.Names}} {{.State}}"

    def of(node: Node) -> list[str] | None:
        if not node.is_on:
            return None
        asked = node.exec(["docker", "ps", "-a", "--no-trunc", "--format", form], check=False)
        return None if asked.returncode else sorted(asked.stdout.splitlines())

    found = side_by_side(functools.partial(of, node) for node in lab.nodes.values())
    return {name: there for name, there in zip(lab.nodes, found, strict=True) if there is not None}


def names(lab: Lab) -> dict[str, list[str]]:
    """The names of all running containers by node, for the nodes that have any."""
    found = {name: sorted(node.docker("ps", "--format", "{{.Names}}").split()) for name, node in lab.nodes.items()}
    return {name: there for name, there in found.items() if there}
