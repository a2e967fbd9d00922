"""`gitops: ...`: what the agent may do by itself. It changes nothing of what runs."""

from pathlib import Path

import pytest

import specs

BASE = "fleet: lab\n"
WINDOW = '{allow: "0 8 * * mon-fri", for: 10h, zone: Europe/Berlin, reason: office hours}'


def load(folder: Path, text: str) -> specs.Spec:
    path = folder / "fleet.yaml"
    path.write_text(BASE + text, encoding="utf-8")
    return specs.load(path)


def test_nothing_said_is_no_healing_and_always_open(tmp_path: Path) -> None:
    told = load(tmp_path, "").gitops
    assert ("off", (), None, False) == (told.heal, told.windows, told.budget.stops, told.allow_empty)
    assert (3, 21600.0, 60.0) == (told.heal_budget.times, told.heal_budget.within, told.heal_budget.pause)


def test_windows_say_when_for_how_long_and_on_whose_clocks(tmp_path: Path) -> None:
    text = f'gitops: {{windows: [{WINDOW}, {{deny: "0 0 24 12 *", for: 3d}}]}}\n'
    office, feast = load(tmp_path, text).gitops.windows
    assert ("allow", "0 8 * * mon-fri", 36000.0, "Europe/Berlin", "office hours") == (
        *(office.kind, office.cron, office.lasts),
        *(office.zone, office.reason),
    )
    assert ("deny", "0 0 24 12 *", 259200.0, "UTC", None) == (
        *(feast.kind, feast.cron, feast.lasts),
        *(feast.zone, feast.reason),
    )


def test_it_is_no_part_of_the_fingerprint(tmp_path: Path) -> None:
    plain = load(tmp_path, "").fingerprint
    told = "gitops: {heal: on_, budget: {stops: 2}, allow_empty: true}\n".replace("on_", "report")
    assert plain == load(tmp_path, told).fingerprint
    assert plain == load(tmp_path, f"gitops: {{windows: [{WINDOW}]}}\n").fingerprint


def test_on_and_off_are_words_here(tmp_path: Path) -> None:
    """YAML 1.1 would read them as true and false."""
    assert ["on", "off"] == [load(tmp_path, f"gitops: {{heal: {word}}}\n").gitops.heal for word in ("on", "off")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{heal: always}", "gitops.heal: must be 'off', 'report' or 'on'"),
        ("{heal_budget: {times: 0}}", "gitops.heal_budget.times: must be at least 1"),
        ("{heal_budget: {within: 0}}", "gitops.heal_budget.within: must be more than 0"),
        ("{budget: {stops: -1}}", "gitops.budget.stops: must be at least 0"),
        ("{budget: {stop: 1}}", "did you mean 'stops'?"),
        ("{windows: [{for: 1h}]}", "a window says either `allow` or `deny`"),
        ('{windows: [{allow: "0 8 * * *", deny: "0 8 * * *", for: 1h}]}', "a window says either `allow` or `deny`"),
        ('{windows: [{allow: "0 8 * * *"}]}', "`for`: how long it is"),
        ('{windows: [{allow: "0 8 * * *", for: 0}]}', "gitops.windows[0].for: must be more than 0"),
        ('{windows: [{allow: "0 8 * * *", fro: 1h}]}', "did you mean 'for'?"),
        ('{windows: [{allow: "0 8 * * *", lasts: 1h}]}', "unknown key 'lasts'"),
        ('{windows: [{allow: "0 25 * * *", for: 1h}]}', "'0 25 * * *' is not a cron expression"),
        ('{windows: [{allow: "0 8 * *", for: 1h}]}', "It is minute, hour, day, month and weekday"),
        ('{windows: [{allow: "0 0 8 * * *", for: 1h}]}', "It is minute, hour, day, month and weekday"),
        ('{windows: [{allow: "@daily", for: 1h}]}', "It is minute, hour, day, month and weekday"),
        ('{windows: [{deny: "0 0 30 2 *", for: 1h}]}', "'0 0 30 2 *' "),
        ('{windows: [{allow: "0 8 * * *", for: 1h, zone: Europe/Berlun}]}', "did you mean 'Europe/Berlin'?"),
        ('{windows: [{allow: "0 8 * * *", for: 1h, zone: ../../etc/passwd}]}', "no time zone is named"),
        ('{windows: [{allow: "0 8 * * *", for: 1h, zone: ""}]}', "no time zone is named"),
        ("{protected: [qwen]}", "no lane is named 'qwen'"),
        ("{protected: ['rack/qw*']}", "no lane is named 'rack/qw*'"),
        ("{branch: main}", "unknown key 'branch'"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(text: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(specs.SpecErrors) as caught:
        load(tmp_path, f"gitops: {text}\n")
    assert expected in str(caught.value)
    assert "fleet.yaml:2:" in str(caught.value)


LANE = "lanes: {tiny: {engine: custom, image: 'ghcr.io/o/e@sha256:%s', entrypoint: [serve]}}\n" % ("a" * 64)


@pytest.mark.parametrize("pattern", ["tiny", "t*", "*", "rack-a/tiny", "*/tiny"])
def test_protected_are_lanes_by_name_pattern_or_address(pattern: str, tmp_path: Path) -> None:
    assert (pattern,) == load(tmp_path, f"{LANE}gitops: {{protected: ['{pattern}']}}\n").gitops.protected


def test_the_schema_has_the_keys_as_they_are_written() -> None:
    window = specs.json_schema()["$defs"]["Window"]["properties"]
    assert ["allow", "deny", "for", "zone", "reason"] == list(window)
