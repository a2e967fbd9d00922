"""What engines ask of a spec is told with its place, together with every other fault."""

from pathlib import Path

import pytest

import specs
from reconciler.engines import RULES

DIGEST = "sha256:" + "a" * 64
HEAD = "fleet: x\nmodels: {m: {path: /m.gguf}}\nlanes:\n"


def faults(tmp_path: Path, lane: str) -> list[str]:
    path = tmp_path / "fleet.yaml"
    path.write_text(f"{HEAD}  a: {lane}\n", encoding="utf-8")
    with pytest.raises(specs.SpecErrors) as caught:
        specs.load(path, RULES)
    return [f"{item.line}:{item.column} {item.summary}; {item.hint}" for item in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("lane", "expected"),
    [
        (f"{{engine: llamacp, image: '{DIGEST}'}}", "4:15 unknown engine 'llamacp'; did you mean 'llamacpp'?"),
        (f"{{engine: LlamaCpp, image: '{DIGEST}'}}", "4:15 unknown engine 'LlamaCpp'; did you mean 'llamacpp'?"),
        (
            f"{{engine: 'a b?', image: '{DIGEST}'}}",
            "4:15 unknown engine 'a b?'; known are custom, llamacpp, sglang, vllm",
        ),
        (f"{{engine: zzz, image: '{DIGEST}'}}", "4:15 unknown engine 'zzz'; known are custom, llamacpp, sglang, vllm"),
        (f"{{engine: llamacpp, image: '{DIGEST}'}}", "4:15 llamacpp needs a model; set `model` of the lane"),
        (
            f"{{engine: llamacpp, image: '{DIGEST}', model: m, args: {{alias: y}}}}",
            "4:131 `alias` is made from `served_name` of the lane; take it out of `args`",
        ),
        (f"{{engine: custom, image: '{DIGEST}'}}", "4:15 a custom engine needs `argv`; set `argv`"),
        (
            f"{{engine: custom, image: '{DIGEST}', argv: [serve, '{{rnak}}']}}",
            "4:119 unknown placeholder {rnak}; did you mean {rank}?",
        ),
    ],
)
def test_a_lane_its_engine_cannot_work_with_is_told_with_its_place(tmp_path: Path, lane: str, expected: str) -> None:
    assert [expected] == faults(tmp_path, lane)


def test_an_unknown_engine_is_told_together_with_the_lanes_other_faults(tmp_path: Path) -> None:
    found = faults(tmp_path, "{engine: vlm, image: 'foo:latest'}")
    assert ["unknown engine 'vlm'", "image 'foo:latest' is not pinned by digest"] == [
        item.partition(" ")[2].partition(";")[0].removeprefix("lanes.a.image: ") for item in found
    ]
