"""Contract of `protocols.Models`."""

import hashlib

import pytest

from reconciler.core.fetching import copy_of
from reconciler.core.model_sources import Source
from reconciler.core.models import ModelCopy, ModelFacts, ModelPlace, ModelWant
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.protocols import Fleet
from tests.contract.subject import MODELS, SHELF, TIGHT, Subject, Told, fleet_scene

CONFIG = b'{"num_attention_heads": 4}'
FILES = {"config.json": CONFIG, "a.safetensors": b"weights!" * 100_000}


def place(path: str) -> ModelPlace:
    """As a container sees it that has the folder of models at another path."""
    return ModelPlace(path, path.replace(MODELS, "/models", 1), ((MODELS, "/models"),))


MODEL = place(f"{SHELF}/tiny")


def sizes(facts: ModelFacts) -> dict[str, int]:
    return {item.path: item.bytes for item in facts.files}


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


async def planned(fleet: Fleet, subject: Subject, model: ModelPlace = MODEL) -> ModelCopy:
    """The copy of what the neighbour has, to the node."""
    node, neighbour = await fleet.connect(subject.name, 10), await fleet.connect(subject.neighbour, 10)
    want = ModelWant("tiny", model)
    source = Source(subject.neighbour, subject.neighbour_address, want, await neighbour.models.look(model))
    return copy_of(source, want, await node.models.look(model), subject.address)


@fleet_scene
async def test_a_look_tells_files_with_lengths_and_the_checksums_that_were_asked_for(
    fleet: Fleet, subject: Subject
) -> None:
    subject.put_model(subject.name, MODEL.path, FILES)
    found = await (await fleet.connect(subject.name, 10)).models.look(MODEL, ["config.json"])
    assert ("folder", True, True) == (found.there, found.is_whole, found.has_rsync)
    assert {"config.json": len(CONFIG), "a.safetensors": 800_000} == sizes(found)
    assert {"config.json": digest(CONFIG), "a.safetensors": ""} == {item.path: item.digest for item in found.files}
    assert found.disk_free_bytes


@fleet_scene
async def test_a_look_tells_a_file_from_nothing(fleet: Fleet, subject: Subject) -> None:
    one, none = place(f"{SHELF}/one.gguf"), place(f"{SHELF}/none.gguf")
    subject.put_model(subject.name, one.path, b"GGUF")
    subject.take_model(subject.name, none.path)
    models = (await fleet.connect(subject.name, 10)).models
    found, nothing = await models.look(one), await models.look(none)
    assert ("file", {"one.gguf": 4}) == (found.there, sizes(found))
    assert ("absent", {}) == (nothing.there, sizes(nothing))


@fleet_scene
async def test_proving_hashes_what_it_is_asked_to_and_leaves_out_what_cannot_be_read(
    fleet: Fleet, subject: Subject
) -> None:
    subject.put_model(subject.name, MODEL.path, FILES)
    models = (await fleet.connect(subject.name, 10)).models
    found = await models.prove(MODEL.path, [*FILES, "none"], ["config.json", "none"], Told())
    assert {"config.json": digest(CONFIG), "a.safetensors": ""} == {name: item.digest for name, item in found.items()}
    assert {"config.json": len(CONFIG), "a.safetensors": 800_000} == {name: item.bytes for name, item in found.items()}


@fleet_scene
async def test_what_was_fetched_counts_once_it_is_adopted_and_both_may_happen_twice(
    fleet: Fleet, subject: Subject
) -> None:
    subject.put_model(subject.neighbour, MODEL.path, FILES)
    subject.take_model(subject.name, MODEL.path)
    copy, told = await planned(fleet, subject), Told()
    models = (await fleet.connect(subject.name, 10)).models
    for _ in range(2):
        await models.fetch(copy, told)
        assert "absent" == (await models.look(MODEL)).there
    assert 0 < max(step.done_bytes for step in told.steps) <= copy.bytes == 800_000 + len(CONFIG)
    for _ in range(2):
        await models.adopt(copy)
        found = await models.look(MODEL)
        assert ("folder", {"config.json": len(CONFIG), "a.safetensors": 800_000}) == (found.there, sizes(found))
    proof = await models.prove(MODEL.path, FILES, FILES, Told())
    assert {name: digest(data) for name, data in FILES.items()} == {name: item.digest for name, item in proof.items()}


@fleet_scene
async def test_a_model_of_one_file_comes_alone(fleet: Fleet, subject: Subject) -> None:
    one, other = place(f"{SHELF}/one.gguf"), place(f"{SHELF}/other.gguf")
    for path in (one.path, other.path):
        subject.put_model(subject.neighbour, path, b"GGUF" * 1000)
        subject.take_model(subject.name, path)
    copy = await planned(fleet, subject, one)
    models = (await fleet.connect(subject.name, 10)).models
    await models.fetch(copy, Told())
    assert "absent" == (await models.look(one)).there
    await models.adopt(copy)
    assert {"one.gguf": 4000} == sizes(await models.look(one))
    assert "absent" == (await models.look(other)).there


@fleet_scene
async def test_a_fetch_from_a_node_that_is_off_leaves_nothing_that_counts(fleet: Fleet, subject: Subject) -> None:
    subject.put_model(subject.neighbour, MODEL.path, FILES)
    subject.take_model(subject.name, MODEL.path)
    copy = await planned(fleet, subject)
    subject.power_off_neighbour()
    models = (await fleet.connect(subject.name, 10)).models
    with pytest.raises(NodeError):
        await models.fetch(copy, Told())
    assert "absent" == (await models.look(MODEL)).there


@fleet_scene
async def test_a_fetch_to_a_full_disk_says_so_and_leaves_nothing_that_counts(fleet: Fleet, subject: Subject) -> None:
    model = place(f"{TIGHT}/tiny")
    subject.put_model(subject.neighbour, model.path, FILES)
    subject.take_model(subject.name, model.path)
    subject.fill_disk(400 * 1024)
    copy = await planned(fleet, subject, model)
    models = (await fleet.connect(subject.name, 10)).models
    with pytest.raises(NodeError) as full:
        await models.fetch(copy, Told())
    assert ErrorKind.NO_SPACE is full.value.kind
    assert "absent" == (await models.look(model)).there
