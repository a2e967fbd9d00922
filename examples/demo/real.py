"""The story on the lab: real sshd, real Docker engines of two generations, a real inference engine."""

import subprocess
import sys
from pathlib import Path

import httpx

from reconciler.core.answers import answer_text
from tests.lab import Lab
from tests.lab.shell import Progress
from tests.lab.specfile import for_lab, write

NAME, SUBNET = "fleetdemo", "10.86.0.0/24"
ASK_S = 60.0


class RealStage:
    """See `story.Stage`. The lab is made anew, so that the images have to travel."""

    def __init__(self, folder: Path, *, keep: bool) -> None:
        self._folder = folder
        self._keep = keep
        self._spec = folder / "fleet.yaml"
        self._lab: Lab | None = None

    def open(self) -> None:
        """A fresh lab."""
        Lab.remove(NAME)
        self._lab = Lab.up(NAME, SUBNET, 4, progress=Progress())

    def write_spec(self, placements: tuple[tuple[str, str], ...]) -> None:
        """Write the three files of the spec."""
        write(self._folder, for_lab(self.lab), placements)

    def fleet(self, *words: str) -> int:
        """Run the real command."""
        command = Path(sys.executable).with_name("fleet")
        return subprocess.run([command, *words, "--file", self._spec], check=False).returncode

    def ask(self, node: str, question: str) -> str:
        """As any user of the lane would: over HTTP, to the head's address."""
        url = f"http://{self.lab.nodes[node].address}:30000/v1/chat/completions"
        body = {"messages": [{"role": "user", "content": question}], "max_tokens": 16, "temperature": 0}
        return answer_text(httpx.post(url, json=body, timeout=ASK_S).content) or ""

    def kill(self, node: str, container: str) -> None:
        """With the node's own Docker client."""
        sys.stdout.write(f"{node}$ docker kill {container}\n")
        self.lab.nodes[node].docker("kill", container)

    def close(self) -> None:
        """The lab down, unless it is to be kept."""
        if self._lab is not None and not self._keep:
            self._lab.down()
            sys.stdout.write("\nlab down, nothing left behind\n")

    @property
    def lab(self) -> Lab:
        """The open lab."""
        if self._lab is None:
            raise RuntimeError("the stage is not open")
        return self._lab
