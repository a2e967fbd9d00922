"""What a lane asks of its model and of itself: heads that divide, contexts that fit."""

from pathlib import Path

import pytest

from reconciler.engines import RULES, desired_fleet
from reconciler.engines.limits import tokens
from specs import SpecErrors, load
from tests.unit.engines.fleets import fleet, write


def said(folder: Path, lane: str, model: str = "", cluster: str = "four") -> list[str]:
    """Everything that is said of a lane of the model `tiny`, which gets further keys."""
    path = write(folder, lane, cluster)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("served_name: tiny-model", f"served_name: tiny-model{model}"), encoding="utf-8")
    try:
        desired_fleet(load(path, RULES))
    except SpecErrors as errors:
        return [line.strip() for item in errors.diagnostics for line in str(item).splitlines()]
    return []


CONFIG = ", config: {text_config: {num_attention_heads: 128, num_key_value_heads: 8}}"
LANE = "engine: custom, argv: [serve], model: tiny, "


def test_heads_that_do_not_divide_are_refused_with_the_arithmetic(tmp_path: Path) -> None:
    found = said(tmp_path, f"{LANE}parallel: {{tensor: 3}}", CONFIG)
    summary = (
        "the lane 'it' cannot be split so: 128 attention heads and 8 KV heads cannot be divided by tensor 3: "
        "tensor can be 1, 2, 4, 8"
    )
    assert found[0].endswith(summary)
    assert found[1].startswith("So says `config` of the model 'tiny' at ")


def test_heads_that_divide_are_accepted(tmp_path: Path) -> None:
    assert [] == said(tmp_path, f"{LANE}parallel: {{tensor: 4}}", CONFIG)


ODD = ", config: {num_attention_heads: '128', text_config: {num_key_value_heads: 0, num_hidden_layers: null}}"


def test_a_config_that_says_no_numbers_is_refused(tmp_path: Path) -> None:
    told = [line.partition("models.tiny.config.")[2] for line in said(tmp_path, f"{LANE}nodes: 1", ODD, "one")]
    wants = "wants a whole number above 0"
    assert [f"num_attention_heads: {wants}", f"text_config.num_key_value_heads: {wants}"] == [*filter(None, told)]


def test_a_requirement_of_no_engine_there_is_is_refused(tmp_path: Path) -> None:
    found = said(tmp_path, f"{LANE}nodes: 1", ", requires: [{engine: vlm, args: {a: 1}, reason: x}]", "one")
    assert any(line.endswith("unknown engine 'vlm'") for line in found)


DRAFT = ", draft: drafter}\n  drafter: {path: /d, config: {num_attention_heads: 32, num_key_value_heads: 8}"
SPECULATES = "args: {speculative-config: {method: dflash}}"


@pytest.mark.parametrize(
    ("is_refused", "lane"),
    [
        (True, SPECULATES),
        (True, "args: {speculative_draft_model_path: /d}"),
        (False, "args: {}"),
        (False, SPECULATES.replace("dflash}", "dflash, draft_tensor_parallel_size: 1}")),
    ],
)
def test_a_drafter_is_divided_like_its_model_where_the_lane_uses_it(
    tmp_path: Path, is_refused: bool, lane: str
) -> None:
    found = said(tmp_path, f"{LANE}parallel: {{tensor: 3}}, {lane}", DRAFT)
    summary = "32 attention heads and 8 KV heads cannot be divided by tensor 3: tensor can be 1, 2, 4, 8"
    assert is_refused == any(line.endswith(summary) for line in found)
    assert is_refused == any(line.startswith("So says `config` of the model 'drafter' at ") for line in found)


def test_layers_are_spread_over_any_number_of_llama_cpp_workers(tmp_path: Path) -> None:
    found = said(tmp_path, "engine: llamacpp, model: tiny, nodes: 3, parallel: {tensor: 3}", CONFIG)
    assert [] == [line for line in found if "heads" in line]


def test_nodes_that_carry_nothing_are_refused(tmp_path: Path) -> None:
    found = said(tmp_path, "engine: vllm, model: tiny, nodes: 4, parallel: {tensor: 2}, args: {threads: null}")
    assert any(line.endswith("the lane 'it' takes 4 nodes, and is split over 2 of their GPUs") for line in found)
    assert "write `parallel: {tensor: 4}`, or take fewer nodes" in found
    assert [] == said(tmp_path, "engine: custom, argv: [serve], nodes: 4")


PROBE = "health: {{probes: [{{chat: hi, max_tokens: {}}}]}}"


def test_a_probe_longer_than_the_context_is_refused(tmp_path: Path) -> None:
    lane = f"{LANE}args: {{ctx-size: null, max-model-len: 160k}}, {PROBE.format(65536)}"
    assert [] == said(tmp_path, lane)
    found = said(tmp_path, lane.replace("160k", "65535"))
    assert found[0].endswith("the probe wants 65536 tokens; the lane 'it' takes 65535 at most (`max-model-len`)")
    assert found[2] == "ask for less, or raise `max-model-len`"


def test_speed_at_a_context_that_the_lane_does_not_take_is_refused(tmp_path: Path) -> None:
    speed = "health: {{performance: {{at_least: 20, context: {}, tokens: 128}}}}"
    lane = f"{LANE}args: {{ctx-size: null, max-model-len: 163840}}, "
    assert [] == said(tmp_path, lane + speed.format(163840 - 128))
    found = said(tmp_path, lane + speed.format(262144))
    assert found[0].endswith(
        "measured with a context of 262144 and 128 more, a stream is 262272 tokens; the lane 'it' takes 163840 at most "
        "(`max-model-len`)"
    )


@pytest.mark.parametrize(
    ("hint", "engine", "args"),
    [
        ("write 0.92", "vllm", "gpu_memory_utilization: 92"),
        ("", "vllm", 'gpu-memory-utilization: "1.5e3"'),
        ("write 0.015", "sglang", "mem-fraction-static: 1.5"),
        ("", "sglang", "mem-fraction-static: 0"),
        (None, "vllm", "gpu-memory-utilization: 1"),
        (None, "sglang", "mem-fraction-static: 0.85"),
        (None, "sglang", "mem-fraction-static: auto"),
    ],
)
def test_a_share_of_the_memory_is_no_percentage(tmp_path: Path, hint: str | None, engine: str, args: str) -> None:
    lane = f"engine: {engine}, model: tiny, parallel: {{tensor: 4}}, args: {{ctx-size: null, threads: null, {args}}}"
    found = said(tmp_path, lane)
    assert (hint is not None) == any("is a share of the GPU's memory, more than 0 and at most 1" in it for it in found)
    assert not hint or hint in found


def test_a_raw_request_asks_for_no_tokens(tmp_path: Path) -> None:
    assert [] == said(tmp_path, f"{LANE}args: {{ctx-size: 16}}, health: {{probes: [{{http: {{path: /version}}}}]}}")


def test_the_context_of_the_model_counts_where_the_lane_says_none(tmp_path: Path) -> None:
    found = said(tmp_path, f"{LANE}{PROBE.format(4097)}")
    assert found[0].endswith("the probe wants 4097 tokens; the lane 'it' takes 4096 at most (`ctx-size`)")
    assert fleet(tmp_path, f"{LANE}{PROBE.format(4096)}").gangs


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        (163840, 163840),
        (163840, "163840"),
        (160000, "160k"),
        (163840, "160K"),
        (1048576, "1M"),
        (None, "auto"),
        (None, -1),
        (None, "-1"),
        (None, 0),
        (None, "0"),
        (None, True),
        (None, None),
        (None, "k"),
        (None, 1.5),
    ],
)
def test_tokens_are_read_as_engines_read_them(expected: int | None, value: object) -> None:
    assert expected == tokens(value)
