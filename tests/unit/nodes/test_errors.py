"""What failures of a node say."""

import pytest

from reconciler.nodes.docker_engine import refusal
from reconciler.nodes.errors import ErrorKind, short_ids

ID = "785b1120abcd" + "0123456789" * 5 + "ab"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"starting {ID}", "starting 785b1120abcd"),
        (f"reading /containers/{ID}/json", "reading /containers/785b1120abcd/json"),
        (
            f'the name "/x" is in use by container "{ID}". Rename',
            'the name "/x" is in use by container "785b1120abcd". Rename',
        ),
        (f"creating fleet-solo-r0-v1 of sha256:{ID}", f"creating fleet-solo-r0-v1 of sha256:{ID}"),
        (f"starting fleet-{ID}", f"starting fleet-{ID}"),
        (f"starting {ID}0", f"starting {ID}0"),
    ],
)
def test_ids_of_containers_are_short_and_everything_else_stays_whole(text: str, expected: str) -> None:
    assert short_ids(text) == expected


def test_what_docker_quotes_is_short_as_well() -> None:
    error = refusal("starting x", 409, f"container {ID} is marked for removal")
    assert error.kind is ErrorKind.CONFLICT
    assert error.message == "Docker refused while starting x: container 785b1120abcd is marked for removal"
