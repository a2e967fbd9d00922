"""The difference between a rank as wanted and the container that is there, field by field.

Compared is the live object, not a label with itself: what somebody changed by hand shows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.core.desired import ContainerSpec, EnvValue, Mount, SecretRef
from reconciler.core.observed import Container
from reconciler.core.secret_marks import NO_MARKS, SecretMarks, by_env_key, differing


@dataclass(frozen=True)
class FieldChange:
    """One field: `before` as found, `after` as wanted; None means not there. Secrets are named, never shown."""

    field: str
    before: str | None
    after: str | None


def changes(wanted: ContainerSpec, found: Container, secrets: SecretMarks = NO_MARKS) -> tuple[FieldChange, ...]:
    """What differs, in a fixed order; empty when the container is what is wanted. `secrets`: as they are now."""
    return (*_changes(wanted, found), *secret_changes(wanted, found, secrets))


def secret_changes(wanted: ContainerSpec, found: Container, secrets: SecretMarks) -> tuple[FieldChange, ...]:
    """The secrets that have another value than the one the container was made with; each side is a mark."""
    made = found.owner.secrets if found.owner else NO_MARKS
    now = by_env_key(wanted, secrets)
    keys = differing(wanted, made, dict(found.env), secrets)
    return tuple(FieldChange(f"env.{key}", _mark_text(made.of(key)), _mark_text(now.of(key))) for key in keys)


def _changes(wanted: ContainerSpec, found: Container) -> Iterator[FieldChange]:
    yield from _image(wanted, found)
    if wanted.entrypoint is not None:
        yield from _differs("entrypoint", _words(found.entrypoint or ()), _words(wanted.entrypoint))
    yield from _command(wanted.command, found.command)
    yield from _env(wanted, found)
    yield from _mounts(wanted.mounts, found.mounts)
    yield from _differs("devices", _words(sorted(found.devices)), _words(sorted(wanted.devices)))
    if wanted.shm_bytes is not None:
        yield from _differs("shm_size", _text(found.shm_bytes), _text(wanted.shm_bytes))
    asked = {name for name, _ in wanted.ulimits}  # the engine's own defaults show in a container as well
    live = tuple(pair for pair in found.ulimits if pair[0] in asked)
    yield from _differs("ulimits", _pairs(live) or None, _pairs(wanted.ulimits) or None)
    yield from _differs("gpus", str(found.gpus), str(wanted.gpus))
    yield from _differs("network", found.network_mode, "host")
    yield from _differs("restart", found.restart_policy or "no", "no")
    yield from _differs("auto_remove", str(found.auto_remove).lower(), "false")


def _differs(field: str, before: str | None, after: str | None) -> Iterator[FieldChange]:
    if before != after:
        yield FieldChange(field, before, after)


def _image(wanted: ContainerSpec, found: Container) -> Iterator[FieldChange]:
    owner = found.owner
    if owner is None:
        yield FieldChange("image", found.image or found.image_id, wanted.image.reference)
    elif owner.digest != wanted.image.digest:
        yield FieldChange("image", owner.pin, wanted.image.reference)
    elif owner.image_id != found.image_id:  # same labels, other content: somebody recreated it from another image
        yield FieldChange("image", f"content {found.image_id}", f"content {owner.image_id}")


def _command(wanted: tuple[str, ...], found: tuple[str, ...]) -> Iterator[FieldChange]:
    """The words that went and came, values with their flags; order alone is a change of the whole line."""
    if wanted == found:
        return
    gone = list(_alone(found, wanted))
    new = list(_alone(wanted, found))
    if gone or new:
        yield FieldChange("argv", _words(gone) or None, _words(new) or None)
    else:
        yield FieldChange("argv", _words(found), _words(wanted))


def _alone(words: tuple[str, ...], others: tuple[str, ...]) -> Iterator[str]:
    """The words that the others do not have. A bare 512 says little: the flag before a value comes with it."""
    for flag, word in zip(("", *words), words, strict=False):
        if word in others:
            continue
        if flag.startswith("-") and flag in others and not word.startswith("-"):
            yield flag
        yield word


def _env(wanted: ContainerSpec, found: Container) -> Iterator[FieldChange]:
    live = dict(found.env)
    asked = dict(wanted.env)
    declared = found.owner.declared_env if found.owner else ()
    for key in sorted({*asked, *(key for key in declared if key in live)}):
        before, after = live.get(key), asked.get(key)
        if before != after:
            is_secret = isinstance(before, SecretRef) or isinstance(after, SecretRef)
            yield FieldChange(f"env.{key}", *(_env_text(value, is_secret=is_secret) for value in (before, after)))


def _env_text(value: EnvValue | None, *, is_secret: bool) -> str | None:
    """A plain value on one side of a secret is as a rule the secret itself, written out: it is not shown."""
    if isinstance(value, SecretRef):
        return f"secret {value.secret}"
    return "a value, not shown" if is_secret and value is not None else value


def _mark_text(mark: str | None) -> str:
    return f"secret {(mark or '')[:8]}…"


def _mounts(wanted: tuple[Mount, ...], found: tuple[Mount, ...]) -> Iterator[FieldChange]:
    before = {mount.target: mount for mount in found}
    after = {mount.target: mount for mount in wanted}
    for target in sorted({*before, *after}):
        yield from _differs(f"mount {target}", _mount_text(before.get(target)), _mount_text(after.get(target)))


def _mount_text(mount: Mount | None) -> str | None:
    return None if mount is None else f"{mount.source} {'ro' if mount.read_only else 'rw'}"


def _words(words: tuple[str, ...] | list[str]) -> str:
    return " ".join(words)


def _pairs(pairs: tuple[tuple[str, int], ...]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(pairs))


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)
