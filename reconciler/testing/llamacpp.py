"""Reads the command lines of llama.cpp lanes and behaves accordingly."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from reconciler.core.desired import ContainerSpec
from reconciler.testing.behaviours import GIB, Behaviour, Exits, Garbage, Serves, Worker

QUESTION = "What is the capital of France?"
ANSWERS = {QUESTION: " Paris is the capital of France."}
HEAD, WORKER = "llama-server", "ggml-rpc-server"
HEAD_BOOT_S, WORKER_BOOT_S = 30.0, 1.0
MEMORY_BYTES = 4 * GIB


def llamacpp_behaviour(spec: ContainerSpec) -> Behaviour:
    """A worker for `ggml-rpc-server`, a head for `llama-server`, and anything else ends with 0.

    A head whose model path contains "garbage" answers nonsense; others know the capital of France and echo the rest.
    """
    argv = (*(spec.entrypoint or ()), *spec.command)
    programs = [PurePosixPath(word).name for word in argv]
    if WORKER in programs:
        return _worker(argv)
    if HEAD in programs:
        return _head(argv)
    return Exits(after_s=0.1, code=0)


def _worker(argv: Sequence[str]) -> Behaviour:
    host = _option(argv, "127.0.0.1", "-H", "--host")
    port = int(_option(argv, "50052", "-p", "--port"))
    return Worker(port, WORKER_BOOT_S, host, memory_bytes=MEMORY_BYTES)


def _head(argv: Sequence[str]) -> Behaviour:
    model = _option(argv, "", "-m", "--model")
    kind = Garbage if "garbage" in model else Serves
    return kind(
        served_name=_option(argv, PurePosixPath(model).name, "-a", "--alias"),
        port=int(_option(argv, "8080", "--port")),
        boot_s=HEAD_BOOT_S,
        answers=ANSWERS,
        host=_option(argv, "127.0.0.1", "--host"),
        ranks=tuple(_peer(text) for text in _option(argv, "", "--rpc").split(",") if text),
        memory_bytes=MEMORY_BYTES,
    )


def _option(argv: Sequence[str], default: str, *names: str) -> str:
    """The value after the last of `names` in `argv`."""
    places = [place for place, word in enumerate(argv[:-1]) if word in names]
    return argv[places[-1] + 1] if places else default


def _peer(text: str) -> tuple[str, int]:
    address, _, port = text.rpartition(":")
    return address, int(port)
