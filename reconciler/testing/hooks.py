"""Hooks as a simulated controller plays them: nothing is run, every call is kept."""

import asyncio

from reconciler.core.hooks import HookCall, HookError

TAKES_S = 0.2
"""Virtual seconds that a hook takes."""


class SimHooks:
    """See `protocols.Hooks`. `calls`: all so far. `failing`: what a hook fails with, by name. `hanging`: names."""

    def __init__(self) -> None:
        self.calls: list[HookCall] = []
        self.failing: dict[str, str | HookError] = {}
        self.hanging: set[str] = set()

    async def call(self, call: HookCall) -> str:
        """Take note of it. Raises `HookError`."""
        self.calls.append(call)
        if call.name in self.hanging:
            await asyncio.sleep(call.timeout_s)
            raise HookError(f"it did not end within {call.timeout_s:g} s and was killed")
        await asyncio.sleep(TAKES_S)
        if call.name in self.failing:
            why = self.failing[call.name]
            raise HookError(why) if isinstance(why, str) else why
        return ""
