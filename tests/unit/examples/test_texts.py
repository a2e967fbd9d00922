"""The examples of unattended use say what the tool can do: their commands and flags exist, their files parse."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from reconciler.cli.app import app
from reconciler.core.outcome import Exit

EXAMPLES = Path(__file__).parents[3] / "examples"
CRON, GITOPS, LAB = EXAMPLES / "cron", EXAMPLES / "gitops", EXAMPLES / "dgx-lab"
FILES = [*sorted(path for folder in (CRON, GITOPS) for path in folder.iterdir()), LAB / "README.md"]
SCRIPTS = [CRON / "drift-report", GITOPS / "post-receive"]
WORKFLOW = GITOPS / "github-workflow.yml"

CALL = re.compile(
    r"""(?:^|[ /(])(?<!-[uo] )"?(?:fleet|\$fleet|\$FLEET)"?[ ]+([a-z]+)((?:[ ]+[^\s`|;&#]+)*)""", re.MULTILINE
)
"""A call of the command: `fleet plan ...`, `"$fleet" plan ...`, `/opt/fleet/bin/fleet plan ...`."""


def ids(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def options() -> dict[str, set[str]]:
    """The options of each command."""
    group: Any = typer.main.get_command(app)
    return {
        name: {option for parameter in command.params for option in (*parameter.opts, "--help")}
        for name, command in group.commands.items()
    }


def code_of(path: Path) -> str:
    """The parts of a file that are run: code blocks of Markdown, scripts of the workflow; not what they say."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = "\n".join(re.findall(r"^```\w+\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    if path == WORKFLOW:
        text = "\n".join(scripts_of_the_workflow())
    text = re.sub(r"^(\s*#|Description=).*$", "", text, flags=re.MULTILINE)
    return re.sub(r"""\b(?:say|stop|echo|printf) (?:"[^"]*"|'[^']*')""", "", text)


def calls(path: Path) -> list[tuple[str, list[str]]]:
    """Every call of `fleet` in a file: the command and its words."""
    found = CALL.findall(code_of(path))
    return [(command, shlex.split(re.sub(r"[\"']", "", rest))) for command, rest in found]


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_commands_and_flags_in_examples_exist(path: Path) -> None:
    known = options()
    for command, words in calls(path):
        assert command in known, (command, words)
        flags = {word.partition("=")[0] for word in words if word.startswith("-")}
        assert flags <= known[command], (command, words)


def test_the_search_for_calls_finds_them() -> None:
    found = {ids(path): [command for command, _ in calls(path)] for path in FILES}
    expected = {
        "cron/README.md": ["drift"],
        "cron/crontab": ["drift"],
        "cron/drift-report": [],
        "cron/fleet-drift.service": ["drift"],
        "cron/fleet-drift.timer": [],
        "gitops/README.md": ["status", "drift", "apply"],
        "gitops/github-workflow.yml": ["plan", "validate", "apply"],
        "gitops/post-receive": ["validate", "plan", "apply"],
        "dgx-lab/README.md": ["validate"],
    }
    assert expected == found


@pytest.mark.parametrize("path", SCRIPTS, ids=ids)
def test_scripts_are_plain_shell_and_can_be_run(path: Path) -> None:
    assert path.stat().st_mode & 0o111
    assert path.read_text(encoding="utf-8").startswith("#!/bin/sh\n")
    subprocess.run(["sh", "-n", str(path)], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", str(path)], check=True)


def test_scripts_in_the_workflow_are_shell() -> None:
    scripts = scripts_of_the_workflow()
    assert len(scripts) == 5
    for script in scripts:
        assert "${{" not in script  # what others wrote is never pasted into a program
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_the_workflow_applies_one_at_a_time_with_few_rights() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    assert "\t" not in text
    parsed = workflow()
    assert parsed["permissions"] == {}
    jobs = parsed["jobs"]
    assert jobs["plan"]["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert jobs["apply"]["permissions"] == {"contents": "read"}
    assert jobs["apply"]["concurrency"] == {"group": "fleet-apply", "cancel-in-progress": False}


def test_the_workflow_installs_what_a_variable_says_and_stops_without_it() -> None:
    assert workflow()["env"]["FLEET_SOURCE"] == "${{ vars.FLEET_SOURCE }}"
    assert "| `FLEET_SOURCE` | variable |" in (GITOPS / "README.md").read_text(encoding="utf-8")
    installs = [script for script in scripts_of_the_workflow() if "pip" in script]
    assert len(installs) == 2
    for script in installs:
        env = {"PATH": "/nonexistent", "RUNNER_TEMP": "/nonexistent", "FLEET_SOURCE": ""}
        done = subprocess.run(["/bin/bash", "-e"], input=script, capture_output=True, text=True, check=False, env=env)
        assert "set the repository variable FLEET_SOURCE" in done.stderr
        assert done.returncode != 0


def test_every_exit_code_has_its_row() -> None:
    rows = set(re.findall(r"^\| (\d+) \|", (GITOPS / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert {str(int(code)) for code in Exit} == rows


@pytest.mark.parametrize(("code", "said"), [(0, ""), (2, "Drift:"), (4, "did not answer"), (1, "failed (exit 1)")])
def test_drift_report_exits_as_its_command_and_speaks_when_somebody_must_look(
    tmp_path: Path, code: int, said: str
) -> None:
    report, command = tmp_path / "report.md", tmp_path / "fleet"
    writes = "" if code == 1 else '[ "$1 $2 $3" = "--format markdown --out" ] && echo found > "$4"; '
    command.write_text(f"#!/bin/sh\n{writes}exit {code}\n")
    command.chmod(0o755)
    argv = ["sh", str(CRON / "drift-report"), str(report), str(command)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})
    assert (code, "") == (done.returncode, done.stderr)
    assert said in done.stdout
    assert (code != 0) == bool(done.stdout)
    assert (code in {2, 4}) == done.stdout.endswith("found\n")
    assert report.exists() == (code != 1)


def test_drift_report_says_that_there_was_no_end(tmp_path: Path) -> None:
    argv = ["sh", str(CRON / "drift-report"), str(tmp_path / "report.md"), "timeout", "0.1", "sh", "-c", "sleep 9"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 124
    assert "No end" in done.stdout


def workflow() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    return parsed


def scripts_of_the_workflow() -> list[str]:
    steps = [step for job in workflow()["jobs"].values() for step in job["steps"]]
    return [str(step["run"]) for step in steps if "run" in step]
