"""What each image of each node is to this fleet: an ordered list of rules, the first that holds decides.

Only what `fleet` brought is ever collected, and of that only what no lane wants, no container uses, nobody protects and
no rollback could need.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from reconciler.core.desired import ImagePin
from reconciler.core.identity import keep_tag
from reconciler.core.observed import Container, LocalImage


class Standing(StrEnum):
    """What an image is to this fleet. Values are stable: they are in JSON outputs."""

    PINNED = "pinned"  # a lane of the spec wants it, placed or not
    USED = "used"  # a container uses it, running or not, ours or not
    PROTECTED = "protected"  # the spec says so
    LOCKED = "locked"  # fleet.lock names it, though no lane wants it (yet)
    KEPT = "kept"  # for a rollback
    SPARE = "spare"  # may be collected
    FOREIGN = "foreign"  # others brought it, or gave it a name of their own


@dataclass(frozen=True)
class Wanted:
    """An image that lanes of the spec want."""

    pin: ImagePin
    lanes: tuple[str, ...]


@dataclass(frozen=True)
class Rules:
    """What the spec says of keeping. `retain`: unused images of one repository that a node keeps for rollbacks.

    `locked`: all images of `fleet.lock`, those of lanes too.
    """

    wanted: tuple[Wanted, ...]
    retain: int = 1
    protect: tuple[str, ...] = ()
    locked: tuple[ImagePin, ...] = ()


@dataclass(frozen=True)
class Holding:
    """One image of one node, judged. `reason` is for people."""

    node: str
    image: LocalImage
    standing: Standing
    reason: str

    @property
    def has_name(self) -> bool:
        """Whether it is called anything."""
        return bool(self._names)

    @property
    def _names(self) -> list[str]:
        given = given_names(self.image)
        return [repository_of(name) for name in given] or [name for name in self.image.names if "@" not in name]

    @property
    def name(self) -> str:
        """For people: what it is called, and twelve digits of its content."""
        given, names = given_names(self.image), self._names
        by_tag = (digest for digest in self.image.digests if any(name.endswith(keep_tag(digest)) for name in given))
        digest = next(by_tag, next(iter(self.image.digests), self.image.id))
        return f"{names[0] if names else '(no name)'}@{digest[:19]}"


def judged(
    node: str, images: Sequence[LocalImage], containers: Sequence[Container], rules: Rules
) -> tuple[Holding, ...]:
    """Every image of one node with its standing, by name. The first rule that holds decides."""
    unkept = [image for image in images if _why(image, containers, rules) is None and is_brought(image)]
    kept = _for_rollback([image for image in unkept if image.usable], rules.retain)
    found = []
    for image in images:
        standing, reason = _why(image, containers, rules) or _rest(image, kept)
        found.append(Holding(node, image, standing, reason))
    return tuple(sorted(found, key=lambda item: (item.name, item.image.id)))


def is_brought(image: LocalImage) -> bool:
    """Whether `fleet` brought it, and nobody else has given it a name since."""
    given = given_names(image)
    return bool(given) and all(name in given or "@" in name for name in image.names)


def given_names(image: LocalImage) -> tuple[str, ...]:
    """Its names that `fleet` gave: repository and keep-tag."""
    tags = tuple(f":{keep_tag(digest)}" for digest in image.digests)
    return tuple(name for name in image.names if name.endswith(tags))


def repository_of(name: str) -> str:
    """A name without its tag or digest: "127.0.0.1:5000/a/b:v1" -> "127.0.0.1:5000/a/b"."""
    bare = name.partition("@")[0]
    head, slash, last = bare.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"


def _why(image: LocalImage, containers: Sequence[Container], rules: Rules) -> tuple[Standing, str] | None:
    """Why it stays whatever else is there; None when only its age and its origin decide."""
    for standing, says in _RULES:
        reason = says(image, containers, rules)
        if reason is not None:
            return standing, reason
    return None


def _pinned(image: LocalImage, containers: Sequence[Container], rules: Rules) -> str | None:
    """A lane of the spec wants it. An incomplete one, too: what is there of it need not be brought again."""
    lanes = [lane for item in rules.wanted if _is_of(item.pin, image) for lane in item.lanes]
    return f"lane {', '.join(sorted(set(lanes)))}" if lanes else None


def _used(image: LocalImage, containers: Sequence[Container], rules: Rules) -> str | None:
    """A container uses it, in whatever state."""
    known = {image.id, *image.digests}
    users = sorted(
        item.name for item in containers if item.image_id in known or (item.owner and item.owner.digest in known)
    )
    return f"container {', '.join(users)}" if users else None


def _protected(image: LocalImage, containers: Sequence[Container], rules: Rules) -> str | None:
    """The spec protects it, and `fleet` brought it: what others brought is out of reach anyway."""
    if not is_brought(image):
        return None
    forms = _forms(image)
    patterns = (item for item in rules.protect if not item.startswith("/"))
    found = next((item for item in patterns if any(fnmatchcase(form, item) for form in forms)), None)
    return f"images.protect: {found}" if found is not None else None


def _locked(image: LocalImage, containers: Sequence[Container], rules: Rules) -> str | None:
    """It was just pinned, and the spec may name it next."""
    return "in fleet.lock" if any(_is_of(pin, image) for pin in rules.locked) else None


_RULES: tuple[tuple[Standing, Callable[[LocalImage, Sequence[Container], Rules], str | None]], ...] = (
    (Standing.PINNED, _pinned),
    (Standing.USED, _used),
    (Standing.PROTECTED, _protected),
    (Standing.LOCKED, _locked),
)


def _rest(image: LocalImage, kept: Mapping[str, str]) -> tuple[Standing, str]:
    """What it is when no lane, no container and no setting speaks for it."""
    if not is_brought(image):
        others = [name for name in image.names if name not in given_names(image) and "@" not in name]
        told = f"also named {', '.join(others)}" if given_names(image) else "fleet did not bring it"
        return Standing.FOREIGN, told
    if image.id in kept:
        return Standing.KEPT, f"for a rollback: the newest unused of {kept[image.id]}"
    return (
        Standing.SPARE,
        "no lane wants it and no container uses it" if image.usable else "it cannot run, and nobody uses it",
    )


def _is_of(pin: ImagePin, image: LocalImage) -> bool:
    return pin.digest in {image.id, *image.digests} or image.id in pin.configs


def _for_rollback(images: Sequence[LocalImage], retain: int) -> dict[str, str]:
    """The newest of each repository: repository by image id. Times of one node sort as text."""
    newest = sorted(images, key=lambda image: (image.tagged_at, image.id), reverse=True)
    found: dict[str, str] = {}
    repositories = {repository_of(name) for image in images for name in given_names(image)}
    for repository in sorted(repositories):
        of_it = (image for image in newest if repository in map(repository_of, given_names(image)))
        for image in [*of_it][:retain]:
            found.setdefault(image.id, repository)
    return found


def _forms(image: LocalImage) -> set[str]:
    """Every way to write its names, as Docker shows them and in full."""
    shown = {*image.names, *(repository_of(name) for name in image.names)}
    shown |= {f"{repository_of(name)}@{digest}" for name in image.names for digest in (image.id, *image.digests)}
    return shown | {_in_full(name) for name in shown}


def _in_full(name: str) -> str:
    """With its registry, by Docker's rule: "redis:7" -> "docker.io/library/redis:7"."""
    first, slash, _ = name.partition("/")
    if slash and (first == "localhost" or "." in first or ":" in first):
        return name
    return f"docker.io/{name}" if slash else f"docker.io/library/{name}"
