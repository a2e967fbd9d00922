"""`fleet pin`: arguments in; output, fleet.lock and the spec out."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.cli.main import run
from reconciler.cli.wiring import Wiring
from reconciler.images import lockfile, upstream
from tests.unit.images.archives import classic_files, config_of, tarred
from tests.unit.images.pictures import Picture, one_platform, two_platforms
from tests.unit.images.played_nodes import PlayedStore, fleet_of
from tests.unit.images.played_registry import PlayedRegistry, served
from tests.unit.test_pinning import image_of

Command = Callable[..., tuple[int, str, str]]

SPEC = """\
# our fleet
fleet: lab
registries: {{ghcr.io: {{endpoint: "{url}"}}}}
images: {{vault: vault}}
nodes:
  dgx1: {{ssh: {{host: 127.0.0.1}}, platform: linux/arm64}}
include: [lanes/*.yaml]
lanes:
  chat: {{engine: custom, image: ghcr.io/org/x:v1, argv: [serve]}}  # the big one
  same: {{engine: custom, image: "ghcr.io/org/x:v1", argv: [serve]}}
"""

LANE = "lanes:\n  other:\n    engine: custom\n    argv: [serve]\n    image: {image}\n"


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(upstream, "PAUSES_S", ())
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))


@pytest.fixture
def played() -> Iterator[PlayedRegistry]:
    with served(PlayedRegistry()) as found:
        yield found


@pytest.fixture
def picture(played: PlayedRegistry) -> Picture:
    found = two_platforms()
    played.add(found, "v1")
    return found


@pytest.fixture
def store() -> PlayedStore:
    return PlayedStore()


@pytest.fixture
def fleet(tmp_path: Path, played: PlayedRegistry, store: PlayedStore, capsys: pytest.CaptureFixture[str]) -> Command:
    """`fleet WORDS --file SPEC` in this process: exit code, standard output, standard error."""
    (tmp_path / "fleet.yaml").write_text(SPEC.format(url=played.url))
    (tmp_path / "lanes").mkdir()
    (tmp_path / "lanes" / "a.yaml").write_text("models: {}\n")
    wiring = Wiring(lambda spec: fleet_of(store))

    def command(*words: str) -> tuple[int, str, str]:
        code = run([*words, "--file", str(tmp_path / "fleet.yaml")], wiring)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return command


def locked(folder: Path) -> list[tuple[str, str]]:
    return [(image.name, image.digest) for image in lockfile.read(folder).images]


def test_a_lane_is_pinned_locked_and_shown(
    fleet: Command, picture: Picture, tmp_path: Path, played: PlayedRegistry
) -> None:
    before = (tmp_path / "fleet.yaml").read_bytes()
    code, output, error = fleet("pin", "chat")
    assert (0, "") == (code, error)
    assert [
        f"ghcr.io/org/x:v1@{picture.top}",
        f"  known from {played.url}",
        "  linux/amd64: 2 layers, ",
        "  linux/arm64: 2 layers, ",
        f"  put this reference into lanes.chat.image, {tmp_path}/fleet.yaml:9:33",
        f"locked in {tmp_path}/fleet.lock",
    ] == [line if "layers" not in line else line.partition("layers, ")[0] + "layers, " for line in output.splitlines()]
    assert [("ghcr.io/org/x:v1", picture.top)] == locked(tmp_path)
    assert before == (tmp_path / "fleet.yaml").read_bytes()


def test_an_image_is_pinned_without_a_lane(fleet: Command, picture: Picture, tmp_path: Path) -> None:
    assert f"ghcr.io/org/x:v1@{picture.top}" == fleet("pin", "ghcr.io/org/x:v1")[1].splitlines()[0]
    assert [("ghcr.io/org/x:v1", picture.top)] == locked(tmp_path)


def test_write_puts_it_where_the_lane_has_it_and_leaves_all_else(
    fleet: Command, picture: Picture, tmp_path: Path
) -> None:
    path = tmp_path / "fleet.yaml"
    path.chmod(0o640)
    before = path.read_text()
    code, output, _ = fleet("pin", "chat", "--write")
    assert (0, True) == (code, "written to lanes.chat.image" in output)
    expected = before.replace("ghcr.io/org/x:v1", f"ghcr.io/org/x:v1@{picture.top}", 1)
    assert expected == path.read_text()
    assert 0o640 == path.stat().st_mode & 0o777


def test_all_pins_every_lane_in_every_file_and_forgets_the_rest(
    fleet: Command, picture: Picture, tmp_path: Path, played: PlayedRegistry
) -> None:
    (tmp_path / "lanes" / "a.yaml").write_text(LANE.format(image="ghcr.io/org/x:v2 # newer"))
    other = one_platform()
    played.add(other, "v2")
    assert 0 == fleet("pin", "ghcr.io/org/x:v1")[0]
    played.tags["gone"] = other.top
    assert 0 == fleet("pin", "ghcr.io/org/x:gone")[0]
    assert 2 == len(locked(tmp_path))
    assert 0 == fleet("pin", "--all", "--write")[0]
    assert [("ghcr.io/org/x:v1", picture.top), ("ghcr.io/org/x:v2", other.top)] == locked(tmp_path)
    assert LANE.format(image=f"ghcr.io/org/x:v2@{other.top} # newer") == (tmp_path / "lanes" / "a.yaml").read_text()
    assert 2 == (tmp_path / "fleet.yaml").read_text().count(f"ghcr.io/org/x:v1@{picture.top}")


def test_all_works_offline_from_what_was_pinned(
    fleet: Command, picture: Picture, tmp_path: Path, played: PlayedRegistry
) -> None:
    assert 0 == fleet("pin", "--all", "--write")[0]
    text = (tmp_path / "fleet.lock").read_text()
    played.blobs.clear()
    assert 0 == fleet("pin", "--all")[0]
    assert text == (tmp_path / "fleet.lock").read_text()


def test_all_goes_on_where_one_image_fails_and_keeps_what_its_lane_has(
    fleet: Command, picture: Picture, tmp_path: Path, played: PlayedRegistry
) -> None:
    (tmp_path / "lanes" / "a.yaml").write_text(LANE.format(image="ghcr.io/org/x:none"))
    code, output, error = fleet("pin", "--all", "--json")
    report = json.loads(output)
    assert 1 == code
    assert [["chat", "same"]] == [item["lanes"] for item in report["pins"]]
    assert ["ghcr.io/org/x:none"] == list(report["failures"])
    assert "ghcr.io/org/x:none is not pinned: " in error
    assert [("ghcr.io/org/x:v1", picture.top)] == locked(tmp_path)


def test_the_digest_that_another_lane_still_has_stays_locked(
    fleet: Command, picture: Picture, tmp_path: Path, played: PlayedRegistry
) -> None:
    assert 0 == fleet("pin", "--all", "--write")[0]
    newer = one_platform()
    played.add(newer, "v1")
    path = tmp_path / "fleet.yaml"
    path.write_text(path.read_text().replace(f"x:v1@{picture.top}", "x:v1", 1))
    assert 0 == fleet("pin", "chat", "--write")[0]
    assert {picture.top, newer.top} == {digest for _, digest in locked(tmp_path)}
    path.write_text(path.read_text().replace(picture.top, newer.top))
    assert 0 == fleet("pin", "chat")[0]
    assert [newer.top] == [digest for _, digest in locked(tmp_path)]


def test_a_broken_lock_is_told_and_written_anew_by_all(fleet: Command, picture: Picture, tmp_path: Path) -> None:
    (tmp_path / "fleet.lock").write_text("{")
    code, _, error = fleet("pin", "chat")
    assert (1, True) == (code, "fleet pin --all" in error)
    assert "{" == (tmp_path / "fleet.lock").read_text()
    assert 0 == fleet("pin", "--all")[0]
    assert [("ghcr.io/org/x:v1", picture.top)] == locked(tmp_path)


def test_a_failure_names_the_other_way_and_changes_nothing(fleet: Command, tmp_path: Path) -> None:
    code, output, error = fleet("pin", "ghcr.io/org/x:v9")
    assert (1, "") == (code, output)
    assert "--from NODE" in error
    assert not (tmp_path / "fleet.lock").exists()


def test_a_local_build_is_published_from_its_node(fleet: Command, tmp_path: Path, store: PlayedStore) -> None:
    made = one_platform()
    config, _ = config_of(made)
    store.images_there = (image_of(made, "mine:local"),)
    store.archives = {config: tarred(classic_files(made))}
    code, output, error = fleet("pin", "mine:local", "--from", "dgx1", "--json")
    assert (0, "", [config]) == (code, error, [item["reference"] for item in json.loads(output)["pins"]])
    code, output, error = fleet("pin", "mine:local", "--from", "dgx1", "--publish")
    assert (0, "", True) == (code, error, output.startswith("fleet.invalid/mine:local@sha256:"))
    assert ["", "fleet.invalid/mine:local"] == [name for name, _ in locked(tmp_path)]
    assert store.closed


@pytest.mark.parametrize(
    "words",
    [
        ("pin",),
        ("pin", "chat", "--all"),
        ("pin", "chat", "--publish"),
        ("pin", "chat", "--from", "dgx2"),
        ("pin", "ghcr.io/org/x:v1", "--write"),
    ],
)
def test_what_makes_no_sense_is_refused(
    fleet: Command, picture: Picture, words: tuple[str, ...], tmp_path: Path
) -> None:
    code, output, error = fleet(*words)
    assert (1, "") == (code, output)
    assert "fleet pin --help" in error
    assert not (tmp_path / "fleet.lock").exists()


@pytest.mark.parametrize(("word", "told"), [("chatt", "did you mean 'chat'?"), ("nosuch", "there are chat, same")])
def test_a_misspelled_lane_is_no_image_of_docker_hub(fleet: Command, word: str, told: str) -> None:
    code, output, error = fleet("pin", word)
    assert (1, "") == (code, output)
    assert f"no lane named '{word}': {told}" in error
    assert f"a tag or a registry: {word}:latest" in error
    assert f"dgx1 has no image {word}" in fleet("pin", word, "--from", "dgx1")[2]


def test_half_an_id_is_no_image(fleet: Command) -> None:
    code, _, error = fleet("pin", "sha256:zz")
    assert (1, True) == (code, "'sha256:zz' is not the id of an image" in error)


def test_what_else_is_wrong_with_the_spec_comes_first(fleet: Command, picture: Picture, tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(path.read_text().replace("image: ghcr", "imag: ghcr"))
    for words in (("chat",), ("same",), ("--all",)):
        code, _, error = fleet("pin", *words)
        assert (1, True, False) == (code, "unknown key 'imag'" in error, "not pinned" in error)


def test_what_is_pinned_stays_without_network_until_it_is_updated(
    fleet: Command, picture: Picture, tmp_path: Path, played: PlayedRegistry
) -> None:
    assert 0 == fleet("pin", "--all", "--write")[0]
    newer = one_platform()
    played.add(newer, "v1")
    asked = len(played.asked)
    output = fleet("pin", "chat")[1]
    assert ("already pinned" in output, "fleet.lock is as it was", asked) == (
        True,
        output.splitlines()[-1],
        len(played.asked),
    )
    code, output, _ = fleet("pin", "chat", "--update", "--write")
    assert (0, f"ghcr.io/org/x:v1@{newer.top}") == (code, output.splitlines()[0])
    assert "written to lanes.chat.image, " in output
    assert {picture.top, newer.top} == {digest for _, digest in locked(tmp_path)}
    assert 0 == fleet("pin", "--all", "--update", "--write")[0]
    assert 2 == (tmp_path / "fleet.yaml").read_text().count(newer.top)
    assert [("ghcr.io/org/x:v1", newer.top)] == locked(tmp_path)


def test_an_image_that_no_lane_has_is_told_as_such(fleet: Command, picture: Picture, tmp_path: Path) -> None:
    lines = fleet("pin", "ghcr.io/org/x:v1")[1].splitlines()
    assert "  no lane uses it: put it into a lane; `fleet pin --all` forgets it" == lines[-2]
    assert f"locked in {tmp_path}/fleet.lock" == lines[-1]


def test_what_failed_is_counted(fleet: Command, picture: Picture, tmp_path: Path) -> None:
    (tmp_path / "lanes" / "a.yaml").write_text(LANE.format(image="ghcr.io/org/x:none"))
    code, output, _ = fleet("pin", "--all")
    assert (1, f"1 of 2 locked in {tmp_path}/fleet.lock") == (code, output.splitlines()[-1])


def test_pinning_needs_no_valid_lane_but_valid_nodes(fleet: Command, picture: Picture, tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(path.read_text().replace("linux/arm64", "arm64"))
    code, _, error = fleet("pin", "chat")
    assert (1, True) == (code, "is not a platform" in error)
