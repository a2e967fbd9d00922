"""Fixtures for tests on the lab."""

import os
from collections.abc import Iterator

import pytest

from . import Lab, packages
from .cache import locked
from .shell import Progress


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The tests' own lab: the one that is up, or a new one; FLEET_LAB_KEEP=1 leaves it for the next run.

    Two test runs at once need two labs: FLEET_LAB_NAME and FLEET_LAB_SUBNET.
    """
    if reason := packages.unsupported():
        pytest.skip(reason)
    name, subnet = os.environ.get("FLEET_LAB_NAME", "fleettest"), os.environ.get("FLEET_LAB_SUBNET", "10.78.0.0/24")
    with locked(f"tests-{name}", wait=False):
        lab = Lab.up(name, subnet, 4, progress=Progress())
        yield lab
        if os.environ.get("FLEET_LAB_KEEP") != "1":
            lab.down()


@pytest.fixture
def clean_lab(lab: Lab) -> Lab:
    """The lab without a trace of the test before: mended, no containers, good models. Images stay."""
    lab.reset()
    return lab


@pytest.fixture
def bare_lab(clean_lab: Lab) -> Lab:
    """The lab without any image, nor blobs of a broken off pull, which the containerd store keeps for eight hours."""
    clean_lab.reset(images=True)
    for node in clean_lab.nodes.values():
        node.docker("image", "prune", "-f")
    return clean_lab
