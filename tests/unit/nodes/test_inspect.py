"""What Docker says, recorded from 20.10 (classic store) and 28.5 (containerd store), and what is read from it."""

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.core import identity
from reconciler.core.desired import ContainerSpec, Gang, HealthGate, ImagePin, Mount, RankSpec, SecretRef
from reconciler.core.image_defaults import ImageDefaults
from reconciler.core.observed import LocalImage
from reconciler.nodes import by_hand, inspect
from reconciler.nodes.ssh_observer import is_containerd, platform_of, uses_system_containerd

SAMPLES = Path(__file__).parents[2] / "fixtures" / "docker"
STORES = ("classic", "containerd")
INDEX = "sha256:99573aa4f13d47c94b0946c0b6ce3e7d64e1041f5ce60aeec73f0b284181dbd8"
MANIFEST = "sha256:057ac546110a9496601a4990679d2764ef6b8720791ce1fe3722c9a747962724"
FOREIGN_MANIFEST = "sha256:90a3746dde165292acdb1407315224c77d477077f2597092aab468eb77f2bc82"
CONFIG = "sha256:1dacffe03b10b05c0df7c61e7e1a5eb591b1a6bad2db0d10e95334e66bf8f918"


SPEC = ContainerSpec(
    image=ImagePin(f"r/tiny@{MANIFEST}", MANIFEST, "digest", "r", "tiny"),
    command=("sh", "-c", "sleep 600"),
    env=(("A", "1"), ("TOKEN", SecretRef("env:TOKEN"))),
)
RANK = RankSpec(0, "node1", "head", "10.0.0.1", SPEC, ports=(8000,))
GANG = Gang("tiny", "c", "custom", (RANK,), ((0,),), HealthGate("10.0.0.1", 8000), "http://10.0.0.1:8000/v1")
LABELS = identity.labels("lab", GANG, RANK, 1, "op1", "sha256:local")


def sample(name: str) -> Any:
    """A recorded answer. Containers carry the labels of today."""
    found = json.loads((SAMPLES / f"{name}.json").read_text())
    if name.startswith("container-"):
        found["Config"]["Labels"] = LABELS
    return found


@pytest.mark.parametrize("store", STORES)
def test_a_container_of_ours(store: str) -> None:
    seen = inspect.container_from_inspect(sample(f"container-{store}"))
    assert (seen.name, seen.state, seen.exit_code, seen.finished_at) == ("fleet-tiny-r0-v1", "running", None, "")
    assert seen.owner is not None
    assert (seen.owner.lane, seen.owner.rank, seen.owner.revision) == ("tiny", 0, 1)
    assert (seen.entrypoint, seen.command) == (None, ("sh", "-c", "sleep 600"))
    assert seen.mounts == (Mount("/srv/models", "/models"),)
    assert (seen.devices, seen.shm_bytes, seen.ulimits) == (("/dev/null:/dev/nothing",), 1 << 26, (("nofile", 1024),))
    assert (seen.network_mode, seen.restart_policy, seen.auto_remove, seen.gpus) == ("host", "no", False, 0)
    assert seen.image_id == (CONFIG if store == "classic" else INDEX)


@pytest.mark.parametrize("store", STORES)
def test_what_a_hand_set_shows_and_what_we_make_does_not(store: str) -> None:
    found = sample(f"container-{store}")
    assert () == inspect.container_from_inspect(found).unasked
    found["HostConfig"] |= {"Memory": 2**31, "PidsLimit": 500}
    found["NetworkSettings"] = {"Networks": {"host": {}, "bridge": {}}}
    expected = (("Memory", "2147483648"), ("PidsLimit", "500"), ("Networks", "bridge"))
    assert expected == inspect.container_from_inspect(found).unasked


HANDS: list[tuple[dict[str, Any], tuple[str, str]]] = [
    ({"SecurityOpt": ["seccomp=unconfined"]}, ("SecurityOpt", "['seccomp=unconfined']")),
    ({"IpcMode": "host", "SecurityOpt": ["label=disable"]}, ("IpcMode", "host")),
    ({"Init": True}, ("Init", "True")),
    ({"MemorySwappiness": 0}, ("MemorySwappiness", "0")),
    ({"MaskedPaths": []}, ("MaskedPaths", "none")),
    ({"LogConfig": {"Type": "none", "Config": {}}}, ("LogConfig", '{"Config": {}, "Type": "none"}')),
    ({"Mounts": [{"Type": "tmpfs", "Target": "/x"}]}, ("Mounts", '[{"Target": "/x", "Type": "tmpfs"}]')),
]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("changed", "expected"), HANDS, ids=[next(iter(row[0])) for row in HANDS])
def test_what_is_always_there_and_not_as_ours_are_is_a_hands(
    store: str, changed: dict[str, Any], expected: tuple[str, str]
) -> None:
    found = sample(f"container-{store}")
    found["HostConfig"] |= changed
    assert (expected,) == inspect.container_from_inspect(found).unasked


@pytest.mark.parametrize("store", STORES)
def test_settings_that_a_container_may_have_of_its_image(store: str) -> None:
    found = sample(f"container-{store}")
    assert () == inspect.container_from_inspect(found).settings
    found["Config"] |= {"User": "7", "Tty": True, "Healthcheck": {"Test": ["NONE"]}, "Volumes": {"/b": {}, "/a": {}}}
    found["Config"]["Labels"] = {**LABELS, "who": "me"}
    expected = (
        ("User", "7"),
        ("Healthcheck", '{"Test": ["NONE"]}'),
        ("Tty", "true"),
        ("Volumes", '["/a", "/b"]'),
        ("label who", "me"),
    )
    assert expected == inspect.container_from_inspect(found).settings
    given = by_hand.image_defaults("sha256:x", {"Config": {"Env": ["A=b=c"], "Entrypoint": ["e"], "WorkingDir": "/"}})
    assert ImageDefaults("sha256:x", (("A", "b=c"),), ("e",)) == given
    assert ImageDefaults("sha256:x") == by_hand.image_defaults("sha256:x", {"Config": None})


def test_a_container_that_was_renamed_is_nobodys_and_says_whose_it_was() -> None:
    found = {**sample("container-classic"), "Name": "/mine"}
    seen = inspect.container_from_inspect(found)
    assert seen.owner is None
    assert seen.claims is not None
    assert ("c/tiny", ()) == (seen.claims.gang, seen.unasked)


@pytest.mark.parametrize("store", STORES)
def test_secrets_are_references_and_never_values(store: str) -> None:
    """Also the value of a foreign container's environment is not kept."""
    found = sample(f"container-{store}")
    ours = inspect.container_from_inspect(found)
    assert ("TOKEN", SecretRef("env:TOKEN")) in ours.env
    assert ("A", "1") in ours.env
    assert "s3cret" not in repr(ours)
    found["Config"]["Labels"] = {}
    foreign = inspect.container_from_inspect(found)
    assert (foreign.owner, foreign.env) == (None, ())


@pytest.mark.parametrize("store", STORES)
def test_a_list_entry_is_enough_to_name_a_foreign_container(store: str) -> None:
    [entry] = sample(f"list-{store}")
    assert inspect.is_ours(LABELS)
    assert not inspect.is_ours({"fleet.fleet": "half-written"})
    assert not inspect.is_ours(None)
    entry["Ports"] = [{"PrivatePort": 80, "PublicPort": 8080, "Type": "tcp"}, {"PrivatePort": 81, "Type": "tcp"}]
    seen = inspect.container_from_list(entry)
    assert (seen.name, seen.state, seen.published_ports) == ("fleet-tiny-r0-v1", "running", (8080,))


def test_ports_of_a_stopped_container_are_those_it_would_take() -> None:
    found = sample("container-classic")
    found["HostConfig"]["PortBindings"] = {"80/tcp": [{"HostIp": "", "HostPort": "8080"}], "81/tcp": None}
    found["NetworkSettings"]["Ports"] = {}
    assert inspect.container_from_inspect(found).published_ports == (8080,)


@pytest.mark.parametrize(
    ("host", "env", "expected"),
    [
        ({}, [], 0),
        ({"DeviceRequests": [{"Driver": "", "Count": 2, "Capabilities": [["gpu"]]}]}, [], 2),
        ({"DeviceRequests": [{"Driver": "", "Count": -1, "Capabilities": [["gpu"]]}]}, [], inspect.ALL_GPUS),
        ({"DeviceRequests": [{"Driver": "nvidia", "DeviceIDs": ["0", "1"], "Capabilities": [["gpu"]]}]}, [], 2),
        ({"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}]}, [], inspect.ALL_GPUS),
        ({"DeviceRequests": [{"Driver": "", "Count": 1, "Capabilities": [["tpu"]]}]}, [], 0),
        ({"Devices": [{"PathOnHost": "/dev/nvidia0"}, {"PathOnHost": "/dev/nvidiactl"}]}, [], 1),
        ({"Runtime": "nvidia"}, ["NVIDIA_VISIBLE_DEVICES=all"], inspect.ALL_GPUS),
        ({"Runtime": "nvidia"}, ["NVIDIA_VISIBLE_DEVICES=0,3"], 2),
        ({"Runtime": "nvidia"}, ["NVIDIA_VISIBLE_DEVICES=void"], 0),
        ({"Runtime": "runc"}, ["NVIDIA_VISIBLE_DEVICES=all"], 0),
    ],
)
def test_every_way_to_get_gpus_counts(host: dict[str, Any], env: list[str], expected: int) -> None:
    assert inspect.gpu_count(host, {"Env": env}) == expected


def test_of_ours_only_the_gpus_count_that_were_asked_for() -> None:
    """A default runtime of the engine, or a device file, would else differ from the spec for ever."""
    asked = {"DeviceRequests": [{"Driver": "", "Count": 1, "Capabilities": [["gpu"]]}]}
    assert inspect.requested_gpus({"Runtime": "nvidia", "Devices": [{"PathOnHost": "/dev/nvidia0"}]}) == 0
    assert inspect.requested_gpus({"Runtime": "nvidia", **asked}) == 1


def test_the_classic_store_knows_an_image_by_its_config() -> None:
    [image] = inspect.images_from_list(sample("images-classic"), "linux/amd64")
    assert (image.id, image.digests, image.usable) == (CONFIG, (INDEX, MANIFEST), True)


def test_the_containerd_store_knows_it_by_its_index() -> None:
    """The other platform of the index is listed too, and is not here."""
    [image] = inspect.images_from_list(sample("images-containerd"), "linux/amd64")
    assert (image.id, image.digests, image.usable) == (INDEX, (INDEX, MANIFEST), True)
    [elsewhere] = inspect.images_from_list(sample("images-containerd"), "linux/arm64")
    assert not elsewhere.usable


def incomplete() -> list[dict[str, Any]]:
    """As 28.5 lists an image whose layers are not all in the content store."""
    [entry] = sample("images-containerd")
    manifest = entry["Manifests"][0]
    manifest["Available"] = False
    manifest["ImageData"] = {"Platform": {"architecture": "", "os": ""}, "Size": {"Unpacked": 0}}
    manifest["Size"] = {"Content": 1044, "Total": 1044}
    return [entry]


def test_an_incomplete_image_is_in_doubt_and_counts_only_when_it_can_run() -> None:
    """It is asked about when we pulled it: just now, or once, as our tag says."""
    assert inspect.doubtful(incomplete(), "linux/amd64") == [INDEX]
    untagged = incomplete()
    untagged[0]["RepoTags"] = ["whole:1"]
    assert inspect.doubtful(untagged, "linux/amd64") == []
    assert inspect.doubtful(untagged, "linux/amd64", pulled=INDEX) == [INDEX]
    [broken] = inspect.images_from_list(incomplete(), "linux/amd64")
    assert not broken.usable
    [running] = inspect.images_from_list(incomplete(), "linux/amd64", {INDEX})
    assert running.usable


@pytest.mark.parametrize("store", STORES)
def test_a_whole_image_is_not_in_doubt(store: str) -> None:
    assert inspect.doubtful(sample(f"images-{store}"), "linux/amd64") == []


def test_an_image_is_found_under_whatever_name() -> None:
    image = LocalImage("sha256:c", ("sha256:m",), ("other/name:1",))
    broken = LocalImage("sha256:d", ("sha256:m",), usable=False)
    by_digest = ImagePin("x", "sha256:m", "digest", "ghcr.io", "org/x")
    assert inspect.matching([broken, image], by_digest) == image
    assert inspect.matching([image], ImagePin("sha256:c", "sha256:c", "id")) == image
    assert inspect.matching([broken], by_digest) is None


@pytest.mark.parametrize("store", STORES)
def test_the_store_and_the_platform_are_known_from_info(store: str) -> None:
    info = sample(f"info-{store}")
    assert is_containerd(info) == (store == "containerd")
    assert platform_of(info) == "linux/amd64"
    assert not uses_system_containerd(info)
    assert uses_system_containerd({"Containerd": {"Address": "/run/containerd/containerd.sock"}})
    assert platform_of({"Architecture": "aarch64", "OSType": "linux"}) == "linux/arm64"
