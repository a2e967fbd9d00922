"""A model on a node's disk as the Hugging Face cache lays it out: relative links into blobs named by their checksum."""

import hashlib
import json
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from .node import Node

COMMIT = "5f0b02c75b57c5855da9ae460ce51323ea669d8a"
REPOSITORY = "hub/models--lab--tiny"
SNAPSHOT = f"{REPOSITORY}/snapshots/{COMMIT}"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


@dataclass(frozen=True)
class HubModel:
    """Its files by their name in the snapshot."""

    files: dict[str, bytes]

    @classmethod
    def made(cls, shard_bytes: int, seed: int = 0) -> "HubModel":
        """A config, an index and two shards of random weights, the same for each seed."""
        noise = random.Random(seed)
        files = {name: _shard(noise.randbytes(shard_bytes)) for name in SHARDS}
        index = {"weight_map": {f"w{number}": name for number, name in enumerate(SHARDS)}}
        files["model.safetensors.index.json"] = json.dumps(index).encode()
        files["config.json"] = json.dumps({"model_type": "llama", "num_attention_heads": 4}).encode()
        return cls(files)

    def digest(self, name: str) -> str:
        """The checksum of a file, as a spec has it."""
        return f"sha256:{hashlib.sha256(self.files[name]).hexdigest()}"

    def place(self, node: Node) -> None:
        """Have it whole on a node."""
        remove(node)
        blobs, snapshot = (node.disk / "srv/models" / path for path in (f"{REPOSITORY}/blobs", SNAPSHOT))
        blobs.mkdir(parents=True)
        snapshot.mkdir(parents=True)
        for name, content in self.files.items():
            blob = blobs / self.digest(name).removeprefix("sha256:")
            blob.write_bytes(content)
            (snapshot / name).symlink_to(f"../../blobs/{blob.name}")

    def is_on(self, node: Node) -> bool:
        """Whether it is there to the last byte."""
        found = place_on(node)
        return all((found / name).is_file() and (found / name).read_bytes() == self.files[name] for name in self.files)


def place_on(node: Node) -> Path:
    """The model's folder, as this machine sees the node's disk."""
    return node.disk / "srv/models" / SNAPSHOT


def remove(node: Node) -> None:
    """Have nothing of it."""
    shutil.rmtree(node.disk / "srv/models/hub", ignore_errors=True)


def _shard(body: bytes) -> bytes:
    """A safetensors file of one tensor."""
    header = json.dumps({"w": {"dtype": "U8", "shape": [len(body)], "data_offsets": [0, len(body)]}}).encode()
    return len(header).to_bytes(8, "little") + header + body
