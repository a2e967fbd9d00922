"""Run all tests in three parts at once: those without the lab compute, those with it mostly wait, on two labs.

The first part is shown as it runs, the others when they have ended. Further arguments go to pytest.
"""

import compileall
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import IO

ROOT = Path(__file__).parents[1]
LAB_FILES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests/lab").glob("test_*.py"))
SECOND_FROM = "tests/lab/test_leases.py"
"""Where the second lab's files begin, by name: both take about as long."""

FIRST = ("-m", "lab", "tests/contract", *(name for name in LAB_FILES if name < SECOND_FROM))
SECOND = ("-m", "lab", *(name for name in LAB_FILES if name >= SECOND_FROM))
WITHOUT = ("-m", "not lab and not vllm")
SECOND_LAB = {"FLEET_LAB_NAME": "fleettwo", "FLEET_LAB_SUBNET": "10.79.0.0/24"}


def start(words: tuple[str, ...], output: IO[bytes] | None, more: dict[str, str]) -> subprocess.Popen[bytes]:
    """One part; its output to `output`, or to where ours goes. A Ctrl-C reaches it once, through us."""
    told = subprocess.STDOUT if output else None
    argv = [sys.executable, "-m", "pytest", "-q", *sys.argv[1:], *words]
    env = {**os.environ, **more}
    return subprocess.Popen(argv, stdout=output, stderr=told, env=env, cwd=ROOT, start_new_session=True)


def main() -> int:
    """Exit code of a part that failed, 0 when none did.

    Byte code is written first: each of the many commands of the lab would compile the whole tool, where the environment
    tells Python to write none.
    """
    for package in ("specs", "state", "reconciler"):
        compileall.compile_dir(ROOT / package, quiet=2)
    with ExitStack() as stack:
        outputs = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(2)]
        rest = [start(SECOND, outputs[0], SECOND_LAB), start(WITHOUT, outputs[1], {})]
        parts = [start(FIRST, None, {}), *rest]

        def stop(number: int, frame: FrameType | None) -> None:
            for part in parts:
                part.send_signal(signal.SIGINT)

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        codes = [part.wait() for part in parts]
        for title, output in zip((b"on the second lab", b"without a lab"), outputs, strict=True):
            output.seek(0)
            sys.stdout.buffer.write(b"\n" + title + b":\n" + output.read())
        sys.stdout.flush()
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
