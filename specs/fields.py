"""The kinds of text a spec is made of: names, paths, hosts, keys."""

import base64
import binascii
import ipaddress
import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, WithJsonSchema

from specs.diagnostics import did_you_mean, refuse
from specs.secret_references import PATTERN, secret_reference

KEY_TYPES = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)

ULIMITS = (
    *("core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile"),
    *("nproc", "rss", "rtprio", "rttime", "sigpending", "stack"),
)
"""The limits Docker knows."""

_NAME = r"[a-z0-9][a-z0-9._-]{0,62}"
_HOST = r"(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9_:][A-Za-z0-9._:%-]*)"
_USER = r"[A-Za-z0-9_][A-Za-z0-9._-]*"


class _Matches:
    """A check that the whole text matches a pattern; says `rule` when it does not."""

    def __init__(self, what: str, pattern: str, rule: str, hint: str = "") -> None:
        self.what, self.rule, self.hint = what, rule, hint
        self.pattern = re.compile(pattern, re.ASCII)

    def __call__(self, text: str) -> str:
        if self.pattern.fullmatch(text):
            return text
        raise refuse(f"'{text[:80]}' is not {self.what}", self.rule, self.hint)


def _matching(what: str, pattern: str, rule: str, hint: str = "") -> tuple[AfterValidator, WithJsonSchema]:
    schema = {"type": "string", "pattern": f"^(?:{pattern})$", "description": rule}
    return AfterValidator(_Matches(what, pattern, rule, hint)), WithJsonSchema(schema)


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a node, cluster, model or lane."""
    return re.fullmatch(_NAME, text) is not None


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        hint = "leave the prefix length out" if "/" in text else ""
        raise refuse(f"'{text[:80]}' is not an IP address", "Write an IPv4 or IPv6 address.", hint) from None


def _endpoint(text: str) -> str:
    # The text is not repeated in the message: it may hold a password.
    try:
        url = urlsplit(text)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    if not usable or re.search(r"\s", text):
        raise refuse("not an http or https URL", "It is where the controller reaches the registry.")
    if "@" in url.netloc:
        raise refuse("a URL holds no user and no password", "What stands in a spec is no secret.")
    if url.query or url.fragment:
        raise refuse("the URL of a registry has no query and no fragment")
    return text.rstrip("/")


def _state_place(text: str) -> str:
    # The text is not repeated in the message: it may hold a password.
    scheme, has_scheme, rest = text.partition("://")
    if not text.strip() or (has_scheme and scheme not in ("postgresql", "postgres")):
        raise refuse("neither a folder nor a PostgreSQL URL", "", "write a path, or postgresql://USER@HOST/DATABASE")
    if has_scheme and (":" in rest.partition("/")[0].rpartition("@")[0] or "password=" in rest.partition("?")[2]):
        hint = "leave it out; the variable FLEET_STATE or the file ~/.pgpass has it"
        raise refuse("the URL of the state holds a password", "What stands in a spec is no secret.", hint)
    return text


def _host_key(text: str) -> str:
    kind, _, rest = text.strip().partition(" ")
    key = rest.split(" ", 1)[0]
    if kind not in KEY_TYPES:
        raise refuse(
            "not an SSH public key",
            f"A host key is its type and its base64 text; the types are {', '.join(KEY_TYPES)}.",
            "`ssh-keyscan -t ed25519 HOST` prints it; compare it on the machine: /etc/ssh/ssh_host_ed25519_key.pub",
        )
    try:
        blob = base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        raise refuse("the host key is not base64", "It may have been cut or wrapped.", "copy the whole line") from None
    if not blob.startswith(len(kind).to_bytes(4) + kind.encode()):
        raise refuse(f"the host key is not a key of the type {kind}", "The base64 text names another type.")
    return f"{kind} {key}"


def _ulimit(text: str) -> str:
    if text in ULIMITS:
        return text
    known = f"Docker knows {', '.join(ULIMITS)}."
    raise refuse(f"'{text[:80]}' is not the name of a limit", known, did_you_mean(text, ULIMITS))


def _protected(text: str) -> str:
    if text.startswith("/"):
        if ".." in text.split("/"):
            raise refuse(f"'{text[:80]}' holds '..'", "The place a path means must be plain to see.", "write it out")
        return text
    if text.startswith(("./", "../", "~")):
        hint = "write the absolute path"
        raise refuse(f"'{text[:80]}' is neither an image name nor an absolute path", "", hint)
    if not re.fullmatch(r"[A-Za-z0-9*?][A-Za-z0-9*?._:/@-]*", text, re.ASCII):
        raise refuse(
            f"'{text[:80]}' is not a pattern of image names",
            "It is a repository, with a tag or a digest or neither; * stands for any text and ? for any character.",
            "write for example ghcr.io/owner/*, ghcr.io/owner/name:v1 or ghcr.io/owner/name@sha256:<digest>",
        )
    return text


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise refuse("not a regular expression", f"Python's `re` says: {error}.") from None
    return text


def _reason(text: str) -> str:
    if text.strip():
        return text
    raise refuse("must not be blank", "Somebody will want to know why.")


Name = Annotated[
    str,
    *_matching(
        "a name",
        _NAME,
        "A name is 1 to 63 of a-z, 0-9, '.', '_' and '-', and starts with a letter or a digit.",
    ),
]
"""The name of a node, cluster, model, lane, path, port or fleet."""

ContainerName = Annotated[
    str,
    Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,254}$"),
]

EnvName = Annotated[
    str,
    *_matching(
        "the name of an environment variable",
        r"[A-Za-z_][A-Za-z0-9_]*",
        "It is letters, digits and '_', and does not start with a digit.",
    ),
]
"""The name of an environment variable."""

ArgName = Annotated[
    str,
    *_matching(
        "the name of an engine argument",
        r"[A-Za-z0-9][A-Za-z0-9._-]*",
        "It is letters, digits, '.', '_' and '-'.",
        "write it without the leading dashes, for example max-num-seqs",
    ),
]
"""The name of an engine argument, without leading dashes."""

Host = Annotated[str, *_matching("a host", _HOST, "It is a host name or an IP address.")]
"""A host name or IP address."""

User = Annotated[str, *_matching("a user name", _USER, "It is letters, digits, '.', '_' and '-'.")]
"""A login name."""

ProxyJump = Annotated[
    str,
    *_matching(
        "a jump host",
        rf"(?:{_USER}@)?(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9_][A-Za-z0-9._-]*)(?::[0-9]{{1,5}})?",
        "It is [user@]host[:port].",
    ),
]
"""A jump host: [user@]host[:port]."""

RegistryHost = Annotated[
    str,
    *_matching(
        "a registry host",
        r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::[0-9]{1,5})?",
        "It is host[:port] as image references name it, for example ghcr.io or 127.0.0.1:5000.",
    ),
]
"""A registry as image references name it: host[:port]."""

Platform = Annotated[
    str,
    *_matching(
        "a platform",
        r"[a-z0-9]+/[a-z0-9_]+(?:/[a-z0-9]+)?",
        "It is os/arch[/variant], for example linux/amd64 or linux/arm64.",
    ),
]
"""An OCI platform: os/arch[/variant]."""

KernelInterface = Annotated[
    str, *_matching("a network interface", r"[A-Za-z0-9_][A-Za-z0-9_.@:-]{0,14}", "It is a name `ip link` shows.")
]
"""The name of a network interface in the kernel, at most 15 characters."""

Hca = Annotated[
    str,
    *_matching(
        "a host channel adapter",
        r"[A-Za-z0-9_.-]+(?::[0-9]+)?(?:,[A-Za-z0-9_.-]+(?::[0-9]+)?)*",
        "It is a device `ibdev2netdev` or `rdma link` shows, several separated by commas.",
    ),
]
"""RDMA devices, separated by commas."""

Device = Annotated[
    str,
    *_matching(
        "a device",
        r"/[^\s:]+(?::[^\s:]+){0,2}",
        "It is /dev/NAME[:/in/container[:rwm]]. GPUs come by `gpus`; CDI names are not supported yet.",
    ),
]
"""A device of the node, by its path."""

_STRING = {"type": "string"}
Address = Annotated[
    str, AfterValidator(_address), WithJsonSchema({**_STRING, "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]})
]
"""An IPv4 or IPv6 address in its canonical form."""

Endpoint = Annotated[str, AfterValidator(_endpoint), WithJsonSchema({**_STRING, "pattern": "^https?://"})]
"""An http or https URL without credentials."""

HostKey = Annotated[str, AfterValidator(_host_key), WithJsonSchema({**_STRING, "pattern": "^[a-z]"})]
"""An SSH public key: type and base64, without a comment."""

SecretReference = Annotated[
    str,
    AfterValidator(secret_reference),
    WithJsonSchema({**_STRING, "pattern": PATTERN}),
]
"""Where the controller finds a secret: env:NAME, file:/path, command:PROGRAM ARGUMENTS or sops:/path#key.path."""

Sha256 = Annotated[
    str,
    *_matching("a checksum", r"sha256:[0-9a-f]{64}", "It is sha256: and 64 digits 0-9a-f.", "`sha256sum` prints it"),
]
"""A checksum: sha256:<64 hex digits>."""

Ulimit = Annotated[
    str, AfterValidator(_ulimit), WithJsonSchema({"type": "string", "pattern": f"^(?:{'|'.join(ULIMITS)})$"})
]
"""The name of a resource limit, as `docker run --ulimit` takes it."""

Protected = Annotated[
    str, Field(min_length=1), AfterValidator(_protected), WithJsonSchema({**_STRING, "pattern": "^[/A-Za-z0-9*?]"})
]
"""What is never collected: a pattern of image names, or an absolute path on the controller."""

Text = Annotated[str, WithJsonSchema({"type": ["string", "number", "boolean"]})]
"""Text that is kept as written, so that yes, 010 and 1e3 need no quotes."""

Line = Annotated[str, Field(min_length=1)]
"""Text that is not empty."""

Reason = Annotated[str, Field(min_length=1), AfterValidator(_reason)]
"""What a person tells the next one."""

Port = Annotated[int, Field(ge=1, le=65535)]
"""A TCP port."""

Expression = Annotated[str, Field(min_length=1), AfterValidator(_expression)]
"""A regular expression of Python's `re`."""

StatePlace = Annotated[str, AfterValidator(_state_place)]
"""Where the recorded state is: a folder on the controller, or the URL of a PostgreSQL database, without a password."""
