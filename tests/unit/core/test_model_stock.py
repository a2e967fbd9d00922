"""What a node has of a model, in one word; and what reading it came to."""

from dataclasses import replace

import pytest

from reconciler.core.model_stock import FileFault, FileProof, ModelHolding, Proof, Standing, proved
from reconciler.core.models import BadLink, ModelFacts, ModelFile, ModelPlace, ModelWant

PLACE = ModelPlace("/m/x", "/m/x")
SUM, OTHER, BLOB = ("sha256:" + digit * 64 for digit in "123")
WANT = ModelWant("x", PLACE, revision="a" * 40, verify=(("config.json", SUM),))
FILES = (ModelFile("a.safetensors", 100, end=f"/m/blobs/{'3' * 64}"), ModelFile("config.json", 10, SUM))
WHOLE = ModelFacts(PLACE, "folder", FILES, shards=("a.safetensors",))

ROWS = [
    (Standing.WHOLE, "for lane", WHOLE),
    (Standing.ABSENT, "for lane", ModelFacts(PLACE, "absent")),
    (Standing.UNKNOWN, "for lane", ModelFacts(PLACE, "unknown")),
    (Standing.PARTIAL, "lacks b and 1 more", replace(WHOLE, shards=("a.safetensors", "b", "c"))),
    (Standing.BROKEN, "b leads to /out", replace(WHOLE, bad_links=(BadLink("b", "/out", is_outside=True),))),
    (Standing.OTHER, "revision bbbbbbbbbbbb, not aaaaaaaaaaaa", replace(WHOLE, commit="b" * 40)),
    (
        Standing.OTHER,
        "config.json has sha256:222222222222, the spec says sha256:111111111111",
        replace(WHOLE, files=(ModelFile("config.json", 10, OTHER), FILES[0])),
    ),
]


@pytest.mark.parametrize(("standing", "why", "facts"), ROWS)
def test_a_holding_is_judged(standing: Standing, why: str, facts: ModelFacts) -> None:
    holding = ModelHolding("n1", WANT, facts, ("lane",))
    assert (standing, why) == (holding.standing, holding.why)


def told(**changed: FileProof) -> Proof:
    right = {"config.json": FileProof(10, SUM), "a.safetensors": FileProof(100, BLOB, 100)}
    return proved(ModelHolding("n1", WANT, WHOLE), {**right, **changed})


def test_all_checksums_that_are_known_are_compared() -> None:
    assert Proof("n1", "x", files=2, bytes=110) == told()


def test_a_wrong_checksum_is_a_fault() -> None:
    wrong = told(**{"a.safetensors": FileProof(100, OTHER, 100)})
    assert (FileFault("a.safetensors", "has sha256:222222222222, not sha256:333333333333"),) == wrong.faults
    assert (1, 10) == (wrong.files, wrong.bytes)


def test_a_file_that_was_cut_off_is_a_fault_by_its_own_word() -> None:
    short = told(**{"a.safetensors": FileProof(60, OTHER, 100)})
    assert (FileFault("a.safetensors", "has 60 bytes, and says that it has 100"),) == short.faults


def test_a_file_that_cannot_be_read_is_a_fault() -> None:
    assert FileFault("config.json", "cannot be read") in proved(ModelHolding("n1", WANT, WHOLE), {}).faults


def test_what_is_not_there_is_not_proved() -> None:
    absent = proved(ModelHolding("n1", replace(WANT, verify=()), ModelFacts(PLACE, "absent")), {})
    assert (FileFault("", "is absent: /m/x"),) == absent.faults
