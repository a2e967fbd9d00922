"""The settings of images: one record, in any one file, with faults at their place."""

from pathlib import Path

import pytest

from specs import Images
from tests.unit.specs.helpers import BASE, edited, faults, loaded, messages, write


def with_images(text: str) -> str:
    return edited(("nodes:\n", f"images: {text}\nnodes:\n"))


def test_without_the_section_everything_is_the_default(tmp_path: Path) -> None:
    assert Images() == loaded(tmp_path, BASE).images


def test_what_is_written_is_read(tmp_path: Path) -> None:
    found = loaded(tmp_path, with_images("{retain: 3, bandwidth: 100MiB, relay: false, protect: [/srv/v, ghcr.io/*]}"))
    assert Images(retain=3, bandwidth=100 * 2**20, relay=False, protect=("/srv/v", "ghcr.io/*")) == found.images


def test_the_vault_is_relative_to_the_file_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ops")
    write(tmp_path, "images: {vault: ../v}\n", "sub/images.yaml")
    main = edited(("fleet: lab\n", "fleet: lab\ninclude: [sub/images.yaml]\n"))
    assert tmp_path / "sub/../v" == loaded(tmp_path, main).images.vault
    assert Path("/home/ops/v") == loaded(tmp_path, with_images("{vault: ~/v}")).images.vault


def test_it_stands_in_one_file_only(tmp_path: Path) -> None:
    write(tmp_path, "images: {retain: 2}\n", "more.yaml")
    main = edited(("fleet: lab\n", "fleet: lab\ninclude: [more.yaml]\nimages: {relay: false}\n"))
    assert ["more.yaml:1:1: images is defined twice"] == faults(tmp_path, main)
    assert "It is first defined at fleet.yaml:3:1." in messages(tmp_path, main)


def test_how_images_move_is_no_part_of_the_fingerprint(tmp_path: Path) -> None:
    plain = loaded(tmp_path, BASE).fingerprint
    assert plain == loaded(tmp_path, with_images("{retain: 3, vault: /v, parallel: 2}")).fingerprint


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("2:10: images: unknown key 'retian'", "{retian: 3}"),
        ("2:18: images.retain: must be at least 0", "{retain: -1}"),
        ("2:18: images.retain: must be at most 100", "{retain: 101}"),
        ("2:20: images.parallel: must be at least 1", "{parallel: 0}"),
        ("2:18: images.uplink: must be more than 0", "{uplink: 0}"),
        ("2:21: images.bandwidth: '100Mbit' is not a size", "{bandwidth: 100Mbit}"),
        ("2:17: images.vault: wants a path, found a list", "{vault: [x]}"),
        ("2:9: images: wants a mapping, found a list", "[x]"),
        ("2:8: images: wants a mapping, found nothing", ""),
        ("2:19: images.protect: wants a list, found text", "{protect: ghcr.io/*}"),
        ("2:20: images.protect[0]: must not be empty", '{protect: [""]}'),
        ("2:20: images.protect[0]: '~/v' is neither an image name nor an absolute path", "{protect: [~/v]}"),
        ("2:20: images.protect[0]: '/a/../b' holds '..'", "{protect: [/a/../b]}"),
        ("2:20: images.protect[0]: 'a b' is not a pattern of image names", "{protect: [a b]}"),
    ],
)
def test_a_fault_is_said_at_its_place(tmp_path: Path, expected: str, text: str) -> None:
    assert [expected] == faults(tmp_path, with_images(text))


def test_a_wrong_key_is_told_the_right_one(tmp_path: Path) -> None:
    said = messages(tmp_path, with_images("{retian: 3}"))
    assert "did you mean 'retain'?" in said
    assert "The keys here are bandwidth, parallel, protect, relay, retain, unpack, uplink, vault." in said


@pytest.mark.parametrize("text", ["*", "ghcr.io/o/n", "127.0.0.1:5000/o/n:v1", f"o/n@sha256:{'ab' * 32}", "/", "/v"])
def test_what_can_be_protected(tmp_path: Path, text: str) -> None:
    assert (text,) == loaded(tmp_path, with_images(f"{{protect: ['{text}']}}")).images.protect
