"""References to secrets: where the controller finds a value that no spec ever holds."""

import re
import shlex

from specs.diagnostics import did_you_mean, refuse

KINDS = ("env", "file", "command", "sops")
PATTERN = r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+|command:.+|sops:/.+#.+)$"
"""For the JSON Schema: what it cannot tell is left to `secret_reference`."""

LONGEST = 2000

_WHY = "A spec never holds a secret, only where the controller finds it."
_HOW = "write env:NAME, file:/absolute/path, command:PROGRAM ARGUMENTS or sops:/path/file.yaml#key.path"
_KEYS = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*", re.ASCII)


def secret_reference(text: str) -> str:
    """The reference as it is. Raises the error of a validator; the text is in none, for it may be the secret itself."""
    kind, colon, rest = text.partition(":")
    if not colon or kind not in KINDS:
        raise refuse("not a reference to a secret", _WHY, _meant(text, kind if colon else ""))
    if len(text) > LONGEST or not rest.isprintable():
        raise refuse(f"{kind}: is one line of at most {LONGEST} characters", _WHY)
    _CHECKS[kind](rest)
    return text


def _meant(text: str, kind: str) -> str:
    """What may have been meant by a text whose kind is not known. Nothing of the text is in it."""
    if text.startswith("$"):
        return "write env:NAME, without the $"
    if text.startswith(("/", "~", "./")):
        return "write file:/absolute/path"
    return did_you_mean(kind.lower(), KINDS) or _HOW


def _variable(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII):
        hint = "write env:NAME, without the $" if name.startswith("$") else ""
        raise refuse("env: wants the name of a variable", "It is letters, digits and '_'.", hint)


def _file(path: str) -> None:
    if not path.startswith("/") or path == "/":
        why = "A cron job and a shell start in different folders, and have different homes."
        raise refuse("file: wants an absolute path", why, "write file:/absolute/path")


def _command(line: str) -> None:
    try:
        words = shlex.split(line)
    except ValueError:
        raise refuse("command: has a quote that does not end", "It is split into words as a shell does.") from None
    if not words or not words[0]:
        raise refuse("command: wants a program and its arguments", "", "write for example command:pass show hf/token")
    if "/" in words[0] and not words[0].startswith("/"):
        why = "A cron job and a shell start in different folders."
        raise refuse("command: wants a program by its name or its absolute path", why)
    if not _ENDS_IN_SHELL.search(words[0]) and any(word in _SHELL_WORDS for word in words):
        why = "No shell reads the line: |, &&, ; and > would be arguments of the program."
        raise refuse("command: has a word that only a shell understands", why, "write command:sh -c '...'")


def _sops(rest: str) -> None:
    path, mark, keys = rest.rpartition("#")
    if not mark or not path.startswith("/") or path == "/":
        raise refuse(
            "sops: wants an absolute path, '#' and the path of a key", "", "write sops:/path/file.yaml#key.path"
        )
    if not _KEYS.fullmatch(keys):
        why = "It is names of letters, digits, '_' and '-' with dots between; a number is a place in a list."
        raise refuse("sops: has no path of a key behind '#'", why, "write sops:/path/file.yaml#key.path")


_CHECKS = {"env": _variable, "file": _file, "command": _command, "sops": _sops}
_SHELL_WORDS = frozenset({"|", "||", "&&", ";", "&", ">", ">>", "<", "2>&1"})
_ENDS_IN_SHELL = re.compile(r"(?:^|/)(?:ba|da|z|k|fi)?sh$")
