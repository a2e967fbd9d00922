"""The examples of unattended use say what the tool can do: their commands and flags exist, their files parse."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from reconciler.cli.app import app
from reconciler.core.outcome import Exit

EXAMPLES = Path(__file__).parents[3] / "examples"
CRON, GITOPS, LAB = EXAMPLES / "cron", EXAMPLES / "gitops", EXAMPLES / "dgx-lab"
CI = GITOPS / "ci"
FOLDERS = (CRON, GITOPS, CI)
PROGRAMS = [CI / "comment", CI / "find-artifact"]
"""In Python, by the API: they call no command."""
FILES = [
    *sorted(path for folder in FOLDERS for path in folder.iterdir() if path.is_file() and path not in PROGRAMS),
    LAB / "README.md",
]
SCRIPTS = [path for path in FILES if path.read_bytes().startswith(b"#!/bin/sh\n")]

CALL = re.compile(
    r"""(?:^|[ /(])(?<!-[uo] )"?(?:fleet|\$fleet|\$FLEET)"?[ ]+([a-z]+)((?:[ ]+[^\s`|;&#]+)*)""", re.MULTILINE
)
"""A call of the command: `fleet plan ...`, `"$fleet" plan ...`, `/opt/fleet/bin/fleet plan ...`."""


def ids(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def options() -> dict[str, set[str]]:
    """The options of each command; those of a group are the ones of all that is in it."""
    group: Any = typer.main.get_command(app)
    return {name: set(options_of(command)) for name, command in group.commands.items()}


def options_of(command: Any) -> Iterator[str]:
    yield "--help"
    for parameter in command.params:
        yield from parameter.opts
    for part in getattr(command, "commands", {}).values():
        yield from options_of(part)


def code_of(path: Path) -> str:
    """The parts of a file that are run: code blocks of Markdown, scripts of the workflow; not what they say."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = "\n".join(re.findall(r"^```\w+\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    text = re.sub(r"^(\s*#|Description=).*$", "", text, flags=re.MULTILINE)
    return re.sub(r"""\b(?:say|stop|echo|printf|good|bad) (?:"[^"]*"|'[^']*')""", "", text)


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
        "cron/fleet-drift.service": ["drift"],
        "gitops/README.md": ["status", "drift", "apply"],
        "gitops/fleet-gitops.service": ["gitops"],
        "gitops/post-receive": ["validate", "plan", "apply"],
        "gitops/post-receive-trigger": ["gitops"],
        "ci/apply": ["validate", "apply"],
        "ci/drift": ["drift"],
        "ci/install": ["version"],
        "ci/plan": ["plan"],
        "dgx-lab/README.md": ["validate"],
    }
    assert expected == {name: commands for name, commands in found.items() if commands or name in expected}


@pytest.mark.parametrize("path", SCRIPTS, ids=ids)
def test_scripts_are_plain_shell_and_can_be_run(path: Path) -> None:
    assert path.stat().st_mode & 0o111
    assert path.read_text(encoding="utf-8").startswith("#!/bin/sh\n")
    subprocess.run(["sh", "-n", str(path)], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", str(path)], check=True)


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
