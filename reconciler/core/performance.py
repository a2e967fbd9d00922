"""How fast a lane generates: what is sent to measure it, and what the figure means. Pure.

With its prefixes in the cache, or it is the prefill that is measured: several cold prompts of 64k tokens wait for each
other, and read like a tenth of what the engine does. So each stream sends its context once, and is timed the next time.
"""

import json
from dataclasses import dataclass

from reconciler.core.gate import Health, Verdict
from reconciler.core.probes import Performance

SAMPLE_WORDS = 100
"""A prompt of so many words tells how many tokens this model makes of one."""

FEWEST = 0.5
"""Share of the tokens asked for that must have come: of less, no speed is told."""

TEXT = ("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "rain", "falls")


def prompt(words: int, stream: int) -> str:
    """Plain words; the prompt of each stream begins otherwise, so that none rides on the cache of another."""
    return " ".join([f"stream {stream}:", *(TEXT[index % len(TEXT)] for index in range(words))])


def request(served_name: str | None, text: str, tokens: int) -> tuple[str, dict[str, object]]:
    """Path and JSON body. `ignore_eos` is known to vLLM, SGLang and llama.cpp: it goes on to the last token."""
    body: dict[str, object] = {"prompt": text, "max_tokens": tokens, "temperature": 0, "ignore_eos": True}
    return "/v1/completions", body if served_name is None else {**body, "model": served_name}


def usage(body: bytes) -> tuple[int, int] | None:
    """Tokens of the prompt and of the answer, as the engine counts them; None where it does not tell."""
    try:
        counted = json.loads(body)["usage"]
        return int(counted["prompt_tokens"]), int(counted["completion_tokens"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def words_for(context: int, sample_tokens: int) -> int:
    """So many words are about `context` tokens, by what the sample of words came to."""
    return max(1, context * SAMPLE_WORDS // max(1, sample_tokens))


@dataclass(frozen=True)
class Run:
    """One timed round of all streams: tokens of the longest prompt, tokens generated in all, and seconds."""

    context: int
    tokens: int
    seconds: float


def judge_run(wanted: Performance, run: Run) -> Verdict:
    """Whether it is fast enough; where that is not required, the figure is told and that is all."""
    if run.tokens < FEWEST * wanted.tokens * wanted.concurrency:
        return not_measured(wanted, f"only {run.tokens} tokens came")
    rate = run.tokens / max(run.seconds, 1e-3)
    streams = "1 stream" if wanted.concurrency == 1 else f"{wanted.concurrency} streams"
    told = f"{rate:.1f} tokens/s in {streams} behind {run.context} tokens"
    if rate >= wanted.at_least:
        return Verdict(Health.HEALTHY, "performance", told)
    return _short(wanted, f"{told}, at least {wanted.at_least:g} are wanted")


def not_measured(wanted: Performance, why: str) -> Verdict:
    """The speed could not be told."""
    return _short(wanted, f"its speed could not be measured: {why}")


def _short(wanted: Performance, told: str) -> Verdict:
    return Verdict(Health.DEGRADED if wanted.required else Health.HEALTHY, "performance", told)
