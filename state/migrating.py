"""Brings tables of an earlier version to this one. Alembic is loaded only then: it costs a quarter of a second."""

from pathlib import Path

from sqlalchemy import Connection

from state.schema import revision_of, stamped
from state.statements import VERSION

SCRIPTS = Path(__file__).with_name("migrations")


def upgrade(connection: Connection, version: int) -> None:
    """From `version` (1 or more) to `VERSION`, in the transaction that `connection` is in: all of it or nothing.

    The caller holds the lock that keeps others from doing the same at once.
    """
    from alembic import command  # noqa: PLC0415 - see above
    from alembic.config import Config  # noqa: PLC0415 - see above

    if not connection.dialect.has_table(connection, stamped.name):
        stamp(connection, version)
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision_of(VERSION))


def stamp(connection: Connection, version: int) -> None:
    """Write down, where Alembic looks for it, which version the tables have."""
    stamped.create(connection, checkfirst=True)
    connection.execute(stamped.delete())
    connection.execute(stamped.insert().values(version_num=revision_of(version)))
