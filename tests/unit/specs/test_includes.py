"""A spec in several files reads like one."""

from pathlib import Path

import pytest

from specs import SpecErrors, files, load
from tests.unit.specs.helpers import BASE, DIGEST, edited, errors, faults, loaded, messages, write

LANE = f"engine: vllm, image: {DIGEST}"


def _main(*patterns: str) -> str:
    return edited(("fleet: lab\n", f"fleet: lab\ninclude: [{', '.join(patterns)}]\n"))


def test_included_files_are_merged_in_sorted_order(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write(tmp_path, f"lanes:\n  {name}: {{{LANE}}}\n", f"lanes/{name}.yaml")
    spec = loaded(tmp_path, _main("lanes/*.yaml"))
    assert ["duo", "solo", "a", "b"] == list(spec.lanes)
    assert [tmp_path / "fleet.yaml", tmp_path / "lanes/a.yaml", tmp_path / "lanes/b.yaml"] == list(spec.files)
    assert tmp_path == spec.root


def test_the_layout_in_files_does_not_change_the_fingerprint(tmp_path: Path) -> None:
    one = loaded(tmp_path / "one", BASE)
    head, lanes = BASE.split("lanes:\n")
    lanes, placements = lanes.split("placements:\n")
    write(tmp_path / "two", "lanes:\n" + lanes, "sub/lanes.yaml")
    write(tmp_path / "two", "include: ['lanes.*']\nplacements:\n" + placements, "sub/more.yaml")
    two = loaded(tmp_path / "two", head + "include: [sub/more.yaml]\n")
    assert one.fingerprint == two.fingerprint
    assert one == two


def test_patterns_are_relative_to_the_file_they_stand_in(tmp_path: Path) -> None:
    write(tmp_path, "include: [../b/*.yaml]\n", "a/x.yaml")
    write(tmp_path, f"lanes: {{far: {{{LANE}}}}}\n", "b/y.yaml")
    assert "far" in loaded(tmp_path, _main("a/x.yaml")).lanes


def test_placements_of_all_files_count(tmp_path: Path) -> None:
    write(tmp_path, "placements:\n  - {lane: solo, cluster: trio, nodes: [n3]}\n", "more.yaml")
    assert ["duo", "solo"] == [placement.lane for placement in loaded(tmp_path, _main("more.yaml")).placements]


def test_a_file_that_two_patterns_match_is_read_once(tmp_path: Path) -> None:
    write(tmp_path, f"lanes: {{x: {{{LANE}}}}}\n", "lanes/x.yaml")
    assert "x" in loaded(tmp_path, _main("lanes/*.yaml", "lanes/x.yaml")).lanes


def test_a_recursive_pattern_reaches_folders_below_and_no_hidden_file(tmp_path: Path) -> None:
    write(tmp_path, f"lanes: {{x: {{{LANE}}}}}\n", "lanes/a/b/x.yaml")
    write(tmp_path, "not: [a spec", "lanes/.x.yaml")
    assert "x" in loaded(tmp_path, _main('"lanes/**/*.yaml"')).lanes


def test_a_fault_names_the_file_it_is_in(tmp_path: Path) -> None:
    write(tmp_path, "lanes:\n  x: {engine: [], image: y}\n", "lanes/x.yaml")
    expected = [
        "lanes/x.yaml:2:15: lanes.x.engine: wants text, found a list",
        "lanes/x.yaml:2:26: lanes.x.image: image 'y' is not pinned by digest",
    ]
    assert expected == faults(tmp_path, _main("lanes/x.yaml"))


def test_a_name_defined_in_two_files_names_both_places(tmp_path: Path) -> None:
    write(tmp_path, f"lanes:\n  duo: {{{LANE}}}\n", "x.yaml")
    text = messages(tmp_path, _main("x.yaml"))
    expected = (
        "x.yaml:2:3: lanes.duo is defined twice\n    It is first defined at fleet.yaml:13:3.\n    rename or remove one"
    )
    assert expected == text


def test_an_included_file_may_name_the_same_fleet(tmp_path: Path) -> None:
    write(tmp_path, "fleet: lab\n", "x.yaml")
    assert "lab" == loaded(tmp_path, _main("x.yaml")).fleet


def test_an_included_file_may_not_name_another_fleet(tmp_path: Path) -> None:
    write(tmp_path, "fleet: other\n", "x.yaml")
    assert "x.yaml:1:8: fleet: another name than before\n    It is 'lab' at fleet.yaml:1:1." in messages(
        tmp_path, _main("x.yaml")
    )


@pytest.mark.parametrize(
    ("expected", "pattern"),
    [
        ("2:11: include: no file matches 'gone/*.yaml'", "gone/*.yaml"),
        ("2:11: include: no file matches 'gone.yaml'", "gone.yaml"),
        ("2:11: include: an absolute path", "/etc/*.yaml"),
        ("2:11: include: an absolute path", "~/x.yaml"),
        ("2:11: include: wants a file or a pattern such as lanes/*.yaml, found a list", "[a]"),
        ("2:11: include: wants a file or a pattern such as lanes/*.yaml, found 1", "1"),
        ("2:11: include: wants a file or a pattern such as lanes/*.yaml, found text", '""'),
        ("2:11: fleet.yaml includes itself", "fleet.yaml"),
        ("folder:0:0: is a folder, not a file", "fold*"),
    ],
)
def test_a_pattern_that_leads_nowhere_is_refused(tmp_path: Path, expected: str, pattern: str) -> None:
    (tmp_path / "folder").mkdir()
    assert [expected] == [line.replace(f"{tmp_path}/", "") for line in faults(tmp_path, _main(pattern))]


def test_include_is_a_list(tmp_path: Path) -> None:
    text = edited(("fleet: lab\n", "fleet: lab\ninclude: lanes/*.yaml\n"))
    assert "2:10: include: wants a list, found text\n    write [lanes/*.yaml]" in messages(tmp_path, text)


def test_a_circle_of_files_is_refused_where_it_closes(tmp_path: Path) -> None:
    write(tmp_path, "include: [b.yaml]\n", "a.yaml")
    write(tmp_path, "include: [a.yaml]\n", "b.yaml")
    assert ["b.yaml:1:11: a.yaml includes itself"] == [
        line.replace(f"{tmp_path}/", "") for line in faults(tmp_path, _main("a.yaml"))
    ]


def test_files_that_include_each_other_too_deep_are_refused(tmp_path: Path) -> None:
    for i in range(30):
        write(tmp_path, f"include: [f{i + 1}.yaml]\n", f"f{i}.yaml")
    assert ["f14.yaml:1:11: include: more than 16 files deep"] == faults(tmp_path, _main("f0.yaml"))[-1:]


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILES", 3)
    for i in range(4):
        write(tmp_path, f"lanes: {{l{i}: {{{LANE}}}}}\n", f"lanes/{i}.yaml")
    assert ["2:11: include: more than 3 files"] == faults(tmp_path, _main("lanes/*"))


def test_a_file_that_cannot_be_used_hides_no_fault_and_makes_no_false_one(tmp_path: Path) -> None:
    write(tmp_path, "models: {gone: [}\n", "models.yaml")
    write(tmp_path, f"lanes: {{x: {{{LANE}, model: gone, nodes: two}}}}\n", "lanes.yaml")
    lines = faults(tmp_path, _main("models.yaml", "lanes.yaml"))
    assert ["lanes.yaml:1:127", "models.yaml:1:17"] == [line.split(": ")[0] for line in lines]


def test_faults_are_sorted_by_file_and_line(tmp_path: Path) -> None:
    write(tmp_path, "lanes: {y: 1, x: 1}\n", "b.yaml")
    write(tmp_path, "models: {x: 1}\n", "a.yaml")
    found = errors(tmp_path, _main("b.yaml", "a.yaml")).diagnostics
    assert sorted(found, key=lambda d: (d.path, d.line, d.column)) == list(found)
    assert 3 == len(found)


def test_places_are_shown_relative_to_where_the_user_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "lanes: {x: 1}\n", "lanes/x.yaml")
    write(tmp_path, _main("lanes/*"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecErrors) as caught:
        load(Path("fleet.yaml"))
    assert "lanes/x.yaml:1:12: lanes.x: wants a mapping, found 1" == str(caught.value)
