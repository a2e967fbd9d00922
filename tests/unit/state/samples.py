"""Records the state's tests are made of."""

from state import Revision, Run, Store


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
