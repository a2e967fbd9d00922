"""Carries out a plan for a command: shows it, asks, applies what of it is not withheld, says how it ended."""

import sys
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.cli.notes import tell_of_suspension
from reconciler.cli.plan import Format, rendered
from reconciler.cli.recording import run_id, tell
from reconciler.cli.wiring import say, say_json, stop_on_signals, warn

if TYPE_CHECKING:
    from reconciler.core.events import Event
    from reconciler.core.exits import Exit
    from reconciler.core.plan import Plan
    from reconciler.core.stale import Stale
    from reconciler.fleet import Applied, Fleet
    from reconciler.history import Recorded

DEFAULT_WAIT_S = 20.0
"""A lease of somebody who died lapses within it (`nodes/lease_program.py`): running again after a kill just works."""

Forbids = Callable[["Plan", "Recorded"], str]
"""Why a plan may not be carried out now, by what is recorded; empty when it may."""


async def carry_out(
    fleet: "Fleet",
    made: "Plan",
    *,
    yes: bool,
    as_json: bool,
    command: str,
    question: str = "Apply this plan?",
    told: Mapping[str, object] = MappingProxyType({}),
    saved_id: str | None = None,
    retry: bool = False,
    stale: "tuple[Stale, ...]" = (),
    wait_s: float | None = DEFAULT_WAIT_S,
    on_applied: "Callable[[Applied], None]" = lambda applied: None,
    forbids: Forbids = lambda plan, known: "",
) -> int:
    """Show the plan, ask unless told not to, apply what of it is not withheld; the exit code.

    `told`: what the JSON output says beside it. `saved_id`: of a saved plan. `retry`: also what failed before. `stale`:
    what is left out for it. `wait_s`: for leases that others hold. `on_applied`: told how it ended, before it is said.
    `forbids`: why it may not be carried out now, empty when it may.
    """
    from reconciler import holds
    from reconciler.core.events import RunEnded
    from reconciler.core.withhold import refused_summary, withheld_summary

    def but_withheld(made: "Plan", known: "Recorded") -> "Plan":
        return fleet.judged(holds.withheld(made, known, retry=retry, stale=stale), time.time())

    known = holds.recorded(fleet, time.time())
    tell_of_suspension(known)
    made = but_withheld(made, known)
    if not as_json:
        say(rendered(fleet, made, Format.TEXT))
    code = _standstill(made)
    if code is not None:
        why = refused_summary(made) or withheld_summary(made) or "there was nothing to carry out"
        tell(RunEnded("", int(code), why))
        return _told(code, {**told, "plan": made, "result": None}, as_json=as_json)
    if why := forbids(made, known):
        return _forbidden(why, {**told, "plan": made}, as_json=as_json)
    if not yes and not await agreed(question):
        return _declined(as_json=as_json)
    made = but_withheld(made, holds.recorded(fleet, time.time()))  # an answer may have taken its time
    applied = await _applied(fleet, made, as_json=as_json, command=command, saved_id=saved_id, wait_s=wait_s)
    on_applied(applied)
    return _told(applied.exit, {**told, "plan": made, "result": _result(applied)}, as_json=as_json)


def _told(code: "Exit", told: Mapping[str, object], *, as_json: bool) -> int:
    """The exit code, and for programs what there is to tell beside it."""
    if as_json:
        say_json({**told, "exit": int(code)})
    return code


def _declined(*, as_json: bool) -> int:
    from reconciler.core.events import RunEnded
    from reconciler.core.exits import Exit

    tell(RunEnded("", int(Exit.ERROR), "nothing was changed"))
    if as_json:
        warn("nothing was changed")
    else:
        say("Nothing was changed.\n")
    return Exit.ERROR


def _forbidden(why: str, told: Mapping[str, object], *, as_json: bool) -> int:
    from reconciler.core.events import RunEnded
    from reconciler.core.exits import Exit

    tell(RunEnded("", int(Exit.REFUSED), why))
    if not as_json:
        say(f"refused: {why}\n")
    return _told(Exit.REFUSED, {**told, "result": {"run": "", "summary": why}}, as_json=as_json)


def _standstill(made: "Plan") -> "Exit | None":
    """The exit code when nothing of the plan is to be carried out now."""
    from reconciler.core.outcome import Exit, plan_exit
    from reconciler.core.withhold import going, stands_in_the_way

    if stands_in_the_way(made) or made.forbidden or made.is_empty:
        return plan_exit(made, changes_count=False)
    return Exit.REFUSED if going(made).is_empty else None


async def agreed(question: str) -> bool:
    """Ask on a terminal; without one nobody can answer."""
    if not sys.stdin.isatty():
        warn("nobody to ask: say --yes to go on without a question")
        return False
    sys.stdout.write(f"{question} [y/N] ")
    sys.stdout.flush()
    return (await _line_typed()).strip().lower() in {"y", "yes"}


async def _line_typed() -> str:
    """The next line of the terminal. Waited for in the loop: a thread would keep the process after an interrupt."""
    import asyncio

    loop = asyncio.get_running_loop()
    typed = loop.create_future()
    loop.add_reader(sys.stdin.fileno(), typed.set_result, None)
    try:
        await typed
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline()


async def _applied(
    fleet: "Fleet", made: "Plan", *, as_json: bool, command: str, saved_id: str | None, wait_s: float | None
) -> "Applied":
    from reconciler.cli.plan import recorded_estimates
    from reconciler.cli.progress import reporter

    stop = stop_on_signals()
    with reporter(quiet=as_json, expected=recorded_estimates(fleet, made).steps) as show:

        def on_event(event: "Event") -> None:
            tell(event)
            show(event)

        return await fleet.apply(made, on_event, stop, command, saved_id, wait_s, run_id())


def _result(applied: "Applied") -> dict[str, object]:
    failures = [
        {
            "step": item.step.id,
            "status": item.status,
            "detail": item.detail,
            "cause": item.cause,
            "logs": list(item.logs),
        }
        for item in applied.failures
    ]
    return {
        "run": applied.run_id,
        "summary": applied.summary,
        "steps": applied.status,
        "failures": failures,
        "sent_bytes": applied.sent_bytes,
    }
