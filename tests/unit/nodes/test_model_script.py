"""The script that looks at a model, run on real folders: what the container sees counts, not what the node sees."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from reconciler.core.models import BadLink, ModelFacts, ModelPlace
from reconciler.nodes import model_script
from reconciler.nodes.models import PROVE

SHELLS = ("sh", "bash")
REVISION = "3f2a" + "0" * 36
BLOB = "a" * 64


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def look(shell: str, place: ModelPlace, *hashes: str) -> ModelFacts:
    argv = [shell, "-s", "--", *model_script.words(place, hashes)]
    done = subprocess.run(argv, input=model_script.SCRIPT, capture_output=True, text=True, timeout=20, check=False)
    found = model_script.parse(done.stdout, place)
    assert found is not None, done.stdout
    return found


def mounted(folder: Path, path: Path, target: str = "/models") -> ModelPlace:
    """`path` below `folder`, which the container sees at `target`."""
    return ModelPlace(str(path), f"{target}/{path.relative_to(folder)}", ((str(folder), target),))


def shards(folder: Path, *names: str, present: tuple[str, ...] | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text('{"num_attention_heads": 8}\n')
    index = {"metadata": {"total_size": 8}, "weight_map": {f"layer.{name}": name for name in names}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1))
    for name in names if present is None else present:
        (folder / name).write_text("12345678")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A Hugging Face cache with one snapshot; its snapshot folder."""
    repo = tmp_path / "hub" / "models--owner--name"
    snapshot = repo / "snapshots" / REVISION
    snapshot.mkdir(parents=True)
    (repo / "blobs").mkdir()
    for name, blob in (("config.json", "c" * 40), ("model.safetensors", BLOB)):
        (repo / "blobs" / blob).write_text("{}" if name == "config.json" else "weights")
        (snapshot / name).symlink_to(f"../../blobs/{blob}")
    return snapshot


def test_a_folder_is_told_with_its_files_and_their_sizes(tmp_path: Path, shell: str) -> None:
    model = tmp_path / "tiny"
    shards(model, "a.safetensors", "b.safetensors")
    found = look(shell, mounted(tmp_path, model))
    assert "folder" == found.there
    assert {"a.safetensors", "b.safetensors", "config.json", "model.safetensors.index.json"} == set(found.by_path)
    assert 8 == found.by_path["a.safetensors"].bytes
    assert {"num_attention_heads": 8} == json.loads(found.config)
    assert found.is_whole
    assert found.disk_free_bytes
    assert str(tmp_path) == found.base


def test_a_shard_that_the_index_names_and_that_is_not_there_is_missing(tmp_path: Path, shell: str) -> None:
    model = tmp_path / "tiny"
    shards(model, "a.safetensors", "b.safetensors", present=("a.safetensors",))
    found = look(shell, mounted(tmp_path, model))
    assert ("b.safetensors",) == found.missing
    assert not found.is_whole


def test_a_snapshot_of_a_cache_is_whole_when_its_blobs_are_mounted_too(tmp_path: Path, cache: Path, shell: str) -> None:
    found = look(shell, mounted(tmp_path, cache, "/root/.cache/huggingface"))
    assert found.is_whole
    assert REVISION == found.revision
    assert f"sha256:{BLOB}" == found.by_path["model.safetensors"].named_digest
    assert 7 == found.by_path["model.safetensors"].bytes
    blobs = cache.parents[1] / "blobs"
    assert (str(blobs / BLOB), str(blobs / ("c" * 40))) == found.through


def test_links_out_of_what_is_mounted_are_broken_inside_though_the_node_follows_them(cache: Path, shell: str) -> None:
    found = look(shell, ModelPlace(str(cache), "/model", ((str(cache), "/model"),)))
    assert {"config.json", "model.safetensors"} == {link.path for link in found.bad_links}
    assert all(link.is_outside for link in found.bad_links)
    assert {f"/blobs/{BLOB}", f"/blobs/{'c' * 40}"} == {link.end for link in found.bad_links}
    assert () == found.files


def test_an_absolute_link_of_the_node_is_broken_inside(tmp_path: Path, shell: str) -> None:
    model = tmp_path / "tiny"
    shards(model, "a.safetensors", present=())
    (tmp_path / "real.safetensors").write_text("12345678")
    (model / "a.safetensors").symlink_to(tmp_path / "real.safetensors")
    found = look(shell, mounted(tmp_path, model))
    assert (BadLink("a.safetensors", str(tmp_path / "real.safetensors"), is_outside=True),) == found.bad_links
    assert () == found.missing


def test_an_absolute_link_of_the_container_is_good_though_the_node_cannot_follow_it(tmp_path: Path, shell: str) -> None:
    model = tmp_path / "tiny"
    shards(model, "a.safetensors", present=())
    (tmp_path / "real.safetensors").write_text("12345678")
    (model / "a.safetensors").symlink_to("/models/real.safetensors")
    found = look(shell, mounted(tmp_path, model))
    assert found.is_whole
    assert 8 == found.by_path["a.safetensors"].bytes
    assert (str(tmp_path / "real.safetensors"),) == found.through


def test_a_chain_that_leaves_the_mount_in_its_middle_is_broken(tmp_path: Path, shell: str) -> None:
    base, hub = tmp_path / "base", tmp_path / "hub"
    hub.mkdir()
    (hub / "blob").write_text("weights")
    model = base / "tiny"
    shards(model, "a.safetensors", present=())
    (base / "blob").symlink_to("../hub/blob")
    (model / "a.safetensors").symlink_to("../blob")
    found = look(shell, mounted(base, model))
    assert (BadLink("a.safetensors", "/hub/blob", is_outside=True),) == found.bad_links


def test_a_link_in_a_circle_is_broken_and_the_script_ends(tmp_path: Path, shell: str) -> None:
    model = tmp_path / "tiny"
    shards(model, "a.safetensors", present=())
    (model / "a.safetensors").symlink_to("a.safetensors")
    assert ["a.safetensors"] == [link.path for link in look(shell, mounted(tmp_path, model)).bad_links]


def test_a_model_reached_by_a_link_that_the_container_has_not_is_unseen(tmp_path: Path, shell: str) -> None:
    shards(tmp_path / "elsewhere" / "tiny", "a.safetensors")
    base = tmp_path / "base"
    base.mkdir()
    (base / "tiny").symlink_to(tmp_path / "elsewhere" / "tiny")
    found = look(shell, mounted(base, base / "tiny"))
    assert "unseen" == found.there
    assert (BadLink("", str(tmp_path / "elsewhere" / "tiny"), is_outside=True),) == found.bad_links


def test_a_mounted_folder_that_is_itself_a_link_is_what_it_leads_to(tmp_path: Path, shell: str) -> None:
    shards(tmp_path / "elsewhere" / "tiny", "a.safetensors")
    (tmp_path / "base").symlink_to(tmp_path / "elsewhere")
    found = look(shell, mounted(tmp_path / "base", tmp_path / "base" / "tiny"))
    assert found.is_whole
    assert str(tmp_path / "elsewhere") == found.base


def test_what_is_not_there_is_absent(tmp_path: Path, shell: str) -> None:
    assert "absent" == look(shell, mounted(tmp_path, tmp_path / "nothing")).there


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_what_the_login_may_not_look_into_is_unknown(tmp_path: Path, shell: str) -> None:
    closed = tmp_path / "closed"
    shards(closed / "tiny", "a.safetensors")
    closed.chmod(0o000)
    try:
        assert "unknown" == look(shell, mounted(tmp_path, closed / "tiny")).there
    finally:
        closed.chmod(0o755)


def test_a_single_file_is_told_under_its_own_name_also_behind_a_link(cache: Path, tmp_path: Path, shell: str) -> None:
    found = look(shell, mounted(tmp_path, cache / "model.safetensors"))
    assert "file" == found.there
    assert [("model.safetensors", 7)] == [(item.path, item.bytes) for item in found.files]
    assert found.is_whole


def test_the_parts_of_a_split_file_belong_to_it(tmp_path: Path, shell: str) -> None:
    for number in (1, 3):
        (tmp_path / f"big-0000{number}-of-00003.gguf").write_text("1")
    (tmp_path / "other.gguf").write_text("1")
    found = look(shell, mounted(tmp_path, tmp_path / "big-00001-of-00003.gguf"))
    assert {"big-00001-of-00003.gguf", "big-00003-of-00003.gguf"} == set(found.by_path)
    assert ("big-00002-of-00003.gguf",) == found.missing


def test_downloads_that_did_not_end_are_counted(cache: Path, tmp_path: Path, shell: str) -> None:
    (cache.parents[1] / "blobs" / f"{BLOB}.incomplete").write_text("")
    assert 1 == look(shell, mounted(tmp_path, cache)).incomplete


def test_a_download_into_a_folder_says_its_revision(tmp_path: Path, shell: str) -> None:
    model = tmp_path / "tiny"
    shards(model, "a.safetensors")
    (model / ".cache" / "huggingface" / "download").mkdir(parents=True)
    (model / ".cache" / "huggingface" / "download" / "config.json.metadata").write_text(f"{REVISION}\nabc\n1.0\n")
    found = look(shell, mounted(tmp_path, model))
    assert REVISION == found.revision
    assert 3 == len(found.files)


def test_checksums_are_told_of_small_files_that_are_asked_for(tmp_path: Path, shell: str) -> None:
    model = tmp_path / "tiny"
    shards(model, "a.safetensors")
    with (model / "big.bin").open("wb") as big:
        big.truncate(17 * 2**20)
    found = look(shell, mounted(tmp_path, model), "config.json", "big.bin", "nothing.json")
    expected = hashlib.sha256((model / "config.json").read_bytes()).hexdigest()
    assert {"config.json": f"sha256:{expected}"} == {item.path: item.digest for item in found.files if item.digest}


def test_names_with_blanks_and_quotes_are_taken_as_they_are(tmp_path: Path, shell: str) -> None:
    base = tmp_path / "a folder's $HOME"
    model = base / 'tiny "1"'
    shards(model, "a b.safetensors")
    found = look(shell, mounted(base, model))
    assert found.is_whole
    assert "a b.safetensors" in found.by_path


def test_an_output_that_was_cut_off_is_no_answer() -> None:
    assert model_script.parse("@@fleet begin\n@@fleet files\n", ModelPlace("/m", "/m")) is None


# reading to the last byte


def safetensors(path: Path, *, cut: int = 0) -> int:
    header = json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "b": {"data_offsets": [8, 40]}})
    data = len(header).to_bytes(8, "little") + header.encode() + bytes(40)
    path.write_bytes(data[: len(data) - cut])
    return len(data)


def proof(shell: str, folder: Path, file: str, how: str) -> dict[str, str]:
    argv = [shell, "-s", "--", str(folder), file, how]
    done = subprocess.run(argv, input=PROVE, capture_output=True, text=True, timeout=20, check=False)
    return dict(line.split()[:2] for line in done.stdout.splitlines())


def test_a_safetensors_file_says_how_long_it_is(tmp_path: Path, shell: str) -> None:
    whole = safetensors(tmp_path / "a.safetensors", cut=5)
    assert {"bytes": str(whole - 5), "needs": str(whole)} == proof(shell, tmp_path, "a.safetensors", "size")


@pytest.mark.parametrize("content", [b"", b"\0" * 64, b"\xff" * 64, b"<html>not found</html>"])
def test_a_safetensors_file_that_begins_otherwise_is_told(tmp_path: Path, shell: str, content: bytes) -> None:
    (tmp_path / "a.safetensors").write_bytes(content)
    assert {"bytes": str(len(content)), "junk": "1"} == proof(shell, tmp_path, "a.safetensors", "size")


def test_a_file_is_hashed_where_that_is_asked(tmp_path: Path, shell: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    expected = {"bytes": "2", "sum": hashlib.sha256(b"{}").hexdigest()}
    assert expected == proof(shell, tmp_path, "config.json", "hash")
    assert {} == proof(shell, tmp_path, "nothing.json", "hash")
