"""Where commits are told what became of them: the forge that the repository of the spec lives on."""

import ipaddress
import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from specs.diagnostics import refuse
from specs.environment import Secret
from specs.records import Record

HOMES = {"github": "https://api.github.com", "gitlab": "https://gitlab.com"}
"""Where the API of a forge is when no `url` says so. Forgejo and Gitea run at many places."""

_PART = r"[A-Za-z0-9_.-]+"
_LONGEST = 500


def _address(text: str) -> str:
    # The text is not repeated in the message: it may hold a password.
    try:
        url = urlsplit(text)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    if not usable or re.search(r"[^!-~]", text):
        raise refuse("not an http or https URL", "It is where the controller reaches the forge.")
    if "@" in urlsplit(text).netloc:
        raise refuse("a URL holds no user and no password", "What stands in a spec is no secret.", "use `token`")
    if "?" in text or "#" in text:
        raise refuse("the URL of a forge has no query and no fragment")
    return text.rstrip("/")


def _repository(text: str) -> str:
    parts = text.split("/")
    if len(text) <= _LONGEST and len(parts) > 1 and all(map(_is_part, parts)):
        return text
    hint = "leave the host and .git out" if "://" in text or text.startswith("git@") else ""
    raise refuse(f"'{text[:80]}' is not a repository", "It is owner/name, or group/subgroup/name of a GitLab.", hint)


def _is_part(text: str) -> bool:
    return re.fullmatch(_PART, text, re.ASCII) is not None and text.strip(".") != "" and not text.endswith(".git")


ForgeUrl = Annotated[str, AfterValidator(_address), WithJsonSchema({"type": "string", "pattern": "^https?://[^@?#]+$"})]
Repository = Annotated[
    str, AfterValidator(_repository), WithJsonSchema({"type": "string", "pattern": rf"^{_PART}(?:/{_PART})+$"})
]


class Forge(Record):
    """A forge that is told of every commit: a status per fleet and per placement, and a comment."""

    kind: Literal["github", "gitlab", "forgejo"] = Field(
        description="whose HTTP API it speaks; `forgejo` is Gitea's, too"
    )
    url: ForgeUrl | None = Field(
        default=None,
        description="where it is: https://HOST; needed for Forgejo and Gitea; default: api.github.com or gitlab.com",
    )
    repo: Repository = Field(description="the repository that the spec lives in: owner/name, or group/subgroup/name")
    token: Secret = Field(
        description="a reference to the token, which may write commit statuses and comments of this repository"
    )
    insecure: bool = Field(
        default=False, description="whether the token may travel without TLS: to an http URL that is not loopback"
    )

    @model_validator(mode="after")
    def _can_be_reached(self) -> "Forge":
        if self.url is None and self.kind not in HOMES:
            raise refuse("a Forgejo or Gitea needs its `url`", "It has no place that everybody knows.")
        if not self.insecure and self.address.startswith("http:") and not _is_loopback(self.address):
            why = "Anybody on the way could read the token."
            raise refuse(
                "the `url` of a forge is https", why, "write https://, or `insecure: true` beside it", ("url",)
            )
        if self.kind != "gitlab" and self.repo.count("/") != 1:
            raise refuse(f"'{self.repo[:80]}' is not a repository of a {self.kind}", "It is owner/name.", "", ("repo",))
        return self

    @property
    def address(self) -> str:
        """Where it is: `url`, or the place that everybody knows."""
        return self.url or HOMES[self.kind]


def _is_loopback(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
