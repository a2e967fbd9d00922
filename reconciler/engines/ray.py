"""A Ray cluster inside the ranks' own containers: the head waits until all have joined, and then becomes the engine.

After vLLM's `examples/online_serving/multi-node-serving.sh` (0.1x): `ray start --head` goes into the background, so the
shell can `exec` the engine, which thereby is PID 1 and gets the signals; a worker is `ray start --block`.
"""

from collections.abc import Sequence

PORT = 6379
"""Where the head's control store listens; `ports: {ray: ...}` of the lane sets another."""

JOIN_S = 600
"""How long the head waits for its workers; they start right after its port is open."""

_HEAD = """\
trap 'exit 143' TERM INT
ray start --head --node-ip-address="$1" --port="$2" --disable-usage-stats || exit 1
waited=0
while :; do
  alive=$(python3 -c 'import ray
ray.init(address="auto", logging_level="ERROR")
print(sum(node["Alive"] for node in ray.nodes()))') || alive=0
  [ "$alive" -ge "$3" ] && break
  [ "$waited" -ge "$4" ] && { echo "ray: only $alive of $3 nodes joined within $4 s" >&2; exit 1; }
  echo "ray: $alive of $3 nodes have joined"
  sleep 2 & wait $!
  waited=$((waited + 2))
done
echo "ray: all $3 nodes have joined"
shift 4
exec "$@"
"""

NOT_ALL_JOINED = r"^ray: only \d+ of \d+ nodes joined"
"""What the head says before it ends because ranks are missing."""


def head(address: str, port: int, nodes: int, engine: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Program and words of rank 0: the control store at `address`, then `engine` in its place."""
    return ("sh", "-c"), (_HEAD, "ray-head", address, str(port), str(nodes), str(JOIN_S), *engine)


def worker(head_address: str, port: int, address: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Program and words of any other rank: it lends its GPUs to the head, and ends when the head is gone."""
    host = f"[{head_address}]" if ":" in head_address else head_address
    words = ("start", f"--address={host}:{port}", f"--node-ip-address={address}", "--block", "--disable-usage-stats")
    return ("ray",), words
