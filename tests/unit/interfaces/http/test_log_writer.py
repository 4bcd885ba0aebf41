"""Whoever reads the log, or does not, keeps nobody waiting."""

from __future__ import annotations

import io
import threading
from functools import partial

from whyrank.interfaces.http.observability import LogWriter, lost_lines

LOST = partial(lost_lines, as_json=False)


class Slow(io.StringIO):
    """Takes nothing before it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = threading.Event()
        self.begun = threading.Event()

    def write(self, text: str) -> int:
        self.begun.set()
        self.reads.wait()
        return super().write(text)


def test_lines_come_out_in_their_order() -> None:
    out = io.StringIO()
    writer = LogWriter(out, LOST)
    for number in range(100):
        writer.write(f"{number}\n")
    writer.close()
    assert out.getvalue().split() == [str(number) for number in range(100)]


def test_a_reader_that_does_not_read_keeps_nobody_waiting_and_hears_what_was_lost() -> None:
    slow = Slow()
    writer = LogWriter(slow, LOST, waiting=2)
    writer.write("first\n")
    slow.begun.wait()  # it is in the pipe now, and two more may wait behind it
    for line in ("second\n", "third\n", "fourth\n", "fifth\n"):
        writer.write(line)
    slow.reads.set()
    writer.close()
    assert slow.getvalue() == (
        "first\nwhyrank: 2 lines of the log were lost, because nothing read them\nsecond\nthird\n"
    )


def test_a_reader_that_has_gone_is_nobodys_failure() -> None:
    out = io.StringIO()
    out.close()
    writer = LogWriter(out, LOST)
    assert writer.write("line\n") == 5
    writer.close()


def test_a_reader_that_never_reads_does_not_hold_up_the_end() -> None:
    slow = Slow()
    writer = LogWriter(slow, LOST, waiting=1)
    writer.write("first\n")
    slow.begun.wait()
    writer.write("second\n")
    writer.close(seconds=0.05)
    assert slow.getvalue() == ""
    slow.reads.set()
