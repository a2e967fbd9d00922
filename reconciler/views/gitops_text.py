"""`fleet gitops status` as text."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from reconciler.views.words import duration


def gitops_text(told: Mapping[str, Any], now_s: float, clock: Callable[[float], str]) -> str:
    """How an agent stands, from what it wrote down. `clock`: a moment (seconds since 1970) as people write it."""
    return "".join(f"{line}\n" for line in _lines(told, now_s, clock))


def _lines(told: Mapping[str, Any], now_s: float, clock: Callable[[float], str]) -> Iterator[str]:
    state = told.get("state", "looking")
    running = f"runs as process {told['pid']}" if told.get("running") else "does not run"
    yield f"agent    {running} · {state}"
    for role in ("head", "applied", "good"):
        commit = told.get(role)
        about = f"  {told.get('subject', '')}" if role == "head" else ""
        yield f"{'newest' if role == 'head' else role:<8} {commit[:12] if commit else 'none'}{about}".rstrip()
    yield from _doing(told, clock)
    yield from _left_alone(told, now_s, clock)
    yield from (f"error    {told[name]}" for name in ("fetch_error", "error") if told.get(name))
    if told.get("running") and (following := told.get("next_look_s")) and not told.get("doing"):
        yield f"next     look at {clock(following)}"


def _doing(told: Mapping[str, Any], clock: Callable[[float], str]) -> Iterator[str]:
    """What is under way, or what is in the way."""
    if doing := told.get("doing"):
        yield f"doing    {doing['what'].partition('.')[2]} {doing['commit'][:12]}: {', '.join(doing['gangs'])}"
    if why := told.get("why"):
        until = told.get("until_s")
        yield f"why      {why}{f' (until {clock(until)})' if until else ''}"
    if hint := told.get("hint"):
        yield f"         {hint}"


def _left_alone(told: Mapping[str, Any], now_s: float, clock: Callable[[float], str]) -> Iterator[str]:
    """What drifted, what was repaired, and what is not to be touched."""
    if drifted := told.get("drifted"):
        yield f"drifted  {', '.join(drifted)}"
    if suspended := told.get("suspended"):
        until = suspended["until_s"]
        ends = f"until {clock(until)}" if until else "until it is ended"
        yield f"held off by {suspended['by']}, {ends}: {suspended['reason']}"
    for item in told.get("gave_up", ()):
        yield f"gave up  {item['gang']}: {item['why']}"
    if heals := told.get("heals"):
        last = heals[-1]
        ago = duration(round(max(0.0, now_s - last["at_s"])))
        yield f"repairs  {len(heals)}, the last {ago} ago: {last['gang']} {'went well' if last['ok'] else 'failed'}"
