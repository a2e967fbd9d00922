"""`fleet images`: what is asked of the command line, before any node is."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.cli.images import Part, _exit, _part
from reconciler.cli.main import run
from reconciler.cli.wiring import Wiring
from reconciler.core.exits import Exit
from reconciler.core.garbage import SCHEMA, Blob, Collected, Ending, GcPlan, Removed, VaultPlan
from reconciler.core.observed import LocalImage, Unknown, UnknownKind
from reconciler.core.retention import Holding, Standing
from tests.lifecycle.harness import Story

Command = Callable[..., tuple[int, str, str]]

AWAY = Unknown("node4", UnknownKind.TIMEOUT, "no answer")
SPARE = Holding("node1", LocalImage("sha256:1"), Standing.SPARE, "")
PLAN = GcPlan(SCHEMA, "lab", (SPARE,), (), (), VaultPlan("/v", blobs=(Blob("sha256:2", 1, 0.0),)))


@pytest.fixture
def fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """`fleet images WORDS`: exit code, standard output, standard error."""
    story = Story(tmp_path)

    def command(*words: str) -> tuple[int, str, str]:
        code = run(["images", *words, "--file", str(story.folder / "fleet.yaml")], Wiring(lambda spec: story.nodes))
        printed = capsys.readouterr()
        assert [] == story.nodes.calls
        return code, printed.out, printed.err

    return command


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sync", "--cluster", "pair-b"), "no cluster named 'pair-b'; did you mean 'pair-a'?"),
        (("sync", "--cluster", "quad", "--cluster", "zzz"), "no cluster named 'zzz'; known: pair-a, quad, single-3"),
        (("ls", "--node", "nod1"), "no node named 'nod1'; did you mean 'node1'?"),
    ],
)
def test_a_wrong_name_is_told_the_right_one_and_no_node_is_asked(
    fleet: Command, words: tuple[str, ...], said: str
) -> None:
    code, output, error = fleet(*words)
    assert (1, "") == (code, output)
    assert said in error


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("ls", "spare: `fleet images gc` would remove it"),
        ("sync", "fleet images sync --cluster"),
        ("gc", "nothing is forced"),
    ],
)
def test_the_help_teaches(capsys: pytest.CaptureFixture[str], command: str, said: str) -> None:
    assert 0 == run(["images", command, "--help"], Wiring())
    assert said in " ".join(capsys.readouterr().out.split())


def test_images_alone_lists_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == run(["images"], Wiring())
    printed = capsys.readouterr()
    assert printed.out.startswith("Usage: fleet images ")
    assert {"ls", "sync", "gc"} <= set(printed.out.split())
    assert "" == printed.err


def test_a_part_of_the_plan_is_the_nodes_or_the_vault() -> None:
    assert PLAN == _part(PLAN, None)
    assert ((SPARE,), None) == (_part(PLAN, Part.NODES).removals, _part(PLAN, Part.NODES).vault)
    assert ((), PLAN.vault) == (_part(PLAN, Part.VAULT).removals, _part(PLAN, Part.VAULT).vault)


@pytest.mark.parametrize(
    ("expected", "ending", "unknown"),
    [
        (Exit.OK, Ending.REMOVED, ()),
        (Exit.OK, Ending.GONE, ()),
        (Exit.OK, Ending.LEFT, ()),
        (Exit.UNREACHABLE, Ending.REMOVED, (AWAY,)),
        (Exit.UNCHANGED, Ending.FAILED, (AWAY,)),
    ],
)
def test_exit_codes(expected: Exit, ending: Ending, unknown: tuple[Unknown, ...]) -> None:
    assert expected == _exit(PLAN, Collected((Removed("node1", "x", ending),), {}, unknown))
