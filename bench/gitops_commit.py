"""How long a commit waits: from the end of `git push` to the plan of the agent that the repository's hook has woken."""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import Measured
from tests.lab import Lab
from tests.lab.shell import Progress
from tests.lab.specfile import PAIR_AND_SOLO, for_lab, write

NAMES = ("gitops_commit_to_plan_s",)
LAB, SUBNET = "fleetbench", "10.85.0.0/24"
ROUNDS = 5
ALLOWED_S = 5.0
PATIENCE_S = 90.0
HOOK = Path(__file__).parents[1] / "examples/gitops/post-receive-trigger"
FLEET = str(Path(sys.executable).with_name("fleet"))
WHO = ["-c", "user.name=ops", "-c", "user.email=ops@example.com"]


def measure() -> list[Measured]:
    """On a lab of its own; the agent looks by itself only every hour. Needs root on Linux."""
    lab = Lab.up(LAB, SUBNET, 4, progress=Progress())
    try:
        with tempfile.TemporaryDirectory() as folder, _agent(Path(folder)) as clone:
            write(clone, for_lab(lab), PAIR_AND_SOLO)
            _planned_after_s(clone, "first")  # the fleet is made: it is not what is measured
            took_s = [_planned_after_s(clone, f"round {number}") for number in range(ROUNDS)]
    finally:
        lab.down()
    return [Measured(NAMES[0], 1.0, "5 s", statistics.median(took_s), ALLOWED_S, "ms")]


@contextmanager
def _agent(folder: Path) -> Iterator[Path]:
    """A repository that wakes an agent, and the agent; a clone to push from."""
    bare, clone, work = folder / "fleet.git", folder / "clone", folder / "work"
    for words in (["--bare", str(bare)], [str(clone)]):
        subprocess.run(["git", "init", "--quiet", "--initial-branch=main", *words], check=True)
    shutil.copy(HOOK, bare / "hooks/post-receive")
    for key, value in (("fleet.work", str(work)), ("fleet.command", FLEET)):
        subprocess.run(["git", "-C", str(bare), "config", key, value], check=True)
    _git(clone, "remote", "add", "origin", str(bare))
    words = ["gitops", "run", "--repo", str(bare), "--work", str(work), "--interval", "1h"]
    with (folder / "log").open("w") as log:
        agent = subprocess.Popen([FLEET, *words, "--events", str(folder / "events")], stdout=log, stderr=log)
        try:
            while not (work / "wake").exists():
                time.sleep(0.1)
            yield clone
        finally:
            agent.terminate()
            agent.wait()


def _planned_after_s(clone: Path, message: str) -> float:
    """One round: push, and wait for the plan; then until the agent has done with the commit."""
    _git(clone, "add", "--all")
    _git(clone, "commit", "--quiet", "--allow-empty", "--message", message)
    commit = _git(clone, "rev-parse", "HEAD")
    _git(clone, "push", "--quiet", "origin", "HEAD:main")
    began_s = time.time()
    planned_s = _until(clone.parent, commit) - began_s
    return max(0.0, planned_s)


def _until(folder: Path, commit: str) -> float:
    """When the agent planned for this commit, seconds since 1970; returns when the commit is good."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        status = folder / "work" / "status.json"
        if status.exists() and json.loads(status.read_text()).get("good") == commit:
            break
        time.sleep(0.1)
    lines = (folder / "events").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    planned = [item for item in events if item["kind"] == "gitops.planned" and item["event"]["commit"] == commit]
    assert planned, (folder / "log").read_text()
    return float(planned[0]["at_s"])


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *WHO, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()
