"""Log streams, cut anywhere."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from reconciler.nodes.log_lines import LogLines, split


def frame(stream: int, text: bytes) -> bytes:
    return struct.pack(">BxxxL", stream, len(text)) + text


def test_both_streams_keep_their_own_lines() -> None:
    data = frame(1, b"one ") + frame(2, b"err\n") + frame(1, b"more\n") + frame(1, b"rest")
    assert split(data, framed=True) == ["err", "one more", "rest"]


def test_a_terminal_has_no_frames() -> None:
    assert split(b"a\r\nb\r\n", framed=False) == ["a", "b"]


def test_each_state_of_a_progress_bar_is_a_line() -> None:
    lines = LogLines(framed=False)
    assert lines.feed(b" 10%\r 20%\r") == [" 10%"]
    assert lines.feed(b"\ndone\n") == [" 20%", "done"]


def test_empty_lines_stay() -> None:
    assert split(b"a\n\nb\n", framed=False) == ["a", "", "b"]


TEXT = st.binary(max_size=40).filter(lambda data: b"\r" not in data)


@given(st.lists(st.tuples(st.sampled_from([1, 2]), TEXT)), st.data())
def test_where_the_bytes_are_cut_makes_no_difference(frames: list[tuple[int, bytes]], data: st.DataObject) -> None:
    stream = b"".join(frame(*item) for item in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    lines = LogLines(framed=True)
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += lines.feed(stream[start:end])
    assert found + lines.rest() == split(stream, framed=True)


def test_what_goes_on_without_a_line_end_comes_in_pieces() -> None:
    """Kept whole it would take all memory, and looking for its end again and again all time."""
    lines = LogLines(framed=True)
    got = [line for _ in range(256) for line in lines.feed(frame(1, b"x" * 16384))]
    assert {"x"} == set("".join(got))
    assert 2 < len(got) < 256
    assert 256 * 16384 == sum(len(line) for line in [*got, *lines.rest()])
