"""Where the recorded state is: a folder of this machine, or a PostgreSQL database that several machines share."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from state.errors import StateError

FOLDER = ".fleet"
"""The folder of the state, beside the spec, where nothing else is said."""

POSTGRES = frozenset({"postgresql", "postgres"})
TOLD = frozenset({"host", "port", "dbname", "user", "sslmode", "options", "application_name"})
"""Settings in a URL that may be shown. Any other could be a secret, or lead to one."""

SHAPES = "Name a folder, or postgresql://USER@HOST/DATABASE. The password belongs in FLEET_STATE or in ~/.pgpass."


@dataclass(frozen=True)
class Postgres:
    """A PostgreSQL database by its URL. As text it is without its secrets."""

    url: str = field(repr=False)

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        user = f"{quote(parts.username)}@" if parts.username else ""
        host = parts.netloc.rpartition("@")[2]
        told = [(key, value) for key, value in parse_qsl(parts.query) if key in TOLD]
        query = f"?{urlencode(told, safe='/=')}" if told else ""
        return f"postgresql://{user}{host}{parts.path}{query}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Parts of the URL that nobody is to see."""
        parts = urlsplit(self.url)
        asked = [value for key, value in parse_qsl(parts.query) if key not in TOLD]
        return tuple({*asked, *((parts.password, unquote(parts.password)) if parts.password else ())})


Location = Path | Postgres


def locate(named: str | None, root: Path) -> Location:
    """Where the state is that is called `named`: a folder, relative to `root` (that of the spec), or a URL.

    Raises `StateError` for a URL that leads to no PostgreSQL database.
    """
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", named or "")
    if scheme is None:
        return root / Path(named or FOLDER).expanduser()
    if scheme[1].lower() not in POSTGRES:
        raise StateError(f"the state cannot be kept at a {scheme[1]} URL", SHAPES)
    try:
        parts = urlsplit(named or "")
        well = parts.port != 0 and bool(parts.path.strip("/"))
    except ValueError:
        well = False
    if not well:
        raise StateError("the URL of the state names no database, or its port is no number", SHAPES)
    return Postgres(named or "")
