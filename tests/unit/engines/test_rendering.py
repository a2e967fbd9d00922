"""What the engines make of lanes: whole gangs as tables, faults word by word, and fingerprints that must never move."""

from itertools import pairwise
from pathlib import Path

import pytest

from reconciler.core.canonical import FORM, canonical_json
from reconciler.core.desired import ContainerSpec, ImagePin, Mount, Preflight, RankSpec, Ready, SecretRef
from reconciler.engines import ENGINES
from reconciler.engines.flags import flags
from reconciler.engines.templates import NAMES
from tests.unit.engines.fleets import DIGEST, IMAGE, fleet, gang, shown, spec
from tests.unit.engines.fleets import faults as faults_of
from tests.unit.views.golden import assert_golden_at

GOLDEN = Path(__file__).parent / "golden"

LLAMA = (
    "engine: llamacpp, model: tiny, args: {jinja: true, threads: null}, "
    'mounts: [{source: "{paths.models}", target: /m}]'
)
CUSTOM = (
    'engine: custom, model: tiny, argv: [serve, "{model}", --nodes, "{nodes}", --rank, "{rank}", --head, "{head}", '
    '--me, "{address}", --port, "{port}", --meet, "{head}:{rendezvous_port}", --if, "{interface}", --on, "{node}", '
    '--as, "{served_name}", --extra, "{ports.extra}", --from, "{paths.models}/x", --json, \'{"a": {"b": 1}}\'], '
    "ports: {extra: 7000}, args: {k: [1, two], v: true}, env: {A: b, TOKEN: {secret: env:TOKEN}}, memory: 1GiB"
)

VLLM = (
    'engine: vllm, model: folder, mounts: [{source: "{paths.models}", target: /m}], '
    "args: {max-model-len: 4096, enable-prefix-caching: false, enforce-eager: true, allowed-origins: [a, b], "
    "middleware: [one.A, two.B], cudagraph-capture-sizes: [1, 2], "
    "speculative-config: {method: dflash, num_speculative_tokens: 5}}"
)
SGLANG = (
    'engine: sglang, model: folder, mounts: [{source: "{paths.models}", target: /m}], '
    "args: {mem-fraction-static: 0.8, trust-remote-code: true, disable-radix-cache: false}"
)

ROLES = (
    'engine: custom, model: tiny, nodes: 4, argv: [serve, "{model}"], args: {v: true}, order: [worker, head], '
    'ports: {control: 7000, store: 7001}, env: {A: a, B: "{rank}"}, parallel: {tensor: 4}, '
    'entrypoint: ["{paths.models}/run"], roles: {'
    'head: {env: {B: "{head}:{ports.store}", TOKEN: {secret: env:TOKEN}}}, '
    'worker: {argv: [work, "{address}:{ports.control}", --tp, "{tensor}", --hca, "{hca}"], entrypoint: [python3, -u], '
    "port: control, health: /healthz, stop_grace: 2s}}"
)

GANGS: list[tuple[str, str, str]] = [
    ("custom_4_by_role", ROLES, "four"),
    ("custom_4_all_at_once", ROLES.replace("order: [worker, head]", "order: []"), "four"),
    ("vllm_1", f"{VLLM}", "one"),
    ("vllm_4", f"{VLLM}, parallel: {{tensor: 2, data: 2, expert: 4}}, ports: {{data: 29600}}", "four"),
    ("vllm_2_wrapped", f"{VLLM}, parallel: {{pipeline: 2}}, entrypoint: [toolchain.py, serve]", "two"),
    ("vllm_2_without_fabric", "engine: vllm, model: hub, parallel: {tensor: 2}, shm_size: 0", "plain"),
    ("vllm_2_ray", "engine: vllm, model: hub, parallel: {tensor: 2}, args: {distributed-executor-backend: ray}", "two"),
    ("sglang_1", f"{SGLANG}", "one"),
    ("sglang_2", f"{SGLANG}, parallel: {{tensor: 2, expert: 2}}, ulimits: {{memlock: 5}}, devices: [/dev/x]", "two"),
    ("llamacpp_1", f"{LLAMA}", "one"),
    ("llamacpp_2", f"{LLAMA}, nodes: 2", "two"),
    ("llamacpp_4", f"{LLAMA}, nodes: 4, ports: {{rpc: 50099}}, stop_grace: 5s", "four"),
    ("llamacpp_2_without_fabric", f"{LLAMA}, nodes: 2", "plain"),
    ("custom_1", CUSTOM, "one"),
    ("custom_2", f"{CUSTOM}, nodes: 2, gpus: 0, entrypoint: [python3, -u]", "two"),
]


@pytest.mark.parametrize(("name", "lane", "cluster"), GANGS, ids=[row[0] for row in GANGS])
def test_a_gang_as_it_is_rendered(name: str, lane: str, cluster: str, tmp_path: Path) -> None:
    assert_golden_at(GOLDEN / f"{name}.txt", shown(gang(tmp_path, lane, cluster)))


def test_rendering_is_the_same_every_time(tmp_path: Path) -> None:
    assert fleet(tmp_path, CUSTOM) == fleet(tmp_path, CUSTOM)


WRITTEN: list[tuple[str, str]] = [
    ("mounts: [{source: //srv//a/., target: //m//x/}]", "mounts: [{source: /srv/a, target: /m/x}]"),
    ("devices: [/dev/a:/dev/a:rwm, /dev/b:/dev/b, /dev/c:/dev/d:rwm]", "devices: [/dev/a, /dev/b, /dev/c:/dev/d]"),
    ("devices: [/dev/a:/dev/a:r]", "devices: [/dev/a:/dev/a:r]"),
    ("shm_size: 0", "gpus: null"),
]


@pytest.mark.parametrize(("written", "meant"), WRITTEN)
def test_what_docker_says_back_in_another_form_is_rendered_in_that(written: str, meant: str, tmp_path: Path) -> None:
    """Else the lane would differ from its container for ever, and every apply would restart it."""
    first, second = (fleet(tmp_path, f"{LLAMA.partition(', mounts')[0]}, {form}").gangs for form in (written, meant))
    assert first == second


def test_a_lane_that_is_not_placed_runs_nowhere(tmp_path: Path) -> None:
    loaded = spec(tmp_path, LLAMA)
    parts = [ENGINES[lane.engine].name for lane in loaded.lanes.values()]
    assert ["llamacpp"] == parts
    assert 1 == len(fleet(tmp_path, LLAMA).gangs)


FAULTS: list[tuple[str, list[str]]] = [
    ("engine: llamacpp", ["llamacpp needs a model (set `model` of the lane)"]),
    (
        "engine: llamacpp, model: tiny, argv: [x]",
        ["llamacpp makes its own command line (use `args`, or `engine: custom`)"],
    ),
    (
        "engine: llamacpp, model: tiny, args: {model: x, m: y, alias: z, a: w}",
        [
            "`model` is made from `model` of the lane (take it out of `args`)",
            "`m` is made from `model` of the lane (take it out of `args`)",
            "`alias` is made from `served_name` of the lane (take it out of `args`)",
            "`a` is made from `served_name` of the lane (take it out of `args`)",
        ],
    ),
    (
        "engine: llamacpp, model: tiny, ports: {rcp: 5}",
        ["llamacpp has no port named 'rcp' (it has `rpc`)"],
    ),
    ("engine: custom", ["a custom engine needs `argv` (set `argv`)"]),
    (
        'engine: custom, argv: ["{prot}"]',
        ["unknown placeholder {prot} (did you mean {port}?)"],
    ),
    (
        'engine: custom, argv: ["{ports.rcp}"], ports: {rpc: 5}',
        ["unknown placeholder {ports.rcp} (did you mean {ports.rpc}?)"],
    ),
    (
        'engine: vllm, model: hub, preflight: {command: [check, "{modle}"]}',
        ["unknown placeholder {modle} (did you mean {model}?)"],
    ),
    (
        'engine: vllm, model: hub, preflight: {command: [check, "{paths.nope}"]}',
        ["no path 'nope' on dgx1 (add `nope` to the `paths` of each node)"],
    ),
    (
        """engine: vllm, model: hub, args: {kernel-config: '{"a": 1', chat-template: '{{ x }}'}""",
        [
            (
                "`kernel-config` begins like JSON, and is none "
                "(write it as YAML, without quotes around it: it is handed on as JSON)"
            )
        ],
    ),
    (
        'engine: custom, argv: ["{paths.nope}"]',
        ["no path 'nope' on dgx1 (add `nope` to the `paths` of each node)"],
    ),
    (
        'engine: custom, argv: [x, --model, "{model}"]',
        ["{model} is of a lane with a model (set `model` of the lane)"],
    ),
    (
        (
            "engine: vllm, model: tuned, args: {attention_config: {backend: FLASHINFER}, cc: {mode: 3}, "
            "compilation-config: {mode: 0}}"
        ),
        [
            "`attention_config` and `attention-config` are the same argument (write `attention-config`, as there)",
            "`compilation-config` and `cc` are the same argument (write `cc`, as there)",
        ],
    ),
    (
        "engine: llamacpp, model: named",
        ["`alias` is made from `served_name` of the lane (take it out of the model's `args`)"],
    ),
    ("engine: vllm", ["vllm needs a model (set `model` of the lane)"]),
    ("engine: sglang", ["sglang needs a model (set `model` of the lane)"]),
    (
        "engine: vllm, model: hub, argv: [x], ports: {rpc: 5}",
        [
            "vllm makes its own command line (use `args`, or `engine: custom`)",
            "vllm has no port named 'rpc' (it has `data` (data parallel) and `ray`)",
        ],
    ),
    (
        "engine: sglang, model: hub, argv: [x], ports: {rpc: 5}",
        [
            "sglang makes its own command line (use `args`, or `engine: custom`)",
            "sglang has no port named 'rpc' (take it out)",
        ],
    ),
    (
        "engine: vllm, model: hub, args: {tp: 2, served_model_name: x, data-parallel-rank: 1, uds: /s}",
        [
            "`tp` is made from `parallel.tensor` of the lane (take it out of `args`)",
            "`served_model_name` is made from `served_name` of the lane (take it out of `args`)",
            "`data-parallel-rank` is made from the order of the cluster's `nodes` (take it out of `args`)",
            "`uds` is made from the cluster, for the HTTP server of the head (take it out of `args`)",
        ],
    ),
    (
        "engine: sglang, model: hub, args: {tp-size: 2, ep: 2, api-key: x, grpc-mode: false}",
        [
            "`tp-size` is made from `parallel.tensor` of the lane (take it out of `args`)",
            "`ep` is made from `parallel.expert` of the lane (take it out of `args`)",
            "`api-key` cannot be used here (take it out of `args`)",
        ],
    ),
    (
        "engine: vllm, model: split",
        ["`pipeline-parallel-size` is made from `parallel.pipeline` of the lane (take it out of the model's `args`)"],
    ),
    (
        (
            "engine: vllm, model: hub, "
            "args: {no-enable-flashinfer-autotune: true, kernel-config: {enable_flashinfer_autotune: false}}"
        ),
        [
            (
                "`no-enable-flashinfer-autotune` and `kernel-config.enable_flashinfer_autotune` exclude each other "
                "(keep one; the other is in `args`)"
            )
        ],
    ),
    (
        (
            "engine: vllm, model: hub, "
            "args: {enable_flashinfer_autotune: false, kernel_config.enable_flashinfer_autotune: false}"
        ),
        [
            (
                "`enable_flashinfer_autotune` and `kernel_config.enable_flashinfer_autotune` exclude each other "
                "(keep one; the other is in `args`)"
            )
        ],
    ),
    (
        "engine: vllm, model: tuned, args: {attention-backend: TRITON_ATTN}",
        [
            (
                "`attention-backend` and `attention-config.backend` exclude each other "
                "(keep one; the other is in the model's `args`)"
            )
        ],
    ),
    ("engine: vllm, model: tuned, args: {attention-backend: TRITON_ATTN, attention-config: null}", []),
    (
        "engine: vllm, model: hub, args: {enable-auto-tool-choice: true, max-num-seqs: 16, max-num-batched-tokens: 8}",
        [
            (
                "`enable-auto-tool-choice` needs `tool-call-parser` (set `tool-call-parser`, "
                "or take `enable-auto-tool-choice` out)"
            ),
            "`max-num-batched-tokens` 8 is smaller than `max-num-seqs` 16 (make it at least as large)",
        ],
    ),
    ("engine: vllm, model: hub, args: {max-model-len: 9000, max-num-batched-tokens: 8000}", []),
    (
        (
            "engine: vllm, model: hub, "
            "args: {max-model-len: 9k, max-num-batched-tokens: 8000, enable-chunked-prefill: false}"
        ),
        [
            (
                "`max-num-batched-tokens` 8000 is smaller than `max-model-len` 9000 "
                "(make it at least as large, or leave chunked prefill on)"
            )
        ],
    ),
    (
        "engine: vllm, model: hub, env: {VLLM_DP_RANK: '1', VLLM_PLUGINS: x}",
        ["`VLLM_DP_RANK` is no setting of a lane (remove it here)"],
    ),
    ("engine: custom, roles: {worker: {argv: [x]}}", ["a custom engine needs `argv` (set `argv`)"]),
    ("engine: custom, roles: {head: {argv: [x]}}", []),
    (
        (
            'engine: custom, argv: [x], ports: {control: 5}, roles: {head: {port: contrl, argv: ["{rnak}"]}, '
            'worker: {health: /x, env: {A: "{prot}"}}}'
        ),
        [
            "no port of the lane is named 'contrl' (did you mean 'control'?)",
            "unknown placeholder {rnak} (did you mean {rank}?)",
            "`health` of a role is asked at its `port` (set `port`, too)",
            "unknown placeholder {prot} (did you mean {port}?)",
        ],
    ),
    (
        'engine: custom, argv: [x], roles: {head: {env: {MASTER_ADDR: "{head}", A: "{paths.nope}"}}}',
        [
            "lanes.it.roles.head.env: `MASTER_ADDR` belongs to the cluster (remove it here)",
            "no path 'nope' on dgx1 (add `nope` to the `paths` of each node)",
        ],
    ),
    (
        "engine: llamacpp, model: tiny, roles: {head: {argv: [x]}}, order: [head, worker]",
        [
            "llamacpp makes its own command line (use `args`, or `engine: custom`)",
            "llamacpp makes its own command line (use `args`, or `engine: custom`)",
        ],
    ),
    (
        "engine: custom, argv: [x], order: [head, head]",
        ["lanes.it.order: an order names `head` and `worker` once each (leave it out to start all at once)"],
    ),
    (
        "engine: vllm, model: folder, args: {speculative-config: {model: '{draft}'}}",
        ["{draft} is of a lane whose model has a `draft` (set `draft` of the model)"],
    ),
    (
        "engine: custom, model: folder, argv: ['{draft}']",
        ["{draft} is of a lane whose model has a `draft` (set `draft` of the model)"],
    ),
    ("engine: llamacp, model: tiny", ["unknown engine 'llamacp' (did you mean 'llamacpp'?)"]),
    ("engine: zzz", ["unknown engine 'zzz' (known are custom, llamacpp, sglang, vllm)"]),
]


@pytest.mark.parametrize(("lane", "expected"), FAULTS, ids=[row[0] for row in FAULTS])
def test_a_lane_its_engine_cannot_work_with(lane: str, expected: list[str], tmp_path: Path) -> None:
    assert expected == faults_of(tmp_path, lane)


SPREAD_FAULTS: list[tuple[str, list[str]]] = [
    (
        "engine: vllm, model: hub, parallel: {data: 2}, args: {dpb: ray, enable-eplb: true}",
        [
            "`dpb: ray` needs `distributed-executor-backend: ray` (set both, or neither)",
            "`enable-eplb` needs `parallel.expert` (set `expert: 2`)",
        ],
    ),
    (
        (
            "engine: vllm, model: hub, parallel: {data: 2, expert: 2}, "
            "args: {dpb: ray, enable-eplb: true, distributed-executor-backend: ray}"
        ),
        [],
    ),
    (
        "engine: vllm, model: hub, parallel: {tensor: 2}, args: {nnodes: 2, node_rank: 1}",
        [
            "lanes.it.args: `nnodes` belongs to the cluster (remove it here)",
            "lanes.it.args: `node_rank` belongs to the cluster (remove it here)",
        ],
    ),
    (
        "engine: vllm, model: hub, parallel: {tensor: 2}, args: {n: 2, r: 1}",
        [
            "`n` is made from `nodes` of the lane (take it out of `args`)",
            "`r` is made from the order of the cluster's `nodes` (take it out of `args`)",
        ],
    ),
    (
        ("engine: vllm, model: hub, parallel: {tensor: 2}, args: {spec-tokens: 3, sc: {num_speculative_tokens: 5}}"),
        [
            "`spec-tokens` and `sc.num_speculative_tokens` exclude each other (keep one; the other is in `args`)",
        ],
    ),
    (
        "engine: custom, nodes: 2, roles: {head: {argv: [x]}}",
        ["the workers have no command (set `roles.worker.argv`)"],
    ),
    (
        "engine: vllm, model: hub, parallel: {tensor: 2, expert: 3}",
        ["vLLM spreads experts over tensor x data = 2, not over 3 (write 2, or leave it out)"],
    ),
    (
        "engine: vllm, model: hub, parallel: {tensor: 2}, args: {distributed-executor-backend: uni}",
        ["on several nodes `distributed-executor-backend` is mp or ray, not uni (leave it out for mp)"],
    ),
    (
        "engine: sglang, model: hub, parallel: {data: 2}",
        [
            (
                "SGLang does data parallel over several nodes with `enable-dp-attention` only "
                "(set `enable-dp-attention: true` in `args`, or place a lane of its own on each node)"
            )
        ],
    ),
    ("engine: sglang, model: hub, nodes: 2, parallel: {tensor: 2, data: 2}, args: {enable-dp-attention: true}", []),
]


@pytest.mark.parametrize(("lane", "expected"), SPREAD_FAULTS, ids=[row[0] for row in SPREAD_FAULTS])
def test_a_lane_its_engine_cannot_spread(lane: str, expected: list[str], tmp_path: Path) -> None:
    assert expected == faults_of(tmp_path, lane, "two")


def test_the_words_of_a_preflight_of_ones_own_are_filled_in_for_the_head(tmp_path: Path) -> None:
    found = gang(
        tmp_path, 'engine: vllm, model: folder, preflight: {command: ["{paths.models}/check", "{model}", "{x"]}'
    )
    assert found.preflight == Preflight(0, ("/mnt/1/check",), ("/mnt/1/folder", "{x"))


def test_an_unknown_placeholder_that_resembles_none_lists_all(tmp_path: Path) -> None:
    known = ", ".join((*NAMES, "ports.*", "paths.*"))
    assert [f"unknown placeholder {{qqqqqq}} (known are {known})"] == faults_of(
        tmp_path, 'engine: custom, argv: ["{qqqqqq}"]'
    )


FLAGS: list[tuple[dict[str, object], tuple[str, ...]]] = [
    ({}, ()),
    ({"ctx-size": 512}, ("--ctx-size", "512")),
    ({"b": 1, "a": 2}, ("-a", "2", "-b", "1")),
    ({"jinja": True}, ("--jinja",)),
    ({"warmup": False}, ("--no-warmup",)),
    ({"temp": 0.5}, ("--temp", "0.5")),
    ({"name": "a b"}, ("--name", "a b")),
    ({"ot": ["x", 1, True]}, ("--ot", "x", "1", "true")),
    ({"c": {"b": 1, "a": [2, "é"]}}, ("-c", '{"a":[2,"é"],"b":1}')),
    ({"empty": ""}, ("--empty", "")),
    ({"none": []}, ("--none",)),
]


@pytest.mark.parametrize(("args", "expected"), FLAGS, ids=[str(row[0]) for row in FLAGS])
def test_flags(args: dict[str, object], expected: tuple[str, ...]) -> None:
    assert expected == flags(args)


def test_the_lane_wins_over_the_model_and_null_takes_a_default_away(tmp_path: Path) -> None:
    lane = "engine: llamacpp, model: tiny, args: {ctx-size: 1024, threads: null}"
    command = gang(tmp_path, lane).ranks[0].container.command
    assert ("--ctx-size", "1024") == command[-2:]
    assert "--threads" not in command


def test_an_alias_of_vllm_is_written_in_full_and_what_only_a_head_takes_is_not_for_workers(tmp_path: Path) -> None:
    lane = "engine: vllm, model: hub, parallel: {tensor: 2}, args: {cc: {mode: 3}, api-server-count: 2}"
    head, worker = (rank.container.command for rank in gang(tmp_path, lane, "two").ranks)
    assert ("--compilation-config", '{"mode":3}') == head[-2:] == worker[-2:]
    assert "2" == head[head.index("--api-server-count") + 1]
    assert "--api-server-count" not in worker


MOUNTED = 'mounts: [{source: "{paths.models}", target: /w}]'
DRAFTED = [
    ("engine: vllm, args: {speculative-config: {method: x, model: '{draft}'}}", '{"method":"x","model":"/w/small"}'),
    ("engine: vllm, args: {spec-model: '{draft}'}", "/w/small"),
    ("engine: sglang, args: {speculative-draft-model-path: '{draft}'}", "/w/small"),
    ("engine: llamacpp, args: {model-draft: '{draft}/x.gguf'}", "/w/small/x.gguf"),
    ("engine: custom, argv: [serve], args: {drafts: ['{draft}']}", "/w/small"),
    ("engine: custom, argv: ['{draft}']", "/w/small"),
]


@pytest.mark.parametrize(("lane", "expected"), DRAFTED, ids=[row[0] for row in DRAFTED])
def test_a_draft_is_named_by_its_path_in_the_container(lane: str, expected: str, tmp_path: Path) -> None:
    assert expected == gang(tmp_path, f"{lane}, model: drafted, {MOUNTED}").ranks[0].container.command[-1]


SERVED = [
    ("engine: llamacpp, model: tiny", "tiny-model"),
    ("engine: llamacpp, model: tiny, served_name: mine", "mine"),
    ("engine: custom, argv: [x], served_name: mine", "mine"),
    ("engine: custom, argv: [x]", None),
]


@pytest.mark.parametrize(("lane", "expected"), SERVED)
def test_the_gate_asks_for_the_name_that_is_served(lane: str, expected: str | None, tmp_path: Path) -> None:
    assert expected == gang(tmp_path, lane).gate.served_name


def test_a_model_of_the_hub_is_named_by_its_repository(tmp_path: Path) -> None:
    lane = 'engine: custom, model: hub, argv: ["{model}"]'
    assert ("owner/model",) == gang(tmp_path, lane).ranks[0].container.command


def test_ranks_that_never_meet_do_not_need_the_rendezvous_port(tmp_path: Path) -> None:
    assert (30000,) == gang(tmp_path, "engine: custom, argv: [x], nodes: 2", "two").ranks[0].ports


def test_the_number_of_offloaded_layers_is_the_lanes_word_when_it_says_one(tmp_path: Path) -> None:
    lane = "engine: llamacpp, model: tiny, nodes: 2, args: {n-gpu-layers: 7}"
    command = gang(tmp_path, lane, "two").ranks[0].container.command
    assert ["7"] == [after for word, after in pairwise(command) if word == "--n-gpu-layers"]


# Fingerprints are on the labels of running containers. If one of these moves, every lane in the world is restarted
# by an upgrade of the tool: see `FORM` in `reconciler.core.canonical` for what a change would need.

PIN = ImagePin(IMAGE, DIGEST, "digest", "ghcr.io", "owner/engine")
LEAST = ContainerSpec(image=PIN, command=("serve",))
FULL = ContainerSpec(
    image=PIN,
    command=("serve", "--ctx", "512", "ä"),
    entrypoint=("python3", "-m"),
    env=(("A", "1"), ("TOKEN", SecretRef("env:TOKEN"))),
    mounts=(Mount("/models", "/m"), Mount("/cache", "/c", read_only=False)),
    devices=("/dev/infiniband",),
    shm_bytes=64 * 2**30,
    ulimits=(("memlock", -1),),
    gpus=1,
)
LOCAL = ContainerSpec(image=ImagePin(DIGEST, DIGEST, "id"), command=("llama-server", "--port", "30000"), gpus=2)

FINGERPRINTS = [
    ("least", LEAST, "cba6585854670004959ae30fa06449a01fb3230d2f7a48bdef32c0e783b58030"),
    ("full", FULL, "00e9c7bc93322ffbdfc883e11a42b9ae695b8f690d5fb81d15b80181ea27b587"),
    ("a local build", LOCAL, "76991b29607e55be4bba3e4973fd9d0aa44a715e02bab828fcb3b042597d7add"),
]


def rank(container: ContainerSpec) -> RankSpec:
    return RankSpec(0, "n1", "head", "10.0.0.1", container)


@pytest.mark.parametrize(("what", "container", "expected"), FINGERPRINTS, ids=[row[0] for row in FINGERPRINTS])
def test_a_fingerprint_holds_over_versions(what: str, container: ContainerSpec, expected: str) -> None:
    assert expected == rank(container).fingerprint, what


def test_the_canonical_form_of_a_container_is_this_text() -> None:
    assert "fleet/1" == FORM
    expected = (
        '{"command":["serve"],"gpus":0,"image":{"digest":"' + DIGEST + '","kind":"digest","reference":"' + IMAGE + '",'
        '"registry":"ghcr.io","repository":"owner/engine"}}'
    )
    assert expected == canonical_json(LEAST)


def test_where_a_rank_runs_is_no_part_of_its_fingerprint() -> None:
    other = RankSpec(3, "n9", "worker", "10.0.0.9", FULL, (1, 2), Ready(3), 4, 5.0)
    assert rank(FULL).fingerprint == other.fingerprint


def test_the_name_of_an_image_is_no_part_of_a_fingerprint_and_its_digest_is() -> None:
    renamed = ImagePin(f"mirror.lan/x@{DIGEST}", DIGEST, "digest", "mirror.lan", "x")
    other = ImagePin(IMAGE, DIGEST.replace("ab", "cd"), "digest", "ghcr.io", "owner/engine")
    of = {pin.reference + pin.digest: rank(ContainerSpec(pin, ("serve",))).fingerprint for pin in (renamed, other)}
    assert [True, False] == [value == rank(LEAST).fingerprint for value in of.values()]
