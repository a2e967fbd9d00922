"""The network between ranks: ports, rendezvous, NCCL, RDMA, Ray.

Wordings after the sources and public issue threads of NCCL 2.19 to 2.32, PyTorch's c10d and gloo, Ray 2.9 to 2.55 and
llama.cpp's RPC back end.
"""

from reconciler.core.causes.signature import Signature

NETWORK = (
    Signature(
        id="port-in-use",
        title="its port is taken already",
        explanation="Something else listens on a port the engine wants: its API, or the rendezvous of the ranks.",
        mend="`ss -ltnp` on the node tells who; stop it, or give the cluster another `port`.",
        patterns=(
            r"[Aa]ddress already in use",
            r"EADDRINUSE",
            r"error while attempting to bind on address",
            r"couldn't bind (HTTP server|to server) socket",
            r"[Pp]ort:? \d+ is already (in use|allocated)",
        ),
    ),
    Signature(
        id="fabric-interface-missing",
        title="the network interface it was told to use is not there",
        explanation="NCCL or gloo got an interface name that this node does not have, or that has no address.",
        mend="Compare the node's `interfaces` in the spec with `ip -brief address` on it.",
        patterns=(
            r"no socket interface found",
            r"no (NCCL_SOCKET_IFNAME )?interface found",
            r"connecting to address  ?with family \d+ is neither AF_INET",
            r"Unable to find (address|interface) for:? ",
            r"NCCL_SOCKET_IFNAME .*not found",
        ),
    ),
    Signature(
        id="loopback-rendezvous",
        title="the ranks look for each other on 127.0.0.1",
        explanation="A rank announced the loopback address, which leads every other node back to itself.",
        mend="Give the cluster its `interface`, so that GLOO_SOCKET_IFNAME and the host address are set, or mend the "
        "node's name in /etc/hosts.",
        patterns=(
            r"connectFullMesh failed.*127\.0\.0\.1",
            r"timed out connecting.*remote=\[127\.0\.0\.1\]",
            r"(connect|timed out).{0,40} to \(?(127\.0\.0\.1|localhost)[,:]",
        ),
    ),
    Signature(
        id="gloo-mesh",
        title="the ranks could not connect to each other",
        explanation="gloo, which the ranks coordinate with, could not reach every rank from every other.",
        mend="Check that the cluster's `interface` is up on each node and that no firewall is between them.",
        may_follow=True,
        patterns=(r"connectFullMesh failed",),
    ),
    Signature(
        id="rdma-gid",
        title="RDMA cannot reach the other node",
        explanation="The queue pair or the first transfer failed, as with a wrong GID index, HCA or MTU, or a cable in "
        "the other port.",
        mend="Compare `nccl.gid_index` and each node's `hca` with `show_gids` there; `ib_write_bw` shows whether the "
        "two nodes can talk.",
        patterns=(
            r"ibv_modify_qp failed",
            r"NET/IB ?: Got completion .*(error|status)",
            r"NET/IB ?: .*(GID|gid).*(invalid|not found|out of range)",
            r"failed to modify QP to (INIT|RTR|RTS)",
        ),
    ),
    Signature(
        id="no-rdma-device",
        title="no RDMA device is visible to it",
        explanation="NCCL was told to use InfiniBand or RoCE and finds no such device in the container.",
        mend="Check `ibv_devices` on the node, the node's `hca`, and that the lane gets /dev/infiniband.",
        patterns=(
            r"NCCL WARN .*(Unable to open|No) (IB |RDMA )?device",
            r"NCCL WARN NET/IB ?: No device found",
            r"Failed to initialize (any NET plugin|NET plugin IB)",
            r"NCCL WARN .*libibverbs",
        ),
    ),
    Signature(
        id="duplicate-gpu",
        title="two ranks were given the same GPU",
        explanation="NCCL refuses two ranks on one device.",
        mend="Give the lane as many GPUs a node as ranks run there, or more nodes.",
        patterns=(r"Duplicate GPU detected",),
    ),
    Signature(
        id="nccl-timeout",
        title="the ranks waited for each other until NCCL gave up",
        explanation="One rank did not take part in a collective operation: it hangs, computes, or cannot be reached.",
        mend="Look at the rank whose log ends earliest (`fleet logs LANE`); NCCL_DEBUG=INFO shows the paths it chose.",
        may_follow=True,
        patterns=(r"Watchdog caught collective operation timeout", r"Timeout at NCCL work"),
    ),
    Signature(
        id="rendezvous-timeout",
        title="the ranks did not find each other in time",
        explanation="The head waited for ranks that did not come, or a rank could not reach the head's rendezvous "
        "port.",
        mend="Check the address and port of the rendezvous, that no firewall is between the nodes, and the logs of the "
        "rank that is missing.",
        may_follow=True,
        patterns=(
            r"Timed out after \d+ seconds waiting for (clients|workers)",
            r"client socket has timed out after \d+ ?ms while trying to connect",
            r"(DistStoreError|DistNetworkError)",
            r"TCP client failed to connect/validate to host",
            r"\bwait timeout after \d+ ?ms",
        ),
    ),
    Signature(
        id="ray-no-head",
        title="Ray's head did not answer",
        explanation="A worker waited for the Ray head in vain, or Ray itself did not come up on this node.",
        mend="Check that rank 0 runs and that its Ray port is reachable from this node.",
        may_follow=True,
        patterns=(
            r"Failed to connect to GCS",
            r"Timed out while waiting for GCS",
            r"node timed out during startup",
            r"Unable to connect to GCS",
        ),
    ),
    Signature(
        id="ray-resources",
        title="Ray has fewer GPUs than the lane wants",
        explanation="Not every rank joined the Ray cluster, or a node offers fewer GPUs than it was said to.",
        mend="Compare `ray status` on the head with the lane's `parallel` and `nodes`.",
        may_follow=True,
        patterns=(
            r"number of required \w+s exceeds the total number of available \w+s in the placement group",
            r"No available node types can fulfill resource request",
            r"Current node has no GPU available",
            r"Cannot provide a placement group of",
        ),
    ),
    Signature(
        id="worker-unreachable",
        title="a worker rank could not be reached",
        explanation="The head could not connect to a worker's port.",
        mend="See whether the worker runs and listens (`fleet status`, `fleet logs LANE`), and whether a firewall is "
        "between the nodes.",
        may_follow=True,
        patterns=(r"[Ff]ailed to connect to [\w.\-\[\]:]+:\d+$", r"failed to find RPC (backend|server)"),
    ),
    Signature(
        id="nccl-error",
        title="NCCL could not connect the GPUs of the ranks",
        explanation="A call of NCCL failed below it: a socket, a shared memory segment, a device.",
        mend="Set NCCL_DEBUG=INFO in the lane's env and boot again: the line before the error says what failed.",
        may_follow=True,
        patterns=(
            r"unhandled (system|cuda) error",
            r"ncclSystemError",
            r"ncclInternalError",
            r"ncclUnhandledCudaError",
            r"ncclInvalidUsage",
        ),
    ),
)
