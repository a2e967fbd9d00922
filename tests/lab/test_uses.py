"""Unattended use, by the very files of `examples/`: a git push that applies."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from . import Lab, serving
from .fleet_cli import FLEET, Desk, containers, desk, names, read_until
from .shell import run, wait_until

pytestmark = pytest.mark.lab

EXAMPLES = Path(__file__).parents[2] / "examples"
SOLO, PAIR = ("solo", "single-3"), ("pair", "pair-a")


# a push applies


@dataclass(frozen=True)
class Forge:
    """A bare repository with the hook, and a clone of it in which somebody writes the spec."""

    lab: Lab
    bare: Path
    desk: Desk

    def git(self, *words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """git in the clone."""
        return run(["git", *words], cwd=self.desk.folder, check=check, timeout=120, env=git_env())

    def commit(self, subject: str = "change") -> str:
        """Commit everything; the short id."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", subject)
        return self.git("rev-parse", "--short", "HEAD").stdout.strip()

    def push(self, *words: str) -> str:
        """Push (main by default); what git and the hook said."""
        done = self.git("push", "origin", *(words or ("main",)))
        return re.sub(r"^remote: ?", "", done.stdout + done.stderr, flags=re.MULTILINE)

    @contextmanager
    def pushing(self) -> Iterator["subprocess.Popen[str]"]:
        """A push while it runs, in a process group of its own."""
        with subprocess.Popen(
            ["git", "push", "origin", "main"],
            cwd=self.desk.folder,
            env=git_env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            yield process

    @property
    def home(self) -> Path:
        """Where the hook keeps its things."""
        return self.bare / "fleet"

    def wait_for_end(self) -> None:
        """Until no push is being applied."""
        run(["flock", str(self.home / "lock"), "true"], timeout=60)


def git_env() -> dict[str, str]:
    """As for a person with a name and no settings."""
    person = {f"GIT_{role}_{what}": "ops" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {"PATH": "/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", **person}


def readme_commands() -> list[list[str]]:
    """The commands by which `examples/gitops/README.md` makes the repository."""
    text = (EXAMPLES / "gitops/README.md").read_text()
    block = next(part for part in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "git init" in part)
    return [line.split() for line in block.splitlines()]


def place_of(word: str, bare: Path) -> str:
    places = {"/srv/fleet.git": str(bare), "/opt/fleet/bin/fleet": FLEET}
    return places.get(word, word.replace("/path/to/examples", str(EXAMPLES)))


@pytest.fixture
def forge(clean_lab: Lab, tmp_path: Path) -> Forge:
    """Made as the README says, with one lane on node3 committed and not yet pushed."""
    bare = tmp_path / "fleet.git"
    folder = tmp_path
    for words in readme_commands():
        argv = [place_of(word, bare) for word in words]
        if argv[0] == "cd":
            folder = Path(argv[1])
        else:
            run(argv, cwd=folder, env=git_env())
    run(["git", "clone", "--quiet", str(bare), str(tmp_path / "clone")], env=git_env())
    made = Forge(clean_lab, bare, desk(clean_lab, tmp_path / "clone", SOLO))
    made.git("checkout", "--quiet", "-B", "main")
    made.commit()
    return made


def context_size(forge: Forge, tokens: int) -> None:
    """Edit the spec: another argument for the engine."""
    forge.desk.edit("lanes.yaml", lambda content: content["models"]["bigram"]["args"].update({"ctx-size": tokens}))


def answer(lab: Lab) -> str:
    """What the lane on node3 says to a user."""
    return serving.ask(f"http://{lab.nodes['node3'].address}:30000")


def test_a_push_boots_a_lane_and_an_edit_replaces_it(forge: Forge) -> None:
    short = forge.git("rev-parse", "--short", "HEAD").stdout.strip()
    said = forge.push()
    assert f"commit {short}" in said
    assert f"fleet: {short} is applied" in said
    assert {"node3": ["fleet-solo-r0-v1"]} == names(forge.lab)
    assert "Paris" in answer(forge.lab)

    context_size(forge, 256)
    short = forge.commit()
    said = forge.push()
    assert f"commit {short}" in said
    assert "argv: --ctx-size 512 -> --ctx-size 256" in said
    assert "as the last time" in said  # the state of the first push is there
    assert {"node3": ["fleet-solo-r0-v2"]} == names(forge.lab)
    assert "Paris" in answer(forge.lab)
    assert len(list(forge.home.glob("tree.*"))) == 1
    drift = forge.desk.fleet("drift", "--file", str(forge.home / "current/fleet.yaml"))
    assert drift.rc == 0, drift.said


def test_what_changes_nothing_says_why_and_touches_nothing(forge: Forge) -> None:
    forge.push()
    before = containers(forge.lab)
    applied = (forge.home / "current").resolve()

    (forge.desk.folder / "README.md").write_text("words\n")
    assert f"fleet: {forge.commit()} has nothing to do" in forge.push()

    lanes = forge.desk.folder / "lanes.yaml"
    good, lines = lanes.read_text(), lanes.read_text().count("\n")
    lanes.write_text(f"{good}lame: 1\n")
    short = forge.commit()
    said = forge.push()
    assert f"lanes.yaml:{lines + 1}:1: unknown key 'lame'" in said
    assert f"fleet: {short} is not valid: nothing is changed" in said

    lanes.write_text(f"{good}lanes: [\n")
    forge.commit()
    assert re.search(r"^fleet: lanes\.yaml:\d+:\d+: ", forge.push(), re.MULTILINE)

    lanes.write_text(good)
    forge.desk.place()
    short = forge.commit()
    said = forge.push()
    assert "the spec places no lane" in said
    assert f"fleet: {short} is refused: nothing is changed" in said
    assert "fatal" not in said  # git runs in a folder that is there

    forge.git("rm", "--quiet", "fleet.yaml")
    assert f"fleet: {forge.commit()} has no fleet.yaml" in forge.push()

    assert before == containers(forge.lab)
    assert applied != (forge.home / "current").resolve()  # of the commit with nothing to do
    assert len(list(forge.home.glob("tree.*"))) == 1
    assert "Paris" in answer(forge.lab)


def test_other_branches_tags_and_deletions_do_nothing(forge: Forge) -> None:
    forge.push("main:draft")
    forge.git("tag", "v1")
    assert "fleet:" not in forge.push("v1")
    assert "fleet:" not in forge.push(":draft")
    assert not forge.home.exists()
    assert {} == names(forge.lab)


def test_a_hook_that_finds_no_program_says_so(forge: Forge) -> None:
    run(["git", "-C", str(forge.bare), "config", "fleet.command", "fleet-of-nowhere"])
    assert "no program 'fleet-of-nowhere' here" in forge.push()
    assert {} == names(forge.lab)


def test_a_poll_carries_out_what_is_new_upstream(forge: Forge, tmp_path: Path) -> None:
    text = (EXAMPLES / "gitops/README.md").read_text()
    (block,) = re.findall(r"```crontab\n(.*?)```", text, re.DOTALL)
    line = block.split(maxsplit=5)[5].replace("/srv/fleet-upstream", str(tmp_path / "up"))
    line = line.replace("/srv/fleet.git", str(forge.bare))
    run(["git", "clone", "--quiet", str(forge.desk.folder), str(tmp_path / "up")], env=git_env())
    first, second = [run(["sh", "-c", line], env=git_env(), timeout=60) for _ in range(2)]
    assert "is applied" in first.stderr
    assert second.stdout + second.stderr == ""
    assert {"node3": ["fleet-solo-r0-v1"]} == names(forge.lab)


def test_history_cannot_be_rewritten(forge: Forge) -> None:
    forge.push()
    before = containers(forge.lab)
    context_size(forge, 256)
    forge.git("commit", "--quiet", "--all", "--amend", "--message", "another past")
    for words in (("--force", "origin", "main"), ("origin", ":main")):
        refused = forge.git("push", *words, check=False)
        assert refused.returncode != 0
        assert "denying non-fast-forward" in refused.stderr or "refusing to delete" in refused.stderr
    assert before == containers(forge.lab)


def test_a_deleted_branch_changes_nothing_where_git_allows_it(forge: Forge) -> None:
    forge.push()
    before = containers(forge.lab)
    run(["git", "-C", str(forge.bare), "config", "receive.denyDeleteCurrent", "ignore"])
    assert "fleet: main is deleted: nothing is changed" in forge.push(":main")
    assert before == containers(forge.lab)


def test_of_two_pushes_the_second_waits(forge: Forge) -> None:
    forge.push()
    context_size(forge, 256)
    forge.commit("first")
    with forge.pushing() as first:
        wait_for_log(forge, "creating fleet-solo-r0-v2")
        context_size(forge, 384)
        short = forge.commit("second")
        said = forge.push()
        first_said = first.communicate(timeout=60)[0]
    assert "is applied" in first_said
    assert "fleet: another push is being applied: waiting for its end" in said
    assert "argv: --ctx-size 256 -> --ctx-size 384" in said
    assert f"fleet: {short} is applied" in said
    assert {"node3": ["fleet-solo-r0-v3"]} == names(forge.lab)


def test_of_pushes_that_wait_only_the_newest_is_applied(forge: Forge) -> None:
    forge.push()
    before = containers(forge.lab)
    with locked(forge.home / "lock") as unlock:
        context_size(forge, 256)
        old = forge.commit("old")
        with forge.pushing() as waiting:
            wait_until("the push of old", lambda: tip(forge) == old, seconds=20)
            forge.desk.place(SOLO, PAIR)
            context_size(forge, 512)
            new = forge.commit("new")
            with forge.pushing() as last:
                wait_until("the push of new", lambda: tip(forge) == new, seconds=20)
                time.sleep(0.5)
                assert before == containers(forge.lab)
                unlock()
                said = [process.communicate(timeout=60)[0] for process in (waiting, last)]
    assert f"fleet: main is no longer {old}" in said[0]
    assert f"fleet: {new} is applied" in said[1]
    assert before["node3"] == containers(forge.lab)["node3"]
    assert ["fleet-pair-r0-v1"] == names(forge.lab)["node1"]


def test_a_push_cut_short_does_not_cut_the_apply(forge: Forge) -> None:
    forge.push()
    context_size(forge, 256)
    short = forge.commit()
    with forge.pushing() as push:
        wait_for_log(forge, "creating fleet-solo-r0-v2")
        cut(push)
    forge.wait_for_end()
    assert {"node3": ["fleet-solo-r0-v2"]} == names(forge.lab)
    assert "Paris" in answer(forge.lab)
    assert (forge.home / "apply.log").read_text().endswith(f"1 replaced\nfleet: {short} is applied\n")


def test_a_push_cut_short_while_it_waits_is_carried_out(forge: Forge) -> None:
    forge.push()
    context_size(forge, 256)
    short = forge.commit()
    with locked(forge.home / "lock") as unlock, forge.pushing() as push:
        wait_until("the push waits", lambda: waiting(forge) == 1, seconds=20)
        cut(push)
        assert ["fleet-solo-r0-v1"] == names(forge.lab)["node3"]
        unlock()
        wait_for_log(forge, f"fleet: {short} is applied")
    assert "up-to-date" in forge.push()
    assert ["fleet-solo-r0-v2"] == names(forge.lab)["node3"]
    assert 0 == waiting(forge)


def test_a_fault_in_a_push_cut_short_is_on_the_record(forge: Forge) -> None:
    forge.push()
    (forge.desk.folder / "lanes.yaml").write_text("lame: 1\n")
    short = forge.commit()
    with locked(forge.home / "lock") as unlock, forge.pushing() as push:
        wait_until("the push waits", lambda: waiting(forge) == 1, seconds=20)
        cut(push)
        unlock()
        wait_for_log(forge, f"fleet: {short} is not valid: nothing is changed")
    assert "unknown key 'lame'" in (forge.home / "apply.log").read_text()


def test_what_was_lost_is_carried_out_by_hand(forge: Forge) -> None:
    hook = forge.bare / "hooks/post-receive"
    hook.rename(f"{hook}.off")
    short = forge.git("rev-parse", "--short", "HEAD").stdout.strip()
    forge.push()
    Path(f"{hook}.off").rename(hook)
    text = (EXAMPLES / "gitops/README.md").read_text()
    (line,) = re.findall(r"^cd .*hooks/post-receive$", text, re.MULTILINE)
    done = run(["sh", "-c", line.replace("/srv/fleet.git", str(forge.bare))], env=git_env(), timeout=60)
    assert f"fleet: {short} is applied" in done.stdout
    assert ["fleet-solo-r0-v1"] == names(forge.lab)["node3"]


def waiting(forge: Forge) -> int:
    """How many pushes say that they wait for the lock."""
    return sum("waiting for its end" in log.read_text() for log in forge.home.glob("push.*"))


def cut(push: "subprocess.Popen[str]") -> None:
    """Ctrl-C in the pusher's terminal."""
    os.killpg(push.pid, signal.SIGINT)
    push.communicate(timeout=30)
    assert push.returncode != 0


def test_nodes_that_are_off_are_left_for_later(forge: Forge) -> None:
    forge.lab.nodes["node1"].power_off()
    forge.desk.place(SOLO, PAIR)
    short = forge.commit()
    assert f"fleet: {short} is applied where nodes answer" in forge.push()
    assert "Paris" in answer(forge.lab)
    forge.lab.nodes["node1"].power_on()
    again = forge.desk.fleet("apply", "--yes", "--file", str(forge.home / "current/fleet.yaml"))
    assert again.rc == 0, again.said
    assert ["fleet-pair-r0-v1"] == names(forge.lab)["node1"]


def test_secrets_come_from_a_file_beside_the_repository(forge: Forge, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text("TOKEN='a secret word'\n")
    forge.desk.edit_lane("solo", env={"TOKEN": {"secret": "env:TOKEN"}})
    short = forge.commit()
    said = forge.push()
    assert f"fleet: {short} is not applied: the fleet serves what it served before" in said
    assert "TOKEN" in said

    run(["git", "-C", str(forge.bare), "config", "fleet.secrets", str(secrets)])
    context_size(forge, 256)
    short = forge.commit()
    said = forge.push()
    assert f"fleet: {short} is applied" in said
    assert "a secret word" not in said
    env = forge.lab.nodes["node3"].docker("inspect", "-f", "{{.Config.Env}}", *names(forge.lab)["node3"])
    assert "TOKEN=a secret word" in env
    drift = forge.desk.fleet("drift", "--file", str(forge.home / "current/fleet.yaml"))
    assert drift.rc == 0, drift.said  # which has no secrets


def wait_for_log(forge: Forge, words: str) -> None:
    log = forge.home / "apply.log"
    wait_until(f"{words!r} in the log", lambda: words in log.read_text(), seconds=30, detail=log.read_text)


def tip(forge: Forge) -> str:
    return run(["git", "-C", str(forge.bare), "rev-parse", "--short", "main"]).stdout.strip()


@contextmanager
def locked(path: Path) -> Iterator[Callable[[], None]]:
    """Hold a lock as another run would; yields what releases it early."""
    argv = ["flock", str(path), "sh", "-c", "echo; exec cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin
        assert holder.stdout
        holder.stdout.readline()
        yield holder.stdin.close


def test_an_apply_goes_on_when_its_reader_goes_away(clean_lab: Lab, tmp_path: Path) -> None:
    operator = desk(clean_lab, tmp_path, SOLO)
    with operator.started("apply", "--yes") as process:
        read_until(process, "creating fleet-solo-r0-v1")
        assert process.stdout
        process.stdout.close()
        assert process.wait(timeout=60) == 0
    assert {"node3": ["fleet-solo-r0-v1"]} == names(clean_lab)
    assert operator.fleet("drift").rc == 0
