"""Secrets through whole lives of lanes: refused before anything stops, replaced when they change, shown nowhere."""

import base64
import contextlib
import functools
import io
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from reconciler.cli.main import run
from reconciler.cli.wiring import Wiring
from reconciler.core.drift import Finding
from reconciler.core.events import Event
from reconciler.core.outcome import Exit
from reconciler.core.plan import Kind, Plan
from reconciler.fleet import Applied, Fleet
from reconciler.testing import Exits, Fault, run_simulated
from reconciler.views.forge_text import commit_comment, commit_statuses
from tests.lifecycle.harness import PAIR_AND_SOLO, Story

SOLO = (("solo", "single-3"),)

VALUES = {kind: f'poison-{kind}/"+ \\value-1234' for kind in ("env", "file", "command")}
"""With characters that every kind of encoding writes in its own way."""

LONG_NAMES = {"env": "HF_TOKEN", "file": "API_KEY", "command": "VAULT_TOKEN"}


def spellings(value: str) -> Iterator[bytes]:
    yield value.encode()
    yield json.dumps(value)[1:-1].encode()
    yield quote(value, safe="").encode()
    yield quote(value).encode()
    for before in ("", "x", "xx"):  # as it stands at any place of a longer text, without the digits it shares there
        coded = base64.b64encode((before + value).encode())
        yield coded[4 if before else 0 : len(coded) - 4]


@dataclass
class Keeper:
    """A lane with a secret of each kind, and the ways to change them."""

    story: Story
    monkeypatch: pytest.MonkeyPatch

    def __post_init__(self) -> None:
        self.folder = self.story.folder
        for kind, value in VALUES.items():
            self.set(kind, value)
        references = {
            "HF_TOKEN": "env:POISON",
            "API_KEY": f"file:{self.folder}/key",
            "VAULT_TOKEN": f"command:cat {self.folder}/said",
        }
        rows = ", ".join(f'{name}: {{secret: "{reference}"}}' for name, reference in references.items())
        self.story.edit("stop_grace: 5s", f"stop_grace: 5s\n    env: {{{rows}}}")

    def set(self, kind: str, value: str | None) -> None:
        if kind == "env" and value is None:
            self.monkeypatch.delenv("POISON", raising=False)
        elif kind == "env":
            self.monkeypatch.setenv("POISON", value or "")
        else:
            path = self.folder / {"file": "key", "command": "said"}[kind]
            path.unlink(missing_ok=True)
            if value is not None:
                path.write_text(value + "\n")

    def env_of(self, lane: str) -> dict[str, str]:
        """What the running ranks of a lane were really given."""
        running = [item for node in self.story.nodes.nodes for item in node.runtime.containers.values()]
        (env, *others) = [dict(item.env) for item in running if item.is_running and f"-{lane}-" in item.name]
        assert all(env == other for other in others)
        return env


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keeper:
    return Keeper(Story(tmp_path / "desk", SOLO), monkeypatch)


def applied(keeper: Keeper) -> Applied:
    done = keeper.story.apply()
    assert Exit.OK == done.exit, done
    return done


def test_every_kind_arrives_and_the_next_plan_is_empty(keeper: Keeper) -> None:
    applied(keeper)
    assert VALUES == {kind: keeper.env_of("solo")[name] for kind, name in LONG_NAMES.items()}
    assert keeper.story.plan().is_settled


@pytest.mark.parametrize("kind", VALUES)
def test_a_secret_that_cannot_be_resolved_refuses_before_anything_is_stopped(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = Keeper(Story(tmp_path / "both", PAIR_AND_SOLO), monkeypatch)
    applied(keeper)
    before = keeper.story.containers()
    keeper.set(kind, None)
    keeper.story.edit("ctx-size: 512", "ctx-size: 256")
    done = keeper.story.apply()
    assert Exit.UNCHANGED == done.exit
    assert before.items() <= keeper.story.containers().items()
    assert {"pair": 2, "solo": 1} == keeper.story.running_lanes()
    assert done.failures
    assert all(failure.detail.startswith("secret ") for failure in done.failures)
    keeper.set(kind, VALUES[kind])
    applied(keeper)
    assert keeper.story.plan().is_settled


@pytest.mark.parametrize("kind", ["env", "file"])
def test_a_changed_secret_replaces_the_gang_in_plan_drift_and_apply(kind: str, keeper: Keeper) -> None:
    applied(keeper)
    keeper.set(kind, "another-value")
    name = LONG_NAMES[kind]
    (change,) = keeper.story.plan().changes
    (field,) = change.fields
    assert (Kind.REPLACE, f"a secret changed: env.{name}", f"env.{name}") == (change.kind, change.reason, field.field)
    assert field.before != field.after
    assert all(side is not None and side.startswith("secret ") for side in (field.before, field.after))
    found = keeper.story.run(drift)
    assert [f"env.{name}"] == [finding.field for finding in found]
    applied(keeper)
    assert "another-value" == keeper.env_of("solo")[name]
    assert keeper.story.plan().is_settled


async def drift(fleet: Fleet) -> tuple[Finding, ...]:
    return (await fleet.drift(await fleet.observe())).findings


def test_a_command_is_run_for_a_creation_and_for_nothing_else(keeper: Keeper) -> None:
    applied(keeper)
    keeper.set("command", "another-value")
    assert keeper.story.plan().is_settled
    keeper.set("command", None)
    assert keeper.story.plan().is_settled


def test_a_secret_that_changes_while_it_is_applied_leaves_nothing_unsettled(keeper: Keeper) -> None:
    keeper.story.nodes.inject(Fault.do(None, "start", lambda _: keeper.set("file", "rotated-meanwhile")))
    applied(keeper)
    assert VALUES["file"] == keeper.env_of("solo")["API_KEY"]
    assert ["env.API_KEY"] == [field.field for change in keeper.story.plan().changes for field in change.fields]


def plans_alike(one: Plan, other: Plan) -> bool:
    return (one.id, one.changes, one.steps) == (other.id, other.changes, other.steps)


def test_what_is_not_known_changes_no_plan(keeper: Keeper, own_secret_key: Path) -> None:
    applied(keeper)
    settled = keeper.story.plan()
    key = own_secret_key.read_text()
    keeper.set("env", None)
    assert plans_alike(settled, keeper.story.plan())
    keeper.set("env", "another-value")
    own_secret_key.unlink()
    assert plans_alike(settled, keeper.story.plan())
    own_secret_key.write_text("0" * 64)
    assert plans_alike(settled, keeper.story.plan())
    own_secret_key.write_text(key)
    changed = keeper.story.plan()
    assert not plans_alike(settled, changed)
    for path in (keeper.folder / ".fleet").iterdir():
        path.unlink()
    assert plans_alike(changed, keeper.story.plan())


# nothing that anybody could read holds a value


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Everything that any logger says, at its finest."""
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    names = ["", "asyncio", "asyncssh", "docker", "urllib3", "httpx", "httpcore", "sqlalchemy", "alembic"]
    levels = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.DEBUG)
    logging.getLogger().addHandler(handler)
    yield said
    logging.getLogger().removeHandler(handler)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


Command = Callable[..., str]


def command(keeper: Keeper, capsys: pytest.CaptureFixture[str]) -> Command:
    """A command line in this process; everything it printed."""
    story = keeper.story
    wiring = Wiring(lambda spec: story.nodes, functools.partial(run_simulated, seed=story.seed))

    def said(*words: str) -> str:
        with contextlib.suppress(SystemExit):
            run([*words, "--file", str(story.folder / "fleet.yaml")], wiring)
        printed = capsys.readouterr()
        return f"{printed.out}{printed.err}"

    return said


def written(folder: Path, but: set[str]) -> bytes:
    """All files of a folder, whoever wrote them."""
    return b"\n".join(
        path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in but
    )


def assert_clean(what: bytes) -> None:
    for value in VALUES.values():
        for spelling in spellings(value):
            assert spelling not in what, spelling


def labels_and_facts(story: Story) -> str:
    """What the nodes say of containers beside their environment."""
    made = [item for node in story.nodes.nodes for item in node.runtime.containers.values()]
    return repr([(item.labels, item.fact(), item.spec, item.error) for item in made])


EVERY_COMMAND = (
    "validate",
    "plan",
    "plan --json",
    "plan --format markdown",
    "apply --yes",
    "status",
    "status --json",
    "status --probe --json",
    "drift",
    "drift --json",
    "drift --format markdown",
    "logs solo",
    "history",
    "history --json",
)


def test_no_artefact_of_a_life_holds_a_value(
    keeper: Keeper, capsys: pytest.CaptureFixture[str], logged: io.StringIO, tmp_path: Path
) -> None:
    said = command(keeper, capsys)
    text = said("plan", "--out", str(tmp_path / "first.plan"))
    text += "".join(said(*words.split()) for words in EVERY_COMMAND)
    keeper.set("env", "another-value")
    text += said("plan", "--out", str(tmp_path / "second.plan"))
    text += "".join(said(*words.split()) for words in (*EVERY_COMMAND, *EVERY_COMMAND))
    assert "env:POISON" in text
    assert "a secret changed: env.HF_TOKEN" in text
    assert "another-value" not in text
    assert_clean(text.encode())
    assert_clean(logged.getvalue().encode())
    assert_clean(written(tmp_path, but={"key", "said", "secret.key"}))
    assert_clean(labels_and_facts(keeper.story).encode())
    assert b"another-value" not in written(tmp_path, but={"key", "said", "secret.key"})


def dying() -> Exits:
    """An engine that prints its environment as it ends."""
    lines = [f"{LONG_NAMES[kind]}={value}" for kind, value in VALUES.items()]
    lines += [json.dumps(VALUES), quote(VALUES["file"], safe=""), repr(VALUES)]
    lines += [base64.b64encode(f"user:{value}".encode()).decode() for value in VALUES.values()]
    return Exits(after_s=2.0, code=3, lines=tuple(lines))


def test_what_a_dying_engine_prints_of_its_environment_is_not_told_to_a_forge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Keeper(Story(tmp_path / "desk", SOLO, behaviour=dying()), monkeypatch).story
    plan, events = story.plan(), list[Event]()
    story.apply(events.append)
    comment = commit_comment(plan, None, events)
    assert "[redacted]" in comment
    assert_clean(f"{comment}{commit_statuses(plan, events)}".encode())


def test_what_a_dying_engine_prints_of_its_environment_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], logged: io.StringIO
) -> None:
    keeper = Keeper(Story(tmp_path / "desk", SOLO, behaviour=dying()), monkeypatch)
    said = command(keeper, capsys)
    text = "".join(said(*words.split()) for words in ("apply --yes", "logs solo", "status --json", "history --json"))
    assert "HF_TOKEN=[redacted]" in text
    assert_clean(text.encode())
    assert_clean(written(tmp_path, but={"key", "said", "secret.key"}))
    assert_clean(logged.getvalue().encode())


def test_an_error_nobody_foresaw_is_told_with_its_traceback_and_without_the_values_in_it(
    keeper: Keeper, capsys: pytest.CaptureFixture[str], logged: io.StringIO, tmp_path: Path
) -> None:
    def surprise(_: object) -> None:
        raise LookupError(f"what was sent: {VALUES} {json.dumps(VALUES)} {list(VALUES.values())[2]}")

    keeper.story.nodes.inject(Fault.do(None, "create", surprise, after=False))
    text = command(keeper, capsys)("apply", "--yes")
    assert "internal error, please report it: LookupError" in text
    assert "Traceback" in text
    assert_clean(text.encode())
    assert_clean(written(tmp_path, but={"key", "said", "secret.key"}))
    assert_clean(logged.getvalue().encode())


def test_a_lane_without_secrets_resolves_none_and_needs_no_key(
    tmp_path: Path, own_secret_key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story(tmp_path / "desk", SOLO)
    assert Exit.OK == story.apply().exit
    assert story.plan().is_settled
    assert not own_secret_key.exists()


def test_a_value_that_a_hand_put_in_the_place_of_a_secret_is_told_by_its_mark_where_the_key_is(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(keeper)
    [found] = [item for node in keeper.story.nodes.nodes for item in node.runtime.containers.values()]
    found.env = tuple((key, "by-hand" if key == "HF_TOKEN" else value) for key, value in found.env)
    (item,) = keeper.story.run(drift)
    assert ("config", "env.HF_TOKEN") == (item.kind, item.field)
    assert item.expected.startswith("secret ")
    assert item.expected != item.found
    assert "by-hand" not in repr(item)
    monkeypatch.setenv("FLEET_SECRET_KEY_FILE", "/nonexistent/key")
    assert () == keeper.story.run(drift)
