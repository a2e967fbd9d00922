"""Any engine: commands and environments with placeholders, the same on every rank or by role; rank 0 answers HTTP.

Placeholders are those of `templates.NAMES`, `{ports.NAME}` and `{paths.NAME}`. Other braces stay as they are, so JSON
needs no escaping.
"""

import difflib
from collections.abc import Iterator

import specs
from reconciler.core.desired import Endpoint, EnvValue, Ready
from reconciler.engines.base import Engine, Fault, Job, Part, Seat, env_value, fabric_env
from reconciler.engines.drafts import args_of
from reconciler.engines.flags import flags
from reconciler.engines.placeholders import placeholder_faults
from reconciler.engines.templates import filled, named, values


def _faults(lane: specs.Lane, model: specs.Model | None) -> Iterator[Fault]:
    yield from _missing_commands(lane)
    for loc, text in _texts(lane):
        yield from placeholder_faults(lane, model, loc, text)
    for name, role in _roles(lane):
        yield from _port_faults(lane, name, role)


def _missing_commands(lane: specs.Lane) -> Iterator[Fault]:
    """Yield what has no command at all."""
    if lane.argv:
        return
    if not lane.roles.head.argv:
        yield Fault(("engine",), "a custom engine needs `argv`", "It says what to run on each rank.", "set `argv`")
    elif lane.node_count > 1 and not lane.roles.worker.argv:
        yield Fault(("roles",), "the workers have no command", "Only the head has `argv`.", "set `roles.worker.argv`")


def _port_faults(lane: specs.Lane, name: str, role: specs.Role) -> Iterator[Fault]:
    if role.port is not None and role.port not in lane.ports:
        close = difflib.get_close_matches(role.port, lane.ports, 1)
        hint = f"did you mean '{close[0]}'?" if close else f"write it: `ports: {{{role.port}: ...}}`"
        yield Fault(("roles", name, "port"), f"no port of the lane is named '{role.port}'", hint=hint)
    if role.health is not None and role.port is None:
        yield Fault(("roles", name, "health"), "`health` of a role is asked at its `port`", hint="set `port`, too")


def _texts(lane: specs.Lane) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield each text that may hold placeholders, and where it stands in the lane."""
    yield from ((("argv", index), word) for index, word in enumerate(lane.argv))
    for name, role in _roles(lane):
        loc = ("roles", name)
        yield from (((*loc, "argv", index), word) for index, word in enumerate(role.argv))
        yield from (((*loc, "env", key), value) for key, value in role.env.items() if isinstance(value, str))


def _roles(lane: specs.Lane) -> tuple[tuple[str, specs.Role], ...]:
    return (("head", lane.roles.head), ("worker", lane.roles.worker))


def _part(job: Job, seat: Seat) -> Part:
    role, known = job.lane.roles.of(seat.index), values(job, seat)
    own = tuple(map(seat.node.expand, role.entrypoint or ()))
    return Part(
        role="head" if seat.index == 0 else "worker",
        program=own,
        command=(*(filled(word, known) for word in role.argv or job.lane.argv), *flags(args_of(job, seat))),
        ports=_ports(job, seat),
        ready=Ready(job.lane.ports[role.port]) if job.lane.order and role.port else None,
        env=(*_env(job, seat), *fabric_env(job, seat)),
        stop_grace_s=role.stop_grace,
        has_entrypoint=bool(own),
    )


def _env(job: Job, seat: Seat) -> Iterator[tuple[str, EnvValue]]:
    known = values(job, seat)
    for key, value in job.lane.roles.of(seat.index).env.items():
        yield key, filled(value, known) if isinstance(value, str) else env_value(value)


def _ports(job: Job, seat: Seat) -> tuple[int, ...]:
    own = tuple(sorted(job.lane.ports.values()))
    if seat.index != 0:
        return own
    meets = job.is_spread and any("rendezvous_port" in named(text) for _, text in _texts(job.lane))
    return (job.cluster.port, *((job.cluster.rendezvous_port,) if meets else ()), *own)


def _boot_order(job: Job) -> tuple[tuple[int, ...], ...]:
    ranks = tuple(seat.index for seat in job.seats)
    by_role = {"head": ranks[:1], "worker": ranks[1:]}
    waves = tuple(by_role[name] for name in job.lane.order)
    return tuple(filter(None, waves)) or (ranks,)


def _endpoints(job: Job, seat: Seat) -> tuple[Endpoint, ...]:
    """The page of the role, asked where `order` tries the port, too: at the rank's own address."""
    role = job.lane.roles.of(seat.index)
    return (Endpoint(job.lane.ports[role.port], role.health, seat.address),) if role.port and role.health else ()


ENGINE = Engine(
    "custom",
    "any program: commands and environments with placeholders, by role and in an order of your own",
    _faults,
    _part,
    _boot_order,
    endpoints=_endpoints,
    takes_commands=True,
)
