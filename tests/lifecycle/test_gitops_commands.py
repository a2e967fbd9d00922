"""`fleet gitops` as commands, on simulated nodes: what they say, their exit codes, and bad use."""

import functools
import json
import socket
from pathlib import Path

import pytest

from reconciler.cli.main import run
from reconciler.cli.wiring import Wiring
from reconciler.testing import run_simulated
from tests.lifecycle.commanding import Said
from tests.lifecycle.following import Followed


class Gitops:
    """`fleet gitops WORDS --work FOLDER` in this process."""

    def __init__(self, branch: Followed, capsys: pytest.CaptureFixture[str]) -> None:
        self.branch = branch
        self._capsys = capsys

    def __call__(self, *words: str) -> Said:
        simulated = functools.partial(run_simulated, seed=1)
        wiring = Wiring(lambda spec: self.branch.story.nodes, simulated)
        self._capsys.readouterr()
        code = run(["gitops", *words, "--work", str(self.branch.workplace.folder)], wiring)
        printed = self._capsys.readouterr()
        return Said(code, printed.out, printed.err)

    def once(self, *words: str) -> Said:
        return self("run", "--once", "--repo", str(self.branch.bare), *words)


@pytest.fixture
def gitops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Gitops:
    return Gitops(Followed(tmp_path), capsys)


def test_a_timer_looks_once_and_the_status_tells_of_it(gitops: Gitops, tmp_path: Path) -> None:
    commit = gitops.branch.push()
    done = gitops.once("--json", "--events", str(tmp_path / "events"), "--log-json")
    assert (0, commit, "in sync") == (done.code, done.json["good"], done.json["state"])
    assert {"level", "message", "at"} <= set(json.loads(done.err.splitlines()[0]))
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "events").read_text().splitlines()]
    assert ["gitops.commit", "gitops.planned", "gitops.applying"] == kinds[:3]
    assert {"run.started", "step.ended", "run.ended", "gitops.applied"} <= set(kinds)
    told = gitops("status")
    assert 0 == told.code
    assert told.out.startswith("agent    does not run · in sync\n")
    assert f"good     {commit[:12]}\n" in told.out
    assert gitops("status", "--json").json["running"] is False


def test_a_person_accepts_a_commit_and_has_things_tried_again(gitops: Gitops, tmp_path: Path) -> None:
    commit = gitops.branch.push()
    gitops.once()
    events = str(tmp_path / "events")
    assert f"{commit[:12]} is accepted" in gitops("accept", commit[:8], "--events", events).out
    assert "is tried again" in gitops("retry", "--events", events).out
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "events").read_text().splitlines()]
    assert ["gitops.accepted", "gitops.retry"] == kinds
    unknown = gitops("accept", "0" * 40)
    assert (1, True) == (unknown.code, "no commit 0000" in unknown.err)


def test_where_no_agent_ran_every_command_says_so(gitops: Gitops) -> None:
    for words in (["trigger"], ["status"], ["accept", "abc"], ["retry"]):
        said = gitops(*words)
        assert (1, "") == (said.code, said.out), words
        assert str(gitops.branch.workplace.folder) in said.err, words


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        (("--path", "../elsewhere"), "leads out of the repository"),
        (("--path", "/etc"), "leads out of the repository"),
        (("--interval", "soon"), "--interval"),
        (("--interval", "0s"), "--interval"),
        (("--heal", "maybe"), "--heal"),
        (("--metrics-listen", "somewhere"), "is no HOST:PORT"),
        (("--repo", "--upload-pack=x"), "not the URL of a repository"),
    ],
)
def test_bad_use_is_told_and_changes_nothing(gitops: Gitops, words: tuple[str, ...], phrase: str) -> None:
    gitops.branch.push()
    said = gitops.once(*words)
    assert (1, True) == (said.code, phrase in said.err), said.err
    assert {} == gitops.branch.story.running_lanes()


def test_a_port_in_use_is_told_before_anything_happens(gitops: Gitops) -> None:
    gitops.branch.push()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = gitops.once("--metrics-listen", str(taken.getsockname()[1]))
    assert (1, True) == (said.code, "address already in use" in said.err), said.err
    assert {} == gitops.branch.story.running_lanes()


def test_a_second_agent_in_the_same_folder_is_told_who_has_it(gitops: Gitops) -> None:
    gitops.branch.push()
    with gitops.branch.workplace.taken():
        said = gitops.once()
    assert (1, True) == (said.code, "another agent works in" in said.err), said.err
