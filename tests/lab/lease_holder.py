"""A controller in a process of its own: it takes a node's lease and then changes the node, as late as it is told to.

    python -m tests.lab.lease_holder HOST USER IDENTITY_FILE KNOWN_HOSTS CONTAINER sleep|wait

Says `held`. Then with `sleep` it stops itself (SIGSTOP) between the check of its lease and the effect, and says how the
effect ended; with `wait` it waits.
"""

import asyncio
import os
import signal
import sys

from reconciler.core.leases import Claim
from reconciler.nodes.errors import NodeError
from reconciler.nodes.ssh_fleet import SshFleet
from reconciler.nodes.targets import SshTarget


async def main(host: str, user: str, identity_file: str, known_hosts: str, container: str, then: str) -> None:
    fleet = SshFleet([SshTarget("node", host, user=user, identity_file=identity_file, known_hosts=known_hosts)])
    node = await fleet.connect("node", 10)
    await node.containers.start(f"{container}-first")  # so that the way of effects stands, as in the middle of an apply
    lease = await node.leases.take(Claim("sleeper@test", "a test", "run-of-the-sleeper"))
    say("held")
    if then == "wait":
        await asyncio.sleep(600)
    await lease.check()
    os.kill(os.getpid(), signal.SIGSTOP)
    try:
        await node.containers.start(container)
    except NodeError as error:
        say(f"failed: {error.kind}")
    else:
        say("started")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
