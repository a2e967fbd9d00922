"""Records the state's tests are made of."""

from state import Hold, Measure, Quarantine, Revision, Run, Store


def a_run(name: str = "r1", at: float = 1_000.0) -> Run:
    return Run(
        id=name,
        command="apply",
        fleet="lab",
        spec_fingerprint="f" * 64,
        plan_id="p" * 64,
        commit=None,
        user="ops",
        host="box",
        started_at=at,
    )


def a_revision(number: int = 1, run: str = "r1", gang: str = "pair/tiny", boot_s: float = 12.5) -> Revision:
    return Revision(gang=gang, number=number, fingerprint="a" * 64, run_id=run, confirmed_at=2_000.0, boot_s=boot_s)


def intend(store: Store, run: str = "r1", step: str = "pair/tiny/boot/0", at: float = 1_001.0) -> int:
    return store.intent(
        run_id=run,
        step_id=step,
        gang="pair/tiny",
        node="n1",
        op="start",
        target="fleet-tiny-r0-v1",
        operation="op-1",
        at=at,
    )


def a_hold(name: str = "h1", at: float = 1_000.0, until: float | None = 2_000.0) -> Hold:
    return Hold(name, "lane", "tiny", "ops@box", "a demo for a customer", placed_at=at, expires_at=until)


def a_quarantine(
    fingerprint: str = "f1", run: str = "r1", gang: str = "pair/tiny", cause: str = "no answer"
) -> Quarantine:
    return Quarantine(gang, fingerprint, cause, run, at=3_000.0)


def a_measure(seconds: float = 60.0, kind: str = "boot", run: str = "r1", model: str = "tiny") -> Measure:
    size_bytes = 2**40 if kind == "pull" else None
    return Measure(
        kind, "pair/tiny", "n1", "sha256:aa", model, "linux/arm64 1 x GB10", seconds, size_bytes, run, 4_000.0
    )


def fill(store: Store) -> None:
    """Something of everything."""
    store.begin_run(a_run("r1"))
    for result in ("applied", "failed"):
        store.outcome("r1", intend(store, "r1"), result, "as it was told", 1_002.0)
    store.confirm(a_revision(1))
    store.measure((a_measure(), a_measure(30.0, "pull")))
    store.claim_plan("plan-1", "r1", 1_003.0)
    store.end_run("r1", 0, 1_004.0)
    store.begin_run(a_run("r2", at=1_500.0))
    intend(store, "r2")
    store.confirm(a_revision(2, run="r2"))
    store.place_hold(a_hold("h1"))
    store.place_hold(a_hold("h2", until=None))
    store.release_hold("h1", 1_200.0)
    store.quarantine(a_quarantine("f1"))
    store.quarantine(a_quarantine("f2", run="r2"))
    store.add_report(5_000.0, '{"findings": []}')
    store.remember("agent", '{"good": "4f2c1ab"}')
