"""The models on one node's disks, over SSH: looked at, hashed."""

import re
from collections.abc import Collection, Mapping

from reconciler.core.models import ModelFacts, ModelPlace
from reconciler.nodes import model_script
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.protocols import OnProgress, Progress
from reconciler.nodes.ssh import SshSession

LOOK_S = 60.0
HASH_S = 24 * 3600.0
"""For one file. A terabyte on a slow disk takes hours; a connection that is lost is noticed by itself."""

SUM = 'exec 2>/dev/null; cd "$1" && sha256sum "./$2"; wc -c <"./$2"'
_SUM = re.compile(r"^\\?([0-9a-f]{64}) ", re.MULTILINE)


class SshModels:
    """See `protocols.Models`."""

    def __init__(self, session: SshSession) -> None:
        self._session = session

    async def look(self, place: ModelPlace, hashes: Collection[str] = ()) -> ModelFacts:
        """What is there, as a container sees it. Raises `NodeError`."""
        words = model_script.words(place, sorted(hashes))
        output = await self._session.run_script(model_script.SCRIPT, LOOK_S, *words)
        found = model_script.parse(output, place)
        if found is None:
            message = f"the shell of {self._session.target.login} on {self._session.target.host} ran no script"
            raise NodeError(ErrorKind.REFUSED, message, f"it answered {output.strip()[:200]!r}")
        return found

    async def digests(self, folder: str, files: Collection[str], on_progress: OnProgress) -> Mapping[str, str]:
        """Checksums, one file after the other: a disk reads one stream best."""
        found: dict[str, str] = {}
        done_bytes = 0
        for file in sorted(files):
            on_progress(Progress(done_bytes, None, f"hashing {file}"))
            output = await self._session.run_script(SUM, HASH_S, folder, file)
            if match := _SUM.search(output):
                found[file] = f"sha256:{match[1]}"
            done_bytes += _bytes(output)
        on_progress(Progress(done_bytes, None, ""))
        return found


def _bytes(output: str) -> int:
    last = output.split()[-1:] or [""]
    return int(last[0]) if last[0].isdecimal() else 0
