"""`fleet show`: a saved plan, or one recorded run with every step."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.plan import AsFormat, Format
from reconciler.cli.wiring import DEFAULT_SPEC, AsJson, SpecFile, inventory, say, say_json

if TYPE_CHECKING:
    import state
    from reconciler.saved import Saved

What = Annotated[str, typer.Argument(metavar="PLAN|RUN", help="A file of `fleet plan --out`, or the id of a run.")]

HELP = """Show a saved plan, or a run with every step it took.

A run is named by its id, twelve digits and letters, as `fleet history` and the output of `fleet apply` tell it. Its
steps are in the order in which they began; an open one was under way when the run ended or died. No node is asked.

For example: fleet show tonight.plan
"""
RUN_ID = re.compile(r"[0-9a-f]{12}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("show", help=HELP)(show)


def show(what: What, file: SpecFile = DEFAULT_SPEC, as_json: AsJson = False, output: AsFormat = Format.TEXT) -> None:
    """Read, show."""
    wanted = Format.JSON if as_json else output
    if RUN_ID.fullmatch(what) and not Path(what).exists():
        if wanted is Format.MARKDOWN:
            raise typer.BadParameter("a run is shown as text or as json")
        _show_run(file, what, as_json=wanted is Format.JSON)
    elif not Path(what).exists():
        raise typer.BadParameter(f"no saved plan and no run is named '{what}'; `fleet history` lists the runs")
    else:
        _show_plan(Path(what), wanted)


def _show_plan(path: Path, output: Format) -> None:
    from reconciler import saved

    found = saved.read(path)
    if output is Format.JSON:
        say(saved.saved_text(found))
    elif output is Format.MARKDOWN:
        from reconciler.views.plan_markdown import plan_markdown

        say(plan_markdown(found.plan, None))
    else:
        from reconciler.views.plan_text import plan_text

        say(f"{_head(found)}\n\n{plan_text(found.plan, None)}")


def _head(found: "Saved") -> str:
    from reconciler.holds import utc
    from reconciler.views.words import one_line

    return one_line(f"saved plan {found.id}, made {utc(found.at)} by {found.by} (plan {found.plan.id})")


def _show_run(file: Path, run_id: str, *, as_json: bool) -> None:
    from reconciler import history

    with history.reading(history.location(inventory(file))) as store:
        run = store.run(run_id) if store else None
        entries = store.entries(run_id) if store else ()
    if run is None:
        raise typer.BadParameter(f"no run {run_id} is recorded; `fleet history` lists those that are")
    if as_json:
        say_json({"run": run, "steps": [_fields(entry) for entry in entries]})
    else:
        say("".join(f"{line}\n" for line in _lines(run, entries)))


def _fields(entry: "state.Entry") -> dict[str, object]:
    from dataclasses import asdict

    return {**asdict(entry), "open": entry.is_open, "seconds": _seconds(entry)}


def _seconds(entry: "state.Entry") -> float | None:
    return None if entry.ended_at is None else round(max(entry.ended_at - entry.intent_at, 0.0), 3)


def _lines(run: "state.Run", entries: "tuple[state.Entry, ...]") -> Iterator[str]:
    from reconciler.history import ENDS, UNFINISHED
    from reconciler.holds import utc
    from reconciler.views.words import count, duration, one_line

    commit = f", commit {run.commit[:12]}" if run.commit else ""
    yield one_line(f"run {run.id}: `fleet {run.command}` of fleet {run.fleet}, plan {run.plan_id}{commit}")
    yield one_line(f"  began  {utc(run.started_at)} by {run.user}@{run.host}")
    if run.ended_at is None or run.exit_code is None:
        yield f"  {UNFINISHED}: it is going on, or it died; `fleet resume {run.id}` goes on from it"
    else:
        took = duration(max(run.ended_at - run.started_at, 0.0))
        yield f"  ended  after {took}: {ENDS.get(run.exit_code, 'ended')} (exit {run.exit_code})"
    yield ""
    for entry in entries:
        yield one_line(_step(entry))
    left = sum(entry.is_open for entry in entries)
    yield f"{count(len(entries), 'step')}{f', {left} open: the next apply settles them by looking' if left else ''}"


def _step(entry: "state.Entry") -> str:
    from reconciler.views.words import duration

    seconds = _seconds(entry)
    took = f" ({duration(seconds)})" if seconds is not None and seconds >= 0.5 else ""
    where = f" on {entry.node}" if entry.node else ""
    detail = f": {entry.detail}" if entry.detail else ""
    return f"  {entry.result or 'OPEN':<12}{entry.op:<9}{entry.target}{where}{took}{detail}"
