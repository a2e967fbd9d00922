"""The lanes of the vLLM lab as an operator writes them: tensor parallel over two nodes, without a GPU."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.lab.specfile import QUESTION

from .environment import HOME
from .hf_model import NAME

CLUSTER, LANE = "mixed", "chat"
MODEL, SERVED_NAME = "bigram-hf", "tiny"
CACHE = "/srv/vllm-cache"
"""What vLLM found out about a model's class, for which it starts a process of ten seconds."""

ENV = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",
}
"""vLLM's CPU back end: cache in GiB; no threads pinned to cores, since all nodes have the same two; nothing compiled,
since the image has no compiler (`--enforce-eager` leaves some helpers of the layers to it)."""

PROBE = {"chat": QUESTION, "expect": "Paris is the capital of France", "timeout": "60s"}


def add_inventory(content: dict[str, Any], pair: Sequence[str], env: Path) -> None:
    """A cluster of the two nodes, and where vLLM lies on them."""
    content["clusters"][CLUSTER] = {"nodes": list(pair), "interface": "f0", "port": 30000}
    for name in pair:
        content["nodes"][name]["paths"]["vllm"] = str(env)


def chat_on_vllm(image: str) -> dict[str, Any]:
    """The lane as it is first: half of each tensor on each of two nodes."""
    return {
        "engine": "vllm",
        "image": image,
        "model": MODEL,
        "parallel": {"tensor": 2},
        "args": {"max-model-len": 256, "dtype": "float32", "enforce-eager": True},
        "env": ENV,
        "mounts": [
            {"source": "{paths.vllm}", "target": HOME},
            {"source": "{paths.models}", "target": "/srv/models"},
            {"source": CACHE, "target": "/root/.cache/vllm", "read_only": False},
        ],
        "shm_size": "1GiB",
        "stop_grace": "5s",
        "health": {"boot": "8m", "interval": "500ms", "probes": [PROBE]},
    }


def add_lane(content: dict[str, Any], image: str) -> None:
    """The model and the lane."""
    content["models"][MODEL] = {"path": "{paths.models}/" + NAME, "served_name": SERVED_NAME}
    content["lanes"][LANE] = chat_on_vllm(image)


def to_llamacpp(content: dict[str, Any]) -> None:
    """Serve the same words with the other engine: the lane's recipe is the one of the lab's pair."""
    content["lanes"][LANE] = {**content["lanes"]["pair"], "served_name": SERVED_NAME}
