"""The engine and its image: flags, layouts, attention, imports, libraries, the program itself.

Wordings after the sources and public issue threads of vLLM and SGLang, and from boots of real lanes on forks of vLLM.
"""

from reconciler.core.causes.signature import Signature

ENGINE = (
    Signature(
        id="kv-layout",
        title="the KV cache layout cannot hold this model",
        explanation="The model's attention layers have pages of different sizes, and the layout the attention backend "
        "declares has no room for that.",
        mend="The hint to set VLLM_KV_CACHE_LAYOUT helps only when the backend has that layout; otherwise use an image "
        "whose engine is made for the model.",
        patterns=(r"KV cache layout \w+ cannot express this model's mixed page sizes",),
    ),
    Signature(
        id="non-causal-attention",
        title="the attention backend cannot run the draft model",
        explanation="A block-diffusion draft looks ahead (non-causal attention), which this backend does not support.",
        mend="Give the draft another backend: `attention_backend` in speculative-config, for example TRITON_ATTN or "
        "FLEX_ATTENTION.",
        patterns=(
            r"non-causal \w*attention(?: is)? not supported",
            r"not support non-causal",
            r"non-causal prefill is not supported",
            r"unsupported: non-causal",
        ),
    ),
    Signature(
        id="eagle3-interface",
        title="speculative decoding does not fit this model class",
        explanation="The draft wants hidden states of the target, and the target's class (often a multimodal wrapper) "
        "does not offer them.",
        mend="Use an image whose engine supports EAGLE3 for this model, or leave speculative-config out.",
        patterns=(r"does not support EAGLE3 interface", r"set_eagle3_aux_hidden_state_layers"),
    ),
    Signature(
        id="no-attention-backend",
        title="no attention backend fits",
        explanation="The backend that was chosen, or every one there is, refuses this model, dtype or GPU.",
        mend="The message lists a reason for each backend; drop the lane's own choice or change the KV cache dtype.",
        patterns=(
            r"No valid attention backend found",
            r"Selected backend \S+ is not valid for this configuration",
        ),
    ),
    Signature(
        id="exclusive-flags",
        title="two of its flags exclude each other",
        explanation="The engine accepts either of them, not both.",
        mend="Leave one of the two out of the lane's `args`; the line names them.",
        patterns=(
            r"mutually exclusive",
            r"not allowed with argument",
            r"[Cc]an(?: ?not|'t) (both )?be (set|specified|used|enabled) (at the same time|together|simultaneously)",
            r"Cannot (set|specify|use) both",
        ),
    ),
    Signature(
        id="unknown-flag",
        title="the engine does not know one of its flags",
        explanation="A flag is misspelled, of another version, or has a value the engine does not take.",
        mend="Compare the lane's `args` with the engine's own --help in this image.",
        patterns=(
            r"unrecognized arguments?:",
            r"error: (unknown|invalid) argument",
            r"error: argument \S+: (invalid|expected)",
            r"error: ambiguous option",
            r"error: the following arguments are required",
        ),
    ),
    Signature(
        id="exec-format",
        title="the image is made for another kind of processor",
        explanation="The kernel cannot run its program: an amd64 image on an arm64 node, or the other way round.",
        mend="Pin the digest of an image for the node's platform.",
        patterns=(r"[Ee]xec format error",),
    ),
    Signature(
        id="no-program",
        title="the program to run is not in the image",
        explanation="The entrypoint or the first word of the command does not exist in the image, or cannot be run.",
        mend="Compare the lane's `entrypoint` (of a custom one also `argv`) with the image (`docker image inspect`).",
        patterns=(
            r"executable file not found in \$?PATH",
            r"exec: .*: (no such file or directory|permission denied)",
            r"(?:sh|bash): .*: (command )?not found",
        ),
        exit_codes=(126, 127),
    ),
    Signature(
        id="import-error",
        title="the image's Python packages do not fit together",
        explanation="A module, or a name in it, is missing: packages of different versions, or a fork that lacks it.",
        mend="Use an image that was built as one; a package mounted or installed over it is the usual reason.",
        patterns=(r"ImportError: cannot import name", r"ModuleNotFoundError: No module named"),
    ),
    Signature(
        id="missing-library",
        title="a shared library is missing or too old",
        explanation="A program of the image was linked against a library the container does not have.",
        mend="Use the image as it was built, or add the library to it; host libraries do not belong in its mounts.",
        patterns=(
            r"error while loading shared libraries",
            r"cannot open shared object file",
            r"undefined symbol",
            r"version [`'\"]?(GLIBC|GLIBCXX|CXXABI)_[\d.]+[`'\"]? not found",
        ),
    ),
)

REFUSED = (
    Signature(
        id="config-refused",
        title="the engine refused its configuration",
        explanation="A value, or two values together, are not allowed; the engine says which.",
        mend="Correct the lane's `args` as the line says.",
        patterns=(r"\d+ validation errors? for \w+Config", r"Value error, "),
    ),
)
"""What the engine says of any setting it refuses: asked after all that say more."""
