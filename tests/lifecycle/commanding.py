"""Whole commands on the simulated fleet of a story."""

import functools
import json
from dataclasses import dataclass
from typing import Any

import pytest

from reconciler.cli.main import run
from reconciler.cli.wiring import Wiring
from reconciler.testing import run_simulated
from tests.lifecycle.harness import Story


@dataclass(frozen=True)
class Said:
    """What a command ended with."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output, which is JSON."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Commands:
    """`fleet WORDS --file SPEC` in this process."""

    story: Story
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Said:
        wiring = Wiring(lambda spec: self.story.nodes, functools.partial(run_simulated, seed=self.story.seed))
        self.capsys.readouterr()
        code = run([*words, "--file", str(self.story.folder / "fleet.yaml")], wiring)
        printed = self.capsys.readouterr()
        return Said(code, printed.out, printed.err)
