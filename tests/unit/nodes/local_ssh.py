"""An `OpenSsh` whose node is this machine: the same command lines, run by the shell here."""

from reconciler.nodes.forwards import Forward
from reconciler.nodes.openssh import OpenSsh
from reconciler.nodes.targets import SshTarget


class LocalSsh(OpenSsh):
    def __init__(self, name: str = "dgx1", noise: str = "", **changes: str) -> None:
        super().__init__(SshTarget(name=name, host="198.51.100.1", **changes))  # type: ignore[arg-type]
        self._noise = noise

    def argv(self, command: str, *forwards: Forward) -> list[str]:
        """`noise` is what a start-up file of the login shell does first."""
        return ["sh", "-c", f"{self._noise}\n{command}"]
