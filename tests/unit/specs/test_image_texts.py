"""Images as they are written in lanes, and another text in their place."""

from pathlib import Path

import pytest

from specs import ImageText, Place, SpecErrors, image_texts, load, load_inventory, rewritten
from tests.unit.specs.helpers import BASE, DIGEST, edited, write

NEW = f"ghcr.io/owner/engine:v2@{DIGEST}"


def test_pinned_or_not_each_lane_has_what_is_written_and_where(tmp_path: Path) -> None:
    text = edited((f"image: ghcr.io/owner/engine@{DIGEST}", "image: engine:v1"))
    path = write(tmp_path, text)
    with pytest.raises(SpecErrors):
        load(path)
    line = text.splitlines().index("    image: engine:v1") + 1
    found = image_texts(path)
    assert ["duo", "solo"] == list(found)
    assert ImageText("engine:v1", Place(path, line, 12)) == found["duo"]


def test_lanes_of_included_files_are_found_in_theirs(tmp_path: Path) -> None:
    path = write(tmp_path, "fleet: lab\ninclude: [lanes/*.yaml]\n")
    lane = write(tmp_path, "lanes: {a: {image: x:v1}, b: {image: 7}, c: {engine: y}}\n", "lanes/a.yaml")
    assert {"a": ImageText("x:v1", Place(lane, 1, 20))} == image_texts(path)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(SpecErrors, match="not valid YAML"):
        image_texts(write(tmp_path, "lanes: {"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("image: x:v1", f"image: {NEW}"),
        ("image:   x:v1   # why", f"image:   {NEW}   # why"),
        ('image: "x:v1" # why', f'image: "{NEW}" # why'),
        ("image: 'x:v1'", f"image: '{NEW}'"),
        ("image: &mine x:v1", f"image: &mine {NEW}"),
        ("image:\n      x:v1", f"image:\n      {NEW}"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_only_the_text_changes_and_it_is_read_back(
    tmp_path: Path, before: str, after: str, end: str, mark: bytes
) -> None:
    frame = "# größer — 大\nfleet: lab\nlanes:\n  a:\n    {}\n    env: {{A: '  x:v1  '}}\n"
    path = write(tmp_path, mark + frame.format(before).replace("\n", end).encode())
    changed = rewritten(path.read_bytes(), image_texts(path)["a"], NEW)
    assert mark + frame.format(after).replace("\n", end).encode() == changed
    path.write_bytes(changed)
    assert NEW == image_texts(path)["a"].text


def test_flow_style_and_the_end_of_a_file_without_a_line_end(tmp_path: Path) -> None:
    path = write(tmp_path, "{lanes: {a: {image: x:v1}}, fleet: lab}")
    assert f"{{lanes: {{a: {{image: {NEW}}}}}, fleet: lab}}".encode() == rewritten(
        path.read_bytes(), image_texts(path)["a"], NEW
    )


def test_an_alias_changes_where_its_text_stands(tmp_path: Path) -> None:
    path = write(tmp_path, "lanes:\n  a: {image: &i x:v1}\n  b: {image: *i}\n")
    path.write_bytes(rewritten(path.read_bytes(), image_texts(path)["b"], NEW))
    assert [NEW, NEW] == [found.text for found in image_texts(path).values()]


@pytest.mark.parametrize("written", ['"x\\x3av1"', ">-\n      x:v1", "'x:\n      v1'"])
def test_what_does_not_stand_there_as_it_is_stays(tmp_path: Path, written: str) -> None:
    path = write(tmp_path, f"lanes:\n  a:\n    image: {written}\n")
    with pytest.raises(SpecErrors, match=r"write ghcr\.io/owner/engine:v2"):
        rewritten(path.read_bytes(), image_texts(path)["a"], NEW)


def test_an_inventory_loads_though_no_lane_is_valid(tmp_path: Path) -> None:
    text = edited((f"image: ghcr.io/owner/engine@{DIGEST}", "image: engine:v1"), text=BASE)
    spec = load_inventory(write(tmp_path, text))
    assert ("lab", {"n1", "n2", "n3"}, {}) == (spec.fleet, set(spec.nodes), spec.lanes)
    assert tmp_path == spec.root
    with pytest.raises(SpecErrors, match="platform"):
        load_inventory(write(tmp_path, edited(("platform: linux/arm64", "platform: arm"), text=text)))
