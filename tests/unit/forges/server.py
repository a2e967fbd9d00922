"""A forge on loopback that takes requests only as the public APIs document them, and answers as they do.

Each kind checks method, path, headers, fields, allowed values and limits: what does not fit gets the error of the
documentation. `troubles` are answers that come first, whatever is asked.
"""

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "hunter2-token/of+the=forge"
SHA = "4f2c1ab09d3e774f2c1ab09d3e774f2c1ab09d3e"
OTHER = "0" * 40
REQUEST = 7
"""The request that brought `SHA`; nothing brought `OTHER`."""


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Trouble:
    """An answer that comes instead: `drops`: the connection is closed without one, after `does` of the work is done."""

    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str = '{"message": "broken"}'
    drops: bool = False
    does: bool = False
    waits_s: float = 0.0


class RefusedError(Exception):
    """An error as the API documents it."""

    def __init__(self, status: int, said: Any) -> None:
        super().__init__(status)
        self.status, self.said = status, said


Route = tuple[str, str, Callable[..., tuple[int, Any]]]


@dataclass
class ForgeServer:
    """What a forge knows. `me`: the owner of the token; "" for the token of a job."""

    me: str = "fleet-bot"
    asked: list[Asked] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    statuses: list[dict[str, Any]] = field(default_factory=list)
    comments: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    address: str = ""
    _last: int = 100

    kind = ""
    author_key = "login"

    def routes(self) -> list[Route]:
        """Method, pattern of the path, and what answers."""
        raise NotImplementedError

    def check(self, asked: Asked) -> None:
        """The headers that every request has to have."""
        if asked.body is not None and not asked.headers.get("content-type", "").startswith("application/json"):
            raise RefusedError(415, {"message": "not JSON"})

    def answer(self, asked: Asked) -> tuple[int, Any]:
        """Status and JSON."""
        self.check(asked)
        for method, pattern, handler in self.routes():
            found = re.fullmatch(pattern, asked.path)
            if found and method == asked.method:
                return handler(asked, *found.groups())
        raise RefusedError(404, {"message": "Not Found"})

    def next_id(self) -> int:
        self._last += 1
        return self._last

    def user(self, asked: Asked) -> tuple[int, Any]:
        if not self.me:
            raise RefusedError(403, {"message": "Resource not accessible by integration"})
        return 200, {"id": 1, self.author_key: self.me}

    def paged(self, asked: Asked, items: list[Any]) -> tuple[int, Any]:
        size, page = int(asked.query.get("per_page", "30")), int(asked.query.get("page", "1"))
        assert size <= 100
        return 200, items[size * (page - 1) : size * page]

    def made(self, key: str, asked: Asked) -> dict[str, Any]:
        """A new comment."""
        body = only(asked.body, {"body": str})["body"]
        if not body or len(body) > 65536:
            raise RefusedError(422, {"message": "Validation Failed", "errors": ["body is too long (maximum is 65536)"]})
        author = {self.author_key: self.me or "github-actions[bot]"}
        item = {"id": self.next_id(), "body": body, "user": author, "author": author}
        self.comments.setdefault(key, []).append(item)
        return item

    def edited(self, number: str, asked: Asked) -> dict[str, Any]:
        """A comment that is there, with another text."""
        body = only(asked.body, {"body": str})["body"]
        for item in (item for items in self.comments.values() for item in items):
            if item["id"] == int(number):
                item["body"] = body
                return item
        raise RefusedError(404, {"message": "Not Found"})

    def bodies(self, key: str) -> list[str]:
        """The texts of the comments at a place."""
        return [item["body"] for item in self.comments.get(key, [])]

    def put_by(self, author: str, key: str, body: str) -> None:
        """A comment of somebody."""
        who = {self.author_key: author}
        self.comments.setdefault(key, []).append({"id": self.next_id(), "body": body, "user": who, "author": who})


def only(body: Any, known: Mapping[str, type], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields of a request: those that are documented, of their types."""
    assert isinstance(body, dict)
    assert body.keys() <= known.keys(), body
    for key, value in body.items():
        assert isinstance(value, known[key]), (key, value)
    missing = [key for key in required if key not in body]
    if missing:
        raise RefusedError(422, {"message": f"missing {missing}"})
    return body


STATUS = {"state": str, "context": str, "description": str, "target_url": str}


class GitHubServer(ForgeServer):
    """https://docs.github.com/rest, as a server of one's own has it: below /api/v3."""

    kind = "github"

    def check(self, asked: Asked) -> None:
        super().check(asked)
        assert asked.headers["accept"] == "application/vnd.github+json"
        assert asked.headers["x-github-api-version"] == "2022-11-28"
        assert asked.headers["user-agent"].startswith("fleet/")
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            raise RefusedError(401, {"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest"})

    def routes(self) -> list[Route]:
        repo = "/api/v3/repos/ops/fleet"
        return [
            ("GET", "/api/v3/user", self.user),
            ("POST", rf"{repo}/statuses/([0-9a-f]{{40}})", self.status),
            ("GET", rf"{repo}/commits/([0-9a-f]{{40}})/pulls", self.pulls),
            ("GET", rf"{repo}/(issues/\d+|commits/\w+)/comments", self.listed),
            ("POST", rf"{repo}/(issues/\d+|commits/\w+)/comments", lambda asked, key: (201, self.made(key, asked))),
            ("PATCH", rf"{repo}/(?:issues/)?comments/(\d+)", lambda asked, number: (200, self.edited(number, asked))),
        ]

    def listed(self, asked: Asked, key: str) -> tuple[int, Any]:
        return self.paged(asked, self.comments.get(key, []))

    def status(self, asked: Asked, sha: str) -> tuple[int, Any]:
        body = only(asked.body, STATUS, ("state",))
        if body["state"] not in {"error", "failure", "pending", "success"}:
            raise RefusedError(422, {"message": "Validation Failed"})
        if len(body.get("description", "")) > 140:
            told = {"resource": "Status", "field": "description", "message": "is too long (maximum is 140 characters)"}
            raise RefusedError(422, {"message": "Validation Failed", "errors": [told]})
        self.statuses.append({**body, "sha": sha})
        return 201, {"id": self.next_id(), **body}

    def pulls(self, asked: Asked, sha: str) -> tuple[int, Any]:
        if sha != SHA:
            return 200, []
        other = {"number": 3, "state": "closed", "merge_commit_sha": OTHER}
        return 200, [other, {"number": REQUEST, "state": "closed", "merge_commit_sha": SHA}]


class GitLabServer(ForgeServer):
    """https://docs.gitlab.com/api/rest/, with the state machine of commit statuses."""

    kind = "gitlab"
    author_key = "username"

    def check(self, asked: Asked) -> None:
        super().check(asked)
        if asked.headers.get("private-token") != TOKEN:
            raise RefusedError(401, {"message": "401 Unauthorized"})

    def routes(self) -> list[Route]:
        project = r"/api/v4/projects/ops%2Fsite%2Ffleet"
        commit = rf"{project}/repository/commits/(\w{{40}})"
        return [
            ("GET", "/api/v4/user", self.user),
            ("POST", rf"{project}/statuses/(\w{{40}})", self.status),
            ("GET", rf"{commit}/statuses", self.listed_statuses),
            ("GET", rf"{commit}/merge_requests", self.requests),
            ("GET", rf"{project}/merge_requests/(\d+)/notes", self.notes),
            ("POST", rf"{project}/merge_requests/(\d+)/notes", lambda a, key: (201, self.made(f"mr/{key}", a))),
            ("PUT", rf"{project}/merge_requests/\d+/notes/(\d+)", lambda a, number: (200, self.edited(number, a))),
            ("GET", rf"{commit}/discussions", self.discussions),
            ("POST", rf"{commit}/discussions", self.discuss),
            ("PUT", rf"{commit}/discussions/\w+/notes/(\d+)", lambda a, _, number: (200, self.edited(number, a))),
        ]

    def status(self, asked: Asked, sha: str) -> tuple[int, Any]:
        body = only(asked.body, {"state": str, "name": str, "description": str, "target_url": str}, ("state",))
        if body["state"] not in {"pending", "running", "success", "failed", "canceled", "skipped"}:
            raise RefusedError(400, {"error": "state does not have a valid value"})
        if len(body.get("description", "")) > 255 or len(body["name"]) > 255:
            raise RefusedError(400, {"message": {"description": ["is too long (maximum is 255 characters)"]}})
        mine = [item for item in self.statuses if (item["name"], item["sha"]) == (body["name"], sha)]
        now = mine[-1] if mine else None
        if now is not None and now["status"] == body["state"] == "running":
            told = 'Cannot transition status via :run from :running (Reason(s): Status cannot transition via "run")'
            raise RefusedError(400, {"message": told})
        if now is not None and now["status"] == "running":
            now.update(status=body["state"], description=body["description"])
        else:
            self.statuses.append({"id": self.next_id(), "status": body["state"], "sha": sha, **body})
        return 201, self.statuses[-1]

    def listed_statuses(self, asked: Asked, sha: str) -> tuple[int, Any]:
        return self.paged(asked, [item for item in self.statuses if item["name"] == asked.query["name"]])

    def requests(self, asked: Asked, sha: str) -> tuple[int, Any]:
        return 200, [{"iid": REQUEST, "state": "merged", "merge_commit_sha": SHA}] if sha == SHA else []

    def notes(self, asked: Asked, key: str) -> tuple[int, Any]:
        return self.paged(asked, list(reversed(self.comments.get(f"mr/{key}", []))))

    def discussions(self, asked: Asked, sha: str) -> tuple[int, Any]:
        notes = self.comments.get(f"commit/{sha}", [])
        return self.paged(asked, [{"id": f"d{item['id']}", "notes": [item]} for item in notes])

    def discuss(self, asked: Asked, sha: str) -> tuple[int, Any]:
        item = self.made(f"commit/{sha}", asked)
        return 201, {"id": f"d{item['id']}", "notes": [item]}


class ForgejoServer(ForgeServer):
    """`/api/swagger` of an instance."""

    kind = "forgejo"

    def check(self, asked: Asked) -> None:
        super().check(asked)
        if asked.headers.get("authorization") != f"token {TOKEN}":
            raise RefusedError(401, {"message": "token is required", "url": "https://git.example.com/api/swagger"})

    def routes(self) -> list[Route]:
        repo = "/api/v1/repos/ops/fleet"
        return [
            ("GET", "/api/v1/user", self.user),
            ("POST", rf"{repo}/statuses/(\w{{40}})", self.status),
            ("GET", rf"{repo}/commits/(\w{{40}})/pull", self.pull),
            ("GET", rf"{repo}/issues/(\d+)/comments", lambda a, key: (200, self.comments.get(f"issues/{key}", []))),
            ("POST", rf"{repo}/issues/(\d+)/comments", lambda a, key: (201, self.made(f"issues/{key}", a))),
            ("PATCH", rf"{repo}/issues/comments/(\d+)", lambda a, number: (200, self.edited(number, a))),
        ]

    def status(self, asked: Asked, sha: str) -> tuple[int, Any]:
        body = only(asked.body, STATUS)
        if body["state"] not in {"pending", "success", "error", "failure", "warning"}:
            raise RefusedError(422, {"message": "invalid state"})
        self.statuses.append({**body, "sha": sha})
        return 201, body

    def pull(self, asked: Asked, sha: str) -> tuple[int, Any]:
        if sha != SHA:
            raise RefusedError(404, {"message": "The target couldn't be found.", "errors": []})
        return 200, {"number": REQUEST, "merge_commit_sha": SHA}


KINDS = {"github": GitHubServer, "gitlab": GitLabServer, "forgejo": ForgejoServer}
REPOS = {"github": "ops/fleet", "gitlab": "ops/site/fleet", "forgejo": "ops/fleet"}
ON_REQUEST = {"github": f"issues/{REQUEST}", "gitlab": f"mr/{REQUEST}", "forgejo": f"issues/{REQUEST}"}
"""Where a server keeps the comments of the request."""


@contextmanager
def running(forge: ForgeServer) -> Iterator[ForgeServer]:
    """Serve it on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            url = urlsplit(self.path)
            read = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            headers = {key.lower(): value for key, value in self.headers.items()}
            query = {key: values[0] for key, values in parse_qs(url.query).items()}
            asked = Asked(self.command, url.path, headers, query, json.loads(read) if read else None)
            forge.asked.append(asked)
            trouble = forge.troubles.pop(0) if forge.troubles else None
            if trouble is not None:
                time.sleep(trouble.waits_s)
                if trouble.does:
                    self.answered(asked)
                if not trouble.drops:
                    self.say(trouble.status, trouble.text, trouble.headers)
                return
            status, said = self.answered(asked)
            self.say(status, json.dumps(said), {"Content-Type": "application/json"})

        def answered(self, asked: Asked) -> tuple[int, Any]:
            try:
                return forge.answer(asked)
            except RefusedError as refused:
                return refused.status, refused.said
            except AssertionError as error:
                return 418, {"message": f"not as documented: {error}"}

        def say(self, status: int, text: str, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # nobody wants all of it
                self.wfile.write(text.encode())

        do_GET = do_POST = do_PATCH = do_PUT = handle_any  # noqa: N815 - names of the library

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    forge.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield forge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
