"""What systemd is told of a service with `Type=notify`: ready, alive, stopping (sd_notify(3)). Nothing without it."""

import contextlib
import os
import socket

SOCKET = "NOTIFY_SOCKET"
WATCHDOG = "WATCHDOG_USEC"
PROCESS = "WATCHDOG_PID"


def tell(state: str) -> None:
    """Send lines such as "READY=1"; a manager that is not there, or does not listen, is no error."""
    address = os.environ.get(SOCKET, "")
    if not address.startswith(("/", "@")):
        return
    where = "\0" + address[1:] if address.startswith("@") else address
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
        out.setblocking(False)
        out.sendto(state.encode(), where)


def watchdog_s() -> float | None:
    """How often at least systemd wants a sign of life, in seconds; None when it does not."""
    meant = os.environ.get(PROCESS)
    if meant is not None and meant != str(os.getpid()):
        return None
    try:
        seconds = int(os.environ[WATCHDOG]) / 1e6
    except (KeyError, ValueError):
        return None
    return seconds if seconds > 0 else None
