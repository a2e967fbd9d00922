"""An image is named by content, or refused with the way to pin it."""

from dataclasses import astuple

import pytest

from specs import ImageRef
from tests.unit.specs.helpers import DIGEST

PINNED = {
    f"ghcr.io/owner/engine@{DIGEST}": ("ghcr.io", "owner/engine"),
    f"ghcr.io/owner/engine:v1.2-x@{DIGEST}": ("ghcr.io", "owner/engine"),
    f"127.0.0.1:5000/engine@{DIGEST}": ("127.0.0.1:5000", "engine"),
    f"[::1]:5000/engine@{DIGEST}": ("[::1]:5000", "engine"),
    f"localhost/engine@{DIGEST}": ("localhost", "engine"),
    f"redis@{DIGEST}": ("docker.io", "library/redis"),
    f"vllm/vllm-openai@{DIGEST}": ("docker.io", "vllm/vllm-openai"),
    f"docker.io/redis@{DIGEST}": ("docker.io", "library/redis"),
    f"registry:5000/a/b__c/d--e@{DIGEST}": ("registry:5000", "a/b__c/d--e"),
}


@pytest.mark.parametrize(("text", "expected"), PINNED.items())
def test_a_reference_with_a_digest_names_registry_and_repository(text: str, expected: tuple[str, str]) -> None:
    assert (text, *expected, DIGEST, "digest") == astuple(ImageRef.parse(text))


def test_a_local_build_is_named_by_its_image_id() -> None:
    assert (DIGEST, "", "", DIGEST, "id") == astuple(ImageRef.parse(DIGEST))


@pytest.mark.parametrize("text", ["vllm/vllm-openai:latest", "redis", "ghcr.io/a/b:1.2", "", ":tag", "a b"])
def test_a_reference_without_a_digest_is_refused_with_the_way_to_pin_it(text: str) -> None:
    with pytest.raises(ValueError, match="is not pinned by digest") as caught:
        ImageRef.parse(text)
    context = caught.value.context  # type: ignore[attr-defined] # PydanticCustomError
    assert "A tag can move" in context["detail"]
    assert context["hint"].startswith("`fleet pin LANE --write` ")
    assert context["hint"].endswith(f"{text or 'REPO:TAG'}@sha256:<digest>")


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("'sha256:12' is not a whole image id", "sha256:12"),
        ("'4b7049d1e00f' is not a whole image id", "4b7049d1e00f"),
        ("'sha256:c977' is not an image digest", "ghcr.io/a/b@sha256:c977"),
        (f"'{DIGEST.upper()[:80]}' is not an image digest", f"a/b@{DIGEST.upper()}"),
        (f"'sha512:{'a' * 73}' is not an image digest", f"a/b@sha512:{'a' * 128}"),
        ("'Owner/x' is not an image repository", f"ghcr.io/Owner/x@{DIGEST}"),
        ("'' is not an image repository", f"@{DIGEST}"),
        ("'a//b' is not an image repository", f"a//b@{DIGEST}"),
        ("'-x.io' is not a registry host", f"-x.io/a@{DIGEST}"),
        ("'t g' is not an image tag", f"a/b:t g@{DIGEST}"),
        ("'' is not an image tag", f"a/b:@{DIGEST}"),
        (f"'x@{DIGEST}' is not an image digest", f"a@x@{DIGEST}"),
    ],
)
def test_a_malformed_reference_says_which_part_is_wrong(expected: str, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        ImageRef.parse(text)
    assert expected == str(caught.value)
