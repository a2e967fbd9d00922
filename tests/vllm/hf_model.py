"""The lab's chain of words once more, as a Hugging Face model that vLLM loads: no download, 0.5 MB, one answer.

One Llama layer whose attention and feed-forward weights are zero, whose embedding is the identity and whose head maps
each word to its successor. The format of the weights is written by hand (https://huggingface.co/docs/safetensors: the
length of a JSON header as eight bytes, the header, the tensors); so is the tokenizer, which splits at white space.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.lab import model as chain_of_words
from tests.lab.cache import artefact, source
from tests.lab.model import BEGIN, END, TEMPLATE, UNKNOWN, WORDS

if TYPE_CHECKING:
    import numpy as np

NAME = "bigram-hf"
TOKENS = [UNKNOWN, BEGIN, END, *dict.fromkeys(word.strip() for word in WORDS)]
WIDTH, HEADS, FEED_FORWARD, CONTEXT, VOCABULARY = 256, 4, 256, 512, 64
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": WIDTH,
    "intermediate_size": FEED_FORWARD,
    "num_hidden_layers": 1,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "max_position_embeddings": CONTEXT,
    "vocab_size": VOCABULARY,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "bos_token_id": TOKENS.index(BEGIN),
    "eos_token_id": TOKENS.index(END),
}


def ensure_model() -> Path:
    """The model's folder, made once."""
    return artefact("models-hf", source(chain_of_words, sys.modules[__name__]), build) / NAME


def build(folder: Path) -> None:
    place = folder / NAME
    place.mkdir()
    write_json(place / "config.json", CONFIG)
    write_json(place / "generation_config.json", {key: CONFIG[key] for key in ("bos_token_id", "eos_token_id")})
    write_json(place / "tokenizer.json", tokenizer())
    write_json(place / "tokenizer_config.json", tokenizer_config())
    write_safetensors(place / "model.safetensors", weights(successors()))


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2))


def successors() -> dict[str, str]:
    """The lab's chain, its words without the spaces that are the tokenizer's business here."""
    named = {word.strip(): follower.strip() for word, follower in chain_of_words.successors().items()}
    return {token: named[token] for token in TOKENS}


def tokenizer() -> dict[str, object]:
    """A word is a token; a word that nobody knows is one too."""
    control = [
        {"id": number, "content": token, "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for number, token in enumerate(TOKENS[:3])
    ]
    vocabulary = {token: number for number, token in enumerate(TOKENS)}
    return {
        "version": "1.0",
        **dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder")),
        "added_tokens": control,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": UNKNOWN},
    }


def tokenizer_config() -> dict[str, object]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BEGIN,
        "eos_token": END,
        "unk_token": UNKNOWN,
        "model_max_length": CONTEXT,
        "chat_template": TEMPLATE,
        "clean_up_tokenization_spaces": False,
    }


def weights(chain: Mapping[str, str]) -> dict[str, "np.ndarray[Any, Any]"]:
    """The tensors by the names that transformers gives them."""
    import numpy as np  # noqa: PLC0415 - only the first lab of a machine builds a model

    embedding, head = (np.zeros((VOCABULARY, WIDTH), dtype="<f4") for _ in range(2))
    for number, token in enumerate(TOKENS):
        embedding[number, number] = 1
        head[TOKENS.index(chain[token]), number] = 2  # 32 above all others after the norm: certain at any temperature
    norm = np.ones(WIDTH, dtype="<f4")
    layer = "model.layers.0."
    shapes = dict.fromkeys([f"self_attn.{name}_proj" for name in "qkvo"], (WIDTH, WIDTH))
    shapes |= dict.fromkeys([f"mlp.{name}_proj" for name in ("gate", "up", "down")], (FEED_FORWARD, WIDTH))
    return {
        "model.embed_tokens.weight": embedding,
        "model.norm.weight": norm,
        "lm_head.weight": head,
        f"{layer}input_layernorm.weight": norm,
        f"{layer}post_attention_layernorm.weight": norm,
        **{f"{layer}{name}.weight": np.zeros(shape, dtype="<f4") for name, shape in shapes.items()},
    }


def write_safetensors(path: Path, tensors: Mapping[str, "np.ndarray[Any, Any]"]) -> None:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, tensor in tensors.items():
        raw = tensor.tobytes()
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
