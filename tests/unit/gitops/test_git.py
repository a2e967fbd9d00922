"""Git as the agent runs it: no prompt, no password on paper, no program by URL, no hook, nothing that hangs."""

import asyncio
import base64
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar, cast
from urllib.parse import quote

import pytest

from reconciler.gitops.git import Git, GitError, source_of
from reconciler.gitops.mirror import Mirror, TreeError
from reconciler.gitops.workplace import Workplace
from tests.lifecycle.following import git

POISON = "s3cr3t-p01s0n"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A repository with one commit."""
    clone, bare = tmp_path / "clone", tmp_path / "fleet.git"
    git(tmp_path, "init", "--quiet", "--initial-branch=main", str(clone))
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    (clone / "fleet.yaml").write_text("fleet: lab\n")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "the first")
    git(clone, "push", "--quiet", str(bare), "HEAD:main")
    return bare


def mirror(tmp_path: Path, repo: str, branch: str = "main") -> Mirror:
    return Mirror(tmp_path / "mirror.git", source_of(repo), branch)


async def test_a_password_of_the_url_is_in_no_message_file_or_list_of_words(tmp_path: Path) -> None:
    made = mirror(tmp_path, f"http://ops:{POISON}@127.0.0.1:1/fleet.git")
    with pytest.raises(GitError) as caught:
        await made.fetch()
    assert POISON not in f"{caught.value} {caught.value.hint} {made!r} {made.source}"
    assert "127.0.0.1:1" in str(caught.value)
    files = [path.read_bytes() for path in made.folder.rglob("*") if path.is_file()]
    assert [] == [text for text in files if POISON.encode() in text]
    assert POISON in made.git.environment().values()  # what git alone is given


async def test_a_url_that_would_run_a_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="transport 'ext' not allowed"):
        await mirror(tmp_path, f"ext::sh -c 'touch {tmp_path}/ran'").fetch()
    assert not (tmp_path / "ran").exists()
    with pytest.raises(GitError):
        source_of("--upload-pack=touch")


async def test_what_the_remote_lacks_is_said(tmp_path: Path, bare: Path) -> None:
    with pytest.raises(GitError, match="has no branch other"):
        await mirror(tmp_path, str(bare), "other").fetch()
    with pytest.raises(GitError, match="does not appear to be a git repository"):
        await mirror(tmp_path, str(tmp_path / "nowhere")).fetch()


async def test_git_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(GitError, match=r"did not end within 0\.2 s"):
        await Git(tmp_path, source_of("x"))("-c", "alias.hang=!sleep 60", "hang", timeout_s=0.2)


async def test_a_fetch_that_nobody_waits_for_any_more_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "ssh"
    script.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid\nexec sleep 60\n")
    script.chmod(0o755)
    made = mirror(tmp_path, "ssh://ops@host.invalid/fleet.git")
    os.environ["GIT_SSH_COMMAND"] = str(script)
    try:
        fetching = asyncio.create_task(made.fetch())
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            await asyncio.sleep(0.02)
        fetching.cancel()
        await asyncio.wait([fetching])
        pid = int((tmp_path / "pid").read_text())
        for _ in range(100):
            if not Path(f"/proc/{pid}").exists() or "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
                return
            await asyncio.sleep(0.05)
        raise AssertionError("what git had started still runs")
    finally:
        del os.environ["GIT_SSH_COMMAND"]


async def test_a_tree_is_whole_or_not_there(tmp_path: Path, bare: Path) -> None:
    made, place = mirror(tmp_path, str(bare)), Workplace(tmp_path / "work")
    head = await made.fetch()
    tree = await place.written(made, head)
    assert "fleet: lab\n" == (tree / "fleet.yaml").read_text()
    with pytest.raises(GitError):
        await place.written(made, "0" * 40)
    assert [head] == [path.name for path in (place.folder / "trees").iterdir()]


async def test_filters_and_hooks_of_the_user_do_nothing_to_a_tree(
    tmp_path: Path, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "clone"
    (clone / ".gitattributes").write_text("* filter=evil\n")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "attributes")
    git(clone, "push", "--quiet", str(bare), "HEAD:main")
    (tmp_path / ".gitconfig").write_text(f'[filter "evil"]\n\tsmudge = touch {tmp_path}/ran; cat\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    made = mirror(tmp_path, str(bare))
    await made.write(await made.fetch(), tmp_path / "tree")
    assert not (tmp_path / "ran").exists()


async def test_a_link_within_the_tree_is_fine(tmp_path: Path, bare: Path) -> None:
    pushed_link(tmp_path / "clone", bare, "also.yaml", "fleet.yaml")
    made = mirror(tmp_path, str(bare))
    await made.write(await made.fetch(), tmp_path / "tree")


@pytest.mark.parametrize(
    ("why", "target"),
    [
        ("out is a link that leads out of the repository", "../../state"),
        ("out is a link that leads out of the repository", "/etc/passwd"),
        ("out is a link that leads to itself", "out"),
    ],
)
async def test_a_link_that_leads_elsewhere_or_round_makes_a_commit_unfit(
    tmp_path: Path, bare: Path, why: str, target: str
) -> None:
    pushed_link(tmp_path / "clone", bare, "out", target)
    made = mirror(tmp_path, str(bare))
    with pytest.raises(TreeError, match=why):
        await made.write(await made.fetch(), tmp_path / "tree")


def pushed_link(clone: Path, bare: Path, name: str, target: str) -> None:
    (clone / name).symlink_to(target)
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "a link")
    git(clone, "push", "--quiet", str(bare), "HEAD:main")


async def test_a_copy_in_which_a_file_is_damaged_is_fetched_anew(tmp_path: Path, bare: Path) -> None:
    made, place = mirror(tmp_path, str(bare)), Workplace(tmp_path / "work")
    head = await made.fetch()
    blob = git(made.folder, "rev-parse", f"{head}:fleet.yaml")
    loose = made.folder / "objects" / blob[:2] / blob[2:]
    loose.chmod(0o644)
    loose.write_bytes(b"nonsense")
    with pytest.raises(GitError):
        await place.written(made, head)
    assert head == await made.fetch()
    assert "fleet: lab\n" == (await place.written(made, head) / "fleet.yaml").read_text()


async def test_the_first_line_of_a_commit_steers_no_terminal(tmp_path: Path, bare: Path) -> None:
    git(tmp_path / "clone", "commit", "--quiet", "--allow-empty", "--message", "a\x1b[2Jb\rc")
    git(tmp_path / "clone", "push", "--quiet", str(bare), "HEAD:main")
    made = mirror(tmp_path, str(bare))
    assert "a [2Jb c" == await made.subject(await made.fetch())


class Asking(BaseHTTPRequestHandler):
    """Wants a password, and leads what `/away` asks for to another address. `told`: what it was given."""

    told: ClassVar[list[tuple[int, str]]] = []
    other: ClassVar[int] = 0

    def do_GET(self) -> None:
        port = cast("tuple[str, int]", self.server.server_address)[1]
        if self.path.startswith("/away"):
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{self.other}{self.path.removeprefix('/away')}")
        else:
            self.told.append((port, self.headers.get("Authorization", "")))
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nobody's news."""


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    """Two servers that ask for a password; the first leads to the second."""
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), Asking) for _ in range(2)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    Asking.told, Asking.other = [], servers[1].server_port
    yield servers[0].server_port, servers[1].server_port
    for server in servers:
        server.shutdown()
        server.server_close()


async def test_a_password_is_handed_over_as_it_is_and_to_its_own_host_alone(
    tmp_path: Path, ports: tuple[int, int]
) -> None:
    password = "p\\n@s/s:%"
    for path in ("", "/away"):
        with pytest.raises(GitError):
            await mirror(tmp_path, f"http://ops:{quote(password, safe='')}@127.0.0.1:{ports[0]}{path}/f.git").fetch()
    whole = f"Basic {base64.b64encode(f'ops:{password}'.encode()).decode()}"
    assert {(ports[0], ""), (ports[0], whole), (ports[1], "")} == set(Asking.told)


@pytest.mark.parametrize("who", [f"{POISON}", f"{POISON}:", f"ops:{POISON}"])
async def test_what_a_host_refuses_is_said_without_the_token(tmp_path: Path, ports: tuple[int, int], who: str) -> None:
    with pytest.raises(GitError) as caught:
        await mirror(tmp_path, f"http://{who}@127.0.0.1:{ports[0]}/f.git").fetch()
    assert POISON not in f"{caught.value} {caught.value.hint}"


def test_what_is_redacted() -> None:
    token, both = source_of(f"https://{POISON}@forge/x"), source_of("https://ops:a%2Fb@forge/x")
    assert "could not read Password for 'https://[redacted]@forge'" == token.redacted(
        f"could not read Password for 'https://{POISON}@forge'"
    )
    assert "[redacted] [redacted] ops" == both.redacted("a/b a%2Fb ops")
