"""`fleet history` and `fleet state`, as an operator uses them."""

import functools
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.cli.main import run
from reconciler.cli.wiring import Wiring
from reconciler.testing import run_simulated
from state import open_store
from tests.lifecycle.harness import Story
from tests.unit.state.samples import fill

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Command:
    """`fleet WORDS --file SPEC` in this process: exit code, standard output, standard error."""
    wiring = Wiring(lambda spec: story.nodes, functools.partial(run_simulated, seed=story.seed))

    def command(*words: str) -> tuple[int, str, str]:
        code = run([*words, "--file", str(story.folder / "fleet.yaml")], wiring)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return command


def test_before_the_first_run_nothing_is_recorded_and_nothing_is_made(fleet: Command, story: Story) -> None:
    assert (0, "no run is recorded\n", "") == fleet("history")
    place = story.folder / ".fleet/state.db"
    assert (0, f"{place} (nothing is recorded yet)\n", "") == fleet("state", "where")
    assert (0, f"{place.parent}: nothing is recorded yet\n", "") == fleet("state", "verify")
    assert {"schema": "fleet.state/1"} == {k: v for k, v in json.loads(fleet("state", "export")[1]).items() if v}
    assert not place.parent.exists()


def test_history_tells_runs_newest_first_and_what_they_touched(fleet: Command, story: Story) -> None:
    code, _, error = fleet("apply", "--yes")
    assert (0, "") == (code, error)
    assert 0 == fleet("down", "solo", "--yes")[0]
    down, apply = json.loads(fleet("history", "--json")[1])
    assert ("down", ["single-3/solo"], "done") == (down["command"].split()[0], down["touched"], down["outcome"])
    assert ["pair-a/pair", "single-3/solo"] == sorted(apply["touched"])
    assert [apply["id"]] == [run["id"] for run in json.loads(fleet("history", "pair", "--json")[1])]
    assert "no run of pairr is recorded; did you mean 'pair'?\n" == fleet("history", "pairr")[1]
    assert "no run of elsewhere is recorded\n" == fleet("history", "elsewhere")[1]
    lines = fleet("history")[1].splitlines()
    assert [down["id"], apply["id"]] == [line.split()[0] for line in lines]
    assert lines[0].endswith(" done: single-3/solo")
    assert 1 == len(fleet("history", "--limit", "1")[1].splitlines())
    assert "no run of other is recorded\n" == fleet("history", "other")[1]


def test_a_run_that_died_is_unfinished(fleet: Command, story: Story) -> None:
    store = open_store(story.folder / ".fleet")
    fill(store)
    store.close()
    newest = fleet("history")[1].splitlines()[0]
    assert newest.startswith("r2 ")
    assert newest.endswith("  unfinished (1 left open): pair/tiny (revision 2)")


def test_a_state_goes_to_another_place_and_only_into_an_empty_one(
    fleet: Command, story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet("apply", "--yes")
    told = fleet("state", "export")[1]
    assert (0, "") == fleet("state", "export", str(tmp_path / "out.json"))[:2]
    assert told == (tmp_path / "out.json").read_text()
    monkeypatch.setenv("FLEET_STATE", str(tmp_path / "elsewhere"))
    monkeypatch.setattr("sys.stdin", io.StringIO(told))
    code, output, _ = fleet("state", "import", "-")
    assert (0, True) == (code, output.startswith("1 runs and 2 revisions are recorded in"))
    assert told == fleet("state", "export")[1]
    assert (0, f"{tmp_path / 'elsewhere'}: sound\n") == fleet("state", "verify")[:2]
    code, _, error = fleet("state", "import", str(tmp_path / "out.json"))
    assert (1, True) == (code, "empty one only" in error)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("nonsense", "is no JSON"),
        ("[]", "has the schema None"),
        ('{"schema": "fleet.state/9"}', "this version knows 'fleet.state/1'"),
        ('{"schema": "fleet.state/1", "secrets": []}', "not known here: secrets"),
        ('{"schema": "fleet.state/1", "runs": [{"id": 7}]}', "is not a state: runs.0.id: "),
    ],
)
def test_what_is_no_export_is_refused_and_nothing_is_made(
    text: str, what: str, fleet: Command, story: Story, tmp_path: Path
) -> None:
    (tmp_path / "in.json").write_text(text)
    code, _, error = fleet("state", "import", str(tmp_path / "in.json"))
    assert (1, True) == (code, what in error)
    assert not (story.folder / ".fleet").exists()


def test_the_place_in_the_spec_is_used_by_every_command(fleet: Command, story: Story, tmp_path: Path) -> None:
    path = story.folder / "fleet.yaml"
    path.write_text(f"{path.read_text()}state: records\n")
    fleet("apply", "--yes")
    assert not (story.folder / ".fleet").exists()
    assert str(story.folder / "records/state.db") == json.loads(fleet("state", "where", "--json")[1])["place"]
    assert 1 == len(json.loads(fleet("history", "--json")[1]))


def test_a_place_that_cannot_be_one_is_told_without_its_password(
    fleet: Command, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEET_STATE", "mysql://ops:s3cr3t@db/fleet")
    for command in (("history",), ("state", "where"), ("plan",), ("apply", "--yes")):
        code, output, error = fleet(*command)
        assert (1, True) == (code, "cannot be kept at a mysql URL" in error)
        assert "s3cr3t" not in output + error
    assert () == story.nodes.mutations
