"""What `examples/gitops` gives a CI: the plan that was reviewed is applied, exactly that and once, or nothing is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.saved import read
from tests.lifecycle.ci import Job, git
from tests.lifecycle.harness import QUAD, Story

PAIR_AND_SOLO_LANES = {"pair": 2, "solo": 1}


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    (tmp_path / "spec").mkdir()
    monkeypatch.setenv("FLEET_STATE", str(tmp_path / "state"))
    made = Job(Story(tmp_path / "spec"), tmp_path)
    yield made
    made.close()


def planned(job: Job, *base: str) -> tuple[str, str]:
    """Plan what is checked out: the comment, and what the saved plan is kept under."""
    ran = job.script("plan", str(job.out), *base)
    assert 0 == ran.code, ran.said
    return (job.out / "plan.md").read_text(), (job.out / "name").read_text().strip()


def tree(job: Job) -> str:
    """What the job on the main branch looks for."""
    return f"fleet-plan-{git(job.checkout, 'rev-parse', 'HEAD^{tree}')}"


def request(job: Job) -> None:
    """A branch with an edit, checked out by its job."""
    git(job.story.folder, "checkout", "--quiet", "-b", "request")
    job.story.place(QUAD)
    job.commit("the large lane")
    job.check_out("origin/request")


def merged(job: Job, *how: str) -> None:
    """The request is merged, and the job of the main branch checks out what came of it."""
    git(job.story.folder, "checkout", "--quiet", "main")
    git(job.story.folder, "merge", "--quiet", *how, "request")
    if "--squash" in how:
        job.commit("squashed")
    job.check_out("origin/main")


@pytest.mark.parametrize("how", ["--no-ff", "--squash"])
def test_the_merge_applies_the_plan_of_the_request(job: Job, how: str) -> None:
    request(job)
    comment, name = planned(job, "origin/main")
    saved = read(job.out / "fleet.plan")
    assert f"Plan `{saved.plan.id}` for commit `{git(job.checkout, 'rev-parse', 'HEAD')[:12]}`" in comment
    assert "the merge changes the fleet" in job.script("verdict", "plan", str(job.out)).said

    merged(job, how)
    assert name == tree(job)
    ran = job.script("apply", str(job.out / "fleet.plan"))
    assert 0 == ran.code, ran.said
    assert saved.plan.id in ran.said
    assert {"quad": 4} == job.story.running_lanes()

    again = job.script("apply", str(job.out / "fleet.plan"))
    assert 3 == again.code
    assert "Run the workflow by hand" in again.said


def test_a_request_that_lacks_some_of_its_base_gets_no_plan(job: Job) -> None:
    request(job)
    git(job.story.folder, "checkout", "--quiet", "main")
    job.commit("meanwhile")
    job.check_out("origin/request")
    comment, _ = planned(job, "origin/main")
    assert "does not have all of its base" in comment
    assert not (job.out / "fleet.plan").exists()
    assert 1 == job.script("verdict", "plan", str(job.out)).code


def test_a_base_that_moved_between_plan_and_merge_has_no_plan(job: Job) -> None:
    request(job)
    _, name = planned(job, "origin/main")
    git(job.story.folder, "checkout", "--quiet", "main")
    (job.story.folder / "NOTES").write_text("somebody else's\n")
    job.commit("meanwhile")
    merged(job, "--no-ff")
    assert name != tree(job)
    ran = job.script("apply", str(job.folder / "nothing-was-fetched"))
    assert 3 == ran.code
    assert "no plan was reviewed" in ran.said
    assert {} == job.story.running_lanes()


def test_a_plan_for_another_spec_is_refused_whatever_it_is_kept_under(job: Job) -> None:
    request(job)
    planned(job, "origin/main")
    job.check_out("origin/main")
    ran = job.script("apply", str(job.out / "fleet.plan"))
    assert 3 == ran.code
    assert "the spec has changed since the plan was made" in ran.said
    assert {} == job.story.running_lanes()


def test_what_changed_on_the_nodes_meanwhile_makes_the_plan_stale(job: Job) -> None:
    job.story.apply()
    request(job)
    planned(job, "origin/main")
    job.story.nodes.node("node3").power_off()
    job.story.nodes.node("node3").power_on()
    merged(job, "--no-ff")
    ran = job.script("apply", str(job.out / "fleet.plan"))
    assert 3 == ran.code
    assert "stale" in ran.said


def test_a_spec_with_a_fault_is_told_in_the_comment(job: Job) -> None:
    git(job.story.folder, "checkout", "--quiet", "-b", "request")
    path = job.story.folder / "lanes.yaml"
    path.write_text(path.read_text() + "lame: '```'\n")
    job.commit("a slip")
    job.check_out("origin/request")
    comment, _ = planned(job, "origin/main")
    assert "unknown key 'lame'" in comment
    assert 2 == comment.count("```")
    assert not (job.out / "fleet.plan").exists()
    assert 1 == job.script("verdict", "plan", str(job.out)).code


def test_a_refused_plan_is_not_kept(job: Job) -> None:
    job.story.apply()
    job.story.place(())
    job.commit("nothing")
    job.check_out("origin/main")
    comment, _ = planned(job)
    assert "refused" in comment
    assert not (job.out / "fleet.plan").exists()
    ran = job.script("verdict", "plan", str(job.out))
    assert (1, True) == (ran.code, "refused" in ran.said)


def test_drift_is_reported_and_makes_the_job_red(job: Job) -> None:
    job.story.apply()
    job.check_out("origin/main")
    assert 0 == job.script("drift", str(job.out)).code
    assert 0 == job.script("verdict", "drift", str(job.out)).code
    job.story.nodes.node("node3").power_off()
    job.story.nodes.node("node3").power_on()
    assert 0 == job.script("drift", str(job.out)).code
    ran = job.script("verdict", "drift", str(job.out))
    assert 1 == ran.code
    assert "solo" in (job.out / "drift.md").read_text()
