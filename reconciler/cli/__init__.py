"""The command line: arguments -> request -> `reconciler.Fleet` -> view -> exit code. One module a command."""

from reconciler.cli.main import main

__all__ = ["main"]
