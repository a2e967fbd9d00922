"""How the place of the state is named, and that its secrets stay in it."""

from pathlib import Path

import pytest

from state import Postgres, StateError, locate

ROOT = Path("/specs")


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (None, ROOT / ".fleet"),
        ("", ROOT / ".fleet"),
        ("state", ROOT / "state"),
        ("../shared", ROOT / "../shared"),
        ("/var/lib/fleet", Path("/var/lib/fleet")),
        ("~/fleet", Path.home() / "fleet"),
        ("postgresql://ops@db/fleet", Postgres("postgresql://ops@db/fleet")),
        ("postgres:///fleet", Postgres("postgres:///fleet")),
    ],
)
def test_a_folder_or_a_database(named: str | None, expected: object) -> None:
    assert locate(named, ROOT) == expected


@pytest.mark.parametrize(
    ("named", "what"),
    [
        ("sqlite:///x.db", "cannot be kept at a sqlite URL"),
        ("https://ops:s3cr3t@db/fleet", "cannot be kept at a https URL"),
        ("postgresql://ops:s3cr3t@db", "names no database"),
        ("postgresql://ops:s3cr3t@db:port/fleet", "its port is no number"),
        ("postgresql://ops:s3cr3t@[db/fleet", "names no database"),
    ],
)
def test_a_url_that_leads_nowhere_is_told_without_its_password(named: str, what: str) -> None:
    with pytest.raises(StateError, match=what) as caught:
        locate(named, ROOT)
    assert "s3cr3t" not in f"{caught.value} {caught.value.hint}"
    assert caught.value.hint.startswith("Name a folder, or postgresql://")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://ops:s3cr3t@db:5433/fleet", "postgresql://ops@db:5433/fleet"),
        ("postgres://:s3cr3t@db/fleet", "postgresql://db/fleet"),
        ("postgresql://ops:s3@cr3t@db/fleet", "postgresql://ops@db/fleet"),
        ("postgresql:///fleet?host=/run/pg&password=s3cr3t", "postgresql:///fleet?host=/run/pg"),
        ("postgresql://db/fleet?sslmode=require&sslpassword=s3cr3t#s3cr3t", "postgresql://db/fleet?sslmode=require"),
    ],
)
def test_a_database_is_shown_without_its_secrets(url: str, expected: str) -> None:
    assert str(Postgres(url)) == expected
    assert "s3cr3t" not in repr(Postgres(url))
