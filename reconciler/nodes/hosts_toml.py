"""An image's original name, kept: for a while, a node's Docker asks our loopback port for what a registry has.

Docker 28 and later read `hosts.toml` at each pull when they have the containerd store; no restart is needed. A script
on the node holds the file and waits for the end of its stdin, so that a controller that dies leaves nothing.
"""

import asyncio
import re
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import asyncssh

from reconciler.nodes import facts
from reconciler.nodes.openssh import login_command
from reconciler.nodes.ssh import EXEC_ENV, SshSession

OLDEST_DOCKER = 28
ANSWER_S = 10.0
END_S = 5.0
MARK = "# fleet brings an image and removes this file"
DOCKER_HUB = "docker.io"
DOCKER_HUB_SERVER = "https://registry-1.docker.io"
_REGISTRY = re.compile(r"[A-Za-z0-9\[][A-Za-z0-9.:\]-]*")

_HOLD = """
dir=/etc/docker/certs.d/$1 file=/etc/docker/certs.d/$1/hosts.toml; shift;
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"; export PATH;
say() { echo; echo "@@fleet $1"; };
text() { for line in "$@"; do echo "$line"; done; };
command -v flock >/dev/null || { say denied; exit 0; };
made=;
for folder in /etc/docker /etc/docker/certs.d "$dir"; do
  [ -d "$folder" ] || { mkdir "$folder" 2>/dev/null && made="$folder $made"; };
done;
leave() {
  for folder in $made "$dir"; do rmdir "$folder" 2>/dev/null; done;
  [ -z "$1" ] || say "$1"; exit 0;
};
[ -w "$dir" ] || leave denied;
exec 9<"$dir" || leave denied;
if flock -n -x 9; then
  if [ -e "$file" ]; then read -r first <"$file"; [ "$first" = "$1" ] || leave foreign; fi;
  { text "$@" >"$file.new" && mv "$file.new" "$file"; } 2>/dev/null || { rm -f "$file.new"; leave denied; };
else
  flock -w 5 -s 9; [ "$(cat "$file" 2>/dev/null)" = "$(text "$@")" ] || leave foreign;
fi;
trap "" HUP INT TERM PIPE;
flock -s 9; say kept; cat >/dev/null;
flock -n -x 9 || exit 0;
[ "$(cat "$file" 2>/dev/null)" = "$(text "$@")" ] && rm -f "$file";
leave
"""
"""Arguments: the registry, then the lines of the file, the mark first. All who use the file hold a lock of the folder,
which ends with them: the last one removes it, and one that is there without a lock was left by a node that went down.
"""


def may_keep_name(store: str, docker_version: str) -> bool:
    """Whether a node's Docker reads `hosts.toml` at all: `store` "containerd", and a version like "28.5.2+dfsg1"."""
    major = re.match(r"\d+", docker_version)
    return store == "containerd" and major is not None and int(major[0]) >= OLDEST_DOCKER


@asynccontextmanager
async def pointing(session: SshSession, registry: str, listen_port: int) -> AsyncIterator[bool]:
    """Inside the block the node's Docker gets what `registry` has from `127.0.0.1:listen_port`.

    Gives False where that cannot be: no permission, somebody else's file, no `flock` program.
    """
    process = await _held(session, registry, listen_port) if _REGISTRY.fullmatch(registry) else None
    try:
        yield process is not None
    finally:
        if process is not None:
            await _let_go(process)


def lines(registry: str, listen_port: int) -> list[str]:
    """The file: the port first, and the registry itself for what is not there."""
    server = DOCKER_HUB_SERVER if registry == DOCKER_HUB else f"https://{registry}"
    return [
        MARK,
        f'server = "{server}"',
        f'[host."http://127.0.0.1:{listen_port}"]',
        '  capabilities = ["pull", "resolve"]',
    ]


def command(registry: str, listen_port: int) -> str:
    """What a login shell runs to hold the file."""
    script = " ".join(line.strip() for line in _HOLD.strip().splitlines())
    return login_command(script, registry, *lines(registry, listen_port))


async def _held(session: SshSession, registry: str, listen_port: int) -> "asyncssh.SSHClientProcess[str] | None":
    """As the login itself, else with sudo where it asks for no password."""
    plain = command(registry, listen_port)
    as_root = shlex.join(["exec", "sudo", "-n", *shlex.split(plain)[1:]])
    for way in (plain, as_root):
        with suppress(asyncssh.Error, OSError):
            process = await session.connection.create_process(way, env=EXEC_ENV, errors="replace")
            word = await _answer(process)
            if word == "kept":
                return process
            await _let_go(process)
            if word == "foreign":
                return None
    return None


async def _answer(process: "asyncssh.SSHClientProcess[str]") -> str:
    """The word after the marker; empty when the script ended without one."""
    with suppress(TimeoutError):
        async with asyncio.timeout(ANSWER_S):
            async for line in process.stdout:
                if line.startswith(facts.MARK):
                    return line.removeprefix(facts.MARK).strip()
    return ""


async def _let_go(process: "asyncssh.SSHClientProcess[str]") -> None:
    """Give the script its end, and wait until the file is gone, unless the connection is."""
    with suppress(asyncssh.Error, OSError, TimeoutError):
        process.stdin.write_eof()
        async with asyncio.timeout(END_S):
            await process.wait_closed()
    process.close()
