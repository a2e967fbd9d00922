"""Marks: keyed fingerprints of secrets, by which a container tells that one changed. No value and no key is ever here.

Who has the key can say of a value whether it is the marked one; who has it not learns nothing from a mark.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.core.desired import ContainerSpec, SecretRef

Mark = Callable[[str, str], str]
"""The mark of a value under a key: of a reference and the value."""

COMPARED = frozenset({"env", "file", "sops"})
"""Kinds of references that are looked at in every plan. A command may ask a person, cost, or never say the same."""


@dataclass(frozen=True)
class SecretMarks:
    """Marks by name, all made under the key of this id. Without an id there are none."""

    key: str = ""
    marks: tuple[tuple[str, str], ...] = ()

    def of(self, name: str) -> str | None:
        """The mark of this name, None when there is none."""
        return next((mark for known, mark in self.marks if known == name), None)

    def text(self) -> str:
        """For a label: the key's id, then NAME=MARK, with blanks between."""
        return " ".join((self.key, *(f"{name}={mark}" for name, mark in self.marks)))


NO_MARKS = SecretMarks()


@dataclass(frozen=True)
class SeenSecrets:
    """What this controller can say of the secrets now: their marks by reference.

    `unknown` says why for references that cannot be resolved here, `no_key` why there are no marks at all.
    """

    marks: SecretMarks = NO_MARKS
    unknown: tuple[tuple[str, str], ...] = ()
    no_key: str = ""

    def why_not(self, reference: str) -> str:
        """Why the reference could not be resolved; empty when it could, or was not asked."""
        return dict(self.unknown).get(reference, "")


NOTHING_SEEN = SeenSecrets()


def marks_from(text: str) -> SecretMarks:
    """What a label says. One that nobody of us wrote says nothing."""
    key, *words = text.split() or [""]
    pairs = [word.partition("=") for word in words]
    if not all(name and mark for name, _, mark in pairs):
        return NO_MARKS
    return SecretMarks(key, tuple((name, mark) for name, _, mark in pairs))


def references(spec: ContainerSpec) -> Iterator[tuple[str, str]]:
    """Env key and reference of each secret of a container."""
    return ((key, value.secret) for key, value in spec.env if isinstance(value, SecretRef))


def is_compared(reference: str) -> bool:
    """Whether plans look at it."""
    return reference.partition(":")[0] in COMPARED


def by_env_key(spec: ContainerSpec, seen: SecretMarks) -> SecretMarks:
    """The marks of a container's secrets, by env key, from those by reference."""
    found = ((key, seen.of(reference)) for key, reference in references(spec))
    return SecretMarks(seen.key, tuple(sorted((key, mark) for key, mark in found if mark is not None)))


def differing(spec: ContainerSpec, made: SecretMarks, live: Mapping[str, object], seen: SecretMarks) -> Iterable[str]:
    """Env keys of secrets that certainly changed since the container was made with marks `made`, in order.

    `live`: the container's environment. Marks of two keys say nothing of each other; a secret under another reference
    is another field, not another value.
    """
    if not seen.key or made.key != seen.key:
        return ()
    unchanged = (
        (key, reference) for key, reference in sorted(references(spec)) if live.get(key) == SecretRef(reference)
    )
    pairs = ((key, made.of(key), seen.of(reference)) for key, reference in unchanged)
    return tuple(key for key, before, after in pairs if before and after and before != after)
