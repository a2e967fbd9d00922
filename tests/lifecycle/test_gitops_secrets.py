"""What the agent keeps and tells holds no secret, also when an engine prints its environment as it dies."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from reconciler.core.envelope import enveloped
from reconciler.testing import Exits
from reconciler.views.event_json import event_line
from tests.lifecycle.following import Followed
from tests.lifecycle.test_secrets import SOLO, spellings

POISON = 'poison-agent/"+ \\value-1234'
SECRET = 'stop_grace: 5s\n    env: {HF_TOKEN: {secret: "env:POISON"}}'


def kept(folder: Path) -> Iterator[bytes]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.read_bytes()


DYING = Exits(after_s=2.0, code=3, lines=(f"HF_TOKEN={POISON}", quote(POISON), repr({"HF_TOKEN": POISON})))


@pytest.mark.parametrize(("more", "code"), [({}, 0), ({"behaviour": DYING}, 6)], ids=["serving", "dying"])
def test_nothing_that_the_agent_writes_has_a_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], code: int
) -> None:
    monkeypatch.setenv("POISON", POISON)
    branch = Followed(tmp_path, placements=SOLO, **more)
    branch.story.edit("stop_grace: 5s", SECRET)
    branch.push()
    assert code == branch.once(), branch.lines
    containers = [item for node in branch.story.nodes.nodes for item in node.runtime.containers.values()]
    assert POISON in [dict(item.env).get("HF_TOKEN") for item in containers]

    events = [event_line(enveloped(event, "run", number, 0.0)) for number, event in enumerate(branch.told, 1)]
    written = [*kept(branch.workplace.folder), *(text.encode() for text in (*events, *branch.lines))]
    assert any(b"HF_TOKEN" in content for content in written)
    for spelling in spellings(POISON):
        assert [] == [content for content in written if spelling in content]
