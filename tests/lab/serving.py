"""A lane by hand: llama.cpp over some nodes, for tests that need a model that answers and not yet `fleet`."""

import json
import urllib.error
import urllib.request
from collections.abc import Sequence

from .lab import Lab
from .node import Node
from .registry import direct
from .shell import wait_until

PORT, WORKER_PORT = 30000, 50052
QUESTION = "What is the capital of France?"


def serve(lab: Lab, names: Sequence[str], *, model: str = "good", alias: str = "tiny") -> str:
    """Start a head on the first node and workers on the others; returns the base URL once it is healthy."""
    head, *workers = [lab.nodes[name] for name in names]
    lab.preload("llamacpp", names)
    for node in workers:
        start(lab, node, "worker", ["ggml-rpc-server", "-H", node.address, "-p", str(WORKER_PORT)])
    argv = ["llama-server", "-m", lab.models[model], "--alias", alias, "--host", "0.0.0.0", "--port", str(PORT)]
    if workers:
        argv += ["--rpc", ",".join(f"{node.address}:{WORKER_PORT}" for node in workers), "-ngl", "99"]
    start(lab, head, "head", argv)
    url = f"http://{head.address}:{PORT}"
    wait_until(f"{url} to be healthy", lambda: status(f"{url}/health") == 200, seconds=30)
    return url


def start(lab: Lab, node: Node, name: str, argv: Sequence[str]) -> None:
    options = ["run", "-d", "--name", name, "--network", "host", "-v", "/srv/models:/srv/models:ro"]
    node.docker(*options, lab.images["llamacpp"], *argv)


def ask(url: str, question: str = QUESTION) -> str:
    """The model's answer."""
    body = {"temperature": 0, "messages": [{"role": "user", "content": question}]}
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with direct().open(request, timeout=30) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])


def served_models(url: str) -> list[str]:
    with direct().open(f"{url}/v1/models", timeout=10) as answer:
        return [str(model["id"]) for model in json.load(answer)["data"]]


def status(url: str) -> int | None:
    """The HTTP status, or nothing where nobody answers."""
    try:
        with direct().open(url, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None
