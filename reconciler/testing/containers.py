"""A container of the simulation, and how the Docker API would show it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from reconciler.core import identity
from reconciler.core.desired import ContainerSpec, EnvValue, SecretRef
from reconciler.core.observed import RUNNING_STATES, Container, Owner
from reconciler.core.preflight import preflight_mark
from reconciler.core.redaction import redactor
from reconciler.core.secret_marks import Mark
from reconciler.testing.behaviours import Behaviour
from reconciler.testing.clock import rfc3339

DEFAULT_SHM_BYTES = 64 * 2**20


@dataclass
class SimContainer:
    """One container. `life` counts its starts: what an earlier life still had to come does not happen.

    `first_line`: index in `logs` of what its present life said first.
    """

    id: str
    name: str
    spec: ContainerSpec
    image_id: str
    labels: dict[str, str]
    env: tuple[tuple[str, str], ...]
    entrypoint: tuple[str, ...] | None
    behaviour: Behaviour
    created_s: float
    state: str = "created"
    life: int = 0
    started_s: float | None = None
    finished_s: float | None = None
    exit_code: int | None = None
    oom_killed: bool = False
    error: str = ""
    restart_policy: str = "no"
    is_listening: bool = False
    is_ready: bool = False
    held_bytes: int = 0
    logs: list[str] = field(default_factory=list)
    first_line: int = 0
    restart_count: int = 0
    _whose: tuple[str, Owner | None] | None = None
    _shown: tuple[object, Container] | None = None

    @property
    def is_running(self) -> bool:
        """Whether it holds memory, GPUs and ports."""
        return self.state in RUNNING_STATES

    @property
    def owner(self) -> Owner | None:
        """Whose it is, by its name and its labels; these never change, so they are read once a name."""
        if self._whose is None or self._whose[0] != self.name:
            self._whose = self.name, identity.owner_by(self.name, self.labels)
        return self._whose[1]

    def fact(self) -> Container:
        """As it is observed: of a foreign one less is kept, and secrets are references."""
        times = (self.started_s, self.finished_s, self.restart_count)
        now = (self.name, self.state, times, self.restart_policy, self.error)
        if self._shown is None or self._shown[0] != now:
            self._shown = now, self._fact()
        return self._shown[1]

    def _fact(self) -> Container:
        owner = self.owner
        return Container(
            id=self.id,
            name=self.name,
            state=self.state,
            image_id=self.image_id,
            owner=owner,
            preflight=(tried := preflight_mark(self.name, self.labels)),
            claims=None if owner or tried else identity.owner_of(self.labels),
            entrypoint=self.entrypoint,
            command=self.spec.command,
            env=self._shown_env() if owner else (),
            mounts=tuple(sorted(self.spec.mounts, key=lambda mount: mount.target)),
            devices=self.spec.devices,
            shm_bytes=self.spec.shm_bytes or DEFAULT_SHM_BYTES,
            ulimits=self.spec.ulimits,
            gpus=self.spec.gpus,
            restart_policy=self.restart_policy,
            image=self.image_id,
            exit_code=self.exit_code,
            oom_killed=self.oom_killed,
            error=self.error,
            created_at=rfc3339(self.created_s),
            started_at=_time(self.started_s),
            finished_at=_time(self.finished_s),
            restart_count=self.restart_count,
        )

    def told(self, lines: Iterable[str]) -> tuple[str, ...]:
        """What it printed, as it is read: without the secrets it was given."""
        secrets = identity.secret_references(self.labels)
        return tuple(map(redactor((key, value) for key, value in self.env if key in secrets), lines))

    def live_marks(self, mark: Mark) -> dict[str, str]:
        """The mark of the value that each secret has now, by env key."""
        secrets = identity.secret_references(self.labels)
        return {key: mark(secrets[key], value) for key, value in self.env if key in secrets}

    def _shown_env(self) -> tuple[tuple[str, EnvValue], ...]:
        secrets = identity.secret_references(self.labels)
        return tuple((key, SecretRef(secrets[key]) if key in secrets else value) for key, value in self.env)


def _time(virtual_s: float | None) -> str:
    return "" if virtual_s is None else rfc3339(virtual_s)
