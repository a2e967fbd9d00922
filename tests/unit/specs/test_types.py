"""A value of the wrong type, an unknown key, a missing key: said in YAML's words, at its place."""

from pathlib import Path

import pytest

from tests.unit.specs.helpers import BASE, edited, faults, loaded, messages

Edit = tuple[str, str]

JSON_PATH = r"^[A-Za-z0-9_$][A-Za-z0-9_$-]*(\.[A-Za-z0-9_$-]+)*$"

CASES: dict[str, tuple[str, Edit]] = {
    "text for a number": ("3:58: nodes.n1.gpus: wants a whole number, found text", ("gpus: 1", "gpus: one")),
    "a fraction for a number": ("3:58: nodes.n1.gpus: wants a whole number, found 1.5", ("gpus: 1", "gpus: 1.5")),
    "true for a number": ("3:58: nodes.n1.gpus: wants a whole number, found true", ("gpus: 1", "gpus: true")),
    "nothing for a number": ("3:58: nodes.n1.gpus: wants a whole number, found nothing", ("gpus: 1", "gpus: ")),
    "too small a number": ("3:58: nodes.n1.gpus: must be at least 0", ("gpus: 1", "gpus: -1")),
    "too large a number": ("8:37: clusters.trio.port: must be at most 65535", ("30001", "70000")),
    "a number for text": ("13:13: lanes.duo.engine: wants text, found 7", ("vllm", "7")),
    "nothing for text": ("13:12: lanes.duo.engine: wants text, found nothing", ("engine: vllm", "engine:")),
    "empty text": ("13:13: lanes.duo.engine: must not be empty", ("vllm", '""')),
    "text for a list": ("7:17: clusters.pair.nodes: wants a list, found text", ("[n1, n2]", "n1")),
    "an empty list": ("7:17: clusters.pair.nodes: must not be empty", ("[n1, n2]", "[]")),
    "a list for a mapping": ("3:13: nodes.n1.ssh: wants a mapping, found a list", ("{host: n1.lan}", "[n1.lan]")),
    "text for an object": ("17:9: lanes.solo: wants a mapping, found text", ("  solo:\n", "  solo: x\n  other:\n")),
    "text for true": ("15:13: lanes.duo.shares: wants true or false, found text", ("nodes: 2", "shares: yes")),
    "a list for a size": (
        "3:69: nodes.n1.memory: wants a size such as 128GiB, found a list",
        ("64GiB", "[64GiB]"),
    ),
    "true for a duration": (
        "15:17: lanes.duo.stop_grace: wants a duration such as 40m or 2.5s, found true",
        ("nodes: 2", "stop_grace: true"),
    ),
    "no positive duration": ("15:21: lanes.duo.health.boot: must be more than 0", ("nodes: 2", "health: {boot:  0}")),
    "a mapping for an image": (
        "14:12: lanes.duo.image: wants an image such as ghcr.io/owner/name@sha256:<digest>, found a mapping",
        ("ghcr.io/owner/engine@sha256:" + "ab" * 32, "{}"),
    ),
    "a list for a path of the controller": (
        "3:43: nodes.n1.ssh.identity_file: wants a path, found a list",
        ("host: n1.lan", "host: n1.lan, identity_file: [x]"),
    ),
    "an item of the wrong type": ("7:22: clusters.pair.nodes[1]: wants text, found 2", ("n2]", "2]")),
    "no preflight": (
        "15:16: lanes.duo.preflight: wants false, or {command: [...], deadline: 2m}, found 3",
        ("nodes: 2", "preflight: 3"),
    ),
    "none of few words": (
        "15:13: lanes.duo.order[0]: must be 'head' or 'worker'",
        ("nodes: 2", "order: [boss, head]"),
    ),
    "an unknown key": ("3:14: nodes.n1.ssh: unknown key 'hst'", ("host: n1.lan", "hst: x, host: n1.lan")),
    "an unknown key in an item": (
        "21:32: placements[0]: unknown key 'node'",
        ("cluster: pair}", "cluster: pair, node: n1}"),
    ),
    "an unknown key beside a secret": (
        "15:32: lanes.duo.env.A: unknown key 'x'",
        ("nodes: 2", "env: {A: {secret: 'env:A', x: 1}}"),
    ),
    "a missing key": (
        "5:3: nodes.n3: `platform` is missing",
        ("ssh: {host: n3.lan}, platform: linux/arm64", "ssh: {host: n3.lan}"),
    ),
    "a missing key in an item": ("21:5: placements[0]: `cluster` is missing", (", cluster: pair", "")),
    "a name that is none": ("3:3: nodes: 'N1' is not a name", ("  n1:", "  N1:")),
    "a key of a checksum that is no path": (
        "10:42: models.m.verify: '/x' is not a relative path",
        ('/m"}', '/m", verify: {/x: y}}'),
    ),
    "a model without files": (
        "10:6: models.m: a model needs `repo` or `path`",
        ('path: "{paths.models}/m"', "args: {}"),
    ),
    "a node named twice": ("7:22: clusters.pair.nodes[1]: 'n1' is named twice", ("[n1, n2]", "[n1, n1]")),
    "a probe that asks twice": (
        "15:23: lanes.duo.health.probes[0]: a probe has exactly one question",
        ("nodes: 2", "health: {probes: [{chat: a, completion: b}]}"),
    ),
    "limits that no text keeps": (
        "15:41: lanes.duo.health.probes[0].limits: `entropy_min` has to be less than `entropy_max`",
        ("nodes: 2", "health: {probes: [{chat: a, limits: {entropy_min: 7}}]}"),
    ),
    "a share that is no number": (
        "15:51: lanes.duo.health.probes[0].limits.foreign: wants a number that ends, found .nan",
        ("nodes: 2", "health: {probes: [{chat: a, limits: {foreign: .nan}}]}"),
    ),
    "a look that comes too late": (
        "15:13: lanes.duo.health: `interval` is longer than `boot`",
        ("nodes: 2", "health: {boot: 1m, interval: 1h}"),
    ),
    "a stall that comes too late": (
        "15:13: lanes.duo.health: `stall` is longer than `boot`",
        ("nodes: 2", "health: {boot: 1m, stall: 1h}"),
    ),
    "a path into a reply with a hole": (
        f"15:47: lanes.duo.health.probes[0].expect_json: is not of the form {JSON_PATH}",
        ("nodes: 2", "health: {probes: [{chat: a, expect_json: {a..b: 1}}]}"),
    ),
    "a command of a probe without a program": (
        "15:34: lanes.duo.health.probes[0].command[0]: the first word is empty",
        ("nodes: 2", "health: {probes: [{command: ['', x]}]}"),
    ),
    "a preflight without a program": (
        "15:27: lanes.duo.preflight.command[0]: the first word is empty",
        ("nodes: 2", "preflight: {command: [' ']}"),
    ),
    "a path that no request can hold": (
        "15:37: lanes.duo.health.probes[0].http.path: '/a b' is not a path on the head",
        ("nodes: 2", "health: {probes: [{http: {path: /a b}}]}"),
    ),
    "a method that is none": (
        "15:49: lanes.duo.health.probes[0].http.method: must be 'GET', 'POST', 'PUT' or 'DELETE'",
        ("nodes: 2", "health: {probes: [{http: {path: /x, method: get}}]}"),
    ),
    "a preflight's unknown key": (
        "15:17: lanes.duo.preflight: unknown key 'deadlin'",
        ("nodes: 2", "preflight: {deadlin: 5}"),
    ),
    "a probe that asks nothing": (
        "15:23: lanes.duo.health.probes[0]: a probe has exactly one question",
        ("nodes: 2", "health: {probes: [{}]}"),
    ),
    "a broken regular expression": (
        "15:47: lanes.duo.health.probes[0].expect_regex: not a regular expression",
        ("nodes: 2", "health: {probes: [{chat: a, expect_regex: '('}]}"),
    ),
    "a section that is no mapping": (
        "11:8: lanes: wants a mapping, found a list",
        ("lanes:\n", "lanes: [a]\nlanez:\n"),
    ),
    "placements that are no list": (
        "20:13: placements: wants a list, found a mapping",
        ("placements:\n  - {lane", "placements: {}\n#  - {lane"),
    ),
    "an empty section": ("20:12: placements: wants a list, found nothing", ("  - {lane: duo, cluster: pair}\n", "")),
    "an unknown section": ("1:1: unknown key 'flet'", ("fleet: lab", "flet: lab")),
}


@pytest.mark.parametrize(("expected", "edit"), CASES.values(), ids=CASES.keys())
def test_a_fault_is_said_at_its_place(tmp_path: Path, expected: str, edit: Edit) -> None:
    assert expected in faults(tmp_path, edited(edit))


@pytest.mark.parametrize(
    ("hint", "edit"),
    [
        ("did you mean 'host'?", ("host: n1.lan", "hst: x, host: n1.lan")),
        ("did you mean 'fleet'?", ("fleet: lab", "flet: lab")),
        ("did you mean 'clusters'?", ("clusters:", "cluster:")),
        ("did you mean 'probes'?", ("nodes: 2", "health: {probs: []}")),
        ('write "7" for text', ("vllm", "7")),
        ("take the quotes away", ("gpus: 1", 'gpus: "1"')),
        ("write true", ("nodes: 2", "shares: yes")),
        ("did you mean 'worker'?", ("nodes: 2", "order: [workers, head]")),
        ("write false", ("nodes: 2", "shares: OFF")),
        ("write - ITEM on a line of its own, or [ITEM, ITEM]", ("[n1, n2]", "n1")),
        ("write [] for none", ("  - {lane: duo, cluster: pair}\n", "")),
        ("write it without the leading dashes, for example max-num-seqs", ("nodes: 2", "args: {--x: 1}")),
        ("leave the prefix length out", ("10.0.0.1", "10.0.0.1/24")),
        ("write for example 128GiB or 512MB", ("64GiB", "64G")),
        ("write for example 40m, 1h30m, 2.5s or 300ms", ("nodes: 2", "health: {boot: 1:30}")),
        ("write file:/absolute/path", ("nodes: 2", "env: {A: {secret: /x}}")),
        ("The keys here are gid_index.", ("port: 30001", "nccl: {x: 1}")),
        ("`host`: host name or IP address.", ("{host: n1.lan}", "{}")),
    ],
)  # fmt: skip
def test_a_fault_says_what_to_do(tmp_path: Path, hint: str, edit: Edit) -> None:
    assert hint in [line.strip() for line in messages(tmp_path, edited(edit)).splitlines()]


def test_a_pasted_secret_is_never_repeated(tmp_path: Path) -> None:
    text = edited(("nodes: 2", "env: {A: {secret: hf_s3cr3t}, B: {secret: [hf_s3cr3t]}, C: [hf_s3cr3t]}"))
    assert "s3cr3t" not in messages(tmp_path, text)


def test_a_fault_in_one_object_hides_no_fault_in_another(tmp_path: Path) -> None:
    text = edited(
        ("gpus: 1", "gpus: x"), ("30001", "0"), ("engine: vllm", "engine: []"), ("cluster: pair", "cluster: p")
    )
    assert [line.split(": ")[0] for line in faults(tmp_path, text)] == ["3:58", "8:37", "13:13", "21:26"]


def test_a_list_without_one_right_item_is_not_called_empty(tmp_path: Path) -> None:
    assert ["15:27: lanes.duo.preflight.command[0]: wants text, found true"] == faults(
        tmp_path, edited(("nodes: 2", "preflight: {command: [true]}"))
    )


def test_a_number_that_cannot_be_read_is_reported_once(tmp_path: Path) -> None:
    assert ["3:58: 01 can be read as a decimal number, an octal number or text"] == faults(
        tmp_path, edited(("gpus: 1", "gpus: 01"))
    )


def test_without_a_fleet_the_main_file_is_named(tmp_path: Path) -> None:
    assert ["1:1: `fleet` is missing"] == faults(tmp_path, edited(("fleet: lab\n", "")))


def test_paths_of_the_controller_are_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ops")
    keys = "identity_file: keys/id, known_hosts: ~/.ssh/known_hosts"
    ssh = loaded(tmp_path, edited(("host: n1.lan", f"host: n1.lan, {keys}"))).nodes["n1"].ssh
    assert (tmp_path / "keys/id", Path("/home/ops/.ssh/known_hosts")) == (ssh.identity_file, ssh.known_hosts)


def test_the_base_of_these_tests_is_valid(tmp_path: Path) -> None:
    assert "lab" == loaded(tmp_path, BASE).fleet
