"""Hooks as the controller really calls them: programs of their own, and web hooks."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from reconciler.core.hooks import HookCall, HookError
from reconciler.nodes.hooks import SAID_BYTES, ControllerHooks

TEXT = '{"kind": "hook.before_cut"}\n'


def call(*command: str, timeout_s: float = 10.0, url: str = "", **given: str) -> str:
    made = HookCall("before_cut[0]", timeout_s, TEXT, command, "/", url, given)
    return asyncio.run(ControllerHooks().call(made))


def sh(script: str, timeout_s: float = 10.0, **given: str) -> str:
    return call("/bin/sh", "-c", script, timeout_s=timeout_s, **given)


def test_a_program_gets_the_event_and_a_clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "tr0ub4dor-and-3")
    said = sh("cat; pwd; env", FLEET_LANE="pair").splitlines()
    assert [TEXT.strip(), "/"] == said[:2]
    names = {line.partition("=")[0] for line in said[2:]}
    assert {"PATH", "FLEET_LANE"} <= names
    assert set() == names & {"HF_TOKEN", "FLEET_FILE", "SSH_AUTH_SOCK"}


def test_a_program_need_not_read_what_it_is_told() -> None:
    made = HookCall("x", 10.0, "x" * 1_000_000, ("/bin/echo", "fine"), "/")
    assert "fine" == asyncio.run(ControllerHooks().call(made))


def test_the_end_of_what_it_says_is_kept() -> None:
    said = sh("seq 1 100000")
    assert SAID_BYTES >= len(said)
    assert said.endswith("\n100000")


def test_what_is_cut_off_is_cut_at_a_line() -> None:
    """Half of a secret would be found by nobody who takes secrets out."""
    assert "short" == sh(f"head -c {SAID_BYTES - 3} /dev/zero | tr '\\0' x; echo; echo short")
    assert "" == sh(f"head -c {2 * SAID_BYTES} /dev/zero | tr '\\0' x")


def test_one_that_left_its_group_with_the_output_open_leaves_nothing_open(tmp_path: Path) -> None:
    program = tmp_path / "leave.py"
    program.write_text(
        "import asyncio\nfrom reconciler.core.hooks import HookCall\n"
        "from reconciler.nodes.hooks import ControllerHooks\n"
        "made = HookCall('x', 5.0, 'x' * 10**6, ('/bin/sh', '-c', 'setsid sleep 3 & echo hi'), '/')\n"
        "print(asyncio.run(ControllerHooks().call(made)))\n"
    )
    done = subprocess.run([sys.executable, "-X", "dev", program], capture_output=True, text=True, check=True)
    assert ("hi\n", "") == (done.stdout, done.stderr)


FAILING = {
    "echo too many sessions; exit 3": "exit code 3: too many sessions",
    "echo no >&2; exit 1": "exit code 1: no",
    "kill -9 $$": "it was ended by signal 9",
}


@pytest.mark.parametrize("script", FAILING)
def test_a_program_that_fails_says_why(script: str) -> None:
    with pytest.raises(HookError) as caught:
        sh(script)
    assert FAILING[script] == str(caught.value)


def test_a_program_that_is_not_there_fails() -> None:
    with pytest.raises(HookError, match="/no/such/drain cannot be run: no such file or directory"):
        call("/no/such/drain")


def alive(pid: int) -> bool:
    """A zombie is none: whoever it was left to has not looked yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(file: Path) -> bool:
    pid = int(file.read_text())
    for _ in range(100):
        if not alive(pid):
            return True
        time.sleep(0.02)
    return False


def test_one_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(HookError, match=r"it did not end within 0\.3 s and was killed: begun"):
        sh(f"echo begun; sleep 60 & echo $! > {tmp_path}/pid; wait", timeout_s=0.3)
    assert gone(tmp_path / "pid")


def test_an_interrupt_ends_it_at_once_with_its_children(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; wait"

    async def interrupted() -> None:
        made = HookCall("x", 60.0, TEXT, ("/bin/sh", "-c", script), "/", given={"PATH": os.environ["PATH"]})
        task = asyncio.create_task(ControllerHooks().call(made))
        while not (tmp_path / "pid").exists():
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(interrupted())
    assert gone(tmp_path / "pid")


def test_what_it_leaves_in_the_background_ends_with_it(tmp_path: Path) -> None:
    assert "fine" == sh(f"sleep 60 & echo $! > {tmp_path}/pid; echo fine")
    assert gone(tmp_path / "pid")


class _Answers(BaseHTTPRequestHandler):
    seen: list[tuple[str, str | None, str | None, object]] = []  # noqa: RUF012 - one server a test

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, self.headers["Content-Type"], self.headers["Authorization"], json.loads(body)))
        self.send_response(int(self.path.rpartition("/")[2]))
        self.end_headers()
        self.wfile.write(b"drained" if self.path == "/200" else b"no")

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    _Answers.seen.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as httpd:
        Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()


def test_a_web_hook_gets_the_event_as_a_post(server: str) -> None:
    assert "drained" == call(url=f"{server}/200", Authorization="Bearer x")
    assert [("/200", "application/json", "Bearer x", json.loads(TEXT))] == _Answers.seen


@pytest.mark.parametrize(("path", "why"), [("/503", "it answered 503: no"), ("/302", "it answered 302: no")])
def test_a_web_hook_that_says_no_fails(server: str, path: str, why: str) -> None:
    with pytest.raises(HookError) as caught:
        call(url=f"{server}{path}")
    assert why == str(caught.value)


def test_a_web_hook_that_is_not_there_fails() -> None:
    with pytest.raises(HookError, match="ConnectError"):
        call(url="http://127.0.0.1:1/")


NO_REQUESTS = {"a port that is none": ("http://h:tr0ub4dor/", ""), "no scheme": ("tr0ub4dor://h/", "")}
NO_REQUESTS |= {"a line end": ("", "tr0ub4dor\n"), "no ASCII": ("", "tr0ub4dör")}


@pytest.mark.parametrize("kind", NO_REQUESTS)
def test_what_cannot_be_sent_is_not_shown(server: str, kind: str) -> None:
    url, header = NO_REQUESTS[kind]
    with pytest.raises(HookError) as caught:
        call(url=url or f"{server}/200", Authorization=header)
    assert "its URL, or a header, is none that can be sent" == str(caught.value)


def test_an_answer_is_cut_at_a_line(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.nodes.hooks.SAID_BYTES", 6)
    assert "" == call(url=f"{server}/200")
