"""Every forge is told in its own words, once, within its time; the token is in one header and nowhere else."""

import asyncio
import contextlib
import logging
import re
import traceback
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

import specs
from reconciler.forges import Forge, ForgeError, State, client, forge_of
from reconciler.forges.comments import BODY_BYTES
from tests.unit.forges.server import (
    KINDS,
    ON_REQUEST,
    OTHER,
    REPOS,
    REQUEST,
    SHA,
    TOKEN,
    Asked,
    ForgeServer,
    RefusedError,
    Trouble,
    running,
)

CONTEXT = "fleet/lab/4nodes/mimo"
STATES: tuple[State, ...] = ("pending", "success", "failure", "error")
MARKED = "<!-- fleet/lab -->\n### fleet plan"
LOST = Trouble(drops=True, does=True)
BUSY = Trouble(503)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT_S", 0.01)
    monkeypatch.setenv("FORGE_TOKEN", TOKEN)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(params=sorted(KINDS))
def server(request: pytest.FixtureRequest) -> Iterator[ForgeServer]:
    with running(KINDS[request.param]()) as forge:
        yield forge


@pytest.fixture
def github() -> Iterator[ForgeServer]:
    with running(KINDS["github"]()) as forge:
        yield forge


def told(server: ForgeServer, **keys: Any) -> Forge:
    given = {"kind": server.kind, "url": server.address, "repo": REPOS[server.kind]}
    return forge_of(specs.Forge.model_validate({**given, "token": {"secret": "env:FORGE_TOKEN"}, **keys}))


def do(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def failing(work: Coroutine[Any, Any, None]) -> str:
    """What a failure says. It is a `ForgeError`, and nothing of it holds the token."""
    with pytest.raises(ForgeError) as raised:
        asyncio.run(work)
    shown = "".join(traceback.format_exception(raised.value)) + repr(raised.value)
    assert "hunter2" not in shown
    return str(raised.value)


@pytest.mark.parametrize("state", STATES)
def test_each_state_is_told_as_the_forge_words_it(server: ForgeServer, state: State) -> None:
    do(told(server).set_status(SHA, CONTEXT, state, "all is well", "https://ci.example.com/1"))
    (status,) = server.statuses
    words = {"gitlab": {"pending": "running", "failure": "failed", "error": "failed"}}.get(server.kind, {})
    assert words.get(state, state) == status["state"]
    assert CONTEXT == status.get("context", status.get("name"))
    assert (SHA, "all is well", "https://ci.example.com/1") == (
        status["sha"],
        status["description"],
        status["target_url"],
    )


def test_a_status_can_be_told_again_and_again(server: ForgeServer) -> None:
    for state in ("pending", "pending", "success", "success", "pending", "failure"):
        do(told(server).set_status(SHA, CONTEXT, state, "now"))
    last = server.statuses[-1]
    assert ("failed" if server.kind == "gitlab" else "failure") == last.get("status", last["state"])


@pytest.mark.parametrize("text", ["x" * 5000, "\ud800\x1b[31m\r\nStatus: \U0001f600" * 40, "", "a\u2028b", "<b>&|`"])
def test_no_description_is_too_much_for_a_forge(server: ForgeServer, text: str) -> None:
    do(told(server).set_status(SHA, CONTEXT, "success", text, "javascript:alert(1)"))
    (status,) = server.statuses
    assert status["description"].isprintable() or status["description"] == ""
    assert "target_url" not in status


def test_a_comment_goes_to_the_request_of_the_commit_and_is_edited_in_place(server: ForgeServer) -> None:
    forge = told(server)
    server.put_by("somebody", ON_REQUEST[server.kind], f"{MARKED} of somebody else")
    for text in ("one", "two", "two"):
        do(forge.comment(SHA, f"{MARKED}\n{text}"))
    do(forge.comment_on(REQUEST, f"{MARKED}\nthree"))
    do(forge.comment(SHA, "<!-- fleet/other -->\nfour"))
    expected = [f"{MARKED} of somebody else", f"{MARKED}\nthree", "<!-- fleet/other -->\nfour"]
    assert expected == server.bodies(ON_REQUEST[server.kind])
    writes = [asked.method for asked in server.asked if asked.method in {"POST", "PATCH", "PUT"}]
    assert 4 == len(writes)  # what says the same already is left alone


def test_a_comment_of_a_commit_that_no_request_brought_is_at_the_commit(server: ForgeServer) -> None:
    for text in ("one", "two"):
        do(told(server).comment(OTHER, text))
    place = {"github": f"commits/{OTHER}", "gitlab": f"commit/{OTHER}"}.get(server.kind, "")
    expected = [] if server.kind == "forgejo" else ["<!-- fleet -->\ntwo"]  # Forgejo has no such comments
    assert expected == server.bodies(place)


def test_the_token_of_a_job_edits_its_own_comment(server: ForgeServer) -> None:
    server.me = ""
    for text in ("one", "two"):
        do(told(server).comment_on(REQUEST, text))
    assert ["<!-- fleet -->\ntwo"] == server.bodies(ON_REQUEST[server.kind])


def test_a_comment_is_found_behind_many_others(server: ForgeServer) -> None:
    do(told(server).comment_on(REQUEST, "one"))
    for number in range(250):
        server.put_by("somebody", ON_REQUEST[server.kind], f"comment {number}")
    do(told(server).comment_on(REQUEST, "two"))
    bodies = server.bodies(ON_REQUEST[server.kind])
    assert (251, "<!-- fleet -->\ntwo") == (len(bodies), bodies[0])


@pytest.mark.parametrize("sign", ["x", "\U0001f600", "ä", "\ud800"])
def test_no_comment_is_too_long(server: ForgeServer, sign: str) -> None:
    do(told(server).comment_on(REQUEST, f"{MARKED}\n" + f"{sign * 100}\n" * 1000))
    (body,) = server.bodies(ON_REQUEST[server.kind])
    assert len(body.encode()) <= BODY_BYTES
    assert body.startswith(MARKED)
    assert body.endswith("cut: a comment takes no more\n")


def test_a_lost_answer_makes_no_second_comment(server: ForgeServer) -> None:
    lookups = [Trouble(200, text="[]"), Trouble(200, text='{"login": "fleet-bot", "username": "fleet-bot"}')]
    server.troubles = [lookups[1], lookups[0], LOST]
    do(told(server).comment_on(REQUEST, MARKED))
    assert [MARKED] == server.bodies(ON_REQUEST[server.kind])


@pytest.mark.parametrize(
    "trouble", [BUSY, Trouble(429, {"Retry-After": "0"}), Trouble(drops=True), Trouble(502, text="<html>")]
)
def test_what_passes_is_tried_again(server: ForgeServer, trouble: Trouble) -> None:
    server.troubles = [trouble, trouble]
    do(told(server).set_status(SHA, CONTEXT, "success", "now"))
    assert 1 == len(server.statuses)
    assert 3 == len(server.asked)


def test_what_does_not_pass_ends_after_a_few_times(server: ForgeServer) -> None:
    server.troubles = [BUSY] * 50
    said = failing(told(server).set_status(SHA, CONTEXT, "success", "now"))
    assert "answers 503: broken" in said
    assert client.ATTEMPTS == len(server.asked)


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (Trouble(401, text='{"message": "Bad credentials"}'), "answers 401: Bad credentials"),
        (Trouble(404, text='{"message": "Not Found"}'), "answers 404: Not Found"),
        (Trouble(422, text='{"message": "Validation Failed", "errors": [{"field": "sha"}]}'), '[{"field": "sha"}]'),
        (Trouble(403, text='{"error": "insufficient_scope"}'), "answers 403: insufficient_scope"),
        (Trouble(429, {"Retry-After": "3600"}), "left alone for 3600 s"),
        (Trouble(403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999"}), "asks to be left alone"),
        (Trouble(200, text="<html>not an API</html>"), "is this its API?"),
        (Trouble(200, text="[" * 100_000), "is this its API?"),
        (Trouble(404, text="<html>"), "answers 404: no reason is given"),
        (Trouble(418, text=f'{{"message": "no {TOKEN} here\\u001b[31m\\n"}}'), "no [redacted] here\\x1b[31m"),
        (Trouble(200, text="x" * (client.ANSWER_BYTES + 1)), "answers without end"),
    ],
)
def test_what_cannot_be_mended_by_waiting_is_said_at_once(github: ForgeServer, trouble: Trouble, said: str) -> None:
    github.troubles = [trouble]
    assert said in failing(told(github).set_status(SHA, CONTEXT, "success", "now"))
    assert 1 == len(github.asked)


ODD = (
    "5",
    "true",
    '"x"',
    "[5]",
    "[null]",
    '{"a": 1}',
    '[{"id": "a1", "notes": 5}]',
    '[{"id": 1, "body": 5, "user": 5}]',
)


@pytest.mark.parametrize("text", ODD)
def test_an_answer_of_another_shape_breaks_nothing(server: ForgeServer, text: str) -> None:
    """A proxy, or a forge of another version: what it lists is nothing."""
    forge = told(server)
    for work in (forge.set_status(SHA, CONTEXT, "success", "now"), forge.comment(SHA, "x"), forge.comment_on(7, "x")):
        server.troubles = [Trouble(400, text=text), *[Trouble(200, text=text)] * 4]
        with contextlib.suppress(ForgeError):
            do(work)


@pytest.mark.parametrize("place", ["http://[x/", "//h:x/", "\xff", ""])
def test_a_redirect_to_no_address_is_a_refusal_too(server: ForgeServer, place: str) -> None:
    server.troubles = [Trouble(302, {"Location": place})] * 4
    said = failing(told(server).set_status(SHA, CONTEXT, "success", "now"))
    assert re.search("is elsewhere|gave no answer", said)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_token_does_not_follow_a_redirect(github: ForgeServer, status: int) -> None:
    with running(KINDS["github"]()) as elsewhere:
        github.troubles = [Trouble(status, {"Location": f"{elsewhere.address}/api/v3/repos/ops/fleet?x={TOKEN}"})]
        said = failing(told(github).set_status(SHA, CONTEXT, "success", "now"))
        assert elsewhere.address.removeprefix("http://") in said
        assert [] == elsewhere.asked


def test_a_forge_that_hangs_takes_no_longer_than_an_operation(
    github: ForgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "OPERATION_S", 0.2)
    github.troubles = [Trouble(200, waits_s=1.0)]
    assert "did not take it within 0.2 s" in failing(told(github).set_status(SHA, CONTEXT, "success", "now"))


def test_a_forge_that_is_away_says_so() -> None:
    with running(KINDS["github"]()) as gone:
        forge = told(gone)
    assert "cannot be reached" in failing(forge.set_status(SHA, CONTEXT, "success", "now"))


@pytest.mark.parametrize("commit", ["main", "../../user", SHA[:12], "", SHA.upper()])
def test_only_a_whole_commit_becomes_part_of_a_path(server: ForgeServer, commit: str) -> None:
    assert "whole commits" in failing(told(server).set_status(commit, CONTEXT, "success", "now"))
    assert "whole commits" in failing(told(server).comment(commit, "text"))
    assert [] == server.asked


@pytest.mark.parametrize("value", ["hunter2\r\nX-Other: y", "hunter2\x7f", "hunter2 and more", "hunter2ä"])
def test_a_token_that_no_header_holds_shows_nowhere(
    github: ForgeServer, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("FORGE_TOKEN", value)
    assert "holds characters that no token has" in failing(told(github).set_status(SHA, CONTEXT, "success", "now"))
    assert [] == github.asked


def test_a_token_that_is_missing_says_where_it_should_be(github: ForgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORGE_TOKEN")
    assert "secret env:FORGE_TOKEN: the variable is not set" in failing(told(github).comment(SHA, "text"))


def test_the_token_is_in_one_header_and_in_no_log(server: ForgeServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.troubles = [BUSY]
    forge = told(server)
    do(forge.set_status(SHA, CONTEXT, "success", "now"))
    do(forge.comment(SHA, "text"))
    for asked in server.asked:
        holders = [key for key, value in asked.headers.items() if TOKEN in value]
        assert 1 == len(holders)
        assert "hunter2" not in f"{asked.path} {asked.query} {asked.body}"
    assert "hunter2" not in caplog.text + repr(forge) + repr(vars(forge))


@pytest.mark.parametrize(
    ("keys", "root"),
    [
        ({"kind": "github"}, "https://api.github.com"),
        ({"kind": "github", "url": "https://github.com"}, "https://api.github.com"),
        ({"kind": "github", "url": "https://git.example.com"}, "https://git.example.com/api/v3"),
        ({"kind": "github", "url": "https://git.example.com/api/v3"}, "https://git.example.com/api/v3"),
        ({"kind": "gitlab"}, "https://gitlab.com/api/v4"),
        ({"kind": "forgejo", "url": "https://git.example.com/forge"}, "https://git.example.com/forge/api/v1"),
    ],
)
def test_the_api_is_found_below_the_address(keys: dict[str, str], root: str) -> None:
    forge = forge_of(specs.Forge.model_validate({"repo": "ops/fleet", "token": {"secret": "env:T"}, **keys}))
    assert root == vars(forge)["_client"].root


def test_the_server_refuses_what_is_not_documented(server: ForgeServer) -> None:
    """The tests can fail: a field more, a state of another forge, a description too long."""
    headers = {"content-type": "application/json", "accept": "application/vnd.github+json", "user-agent": "fleet/1"}
    headers |= {"x-github-api-version": "2022-11-28", "private-token": TOKEN}
    headers["authorization"] = f"Bearer {TOKEN}" if server.kind == "github" else f"token {TOKEN}"
    root = {"github": "/api/v3/repos/ops/fleet", "gitlab": "/api/v4/projects/ops%2Fsite%2Ffleet"}
    path = f"{root.get(server.kind, '/api/v1/repos/ops/fleet')}/statuses/{SHA}"
    name = "name" if server.kind == "gitlab" else "context"
    with pytest.raises(RefusedError):
        server.answer(Asked("POST", path, headers, {}, {"state": "fine", name: "x"}))
    with pytest.raises(AssertionError):
        server.answer(Asked("POST", path, headers, {}, {"state": "success", name: "x", "more": "y"}))
    with pytest.raises(RefusedError):
        server.answer(Asked("POST", re.sub("statuses", "status", path), headers, {}, {"state": "success"}))
