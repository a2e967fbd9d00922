"""The house rules that a machine can hold: layers, banned calls, leftovers, sizes.

`LAYERS` is the one place that says who may import whom; `ARCHITECTURE.md` draws it.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("specs", "state", "reconciler")

LAYERS: dict[str, tuple[str, ...]] = {
    "specs": (),
    "state": ("specs",),
    "reconciler.version": (),
    "reconciler.threads": (),
    "reconciler.person": (),
    "reconciler.notify": (),
    "reconciler.core": (),
    "reconciler.engines": ("specs", "reconciler.core"),
    "reconciler.images": ("specs", "reconciler.core", "reconciler.threads"),
    "reconciler.nodes": ("specs", "reconciler.core", "reconciler.images", "reconciler.threads"),
    "reconciler.testing": ("reconciler.core", "reconciler.nodes"),
    "reconciler.execution": ("state", "reconciler.core", "reconciler.engines", "reconciler.nodes"),
    "reconciler.views": ("reconciler.core",),
    "reconciler.recording": ("reconciler.core", "reconciler.views"),
    "reconciler.history": ("specs", "state", "reconciler.core"),
    "reconciler.resume": ("state", "reconciler.core", "reconciler.nodes"),
    "reconciler.applied": ("reconciler.core", "reconciler.execution"),
    "reconciler.applying": (
        "state",
        "reconciler.applied",
        "reconciler.core",
        "reconciler.execution",
        "reconciler.fleet",
        "reconciler.history",
        "reconciler.hooking",
        "reconciler.nodes",
        "reconciler.person",
        "reconciler.resume",
    ),
    "reconciler.plugins": ("reconciler.core", "reconciler.threads"),
    "reconciler.hooking": ("specs", "reconciler.core"),
    "reconciler.policing": ("specs", "reconciler.core", "reconciler.gitops"),
    "reconciler.standing": (
        "reconciler.core",
        "reconciler.execution",
        "reconciler.fleet",
        "reconciler.history",
        "reconciler.nodes",
    ),
    "reconciler.drifting": (
        "reconciler.core",
        "reconciler.execution",
        "reconciler.fleet",
        "reconciler.history",
        "reconciler.holds",
        "reconciler.standing",
        "reconciler.version",
    ),
    "reconciler.drift_job": (
        "state",
        "reconciler.core",
        "reconciler.drifting",
        "reconciler.fleet",
        "reconciler.history",
        "reconciler.notify",
        "reconciler.threads",
        "reconciler.views",
    ),
    "reconciler.fleet": (
        "specs",
        "state",
        "reconciler.applied",
        "reconciler.applying",
        "reconciler.core",
        "reconciler.drifting",
        "reconciler.engines",
        "reconciler.execution",
        "reconciler.history",
        "reconciler.images",
        "reconciler.nodes",
        "reconciler.person",
        "reconciler.plugins",
        "reconciler.policing",
        "reconciler.standing",
        "reconciler.threads",
        "reconciler.version",
    ),
    "reconciler.rollback": ("state", "reconciler.core", "reconciler.fleet", "reconciler.person"),
    "reconciler.saved": ("reconciler.core", "reconciler.fleet", "reconciler.history", "reconciler.person"),
    "reconciler.holds": ("state", "reconciler.core", "reconciler.fleet", "reconciler.history", "reconciler.person"),
    "reconciler.pinning": (
        "specs",
        "reconciler.core",
        "reconciler.images",
        "reconciler.nodes",
        "reconciler.threads",
    ),
    "reconciler.vault_stock": ("specs", "reconciler.core", "reconciler.images"),
    "reconciler.stock": (
        "specs",
        "reconciler.core",
        "reconciler.engines",
        "reconciler.execution",
        "reconciler.fleet",
        "reconciler.images",
        "reconciler.nodes",
        "reconciler.person",
        "reconciler.vault_stock",
    ),
    "reconciler.model_stock": ("reconciler.core", "reconciler.engines", "reconciler.fleet", "reconciler.nodes"),
    "reconciler.forges": (
        "specs",
        "reconciler.core",
        "reconciler.execution",
        "reconciler.version",
        "reconciler.views",
    ),
    "reconciler.gitops": (
        "specs",
        "state",
        "reconciler.applied",
        "reconciler.core",
        "reconciler.fleet",
        "reconciler.forges",
        "reconciler.history",
        "reconciler.holds",
        "reconciler.images",
        "reconciler.nodes",
        "reconciler.person",
        "reconciler.threads",
        "reconciler.views",
    ),
    "reconciler.cli": ("specs", "state", "reconciler"),
    "reconciler": ("reconciler.applied", "reconciler.core", "reconciler.fleet", "reconciler.recording"),
}
"""Each part of the house and what it may import beside itself and libraries."""

PURE = ("reconciler.core", "reconciler.engines", "reconciler.views")
IMPURE = frozenset(
    {"asyncio", "datetime", "httpx", "asyncssh", "docker", "os", "pathlib.Path", "random", "secrets", "socket"}
    | {"sqlalchemy", "subprocess", "threading", "time", "uuid", "tempfile", "shutil"}
)
"""Pure parts have no I/O, no clock and no randomness."""

LONGEST_FUNCTION = 50
LONGEST_MODULE = 300

FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer_of(module: str) -> str:
    """The longest entry of `LAYERS` that the module is part of."""
    found = [layer for layer in LAYERS if module == layer or module.startswith(f"{layer}.")]
    return max(found, key=len)


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Every import of a file, also those inside functions and for typing alone, with its line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def is_allowed(importer: str, imported: str) -> bool:
    own = layer_of(importer)
    if imported.partition(".")[0] not in PACKAGES or imported in PACKAGES[2:]:
        return True
    other = layer_of(imported)
    return other == own or any(other == layer or other.startswith(f"{layer}.") for layer in LAYERS[own])


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_module_imports_only_what_its_layer_may(path: Path) -> None:
    wrong = [f"{line}: {name}" for line, name in imports_of(path) if not is_allowed(name_of(path), name)]
    assert [] == wrong


def test_the_layering_test_sees_a_forbidden_import() -> None:
    assert not is_allowed("specs.loader", "reconciler.core.plan")
    assert not is_allowed("reconciler.core.planner", "reconciler.nodes.ssh")
    assert not is_allowed("state.sqlite", "reconciler.core.plan")
    assert is_allowed("reconciler.fleet", "reconciler.core.plan")


@pytest.mark.parametrize("path", [path for path in FILES if layer_of(name_of(path)) in PURE], ids=name_of)
def test_pure_parts_have_no_effects_no_clock_and_no_randomness(path: Path) -> None:
    found = list(imports_of(path))
    wrong = [f"{line}: {name}" for line, name in found if {name, name.split(".")[0]} & IMPURE]
    assert [] == wrong


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_nothing_prints_or_opens_behind_the_views(path: Path) -> None:
    calls = (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    banned = {"print", "input", "breakpoint", "eval", "exec"}
    assert [] == [node.lineno for node in calls if isinstance(node.func, ast.Name) and node.func.id in banned]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_nothing_is_left_open(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [] == re.findall(r"\b(?:TODO|FIXME|XXX|HACK|raise NotImplementedError|dry_run)\b", text)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_functions_and_modules_stay_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    functions = (
        node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    long = [node.name for node in functions if node.end_lineno and node.end_lineno - node.lineno + 1 > LONGEST_FUNCTION]
    assert [] == long
    assert text.count("\n") <= LONGEST_MODULE


def test_every_dependency_has_a_reason() -> None:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    dependencies = [line for line in lines if re.match(r'\s+"[A-Za-z0-9_.-]+[<>=]', line)]
    assert dependencies
    assert [] == [line for line in dependencies if not re.search(r"#\s*\S+\s+\S+", line)]
