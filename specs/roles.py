"""What the head and the workers of a lane do differently, where the engine leaves it to the spec."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict

from specs.diagnostics import refuse
from specs.environment import EnvValue, Words
from specs.fields import EnvName, Name
from specs.paths import HttpPath
from specs.quantities import Duration
from specs.records import Record

RoleName = Literal["head", "worker"]


def _both(order: tuple[RoleName, ...]) -> tuple[RoleName, ...]:
    if order and sorted(order) != ["head", "worker"]:
        raise refuse(
            "an order names `head` and `worker` once each",
            "It says who starts first: [worker, head] or [head, worker].",
            "leave it out to start all at once",
        )
    return order


Order = Annotated[tuple[RoleName, ...], Strict(strict=False), AfterValidator(_both)]


class Role(Record):
    """The ranks of one role: the head is rank 0, workers are all others."""

    argv: Words = Field(default=(), description="command of these ranks instead of the lane's `argv`")
    entrypoint: Annotated[tuple[str, ...], Strict(strict=False), Field(min_length=1)] | None = Field(
        default=None, description="what to run instead of the lane's `entrypoint`, one word an item"
    )
    env: dict[EnvName, EnvValue] = Field(
        default_factory=dict,
        description="environment of these ranks over the lane's: text, which may hold placeholders, or a secret",
    )
    port: Name | None = Field(default=None, description="the port by which these ranks are judged, a key of `ports`")
    health: HttpPath | None = Field(
        default=None,
        description="path at that port that answers 200 when a rank is up; the head has `health.path`, too",
    )
    stop_grace: Duration | None = Field(
        default=None, description="time to stop before a rank is killed, in seconds; default: the lane's"
    )


class Roles(Record):
    """What head and workers do differently."""

    head: Role = Field(default=Role(), description="rank 0, which answers HTTP at the cluster's `port`")
    worker: Role = Field(default=Role(), description="all other ranks")

    def of(self, rank: int) -> Role:
        """The role of a rank, counted from 0."""
        return self.head if rank == 0 else self.worker
