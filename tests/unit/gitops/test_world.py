"""What the agent tells the world: its HTTP endpoint, systemd, its log, and its status as text."""

import json
import socket
import threading
from pathlib import Path

import httpx
import pytest

from reconciler.gitops import systemd
from reconciler.gitops.endpoint import Endpoint, Metrics, address_of
from reconciler.gitops.log import Log
from reconciler.gitops.workplace import BusyError, Workplace
from reconciler.views.gitops_text import gitops_text


def test_the_endpoint_serves_metrics_and_says_whether_the_loop_turns() -> None:
    metrics, alive = Metrics(), [True]
    metrics.fetch_failures.inc()
    server = Endpoint("127.0.0.1", 0, metrics, lambda: alive[0])
    try:
        url = f"http://127.0.0.1:{server.port}"
        assert "fleet_gitops_fetch_failures_total 1.0" in httpx.get(f"{url}/metrics").text
        assert (200, "ok\n") == ((found := httpx.get(f"{url}/healthz")).status_code, found.text)
        alive[0] = False
        assert 503 == httpx.get(f"{url}/healthz").status_code
        assert 404 == httpx.get(f"{url}/").status_code
        with pytest.raises(OSError, match="in use"):
            Endpoint("127.0.0.1", server.port, Metrics(), lambda: True)
    finally:
        server.close()


@pytest.mark.parametrize(
    ("text", "address"), [("9400", ("127.0.0.1", 9400)), (":9400", ("127.0.0.1", 9400)), ("0.0.0.0:1", ("0.0.0.0", 1))]
)
def test_an_address_without_a_host_is_the_loopback(text: str, address: tuple[str, int]) -> None:
    assert address == address_of(text)


@pytest.mark.parametrize("text", ["", "host", "host:", "host:70000", "host:-1"])
def test_an_address_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        address_of(text)


def test_systemd_is_told_and_its_absence_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    systemd.tell("READY=1")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        systemd.tell("READY=1")
        assert b"READY=1" == manager.recv(100)
    systemd.tell("STOPPING=1")  # the manager is gone
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    assert 30.0 == systemd.watchdog_s()
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert systemd.watchdog_s() is None


def test_the_log_is_lines_for_people_or_objects_for_programs() -> None:
    lines: list[str] = []
    Log(lines.append, lambda: 0.0).error("a lane is down\nask somebody", gang="a/b")
    Log(lines.append, lambda: 0.0, is_json=True).info("all is well", gang="a/b")
    assert "fleet: error: a lane is down\n  ask somebody\n" == lines[0]
    said = {"at": "1970-01-01T00:00:00.000+00:00", "level": "info", "message": "all is well", "gang": "a/b"}
    assert said == json.loads(lines[1])


def test_a_work_folder_is_for_one_agent_which_can_be_woken(tmp_path: Path) -> None:
    place = Workplace(tmp_path / "work")
    assert not place.wake()
    with place.taken():
        with pytest.raises(BusyError, match="another agent works in"), place.taken():
            pass
        assert place.is_taken
        assert not place.wake()  # it does not listen yet
        wakes = place.wakes()
        assert place.wake()
        with open(wakes, "rb", buffering=0) as pipe:  # noqa: PTH123 - a number
            assert b"!" == pipe.read(10)
    assert not place.is_taken
    assert not place.wake()


def test_many_wakes_block_nobody(tmp_path: Path) -> None:
    place = Workplace(tmp_path / "work")
    with place.taken(), open(place.wakes(), "rb", buffering=0):  # noqa: PTH123 - a number
        waking = threading.Thread(target=lambda: [place.wake() for _ in range(70_000)], daemon=True)
        waking.start()
        waking.join(20)
        assert not waking.is_alive()


def test_the_status_as_text() -> None:
    told = {
        "pid": 7,
        "running": True,
        "state": "blocked",
        "head": "a" * 40,
        "subject": "more context",
        "applied": "b" * 40,
        "good": None,
        "why": "the spec cannot be used",
        "hint": "push a commit that mends it",
        "until_s": 60.0,
        "gave_up": [{"gang": "rack-a/qwen", "why": "it was repaired 3 times"}],
        "heals": [{"gang": "rack-a/qwen", "at_s": 0.0, "ok": False}],
        "suspended": {"by": "ops@desk", "reason": "a demo", "since_s": 0.0, "until_s": None},
        "fetch_error": "git fetch: the remote hung up",
        "next_look_s": 90.0,
    }
    assert """\
agent    runs as process 7 · blocked
newest   aaaaaaaaaaaa  more context
applied  bbbbbbbbbbbb
good     none
why      the spec cannot be used (until at 60)
         push a commit that mends it
held off by ops@desk, until it is ended: a demo
gave up  rack-a/qwen: it was repaired 3 times
repairs  1, the last 30s ago: rack-a/qwen failed
error    git fetch: the remote hung up
next     look at at 90
""" == gitops_text(told, 30.0, lambda at_s: f"at {at_s:g}")
