"""Secrets are resolved whole, or not at all, once a run: a message has the reference and never the value."""

import asyncio
import os
import time
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.core.desired import ContainerSpec, SecretRef
from reconciler.core.secret_marks import NO_MARKS
from reconciler.execution import secret_sources
from reconciler.execution.secret_key import made_key, read_key
from reconciler.execution.secrets import SecretError, Secrets
from tests.unit.core.build import spec


def wanting(*references: str) -> ContainerSpec:
    return replace(spec("a"), env=tuple((f"T{number}", SecretRef(text)) for number, text in enumerate(references)))


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def value(reference: str) -> str:
    found: str = run(Secrets().values(wanting(reference)))[reference]
    return found


def refused(reference: str) -> SecretError:
    with pytest.raises(SecretError) as caught:
        value(reference)
    return caught.value


def program(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_file_is_taken_without_its_last_line_end(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(b"one\r\ntwo\n\n")
    assert "one\r\ntwo\n" == value(f"file:{path}")


def test_a_variable_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "é with\nlines\n")
    assert "é with\nlines\n" == value("env:TOKEN")


def test_what_a_command_says_is_taken_without_its_last_line_end() -> None:
    assert "a  'b'\n" == value("command:printf '%s\\n\\n' \"a  'b'\"")


def test_a_command_has_no_shell_no_input_and_no_terminal() -> None:
    assert "$HOME|*" == value("command:printf %s $HOME|*")
    assert "0" == value("command:sh -c 'cat | wc -c'")
    assert "none" == value("command:sh -c '(: </dev/tty) 2>/dev/null || echo none'")


def test_a_command_that_fails_tells_its_exit_code_and_nothing_it_said() -> None:
    error = refused("command:sh -c 'echo hush; echo hush-hush >&2; exit 3'")
    assert "sh ended with exit code 3" == error.reason
    assert error.hint.startswith("run it by hand to see why: sh -c")
    assert "sh was killed by signal 9" == refused("command:sh -c 'kill -9 $$'").reason


def test_a_command_that_says_nothing_or_is_not_there_is_told() -> None:
    assert "is empty" == refused("command:true").reason
    assert "no-such-program cannot be run: no such file or directory" == refused("command:no-such-program").reason


def is_running(marker: str) -> bool:
    commands = (path / "cmdline" for path in Path("/proc").iterdir() if path.name.isdigit())
    return any(marker.encode() in _content(path) for path in commands)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def gone(marker: str) -> bool:
    for _ in range(100):
        if not is_running(marker):
            return True
        time.sleep(0.05)
    return False


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_sources, "COMMAND_S", 0.5)
    marker = f"300.{os.getpid()}1"
    assert "did not end within 0.5 s and was ended" == refused(f"command:sh -c 'sleep {marker} & wait'").reason
    assert gone(marker)


def test_a_command_ends_with_whoever_waits_for_it() -> None:
    marker = f"300.{os.getpid()}2"

    async def interrupted() -> None:
        task = asyncio.create_task(Secrets().values(wanting(f"command:sh -c 'sleep {marker} & wait'")))
        while not is_running(marker):
            await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.wait([task])

    run(interrupted())
    assert gone(marker)


def test_a_command_that_never_stops_talking_is_ended() -> None:
    assert "is larger than 120 KiB, which no variable can be" == refused("command:yes").reason


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"hush\0hush", "holds a NUL character, which no variable of a container can"),
        (b"hush\xff", "not UTF-8 text"),
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"hush" * 40_000, "is larger than 120 KiB, which no variable can be"),
    ],
)
def test_what_no_variable_of_a_container_can_hold_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    error = refused(f"file:{path}")
    assert reason == error.reason
    assert "hush" not in str(error)


def test_a_variable_that_is_no_text_or_empty_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hush\udcff")
    assert "not UTF-8 text" == refused("env:TOKEN").reason
    monkeypatch.setenv("TOKEN", "")
    assert "is empty" == refused("env:TOKEN").reason
    monkeypatch.delenv("TOKEN")
    error = refused("env:TOKEN")
    assert str(error).startswith("secret env:TOKEN: the variable is not set here (export it where fleet runs")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    assert "no such file or directory" == refused(f"file:{tmp_path}/none").reason
    assert "is a directory" == refused(f"file:{tmp_path}").reason


def test_a_file_whose_storage_is_away_has_a_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_sources, "FILE_S", 0.2)
    os.mkfifo(tmp_path / "pipe")
    assert "is not read within 0.2 s" == refused(f"file:{tmp_path}/pipe").reason


SOPS = """[ "$*" = '--decrypt --extract ["hf"]["tokens"][1] {file}' ] || exit 99
printf poison-1234"""


def test_a_key_of_a_sops_file_is_extracted_by_sops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secrets.yaml"
    file.write_text("sops: {}")
    program(tmp_path, "sops", SOPS.format(file=file))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert "poison-1234" == value(f"sops:{file}#hf.tokens.1")
    error = refused(f"sops:{file}#hf.other")
    assert "sops ended with exit code 99" == error.reason
    assert f'sops --decrypt --extract \'["hf"]["other"]\' {file}' in error.hint
    assert "there is no such file" == refused(f"sops:{tmp_path}/none.yaml#a").reason


def test_without_a_sops_program_the_next_step_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    error = refused("sops:/etc/secrets.yaml#a")
    assert ("there is no sops program here", "install it, or use file: or command:") == (error.reason, error.hint)


def test_each_reference_is_resolved_once_a_run_whoever_asks(tmp_path: Path) -> None:
    count = tmp_path / "count"
    reference = f"command:sh -c 'echo x >>{count}; echo token'"
    failing = f"command:sh -c 'echo x >>{count}; exit 1'"

    async def twice() -> None:
        secrets = Secrets()
        await asyncio.gather(*(secrets.values(wanting(reference, reference)) for _ in range(3)))
        await asyncio.gather(*(secrets.values(wanting(failing)) for _ in range(3)), return_exceptions=True)

    run(twice())
    assert "x\nx\n" == count.read_text()


def test_one_who_stops_waiting_takes_nothing_from_the_others() -> None:
    async def one_leaves() -> Any:
        secrets = Secrets()
        reference = "command:sh -c 'sleep 0.3; echo token'"
        first, second = (asyncio.create_task(secrets.values(wanting(reference))) for _ in range(2))
        await asyncio.sleep(0.1)
        first.cancel()
        return await second

    assert ["token"] == list(run(one_leaves()).values())


def test_what_was_resolved_is_known_in_another_loop(tmp_path: Path) -> None:
    secrets = Secrets()
    path = tmp_path / "token"
    path.write_text("before")
    before = run(secrets.values(wanting(f"file:{path}")))
    path.write_text("after")
    assert before == run(secrets.values(wanting(f"file:{path}")))


def test_values_show_in_no_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "poison-1234")

    async def resolved() -> str:
        secrets = Secrets()
        await secrets.values(wanting("env:TOKEN"))
        return f"{secrets!r} {vars(secrets)!r}"

    assert "poison-1234" not in run(resolved())


def test_the_label_tells_of_what_plans_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "poison-1234")
    both = wanting("env:TOKEN", "command:echo x")
    values, label = run(Secrets().handed(both))
    assert {"env:TOKEN": "poison-1234", "command:echo x": "x"} == values
    assert {"fleet.secrets": f"{read_key().id} T0={read_key().mark('env:TOKEN', 'poison-1234')}"} == label


def test_without_such_a_secret_no_key_is_made(own_secret_key: Path) -> None:
    assert {} == run(Secrets().label(wanting("command:echo x")))
    assert {} == run(Secrets().label(wanting()))
    assert not own_secret_key.exists()


def test_without_a_place_for_a_key_a_container_is_made_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLEET_SECRET_KEY_FILE", str(tmp_path / "file" / "secret.key"))
    monkeypatch.setenv("TOKEN", "poison-1234")
    assert ({"env:TOKEN": "poison-1234"}, {}) == run(Secrets().handed(wanting("env:TOKEN")))


def test_what_is_seen_are_marks_and_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    key = made_key()
    monkeypatch.setenv("TOKEN", "poison-1234")
    monkeypatch.delenv("GONE", raising=False)
    asked = []

    def marked(key_id: str) -> list[str]:
        asked.append(key_id)
        return ["env:TOKEN", "env:GONE"]

    seen = run(Secrets().seen(marked))
    assert [key.id] == asked
    assert (key.id, (("env:TOKEN", key.mark("env:TOKEN", "poison-1234")),)) == (seen.marks.key, seen.marks.marks)
    assert (("env:GONE", "the variable is not set here"),) == seen.unknown
    assert "poison" not in repr(seen)


def test_without_a_key_nothing_is_resolved() -> None:
    seen = run(Secrets().seen(lambda key: pytest.fail("asked")))
    assert NO_MARKS == seen.marks
    assert "there is no key here" in seen.no_key


def test_values_that_this_run_knows_are_hidden(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOKEN", "poison-1234")
    (tmp_path / "key").write_text("other-secret\n")
    of = wanting("env:TOKEN", f"file:{tmp_path}/key", "command:echo third-secret")
    secrets = Secrets()
    hide = secrets.hider([of])
    text = "poison-1234 other-secret third-secret"
    assert "[redacted] other-secret third-secret" == hide(text)  # nothing is resolved for hiding
    run(secrets.values(of))
    assert "[redacted] [redacted] [redacted]" == hide(text)
