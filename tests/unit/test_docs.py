"""What the documents promise is there: the README's spec loads, its commands exist, its links lead somewhere."""

import ast
import re
from pathlib import Path

import pytest
import yaml
from typer import Typer
from typer.models import TyperInfo

import specs
from reconciler.cli.app import app
from reconciler.core.exits import Exit
from reconciler.engines import ENGINES, RULES, desired_fleet
from reconciler.engines.templates import NAMES
from scripts import check_reference, event_reference, spec_reference
from tests.lab import specfile

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ENGINES_PAGE = (ROOT / "docs/engines.md").read_text(encoding="utf-8")
PAGES = sorted(path for path in ROOT.rglob("*.md") if ".venv" not in path.parts and ".cache" not in path.parts)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def spec_of_the_readme() -> str:
    return next(block for block in blocks(README, "yaml") if block.startswith("fleet:"))


def commands() -> set[str]:
    below = {f"{group.name} {item.name}" for group in app.registered_groups for item in _app(group).registered_commands}
    return below | {str(item.name) for item in app.registered_commands}


def _app(group: TyperInfo) -> Typer:
    assert group.typer_instance is not None
    return group.typer_instance


def test_the_spec_of_the_readme_loads_and_renders(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(spec_of_the_readme(), encoding="utf-8")
    desired = desired_fleet(specs.load(path))
    assert ["pair/qwen-2x"] == [gang.address for gang in desired.gangs]


def test_the_edit_that_the_readme_tells_is_one_of_the_labs_spec() -> None:
    assert specfile.fleet_text(specfile.QUAD).endswith(f"\n{blocks(README, 'yaml')[0]}")


def commands_of_lanes(page: str, folder: Path) -> dict[str, list[str]]:
    """The lanes of a page, placed on the README's nodes: the whole command of each rank."""
    base = yaml.safe_load(spec_of_the_readme())
    found = {}
    for block in blocks(page, "yaml"):
        lanes = (part := yaml.safe_load(block)).get("lanes", {})
        for lane in lanes if "fleet" not in part else ():
            path = folder / f"{lane}.yaml"
            models = {**base["models"], **part.get("models", {})}
            whole = {**base, "models": models, "lanes": lanes, "placements": [{"lane": lane, "cluster": "pair"}]}
            path.write_text(yaml.safe_dump(whole), encoding="utf-8")
            boxes = [rank.container for rank in desired_fleet(specs.load(path, RULES)).gangs[0].ranks]
            found[lane] = [" ".join((*(box.entrypoint or ()), *box.command)) for box in boxes]
    return found


def test_the_lane_of_the_readme_with_an_engine_renders(tmp_path: Path) -> None:
    found = commands_of_lanes(README, tmp_path)["vllm-2x"]
    assert 2 == len(found)
    for rank, line in enumerate(found):
        assert line.startswith("vllm serve /models/qwen --served-model-name qwen ")
        assert f"--tensor-parallel-size 2 --nnodes 2 --node-rank {rank} " in line
        assert '--speculative-config {"method":"ngram","num_speculative_tokens":3}' in line


def test_the_lanes_of_the_engines_page_render_as_it_says(tmp_path: Path) -> None:
    found = commands_of_lanes(ENGINES_PAGE, tmp_path)
    shown = [block.splitlines() for block in blocks(ENGINES_PAGE, "text")]
    assert [found["vllm-2x"], found["sglang-2x"], found["by-role-2x"]] == shown
    assert ['serve --port 30000 --rank 1 --meet 10.10.0.1:29501 --json {"a": 1}'] == found["any-2x"][1:]


def test_the_pages_name_every_placeholder_and_no_other() -> None:
    rows = re.findall(r"^\| (`\{\w+.*?) \|", ENGINES_PAGE, re.M)
    named = {name for row in rows for name in re.findall(r"`\{(\w+)", row)}
    assert {*NAMES, "ports", "paths"} == named
    assert [] == [name for name in named if f"`{{{name}" not in README]


def test_the_readme_names_every_command_and_only_those() -> None:
    named = {
        word
        for row in re.findall(r"^\| (`fleet .*?) \|", README, re.M)
        for word in re.findall(r"`fleet ((?:images |models |lease |state |gitops )?\w+)", row)
    }
    assert commands() == named


def test_the_readme_lists_the_exit_codes_that_commands_have() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.M)}
    assert {int(code) for code in Exit} == listed


def test_the_help_lists_the_same_exit_codes() -> None:
    listed = {int(code) for code in re.findall(r"\b(\d+) [a-z]", str(app.info.epilog))}
    assert {int(code) for code in Exit} == listed


def test_the_readme_names_every_engine() -> None:
    assert [] == [name for name in ENGINES if f"`{name}`" not in README]


def test_python_in_the_readme_compiles() -> None:
    for block in blocks(README, "python"):
        ast.parse(block)


def test_the_reference_of_the_spec_is_current() -> None:
    assert spec_reference.reference() == spec_reference.PAGE.read_text(encoding="utf-8"), "make spec-reference"


def test_the_reference_of_the_checks_is_current() -> None:
    assert check_reference.reference() == check_reference.PAGE.read_text(encoding="utf-8"), "make spec-reference"


def test_the_schema_of_events_is_current() -> None:
    assert event_reference.reference() == event_reference.PAGE.read_text(encoding="utf-8"), "make spec-reference"


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
