"""Where the state is, as a spec says it."""

from pathlib import Path

import pytest

from tests.unit.specs.helpers import BASE, edited, faults, loaded, messages, write


def with_state(text: str) -> str:
    return edited(("nodes:\n", f"state: {text}\nnodes:\n"))


@pytest.mark.parametrize(
    "place", ["../records", "/var/lib/fleet", "postgresql://ops@db.lan:5433/fleet", "postgres:///f"]
)
def test_it_is_read_as_it_is_written(place: str, tmp_path: Path) -> None:
    assert place == loaded(tmp_path, with_state(place)).state


def test_it_is_no_part_of_the_fingerprint(tmp_path: Path) -> None:
    assert loaded(tmp_path, BASE).fingerprint == loaded(tmp_path, with_state("../records")).fingerprint


def test_it_stands_in_one_file_only(tmp_path: Path) -> None:
    write(tmp_path, "state: a\n", "more.yaml")
    main = edited(("fleet: lab\n", "fleet: lab\ninclude: [more.yaml]\nstate: b\n"))
    assert ["more.yaml:1:1: state is defined twice"] == faults(tmp_path, main)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("2:8: state: the URL of the state holds a password", "postgresql://ops:s3cr3t@db/fleet"),
        ("2:8: state: the URL of the state holds a password", "postgresql://db/fleet?password=s3cr3t"),
        ("2:8: state: neither a folder nor a PostgreSQL URL", "mysql://ops:s3cr3t@db/fleet"),
        ("2:8: state: neither a folder nor a PostgreSQL URL", '""'),
        ("2:8: state: wants text, found a list", "[s3cr3t]"),
    ],
)
def test_what_it_cannot_be_is_told_without_a_password(expected: str, text: str, tmp_path: Path) -> None:
    assert [expected] == faults(tmp_path, with_state(text))
    assert "s3cr3t" not in messages(tmp_path, with_state(text))
