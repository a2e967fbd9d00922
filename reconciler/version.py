"""The version of this tool, in one place."""

from importlib import metadata

DISTRIBUTION = "fleet-reconciler"


def version() -> str:
    """The installed version; "0+unknown" when run from a tree that is not installed."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "0+unknown"


TOOL = f"fleet {version()}"
