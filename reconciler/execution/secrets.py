"""Secrets by reference, resolved on the controller at the last moment and handed only to the node that needs them."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from reconciler.core.desired import ContainerSpec
from reconciler.core.identity import secrets_label
from reconciler.core.redaction import redactor
from reconciler.core.secret_marks import SecretMarks, SeenSecrets, is_compared, references
from reconciler.execution.secret_key import SecretKeyError, made_key, read_key
from reconciler.execution.secret_sources import SecretError, value_of, variable

__all__ = ["SecretError", "Secrets"]


@dataclass(frozen=True)
class _Value:
    """A value that shows in no `repr`: of tasks, of tracebacks."""

    text: str = field(repr=False)


class Secrets:
    """The secrets of one run. Each reference is resolved when it is first needed, and once, whatever comes of it."""

    def __init__(self) -> None:
        self._asked: dict[str, asyncio.Task[_Value | SecretError]] = {}

    def __repr__(self) -> str:
        """For tracebacks: no values."""
        return f"Secrets({', '.join(sorted(self._asked))})"

    async def values(self, spec: ContainerSpec) -> dict[str, str]:
        """The value of every secret the container needs, by reference. Raises `SecretError` for the first without."""
        return await self.resolved(reference for _, reference in references(spec))

    async def resolved(self, references: Iterable[str]) -> dict[str, str]:
        """The value of each of these references. Raises `SecretError` for the first without."""
        wanted = dict.fromkeys(references)
        found = dict(zip(wanted, await asyncio.gather(*map(self._resolved, wanted)), strict=True))
        values = {}
        for reference, value in found.items():
            if isinstance(value, SecretError):
                raise value
            values[reference] = value.text
        return values

    async def handed(self, spec: ContainerSpec) -> tuple[dict[str, str], dict[str, str]]:
        """What a container is made with: the values by reference, and the label that tells of them later.

        Raises `SecretError`.
        """
        return await self.values(spec), await self.label(spec)

    async def label(self, spec: ContainerSpec) -> dict[str, str]:
        """The label of a container that is made with these secrets: their marks.

        None of what plans do not compare, and none where no key can be kept: the container then tells nothing.
        Raises `SecretError`.
        """
        compared = [(key, reference) for key, reference in references(spec) if is_compared(reference)]
        if not compared:
            return {}
        values = await self.values(spec)
        try:
            key = made_key()
        except SecretKeyError:
            return {}
        marks = sorted((name, key.mark(reference, values[reference])) for name, reference in compared)
        return secrets_label(SecretMarks(key.id, tuple(marks)))

    async def seen(self, marked: Callable[[str], Iterable[str]]) -> SeenSecrets:
        """What the secrets are now. `marked`: the references that have marks under the key of this id."""
        try:
            key = read_key()
        except SecretKeyError as error:
            return SeenSecrets(no_key=str(error))
        wanted = sorted(set(marked(key.id)))
        found = dict(zip(wanted, await asyncio.gather(*map(self._resolved, wanted)), strict=True))
        marks = tuple((ref, key.mark(ref, value.text)) for ref, value in found.items() if isinstance(value, _Value))
        unknown = tuple((ref, value.reason) for ref, value in found.items() if isinstance(value, SecretError))
        return SeenSecrets(SecretMarks(key.id, marks), unknown)

    def hider(self, specs: Iterable[ContainerSpec]) -> Callable[[str], str]:
        """A function that takes the values of these containers' secrets out of a text.

        An engine may print its environment, and the last lines of a failed one are shown. Nothing is resolved for it:
        it knows what this run has resolved by the time of the text, and variables of this process.
        """
        return self.hiding(pair for spec in specs for pair in references(spec))

    def hiding(self, pairs: Iterable[tuple[str, str]]) -> Callable[[str], str]:
        """The same for these secrets: the name that each is given under, and its reference."""
        wanted = set(pairs)
        if not wanted:
            return lambda text: text

        def hide(text: str) -> str:
            return redactor((name, self._known(reference)) for name, reference in wanted)(text)

        return hide

    def _known(self, reference: str) -> str:
        task = self._asked.get(reference)
        if task is not None and task.done() and not task.cancelled():
            value = task.result()
            return value.text if isinstance(value, _Value) else ""
        kind, _, name = reference.partition(":")
        return (variable(name) or "") if kind == "env" else ""

    async def _resolved(self, reference: str) -> _Value | SecretError:
        task = self._asked.get(reference)
        if task is None or task.cancelled():
            task = self._asked[reference] = asyncio.create_task(_settled(reference), name=f"secret {reference}")
        if not task.done():
            await asyncio.wait([task])  # who stops waiting does not stop it for the others
        return task.result()


async def _settled(reference: str) -> _Value | SecretError:
    try:
        return _Value(await value_of(reference))
    except SecretError as error:
        return error
