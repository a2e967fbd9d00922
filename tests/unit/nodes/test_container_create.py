"""The body of a create request."""

from dataclasses import replace

import pytest

from reconciler.core.desired import ContainerSpec, ImagePin, Mount, SecretRef
from reconciler.nodes.container_create import payload

SPEC = ContainerSpec(
    image=ImagePin("x", "sha256:m", "digest", "ghcr.io", "org/x"),
    command=("vllm", "serve"),
    env=(("A", "1"), ("TOKEN", SecretRef("env:TOKEN"))),
    mounts=(Mount("/mnt/a:b", "/models"), Mount("/cache", "/cache", read_only=False)),
    devices=("/dev/infiniband", "/dev/a:/dev/b:r"),
    ulimits=(("memlock", -1),),
    shm_bytes=64,
    gpus=2,
)


def test_a_rank_is_pid_one_on_the_hosts_network_and_never_restarted() -> None:
    body = payload(SPEC, "sha256:local", {"fleet.lane": "x"}, {"env:TOKEN": "s3cret"})
    host = body["HostConfig"]
    assert (body["Image"], body["Cmd"], body["Labels"]) == ("sha256:local", ["vllm", "serve"], {"fleet.lane": "x"})
    assert (host["NetworkMode"], host["RestartPolicy"], host["AutoRemove"]) == ("host", {"Name": "no"}, False)
    assert host["LogConfig"]["Config"] == {"max-size": "50m", "max-file": "3"}
    assert body["Env"] == ["A=1", "TOKEN=s3cret"]
    assert host["DeviceRequests"] == [{"Driver": "", "Count": 2, "Capabilities": [["gpu"]]}]
    assert host["ShmSize"] == 64
    assert host["Ulimits"] == [{"Name": "memlock", "Soft": -1, "Hard": -1}]
    assert [(item["Source"], item["ReadOnly"]) for item in host["Mounts"]] == [("/mnt/a:b", True), ("/cache", False)]
    assert [item["CgroupPermissions"] for item in host["Devices"]] == ["rwm", "r"]


def test_what_is_not_asked_is_left_to_the_image_and_to_docker() -> None:
    body = payload(ContainerSpec(SPEC.image, ()), "i", {}, {})
    assert "Entrypoint" not in body
    assert not {"ShmSize", "DeviceRequests"} & body["HostConfig"].keys()
    assert payload(replace(SPEC, entrypoint=()), "i", {}, {"env:TOKEN": ""})["Entrypoint"] == []


def test_a_secret_without_a_value_is_a_fault_and_not_an_empty_variable() -> None:
    with pytest.raises(KeyError):
        payload(SPEC, "i", {}, {})
