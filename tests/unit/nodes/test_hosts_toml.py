"""When a name is kept through `hosts.toml`, and what the file says."""

import subprocess

import pytest

from reconciler.nodes.hosts_toml import MARK, command, lines, may_keep_name


@pytest.mark.parametrize(
    ("store", "version", "may"),
    [
        ("containerd", "28.0.0", True),
        ("containerd", "28.5.2+dfsg1", True),
        ("containerd", "29.1.0-rc.1", True),
        ("containerd", "27.5.1", False),
        ("classic", "29.0.0", False),
        ("containerd", "", False),
        ("containerd", "dev", False),
    ],
)
def test_only_the_containerd_store_of_docker_28_reads_it(store: str, version: str, may: bool) -> None:
    assert may is may_keep_name(store, version)


def test_the_registry_itself_is_asked_for_what_is_not_there() -> None:
    wanted = [
        MARK,
        'server = "https://ghcr.io"',
        '[host."http://127.0.0.1:5917"]',
        '  capabilities = ["pull", "resolve"]',
    ]
    assert wanted == lines("ghcr.io", 5917)
    assert 'server = "https://registry-1.docker.io"' == lines("docker.io", 5917)[1]


def test_the_script_is_one_that_a_shell_reads() -> None:
    words = subprocess.run(["sh", "-n", "-c", command("ghcr.io", 5917)], check=False, capture_output=True, text=True)
    assert (0, "") == (words.returncode, words.stderr)
