"""Checks from packages: found by their entry points, and never able to break a command."""

import threading
from importlib.metadata import EntryPoint

from reconciler import plugins
from reconciler.core.checks import Finding, NodeCheck, Result, Site
from tests.unit.core.build import desired, facts, observed

OWN = NodeCheck("own", "Is it so?", "mend it", lambda site: [])
PAIR = (OWN, NodeCheck("other", "Is it so?", "mend it", lambda site: []))
CLASH = NodeCheck("clock", "Is it so?", "mend it", lambda site: [])
TEXT = "text"


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{value}", plugins.GROUP)


def found(check: object) -> list[Finding]:
    assert isinstance(check, NodeCheck)
    seen = observed(facts())
    return list(check.look(Site(desired(nodes=["n1"]), seen, facts())))


def test_an_entry_point_names_a_check_or_several() -> None:
    assert ["own"] == [check.id for check in plugins.loaded([point("a", "OWN")])]
    assert ["own", "other"] == [check.id for check in plugins.loaded([point("a", "PAIR")])]


def test_what_is_wrong_with_one_is_what_it_finds() -> None:
    points = [
        EntryPoint("gone", "no.such.package:CHECK", plugins.GROUP),
        point("gone-too", "NOTHING"),
        point("text", "TEXT"),
        point("clash", "CLASH"),
        point("fine", "OWN"),
    ]
    checks = plugins.loaded(points)
    assert [f"fleet.checks:{name}" for name in ("gone", "gone-too", "text", "clash")] + ["own"] == [
        check.id for check in checks
    ]
    told = [found(check) for check in checks]
    assert [] == told[-1]
    assert all(item.result is Result.UNKNOWN for findings in told for item in findings)
    assert "No module named 'no'" in told[0][0].evidence
    assert "is str, not a Check or NodeCheck" in told[2][0].evidence
    assert "there is a check clock already" in told[3][0].evidence


def test_what_is_installed_here_can_be_loaded() -> None:
    assert isinstance(plugins.checks(), tuple)


def test_one_that_hangs_is_unknown_and_asked_once() -> None:
    asked, waits = [], threading.Event()

    def hang(site: Site) -> list[Finding]:
        asked.append(site.node)
        waits.wait()
        return []

    check = plugins.hurried(NodeCheck("slow", "Is it so?", "mend it", hang), 0.05)
    assert [Result.UNKNOWN] * 2 == [item.result for _ in range(2) for item in found(check)]
    assert ["n1"] == asked
    assert "it did not end within 0.05 s" in found(check)[0].evidence
    waits.set()
