"""Run by Alembic: the steps happen on a connection, and in a transaction, that the caller has begun."""

from alembic import context

from state.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
