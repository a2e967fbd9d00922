"""Measures how fast a proved gang generates. What is sent, and what it means, is `reconciler.core.performance`."""

import asyncio

from reconciler.core.gate import Verdict
from reconciler.core.performance import (
    SAMPLE_WORDS,
    Run,
    judge_run,
    not_measured,
    prompt,
    request,
    usage,
    words_for,
)
from reconciler.core.probes import Performance
from reconciler.execution.gate import GangWatch, now_s


class _UntoldError(Exception):
    """An answer without a count of tokens."""


async def paced(watch: GangWatch, wanted: Performance) -> Verdict:
    """Whether the gang is as fast as is wanted: each stream's context is sent once, then all of them are timed."""
    try:
        async with asyncio.timeout(wanted.timeout_s):
            sample, _ = await _ask(watch, prompt(SAMPLE_WORDS, 0), 1, wanted.timeout_s)
            words = words_for(wanted.context, sample)
            await _round(watch, wanted, words, 1)
            began_s = now_s()
            counts = await _round(watch, wanted, words, wanted.tokens)
            run = Run(max(asked for asked, _ in counts), sum(came for _, came in counts), now_s() - began_s)
    except TimeoutError:
        return not_measured(wanted, f"it takes more than {wanted.timeout_s:g} s")
    except _UntoldError as error:
        return not_measured(wanted, str(error))
    return judge_run(wanted, run)


async def _round(watch: GangWatch, wanted: Performance, words: int, tokens: int) -> list[tuple[int, int]]:
    streams = range(wanted.concurrency)
    return await asyncio.gather(*(_ask(watch, prompt(words, stream), tokens, wanted.timeout_s) for stream in streams))


async def _ask(watch: GangWatch, text: str, tokens: int, timeout_s: float) -> tuple[int, int]:
    path, body = request(watch.gang.gate.served_name, text, tokens)
    answer = await watch.http("POST", path, body, timeout_s)
    counted = usage(answer.body) if answer.status == 200 else None
    if counted is None:
        said = answer.error or answer.body[:200].decode(errors="replace")
        raise _UntoldError(f"status {answer.status} at {len(text.split())} words: {said}")
    return counted
