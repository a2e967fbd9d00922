"""Steps from the tables of each released version to the next. Alembic runs them; see `state/migrating.py`."""
