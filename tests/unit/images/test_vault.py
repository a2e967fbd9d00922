"""The vault: a blob has its name only when it is whole, proved and safe; what is there of others waits."""

import errno
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.images.vault import Vault, default_vault
from tests.unit.images.taps import digest_of, noise

DATA = noise(300_000)
DIGEST = digest_of(DATA)


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "cache" / "vault")


def begun(vault: Vault, data: bytes) -> None:
    """Leave that much of the blob, as a process does that ends in the middle."""
    with vault.begin(DIGEST) as draft:
        draft.write(data)


def test_looking_makes_nothing(vault: Vault) -> None:
    assert (False, None, None, False) == (
        vault.has(DIGEST),
        vault.size(DIGEST),
        vault.open(DIGEST),
        vault.verify(DIGEST),
    )
    assert ([], [], {}, 0) == ([*vault.digests()], [*vault.parts()], vault.roots(), vault.remove(DIGEST))
    assert not vault.folder.exists()


def test_what_was_put_is_there_under_its_digest_for_nobody_else(vault: Vault) -> None:
    assert DIGEST == vault.put(DATA)
    assert DIGEST == vault.put(DATA)
    assert (True, len(DATA), DATA) == (vault.has(DIGEST), vault.size(DIGEST), vault.read(DIGEST))
    assert vault.folder / "blobs/sha256" / DIGEST[7:] == vault.path(DIGEST)
    assert '{"imageLayoutVersion":"1.0.0"}' == (vault.folder / "oci-layout").read_text()
    modes = [
        stat.S_IMODE(path.stat().st_mode) for path in (vault.folder, vault.path(DIGEST).parent, vault.path(DIGEST))
    ]
    assert [0o700, 0o700, 0o600] == modes
    [(digest, size, at)] = vault.digests()
    assert (DIGEST, len(DATA)) == (digest, size)
    assert 60 > abs(time.time() - at)


def test_what_is_not_there_is_told(vault: Vault) -> None:
    with pytest.raises(SupplyError) as failed:
        vault.read(DIGEST)
    assert SupplyErrorKind.NOT_FOUND == failed.value.kind


@pytest.mark.parametrize("digest", ["sha512:" + "a" * 128, "sha256:../../x", "sha256:" + "A" * 64, ""])
def test_only_sha256_names_a_blob(vault: Vault, digest: str) -> None:
    with pytest.raises(SupplyError) as failed:
        vault.path(digest)
    assert SupplyErrorKind.REFUSED == failed.value.kind


def test_a_part_waits_for_the_next_run(vault: Vault) -> None:
    begun(vault, DATA[:1000])
    assert ([], [(DIGEST, 1000)]) == ([*vault.digests()], [(digest, size) for digest, size, _ in vault.parts()])
    assert not vault.has(DIGEST)
    with Vault(vault.folder).begin(DIGEST) as draft:
        assert (1000, False) == (draft.offset, draft.whole)
        draft.write(DATA[1000:])
        draft.check()
        draft.keep()
    assert DATA == vault.read(DIGEST)
    assert [] == [*vault.parts()]


def test_a_part_that_does_not_become_the_blob_is_dropped(vault: Vault) -> None:
    begun(vault, b"x" * 1000 + DATA[1000:])
    with pytest.raises(SupplyError) as failed, vault.begin(DIGEST) as draft:
        draft.check()
    assert SupplyErrorKind.DAMAGED == failed.value.kind
    assert ([], []) == ([*vault.digests()], [*vault.parts()])


def test_a_document_does_not_build_on_a_part(vault: Vault) -> None:
    begun(vault, b"x" * 1000)
    vault.put(DATA)
    assert DATA == vault.read(DIGEST)


def test_a_flipped_bit_is_found_and_the_blob_is_gone(vault: Vault) -> None:
    vault.put(DATA)
    assert vault.verify(DIGEST)
    with vault.path(DIGEST).open("r+b") as file:
        file.seek(1234)
        file.write(bytes([DATA[1234] ^ 1]))
    assert not vault.verify(DIGEST)
    assert not vault.has(DIGEST)


def test_reading_finds_a_flipped_bit_as_well(vault: Vault) -> None:
    vault.put(DATA)
    vault.path(DIGEST).write_bytes(DATA[:-1] + b"!")
    with pytest.raises(SupplyError) as failed:
        vault.read(DIGEST)
    assert SupplyErrorKind.DAMAGED == failed.value.kind
    assert not vault.has(DIGEST)


def test_the_second_writer_waits_and_finds_it_made(vault: Vault) -> None:
    found: list[tuple[bool, int]] = []

    def second() -> None:
        with Vault(vault.folder).begin(DIGEST) as draft:
            found.append((draft.whole, draft.offset))

    with vault.begin(DIGEST) as draft:
        waiting = threading.Thread(target=second)
        waiting.start()
        draft.write(DATA)
        draft.check()
        assert [] == found
        draft.keep()
    waiting.join(20)
    assert [(True, len(DATA))] == found
    assert [] == [*vault.parts()]


def test_the_second_writer_goes_on_where_the_first_gave_up(vault: Vault) -> None:
    offsets: list[int] = []

    def second() -> None:
        with Vault(vault.folder).begin(DIGEST) as draft:
            offsets.append(draft.offset)

    with vault.begin(DIGEST) as draft:
        waiting = threading.Thread(target=second)
        waiting.start()
        draft.write(DATA[:5000])
    waiting.join(20)
    assert [5000] == offsets


WRITER = """
import sys
from pathlib import Path
from reconciler.images.vault import Vault
from tests.unit.images.taps import digest_of, noise

data = noise(3_000_000)
with Vault(Path(sys.argv[1])).begin(digest_of(data)) as draft:
    wrote = not draft.whole
    while draft.offset < len(data):
        draft.write(data[draft.offset : draft.offset + 10_000])
    draft.check()
    draft.keep()
print("wrote" if wrote else "found")
"""


def test_of_several_processes_one_writes(vault: Vault) -> None:
    argv = [sys.executable, "-c", WRITER, str(vault.folder)]
    root = Path(__file__).parents[3]
    running = [subprocess.Popen(argv, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert ["found", "found", "wrote"] == sorted(process.communicate(timeout=60)[0].strip() for process in running)
    assert [3_000_000] == [size for _, size, _ in vault.digests()]


def test_a_writer_that_is_killed_leaves_a_part_and_no_lock(vault: Vault) -> None:
    program = WRITER.replace(
        "    draft.check()", "    print('written', flush=True)\n    sys.stdin.read()\n    draft.check()"
    )
    argv = [sys.executable, "-c", program, str(vault.folder)]
    process = subprocess.Popen(
        argv, cwd=Path(__file__).parents[3], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert "written\n" == process.stdout.readline()
        process.kill()
    [(digest, size, _)] = vault.parts()
    with vault.begin(digest) as draft:
        assert (3_000_000, False) == (size, draft.whole)
        draft.check()
        draft.keep()
    assert vault.verify(digest)


def test_a_full_disk_is_told_with_what_can_be_done(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, data: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(SupplyError) as failed:
        vault.put(DATA)
    assert SupplyErrorKind.NO_SPACE == failed.value.kind
    assert "images.vault" in failed.value.hint


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    vault = Vault(tmp_path / "file" / "vault")
    for use in (lambda: vault.put(DATA), lambda: vault.has(DIGEST), lambda: vault.keep("lab", DIGEST)):
        with pytest.raises(SupplyError) as failed:
            use()
        assert SupplyErrorKind.REFUSED == failed.value.kind
        assert str(vault.folder) in failed.value.message


def test_marks_say_who_needs_what(vault: Vault) -> None:
    other = digest_of(b"other")
    for owner, top in (("lab", DIGEST), ("lab", DIGEST), ("lab", other), ("a/b.c d", DIGEST), ("..", DIGEST)):
        vault.keep(owner, top)
    vault.release("lab", other)
    vault.release("lab", other)
    assert {"lab": {DIGEST}, "a/b.c d": {DIGEST}, "..": {DIGEST}} == vault.roots()
    assert {vault.folder} == set(vault.folder.parent.iterdir())


def test_removing_says_what_it_frees(vault: Vault) -> None:
    vault.put(DATA)
    assert (len(DATA), 0) == (vault.remove(DIGEST), vault.remove(DIGEST))
    begun(vault, DATA[:1000])
    assert 1000 == vault.remove(DIGEST)
    assert [] == [*vault.parts()]


def test_what_is_being_written_is_not_removed(vault: Vault) -> None:
    with vault.begin(DIGEST) as draft:
        draft.write(DATA)
        assert 0 == vault.remove(DIGEST)
        draft.check()
        draft.keep()
    assert DATA == vault.read(DIGEST)


def test_what_is_removed_can_still_be_read_by_who_reads_it(vault: Vault) -> None:
    vault.put(DATA)
    file = vault.open(DIGEST)
    assert file is not None
    with file:
        vault.remove(DIGEST)
        assert DATA == file.read()


@pytest.mark.parametrize(
    ("path", "environment"),
    [
        ("/big/vault", {"FLEET_VAULT": "/big/vault", "XDG_CACHE_HOME": "/cache", "HOME": "/home/ops"}),
        ("/home/ops/v", {"FLEET_VAULT": "~/v", "HOME": "/home/ops"}),
        ("/cache/fleet/vault", {"XDG_CACHE_HOME": "/cache", "HOME": "/home/ops"}),
        ("/home/ops/.cache/fleet/vault", {"XDG_CACHE_HOME": "relative", "HOME": "/home/ops"}),
        ("/home/ops/.cache/fleet/vault", {"XDG_CACHE_HOME": "", "HOME": "/home/ops"}),
    ],
)
def test_the_default_folder(monkeypatch: pytest.MonkeyPatch, path: str, environment: dict[str, str]) -> None:
    monkeypatch.delenv("FLEET_VAULT", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Path(path) == default_vault()


def test_the_default_folder_without_any_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """cron has no HOME: the passwd entry counts; a bare container may have neither."""
    for name in ("FLEET_VAULT", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert default_vault().is_absolute()
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(SupplyError) as failed:
        default_vault()
    assert "FLEET_VAULT" in failed.value.hint
