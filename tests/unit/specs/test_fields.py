"""The kinds of text: what each takes and what each refuses."""

import base64
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from specs import fields, paths


def _key(kind: str) -> str:
    return base64.b64encode(len(kind).to_bytes(4) + kind.encode() + b"\0" * 36).decode()


KEY = f"ssh-ed25519 {_key('ssh-ed25519')}"

ACCEPTED: list[tuple[str, Any, str, str]] = [
    ("Name", fields.Name, "dgx-1.a_b", "dgx-1.a_b"),
    ("Name of 63", fields.Name, "a" * 63, "a" * 63),
    ("EnvName", fields.EnvName, "_NCCL_IB2", "_NCCL_IB2"),
    ("ArgName", fields.ArgName, "max-num-seqs", "max-num-seqs"),
    ("Host", fields.Host, "dgx1.lan", "dgx1.lan"),
    ("Host v6", fields.Host, "fe80::1%eth0", "fe80::1%eth0"),
    ("ProxyJump", fields.ProxyJump, "ops@gate.lan:2222", "ops@gate.lan:2222"),
    ("ProxyJump v6", fields.ProxyJump, "[::1]:22", "[::1]:22"),
    ("RegistryHost", fields.RegistryHost, "127.0.0.1:5000", "127.0.0.1:5000"),
    ("Platform", fields.Platform, "linux/arm64/v8", "linux/arm64/v8"),
    ("KernelInterface", fields.KernelInterface, "enp1s0f0np0", "enp1s0f0np0"),
    ("Hca", fields.Hca, "rocep1s0f0:1,roceP2p1s0f0", "rocep1s0f0:1,roceP2p1s0f0"),
    ("Device", fields.Device, "/dev/infiniband", "/dev/infiniband"),
    ("Device in the container", fields.Device, "/dev/a:/dev/b:rwm", "/dev/a:/dev/b:rwm"),
    ("NodePath", paths.NodePath, "{paths.models}/x", "{paths.models}/x"),
    ("AbsolutePath", paths.AbsolutePath, "/a..b/c", "/a..b/c"),
    ("RelativePath", paths.RelativePath, "config.json", "config.json"),
    ("Address is made canonical", fields.Address, "2001:DB8::0:1", "2001:db8::1"),
    ("Endpoint", fields.Endpoint, "http://127.0.0.1:5000/", "http://127.0.0.1:5000"),
    ("HostKey loses its comment", fields.HostKey, f"{KEY} root@dgx1", KEY),
    ("SecretReference env", fields.SecretReference, "env:HF_TOKEN", "env:HF_TOKEN"),
    ("SecretReference file", fields.SecretReference, "file:/run/token", "file:/run/token"),
    ("Sha256", fields.Sha256, "sha256:" + "0a" * 32, "sha256:" + "0a" * 32),
]

REFUSED: list[tuple[Any, list[str]]] = [
    (fields.Name, ["", "A", "-a", ".a", "a b", "a/b", "a" * 64, "a\n", "ä"]),
    (fields.EnvName, ["", "1A", "A-B", "A=B", "A\n"]),
    (fields.ArgName, ["", "--x", "-x", "a b", "a=b"]),
    (fields.Host, ["", "-oProxyCommand=x", "a b", "a/b", "user@host", "a\n"]),
    (fields.User, ["", "-l", "a b", "a@b"]),
    (fields.ProxyJump, ["", "-x", "a@", "a:b", "a b", "a@b@c"]),
    (fields.RegistryHost, ["", "https://ghcr.io", "ghcr.io/", "a:b"]),
    (fields.Platform, ["linux", "linux/", "Linux/arm64", "linux/arm64/v8/x", "a b/c"]),
    (fields.KernelInterface, ["", "a b", "a/b", "a" * 16, "-a"]),
    (fields.Hca, ["", "a b", "a,,b", "a:x"]),
    (fields.Device, ["", "dev/x", "/dev/a:b c", "nvidia.com/gpu", "nvidia.com/gpu=all"]),
    (paths.NodePath, ["", "x", "{paths.Models}/x", "{path.models}", "/a/{x}", "/a/../b", "{paths.models}/..", "~/x"]),
    (paths.AbsolutePath, ["", "x", "/../x", "~"]),
    (paths.RelativePath, ["", "/x", "../x", "a/../b"]),
    (fields.Address, ["", "10.0.0.1/24", "10.0.0.256", "host", "10.0.0.01"]),
    (
        fields.Endpoint,
        ["", "ghcr.io", "ftp://x", "http://", "http://u:p@x", "http://x?a", "http://x:99999", "http://[x"],
    ),
    (fields.HostKey, ["", "SHA256:abc", "ssh-ed25519", "ssh-ed25519 AAAA", "ssh-ed25519 a!", "ssh-dss AAAA"]),
    (fields.HostKey, [f"ssh-rsa {_key('ssh-ed25519')}", "-----BEGIN OPENSSH PRIVATE KEY-----"]),
    (fields.SecretReference, ["", "hf_abcdef", "env:", "env:1", "file:x", "file:", "env:A B", "ENV:A"]),
    (fields.Sha256, ["", "0a" * 32, "sha256:12", "sha256:" + "0A" * 32]),
]


@pytest.mark.parametrize(("kind", "text", "expected"), [row[1:] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_well_formed_text_is_accepted(kind: Any, text: str, expected: str) -> None:
    assert expected == TypeAdapter(kind).validate_python(text)


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in REFUSED for text in texts])
def test_malformed_text_is_refused(kind: Any, text: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [(fields.SecretReference, "hf_s3cr3t"), (fields.Endpoint, "http://u:hf_s3cr3t@x"), (fields.HostKey, "hf_s3cr3t x")],
)
def test_what_may_be_a_secret_is_never_repeated(kind: Any, text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind, config={"hide_input_in_errors": True}).validate_python(text)
    assert "s3cr3t" not in str(caught.value)


def test_placeholders_are_found_in_order() -> None:
    assert ("models", "cache.2") == paths.placeholders("{paths.models}/a/{paths.cache.2}/{x}")
