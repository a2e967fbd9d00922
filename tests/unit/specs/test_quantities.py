"""Sizes and durations as people write them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from specs import parse_duration, parse_size
from specs.quantities import SIZE_UNITS, ByteSize, Duration, PositiveDuration


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (0, "0B"),
        (512_000_000, "512MB"),
        (137_438_953_472, "128GiB"),
        (1_649_267_441_664, "1.5TiB"),
        (1_500, "1.5kB"),
        (1_500, "1.5KB"),
        (2**30, "1 GiB"),
    ],
)
def test_a_size_is_a_number_with_a_unit(expected: int, text: str) -> None:
    assert expected == parse_size(text)


@pytest.mark.parametrize("text", ["", "128G", "64g", "GiB", "-1GiB", "1,5GiB", "1e3MB", "128", "1  GB", "0.3B", "٣GB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a"):
        parse_size(text)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (2400.0, "40m"),
        (5400.0, "1h30m"),
        (2.5, "2.5s"),
        (0.3, "300ms"),
        (86400.0, "1d"),
        (0.0, "0s"),
        (90061.5, "1d1h1m1s500ms"),
    ],
)
def test_a_duration_is_numbers_with_units(expected: float, text: str) -> None:
    assert expected == parse_duration(text)


@pytest.mark.parametrize("text", ["", "40", "1:30", "m", "30m1h", "1h 30m", "-1s", "1w", "5min", "1e3s", "1m1m", "٣s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize("value", [-1, 2**63, True, 1.5, None, [], "9999999TiB"])
def test_a_byte_size_is_a_whole_number_that_docker_can_hold(value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(ByteSize).validate_python(value)


@pytest.mark.parametrize("value", [-1, float("inf"), float("nan"), True, None, "366d", 10**30])
def test_a_duration_is_finite_and_not_negative(value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Duration).validate_python(value)


def test_zero_is_a_duration_but_not_a_positive_one() -> None:
    assert 0.0 == TypeAdapter(Duration).validate_python("0s")
    with pytest.raises(ValidationError):
        TypeAdapter(PositiveDuration).validate_python("0s")


@given(st.integers(0, 10**6), st.sampled_from(sorted(SIZE_UNITS)))
def test_a_size_is_its_number_times_its_unit(number: int, unit: str) -> None:
    assert number * SIZE_UNITS[unit] == parse_size(f"{number}{unit}")


@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_the_parts_of_a_duration_add_up(h: int, m: int, s: int, ms: int) -> None:
    assert pytest.approx(h * 3600 + m * 60 + s + ms / 1000) == parse_duration(f"{h}h{m}m{s}s{ms}ms")


@given(st.text(max_size=30))
def test_any_text_is_a_quantity_or_a_value_error(text: str) -> None:
    for parse in (parse_size, parse_duration):
        with suppress(ValueError):
            assert parse(text) >= 0
