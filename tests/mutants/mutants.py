"""The faults that are built in on purpose: where in the source, what it says there, and what it is made to say."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """`old` has to be in the source of `module` exactly once; else the mutant itself is at fault."""

    name: str
    module: str
    old: str
    new: str
    sentence: str


MUTANTS = (
    Mutant(
        "cut-before-stage",
        "reconciler.core.planner",
        "return stop_steps(unit, room_reason(ties, unit), after)",
        "return stop_steps(unit, room_reason(ties, unit), ())",
        "a lane is stopped before everything that takes its place is there",
    ),
    Mutant(
        "boot-before-cut",
        "reconciler.core.steps",
        "boot = builder.boot(staged + stops + displaced + unprove + room)",
        "boot = builder.boot(stage)",
        "ranks start without waiting for what stands in their place",
    ),
    Mutant(
        "no-wait-for-memory",
        "reconciler.core.room",
        "if free is not None and free < need:",
        "if free is not None and free < 0:",
        "the memory that a lane declares is not waited for",
    ),
    Mutant(
        "confirm-before-verify",
        "reconciler.core.steps",
        "replace(step, requires=_ids(verifies)) for step",
        "replace(step, requires=verifies[0].requires) for step",
        "ranks are marked as proved when they have started, not when they have answered",
    ),
    Mutant(
        "retire-before-confirm",
        "reconciler.core.planner",
        "after = (*stops[unit.address], *_of_bond(bond_of[unit.address], confirms))",
        "after = stops[unit.address]",
        "what ran before is removed before its replacement is proved",
    ),
    Mutant(
        "no-preflight",
        "reconciler.core.steps",
        "tried = tuple(self._preflight(new, (*pulls.values(), *fetches)))",
        "tried: tuple[Step, ...] = ()",
        "nothing tries a command line out before lanes stop for it",
    ),
    Mutant(
        "no-rollback",
        "reconciler.core.machine",
        "return self._ready([item.id for item in way.steps])",
        "return ()",
        "a gang that fails after the cut is left as it is",
    ),
    Mutant(
        "half-rollback",
        "reconciler.core.rollback",
        "for number, wave in enumerate(waves):",
        "for number, wave in enumerate(waves[:1]):",
        "only the first wave of what ran before starts again",
    ),
    Mutant(
        "rollback-leaves-the-new-one",
        "reconciler.core.rollback",
        "steps = stops + tuple(",
        "steps = tuple(",
        "what ran before starts again while the new ranks still run",
    ),
    Mutant(
        "requirements-are-ignored",
        "reconciler.core.machine",
        "return all(self.status[needed] in GOOD for needed in step.requires)",
        "return True",
        "a step begins whatever became of what it needs",
    ),
    Mutant(
        "a-stop-is-believed",
        "reconciler.execution.effects",
        "await node.containers.stop(found.id, step.grace_s if step.grace_s is not None else 30.0)",
        "pass",
        "a stop counts as done without having been done",
    ),
    Mutant(
        "failures-are-swallowed",
        "reconciler.execution.attempts",
        "if not error.is_transport:\n                    return failed(told(error))",
        "if not error.is_transport:\n                    return Outcome(Status.APPLIED)",
        "what a node refuses counts as done",
    ),
    Mutant(
        "unknown-is-empty",
        "reconciler.core.units",
        "elif candidate.is_unknown:",
        "elif candidate.rule is None:",
        "a lane whose node cannot be read does not keep what it replaces from being stopped",
    ),
    Mutant(
        "foreign-is-ours",
        "reconciler.core.classify",
        "if item.owner is not None and item.owner.fleet == desired.fleet",
        "if item.owner is not None",
        "containers of another fleet count as ours",
    ),
    Mutant(
        "names-are-reused",
        "reconciler.core.steps",
        "    return not any(\n        (node, name) in taken",
        "    return True or not any(\n        (node, name) in taken",
        "a new container gets a name that is taken",
    ),
    Mutant(
        "no-journal",
        "reconciler.execution.runner",
        "        self._journal = Journal(self.store, self.run_id)\n",
        "        self.store = type('Deaf', (), {'outcome': lambda *told: None})()\n"
        "        self.store.intents = lambda run_id, intents: (0,) * len(intents)\n"
        "        self._journal = Journal(self.store, self.run_id)\n",
        "effects are carried out without an intent in the journal",
    ),
    Mutant(
        "no-fence",
        "reconciler.execution.fencing",
        "        await self.prove()\n        await self.containers.start(ref)",
        "        await self.containers.start(ref)",
        "a start does not prove that the lease is held",
    ),
    Mutant(
        "no-lease",
        "reconciler.execution.attempts",
        "await self.leases.confirm(node)",
        "pass",
        "no effect proves that the lease is held",
    ),
    Mutant(
        "boot-id-is-ignored",
        "reconciler.execution.leasing",
        "    if before.boot_id != now.boot_id and not now.follows_another:",
        "    return None\n    if before.boot_id != now.boot_id and not now.follows_another:",
        "a node that was booted, or had by another meanwhile, is taken for the same as before",
    ),
    Mutant(
        "withheld-is-done",
        "reconciler.fleet",
        "partial(self.judged, going(plan), time.time())",
        "partial(self.judged, plan, time.time())",
        "what is in quarantine is carried out",
    ),
    Mutant(
        "operation-is-not-ours",
        "reconciler.execution.effects",
        "return NOOP if is_same else stale(",
        "return stale(",
        "after a lost reply the container that was made is not known again",
    ),
    Mutant(
        "the-gate-is-open",
        "reconciler.execution.effects",
        "if verdict.health is Health.HEALTHY:",
        "if verdict.health is not None:",
        "every verdict of the gate counts as healthy",
    ),
    Mutant(
        "refusals-are-ignored",
        "reconciler.fleet",
        "if plan.refusals or plan.forbidden or (",
        "if plan.forbidden or (",
        "a plan with refusals is carried out",
    ),
)
