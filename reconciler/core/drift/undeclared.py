"""Config: what a container has that neither the spec it was made from nor its image gives it. Somebody's hand."""

from collections.abc import Iterator

from reconciler.core.classify import RankView
from reconciler.core.drift.applied import applied_spec
from reconciler.core.drift.finding import Finding, Kind, Severity
from reconciler.core.image_defaults import ImageDefaults
from reconciler.core.observed import Container

BY_HAND = "nothing: put it back by hand, or remove the container, and it makes a new one"
NO_SETTING = "label "
"""How fields begin that nothing runs by."""

HIDDEN = "a value, not shown"
"""A value that nobody declared may be a secret."""


def undeclared(where: str, rank: RankView) -> Iterator[Finding]:
    """Of the container that stands for a rank, when it runs and its image is known."""
    present = rank.present
    if present is None or not present.is_running:
        return
    made = applied_spec(present.owner, rank.rank.container)
    image = rank.facts.defaults_of(present.image_id)
    if made is None or image is None:
        return
    for key, expected in _variables(present, frozenset(key for key, _ in made.env), image):
        yield _finding(where, present, f"env.{key}", "Config.Env", expected, HIDDEN)
    if made.entrypoint is None and (present.entrypoint or ()) != (image.entrypoint or ()):
        words = (" ".join(one or ()) or "not set" for one in (image.entrypoint, present.entrypoint))
        yield _finding(where, present, "entrypoint", "Config.Entrypoint", *words)
    given = dict(image.settings)
    for name, value in present.settings:
        if given.get(name) != value:
            place = "Config.Labels" if name.startswith(NO_SETTING) else f"Config.{name}"
            yield _finding(where, present, name, place, given.get(name, "not set"), value)


def other_secrets(where: str, rank: RankView) -> Iterator[Finding]:
    """Secrets whose value in the container is not the one that it was made with, where who looked has the key."""
    present = rank.present
    if present is None or not present.is_running or present.owner is None:
        return
    made, live = present.owner.secrets, present.live_secrets
    for key, mark in live.marks if made.key == live.key else ():
        expected = made.of(key)
        if expected is not None and expected != mark:
            yield Finding(
                Kind.CONFIG,
                where,
                f"env.{key}",
                f"secret {expected[:8]}…",
                f"secret {mark[:8]}…",
                BY_HAND,
                since=present.created_at,
                evidence=f"docker inspect {present.name}: Config.Env, by its mark, against its label fleet.secrets",
            )


def _variables(present: Container, declared: frozenset[str], image: ImageDefaults) -> Iterator[tuple[str, str]]:
    """Those that nobody declared and that are not as the image has them, with what it has."""
    given = dict(image.env)
    for key, value in sorted(dict(present.env).items(), key=lambda pair: pair[0]):
        if key not in declared and given.get(key) != value:
            yield key, given.get(key, "not set")


def _finding(where: str, present: Container, field: str, place: str, expected: str, is_now: str) -> Finding:
    return Finding(
        Kind.CONFIG,
        where,
        field,
        expected,
        is_now,
        BY_HAND,
        since=present.created_at,
        evidence=f"docker inspect {present.name}: {place}; neither its spec nor its image says so",
        severity=Severity.NOTICE if field.startswith(NO_SETTING) else Severity.DEGRADED,
    )
