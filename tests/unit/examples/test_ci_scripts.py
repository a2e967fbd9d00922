"""The scripts of `examples/gitops/ci` that need no fleet: the key, what is kept, what a code means, the comment."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from reconciler.core.exits import Exit
from tests.unit.forges.server import KINDS, TOKEN, running

CI = Path(__file__).parents[3] / "examples/gitops/ci"
HEADER = "JOB-TOKEN: hunter2"


def ran(argv: list[str], **env: str) -> "subprocess.CompletedProcess[str]":
    given = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "NO_PROXY": "127.0.0.1", **env}
    return subprocess.run(argv, env=given, capture_output=True, text=True, check=False, timeout=30)


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> str:
    if shutil.which("ssh-keygen") is None or shutil.which("ssh-agent") is None:
        pytest.skip("needs ssh-keygen and ssh-agent")
    path = tmp_path_factory.mktemp("key") / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "the-key", "-f", str(path)], check=True)
    return path.read_text()


def test_a_command_has_the_key_in_its_agent_and_nowhere_else(key: str, tmp_path: Path) -> None:
    look = 'ssh-add -l; env; find "$HOME" -type f | xargs cat; echo "agent $SSH_AUTH_SOCK home $HOME"; exit 6'
    done = ran(["sh", str(CI / "with-key"), "sh", "-c", look], FLEET_IDENTITY=key, FLEET_KNOWN_HOSTS="n1 ssh-ed25519 A")
    assert 6 == done.returncode
    assert "the-key (ED25519)" in done.stdout
    assert "n1 ssh-ed25519 A" in done.stdout
    assert "PRIVATE KEY" not in done.stdout
    assert "XDG_CACHE_HOME=/nonexistent/.cache" in done.stdout  # images that were fetched are found again
    words = done.stdout.splitlines()[-1].split()
    assert not Path(words[3]).exists()
    until_s = time.monotonic() + 5
    while Path(words[1]).exists():  # the agent has been told to end
        assert time.monotonic() < until_s
        time.sleep(0.02)


def test_without_a_key_it_says_so() -> None:
    done = ran(["sh", str(CI / "with-key"), "true"])
    assert done.returncode != 0
    assert "the private key that the nodes accept" in done.stderr


def test_a_job_that_is_cancelled_tells_the_command_and_waits_for_its_words(key: str, tmp_path: Path) -> None:
    began = tmp_path / "began"
    wait = f"trap 'echo resumable; exit 130' TERM; touch {began}; while :; do sleep 0.05; done"
    process = subprocess.Popen(
        ["sh", str(CI / "with-key"), "sh", "-c", wait],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "FLEET_IDENTITY": key},
        stdout=subprocess.PIPE,
        text=True,
    )
    while not began.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=20)[0]
    assert (130, "resumable\n") == (process.returncode, said)


@pytest.mark.parametrize("code", list(Exit))
def test_every_exit_code_of_an_apply_has_its_words(code: Exit) -> None:
    done = ran([str(CI / "verdict"), "apply", str(int(code))])
    assert (code not in {Exit.OK, Exit.UNREACHABLE}) == bool(done.returncode)
    assert done.stdout.strip()
    if code not in {Exit.ERROR, Exit.CHANGES}:  # an apply does not end with the latter
        assert f"exit {int(code)}" not in done.stdout


@pytest.mark.parametrize(("what", "code", "is_red"), [("plan", 2, False), ("plan", 4, False), ("drift", 2, True)])
def test_changes_are_good_news_of_a_plan_alone(tmp_path: Path, what: str, code: int, is_red: bool) -> None:
    (tmp_path / "code").write_text(f"{code}\n")
    assert is_red == bool(ran([str(CI / "verdict"), what, str(tmp_path)]).returncode)


def test_an_install_without_a_source_says_what_to_set(tmp_path: Path) -> None:
    done = ran([str(CI / "install"), str(tmp_path / "venv")], FLEET_SOURCE="")
    assert done.returncode != 0
    assert "set the variable FLEET_SOURCE" in done.stderr


@contextmanager
def packages(moves_to: str = "") -> Iterator[tuple[str, dict[str, bytes], list[tuple[str, str | None]]]]:
    """A package registry: its address, what it keeps, and who asked with which token. `moves_to`: its storage."""
    kept: dict[str, bytes] = {}
    asked: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            asked.append((self.command, self.headers.get("JOB-TOKEN")))
            body, status = self.rfile.read(int(self.headers.get("Content-Length", "0"))), 200
            if self.command == "PUT":
                status = 409 if "/api/packages/" in self.path and self.path in kept else 201
                kept[self.path] = body
            elif self.command == "DELETE":
                status = 204 if kept.pop(self.path, None) is not None else 404
            elif moves_to:
                status = 302
            else:
                status = 200 if self.path in kept else 404
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"{moves_to}{self.path}")
            found = kept.get(self.path, b"") if status == 200 else b""
            self.send_header("Content-Length", str(len(found)))
            self.end_headers()
            self.wfile.write(found)

        do_GET = do_PUT = do_DELETE = answer  # noqa: N815 - names of the library

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", kept, asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.parametrize("path", ["/api/v4/projects/7/packages/generic", "/api/packages/ops/generic"])
def test_a_plan_is_kept_and_fetched_and_a_newer_one_takes_its_place(tmp_path: Path, path: str) -> None:
    file, back = tmp_path / "a.plan", tmp_path / "b.plan"
    with packages() as (address, _, asked):
        keep = {"KEEP_URL": f"{address}{path}", "KEEP_HEADER": HEADER}
        for text in ("one", "two"):
            file.write_text(text)
            done = ran([str(CI / "keep"), "put", "fleet-plan-abc", str(file)], **keep)
            assert 0 == done.returncode, done
        assert 0 == ran([str(CI / "keep"), "get", "fleet-plan-abc", str(back)], **keep).returncode
        assert "two" == back.read_text()
        assert 0 == ran([str(CI / "keep"), "get", "fleet-plan-other", str(back)], **keep).returncode
    assert ["a.plan"] == sorted(item.name for item in tmp_path.iterdir())  # nothing was fetched, nothing is left
    assert {"hunter2"} == {token for _, token in asked}


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_token_does_not_go_along_to_the_storage(tmp_path: Path) -> None:
    back = tmp_path / "b.plan"
    with packages() as (storage, kept, asked), packages(storage) as (address, _, _):
        kept["/generic/fleet-plan/x/fleet.plan"] = b"one"
        keep = {"KEEP_URL": f"{address}/generic", "KEEP_HEADER": HEADER}
        done = ran([str(CI / "keep"), "get", "x", str(back)], **keep)
    assert (0, "one") == (done.returncode, back.read_text())
    assert [("GET", None)] == asked


def artifact(number: int, at: str, *, fork: bool = False, expired: bool = False) -> dict[str, object]:
    run = {"id": number, "repository_id": 1, "head_repository_id": 2 if fork else 1}
    return {"name": "fleet-plan-x", "expired": expired, "created_at": at, "workflow_run": run}


@pytest.mark.parametrize(
    ("items", "run"),
    [
        ([], ""),
        ([artifact(11, "2026-01-01"), artifact(12, "2026-01-02")], "12\n"),
        ([artifact(11, "2026-01-01"), artifact(12, "2026-01-02", fork=True)], "11\n"),
        ([artifact(12, "2026-01-02", expired=True)], ""),
        ([{**artifact(12, "2026-01-02"), "name": "another"}], ""),
        ([{**artifact(12, "2026-01-02"), "workflow_run": None}], ""),
    ],
)
def test_the_artifact_of_a_fork_is_not_the_plan_that_was_reviewed(
    tmp_path: Path, items: list[dict[str, object]], run: str
) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_good = self.path == "/repos/ops/fleet/actions/artifacts?name=fleet-plan-x&per_page=100"
            text = json.dumps({"total_count": len(items), "artifacts": items}).encode()
            self.send_response(200 if is_good and self.headers["Authorization"] == "Bearer t" else 404)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    env = {"GITHUB_API_URL": f"http://127.0.0.1:{server.server_port}", "GITHUB_REPOSITORY": "ops/fleet"}
    try:
        done = ran([sys.executable, str(CI / "find-artifact"), "fleet-plan-x"], **env, GITHUB_TOKEN="t")
    finally:
        server.shutdown()
        server.server_close()
    assert (0, run) == (done.returncode, done.stdout), done.stderr


def test_a_comment_is_put_on_the_request_and_a_forge_that_refuses_fails_the_step(tmp_path: Path) -> None:
    file = tmp_path / "plan.md"
    file.write_text("### fleet plan")
    with running(KINDS["gitlab"]()) as server:
        env = {"FORGE_KIND": "gitlab", "FORGE_URL": server.address, "FORGE_REPO": "ops/site/fleet"}
        argv = [sys.executable, str(CI / "comment"), str(file)]
        done = ran(argv, **env, FORGE_REQUEST="7", FORGE_TOKEN=TOKEN)
        assert 0 == done.returncode, done.stderr
        assert ["<!-- fleet plan -->\n### fleet plan"] == server.bodies("mr/7")
        done = ran(argv, **env, FORGE_REQUEST="7", FORGE_TOKEN="wrong")
    assert 1 == done.returncode
    assert done.stderr.startswith("no comment: 127.0.0.1")
