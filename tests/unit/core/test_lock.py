"""The lock: its text, what is refused in it, and when it contradicts the spec."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.desired import ImagePin
from reconciler.core.lock import (
    Lock,
    LockedImage,
    LockedLayer,
    LockedPlatform,
    LockError,
    contradictions,
    insist_on_agreement,
)
from reconciler.core.lock_text import lock_text, parse_lock
from tests.unit.core import build

GOLDEN = """\
{
  "schema": "fleet.lock/1",
  "images": [
    {
      "kind": "id",
      "digest": "sha256:9999999999999999999999999999999999999999999999999999999999999999",
      "platforms": [
        {
          "platform": "linux/arm64",
          "config": {"digest": "sha256:9999999999999999999999999999999999999999999999999999999999999999", "bytes": 0},
          "layers": [
            {"diff_id": "sha256:8888888888888888888888888888888888888888888888888888888888888888"}
          ]
        }
      ]
    },
    {
      "name": "ghcr.io/owner/engine:v1",
      "kind": "digest",
      "digest": "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "bytes": 900,
      "platforms": [
        {
          "platform": "linux/amd64",
          "manifest": {"digest": "sha256:1111111111111111111111111111111111111111111111111111111111111111", "bytes": 500},
          "config": {"digest": "sha256:2222222222222222222222222222222222222222222222222222222222222222", "bytes": 700},
          "layers": []
        },
        {
          "platform": "linux/arm64",
          "manifest": {"digest": "sha256:3333333333333333333333333333333333333333333333333333333333333333", "bytes": 501},
          "config": {"digest": "sha256:4444444444444444444444444444444444444444444444444444444444444444", "bytes": 701},
          "layers": [
            {"digest": "sha256:5555555555555555555555555555555555555555555555555555555555555555", "bytes": 10, "diff_id": "sha256:6666666666666666666666666666666666666666666666666666666666666666"},
            {"digest": "sha256:7777777777777777777777777777777777777777777777777777777777777777", "bytes": 20, "diff_id": "sha256:8888888888888888888888888888888888888888888888888888888888888888", "unpacked": 55}
          ]
        }
      ]
    }
  ]
}
"""  # noqa: E501 - one line a digest is what the format promises

D = build.digest
LAYERS = (LockedLayer(D("5"), 10, D("6")), LockedLayer(D("7"), 20, D("8"), 55))
ARM = LockedPlatform("linux/arm64", D("3"), 501, D("4"), 701, LAYERS)
AMD = LockedPlatform("linux/amd64", D("1"), 500, D("2"), 700, ())
IMAGE = LockedImage("ghcr.io/owner/engine:v1", D("a"), "digest", (ARM, AMD), 900)
LOCAL = LockedImage("", D("9"), "id", (LockedPlatform("linux/arm64", "", 0, D("9"), 0, (LockedLayer("", 0, D("8")),)),))


def test_the_text_is_this() -> None:
    assert GOLDEN == lock_text(Lock((IMAGE, LOCAL)))


def test_nothing_locked_is_a_lock_too() -> None:
    assert '{\n  "schema": "fleet.lock/1",\n  "images": []\n}\n' == lock_text(Lock())
    assert Lock() == parse_lock(lock_text(Lock()))


digests = st.integers(min_value=0, max_value=16**8 - 1).map(lambda number: f"sha256:{number:064x}")
tops = st.integers(min_value=1, max_value=15).map(lambda number: f"sha256:{number:x}{'0' * 63}")
sizes = st.integers(min_value=1, max_value=2**45)
layers = st.builds(LockedLayer, digests, sizes, digests, st.none() | sizes)
names = st.from_regex(
    r"[a-z]{1,8}(\.[a-z]{2,3})?(:[0-9]{4})?/[a-z0-9/_-]{1,20}(:[A-Za-z0-9_.-]{1,10})?", fullmatch=True
)


@st.composite
def images(draw: st.DrawFn) -> LockedImage:
    platforms = draw(st.lists(st.sampled_from(("linux/amd64", "linux/arm64")), min_size=1, max_size=2, unique=True))
    made = tuple(
        LockedPlatform(
            name, draw(digests), draw(sizes), draw(digests), draw(sizes), tuple(draw(st.lists(layers, max_size=4)))
        )
        for name in sorted(platforms)
    )
    if len(made) == 1 and draw(st.booleans()):
        return LockedImage(draw(names), made[0].manifest, "digest", made, made[0].manifest_bytes)
    return LockedImage(draw(names), draw(tops), "digest", made, draw(sizes))


@given(st.lists(images(), max_size=4, unique_by=lambda image: (image.name, image.digest)))
def test_what_is_written_is_read_back_and_the_order_does_not_matter(made: list[LockedImage]) -> None:
    text = lock_text(Lock(tuple(made)))
    assert set(made) == set(parse_lock(text).images)
    assert text == lock_text(Lock(tuple(reversed(made))))
    assert text == lock_text(parse_lock(text))


Edit = Callable[[Any], Any]


def image_of(content: Any) -> Any:
    return content["images"][1]


def arm_of(content: Any) -> Any:
    return image_of(content)["platforms"][1]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda c: c.update(schema="fleet.lock/2"), "schema"),
        (lambda c: c.update(more=1), "unknown key 'more'"),
        (lambda c: c.pop("images"), "`images` is not a list"),
        (lambda c: c["images"].append(image_of(c)), "an image stands twice: ghcr.io/owner/engine:v1@sha256:aaaa"),
        (lambda c: image_of(c).update(digest="sha256:AB"), "images[1]: `digest`"),
        (lambda c: image_of(c).update(kind="tag"), "`kind`"),
        (lambda c: image_of(c).update(name="a@b"), "`name`"),
        (lambda c: image_of(c).update(name="a\nb"), "`name`"),
        (lambda c: image_of(c).pop("name"), "it has no name"),
        (lambda c: image_of(c).pop("bytes"), "`bytes` is missing"),
        (lambda c: image_of(c).update(platforms=[]), "no platform"),
        (lambda c: image_of(c)["platforms"].append(arm_of(c)), "a platform stands twice: linux/arm64"),
        (lambda c: image_of(c).update(digest=D("3")), "an index and of a platform's manifest"),
        (lambda c: image_of(c).update(digest=D("3"), platforms=[arm_of(c)]), "two sizes"),
        (lambda c: arm_of(c).update(platform="arm64"), "images[1].platforms[1]: 'arm64' is no platform"),
        (lambda c: arm_of(c).pop("config"), "platforms[1].config: it is not an object"),
        (lambda c: arm_of(c)["config"].update(bytes=-1), "`bytes` is not a number"),
        (lambda c: arm_of(c)["config"].update(bytes=True), "`bytes` is not a number"),
        (lambda c: arm_of(c)["layers"][1].update(bytes="20"), "platforms[1].layers[1]: `bytes`"),
        (lambda c: arm_of(c)["layers"][0].pop("diff_id"), "`diff_id`"),
        (lambda c: arm_of(c)["layers"][0].pop("digest"), "layers[0]: `digest`"),
        (lambda c: c["images"][0].update(name="mine"), "a local build has no name"),
        (lambda c: c["images"][0].update(digest=D("b")), "whose config is its id"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(edit: Edit, said: str) -> None:
    content = json.loads(GOLDEN)
    edit(content)
    with pytest.raises(LockError) as told:
        parse_lock(json.dumps(content))
    assert said in told.value.message
    assert "fleet pin --all" in told.value.hint


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "<<<<<<< HEAD\n" + GOLDEN])
def test_what_is_no_lock_is_refused(text: str) -> None:
    with pytest.raises(LockError):
        parse_lock(text)


def written(reference: str) -> ImagePin:
    return ImagePin(reference, reference.rpartition("@")[2], "digest", "ghcr.io", "owner/engine")


def test_a_spec_that_pins_another_digest_under_a_locked_name_is_contradicted() -> None:
    other = written(f"ghcr.io/owner/engine:v1@{D('b')}")
    assert (f"fleet.lock has ghcr.io/owner/engine:v1 at {D('a')}, but the spec pins {D('b')}",) == contradictions(
        Lock((IMAGE,)), [other, other]
    )


def test_what_is_locked_or_not_locked_at_all_is_no_contradiction() -> None:
    both = Lock((IMAGE, replace(IMAGE, digest=D("b"))))
    pins = [
        written(f"ghcr.io/owner/engine:v1@{D('a')}"),
        written(f"ghcr.io/owner/engine:v1@{D('b')}"),
        written(f"ghcr.io/owner/engine:v2@{D('c')}"),
        ImagePin(D("d"), D("d"), "id"),
    ]
    assert () == contradictions(both, pins)


def test_a_fleet_whose_lock_disagrees_is_refused_with_the_next_step() -> None:
    wanted = build.desired(build.gang(image=written(f"ghcr.io/owner/engine:v1@{D('b')}")))
    insist_on_agreement(Lock(), wanted)
    with pytest.raises(LockError, match="but the spec pins") as told:
        insist_on_agreement(Lock((IMAGE,)), wanted)
    assert "fleet pin LANE" in told.value.hint


def test_a_pin_learns_its_configs_from_the_lock() -> None:
    lock = Lock((IMAGE, replace(LOCAL, platforms=(replace(LOCAL.platforms[0], config=""),))))
    assert (D("4"), D("2")) == lock.pinned(written(f"x@{D('a')}")).configs
    assert () == lock.pinned(ImagePin(D("9"), D("9"), "id")).configs
    assert () == lock.pinned(written(f"x@{D('c')}")).configs
