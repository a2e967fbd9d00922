"""What the documents promise is there: the README's spec loads, its commands exist, its links lead somewhere."""

import ast
import re
from pathlib import Path

import pytest

import specs
from reconciler.cli.app import app
from reconciler.core.exits import Exit
from reconciler.engines import ENGINES, desired_fleet

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted(path for path in ROOT.rglob("*.md") if ".venv" not in path.parts and ".cache" not in path.parts)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def commands() -> set[str]:
    return {str(item.name) for item in app.registered_commands}


def test_the_spec_of_the_readme_loads_and_renders(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(blocks(README, "yaml")[0], encoding="utf-8")
    desired = desired_fleet(specs.load(path))
    assert ["pair/qwen-2x"] == [gang.address for gang in desired.gangs]


def test_the_readme_names_every_command_and_only_those() -> None:
    named = {
        word for row in re.findall(r"^\| (`fleet .*?) \|", README, re.M) for word in re.findall(r"`fleet (\w+)", row)
    }
    assert commands() == named


def test_the_readme_lists_the_exit_codes_that_commands_have() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.M)}
    assert {int(code) for code in Exit} - {int(Exit.LEASE_HELD)} == listed


def test_the_readme_names_every_engine() -> None:
    assert [] == [name for name in ENGINES if f"`{name}`" not in README]


def test_python_in_the_readme_compiles() -> None:
    for block in blocks(README, "python"):
        ast.parse(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [] == [target for target in targets if not (page.parent / target).exists()]


def test_every_make_target_in_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    named = {
        name for page in PAGES for name in re.findall(r"\bmake ([a-z][a-z-]+)\b", page.read_text(encoding="utf-8"))
    }
    assert set() == {name for name in named if name not in targets}


def test_architecture_names_every_module_of_the_core() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    modules = {path.stem for path in (ROOT / "reconciler/core").glob("*.py")} - {"__init__"}
    assert set() == {name for name in modules if f"`{name}`" not in text}
