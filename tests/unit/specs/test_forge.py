"""The forge of a spec: what it takes, and what each refusal says. No message repeats what may be a password."""

from typing import Any

import pytest
from pydantic import ValidationError

from specs import Forge

TOKEN = {"secret": "env:FORGE_TOKEN"}


def forge(**keys: Any) -> Forge:
    return Forge.model_validate({"kind": "forgejo", "repo": "ops/fleet", "token": TOKEN, **keys})


@pytest.mark.parametrize(
    ("keys", "address"),
    [
        ({"kind": "github"}, "https://api.github.com"),
        ({"kind": "gitlab", "repo": "ops/site/fleet"}, "https://gitlab.com"),
        ({"url": "https://git.example.com/"}, "https://git.example.com"),
        ({"url": "https://example.com:8443/forge"}, "https://example.com:8443/forge"),
        ({"url": "http://127.0.0.1:3000"}, "http://127.0.0.1:3000"),
        ({"url": "http://[::1]:3000"}, "http://[::1]:3000"),
        ({"url": "http://localhost"}, "http://localhost"),
        ({"url": "http://git.lan", "insecure": True}, "http://git.lan"),
    ],
)
def test_a_forge_has_an_address(keys: dict[str, Any], address: str) -> None:
    assert address == forge(**keys).address


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "needs its `url`"),
        ({"url": "http://git.lan"}, "the `url` of a forge is https"),
        ({"url": "http://127.0.0.1.example.com"}, "the `url` of a forge is https"),
        ({"url": "ftp://git.lan"}, "not an http or https URL"),
        ({"url": "https://git.lan/\r\nX: y"}, "not an http or https URL"),
        ({"url": "https://me:hunter2@git.lan"}, "no user and no password"),
        ({"url": "https://git.lan?token=hunter2"}, "no query"),
        ({"kind": "github", "repo": "fleet"}, "'fleet' is not a repository"),
        ({"kind": "github", "repo": "https://github.com/ops/fleet.git"}, "leave the host and .git out"),
        ({"kind": "github", "repo": "ops/.."}, "is not a repository"),
        ({"kind": "github", "repo": "ops/fleet?x"}, "is not a repository"),
        ({"kind": "github", "repo": "ops/site/fleet"}, "It is owner/name"),
        ({"kind": "svn"}, "'github', 'gitlab' or 'forgejo'"),
        ({"kind": "github", "token": "ghp_hunter2"}, "token"),
        ({"kind": "github", "token": {"secret": "ghp_hunter2"}}, "not a reference to a secret"),
    ],
)
def test_what_cannot_be_a_forge_says_why(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        forge(**keys)
    told = [f"{error['loc']} {error['msg']} {error.get('ctx')}" for error in raised.value.errors(include_input=False)]
    assert said in " ".join(told)
    assert "hunter2" not in f"{told} {raised.value}"
