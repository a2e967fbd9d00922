"""A node: a process tree that behaves like a machine, with the switches that a test wants to pull."""

import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from . import cgroups, daemon, disk, network, procs
from .config import CLASSIC, NodeConfig
from .shell import PATH, LabError, run, tail_of, wait_until

BOOT_SECONDS, START_SECONDS = 60, 2


class Node:
    """One node of a lab. Every method may be called in any state and leaves the state that its name says."""

    def __init__(self, config: NodeConfig, *, runtime: Path | None) -> None:
        self.config = config
        self.name = config.name
        self.address = config.address
        self.store = config.store
        self._runtime = None if config.store == CLASSIC else runtime
        self._namespace = network.namespace_path(config.namespace)

    def __repr__(self) -> str:
        return f"<node {self.name} {self.address} {self.store} {'on' if self.is_on else 'off'}>"

    @property
    def pid(self) -> int | None:
        """The node's first process, as this machine counts; nothing while the power is off."""
        return procs.first_process(self._namespace)

    @property
    def is_on(self) -> bool:
        return self.pid is not None

    @property
    def docker_answers(self) -> bool:
        """Whether the Docker daemon answers on its own socket."""
        return daemon.answers(self.docker_socket)

    @property
    def disk(self) -> Path:
        """The folder that is the node's disk: `disk/srv/models` here is `/srv/models` there."""
        return self.config.folder / "disk"

    @property
    def docker_socket(self) -> Path:
        """The node's Docker socket as seen from this machine, for a test that must look without SSH."""
        return Path(f"/proc/{self.pid}/root/run/docker.sock")

    @property
    def host_key(self) -> str:
        """The public host key that the node has now."""
        return disk.public_host_key(self.config)

    # power

    def power_on(self) -> None:
        """Boot; returns when sshd and Docker answer."""
        if not self.is_on:
            procs.spawn(self._boot_argv(), record=self._process, log=self._log("boot.log"))
            self.wait_ready()
        else:  # a machine that is on may have lost a server since
            self.start_docker()
            self.start_sshd()

    def power_off(self) -> None:
        """Pull the plug: everything in the node dies at once, the disk stays."""
        procs.end_inside(self._namespace)
        cgroups.remove(self.config.namespace)

    def wait_ready(self) -> None:
        """Wait for sshd and Docker to answer; a boot or a daemon that ended is an error at once."""
        wait_until(f"{self.name} to boot", self._boots, seconds=BOOT_SECONDS, detail=self._last_words)
        wait_until(f"Docker on {self.name}", self._docker_starts, seconds=BOOT_SECONDS, detail=self._last_words)
        wait_until(f"sshd on {self.name}", self._sshd_runs, seconds=10, detail=self._last_words)

    def _boot_argv(self) -> list[str]:
        script, folder = self.config.folder.parent / "node.sh", self.config.folder
        own = ["unshare", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "--propagation", "private"]
        boot = ["/bin/sh", str(script), "boot", str(folder), self.name, str(self._runtime or "")]
        return ["nsenter", f"--net={self._namespace}", *own, "--", "tini", "--", *boot]

    # the link

    def cut_link(self) -> None:
        """Silence: nothing is refused, nothing answers."""
        network.set_link(self.config.link, up=False)

    def mend_link(self) -> None:
        network.set_link(self.config.link, up=True)

    def delay(self, milliseconds: int) -> None:
        """Make everything to and from the node take this much longer each way; 0 makes it as fast as before."""
        if milliseconds > 0:
            network.slow_down(self.config, milliseconds)
        else:
            network.speed_up(self.config)

    # programs

    def exec(
        self, argv: Sequence[str], *, check: bool = True, timeout: float = 60
    ) -> "subprocess.CompletedProcess[str]":
        """Run a program in the node, as root on its console, whatever state its network is in."""
        return run(self.enter(argv), check=check, timeout=timeout)

    def enter(self, argv: Sequence[str]) -> list[str]:
        """The command that runs a program in the node."""
        if (pid := self.pid) is None:
            raise LabError(f"{self.name} is off: cannot run {shlex.join(argv)}")
        clean = ["env", "-i", f"PATH={PATH}", "HOME=/root", "LANG=C.UTF-8", "TERM=dumb"]
        return ["nsenter", f"--target={pid}", "--mount", "--uts", "--pid", "--net", "--wd", "--", *clean, *argv]

    def docker(self, *args: str, check: bool = True, timeout: float = 120) -> str:
        """The output of the node's own Docker client, which is of the same version as its daemon."""
        return self.exec(["docker", *args], check=check, timeout=timeout).stdout.strip()

    # faults

    def stop_docker(self, *, crash: bool = False) -> None:
        """Stop the daemon: asked to, which stops its containers too, or killed, which leaves them running."""
        self._signal("dockerd", signal.SIGKILL if crash else signal.SIGTERM)
        wait_until(f"dockerd on {self.name} to end", lambda: not self._pids("dockerd"), seconds=60)

    def start_docker(self) -> None:
        if not self._pids("dockerd"):
            self._script("start_docker")
        wait_until(f"Docker on {self.name}", self._docker_starts, seconds=BOOT_SECONDS, detail=self._last_words)

    def stop_sshd(self) -> None:
        """Kill the SSH server with all its sessions, in the middle of whatever they do."""
        self._signal("sshd", signal.SIGKILL)
        wait_until(f"sshd on {self.name} to end", lambda: not self._pids("sshd"), seconds=10)

    def start_sshd(self) -> None:
        if not self._pids("sshd"):
            self._script("start_sshd")
        wait_until(f"sshd on {self.name}", self._sshd_runs, seconds=10, detail=self._last_words)

    def change_host_key(self) -> str:
        """Come back as another machine: a host key that nobody pinned. Returns the new public key."""
        kept = self._kept_key()
        if not kept.exists():
            for suffix in ("", ".pub"):
                Path(f"{disk.host_key(self.config)}{suffix}").rename(f"{kept}{suffix}")
        disk.new_host_key(self.config)
        self._restart_sshd()
        return self.host_key

    def restore_host_key(self) -> None:
        """Be the machine that was pinned again."""
        kept = self._kept_key()
        if kept.exists():
            for suffix in ("", ".pub"):
                Path(f"{kept}{suffix}").rename(f"{disk.host_key(self.config)}{suffix}")
            self._restart_sshd()

    def fill_disk(self, leave_mb: int) -> None:
        """Fill the Docker disk up to a rest; only on a small disk of its own, else it would be this machine's."""
        if self.config.small_disk_mb is None:
            raise LabError(f"{self.name} has no small disk: name it in `small_disk_mb` when the lab is made")
        free = int(self.exec(["df", "--output=avail", "-m", "/var/lib/docker"]).stdout.split()[-1])
        if free > leave_mb:
            self.exec(["fallocate", "-l", f"{free - leave_mb}M", "/var/lib/docker/ballast"])

    def free_disk(self) -> None:
        self.exec(["rm", "-f", "/var/lib/docker/ballast"])

    # back to normal

    def mend(self) -> None:
        """Undo every fault: powered, linked, both servers up, the pinned key."""
        self.delay(0)
        self.mend_link()
        self.power_on_if_needed()
        self.restore_host_key()
        self.start_sshd()
        self.start_docker()
        if self.config.small_disk_mb is not None:
            self.free_disk()

    def power_on_if_needed(self) -> None:
        if not self.is_on:
            self.power_on()

    def remove_containers(self) -> None:
        if containers := self.docker("ps", "-aq").split():
            self.docker("rm", "-f", "-v", *containers)

    def remove_images(self) -> None:
        """Forget every image, so that the next test starts without any."""
        if images := sorted(set(self.docker("images", "-aq", "--no-trunc").split())):
            self.docker("rmi", "-f", *images)

    # inside

    @property
    def _process(self) -> Path:
        return self.config.folder / "process"

    def _kept_key(self) -> Path:
        return self.config.folder / "pinned_host_key"

    def _log(self, name: str) -> Path:
        return self.disk / "var" / "log" / name

    def _last_words(self) -> str:
        logs = ("boot.log", "dockerd.log", "sshd.log")
        return "\n".join(f"--- {self.name} {name}\n{tail_of(self._log(name))}" for name in logs)

    def _pids(self, program: str) -> list[int]:
        return procs.named(procs.inside(self._namespace), program)

    def _signal(self, program: str, number: int) -> None:
        procs.end_all(self._namespace, self._pids(program), number)

    def _script(self, verb: str) -> None:
        self.exec(["/bin/sh", "/run/node.sh", verb])

    def _restart_sshd(self) -> None:
        if self.is_on:
            self.stop_sshd()
            self.start_sshd()

    def _sshd_runs(self) -> bool:
        return "sshd" in self.exec(["ss", "-Hltnp", "sport = :22"], check=False).stdout

    def _boots(self) -> bool:
        if not self.is_on and procs.recorded(self._process) is None:
            raise LabError(f"{self.name} died as it booted\n{self._last_words()}")
        return self.is_on

    def _docker_starts(self) -> bool:
        if not daemon.answers(self.docker_socket):
            if not self._boots() or self._docker_gave_up():
                raise LabError(f"Docker on {self.name} ended as it started\n{self._last_words()}")
            return False
        return True

    def _docker_gave_up(self) -> bool:
        """Started a while ago, and there is no such process."""
        try:
            since = time.time() - Path(f"/proc/{self.pid}/root/run/docker.started").stat().st_mtime
        except OSError:
            return False
        return since > START_SECONDS and not self._pids("dockerd")
