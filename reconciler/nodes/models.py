"""The models on one node's disks, over SSH: looked at, hashed."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from reconciler.core.model_stock import FileProof
from reconciler.core.models import ModelCopy, ModelFacts, ModelPlace
from reconciler.nodes import model_script
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.protocols import OnProgress, Progress
from reconciler.nodes.ssh import SshSession

if TYPE_CHECKING:
    from reconciler.nodes.openssh import OpenSsh

LOOK_S = 60.0
PROVE_S = 24 * 3600.0
"""For one file. A terabyte on a slow disk takes hours; a connection that is lost is noticed by itself."""

PROVE = r"""
exec 2>/dev/null
LC_ALL=C; export LC_ALL
cd "$1" || exit
stat -L -c 'bytes %s' "./$2"
case $2 in *.safetensors)
  head=$(od -An -v -t u8 -N 8 "./$2" | tr -d ' ')
  first=$(head -c 9 "./$2" | tail -c 1)
  if [ "$first" = "{" ] && [ "${head:-0}" -gt 1 ] && [ "$head" -le @HEAD@ ]; then
    last=$(
      head -c $((head + 8)) "./$2" | tail -c "$head" |
      grep -oE '"data_offsets" *: *\[ *[0-9]+ *, *[0-9]+' | sed 's/.*[^0-9]//' | sort -n | tail -n 1)
    echo "needs $((8 + head + ${last:-0}))"
  else echo "junk 1"
  fi ;;
esac
[ "$3" = hash ] && sha256sum "./$2" | sed 's/^\\*/sum /'
"""
"""A safetensors file begins with the length of its header in 8 bytes, little-endian, and the header as JSON, which says
where the bytes of each tensor end: the "Format" of https://huggingface.co/docs/safetensors. `junk`: it begins
otherwise. Arguments: folder, file, `hash` or not."""

PROVE = PROVE.replace("@HEAD@", str(100 * 2**20))
_TOLD = re.compile(r"^(bytes|needs|sum|junk) ([0-9a-f]+)", re.MULTILINE)


ADOPT = r"""
exec 2>&1
from=$1 to=$2
shift 2
if [ "$1" = . ]; then
  if [ -d "$from" ]; then mv -T "$from" "$to" || exit
  elif [ ! -d "$to" ]; then exit
  fi
else
  for file in "$@"; do
    [ ! -e "$from/$file" ] || mv -f "$from/$file" "$to/$file" || exit
  done
  [ ! -d "$from" ] || rmdir "$from"
fi
echo "@@done"
"""
"""Arguments: where it is, the name it gets, and "." for the whole folder or the files that go into it."""

ADOPT_S = 60.0


class SshModels:
    """See `protocols.Models`."""

    def __init__(self, session: SshSession, ssh: "Callable[[str], OpenSsh]") -> None:
        self._session = session
        self._ssh = ssh

    async def look(self, place: ModelPlace, hashes: Collection[str] = ()) -> ModelFacts:
        """What is there, as a container sees it. Raises `NodeError`."""
        words = model_script.words(place, sorted(hashes))
        output = await self._session.run_script(model_script.SCRIPT, LOOK_S, *words)
        found = model_script.parse(output, place)
        if found is None:
            message = f"the shell of {self._session.target.login} on {self._session.target.host} ran no script"
            raise NodeError(ErrorKind.REFUSED, message, f"it answered {output.strip()[:200]!r}")
        return found

    async def prove(
        self, folder: str, files: Collection[str], hashes: Collection[str], on_progress: OnProgress
    ) -> Mapping[str, FileProof]:
        """One file after the other: a disk reads one stream best."""
        found: dict[str, FileProof] = {}
        done_bytes = 0
        for file in sorted(files):
            verb = "hashing" if file in hashes else "reading"
            on_progress(Progress(done_bytes, None, f"{verb} {file}"))
            how = "hash" if file in hashes else "size"
            told = dict(_TOLD.findall(await self._session.run_script(PROVE, PROVE_S, folder, file, how)))
            if "bytes" in told:
                digest = f"sha256:{told['sum']}" if "sum" in told else ""
                needs = int(told["needs"]) if "needs" in told else None
                found[file] = FileProof(int(told["bytes"]), digest, needs, is_sound="junk" not in told)
                done_bytes += found[file].bytes if digest else 0
        on_progress(Progress(done_bytes, None, ""))
        return found

    async def fetch(self, copy: ModelCopy, on_progress: OnProgress) -> None:
        """By rsync, from the other node. Raises `NodeError`."""
        from reconciler.nodes.model_copying import copied  # noqa: PLC0415 - comes with the first copy

        await copied(self._ssh, self._session.target.name, copy, on_progress)

    async def adopt(self, copy: ModelCopy) -> None:
        """Rename what came. Raises `NodeError` REFUSED where something else has the name."""
        if copy.arrives == copy.target:
            return
        output = await self._session.run_script(ADOPT, ADOPT_S, copy.arrives, copy.target, *(copy.files or (".",)))
        if "@@done" not in output:
            message = f"{copy.arrives} cannot take the name {copy.target} on {self._session.target.name}"
            raise NodeError(ErrorKind.REFUSED, message, output.strip()[-200:])
