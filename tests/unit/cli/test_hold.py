"""`fleet hold`, `holds`, `release`: what is asked of the command line. No node is contacted."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

import state
from tests.lifecycle.commanding import Commands
from tests.lifecycle.harness import Story


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(story, capsys)


WRONG = [
    (("hold", "par"), "no lane, cluster or node named 'par'; did you mean 'pair'?"),
    (("hold", "zzz"), "no lane, cluster or node named 'zzz'; known: "),
    (("hold", "quad"), "quad is a lane and a cluster: say which with --kind lane"),
    (("hold", "pair", "--kind", "node"), "no node named 'pair'; known: node1, node2, node3, node4"),
    (("hold", "pair", "--for", "soon"), "--for: 'soon' is not a duration; write for example 4h or 30m"),
    (("hold", "pair", "--for", "0s"), "--for: a hold lasts longer than nothing and at most a year"),
    (("hold", "pair", "--for", "367d"), "at most a year"),
    (("hold", "--for", "4h"), "name what to hold"),
    (("release", "pair"), "pair is not held"),
    (("release", "nothing"), "nothing is held by the name or id 'nothing'"),
]


@pytest.mark.parametrize(("words", "told"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_what_is_wrong_is_told_and_nothing_is_recorded(
    fleet: Commands, story: Story, words: tuple[str, ...], told: str
) -> None:
    done = fleet(*words)
    assert (1, "", []) == (done.code, done.out, story.nodes.calls)
    assert told in done.err
    assert not (story.folder / ".fleet").exists()


def test_listing_and_releasing_nothing_makes_no_state(fleet: Commands, story: Story) -> None:
    assert "Nothing is held.\n" == fleet("holds").out == fleet("hold").out
    assert not (story.folder / ".fleet").exists()


def test_a_name_of_two_kinds_is_held_as_the_one_that_is_asked_for(fleet: Commands) -> None:
    assert "cluster quad is held by " in fleet("hold", "quad", "--kind", "cluster").out
    assert ["cluster"] == [item["kind"] for item in fleet("holds", "--json").json]


def test_a_hold_says_what_by_whom_until_when_why_and_how_it_ends(
    fleet: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1_800_000_000.0)
    monkeypatch.setattr("reconciler.person.name", lambda: "ops@laptop")
    said = fleet("hold", "pair", "--for", "1d", "--reason", "a demo\nuntil eight").out
    placed = fleet("holds", "--json").json[0]["id"]
    told = "lane pair is held by ops@laptop until 2027-01-16 08:00 UTC: a demo\\nuntil eight"
    assert f"{told}\n`fleet release {placed}` ends it.\n" == said
    assert f"{placed}  {told}\n" == fleet("holds").out


def test_ones_own_hold_is_replaced_and_that_of_another_stays(fleet: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet("hold", "pair", "--reason", "one")
    fleet("hold", "pair", "--reason", "two")
    assert ["two"] == [item["reason"] for item in fleet("holds", "--json").json]
    monkeypatch.setattr("reconciler.person.name", lambda: "somebody@else")
    fleet("hold", "pair", "--reason", "three")
    assert ["two", "three"] == [item["reason"] for item in fleet("holds", "--json").json]


def test_of_several_holds_on_one_thing_one_is_released_by_its_id(
    fleet: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet("hold", "pair", "--reason", "one")
    monkeypatch.setattr("reconciler.person.name", lambda: "somebody@else")
    second = fleet("hold", "pair", "--json").json["id"]
    done = fleet("release", "pair")
    assert 1 == done.code
    assert "2 holds are on pair: name one by its id" in done.err
    assert f"{second}  lane pair is held by somebody@else" in done.err
    assert 0 == fleet("release", second).code
    assert ["one"] == [item["reason"] for item in fleet("holds", "--json").json]


def test_a_misspelled_hold_is_told_the_right_one(fleet: Commands) -> None:
    fleet("hold", "pair")
    assert "nothing is held by the name or id 'pairr' (did you mean 'pair'?)" in fleet("release", "pairr").err


def test_what_has_left_the_spec_can_be_released(fleet: Commands, story: Story) -> None:
    hold = state.Hold("1f00c0de", "lane", "gone", "ops@laptop", "", time.time(), None)
    store = story.load().open_state()
    store.place_hold(hold)
    store.place_hold(replace(hold, id="2f00c0de", expires_at=time.time() + 60))
    store.close()
    assert 0 == fleet("release", "1f00c0de").code
    assert "Released: lane gone was held by ops@laptop until " in fleet("release", "gone").out
