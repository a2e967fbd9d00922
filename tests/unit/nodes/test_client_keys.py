"""The controller's keys: read once, and again when a file changed."""

from pathlib import Path

import asyncssh
import pytest

from reconciler.nodes.client_keys import key_pairs


def written(path: Path) -> bytes:
    """A new key in this file; its public half."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    path.unlink(missing_ok=True)
    key.write_private_key(path)
    return key.public_data


def test_a_key_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "id"
    for _ in range(2):
        public = written(path)
        assert [public] == [pair.public_data for pair in key_pairs([str(path)])]


def test_a_certificate_that_comes_later_is_used(tmp_path: Path) -> None:
    path = tmp_path / "id"
    written(path)
    assert [b"ssh-ed25519"] == [pair.algorithm for pair in key_pairs([str(path)])]
    authority = asyncssh.generate_private_key("ssh-ed25519")
    certificate = authority.generate_user_certificate(asyncssh.read_private_key(path), "ops", principals=["root"])
    certificate.write_certificate(f"{path}-cert.pub")
    kinds = [pair.algorithm for pair in key_pairs([str(path)])]
    assert {b"ssh-ed25519", b"ssh-ed25519-cert-v01@openssh.com"} == set(kinds)


def test_what_one_connection_notes_in_a_key_another_does_not_see(tmp_path: Path) -> None:
    path = tmp_path / "id"
    asyncssh.generate_private_key("ssh-rsa", key_size=1024).write_private_key(path)
    (one,), (other,) = key_pairs([str(path)]), key_pairs([str(path)])
    before = other.sig_algorithm
    one.set_sig_algorithm(b"rsa-sha2-256" if before != b"rsa-sha2-256" else b"rsa-sha2-512")
    assert before == other.sig_algorithm


def test_a_key_with_a_passphrase_is_left_to_the_agent(tmp_path: Path) -> None:
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(tmp_path / "id", "pkcs8-pem", passphrase="secret")
    assert [] == key_pairs([str(tmp_path / "id")])


def test_a_file_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        key_pairs([str(tmp_path / "id")])
