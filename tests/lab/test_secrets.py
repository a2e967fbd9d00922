"""Poison on real nodes: secrets that change, that cannot be had, and that nobody who looks anywhere can read.

The values go to the node in the body of a Docker API call over SSH. What may hold them afterwards is the environment of
the container, where the engine needs them, and whatever the user himself has put where a reference points.
"""

import asyncio
import base64
import json
import logging
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import asyncssh
import pytest

from reconciler.fleet import Applied, Fleet
from tests.inbox import POISON, opened

from . import Lab
from .fleet_cli import FLEET, Desk, Ran, checked, desk, environment, names

pytestmark = pytest.mark.lab

SOLO = ("solo", "single-3")
VALUES = {kind: f'poison-{kind}/"+ value-1234' for kind in ("HF_TOKEN", "API_KEY", "VAULT_TOKEN")}
ROTATED = "poison-rotated-5678"


def spellings(value: str) -> Iterator[bytes]:
    yield value.encode()
    yield json.dumps(value)[1:-1].encode()
    yield quote(value, safe="").encode()
    yield quote(value).encode()
    for before in ("", "x", "xx"):  # at any place of a longer text, without the digits it shares there
        coded = base64.b64encode((before + value).encode())
        yield coded[4 if before else 0 : len(coded) - 4]


def assert_clean(what: str | bytes, where: str) -> None:
    content = what.encode(errors="surrogateescape") if isinstance(what, str) else what
    for value in (*VALUES.values(), ROTATED):
        for spelling in spellings(value):
            assert spelling not in content, f"{spelling!r} is in {where}"


@dataclass
class Poisoned:
    """A desk whose lane has a secret of each kind."""

    desk: Desk
    env: dict[str, str]
    folder: Path

    @classmethod
    def on(cls, lab: Lab, tmp_path: Path) -> "Poisoned":
        made = cls(desk(lab, tmp_path / "desk", SOLO), {}, tmp_path / "kept")
        made.folder.mkdir()
        made.set("HF_TOKEN", VALUES["HF_TOKEN"])
        (made.folder / "api-key").write_text(VALUES["API_KEY"] + "\n")
        (made.folder / "vault").write_text(VALUES["VAULT_TOKEN"] + "\n")
        made.desk.edit_lane("solo", env=made.references())
        made.hook()
        return made

    def hook(self) -> None:
        """One that says all it knows, each time before the lane is cut."""
        path = self.desk.folder / "hook"
        path.write_text('#!/bin/sh\ncat > told.json\nenv\nprintf "user:$HOOK_TOKEN" | base64 >&2\n')
        path.chmod(0o755)
        call = {"command": ["./hook"], "env": {"HOOK_TOKEN": self.references()["VAULT_TOKEN"]}}
        self.desk.edit("fleet.yaml", lambda spec: spec.update(hooks={"before_cut": [call]}))

    def references(self) -> dict[str, dict[str, str]]:
        return {
            "HF_TOKEN": {"secret": "env:POISON"},
            "API_KEY": {"secret": f"file:{self.folder}/api-key"},
            "VAULT_TOKEN": {"secret": f"command:sh -c 'cat {self.folder}/vault'"},
        }

    def set(self, name: str, value: str) -> None:
        assert name == "HF_TOKEN"
        self.env = environment({"POISON": value, "FLEET_SECRET_KEY_FILE": str(self.folder / "secret.key")})

    def fleet(self, *words: str) -> Ran:
        return self.desk.fleet(*words, env=self.env)

    def watched(self, *words: str) -> tuple[Ran, "Processes"]:
        """The command, with all processes of this machine and of the nodes looked at while it runs."""
        seen = Processes()
        argv = [FLEET, *words]
        with subprocess.Popen(
            argv, cwd=self.desk.folder, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            seen.allowed = process.pid
            with seen:
                out, err = process.communicate(timeout=90)
        return checked(Ran(process.returncode, out, err)), seen


@dataclass
class Processes:
    """Looks at the command line and the environment of every process, again and again.

    The nodes of a lab are namespaces of this machine: their processes show as well. Those of containers live in
    namespaces of their own, which are not there when it begins.
    """

    allowed: int = 0
    looks: int = 0
    found: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)

    def __enter__(self) -> "Processes":
        self._namespaces = {_link(path) for path in _processes()}
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look, daemon=True)
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._looking.join()

    def _look(self) -> None:
        while not self._over.is_set():
            self.looks += 1
            for path in _processes():
                self._judge(path)

    def _judge(self, path: Path) -> None:
        command, given = _content(path / "cmdline"), _content(path / "environ")
        self.seen.add(command.split(b"\0")[0].decode(errors="replace"))
        for value in (*VALUES.values(), ROTATED):
            if any(spelling in command for spelling in spellings(value)):
                self.found.add(f"command line of {command!r}")
            is_known = int(path.name) == self.allowed or _link(path) not in self._namespaces
            if not is_known and any(spelling in given for spelling in spellings(value)):
                self.found.add(f"environment of {command!r}")


def _processes() -> list[Path]:
    return [path for path in Path("/proc").iterdir() if path.name.isdigit()]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""


def _link(path: Path) -> str:
    try:
        return str((path / "ns" / "pid").readlink())
    except OSError:
        return "ended"


def inspected(lab: Lab) -> dict[str, object]:
    """What Docker says of the lane's container."""
    (name,) = names(lab)["node3"]
    (found,) = json.loads(lab.nodes["node3"].docker("inspect", name))
    return dict(found)


def env_of(found: dict[str, object]) -> dict[str, str]:
    config = found["Config"]
    assert isinstance(config, dict)
    return dict(line.split("=", 1) for line in config["Env"])


def without_env(found: dict[str, object]) -> str:
    config = found["Config"]
    assert isinstance(config, dict)
    return json.dumps({**found, "Config": {**config, "Env": None}}, ensure_ascii=False)


def written(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def node_files(lab: Lab) -> str:
    """What shells, sshd and Docker's daemon of the nodes wrote down beside the containers' own configuration."""
    script = (
        "cat /root/.*history /var/log/*.log 2>/dev/null; docker events --since 10m --until 0m --format '{{json .}}'"
    )
    return "".join(node.exec(["sh", "-c", script], check=False).stdout for node in lab.nodes.values())


EVERY_COMMAND = ("plan", "plan --json", "plan --format markdown", "status --json", "status --probe", "drift --json")
MORE_COMMANDS = ("drift --format markdown", "drift --format html", "logs solo", "history --json")


def test_values_arrive_and_show_nowhere_else(clean_lab: Lab, tmp_path: Path) -> None:
    made = Poisoned.on(clean_lab, tmp_path)
    said = made.fleet("plan", "--out", str(tmp_path / "desk" / "saved.plan")).said
    ran, seen = made.watched("apply", "--yes")
    assert ran.rc == 0, ran.said
    assert set() == seen.found
    assert seen.looks > 10
    said += ran.said + "".join(made.fleet(*words.split()).said for words in (*EVERY_COMMAND, *MORE_COMMANDS))
    found = inspected(clean_lab)
    assert VALUES.items() <= env_of(found).items()
    with opened() as inbox:
        made.set("HF_TOKEN", ROTATED)
        told = made.fleet("drift", "--notify", inbox.url, "--metrics", str(tmp_path / "desk/fleet.prom"))
        assert "env.HF_TOKEN" in json.dumps(inbox.messages)
    assert POISON not in told.said
    assert_clean(said + told.said, "what the commands said")
    assert_clean(json.dumps(inbox.messages), "the news")
    assert "fleet_drift_findings" in (tmp_path / "desk/fleet.prom").read_text()
    assert_clean(without_env(found), "docker inspect")
    assert_clean(written(tmp_path / "desk"), "the spec's folder")
    assert_clean(node_files(clean_lab), "files of the nodes")


def test_a_changed_secret_is_told_by_its_mark_and_replaced(clean_lab: Lab, tmp_path: Path) -> None:
    made = Poisoned.on(clean_lab, tmp_path)
    first = made.fleet("apply", "--yes")
    assert first.rc == 0, first.said
    assert 0 == made.fleet("plan", "--detailed-exitcode").rc
    made.set("HF_TOKEN", ROTATED)
    plan = made.fleet("plan", "--json")
    (change,) = json.loads(plan.out)["changes"]
    (changed,) = change["fields"]
    assert ("replace", "a secret changed: env.HF_TOKEN") == (change["kind"], change["reason"])
    assert changed["before"].startswith("secret ")
    assert changed["before"] != changed["after"]
    drift = made.fleet("drift")
    assert 2 == drift.rc
    assert "env.HF_TOKEN" in drift.out
    second = made.fleet("apply", "--yes", "--events", "events.ndjson")
    assert second.rc == 0, second.said
    events = (made.desk.folder / "events.ndjson").read_text()
    assert "HOOK_TOKEN=[redacted]" in events
    assert_clean(written(tmp_path / "desk"), "the spec's folder, with the events, and what the hook was told")
    assert ROTATED == env_of(inspected(clean_lab))["HF_TOKEN"]
    assert_clean(plan.said + drift.said + second.said, "what the commands said")
    # another operator, with no key and no secrets, sees the same fleet and touches nothing
    other = made.desk.fleet("plan", "--detailed-exitcode")
    assert 0 == other.rc
    assert "whether env.HF_TOKEN changed is not known: there is no key here" in other.err


def test_what_a_dying_engine_prints_of_its_environment_is_hidden(bare_lab: Lab, tmp_path: Path) -> None:
    made = Poisoned.on(bare_lab, tmp_path)
    script = 'env; echo "$API_KEY" | base64; printf "user:%s" "$HF_TOKEN" | base64; sleep 0.5; exit 3'
    made.desk.custom("solo", script, env=made.references(), model=None, mounts=None)
    ran, seen = made.watched("apply", "--yes")
    assert ran.rc in {6, 7}, ran.said
    assert "ssh" in seen.seen  # which carried the image, and has an environment of its own
    assert set() == seen.found
    assert "HF_TOKEN=[redacted]" in ran.said
    logs = made.fleet("logs", "solo").said
    assert_clean(ran.said + logs, "what was shown of the engine")
    assert_clean(written(tmp_path / "desk"), "the spec's folder")


def test_logs_at_debug_level_hold_no_value(
    clean_lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = Poisoned.on(clean_lab, tmp_path)
    for name, value in made.env.items():
        if name != "HOME":
            monkeypatch.setenv(name, value)
    caplog.set_level(logging.DEBUG)
    for name in ("asyncio", "asyncssh", "docker", "urllib3", "httpx", "httpcore"):
        caplog.set_level(logging.DEBUG, name)
    asyncssh.set_log_level(logging.DEBUG)
    asyncssh.set_debug_level(2)

    async def apply() -> Applied:
        async with Fleet.load(made.desk.folder / "fleet.yaml") as fleet:
            return await fleet.apply(fleet.plan(await fleet.observe()))

    try:
        done = asyncio.run(apply(), debug=True)
    finally:
        asyncssh.set_debug_level(1)
        asyncssh.set_log_level(logging.NOTSET)
    assert 0 == done.exit, done
    assert "asyncssh" in {record.name for record in caplog.records}
    assert "urllib3.connectionpool" in {record.name for record in caplog.records}
    assert_clean(caplog.text, "the logs")
