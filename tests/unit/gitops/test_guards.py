"""What windows mean on real clocks: changes of the clocks, nights, leap days, spans longer than their period."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import specs
from reconciler.core.gitops.windows import Window, closed, opening
from reconciler.gitops.guards import opening_at, settings_of, spans, windows_of

BERLIN = "Europe/Berlin"
HOUR = 3600.0
DAY = 24 * HOUR


def at(text: str, zone: str = BERLIN, fold: int = 0) -> float:
    """A moment on the clocks of a zone; `fold` 1: the second time that they show it."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def allow(cron: str, for_s: float, zone: str = BERLIN) -> Window:
    return Window("allow", cron, for_s, zone)


def deny(cron: str, for_s: float, zone: str = BERLIN) -> Window:
    return Window("deny", cron, for_s, zone, "freeze")


OFFICE = allow("0 8 * * mon-fri", 10 * HOUR)
NIGHT = allow("0 22 * * *", 8 * HOUR)


@pytest.mark.parametrize(
    ("window", "moment", "is_in"),
    [
        (OFFICE, at("2026-11-30 08:00"), True),
        (OFFICE, at("2026-11-30 07:59:59"), False),
        (OFFICE, at("2026-11-30 17:59:59"), True),
        (OFFICE, at("2026-11-30 18:00"), False),
        (OFFICE, at("2026-11-28 12:00"), False),
        (OFFICE, at("2026-11-30 08:00", "UTC"), True),
        (OFFICE, at("2026-11-30 17:30", "UTC"), False),
        (NIGHT, at("2026-11-30 23:00"), True),
        (NIGHT, at("2026-12-01 05:59"), True),
        (NIGHT, at("2026-12-01 06:00"), False),
        (NIGHT, at("2027-01-01 00:00"), True),
    ],
)
def test_a_window_begins_with_its_expression_and_lasts_as_long_as_it_says(
    window: Window, moment: float, is_in: bool
) -> None:
    assert is_in == (spans(window, moment).ends_s is not None)


@pytest.mark.parametrize(
    ("cron", "moment", "begins"),
    [
        ("30 2 * * *", "2026-03-28 12:00", at("2026-03-29 03:00")),
        ("30 2 * * *", "2026-10-24 12:00", at("2026-10-25 02:30")),
        ("0 8 * * *", "2026-03-28 12:00", at("2026-03-29 08:00")),
        ("0 8 * * *", "2026-10-24 12:00", at("2026-10-25 08:00")),
    ],
    ids=["left out in spring: when the clocks go on", "shown twice in autumn: the first time", "spring", "autumn"],
)
def test_a_change_of_the_clocks_neither_skips_a_beginning_nor_makes_two(cron: str, moment: str, begins: float) -> None:
    window = allow(cron, HOUR / 2)
    assert begins == spans(window, at(moment)).next_s
    assert begins + HOUR / 2 == spans(window, begins).ends_s
    assert None is spans(window, begins + HOUR).ends_s
    assert begins < at(moment) + DAY + HOUR < (spans(window, begins).next_s or 0)


def test_what_it_lasts_is_time_that_passes_whatever_the_clocks_do() -> None:
    spring, autumn = at("2026-03-28 22:00"), at("2026-10-24 22:00")
    assert at("2026-03-29 07:00") == spring + 8 * HOUR == spans(NIGHT, at("2026-03-29 04:00")).ends_s
    assert at("2026-10-25 05:00") == autumn + 8 * HOUR == spans(NIGHT, at("2026-10-25 04:00")).ends_s


def test_the_hour_that_comes_twice_is_in_a_window_over_it_both_times() -> None:
    for fold in (0, 1):
        assert spans(NIGHT, at("2026-10-25 02:30", fold=fold)).ends_s == at("2026-10-25 05:00")


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/Phoenix", "UTC", "Asia/Kathmandu"])
def test_zones_without_a_change_of_the_clocks(zone: str) -> None:
    window = allow("15 6 * * *", HOUR, zone)
    for day in ("2026-03-29", "2026-07-01", "2026-10-25"):
        assert at(f"{day} 07:15", zone) == spans(window, at(f"{day} 06:15", zone)).ends_s
        assert None is spans(window, at(f"{day} 06:14:59", zone)).ends_s


def test_a_leap_day_comes_every_four_years() -> None:
    window = deny("0 0 29 2 *", DAY)
    assert at("2028-02-29 00:00") == spans(window, at("2026-11-30 12:00")).next_s
    assert at("2028-03-01 00:00") == spans(window, at("2028-02-29 13:00")).ends_s
    assert None is spans(window, at("2027-03-01 00:00")).ends_s


def test_one_that_is_longer_than_its_period_never_ends() -> None:
    window = deny("0 0 * * *", 36 * HOUR)
    now = at("2026-11-30 12:00")
    assert at("2026-12-01 12:00") == spans(window, now).ends_s
    found = closed([window], now, spans)
    assert found is not None
    assert found.until_s is None


def test_deny_wins_and_overlapping_denies_count_as_one() -> None:
    christmas = [deny("0 0 24 12 *", 3 * DAY), deny("0 12 26 12 *", 7 * DAY)]
    found = opening([OFFICE, *christmas], at("2026-12-24 12:00"), spans)
    assert found.denied is not None
    assert (at("2027-01-02 12:00"), False) == (found.denied.until_s, found.is_allowed)
    assert "freeze (deny 0 0 24 12 *, Europe/Berlin)" in found.denied.why


def test_outside_of_what_is_allowed_it_says_when_it_opens_also_behind_a_deny() -> None:
    holiday = deny("0 0 1 12 *", DAY)
    found = closed([OFFICE, holiday], at("2026-11-30 18:00"), spans)
    assert found is not None
    assert at("2026-12-02 08:00") == found.until_s
    assert found.why.startswith("outside of what is allowed: 0 8 * * mon-fri Europe/Berlin")


def test_without_windows_or_with_denies_alone_it_is_open_and_nothing_is_allowed_by_name() -> None:
    for windows in ([], [deny("0 0 24 12 *", DAY)]):
        found = opening(windows, at("2026-11-30 12:00"), spans)
        assert (None, False) == (found.closed, found.is_allowed)
    assert opening([OFFICE], at("2026-11-30 12:00"), spans).is_allowed


def test_a_time_before_it_ever_began_is_in_no_span() -> None:
    assert spans(allow("0 0 29 2 *", HOUR, "UTC"), 0.0).ends_s is None


CRONS = st.sampled_from(["*/30 * * * *", "30 2 * * *", "0 2,3 * * *", "0 */3 * * *", "5 22 * * sat", "0 3 29 3 *"])
MOMENTS = st.one_of(
    st.floats(at("2026-03-27 00:00"), at("2026-03-31 00:00")), st.floats(at("2026-10-23 00:00"), at("2026-10-27 00:00"))
)


@given(CRONS, st.sampled_from([60.0, HOUR, 5 * HOUR]), st.sampled_from([BERLIN, "UTC", "Australia/Lord_Howe"]), MOMENTS)
@example("30 2 * * *", HOUR, BERLIN, at("2026-03-29 03:30"))
@example("0 */3 * * *", 5 * HOUR, BERLIN, at("2026-03-31 00:00") - 0.5)  # one has begun, the next one nearly has
@settings(max_examples=60, deadline=None)
def test_it_is_in_a_span_exactly_while_one_that_began_has_not_ended(
    cron: str, for_s: float, zone: str, now: float
) -> None:
    """Looking forward from long before finds the same spans."""
    window = allow(cron, for_s, zone)
    moment, began = now - DAY, None
    while (following := spans(window, moment).next_s) is not None and following <= now:
        moment = began = following
    expected = began + for_s if began is not None and now < began + for_s else None
    assert expected == spans(window, now).ends_s


def test_a_window_that_lasts_until_the_next_one_and_longer_has_no_gap() -> None:
    daily = deny("0 22 * * *", DAY + HOUR)
    for ago_s in (2.0, 0.9, 0.1, 0.0):
        assert spans(daily, at("2026-11-30 22:00") - ago_s).ends_s is not None


def test_the_section_of_a_spec_becomes_settings_and_windows() -> None:
    told = specs.Gitops.model_validate(
        {
            "heal": "on",
            "heal_budget": {"times": 2, "within": "1h", "pause": "5m"},
            "budget": {"stops": 1},
            "protected": ("front",),
            "windows": ({"deny": "0 0 24 12 *", "for": "1d", "zone": BERLIN, "reason": "feast"},),
        }
    )
    made = settings_of(told)
    assert ("on", 2, 3600.0, 300.0, 1, ("front",)) == (
        *(made.heal, made.heal_times, made.heal_within_s, made.heal_pause_s),
        *(made.stops, made.protected),
    )
    assert (Window("deny", "0 0 24 12 *", DAY, BERLIN, "feast"),) == windows_of(told)
    assert opening_at(told, at("2026-12-24 09:00")).closed is not None
    assert opening_at(told, datetime(2026, 12, 27, tzinfo=UTC).timestamp()).closed is None
