"""The containers of one node, by the docker SDK. What they print is read without the secrets they were given."""

import contextlib
import math
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from reconciler.core.desired import ContainerSpec
from reconciler.core.observed import Container
from reconciler.core.redaction import redactor
from reconciler.core.secret_marks import Mark, references
from reconciler.nodes import container_create, inspect
from reconciler.nodes.docker_engine import DockerEngine
from reconciler.nodes.docker_sdk import DockerSdk
from reconciler.nodes.errors import ErrorKind, NodeError, short_ids
from reconciler.nodes.log_lines import LogLines
from reconciler.nodes.protocols import ProgramEnd
from reconciler.nodes.times import since_param

if TYPE_CHECKING:
    import docker

LARGEST_OUTPUT = 64 * 1024
"""Bytes kept of what a program prints."""

MARK = "FLEET_RUN"
"""Variable of a program that is run in a container, and so of all it starts: Docker itself cannot end an exec."""

END_MARKED = """
for found in /proc/[0-9]*; do
  if grep -qs "FLEET_RUN=$1" "$found/environ"; then kill -9 "${found#/proc/}"; fi
done
"""
END_S = 5.0

CREATE_S = 120.0
"""Creating may unpack or copy; on a node whose disk is busy with an image that takes long."""


class SshContainers:
    """`ref` is an id or a name. Names are deterministic, so what was lost on the way is settled by looking."""

    def __init__(self, engine: DockerEngine, sdk: DockerSdk) -> None:
        self._engine = engine
        self._sdk = sdk

    async def inspect(self, ref: str) -> Container | None:
        """The container now, or None when there is none."""
        try:
            return inspect.container_from_inspect(await self._engine.get(f"/containers/{ref}/json"))
        except NodeError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return None
            raise

    async def create(
        self, name: str, spec: ContainerSpec, image_id: str, labels: Mapping[str, str], secrets: Mapping[str, str]
    ) -> str:
        """Create without starting, from the local image `image_id`; the new container's id."""
        body = container_create.payload(spec, image_id, labels, secrets)
        try:
            made = await self._sdk.call(f"creating {name}", partial(_create, body=body, name=name), CREATE_S)
        except NodeError as error:
            hide = redactor((key, secrets[reference]) for key, reference in references(spec))
            raise NodeError(error.kind, hide(error.message), error.hint) from None
        return str(made["Id"])

    async def start(self, ref: str) -> None:
        """Start; no effect when it runs."""
        await self._sdk.call(f"starting {short_ids(ref)}", lambda api: api.start(ref), CREATE_S)

    async def stop(self, ref: str, grace_s: float) -> None:
        """SIGTERM, and SIGKILL after `grace_s`; returns when it is stopped; no effect when it is."""
        grace = math.ceil(grace_s)
        await self._sdk.call(f"stopping {short_ids(ref)}", lambda api: api.stop(ref, timeout=grace), grace + CREATE_S)

    async def rename(self, ref: str, name: str) -> None:
        """Give another name."""
        await self._sdk.call(f"renaming {short_ids(ref)} to {name}", lambda api: api.rename(ref, name))

    async def remove(self, ref: str) -> None:
        """Remove a stopped container; a running one is refused; no effect when there is none."""
        try:
            await self._sdk.call(f"removing {short_ids(ref)}", lambda api: api.remove_container(ref), CREATE_S)
        except NodeError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise

    async def logs(self, ref: str, tail: int, since: str = "") -> Sequence[str]:
        """The last `tail` lines, stdout and stderr mixed, without line ends; only those since a time of Docker's."""
        lines = [line async for line in self._log(ref, tail, follow=False, since=since)]
        return lines[-tail:]

    async def run(self, ref: str, words: Sequence[str], timeout_s: float) -> ProgramEnd:
        """Run a program in a running container, and wait for its end; past its time it is ended, and all it started."""
        doing, mark = f"running {words[0]} in {short_ids(ref)}", uuid.uuid4().hex
        try:
            return await self._sdk.call(doing, partial(_run, ref=ref, words=list(words), mark=mark), timeout_s)
        except NodeError as error:
            if error.kind is ErrorKind.TIMEOUT:
                with contextlib.suppress(NodeError):  # a container without a shell keeps it
                    end = partial(_run, ref=ref, words=["sh", "-c", END_MARKED, "sh", mark], mark="")
                    await self._sdk.call(f"ending {words[0]} in {short_ids(ref)}", end, END_S)
            raise

    async def live_marks(self, ref: str, mark: Mark) -> Mapping[str, str]:
        """The mark of the value that each secret has in it now, by env key; empty when there is no container."""
        try:
            return inspect.live_marks(await self._engine.get(f"/containers/{ref}/json"), mark)
        except NodeError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return {}
            raise

    def follow(self, ref: str, tail: int) -> AsyncIterator[str]:
        """The last `tail` lines and then each new one until the container stops."""
        return self._log(ref, tail, follow=True)

    async def _log(self, ref: str, tail: int, follow: bool, since: str = "") -> AsyncIterator[str]:
        found = await self._engine.get(f"/containers/{ref}/json")
        lines, hide = LogLines(framed=not found["Config"].get("Tty")), redactor(inspect.secret_values(found))
        params = {"stdout": "1", "stderr": "1", "tail": str(tail), "follow": str(int(follow))}
        params |= {"since": since_param(since, found["State"].get("FinishedAt") or "")} if since else {}
        doing, path = f"reading the logs of {short_ids(ref)}", f"/containers/{ref}/logs"
        async with self._engine.stream(doing, "GET", path, params) as chunks:
            async for chunk in chunks:
                for line in lines.feed(chunk):
                    yield hide(line)
        for line in lines.rest():
            yield hide(line)


def _run(api: "docker.APIClient", ref: str, words: list[str], mark: str) -> ProgramEnd:
    made = api.exec_create(ref, words, environment={MARK: mark})["Id"]
    output = bytearray()
    for chunk in api.exec_start(made, stream=True):  # to its end: then it has an exit code
        output += chunk[: LARGEST_OUTPUT - len(output)]
    return ProgramEnd(int(api.exec_inspect(made)["ExitCode"]), bytes(output))


def _create(api: "docker.APIClient", body: dict[str, Any], name: str) -> dict[str, Any]:
    """Not by `create_container`, which adds the proxy settings of the controller's Docker configuration to the env."""
    made: dict[str, Any] = api.create_container_from_config(body, name)  # type: ignore[no-untyped-call]
    return made
