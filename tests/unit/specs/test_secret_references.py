"""A reference says where the controller finds a secret. What is wrong with one is told without repeating it."""

import re
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from specs.fields import SecretReference
from specs.secret_references import PATTERN

ADAPTER: TypeAdapter[Any] = TypeAdapter(SecretReference, config={"hide_input_in_errors": True})

GOOD = (
    "env:HF_TOKEN",
    "file:/run/secrets/token",
    "file:/with a space/#1",
    "command:pass show hf/token",
    "command:/usr/local/bin/token --for 'the lab'",
    "command:sh -c 'vault read x | jq -r .token'",
    "sops:/etc/fleet/secrets.yaml#hf.token",
    "sops:/a#b.yaml#tokens.0",
)

BAD = (
    ("hf_s3cr3t", "not a reference to a secret", "write env:NAME, file:/absolute/path"),
    ("evn:S3CR3T", "not a reference to a secret", "did you mean 'env'?"),
    ("comand:s3cr3t", "not a reference to a secret", "did you mean 'command'?"),
    ("ENV:S3CR3T", "not a reference to a secret", "did you mean 'env'?"),
    ("$S3CR3T", "not a reference to a secret", "write env:NAME, without the $"),
    ("/run/s3cr3t", "not a reference to a secret", "write file:/absolute/path"),
    ("env:", "env: wants the name of a variable", ""),
    ("env:$S3CR3T", "env: wants the name of a variable", "without the $"),
    ("env:1S3CR3T", "env: wants the name of a variable", ""),
    ("file:s3cr3t", "file: wants an absolute path", "write file:/absolute/path"),
    ("file:~/s3cr3t", "file: wants an absolute path", ""),
    ("file:/s3cr3t\nx", "file: is one line", ""),
    ("command:", "command: wants a program", "command:pass show hf/token"),
    ("command:''", "command: wants a program", ""),
    ("command:echo 's3cr3t", "command: has a quote that does not end", ""),
    ("command:./s3cr3t", "command: wants a program by its name or its absolute path", ""),
    ("command:cat s3cr3t | head", "command: has a word that only a shell understands", "write command:sh -c '...'"),
    ("sops:/s3cr3t.yaml", "sops: wants an absolute path, '#'", "write sops:/path/file.yaml#key.path"),
    ("sops:s3cr3t.yaml#a", "sops: wants an absolute path, '#'", ""),
    ("sops:/s3cr3t.yaml#a..b", "sops: has no path of a key", ""),
    ('sops:/s3cr3t.yaml#a"]["b', "sops: has no path of a key", ""),
)


@pytest.mark.parametrize("text", GOOD)
def test_good_references_stay_as_they_are(text: str) -> None:
    assert text == ADAPTER.validate_python(text)
    assert re.search(PATTERN, text)


@pytest.mark.parametrize(("text", "summary", "hint"), BAD, ids=[text for text, _, _ in BAD])
def test_what_is_wrong_is_told_without_the_text(text: str, summary: str, hint: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ADAPTER.validate_python(text)
    (fault,) = caught.value.errors(include_input=False)
    assert fault["ctx"]["summary"].startswith(summary)
    assert hint in fault["ctx"]["hint"]
    assert "s3cr3t" not in str(fault["ctx"]).lower()
    assert "s3cr3t" not in str(caught.value).lower()
