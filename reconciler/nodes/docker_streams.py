"""The two answers of the Docker Engine that have no end in sight, logs and pulls, without a thread.

The docker SDK takes a broken connection for the end of a log (its stream swallows socket errors) and gives no way to
end a pull. Over httpx on the same forwarded socket, cancelling the task closes the request, and a loss is a loss.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from reconciler.nodes.docker_engine import DockerEngine, refusal
from reconciler.nodes.errors import NodeError

CONNECT_S = 20.0
"""Between bytes there is no limit: unpacking a layer says nothing for minutes. SSH's keepalive notices a dead link."""


@asynccontextmanager
async def docker_stream(
    engine: DockerEngine,
    doing: str,
    method: str,
    path: str,
    params: Mapping[str, str],
    headers: Mapping[str, str] | None = None,
    refuse: Callable[[str], NodeError] | None = None,
) -> AsyncIterator[AsyncIterator[bytes]]:
    """The bytes of an answer as they come. Leaving the block ends the request, wherever it is.

    `refuse` makes the error of what Docker says when it refuses at once.
    """
    import httpx  # noqa: PLC0415 - 50 ms that a plan does not need

    transport = httpx.AsyncHTTPTransport(uds=str(await engine.listen()))
    timeout = httpx.Timeout(CONNECT_S, read=None)
    try:
        async with (
            httpx.AsyncClient(transport=transport, timeout=timeout, trust_env=False) as client,
            client.stream(method, f"http://docker{path}", params=params, headers=headers) as response,
        ):
            if response.is_error:
                message = _explained(await response.aread())
                raise refuse(message) if refuse else refusal(doing, response.status_code, message)
            yield response.aiter_bytes()
    except httpx.TransportError as error:
        raise await engine.why(doing, error) from error


def _explained(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace").strip()
