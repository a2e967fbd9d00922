"""By how many GPUs a model can be divided: the arithmetic of heads, layers and experts."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.arithmetic import ModelConfig, parallel_faults


@dataclass(frozen=True)
class Split:
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1


PRO = ModelConfig(heads=128, kv_heads=8, layers=70, experts=384)

CASES: dict[str, tuple[str | None, ModelConfig, Split]] = {
    "128 and 8 heads on six GPUs": (
        "128 attention heads and 8 KV heads cannot be divided by tensor 6: tensor can be 1, 2, 4, 8",
        PRO,
        Split(tensor=6),
    ),
    "128 and 8 heads on eight GPUs": (None, PRO, Split(tensor=8)),
    "KV heads are copied where there are fewer of them than GPUs": (None, PRO, Split(tensor=16)),
    "twelve GPUs and eight KV heads": (
        "96 attention heads and 8 KV heads cannot be divided by tensor 12: tensor can be 1, 2, 4, 8",
        ModelConfig(96, 8),
        Split(tensor=12),
    ),
    "as many KV heads as heads are said once": (
        "40 attention heads cannot be divided by tensor 6: tensor can be 1, 2, 4, 5, 8, 10, 20, 40",
        ModelConfig(40, 40),
        Split(tensor=6),
    ),
    "a latent is copied": (None, ModelConfig(66, None), Split(tensor=6)),
    "KV heads alone are known": (
        "unknown attention heads and 8 KV heads cannot be divided by tensor 6: tensor can be 1, 2, 4, 8",
        ModelConfig(None, 8),
        Split(tensor=6),
    ),
    "nothing is known": (None, ModelConfig(), Split(6, 99, 99)),
    "more stages than layers": (
        "70 layers are too few for pipeline 71: each stage needs one",
        PRO,
        Split(pipeline=71),
    ),
    "more GPUs than experts": ("384 experts are too few for expert 512: each GPU needs one", PRO, Split(expert=512)),
}


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_split_is_said_with_the_arithmetic(name: str) -> None:
    expected, config, split = CASES[name]
    assert ([] if expected is None else [expected]) == list(parallel_faults(config, split))


@given(heads=st.integers(1, 256), kv_heads=st.integers(1, 64), tensor=st.integers(1, 300))
def test_a_size_that_works_gives_each_gpu_the_same(heads: int, kv_heads: int, tensor: int) -> None:
    config = ModelConfig(heads, kv_heads)
    works = heads % tensor == 0 and (kv_heads % tensor == 0 or tensor % kv_heads == 0)
    assert works == config.divides(tensor) == (tensor in config.degrees(tensor))


PLAIN = {"num_attention_heads": 128, "num_key_value_heads": 8, "num_hidden_layers": 70, "n_routed_experts": 384}

READ: dict[str, tuple[ModelConfig, dict[str, object]]] = {
    "a language model": (PRO, {**PLAIN}),
    "a model with pictures": (PRO, {"text_config": {**PLAIN}, "num_attention_heads": 16}),
    "a model in a model": (PRO, {"thinker_config": {"text_config": {**PLAIN}}, "vision_config": {"num_heads": 3}}),
    "the part does not say all": (
        ModelConfig(128, 8, 70, 16),
        {"text_config": {key: value for key, value in PLAIN.items() if "expert" not in key}, "num_experts": 16},
    ),
    "a model with latent attention": (ModelConfig(64, None, 10), {
        "num_attention_heads": 64, "num_key_value_heads": 64, "num_hidden_layers": 10, "kv_lora_rank": 512,
    }),
    "a latent of nothing": (ModelConfig(64, 4), {
        "num_attention_heads": 64, "num_key_value_heads": 4, "kv_lora_rank": None,
    }),
    "an old name": (ModelConfig(12, None, 6), {"n_head": 12, "n_layer": 6}),
    "nonsense": (ModelConfig(), {"num_attention_heads": "128", "num_hidden_layers": True, "num_experts": -1}),
    "nothing": (ModelConfig(), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_config_json_is_read_where_models_keep_their_numbers(name: str) -> None:
    expected, config = READ[name]
    assert expected == ModelConfig.of(config)
