"""What Docker says during a pull."""

import json
from collections.abc import Mapping

import pytest

from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.protocols import Progress
from reconciler.nodes.pull_stream import PullStream

A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"


def told(*messages: Mapping[str, object]) -> Progress | None:
    data = b"".join(json.dumps(message).encode() + b"\r\n" for message in messages)
    return PullStream("pulling").feed(data)


def downloading(layer: str, current: int, total: int) -> dict[str, object]:
    return {"status": "Downloading", "id": layer, "progressDetail": {"current": current, "total": total}}


def test_progress_is_the_sum_over_the_layers() -> None:
    assert told(downloading(A, 10, 100), downloading(B, 5, 50)) == Progress(15, 150, "downloading, 0 of 2 layers ready")


def test_a_finished_layer_counts_whole() -> None:
    done = {"status": "Download complete", "id": A}
    assert told(downloading(A, 10, 100), done) == Progress(100, 100, "unpacking, 0 of 1 layers ready")


def test_nothing_is_known_before_the_first_layer() -> None:
    assert told({"status": "Pulling from org/x", "id": "sha256:1234"}) == Progress(0, None, "asking the registry")
    assert PullStream("pulling").feed(b'{"status":') is None


def test_the_last_word_of_docker_tells_that_it_is_over() -> None:
    """Nobody has to wait for more news then."""
    stream = PullStream("pulling")
    stream.feed(b'{"status":"Digest: sha256:1234"}\r\n')
    assert not stream.is_over
    stream.feed(b'{"status":"Status: Downloaded newer image for x@sha256:1234"}\r\n')
    assert stream.is_over


def test_all_there_already() -> None:
    exists = {"status": "Already exists", "id": A}
    assert told(exists) == Progress(0, None, "registering")


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("write /var/lib/docker/tmp/x: no space left on device", ErrorKind.NO_SPACE),
        ("no matching manifest for linux/arm64/v8 in the manifest list entries", ErrorKind.REFUSED),
        (
            "image with reference x was found but does not match the specified platform",
            ErrorKind.REFUSED,
        ),
        ("manifest for x@sha256:1 not found: manifest unknown: manifest unknown", ErrorKind.NOT_FOUND),
        ("failed to resolve reference x: x: not found", ErrorKind.NOT_FOUND),
        ("pull access denied for x, repository does not exist or may require 'docker login'", ErrorKind.DENIED),
        ("Get http://127.0.0.1:5917/v2/: dial tcp 127.0.0.1:5917: connect: connection refused", ErrorKind.REFUSED),
    ],
)
def test_failures_come_inside_the_stream(message: str, kind: ErrorKind) -> None:
    with pytest.raises(NodeError) as failed:
        told(downloading(A, 10, 100), {"errorDetail": {"message": message}, "error": message})
    assert failed.value.kind is kind
    assert message in failed.value.message


def test_a_failure_without_a_line_end_is_not_missed() -> None:
    stream = PullStream("pulling")
    stream.feed(b'{"error": "no space left on device"}')
    with pytest.raises(NodeError):
        stream.end()
