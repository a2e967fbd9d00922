"""The contract's subjects: simulated and real, each with both image stores."""

import os
from collections.abc import Iterator

import pytest

from tests.contract.simulated import SimulatedSubject
from tests.contract.subject import Subject
from tests.lab import Lab, Progress, packages

STORES = ("classic", "containerd")
SUBJECTS = [pytest.param(("simulated", store), id=f"simulated-{store}") for store in STORES] + [
    pytest.param(("lab", store), id=f"lab-{store}", marks=pytest.mark.lab) for store in STORES
]


@pytest.fixture(scope="session")
def contract_lab() -> Iterator[Lab]:
    """A lab of the contract's own, so that it can be played while other tests use theirs. FLEET_LAB_KEEP=1 keeps it.

    Two runs at once need two labs: FLEET_CONTRACT_LAB_NAME and FLEET_CONTRACT_LAB_SUBNET.
    """
    if reason := packages.unsupported():
        pytest.skip(reason)
    name = os.environ.get("FLEET_CONTRACT_LAB_NAME", "contract")
    subnet = os.environ.get("FLEET_CONTRACT_LAB_SUBNET", "10.84.0.0/24")
    lab = Lab.up(name, subnet, 3, progress=Progress())
    yield lab
    if os.environ.get("FLEET_LAB_KEEP") != "1":
        lab.down()


@pytest.fixture(params=SUBJECTS)
def subject(request: pytest.FixtureRequest) -> Subject:
    """A fleet without a trace of the test before."""
    kind, store = request.param
    if kind == "simulated":
        return SimulatedSubject(store)
    from tests.contract.real import LabSubject  # noqa: PLC0415 - the simulation is to be tested without asyncssh

    lab: Lab = request.getfixturevalue("contract_lab")
    lab.reset()
    return LabSubject(lab, store)
