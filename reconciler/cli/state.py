"""`fleet state`: where runs and revisions are recorded, whether that is sound, and taking it elsewhere."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.recording import Events, tell
from reconciler.cli.wiring import DEFAULT_SPEC, AsJson, SpecFile, group, inventory, say, say_json, write_whole

if TYPE_CHECKING:
    from state import Location, Store

WHERE = """Show where the state is recorded: a folder, or a PostgreSQL database (without its password).

The variable FLEET_STATE says where, or else the key `state` of the spec; without both it is .fleet beside the spec.

For example: FLEET_STATE=postgresql://ops@db/fleet fleet state where
"""

VERIFY = """Check what is recorded against the rules of the journal. Changes nothing; exits with 1 when one is broken.

For example: fleet state verify --json
"""

EXPORT = """Write everything that is recorded as JSON, to a file or to standard output.

For example: fleet state export state.json
"""

IMPORT = """Take over what `fleet state export` wrote (- is standard input). Only into a state that is empty.

For example, from the file beside the spec to PostgreSQL:

fleet state export | FLEET_STATE=postgresql://ops@db/fleet fleet state import -
"""

Out = Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Where to write; standard output without it.")]
In = Annotated[Path, typer.Argument(metavar="FILE", help="What to read; - is standard input.")]
STDIN = Path("-")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    recorded = group("See, check and move what is recorded.")
    recorded.command("where", help=WHERE)(where)
    recorded.command("verify", help=VERIFY)(verify)
    recorded.command("export", help=EXPORT)(export)
    recorded.command("import", help=IMPORT)(take_over)
    app.add_typer(recorded, name="state")


def where(file: SpecFile = DEFAULT_SPEC, as_json: AsJson = False) -> None:
    """Say the place, and whether something is there."""
    import state

    place = _place(file)
    store = _read(place)
    there = store is not None
    if store is not None:
        store.close()
    kind = "postgresql" if isinstance(place, state.Postgres) else "sqlite"
    text = str(place) if isinstance(place, state.Postgres) else str(place / state.FILE)
    if as_json:
        say_json({"place": text, "kind": kind, "exists": there})
    else:
        say(f"{text}{'' if there else ' (nothing is recorded yet)'}\n")


def verify(file: SpecFile = DEFAULT_SPEC, as_json: AsJson = False) -> None:
    """Say what is wrong."""
    from reconciler.core.exits import Exit

    place = _place(file)
    store = _read(place)
    found = store.verify() if store is not None else ()
    if store is not None:
        store.close()
    if as_json:
        say_json({"place": str(place), "exists": store is not None, "findings": found})
    elif found:
        say("".join(f"{sentence}\n" for sentence in found))
    else:
        say(f"{place}: {'nothing is recorded yet' if store is None else 'sound'}\n")
    raise typer.Exit(Exit.ERROR if found else Exit.OK)


def export(out: Out = None, file: SpecFile = DEFAULT_SPEC) -> None:
    """Write the snapshot."""
    from state import Snapshot
    from state.exchange import to_json

    store = _read(_place(file))
    snapshot = store.snapshot() if store is not None else Snapshot()
    if store is not None:
        store.close()
    if out is None:
        say(to_json(snapshot))
    else:
        write_whole(out, to_json(snapshot))


def take_over(source: In, file: SpecFile = DEFAULT_SPEC, events: Events = None) -> None:
    """Read a snapshot, record it."""
    import state
    from reconciler.core.events import StateImported
    from state.exchange import from_json

    text = sys.stdin.read() if source == STDIN else source.read_text(encoding="utf-8")
    snapshot = from_json(text)
    place = _place(file)
    store = state.open_store(place)
    try:
        store.restore(snapshot)
    finally:
        store.close()
    tell(StateImported(str(place), len(snapshot.runs), len(snapshot.revisions)))
    say(f"{len(snapshot.runs)} runs and {len(snapshot.revisions)} revisions are recorded in {place} now\n")


def _place(file: Path) -> "Location":
    from reconciler.history import location

    return location(inventory(file))


def _read(place: "Location") -> "Store | None":
    import state

    return state.read_store(place)
