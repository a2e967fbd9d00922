"""Docker's times as questions are put with them."""

import pytest

from reconciler.nodes.times import since_param


@pytest.mark.parametrize(
    ("started_at", "finished_at", "since"),
    [
        ("1970-01-01T00:01:40.5Z", "", "99.500000"),
        ("1970-01-01T00:01:40.5Z", "0001-01-01T00:00:00Z", "99.500000"),
        ("1970-01-01T00:01:40.500000001Z", "1970-01-01T00:01:40.3Z", "100.400000"),
        ("1970-01-01T00:01:40Z", "1970-01-01T00:00:40Z", "99.000000"),
        ("1970-01-01T00:01:40Z", "1970-01-01T00:02:00Z", "99.000000"),
    ],
    ids=["first life", "as the engine says never", "right after another", "long after another", "ended already"],
)
def test_a_log_is_asked_for_from_the_middle_between_two_lives_on(started_at: str, finished_at: str, since: str) -> None:
    assert since == since_param(started_at, finished_at)
