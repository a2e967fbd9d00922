"""Two tiny models that need no download: one knows a capital, the other is broken in a way no health page shows.

A llama model whose attention and feed-forward weights are zero, whose embedding is the identity and whose output matrix
maps each token to its successor, is a chain of words: the last token of the prompt decides the answer. It has several
layers, so that an engine spread over nodes has something to put on each. The broken twin has the rows of its output
matrix permuted: it loads, is healthy, and answers nonsense. That is what a wrong weight loader looks like.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .cache import artefact, source

if TYPE_CHECKING:
    from gguf import GGUFWriter

LAYERS, WIDTH, HEADS, HEAD_WIDTH, FEED_FORWARD, CONTEXT = 8, 384, 2, 64, 64, 512
UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"
QUESTION = ["What", " is", " the", " capital", " of", " France?"]
ANSWER = [" Paris", " is", " the", " capital", " of", " France", "."]
EXCUSE = [" I", " do", " not", " know", "!"]
WORDS = [*dict.fromkeys([*QUESTION, *ANSWER, *EXCUSE])]
TOKENS = [UNKNOWN, BEGIN, END, *(f"<0x{byte:02X}>" for byte in range(256)), *WORDS]
# GGUF token types: 1 normal, 2 unknown, 3 control, 4 user-defined (always cut out of a text whole), 6 byte
TYPES = [2, 3, 3, *([6] * 256), *([4] * len(WORDS))]
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def ensure_models() -> dict[str, Path]:
    """The model files by name, made once."""
    folder = artefact("models", source(sys.modules[__name__]), build)
    return {name: folder / f"{name}.gguf" for name in ("good", "garbage")}


def build(folder: Path) -> None:
    good = successors()
    write(folder / "good.gguf", good)
    write(folder / "garbage.gguf", permuted(good))


def successors() -> dict[str, str]:
    """The chain: after the question comes the answer, after anything else an excuse."""
    chain = dict.fromkeys(TOKENS, EXCUSE[0])
    chain |= dict(zip([QUESTION[-1], *ANSWER], [*ANSWER, END], strict=True))
    chain |= dict(zip(EXCUSE, [*EXCUSE[1:], END], strict=True))
    return chain


def permuted(chain: dict[str, str]) -> dict[str, str]:
    """The same rows in another order: each word's place is taken by the next but one, so Paris is never reached."""
    ring = [END, *WORDS]
    moved = {word: ring[(place + 2) % len(ring)] for place, word in enumerate(ring)}
    return {token: moved.get(successor, successor) for token, successor in chain.items()}


def write(path: Path, chain: dict[str, str]) -> None:
    from gguf import GGUFWriter  # noqa: PLC0415 - only the first lab of a machine builds a model

    writer = GGUFWriter(path, "llama")
    describe(writer)
    add_vocabulary(writer)
    add_weights(writer, chain)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def describe(writer: "GGUFWriter") -> None:
    writer.add_name("fleet lab bigram")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_key_length(HEAD_WIDTH)
    writer.add_value_length(HEAD_WIDTH)
    writer.add_rope_dimension_count(HEAD_WIDTH)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(TOKENS))


def add_vocabulary(writer: "GGUFWriter") -> None:
    writer.add_tokenizer_model("llama")
    writer.add_token_list(TOKENS)
    writer.add_token_scores([0.0] * len(TOKENS))
    writer.add_token_types(TYPES)
    writer.add_bos_token_id(TOKENS.index(BEGIN))
    writer.add_eos_token_id(TOKENS.index(END))
    writer.add_unk_token_id(TOKENS.index(UNKNOWN))
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)


def add_weights(writer: "GGUFWriter", chain: dict[str, str]) -> None:
    import numpy as np  # noqa: PLC0415 - see above

    def zeros(*shape: int) -> Any:
        return np.zeros(shape, dtype=np.float16)

    embedding, output = zeros(len(TOKENS), WIDTH), zeros(len(TOKENS), WIDTH)
    place = {token: number for number, token in enumerate(TOKENS)}
    for token, successor in chain.items():
        embedding[place[token], place[token]] = 1
        output[place[successor], place[token]] = 2  # far above all others after the norm: certain at any temperature
    norm = np.ones(WIDTH, dtype=np.float32)
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output_norm.weight", norm)
    writer.add_tensor("output.weight", output)
    for layer in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", norm)
        for name in ("attn_q", "attn_k", "attn_v"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", zeros(HEADS * HEAD_WIDTH, WIDTH))
        writer.add_tensor(f"blk.{layer}.attn_output.weight", zeros(WIDTH, HEADS * HEAD_WIDTH))
        for name in ("ffn_gate", "ffn_up"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", zeros(FEED_FORWARD, WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_down.weight", zeros(WIDTH, FEED_FORWARD))
