"""Contract of `protocols.Containers`."""

import asyncio
from dataclasses import replace

import pytest

from reconciler.core.desired import ContainerSpec, Mount, SecretRef
from reconciler.core.diff import changes
from reconciler.nodes.errors import ErrorKind, NodeError
from tests.contract.programs import (
    AGER,
    CRASHER,
    FAILING,
    GREETING,
    LASTING,
    NOT_LASTING,
    NOWHERE_TO_BE_FOUND,
    SLEEPER,
    STUBBORN,
    TALKER,
    TELLER,
)
from tests.contract.subject import MODELS, NAME, NOWHERE, Scene, Subject, labels_of, scene

NO_IMAGE = "sha256:" + "0" * 64


@scene
async def test_created_is_not_started(play: Scene, subject: Subject) -> None:
    made = await play.create(SLEEPER)
    found = await play.found(NAME)
    assert (found.id, found.name, found.state, found.exit_code) == (made, NAME, "created", None)
    assert found.created_at
    assert (found.started_at, found.finished_at) == ("", "")
    assert (found.network_mode, found.restart_policy, found.auto_remove) == ("host", "no", False)


@scene
async def test_a_taken_name_is_a_conflict_and_changes_nothing(play: Scene, subject: Subject) -> None:
    made = await play.create(SLEEPER)
    with pytest.raises(NodeError) as taken:
        await play.create(CRASHER)
    assert taken.value.kind is ErrorKind.CONFLICT
    assert (await play.found(NAME)).id == made


@scene
async def test_an_image_that_is_not_there_is_not_found(play: Scene, subject: Subject) -> None:
    with pytest.raises(NodeError) as missing:
        await play.node.containers.create(NAME, play.spec(SLEEPER), NO_IMAGE, {}, {})
    assert missing.value.kind is ErrorKind.NOT_FOUND
    assert await play.node.containers.inspect(NAME) is None


@scene
async def test_a_mount_of_nothing_is_refused(play: Scene, subject: Subject) -> None:
    spec = replace(play.spec(SLEEPER), mounts=(Mount(NOWHERE, "/x"),))
    with pytest.raises(NodeError) as refused:
        await play.node.containers.create(NAME, spec, play.image_id, {}, {})
    assert refused.value.kind is ErrorKind.REFUSED
    assert await play.node.containers.inspect(NAME) is None


@scene
async def test_a_spec_comes_back_as_it_went(play: Scene, subject: Subject) -> None:
    spec = ContainerSpec(
        image=subject.image,
        command=("60", "--flag=a b", ""),
        entrypoint=("sleep",),
        env=(("A", "1"), ("B", "x=y"), ("EMPTY", "")),
        mounts=(Mount(MODELS, "/models"), Mount("/tmp", "/scratch", read_only=False)),
        devices=("/dev/null:/dev/nothing", "/dev/zero"),
        shm_bytes=1 << 27,
        ulimits=(("memlock", -1), ("stack", 67108864)),
    )
    await play.node.containers.create(NAME, spec, play.image_id, labels_of(spec, subject.name, play.image_id), {})
    found = await play.found(NAME)
    assert (found.entrypoint, found.command) == (spec.entrypoint, spec.command)
    assert set(spec.env) <= set(found.env)
    assert (found.mounts, found.devices, found.shm_bytes) == (spec.mounts, spec.devices, spec.shm_bytes)
    assert set(found.ulimits) == set(spec.ulimits)
    assert (found.gpus, found.image_id) == (0, play.image_id)
    assert changes(spec, found) == ()


@scene
async def test_a_change_by_hand_shows_as_a_difference(play: Scene, subject: Subject) -> None:
    spec = play.spec(SLEEPER)
    other = replace(spec, env=(("A", "1"),), command=STUBBORN)
    await play.node.containers.create(NAME, other, play.image_id, labels_of(other, subject.name, play.image_id), {})
    fields = {change.field for change in changes(spec, await play.found(NAME))}
    assert fields == {"argv", "env.A"}


@scene
async def test_secrets_come_back_as_references(play: Scene, subject: Subject) -> None:
    spec = replace(play.spec(SLEEPER), env=(("PLAIN", "p"), ("TOKEN", SecretRef("env:TOKEN"))))
    labels = labels_of(spec, subject.name, play.image_id)
    await play.node.containers.create(NAME, spec, play.image_id, labels, {"env:TOKEN": "s3cret-value"})
    found = await play.found(NAME)
    assert dict(found.env)["TOKEN"] == SecretRef("env:TOKEN")
    assert changes(spec, found) == ()
    assert "s3cret-value" not in repr(await play.node.observer.observe())


@scene
async def test_secrets_are_marked_by_reference_and_value_and_nothing_else_is(play: Scene, subject: Subject) -> None:
    spec = replace(play.spec(SLEEPER), env=(("PLAIN", "p"), ("TOKEN", SecretRef("env:T"))))
    labels = labels_of(spec, subject.name, play.image_id)
    await play.node.containers.create(NAME, spec, play.image_id, labels, {"env:T": "s3cret=value"})
    marks = await play.node.containers.live_marks(NAME, lambda reference, value: f"{reference} {len(value)}")
    assert {"TOKEN": "env:T 12"} == dict(marks)
    assert {} == dict(await play.node.containers.live_marks("nothing", lambda reference, value: value))


@scene
async def test_what_it_prints_is_read_without_its_secrets(play: Scene, subject: Subject) -> None:
    spec = replace(play.spec(TELLER), env=(("TOKEN", SecretRef("env:TOKEN")),))
    labels = labels_of(spec, subject.name, play.image_id)
    await play.node.containers.create(NAME, spec, play.image_id, labels, {"env:TOKEN": "s3cret-value"})
    await play.node.containers.start(NAME)
    await play.ended(NAME)
    assert ["TOKEN=[redacted]"] == list(await play.node.containers.logs(NAME, 10))
    assert ["TOKEN=[redacted]"] == [line async for line in play.node.containers.follow(NAME, 10)]


@scene
async def test_start_runs_it_and_again_does_nothing(play: Scene, subject: Subject) -> None:
    made = await play.run(SLEEPER)
    first = await play.found(made)
    await play.node.containers.start(NAME)
    assert (first.state, first.exit_code, first.finished_at) == ("running", None, "")
    assert first.started_at
    assert await play.found(made) == first


@scene
async def test_stop_ends_it_and_again_does_nothing(play: Scene, subject: Subject) -> None:
    made = await play.run(SLEEPER)
    await play.node.containers.stop(made, 10)
    first = await play.found(made)
    await play.node.containers.stop(NAME, 10)
    assert (first.state, first.exit_code, first.oom_killed) == ("exited", 0, False)
    assert first.finished_at
    assert await play.found(made) == first


@scene
async def test_stop_of_what_was_never_started_does_nothing(play: Scene, subject: Subject) -> None:
    await play.create(SLEEPER)
    await play.node.containers.stop(NAME, 10)
    assert (await play.found(NAME)).state == "created"


@scene
async def test_stop_kills_after_its_grace_and_not_before(play: Scene, subject: Subject) -> None:
    await play.run(STUBBORN)
    await asyncio.sleep(0.5)  # the trap has to be set
    loop = asyncio.get_running_loop()
    since = loop.time()
    await play.node.containers.stop(NAME, 2)
    assert 1.9 <= loop.time() - since < 10
    found = await play.found(NAME)
    assert (found.state, found.exit_code) == ("exited", 137)


@scene
async def test_it_can_be_started_again(play: Scene, subject: Subject) -> None:
    await play.run(SLEEPER)
    await play.node.containers.stop(NAME, 10)
    await play.node.containers.start(NAME)
    assert (await play.found(NAME)).state == "running"


@scene
async def test_rename_keeps_everything_else(play: Scene, subject: Subject) -> None:
    made = await play.run(SLEEPER)
    before = await play.found(made)
    await play.node.containers.rename(NAME, f"{NAME}.unproved")
    assert await play.found(made) == replace(before, name=f"{NAME}.unproved")
    assert await play.node.containers.inspect(NAME) is None
    await play.create(SLEEPER)


@scene
async def test_rename_to_a_taken_name_is_a_conflict(play: Scene, subject: Subject) -> None:
    first = await play.create(SLEEPER, "fleet-a")
    await play.create(SLEEPER, "fleet-b")
    with pytest.raises(NodeError) as taken:
        await play.node.containers.rename("fleet-a", "fleet-b")
    assert taken.value.kind is ErrorKind.CONFLICT
    assert (await play.found(first)).name == "fleet-a"


@scene
async def test_remove_forgets_it_and_again_does_nothing(play: Scene, subject: Subject) -> None:
    await play.run(SLEEPER)
    await play.node.containers.stop(NAME, 10)
    await play.node.containers.remove(NAME)
    await play.node.containers.remove(NAME)
    assert await play.node.containers.inspect(NAME) is None


@scene
async def test_remove_of_what_was_never_started(play: Scene, subject: Subject) -> None:
    await play.create(SLEEPER)
    await play.node.containers.remove(NAME)
    assert await play.node.containers.inspect(NAME) is None


@scene
async def test_remove_of_a_running_one_is_refused_and_it_goes_on(play: Scene, subject: Subject) -> None:
    await play.run(SLEEPER)
    with pytest.raises(NodeError) as refused:
        await play.node.containers.remove(NAME)
    assert refused.value.kind is ErrorKind.CONFLICT
    assert (await play.found(NAME)).state == "running"


@scene
async def test_what_is_not_there(play: Scene, subject: Subject) -> None:
    """Inspect and remove take it as an answer; what would have to act on it does not."""
    doors = play.node.containers
    assert await doors.inspect("nothing") is None
    await doors.remove("nothing")

    async def follow() -> None:
        async for _ in doors.follow("nothing", 1):
            pass

    for attempt in (doors.start("nothing"), doors.stop("nothing", 1), doors.rename("nothing", "other"), follow()):
        with pytest.raises(NodeError) as missing:
            await attempt
        assert missing.value.kind is ErrorKind.NOT_FOUND
    with pytest.raises(NodeError) as missing:
        await doors.logs("nothing", 1)
    assert missing.value.kind is ErrorKind.NOT_FOUND


@scene
async def test_a_crash_leaves_its_exit_code_and_last_words(play: Scene, subject: Subject) -> None:
    await play.run(CRASHER)
    found = await play.ended(NAME)
    assert (found.exit_code, found.oom_killed) == (3, False)
    assert list(await play.node.containers.logs(NAME, 2)) == ["two", "boom"]
    assert list(await play.node.containers.logs(NAME, 100)) == ["one", "two", "boom"]


@scene
async def test_logs_are_followed_to_the_end(play: Scene, subject: Subject) -> None:
    made = await play.run(TALKER)
    async with asyncio.timeout(30):
        lines = [line async for line in play.node.containers.follow(made, 100)]
    assert lines == ["first", "second", "last"]
    assert (await play.ended(made)).exit_code == 0


@scene
async def test_the_logs_of_an_ended_one_are_followed_from_its_tail(play: Scene, subject: Subject) -> None:
    await play.run(CRASHER)
    await play.ended(NAME)
    async with asyncio.timeout(30):
        assert [line async for line in play.node.containers.follow(NAME, 1)] == ["boom"]


@scene
async def test_what_never_ran_has_no_logs(play: Scene, subject: Subject) -> None:
    await play.create(SLEEPER)
    assert list(await play.node.containers.logs(NAME, 10)) == []


@scene
async def test_logs_since_its_start_are_those_of_its_present_life(play: Scene, subject: Subject) -> None:
    made = await play.run(AGER)
    await play.ended(made)
    await asyncio.sleep(0.3)  # as between the stop and the start of a repair
    await play.node.containers.start(made)
    found = await play.found(made)
    await asyncio.sleep(1)
    logs = play.node.containers.logs
    assert ["life again", "life again"] == list(await logs(made, 10))
    assert ["life again"] == list(await logs(made, 10, found.started_at))


@scene
async def test_a_program_is_run_in_a_container_that_runs(play: Scene, subject: Subject) -> None:
    made = await play.run(SLEEPER)
    containers = play.node.containers
    greeted = await containers.run(made, GREETING, 20)
    assert (0, [b"hello", b"there"]) == (greeted.code, sorted(greeted.output.split()))
    assert 3 == (await containers.run(NAME, FAILING, 20)).code
    assert (await containers.run(NAME, NOWHERE_TO_BE_FOUND, 20)).code in {126, 127}
    assert (await play.found(made)).state == "running"


@scene
async def test_a_program_that_lasts_too_long_is_a_timeout(play: Scene, subject: Subject) -> None:
    made = await play.run(SLEEPER)
    with pytest.raises(NodeError) as late:
        await play.node.containers.run(made, LASTING, 2)
    assert ErrorKind.TIMEOUT is late.value.kind
    assert 0 == (await play.node.containers.run(made, NOT_LASTING, 20)).code
    assert (await play.found(made)).state == "running"


@scene
async def test_nothing_is_run_in_a_container_that_does_not(play: Scene, subject: Subject) -> None:
    made = await play.create(SLEEPER)
    with pytest.raises(NodeError) as refused:
        await play.node.containers.run(made, GREETING, 20)
    assert ErrorKind.CONFLICT is refused.value.kind
