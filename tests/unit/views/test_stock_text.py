"""The stock of images as people and programs see it. Read the files in `golden/`."""

import json
from dataclasses import replace

from reconciler.core.garbage import Blob, Collected, Ending, Removed, Stock, VaultFacts, VaultPlan, gc_plan
from reconciler.core.identity import keep_tag
from reconciler.core.observed import Container, LocalImage, Unknown, UnknownKind
from reconciler.core.retention import Holding, Rules, Wanted, judged
from reconciler.views.stock_text import collected_text, gc_text, removed_text, stock_json, stock_text
from tests.unit.core.build import GIB, pin
from tests.unit.views.golden import assert_golden

VLLM = "ghcr.io/example/vllm"
NOW = 1_800_000_000.0
DAY = 86400.0


def image(fill: str, day: int, names: tuple[str, ...] | None = None) -> LocalImage:
    """An image of 14 GiB and some, with a digest of one digit, that fleet brought."""
    digest = f"sha256:{fill * 64}"
    kept = (f"{VLLM}:{keep_tag(digest)}",)
    tagged = f"2026-11-{day:02}T07:04:11.5Z"
    size = 14 * GIB + day * GIB // 7
    return LocalImage(digest, (digest,), kept if names is None else names, size_bytes=size, tagged_at=tagged)


PINNED, KEPT, SPARE, OLD = image("a", 29), image("b", 20), image("c", 11), image("d", 2)
FOREIGN = replace(image("e", 5, ("nginx:1.27",)), size_bytes=70 * 2**20, tagged_at="0001-01-01T00:00:00Z")
USED = image("f", 3, ("ghcr.io/example/exporter:v2",))
BROKEN = replace(image("0", 28), usable=False, size_bytes=None)

RULES = Rules((Wanted(pin("a", VLLM), ("glm53-2x", "qwen-coder")),), 1, ("/srv/archive",))
AWAY = Unknown("dgx4", UnknownKind.TIMEOUT, "no answer within 10 s", "is it on?\nsee its console")


def held(node: str, *images: LocalImage, users: tuple[Container, ...] = ()) -> tuple[Holding, ...]:
    return judged(node, images, users, RULES)


def full_stock() -> Stock:
    exporter = Container("x", "exporter", "running", USED.id)
    vault = VaultFacts(
        path="/home/ops/.cache/fleet/vault",
        seen_s=NOW,
        roots={"lab": (PINNED.id, OLD.id), "other": (FOREIGN.id,)},
        blobs=(Blob(PINNED.id, 2 * GIB, NOW - DAY), Blob(OLD.id, GIB, NOW - DAY), Blob(KEPT.id, 5 * 2**20, NOW - DAY)),
        parts=(Blob("blobs/sha256/x.part", 300 * 2**20, NOW - 2 * DAY),),
        below={},
    )
    dgx1 = held("dgx1", PINNED, KEPT, SPARE, OLD, FOREIGN, USED, users=(exporter,))
    return Stock("lab", RULES, dgx1 + held("dgx2", KEPT, BROKEN), (), vault)


def test_the_stock_as_a_table() -> None:
    assert_golden("stock.txt", stock_text(replace(full_stock(), unknown=(AWAY,))))


def test_the_stock_as_json() -> None:
    text = stock_json(full_stock().on("dgx2"))
    assert_golden("stock.json.txt", text)
    assert ["dgx2"] == sorted({item["node"] for item in json.loads(text)["images"]})


def test_an_empty_stock() -> None:
    text = stock_text(Stock("lab", RULES, (), ()))
    assert "fleet lab · 0 images, 0 copies on 0 nodes\nvault: none yet\n" == text


def test_what_would_be_collected() -> None:
    assert_golden("gc.txt", gc_text(gc_plan(full_stock())))


def test_what_stays_for_a_node_that_cannot_be_read() -> None:
    assert_golden("gc_unknown.txt", gc_text(gc_plan(replace(full_stock(), unknown=(AWAY,)))))


def test_nothing_to_collect_is_said() -> None:
    assert gc_text(gc_plan(Stock("lab", RULES, held("dgx1", PINNED), ()))).startswith(
        "fleet lab · nothing to collect\n"
    )


def test_images_that_are_released_before_their_blobs_go_are_counted() -> None:
    vault = VaultFacts("/v", NOW, {"lab": (OLD.id,)}, (Blob(OLD.id, GIB, NOW - 60),))
    expected = [
        "fleet lab · 1 image to let go of in the vault",
        "",
        "vault /v: lets go of 1 image",
        "  - sha256:dddddddddddd: no lane and no node of this fleet needs it",
        "  ! 1 blob (1.0 GiB) is younger than an hour and may be part of a transfer: kept until a later gc",
    ]
    assert expected == gc_text(gc_plan(Stock("lab", RULES, (), (), vault))).splitlines()


def test_why_a_vault_is_left_alone_is_said_also_when_nothing_is_to_do() -> None:
    vault = VaultFacts("/srv/archive/vault", NOW, {}, protected_by="/srv/archive")
    text = gc_text(gc_plan(Stock("lab", RULES, (), (), vault)))
    assert "vault /srv/archive/vault: nothing\n  ! protected: images.protect: /srv/archive\n" in text


def test_each_removal_as_it_happens() -> None:
    told = [
        Removed("dgx1", "x@sha256:ab", Ending.REMOVED),
        Removed("dgx1", "x@sha256:ab", Ending.GONE),
        Removed("dgx1", "x@sha256:ab", Ending.LEFT, "it is used now: container y"),
        Removed("dgx1", "x@sha256:ab", Ending.FAILED, "no space\nleft", "free some"),
    ]
    expected = [
        "dgx1: removed x@sha256:ab",
        "dgx1: gone already: x@sha256:ab",
        "dgx1: left x@sha256:ab: it is used now: container y",
        "dgx1: NOT removed x@sha256:ab: no space\\nleft",
        "      free some",
    ]
    assert expected == "".join(map(removed_text, told)).splitlines()


def test_what_came_of_it() -> None:
    removals = (
        Removed("dgx1", "a", Ending.REMOVED),
        Removed("dgx1", "b", Ending.FAILED),
        Removed("vault", "/v", Ending.REMOVED),
    )
    expected = [
        "  ! dgx4: no answer within 10 s; what is left of its images stays",
        "      is it on?",
        "      see its console",
        "images: 1 removed, 1 failed",
        "dgx1: about 14.0 GiB freed",
        "dgx2: how much was freed is not known",
    ]
    done = Collected(removals, {"vault": 0, "dgx1": 14 * GIB, "dgx2": None}, (AWAY,))
    assert expected == collected_text(done).splitlines()


def test_what_went_of_the_vault_is_told_and_what_goes_later() -> None:
    gone = VaultPlan("/v", ("a", "b"), (Blob("x", 1, 0.0),), young=62, young_bytes=77 * 2**20)
    told = removed_text(Removed("vault", "/v", Ending.REMOVED, vault=gone))
    later = "62 blobs (77.0 MiB) stay until they are an hour old, since a transfer may need them"
    assert f"vault /v: let go of 2 images, removed 1 blob; {later}\n" == told
    failed = removed_text(Removed("vault", "/v", Ending.FAILED, "disk is read-only"))
    assert "vault /v: NOT collected: disk is read-only\n" == failed


def test_a_released_image_is_called_as_a_node_calls_it() -> None:
    vault = VaultFacts("/v", NOW, {"lab": (OLD.id,)}, (Blob(OLD.id, GIB, NOW - 60),))
    text = gc_text(gc_plan(Stock("lab", replace(RULES, retain=0), held("dgx1", SPARE, OLD), (), vault)))
    assert "  - ghcr.io/example/vllm@sha256:dddddddddddd: no lane" in text


def test_a_node_without_images_is_a_row() -> None:
    text = stock_text(Stock("lab", RULES, held("dgx1", PINNED), (), nodes=("dgx1", "dgx2")))
    assert text.startswith("fleet lab · 1 image, 1 copy on 2 nodes\n")
    assert "\ndgx2  (none)\n" in text
