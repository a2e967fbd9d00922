"""Ways in, from the spec and by default."""

import os
import pwd

import pytest

from reconciler.nodes.targets import SshTarget, local_user, silent, split_port


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jump.lan", ("jump.lan", None)),
        ("jump.lan:2222", ("jump.lan", 2222)),
        ("10.0.0.1:22", ("10.0.0.1", 22)),
        ("fe80::1", ("fe80::1", None)),
        ("[fe80::1]:2222", ("fe80::1", 2222)),
        ("[fe80::1]", ("fe80::1", None)),
    ],
)
def test_a_port_is_told_from_an_address(text: str, expected: tuple[str, int | None]) -> None:
    assert split_port(text) == expected


def test_a_jump_host_is_a_target_with_the_same_keys() -> None:
    target = SshTarget("n", "n.lan", user="ops", identity_file="/k", known_hosts="/h", proxy_jump="me@jump:2200")
    jump = target.jump
    assert jump is not None
    assert (jump.host, jump.port, jump.user, jump.identity_file, jump.known_hosts) == ("jump", 2200, "me", "/k", "/h")
    assert jump.jump is None
    assert SshTarget("n", "n.lan", user="ops", proxy_jump="jump").jump == SshTarget(
        "n (jump host jump)", "jump", user="ops"
    )


@pytest.mark.parametrize(
    ("target", "address", "command"),
    [
        (SshTarget("n", "n.lan", user="ops"), "n.lan:22", "ssh ops@n.lan"),
        (SshTarget("n", "fe80::1", 2222, user="ops"), "[fe80::1]:2222", "ssh -p 2222 ops@fe80::1"),
        (SshTarget("n", "n.lan", user="ops", proxy_jump="me@jump:2200"), "n.lan:22", "ssh -J me@jump:2200 ops@n.lan"),
    ],
)
def test_a_silent_node_is_named_with_the_command_to_try(target: SshTarget, address: str, command: str) -> None:
    fact = silent(target, 9.5)
    assert fact.reason == f"{address} did not answer within 9.5 s"
    assert fact.hint == f"is the machine on, and the network between up? Try `{command}`"


def test_the_user_is_known_without_any_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cron sets next to nothing; a bare container has no passwd entry either."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert local_user() == pwd.getpwuid(os.getuid()).pw_name

    def nobody(_: int) -> pwd.struct_passwd:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert local_user() == f"uid{os.getuid()}"
    assert str(SshTarget("n", "n.lan").known_hosts_path) == "~/.ssh/known_hosts"
