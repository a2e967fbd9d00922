"""Gives a module another source when it is imported."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

from tests.mutants.mutants import Mutant


class DoesNotApply(Exception):  # noqa: N818 - named after what happened
    """The place that a mutant changes is not there, or not once."""


def source_of(mutant: Mutant) -> str:
    """The changed source. Raises `DoesNotApply`."""
    spec = importlib.machinery.PathFinder.find_spec(mutant.module.rpartition(".")[2], _folder(mutant.module))
    if spec is None or spec.origin is None:
        raise DoesNotApply(f"{mutant.name}: there is no module {mutant.module}")
    with open(spec.origin, encoding="utf-8") as file:  # noqa: PTH123 - the loader's own path
        text = file.read()
    if text.count(mutant.old) != 1:
        raise DoesNotApply(f"{mutant.name}: {mutant.module} has {text.count(mutant.old)} times {mutant.old!r}")
    return text.replace(mutant.old, mutant.new)


def _folder(module: str) -> Sequence[str]:
    parent = importlib.util.find_spec(module.rpartition(".")[0])
    return list(parent.submodule_search_locations or ()) if parent else []


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the module of one mutant, and nothing else."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self._code = compile(source_of(mutant), f"<mutant {mutant.name} of {mutant.module}>", "exec")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code, module.__dict__)


def put_in(mutant: Mutant) -> None:
    """From now on an import of the module gives the mutant. Raises `DoesNotApply` when it is imported already."""
    finder = Finder(mutant)
    if mutant.module in sys.modules:
        raise DoesNotApply(f"{mutant.name}: {mutant.module} is imported already")
    sys.meta_path.insert(0, finder)
