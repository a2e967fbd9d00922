"""The model: missing, partial, damaged, refused by its hub, or of a kind the engine does not know.

Wordings after the sources and public issue threads of huggingface_hub, transformers, safetensors, vLLM, SGLang and
llama.cpp.
"""

from reconciler.core.causes.signature import Signature

_WEIGHT_FILE = r"\S*\.(safetensors|gguf|bin|json|model|jinja)\b"

MODEL = (
    Signature(
        id="hub-denied",
        title="the model hub refused access",
        explanation="The repository is gated or private, or does not exist under this name, and the token does not "
        "open it.",
        mend="Set HF_TOKEN as a secret of the lane, accept the model's terms with that account, or stage the model and "
        "give a path.",
        patterns=(
            r"gated repo",
            r"GatedRepoError",
            r"40[13] Client Error",
            r"Access to model .* is restricted",
        ),
    ),
    Signature(
        id="hub-unreachable",
        title="the engine tried to load from the model hub and could not",
        explanation="A file was not in the mounted model folder, so the engine asked the hub, which this node cannot "
        "reach.",
        mend="`fleet models verify` tells what is missing on the node; check the lane's mount and model path.",
        patterns=(
            r"[Cc]ouldn't connect to '?https://huggingface\.co",
            r"LocalEntryNotFoundError",
            r"OfflineModeIsEnabled",
            r"host='huggingface\.co'",
        ),
    ),
    Signature(
        id="model-link-broken",
        title="a link of the model leads out of what the container sees",
        explanation="The file is a link into the cache's blobs, and its target is not inside the lane's mounts.",
        mend="Mount the whole cache that the links point into, or turn the links into relative ones inside it; "
        "`fleet models verify` lists them.",
        patterns=(r"No such file or directory: \S*/(snapshots|blobs)/\S*",),
    ),
    Signature(
        id="model-missing",
        title="the model is not where the engine looks for it",
        explanation="The path or name given to the engine is no model folder or file inside the container.",
        mend="Compare the lane's `mounts` and the model's path with the node; `fleet models verify` looks there.",
        patterns=(
            r"is not a local folder and is not a valid model identifier",
            r"Repo id must be in the form",
            r"Invalid repository ID or local directory specified",
            r"does not appear to have a file named",
            r"Cannot find any model weights",
            rf"No such file or directory: '?{_WEIGHT_FILE}",
            r"failed to open GGUF file",
            r"Can't load the configuration of",
        ),
    ),
    Signature(
        id="weights-damaged",
        title="a weight file is damaged or not whole",
        explanation="The file is cut short, is a Git LFS pointer, or was copied while it was written.",
        mend="`fleet models verify` names the file; remove it, and `fleet models sync` brings it again.",
        patterns=(
            r"Error while deserializing header",
            r"SafetensorError",
            r"PytorchStreamReader failed",
            r"data is not within the file bounds",
            r"invalid magic characters",
            r"model is corrupted or incomplete",
            r"unexpectedly reached end of file",
        ),
    ),
    Signature(
        id="model-unknown",
        title="the engine does not know this kind of model",
        explanation="The image's engine is older than the model's architecture, or never had it.",
        mend="Use an image whose engine lists the architecture.",
        patterns=(
            r"Model architectures? .*not supported",
            r"does not recognize this architecture",
            r"unknown (model|pre-tokenizer)\S* (architecture|type)",
        ),
    ),
    Signature(
        id="heads-not-divisible",
        title="the model cannot be split over this many GPUs",
        explanation="Tensor parallelism shares the attention heads out evenly, and their number does not divide.",
        mend="Set `parallel.tensor` to a divisor of the model's heads; the rest of the nodes can go to pipeline "
        "parallelism.",
        patterns=(
            r"attention heads \(\d+\) must be divisible by tensor parallel size",
            r"\b\d+ is not divisible by \d+",
            r"assert .*num_(kv_)?heads % tp_size == 0",
            r"must be divisible by (ep_size|tp_size|tensor)",
        ),
    ),
    Signature(
        id="quantization-unsupported",
        title="the engine cannot run this quantization here",
        explanation="The model's quantization is unknown to this engine, or not made for this GPU.",
        mend="Use another quantization of the model, or an image whose engine has kernels for it.",
        patterns=(
            r"quantization method .*(not supported|does not match|is unknown)",
            r"Unknown quantization method",
            r"Minimum capability: \d+",
        ),
    ),
    Signature(
        id="weights-do-not-fit",
        title="the weights do not fit the model the engine built",
        explanation="Names or shapes differ: another revision, a wrong loader, or a config of another model.",
        mend="Check the model's `revision` and the lane's load format; `fleet models verify` compares the files.",
        patterns=(
            r"size mismatch for ",
            r"There is no module or parameter named",
            r"Following weights were not initialized from checkpoint",
            r"KeyError: '(model\.|layers\.|lm_head|language_model\.)",
            r"wrong number of tensors; expected",
            r"missing tensor '",
        ),
    ),
    Signature(
        id="trust-remote-code",
        title="the model brings code of its own, which the lane does not allow",
        explanation="Its repository has Python files that the engine runs only when told so.",
        mend="Read that code, pin the revision, then give the lane `trust-remote-code: true`.",
        patterns=(
            r"trust_remote_code=True",
            r"contains custom code which must be executed",
            r"requires you to execute the configuration file",
        ),
    ),
    Signature(
        id="tokenizer",
        title="the tokenizer could not be loaded",
        explanation="Its files are missing from the model folder, or need a newer library than the image has.",
        mend="Check that tokenizer.json and tokenizer_config.json are in the model folder on every node.",
        patterns=(
            r"Couldn't instantiate the backend tokenizer",
            r"Can't load tokenizer for",
            r"Tokenizer class \S+ does not exist",
            r"error loading model vocabulary",
        ),
    ),
    Signature(
        id="context-beyond-model",
        title="the context is longer than the model was made for",
        explanation="max-model-len exceeds what the model's config declares.",
        mend="Lower max-model-len to the model's own length.",
        patterns=(r"max_model_len \(\d+\) is greater than the derived max_model_len",),
    ),
    Signature(
        id="model-not-loaded",
        title="llama.cpp could not load the model",
        explanation="The loader gave up without a reason this catalogue knows.",
        mend="Start it once with --verbose: the line before says why.",
        patterns=(r"(llama_model_load|srv +load_model|main|common_init_from_params).*failed to load model",),
    ),
)
