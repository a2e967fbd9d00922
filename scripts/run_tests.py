"""Run both halves of the tests at once: those with the lab mostly wait, those without it mostly compute.

The half with the lab is shown as it runs, the other one when it has ended. Further arguments go to pytest.
"""

import signal
import subprocess
import sys
import tempfile
from types import FrameType
from typing import IO

PYTEST = (sys.executable, "-m", "pytest", "-q")


def start(marks: str, output: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    """One half; its output to `output`, or to where ours goes."""
    told = subprocess.STDOUT if output else None
    return subprocess.Popen([*PYTEST, "-m", marks, *sys.argv[1:]], stdout=output, stderr=told)


def main() -> int:
    """Exit code of the half that failed; that of the one without the lab when both did."""
    with tempfile.TemporaryFile() as output:
        halves = [start("not lab", output), start("lab")]

        def stop(number: int, frame: FrameType | None) -> None:
            for half in halves:
                half.send_signal(signal.SIGINT)

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        codes = [half.wait() for half in reversed(halves)]
        output.seek(0)
        sys.stdout.buffer.write(b"\nwithout the lab:\n" + output.read())
        sys.stdout.flush()
    return next((code for code in reversed(codes) if code), 0)


if __name__ == "__main__":
    sys.exit(main())
