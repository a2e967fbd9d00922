"""What a model's `config.json` allows: by how many GPUs its heads, layers and experts can be divided.

After vLLM's `ModelConfig.verify_with_parallel_config` and its attention layers, whose rules SGLang shares: each GPU
takes the same number of attention heads; KV heads are divided, or copied where there are fewer of them than GPUs; a
pipeline stage has at least one layer. A model with latent attention (`kv_lora_rank`) copies its one latent to each GPU.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

INNER = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where models of several kinds of input keep the configuration of the language model."""

HEADS = ("num_attention_heads", "n_head", "num_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "multi_query_group_num")
LAYERS = ("num_hidden_layers", "n_layer", "num_layers")
EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts")
NUMBERS = frozenset({*HEADS, *KV_HEADS, *LAYERS})
"""What is above zero in every model; a dense one may say that it has no experts."""


class Parallel(Protocol):
    """How a model is split, as a lane says it."""

    @property
    def tensor(self) -> int:
        """GPUs that share each layer."""
        ...

    @property
    def pipeline(self) -> int:
        """Stages, each with some of the layers."""
        ...

    @property
    def expert(self) -> int:
        """GPUs that share the experts."""
        ...


@dataclass(frozen=True)
class ModelConfig:
    """The numbers of a `config.json` that decide how a model can be split; None where it does not say."""

    heads: int | None = None
    kv_heads: int | None = None
    layers: int | None = None
    experts: int | None = None

    @classmethod
    def of(cls, config: Mapping[str, object]) -> "ModelConfig":
        """The numbers of a parsed `config.json`, those of the language model where it has several parts."""
        layers = [config]
        while (inner := _inner(layers[-1])) is not None:
            layers.append(inner)
        parts = layers[::-1]
        is_latent = _number(parts, ("kv_lora_rank",)) is not None
        return cls(
            heads=_number(parts, HEADS),
            kv_heads=None if is_latent else _number(parts, KV_HEADS),
            layers=_number(parts, LAYERS),
            experts=_number(parts, EXPERTS),
        )

    def divides(self, tensor: int) -> bool:
        """Whether `tensor` GPUs can share the heads."""
        kv_heads = self.kv_heads or tensor
        even = kv_heads % tensor == 0 if kv_heads >= tensor else tensor % kv_heads == 0
        return even and (self.heads or tensor) % tensor == 0

    def degrees(self, most: int) -> tuple[int, ...]:
        """The tensor parallel sizes that work, up to `most`."""
        return tuple(size for size in range(1, most + 1) if self.divides(size))


def parallel_faults(config: ModelConfig, parallel: Parallel) -> Iterator[str]:
    """Why a model cannot be split so: a sentence each. What the configuration does not say is no fault."""
    if not config.divides(parallel.tensor):
        most = max(parallel.tensor, config.kv_heads or 0)
        sizes = ", ".join(map(str, config.degrees(most)))
        yield f"{_heads(config)} cannot be divided by tensor {parallel.tensor}: tensor can be {sizes}"
    if config.layers is not None and parallel.pipeline > config.layers:
        yield f"{config.layers} layers are too few for pipeline {parallel.pipeline}: each stage needs one"
    if config.experts is not None and parallel.expert > config.experts:
        yield f"{config.experts} experts are too few for expert {parallel.expert}: each GPU needs one"


def unusable(config: Mapping[str, object], loc: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where a `config.json` that somebody wrote down says no number above zero, or null, though a number counts."""
    for key, value in config.items():
        if key in INNER and isinstance(value, Mapping):
            yield from unusable(value, (*loc, key))
        elif key in NUMBERS and value is not None and _number([{key: value}], (key,)) is None:
            yield (*loc, key)


def _heads(config: ModelConfig) -> str:
    if config.kv_heads is None or config.kv_heads == config.heads:
        return f"{config.heads} attention heads"
    return f"{config.heads or 'unknown'} attention heads and {config.kv_heads} KV heads"


def _inner(config: Mapping[str, object]) -> Mapping[str, object] | None:
    return next((item for key in INNER if isinstance(item := config.get(key), Mapping)), None)


def _number(parts: list[Mapping[str, object]], names: tuple[str, ...]) -> int | None:
    """The first whole number above zero under one of the names, the innermost part first."""
    found = (part.get(name) for part in parts for name in names)
    return next((item for item in found if isinstance(item, int) and not isinstance(item, bool) and item > 0), None)
