"""News of drift: short, plain, the worst first."""

from reconciler.core.drift import Finding, Severity
from reconciler.core.drift.news import News
from reconciler.views.drift_news import LINE, LINES, news_body, news_level, news_title
from tests.unit.core.drift_reports import finding

DEGRADED = finding("pair-a/pair/1@node2")
OUTAGE = finding("single-3/solo", "health", severity=Severity.OUTAGE)


def of(*findings: Finding, new: frozenset[str] = frozenset()) -> News:
    return News(findings, new, {item.id: item.address for item in findings})


def test_news_say_how_much_how_bad_and_what_is_new() -> None:
    news = of(OUTAGE, DEGRADED, new=frozenset({OUTAGE.id}))
    assert "fleet lab: 2 findings, 1 outage, 1 new" == news_title("lab", news)
    assert [
        "new outage: single-3/solo health: exited 137 (expected running)",
        "degraded: pair-a/pair/1@node2 state: exited 137 (expected running)",
    ] == news_body(news).splitlines()


def test_fewer_findings_than_before_are_told_as_such() -> None:
    assert "fleet lab: 1 finding, fewer than before" == news_title("lab", of(DEGRADED))


def test_all_is_well_again_unless_something_is_out_of_sight() -> None:
    assert "fleet lab: all is as wanted again" == news_title("lab", of())
    hidden = News((), frozenset(), {"0" * 12: "node3"})
    assert "fleet lab: nothing else is found" == news_title("lab", hidden)
    assert "1 earlier finding could not be looked at" == news_body(hidden)


def test_a_service_is_told_how_bad_the_worst_is() -> None:
    notice = finding("node3", "disk-low", severity=Severity.NOTICE)
    told = [news_level(of(*found)) for found in ([OUTAGE, DEGRADED], [DEGRADED], [notice], [])]
    assert ["failure", "warning", "info", "success"] == told
    assert "info" == news_level(News((), frozenset(), {"0" * 12: "node3"}))


def test_news_are_short_and_plain_whatever_was_found() -> None:
    many = [finding(f"c/l/{number}@n", found="\x1b[31m\n" + "x" * 5000) for number in range(LINES + 7)]
    lines = news_body(of(*many)).splitlines()
    assert LINES + 1 == len(lines)
    assert "and 7 more" == lines[-1]
    assert all(len(line) <= LINE and line.isprintable() for line in lines)
