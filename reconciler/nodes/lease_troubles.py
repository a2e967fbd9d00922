"""What the lease program says when there is no lease to be had, in words for people."""

from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.targets import SshTarget


def trouble(target: SshTarget, said: str) -> NodeError:
    """The error that the program tells: its word, and the place it is about."""
    word, _, place = said.partition(" ")
    kind, message, hint = _TROUBLES.get(word, (ErrorKind.REFUSED, f"the lease cannot be had ({word})", ""))
    values = {"host": target.host, "user": target.login, "place": place}
    return NodeError(kind, f"no lease of {target.name}: {message.format(**values)}", hint.format(**values))


_TROUBLES = {
    "full": (
        ErrorKind.NO_SPACE,
        "nothing can be written to {place}",
        "make room for a few bytes in /tmp on {host}: `df -h /tmp; df -i /tmp`",
    ),
    "no-folder": (ErrorKind.DENIED, "{user} cannot make a folder in {place}", "`ls -ld {place}` on {host}"),
    "denied": (
        ErrorKind.DENIED,
        "{user} may not use {place}",
        "it is for whoever may use Docker: is {user} in the group of its socket?",
    ),
    "unsafe": (
        ErrorKind.DENIED,
        "{place} was made by a user who may not use Docker",
        "find out who did that, then take it away: `ls -ld {place}` on {host}",
    ),
    "no-flock": (
        ErrorKind.REFUSED,
        "{host} has neither flock nor python3",
        "one of them is needed to hold a lock; flock is in util-linux and in BusyBox",
    ),
    "no-lock": (
        ErrorKind.REFUSED,
        "the file system of {place} does not lock",
        "what is mounted there on {host} has to be a local one",
    ),
    "no-session": (
        ErrorKind.REFUSED,
        "there is no sshd process of this connection that {user} may end",
        "a lease ends its connection when it is lost, so the connection has to be OpenSSH's, and /proc must show it",
    ),
    "stuck": (
        ErrorKind.DENIED,
        "its holder does not end, and {user} cannot end it",
        "on {host}, as an administrator: `kill -9 {place}`; `fuser -v /tmp/fleet-lease-*/lock` tells who it is",
    ),
}
