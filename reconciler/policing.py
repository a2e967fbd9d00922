"""The policies of a fleet: those the spec sets, those of installed packages, those of files beside the spec.

What comes from elsewhere is never able to break a command, nor to let a plan pass by breaking: a policy that cannot be
loaded, raises, yields nonsense or does not answer in time objects to every plan.
"""

import contextlib
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import cache, partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import TypeVar

import specs
from reconciler.core.gitops.windows import closed
from reconciler.core.objection import Level, Objection
from reconciler.core.plan import Plan
from reconciler.core.policies import Policy, PolicyContext, judged
from reconciler.core.policies.built_in import IDS, budget, pinned, protected
from reconciler.core.policies.judging import MOST, fault, words

T = TypeVar("T")

GROUP = "fleet.policies"
"""Entry points of packages: each names a `Policy`, or a tuple of them."""

ANSWER_S = 5.0
"""So long a policy of the user's may think: it looks at values, and waits for nothing."""


def with_objections(spec: specs.Spec, plan: Plan, now_s: float) -> Plan:
    """The plan with what the policies of the spec say of it at `now_s` (seconds since 1970)."""
    if not plan.steps:
        return replace(plan, objections=())
    return judged(plan, _all(spec), now_s, {name: Level(level) for name, level in spec.policies.levels.items()})


def _all(spec: specs.Spec) -> Iterator[Policy]:
    told = spec.policies
    if told.pinned is not None:
        yield pinned(told.pinned.lanes, Level(told.pinned.level))
    for item in told.protected:
        yield protected(item.lanes, partial(_closed, item), Level(item.level))
    if told.budget is not None:
        yield budget(told.budget.stops, Level(told.budget.level))
    taken = set(IDS)
    for policy in (*_installed(), *(item for name in told.files for item in _of_file(spec.root, name))):
        yield fault(policy.id, f"there is a policy {policy.id} already") if policy.id in taken else _outside(policy)
        taken.add(policy.id)


def _closed(told: specs.Protected, now_s: float) -> str:
    """Why these lanes may not stop now; empty when they may."""
    from reconciler.gitops.guards import spans, window_of  # noqa: PLC0415 - windows are read by few plans

    if not told.windows:
        return "no window lets it"
    found = closed(map(window_of, told.windows), now_s, spans)
    return found.why if found is not None else ""


@cache
def _installed() -> tuple[Policy, ...]:
    return loaded(sorted(entry_points(group=GROUP), key=lambda item: item.name))


def loaded(points: Iterable[EntryPoint]) -> tuple[Policy, ...]:
    """The policies that these entry points name. Never raises: a fault is what a policy objects with."""
    return tuple(policy for point in points for policy in _of_point(point))


def _of_point(point: EntryPoint) -> Iterator[Policy]:
    name = f"{GROUP}:{point.name}"
    try:
        value = point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is of a package of the user's
        yield fault(name, words(error))
        return
    for item in value if isinstance(value, (tuple, list)) else (value,):
        is_one = isinstance(item, Policy)
        yield _named(item, name) if is_one else fault(name, f"{point.value} is {type(item).__name__}, not a Policy")


def _named(policy: Policy, where: str) -> Policy:
    """The policy, or a fault when its id is none that `policies.levels` could name."""
    is_id = isinstance(policy.id, str) and re.fullmatch(r"\S+", policy.id)
    return policy if is_id else fault(where, f"it has a policy whose id is {policy.id!r}: write a word")


def _of_file(root: Path, name: str) -> Iterator[Policy]:
    """Every `Policy` that the file has at its top level, in their order there. It is run once for each look."""
    try:
        found = _in_time(lambda: _executed(root / name))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is of the user's
        yield fault(name, _located(error, root / name, name))
        return
    policies = [_named(item, name) for item in found.values() if isinstance(item, Policy)]
    yield from policies or [fault(name, "it has no Policy at its top level")]


def _executed(path: Path) -> Mapping[str, object]:
    name = f"fleet_policy:{path}"
    loader = _Source(name, str(path))
    module = module_from_spec(ModuleSpec(name, loader, origin=str(path)))
    sys.modules[name] = module  # where dataclasses look for what a class of it was defined with
    loader.exec_module(module)
    return vars(module)


class _Source(SourceFileLoader):
    """Runs the file as it is and leaves nothing beside it: the folder of a spec is somebody's checkout."""

    def set_data(self, path: str, data: object, *, _mode: int = 0o666) -> None:
        """Keep no byte code."""


def _located(error: BaseException, path: Path, name: str) -> str:
    """The error with the line of the file that it came from."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    line = error.lineno if isinstance(error, SyntaxError) else (lines or [None])[-1]
    said = f"{type(error).__name__}: {error.msg}" if isinstance(error, SyntaxError) else words(error)
    return f"{name}{f':{line}' if line else ''}: {said}"


def _outside(policy: Policy) -> Policy:
    """The policy as one of somebody else's is asked: in time."""
    return replace(policy, judge=partial(_asked, policy.judge))


def _asked(judge: Callable[[PolicyContext], Iterable[Objection]], context: PolicyContext) -> list[Objection]:
    return _in_time(lambda: list(islice(judge(context), MOST + 1)))


def _in_time(call: Callable[[], T]) -> T:
    """What the call returns or raises. On a thread that nobody waits for any more once its time is over.

    What it prints goes to standard error: on the other, a program may read a plan as JSON.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is raised where the answer is waited for
            future.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - there it would end the command, as if a person had
            future.set_exception(RuntimeError(repr(error)).with_traceback(error.__traceback__))

    try:
        with contextlib.redirect_stdout(sys.stderr):
            Thread(target=run, daemon=True, name="fleet-policy").start()
            return future.result(ANSWER_S)
    except TimeoutError:
        if future.done():
            raise
        raise TimeoutError(f"no answer in {ANSWER_S:g} s") from None
