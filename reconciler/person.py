"""Who runs this: for records, leases and holds that other people read."""

import getpass
import socket


def user() -> str:
    """The login name. Cron jobs may have neither a name nor an entry in the user database."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def host() -> str:
    """The name of this machine."""
    return socket.gethostname()


def name() -> str:
    """ "ops@laptop"."""
    return f"{user()}@{host()}"
