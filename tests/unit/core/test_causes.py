"""Each entry of the catalogue of causes against a recorded log, and no entry against the log of another."""

from pathlib import Path

import pytest

from reconciler.core.causes import CATALOGUE, diagnose, is_symptom, last_error
from tests.unit.views.golden import assert_golden_at

LOGS = Path(__file__).parents[2] / "fixtures/causes"
SAMPLES = sorted(LOGS.glob("*.log"))
NOTHING = sorted((LOGS / "none").glob("*.log"))

Told = tuple[list[str], int | None, bool]


def recorded(path: Path) -> Told:
    """The lines of a sample, the exit code and Docker's flag: the first line says `# exit 137, oom` or `# running`."""
    end, *lines = path.read_text(encoding="utf-8").splitlines()
    word = end.removeprefix("# ").removeprefix("exit ").split(",")[0]
    return lines, None if word == "running" else int(word), end.endswith(", oom")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_recorded_log_gives_its_cause(path: Path) -> None:
    found = diagnose(*recorded(path))
    assert found is not None
    assert path.stem.partition(".")[0] == found.id


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_line_it_names_is_one_of_the_log(path: Path) -> None:
    lines, code, oom = recorded(path)
    found = diagnose(lines, code, oom)
    assert found is not None
    assert found.line == "" or found.line in {line.strip() for line in lines}


@pytest.mark.parametrize("path", NOTHING, ids=lambda path: path.stem)
def test_a_log_without_a_cause_gives_none(path: Path) -> None:
    assert diagnose(*recorded(path)) is None


def test_every_entry_has_a_recorded_log() -> None:
    assert {item.id for item in CATALOGUE} == {path.stem.partition(".")[0] for path in SAMPLES}


def test_ids_are_unique_and_every_entry_says_what_to_do() -> None:
    assert len(CATALOGUE) == len({item.id for item in CATALOGUE})
    for item in CATALOGUE:
        assert item.mend.endswith("."), item.id
        assert item.explanation.endswith("."), item.id
        assert not item.title.endswith("."), item.id


def test_the_first_line_of_a_cause_is_the_one_that_is_shown() -> None:
    lines = ["CUDA out of memory. Tried 2 GiB", "torch.OutOfMemoryError: CUDA out of memory. Tried 1 GiB"]
    found = diagnose(lines, 1, oom_killed=False)
    assert found is not None
    assert lines[0] == found.line


def test_dockers_flag_counts_more_than_the_log_and_only_of_what_has_ended() -> None:
    ended, running = diagnose(["CUDA error: x"], 137, oom_killed=True), diagnose([], None, oom_killed=True)
    assert ended is not None
    assert "oom-killed" == ended.id
    assert running is None


def test_the_end_of_another_rank_is_no_cause_even_where_it_is_told_in_words_of_one() -> None:
    line = "RuntimeError: NCCL error: unhandled system error: Connection reset by peer"
    assert is_symptom(line)
    assert diagnose([line], 1, oom_killed=False) is None


def test_an_error_in_unknown_words_is_found_and_what_only_follows_it_is_not() -> None:
    lines, _, _ = recorded(LOGS / "none/unknown.log")
    assert "RuntimeError: the flux capacitor is not charged" == last_error(lines)
    assert "" == last_error(recorded(LOGS / "none/follows-another.log")[0])


INTRO = """# Why an engine ended

When a boot fails, or a rank dies under a ready lane, `fleet apply` and `fleet status` name the rank that ended first,
its exit code, whether the kernel's out-of-memory killer ended it, its last log lines (cut, readable, without secrets),
and a cause from this catalogue with what to do. `--json` has the cause's `id`.

* Lines that only tell of another rank's end ("connection closed by peer") are no cause.
* Which rank ended first is told by the nodes' own clocks. A cause marked with * can follow from another rank's end; it
  is named only where no other rank has a better reason, so that clocks that disagree do not put the blame wrong.
* An error in no wording of this catalogue is shown as the engine put it.

The first entry that fits is the cause. Entries are data: see "A cause" in [ARCHITECTURE.md](../ARCHITECTURE.md).

| id | cause | what to do |
|---|---|---|
"""


BAR = r"\|"
"""How a cell of a table holds a bar, also within code."""


def test_the_page_of_causes_lists_them_all_in_order() -> None:
    """Written anew by FLEET_GOLDEN=write."""
    rows = (
        f"| `{item.id}`{' *' if item.may_follow else ''} | {item.title} | {item.mend.replace('|', BAR)} |\n"
        for item in CATALOGUE
    )
    assert_golden_at(LOGS.parents[2] / "docs/causes.md", INTRO + "".join(rows))
