"""The scripts of `examples/gitops/ci`, run for real: git repositories on disk, and a `fleet` with simulated nodes.

The scripts start `fleet` as a program. Here it is a small one that passes its words to the test, which runs the command
in its own process, on the nodes of a story: so the nodes are the same ones for each script.
"""

import contextlib
import functools
import io
import json
import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.cli.main import run
from reconciler.cli.wiring import Wiring
from reconciler.testing import run_simulated
from tests.lifecycle.harness import Story

CI = Path(__file__).parents[2] / "examples/gitops/ci"

SHIM = """#!{python}
import json, os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect({path!r})
line.sendall(json.dumps([os.getcwd(), sys.argv[1:]]).encode() + b"\\n")
code, out, err = json.loads(line.makefile("rb").read())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""


@dataclass
class Ran:
    """How a script ended, and what it said."""

    code: int
    said: str


@dataclass
class Job:
    """A job of a CI: a checkout of the repository in `story.folder`, and scripts that are run in it."""

    story: Story
    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.out = self.folder / "out"
        self.checkout = self.folder / "checkout"
        self.env = {**git_env(), "FLEET": str(self.folder / "fleet"), **self.env}
        self._line = socket.socket(socket.AF_UNIX)
        self._line.bind(str(self.folder / "line"))
        self._line.listen()
        shim = self.folder / "fleet"
        shim.write_text(SHIM.format(python=sys.executable, path=str(self.folder / "line")))
        shim.chmod(0o755)
        git(self.story.folder, "init", "--quiet", "--initial-branch=main")
        self.commit("first")
        subprocess.run(
            ["git", "clone", "--quiet", str(self.story.folder), str(self.checkout)], check=True, env=git_env()
        )

    def close(self) -> None:
        """Nobody listens any more."""
        self._line.close()

    def commit(self, message: str) -> str:
        """Commit all of the story's folder; the commit."""
        git(self.story.folder, "add", "--all", ".")
        git(self.story.folder, "commit", "--quiet", "--allow-empty", "--message", message)
        return git(self.story.folder, "rev-parse", "HEAD")

    def check_out(self, name: str) -> None:
        """As a job begins: what the repository has, and nothing else."""
        git(self.checkout, "fetch", "--quiet", "origin", "+refs/heads/*:refs/remotes/origin/*")
        git(self.checkout, "checkout", "--quiet", "--detach", name)

    def script(self, name: str, *words: str, env: Mapping[str, str] | None = None) -> Ran:
        """Run a script in the checkout."""
        process = subprocess.Popen(
            [str(CI / name), *words],
            cwd=self.checkout,
            env={**self.env, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._serve(process)
        said = process.communicate(timeout=30)[0]
        return Ran(process.returncode, said)

    def _serve(self, process: "subprocess.Popen[str]") -> None:
        """Answer the calls of `fleet` until the script has ended. Signals are the main thread's: so are commands."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._line, selectors.EVENT_READ)
            while process.poll() is None:
                if selector.select(0.02):
                    connection, _ = self._line.accept()
                    with connection, connection.makefile("rb") as asked:
                        folder, words = json.loads(asked.readline())
                        connection.sendall(json.dumps(self._command(folder, words)).encode())

    def _command(self, folder: str, words: list[str]) -> tuple[int, str, str]:
        wiring = Wiring(lambda spec: self.story.nodes, functools.partial(run_simulated, seed=self.story.seed))
        out, err, before = io.StringIO(), io.StringIO(), Path.cwd()
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run(words, wiring)
        finally:
            os.chdir(before)
        return code, out.getvalue(), err.getvalue()


def git(folder: Path, *words: str) -> str:
    """What git says."""
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True, env=git_env())
    return done.stdout.strip()


def git_env() -> dict[str, str]:
    """As for a person with a name and no settings."""
    person = {f"GIT_{role}_{what}": "ops" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", **person}
