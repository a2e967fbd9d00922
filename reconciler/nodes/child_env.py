"""The environment of helper processes: what `ssh` needs, and nothing else that this process was given.

A shell or a CI job exports secrets for `env:` references; a child that lives as long as a transfer would carry them on.
"""

import os

KEPT = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_MESSAGES", "TZ", "TMPDIR", "XDG_RUNTIME_DIR"),
    *("SSH_AUTH_SOCK", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "SSH_SK_PROVIDER", "DISPLAY", "WAYLAND_DISPLAY"),
    *("KRB5CCNAME", "KRB5_CONFIG", "GNUPGHOME", "NSS_WRAPPER_PASSWD", "NSS_WRAPPER_GROUP", "LD_PRELOAD"),
)
"""Finding the program and its keys, asking for a passphrase, Kerberos, and users that a container image lacks."""


def child_environment() -> dict[str, str]:
    """What is kept of this process's environment."""
    return {name: os.environ[name] for name in KEPT if name in os.environ}
