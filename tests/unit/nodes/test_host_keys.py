"""Which keys are trusted, and what a refusal says."""

from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from reconciler.core.observed import UnknownKind
from reconciler.nodes import host_keys
from reconciler.nodes.errors import NodeUnknownError
from reconciler.nodes.targets import SshTarget

OURS, OTHER = (asyncssh.generate_private_key("ssh-ed25519").convert_to_public() for _ in range(2))
TARGET = SshTarget("n", "n.lan", port=2222)


def line(key: asyncssh.SSHKey) -> str:
    return key.export_public_key().decode().strip()


def with_file(tmp_path: Path, text: str) -> SshTarget:
    path = tmp_path / "known_hosts"
    path.write_text(text)
    return replace(TARGET, known_hosts=str(path))


@pytest.mark.parametrize("name", ["[n.lan]:2222", "n.lan", "[n.lan]:2222,[10.0.0.1]:2222", "[*.lan]:2222"])
def test_known_hosts_names_with_and_without_the_port(tmp_path: Path, name: str) -> None:
    """As OpenSSH does: a name without the port counts when there is none with it."""
    keys = host_keys.load(with_file(tmp_path, f"# note\n{name} {line(OURS)}\n"))
    assert keys.trusted == (OURS,)


def test_another_machine_or_port_is_not_trusted(tmp_path: Path) -> None:
    text = f"[n.lan]:2223 {line(OURS)}\nm.lan {line(OURS)}\n"
    assert host_keys.load(with_file(tmp_path, text)).trusted == ()


def test_no_file_trusts_nobody(tmp_path: Path) -> None:
    """And is not taken for "do not check", which is what an empty value means to asyncssh."""
    keys = host_keys.load(replace(TARGET, known_hosts=str(tmp_path / "none")))
    assert keys.for_asyncssh("n.lan", "", None) == ((), (), ())


def test_a_pinned_key_counts_alone(tmp_path: Path) -> None:
    target = replace(with_file(tmp_path, f"[n.lan]:2222 {line(OTHER)}\n"), host_key=line(OURS) + " a comment")
    assert host_keys.load(target).trusted == (OURS,)


@pytest.mark.parametrize(("known_hosts", "host_key"), [("n.lan what is this", None), ("", "ssh-ed25519 nonsense")])
def test_what_cannot_be_read_is_told(tmp_path: Path, known_hosts: str, host_key: str | None) -> None:
    target = replace(with_file(tmp_path, f"@strange {known_hosts}\n"), host_key=host_key)
    with pytest.raises(NodeUnknownError) as refused:
        host_keys.load(target)
    assert refused.value.fact.kind is UnknownKind.HOST_KEY_UNKNOWN


def test_an_unknown_key_says_the_lines_to_write() -> None:
    keys = host_keys.HostKeys(replace(TARGET, known_hosts="/x/known_hosts"), ())
    keys.refused = OURS
    fact = keys.refusal()
    assert fact.kind is UnknownKind.HOST_KEY_UNKNOWN
    assert OURS.get_fingerprint() in fact.reason
    assert f"[n.lan]:2222 {line(OURS)}" in fact.hint
    assert f'host_key: "{line(OURS)}"' in fact.hint
    assert "/x/known_hosts" in fact.hint


def test_a_changed_key_shows_both() -> None:
    keys = host_keys.HostKeys(TARGET, (OURS,))
    keys.refused = OTHER
    fact = keys.refusal()
    assert fact.kind is UnknownKind.HOST_KEY_CHANGED
    assert OURS.get_fingerprint() in fact.reason
    assert OTHER.get_fingerprint() in fact.reason


def test_the_known_key_type_is_asked_for_first() -> None:
    """A server with several keys then shows the one that is known."""
    ecdsa = asyncssh.generate_private_key("ecdsa-sha2-nistp256").convert_to_public()
    first, *others = host_keys.HostKeys(TARGET, (ecdsa,)).algorithms
    assert first == "ecdsa-sha2-nistp256"
    assert "ssh-ed25519" in others
