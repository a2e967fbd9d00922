"""How fast a lane is: what is sent, and what the figure means."""

import json

import pytest

from reconciler.core.gate import Health, Verdict
from reconciler.core.performance import SAMPLE_WORDS, Run, judge_run, not_measured, prompt, request, usage, words_for
from reconciler.core.probes import Performance

WANTED = Performance(at_least=20.0, context=8192, concurrency=2, tokens=100, required=True, timeout_s=60.0)
TOLD = Performance(at_least=20.0, context=8192, concurrency=1, tokens=100, required=False, timeout_s=60.0)

RUNS: list[tuple[str, Performance, Run, str, str]] = [
    ("fast", WANTED, Run(8190, 200, 5.0), "healthy", "40.0 tokens/s in 2 streams behind 8190 tokens"),
    ("just fast enough", WANTED, Run(8190, 200, 10.0), "healthy", "20.0 tokens/s in 2 streams behind 8190 tokens"),
    (
        "slow, and required",
        WANTED,
        Run(8190, 200, 40.0),
        "degraded",
        "5.0 tokens/s in 2 streams behind 8190 tokens, at least 20 are wanted",
    ),
    (
        "slow, and told only",
        TOLD,
        Run(8190, 100, 20.0),
        "healthy",
        "5.0 tokens/s in 1 stream behind 8190 tokens, at least 20 are wanted",
    ),
    (
        "hardly anything came",
        WANTED,
        Run(8190, 3, 0.1),
        "degraded",
        "its speed could not be measured: only 3 tokens came",
    ),
]


@pytest.mark.parametrize(("what", "wanted", "run", "health", "told"), RUNS, ids=[row[0] for row in RUNS])
def test_what_a_figure_means(what: str, wanted: Performance, run: Run, health: str, told: str) -> None:
    assert Verdict(Health(health), "performance", told) == judge_run(wanted, run), what


def test_what_cannot_be_measured_fails_only_where_it_is_required() -> None:
    assert Health.DEGRADED is not_measured(WANTED, "x").health
    assert Health.HEALTHY is not_measured(TOLD, "x").health


def test_a_prompt_is_as_long_as_is_wanted_and_each_stream_has_its_own() -> None:
    assert 50 + 2 == len(prompt(50, 3).split())
    assert prompt(50, 0).split()[1] != prompt(50, 1).split()[1]
    assert prompt(50, 0) == prompt(50, 0)


@pytest.mark.parametrize(
    ("context", "sample", "words"), [(8192, 100, 8192), (8192, 200, 4096), (1, 500, 1), (10, 0, 1000)]
)
def test_as_many_words_as_make_the_context(context: int, sample: int, words: int) -> None:
    assert words == words_for(context, sample)
    assert SAMPLE_WORDS == 100


def test_what_is_sent_and_how_the_engine_counts() -> None:
    path, body = request("m", "a b", 9)
    assert "/v1/completions" == path
    assert {"model": "m", "prompt": "a b", "max_tokens": 9, "temperature": 0, "ignore_eos": True} == body
    assert "model" not in request(None, "a", 1)[1]
    assert (7, 9) == usage(json.dumps({"usage": {"prompt_tokens": 7, "completion_tokens": 9}}).encode())
    assert [None, None, None] == [usage(body) for body in (b"", b"{}", b'{"usage": null}')]
