"""What is refused of a model before a boot reads it, check by check, with the exact words."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.core.checks import CHECKS
from reconciler.core.desired import Gang
from reconciler.core.models import BadLink, Degrees, ModelFacts, ModelFile, ModelPlace, ModelWant, Shelf
from reconciler.core.observed import NodeFacts
from tests.unit.core.build import container, desired, facts, gang, observed, plan

PLACE = ModelPlace("/nas/tiny", "/models/tiny", (("/nas", "/models"),))
SUM, OTHER = "sha256:" + "1" * 64, "sha256:" + "2" * 64
REVISION = "3f2a" + "0" * 36
WANT = ModelWant("tiny", PLACE, revision=REVISION, verify=(("config.json", SUM),), degrees=Degrees(tensor=6))
DRAFT_PLACE = ModelPlace("/nas/draft", "/models/draft", (("/nas", "/models"),))
DRAFT = ModelWant("small", DRAFT_PLACE, is_draft=True)
LANE = gang("a", ("n1",), models=(WANT,))
DRAFTED = gang("a", ("n1",), models=(replace(WANT, degrees=Degrees()), DRAFT))

FILES = (ModelFile("config.json", 10, SUM), ModelFile("a.safetensors", 1000))
WHOLE = ModelFacts(PLACE, "folder", FILES, shards=("a.safetensors",), config='{"num_attention_heads": 12}')
WHOLE_DRAFT = ModelFacts(DRAFT_PLACE, "folder", FILES)
BRING = "bring it there (is its storage mounted?), or correct `path` of the model in the spec"


def refused(*found: ModelFacts, of: Gang = LANE, others: tuple[NodeFacts, ...] = ()) -> list[tuple[str, str, str]]:
    made = plan(desired(of, nodes=[item.node for item in others]), observed(facts("n1", models=found), *others))
    assert bool(made.refusals) == (not made.steps)
    return [(item.code, item.summary, item.hint) for item in made.refusals]


ROWS: list[tuple[str, str, str, Gang, tuple[ModelFacts, ...]]] = [
    (
        "model-missing",
        "model tiny is not on n1: there is no /nas/tiny",
        BRING,
        LANE,
        (ModelFacts(PLACE, "absent"),),
    ),
    (
        "model-partial",
        "model tiny on n1 is not whole: /nas/tiny lacks b.safetensors; 2 downloads did not end",
        BRING,
        LANE,
        (replace(WHOLE, shards=("a.safetensors", "b.safetensors"), incomplete=2),),
    ),
    (
        "model-links",
        (
            "model tiny on n1 breaks in the container: /models/tiny/b.safetensors leads to /hub/b, where nothing is "
            "mounted and 1 more link"
        ),
        "make the links relative and within one mounted folder, or mount the folder that they lead to, too",
        LANE,
        (replace(WHOLE, bad_links=(BadLink("b.safetensors", "/hub/b", True), BadLink("c", "/hub/c", True))),),
    ),
    (
        "model-revision",
        "model tiny on n1 is revision bbbbbbbbbbbb, the spec says 3f2a00000000",
        "correct `path` or `revision` of the model in the spec, or bring the pinned revision",
        LANE,
        (replace(WHOLE, commit="b" * 40),),
    ),
    (
        "model-verify",
        (
            "model tiny on n1 is not the one of `verify`: config.json has sha256:222222222222, the spec says "
            "sha256:111111111111"
        ),
        "bring the right files there, or correct `verify`; `fleet models verify tiny` hashes them all",
        LANE,
        (replace(WHOLE, files=(ModelFile("config.json", 10, OTHER), FILES[1])),),
    ),
    (
        "model-draft",
        "draft model small is not on n1: there is no /nas/draft",
        BRING,
        DRAFTED,
        (WHOLE, ModelFacts(DRAFT_PLACE, "absent")),
    ),
    (
        "model-draft",
        "no mount of the lane shows draft model small at /nas/draft",
        "add a mount with its folder to the lane",
        gang("a", ("n1",), models=(replace(DRAFT, is_mounted=False),)),
        (),
    ),
    (
        "model-heads",
        (
            "model tiny cannot be split so, by its config.json on n1: 8 attention heads cannot be divided by tensor 6: "
            "tensor can be 1, 2, 4"
        ),
        "correct `parallel` of the lane",
        LANE,
        (replace(WHOLE, config='{"num_attention_heads": 8}'),),
    ),
]


@pytest.mark.parametrize(("code", "summary", "hint", "of", "found"), ROWS, ids=[f"{row[0]}" for row in ROWS])
def test_it_is_refused(code: str, summary: str, hint: str, of: Gang, found: tuple[ModelFacts, ...]) -> None:
    assert [(code, summary, hint)] == refused(*found, of=of)


def test_every_check_has_a_row_here() -> None:
    there = {check.id for check in CHECKS if check.id.startswith("model-")}
    assert there == {code for code, *_ in ROWS} | {"model-disk"}  # of copies: see tests/lifecycle/test_models.py


FINE: list[tuple[str, Gang, tuple[ModelFacts, ...]]] = [
    ("a whole model", LANE, (WHOLE,)),
    ("a model and its draft", DRAFTED, (WHOLE, WHOLE_DRAFT)),
    ("it was not looked at", LANE, ()),
    ("the login may not look", LANE, (ModelFacts(PLACE, "unknown"),)),
    ("the pinned revision, shortened", LANE, (replace(WHOLE, commit=REVISION[:8]),)),
    ("the checksum was not told", LANE, (replace(WHOLE, files=(ModelFile("config.json", 10), FILES[1])),)),
    ("a config that makes no sense", LANE, (replace(WHOLE, config="{"),)),
    ("a download of another revision did not end", LANE, (replace(WHOLE, incomplete=3),)),
]


@pytest.mark.parametrize(("what", "of", "found"), FINE, ids=[row[0] for row in FINE])
def test_it_is_not_refused(what: str, of: Gang, found: tuple[ModelFacts, ...]) -> None:
    assert [] == refused(*found, of=of), what


def test_a_lane_that_runs_is_not_judged_by_its_files() -> None:
    made = plan(desired(LANE), observed(facts("n1", container(LANE), models=(ModelFacts(PLACE, "absent"),))))
    assert () == made.refusals


def test_who_has_it_is_named() -> None:
    shelf = Shelf("n2", "10.0.0.2", (WANT,))
    there: Any = facts("n2", models=(replace(WHOLE, has_rsync=True),))
    found = refused(ModelFacts(PLACE, "absent", has_rsync=True), of=replace(LANE, shelves=(shelf,)), others=(there,))
    assert [("model-missing", "n2 has it: `fleet models sync tiny` copies it")] == [
        (item[0], item[2]) for item in found
    ]


def test_a_folder_with_nothing_but_a_broken_download_is_not_whole() -> None:
    found = refused(ModelFacts(PLACE, "folder", (FILES[0],), incomplete=1))
    assert "model tiny on n1 is not whole: /nas/tiny lacks weights; 1 download did not end" == found[0][1]
