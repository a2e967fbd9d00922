"""Sentences for people: why a gang has to change. Nothing is ever decided by them."""

from collections.abc import Iterator, Mapping

from reconciler.core.classify import GangView, RankView, Rule, Situation, runs_other_fingerprint
from reconciler.core.diff import FieldChange
from reconciler.core.identity import is_proved
from reconciler.core.observed import Container, Source, SourceUnknown


def boot_reason(view: GangView, rule: Rule) -> str:
    """One line: what was found that asks for the change."""
    if rule.situation is Situation.ABSENT:
        return "wanted, not running"
    if rule.situation is Situation.STOPPED:
        return _stopped_reason(view)
    if rule.situation is Situation.BROKEN:
        return f"{'; '.join(_dead(view))}: the gang boots again"
    if rule.situation is Situation.CHANGED:
        return _changed_reason(view)
    if rule.situation is Situation.DRIFTED:
        return f"changed by hand on the node: {_names(found_fields(view))}"
    return rule.sentence


def _changed_reason(view: GangView) -> str:
    if runs_other_fingerprint(view):
        return f"the spec changed: {_names(found_fields(view)) or _unseen(view)}"
    return f"a secret changed: {_names(_new_secrets(view))}"


def _unseen(view: GangView) -> str:
    """What changed when no field of a rank's running container differs."""
    if any(item.container.is_running for item in view.strays):
        return "other nodes or ranks"
    return "something the running container does not show, as a default that is now left to the image"


def _stopped_reason(view: GangView) -> str:
    present = [rank.present for rank in view.ranks]
    if all(item is None or (item.state == "created" and not is_proved(item.name)) for item in present):
        return "wanted, staged, not started yet"
    return "; ".join(_dead(view)) or "wanted, not running"


def _dead(view: GangView) -> Iterator[str]:
    for rank in view.ranks:
        if not rank.is_up:
            yield f"rank {rank.rank.index} on {rank.rank.node} {describe_end(rank.present)}"


def describe_end(container: Container | None) -> str:
    """How a container that should run does not: "exited 137 (out of memory)", "is paused", "is missing"."""
    ended = container is not None and container.state in {"exited", "dead"}
    return f"{how_ended(container)}{_since(container.finished_at) if container and ended else ''}"


def how_ended(container: Container | None) -> str:
    """The same without a time, which stays as it is while the container does."""
    if container is None:
        return "is missing"
    if container.state in {"exited", "dead"}:
        return f"exited {container.exit_code}{_cause(container)}"
    if container.state == "created":
        error = f": {container.error}" if container.error else ""
        return f"was never started{error}"
    if container.state == "running":
        return "runs as something else"
    return f"is {container.state}"


def _cause(container: Container) -> str:
    if container.oom_killed:
        return " (out of memory)"
    return {137: " (killed)", 143: " (terminated)", 139: " (segmentation fault)"}.get(container.exit_code or 0, "")


def _since(finished_at: str) -> str:
    return f" at {finished_at[:19]}Z" if finished_at else ""


def found_fields(view: GangView) -> tuple[FieldChange, ...]:
    """What differs, over all ranks; a change that is the same on several ranks is told once."""
    found = [change for rank in view.ranks for change in _live(rank)]
    return tuple(dict.fromkeys(found))


def _new_secrets(view: GangView) -> tuple[FieldChange, ...]:
    """Of the ranks that run."""
    return tuple(change for rank in view.ranks if _live(rank) for change in rank.new_secrets)


def _live(rank: RankView) -> tuple[FieldChange, ...]:
    return rank.drift if rank.present is not None and rank.present.is_running else ()


def _names(fields: tuple[FieldChange, ...]) -> str:
    return ", ".join(dict.fromkeys(change.field for change in fields))


def boot_notes(view: GangView, sources: Mapping[str, Source]) -> tuple[str, ...]:
    """What a reader may want to know beside the reason: of a missing image, why nothing is known before the pull."""
    unasked = {}
    for rank in view.ranks:
        pin = rank.rank.container.image
        source = sources.get(pin.digest)
        if rank.fit is None and rank.facts.image_for(pin) is None and isinstance(source, SourceUnknown):
            unasked[pin.short] = source.reason
    return tuple(
        f"nothing is known of image {name} before it is pulled: {why}" for name, why in sorted(unasked.items())
    )
