"""What vLLM asks of its arguments, as data.

From `EngineArgs.create_engine_config`, `validate_parsed_serve_args`, `ServeSubcommand.cmd` and `SchedulerConfig` of
vLLM 0.1x to 0.32 (2026): what those refuse when a boot is under way is refused here. The parser itself is the
preflight (`parsing.py`). Aliases are vLLM's own, which have one dash before several letters.
"""

from collections.abc import Iterator, Mapping

from reconciler.engines.arguments import ArgumentRules, Given, Pair, number
from reconciler.engines.base import Fault
from reconciler.engines.flags import Style

STYLE = Style(
    json_lists=frozenset({"allowed-origins", "allowed-methods", "allowed-headers"}), repeated=frozenset({"middleware"})
)

_RANKS = "the order of the cluster's `nodes`"
_HEAD = "the cluster, for the HTTP server of the head"
_NO_HTTP = "The lane's users, and the health gate, come by plain HTTP at the cluster's port."
_ONE_DOOR = "Each node would answer HTTP by itself; a lane has one head."

RULES = ArgumentRules(
    aliases={
        "tp": "tensor-parallel-size",
        "pp": "pipeline-parallel-size",
        "dp": "data-parallel-size",
        "ep": "enable-expert-parallel",
        "dpl": "data-parallel-size-local",
        "dpr": "data-parallel-start-rank",
        "dpn": "data-parallel-rank",
        "dpa": "data-parallel-address",
        "dpp": "data-parallel-rpc-port",
        "dpb": "data-parallel-backend",
        "dph": "data-parallel-hybrid-lb",
        "dpe": "data-parallel-external-lb",
        "dpm": "data-parallel-multi-port-external-lb",
        "dcp": "decode-context-parallel-size",
        "pcp": "prefill-context-parallel-size",
        "asc": "api-server-count",
        "cc": "compilation-config",
        "ac": "attention-config",
        "sc": "speculative-config",
        "dc": "diffusion-config",
    },
    owned={
        "model": "`model` of the lane",
        "model-tag": "`model` of the lane",
        "served-model-name": "`served_name` of the lane",
        "revision": "`revision` of the model",
        "tensor-parallel-size": "`parallel.tensor` of the lane",
        "pipeline-parallel-size": "`parallel.pipeline` of the lane",
        "data-parallel-size": "`parallel.data` of the lane",
        "enable-expert-parallel": "`parallel.expert` of the lane",
        "data-parallel-size-local": _RANKS,
        "data-parallel-start-rank": _RANKS,
        "data-parallel-rank": _RANKS,
        "data-parallel-address": "the cluster's head",
        "data-parallel-rpc-port": "`ports.data` of the lane",
        "n": "`nodes` of the lane",
        "r": _RANKS,
        "uds": _HEAD,
    },
    refused={
        "grpc": _NO_HTTP,
        "ssl-keyfile": _NO_HTTP,
        "ssl-certfile": _NO_HTTP,
        "api-key": "The health gate asks without a key, so that it would never be answered; and the key would stand in "
        "plans and labels.",
        "data-parallel-hybrid-lb": _ONE_DOOR,
        "data-parallel-external-lb": _ONE_DOOR,
        "data-parallel-multi-port-external-lb": _ONE_DOOR,
    },
    exclusive=(
        Pair(
            "enable-flashinfer-autotune",
            "kernel-config.enable-flashinfer-autotune",
            "vLLM ends with ValueError: enable_flashinfer_autotune and kernel_config.enable_flashinfer_autotune are "
            "mutually exclusive, be they the same.",
        ),
        Pair(
            "attention-backend",
            "attention-config.backend",
            "vLLM ends with ValueError: attention_backend and attention_config.backend are mutually exclusive.",
        ),
        Pair(
            "cudagraph-capture-sizes",
            "compilation-config.cudagraph-capture-sizes",
            "vLLM ends with ValueError: cudagraph_capture_sizes and compilation_config.cudagraph_capture_sizes are "
            "mutually exclusive.",
        ),
        Pair(
            "max-cudagraph-capture-size",
            "compilation-config.max-cudagraph-capture-size",
            "vLLM ends with ValueError: max_cudagraph_capture_size and compilation_config.max_cudagraph_capture_size "
            "are mutually exclusive.",
        ),
        *(
            Pair(
                flag,
                f"speculative-config.{key}",
                f"vLLM ends with ValueError: --{flag} and --speculative-config['{key.replace('-', '_')}'] are mutually "
                "exclusive.",
            )
            for flag, key in (
                ("spec-method", "method"),
                ("spec-model", "model"),
                ("spec-tokens", "num-speculative-tokens"),
            )
        ),
        Pair(
            "ir-op-priority",
            "kernel-config.ir-op-priority",
            "vLLM takes the priority of an operation in one of the two places only.",
        ),
        Pair(
            "enable-per-request-metrics",
            "disable-log-stats",
            "The metrics of a request come from the statistics that the other turns off.",
        ),
    ),
    needed=(
        Pair("enable-auto-tool-choice", "tool-call-parser", "vLLM refuses the one without the other."),
        Pair("enable-log-outputs", "enable-log-requests", "vLLM refuses the one without the other."),
        Pair("lora-modules", "enable-lora", "Adapters are served by an engine that was set up for them only."),
    ),
)

HEAD_ONLY = frozenset({"api-server-count"})
"""Arguments that a headless rank refuses: it has no API server."""

OWNED_ENV = {
    "RAY_ADDRESS": "the cluster's head",
    "VLLM_DP_RANK": _RANKS,
    "VLLM_DP_RANK_LOCAL": _RANKS,
    "VLLM_DP_SIZE": "`parallel.data` of the lane",
    "VLLM_DP_MASTER_IP": "the cluster's head",
    "VLLM_DP_MASTER_PORT": "the cluster's `rendezvous_port`",
    "VLLM_API_KEY": "the health gate, which asks without a key",
    "VLLM_PORT": "the cluster's ports",
}
"""Variables of vLLM and Ray (vLLM's `envs.py`) that say what the spec says elsewhere."""


def batch_faults(args: Mapping[str, Given]) -> Iterator[Fault]:
    """Yield what `SchedulerConfig` refuses: a batch smaller than its sequences, or than a prompt that is not cut."""
    batch = number(args, "max-num-batched-tokens")
    sequences, length = number(args, "max-num-seqs"), number(args, "max-model-len")
    if batch is None:
        return
    loc = args["max-num-batched-tokens"].loc
    if sequences is not None and batch < sequences:
        yield Fault(
            loc,
            f"`max-num-batched-tokens` {batch} is smaller than `max-num-seqs` {sequences}",
            "Each running sequence needs at least one token of a batch.",
            "make it at least as large",
        )
    chunked = args.get("enable-chunked-prefill")
    if length is not None and batch < length and chunked is not None and chunked.value is False:
        yield Fault(
            loc,
            f"`max-num-batched-tokens` {batch} is smaller than `max-model-len` {length}",
            "Without chunked prefill a whole prompt has to fit into one batch.",
            "make it at least as large, or leave chunked prefill on",
        )
