"""The CI files of `examples/gitops`: what their schemas ask for, few rights, no foreign text in a shell, real scripts.

The schemas are those that editors use (json.schemastore.org/github-workflow.json, and the one of GitLab CI); held here
is what of them these files could break.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

GITOPS = Path(__file__).parents[3] / "examples/gitops"
CI = GITOPS / "ci"
ACTIONS = [GITOPS / "github.yml", GITOPS / "forgejo.yml"]
GITLAB = GITOPS / "gitlab-ci.yml"

JOB_KEYS = {"if", "needs", "runs-on", "timeout-minutes", "permissions", "concurrency", "env", "steps", "environment"}
STEP_KEYS = {"name", "id", "if", "uses", "with", "run", "env"}
ON_KEYS = {"pull_request", "push", "schedule", "workflow_dispatch"}
GITLAB_KEYS = {"extends", "stage", "rules", "interruptible", "timeout", "script", "resource_group", "environment"} | {
    "artifacts",
    "tags",
    "before_script",
}
UNTRUSTED = re.compile(r"\$\{\{")
"""What others wrote is never pasted into a program: it comes by the environment."""


def parsed(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # "on" stays a word
    return found


def steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in parsed(path)["jobs"].values():
        yield from job["steps"]


def scripts(path: Path) -> list[str]:
    """Everything that a shell runs."""
    if path == GITLAB:
        jobs = [job for job in parsed(path).values() if isinstance(job, dict)]
        return [line for job in jobs for key in ("before_script", "script") for line in job.get(key, [])]
    return [step["run"] for step in steps(path) if "run" in step]


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.name)
def test_a_workflow_is_what_actions_take(path: Path) -> None:
    flow = parsed(path)
    assert flow.keys() <= {"name", "on", "permissions", "env", "defaults", "jobs"}
    assert flow["on"].keys() == ON_KEYS
    assert ["main"] == flow["on"]["pull_request"]["branches"] == flow["on"]["push"]["branches"]
    assert re.fullmatch(r"\d+ \* \* \* \*", flow["on"]["schedule"][0]["cron"])
    assert {"plan", "apply", "drift"} == flow["jobs"].keys()
    for job in flow["jobs"].values():
        assert job.keys() <= JOB_KEYS
        assert {"runs-on", "timeout-minutes", "steps", "if"} <= job.keys()
        assert set(job.get("concurrency", {})) <= {"group", "cancel-in-progress"}
        needs = job.get("needs", [])
        assert set([needs] if isinstance(needs, str) else needs) <= flow["jobs"].keys()
    for step in steps(path):
        assert step.keys() <= STEP_KEYS
        assert ("run" in step) != ("uses" in step)
    named = [step["id"] for step in steps(path) if "id" in step]
    used = set(re.findall(r"steps\.(\w+)\.", path.read_text(encoding="utf-8")))
    assert used <= set(named)


def test_the_gitlab_file_is_what_gitlab_takes() -> None:
    flow = parsed(GITLAB)
    assert ["plan", "apply", "drift"] == flow["stages"]
    jobs = {name: job for name, job in flow.items() if name not in {"stages", "variables"}}
    assert {".fleet", "plan", "apply", "drift"} == jobs.keys()
    for name, job in jobs.items():
        assert job.keys() <= GITLAB_KEYS
        if not name.startswith("."):
            assert job["stage"] in flow["stages"]
            assert job["extends"] in jobs
            assert all(rule.keys() <= {"if", "when"} for rule in job["rules"])
    assert "fleet" == jobs["apply"]["resource_group"]  # one at a time
    assert "false" == jobs["apply"]["interruptible"]
    assert "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID" in jobs["plan"]["rules"][0]["if"]


@pytest.mark.parametrize("path", [*ACTIONS, GITLAB], ids=lambda path: path.name)
def test_what_a_shell_runs_is_shell_and_holds_nothing_of_others(path: Path) -> None:
    found = scripts(path)
    assert found
    for script in found:
        assert UNTRUSTED.search(script) is None
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    called = {name for script in found for name in re.findall(r"\bci/([\w-]+)", script)}
    assert {"with-key", "plan", "apply", "drift", "verdict", "comment", "install"} <= called
    assert called <= {item.name for item in CI.iterdir()}


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_and_say_their_version(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert re.search(r"uses: [\w./:-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.name)
def test_secrets_are_for_the_steps_that_need_them_and_never_for_forks(path: Path) -> None:
    flow = parsed(path)
    assert "secrets." not in str(flow.get("env")) + str([job.get("env") for job in flow["jobs"].values()])
    assert "head.repo.full_name == github.repository" in re.sub(r"\s+", " ", flow["jobs"]["plan"]["if"])
    assert "pull_request_target" not in path.read_text(encoding="utf-8")
    holders = [step["name"] for step in steps(path) if "FLEET_IDENTITY" in str(step)]
    assert ["Plan", "Apply", "Look"] == holders
    for step in steps(path):
        if "checkout" in step.get("uses", ""):
            assert "false" == step["with"]["persist-credentials"]


def test_github_gives_each_job_the_least() -> None:
    flow = parsed(GITOPS / "github.yml")
    assert {} == flow["permissions"]
    given = {name: job["permissions"] for name, job in flow["jobs"].items()}
    expected = {
        "plan": {"contents": "read", "pull-requests": "write"},
        "apply": {"contents": "read", "actions": "read"},
        "drift": {"contents": "read"},
    }
    assert expected == given


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.name)
def test_applies_go_one_at_a_time_and_are_never_cut_short(path: Path) -> None:
    apply = parsed(path)["jobs"]["apply"]
    assert {"group": "fleet-apply", "cancel-in-progress": "false"} == apply["concurrency"]
    assert "github.ref == 'refs/heads/main'" in apply["if"]
    checkout = apply["steps"][0]
    assert "main" == checkout["with"]["ref"]  # an old run that is run again must not bring back an old spec


def test_uploads_name_no_relative_path() -> None:
    """The upload action refuses . and .. in its paths."""
    paths = [step["with"]["path"] for step in steps(GITOPS / "github.yml") if "artifact" in step.get("uses", "")]
    assert 3 == len(paths)
    assert all(path.startswith("${{ runner.temp }}/fleet") for path in paths)


@pytest.mark.parametrize("path", [*ACTIONS, GITLAB], ids=lambda path: path.name)
def test_every_setting_is_explained(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    wanted = set(re.findall(r"(?:secrets|vars)\.(\w+)", text)) if path != GITLAB else {"FLEET_FORGE_TOKEN"}
    readme = (GITOPS / "README.md").read_text(encoding="utf-8")
    assert [] == [name for name in sorted(wanted - {"HF_TOKEN"}) if f"| `{name}` |" not in readme]
