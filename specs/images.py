"""References to container images, pinned by digest or by image id."""

import re
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from specs.diagnostics import refuse, wanted

DEFAULT_REGISTRY = "docker.io"

_DIGEST = r"sha256:[0-9a-f]{64}"
_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::[0-9]{1,5})?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST_RE = re.compile(_DIGEST)
_HOST_RE = re.compile(_HOST)
_REPOSITORY_RE = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG_RE = re.compile(_TAG)

_HOW_TO_PIN = "`fleet pin LANE --write` looks the digest up and writes it here: {ref}@sha256:<digest>"


@dataclass(frozen=True, slots=True)
class ImageRef:
    """An image named by content: a registry digest, or the image id of a local build.

    `text` is the reference as written. `registry` is a host such as "ghcr.io" or "127.0.0.1:5000", "docker.io"
    where none is written; `repository` is the path on it ("library/redis" for "redis"). `digest` is
    "sha256:<64 hex digits>". A local build (`kind` "id") has no registry and no repository: both are empty.
    """

    text: str
    registry: str
    repository: str
    digest: str
    kind: Literal["digest", "id"]

    @classmethod
    def parse(cls, text: str) -> "ImageRef":
        """Return the parsed reference.

        Raises PydanticCustomError (a ValueError) when it is malformed or not pinned.
        """
        if _DIGEST_RE.fullmatch(text):
            return cls(text, "", "", text, "id")
        name, at, digest = text.partition("@")
        if not at:
            raise _unpinned(text)
        if not _DIGEST_RE.fullmatch(digest):
            raise refuse(
                f"'{digest[:80]}' is not an image digest",
                "A digest is sha256: and 64 digits 0-9a-f.",
                "copy the whole digest",
            )
        registry, repository = _split(_without_tag(name, text))
        return cls(text, registry, repository, digest, "digest")

    def __str__(self) -> str:
        return self.text

    @classmethod
    def _validated(cls, value: object) -> "ImageRef":
        if isinstance(value, cls):
            return value
        if not isinstance(value, str):
            raise wanted("an image such as ghcr.io/owner/name@sha256:<digest>")
        return cls.parse(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validated,
            serialization=core_schema.plain_serializer_function_ser_schema(str, when_used="json"),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {
            "title": "Image",
            "description": "an image pinned by content: [registry/]repo[:tag]@sha256:<digest>, or sha256:<image id>",
            "type": "string",
            "pattern": rf"^(?:[^@\s]+@)?{_DIGEST}$",
        }


def _unpinned(text: str) -> ValueError:
    if re.fullmatch(r"sha256:.*|[0-9a-f]{12,64}", text):
        return refuse(
            f"'{text[:80]}' is not a whole image id",
            "A local build is pinned by its full image id: sha256: and 64 digits 0-9a-f.",
            "`docker image inspect --format '{{.Id}}' IMAGE` shows it",
        )
    return refuse(
        f"image '{text[:80]}' is not pinned by digest",
        "A tag can move: two nodes could run different images, and a rollback could not name what ran before.",
        _HOW_TO_PIN.format(ref=text[:80] or "REPO:TAG"),
    )


def _without_tag(name: str, text: str) -> str:
    head, slash, last = name.rpartition("/")
    last, colon, tag = last.partition(":")
    if colon and not _TAG_RE.fullmatch(tag):
        raise refuse(f"'{tag[:80]}' is not an image tag", f"It stands in '{text[:120]}'.")
    return head + slash + last


def _split(name: str) -> tuple[str, str]:
    """Split a name into registry and repository by Docker's rule: a first part with a dot or a colon is a host."""
    first, slash, rest = name.partition("/")
    has_host = bool(slash) and (first == "localhost" or "." in first or ":" in first)
    registry, repository = (first, rest) if has_host else (DEFAULT_REGISTRY, name)
    if not _HOST_RE.fullmatch(registry):
        raise refuse(f"'{registry[:80]}' is not a registry host")
    if not _REPOSITORY_RE.fullmatch(repository):
        raise refuse(
            f"'{repository[:80]}' is not an image repository",
            "A repository is parts of lower-case letters, digits, '.', '_' and '-', separated by '/'.",
        )
    if registry == DEFAULT_REGISTRY and "/" not in repository:
        repository = f"library/{repository}"
    return registry, repository
