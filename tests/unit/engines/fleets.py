"""Specs for the engines' tests: four nodes with a fabric, one model, lanes to fill in."""

from pathlib import Path

from reconciler.core.desired import Desired, Gang, SecretRef
from reconciler.engines import RULES, desired_fleet
from specs import Spec, SpecErrors, load

DIGEST = "sha256:" + "ab" * 32
IMAGE = f"ghcr.io/owner/engine@{DIGEST}"

_NODE = (
    "{{ssh: {{host: dgx{n}.lan}}, platform: linux/arm64, gpus: 1, "
    "interfaces: {{f0: {{name: enp{n}s0, hca: rocep{n}s0, address: 10.10.0.{n}}}}}, paths: {{models: /mnt/{n}}}}}"
)

HEAD = f"""\
fleet: lab
nodes:
{chr(10).join(f"  dgx{n}: {_NODE.format(n=n)}" for n in (1, 2, 3, 4))}
clusters:
  one: {{nodes: [dgx1], interface: f0, port: 30000}}
  two: {{nodes: [dgx1, dgx2], interface: f0, port: 30000, nccl: {{gid_index: 3}}}}
  four: {{nodes: [dgx1, dgx2, dgx3, dgx4], interface: f0, port: 30000}}
  plain: {{nodes: [dgx2, dgx1], port: 30001}}
models:
  tiny: {{path: "{{paths.models}}/tiny.gguf", args: {{ctx-size: 4096, threads: 8}}, served_name: tiny-model}}
  hub: {{repo: owner/model, revision: abc123}}
  folder: {{path: "{{paths.models}}/folder", served_name: folder}}
  drafted: {{path: "{{paths.models}}/folder", served_name: folder, draft: small}}
  small: {{path: "{{paths.models}}/small"}}
  named: {{path: /m.gguf, args: {{alias: x}}}}
  split: {{path: /m, args: {{pipeline-parallel-size: 2}}}}
  tuned: {{path: /m, args: {{attention-config: {{backend: FLASH_ATTN}}}}}}
"""


def write(folder: Path, lane: str, cluster: str = "one") -> Path:
    """A spec with the lane `it` on a cluster. `lane`: its YAML without braces."""
    path = folder / "fleet.yaml"
    text = f"{HEAD}lanes:\n  it: {{image: {IMAGE}, {lane}}}\nplacements:\n  - {{lane: it, cluster: {cluster}}}\n"
    path.write_text(text, encoding="utf-8")
    return path


def spec(folder: Path, lane: str, cluster: str = "one") -> Spec:
    return load(write(folder, lane, cluster), RULES)


def fleet(folder: Path, lane: str, cluster: str = "one") -> Desired:
    return desired_fleet(spec(folder, lane, cluster))


def gang(folder: Path, lane: str, cluster: str = "one") -> Gang:
    return fleet(folder, lane, cluster).gangs[0]


def faults(folder: Path, lane: str, cluster: str = "one") -> list[str]:
    """What the engine says against the lane: "summary (hint)"."""
    try:
        fleet(folder, lane, cluster)
    except SpecErrors as errors:
        return [f"{item.summary}{f' ({item.hint})' if item.hint else ''}" for item in errors.diagnostics]
    return []


def _wave(ranks: tuple[int, ...]) -> str:
    return " ".join(map(str, ranks))


def shown(of: Gang) -> str:
    """A gang as a table for people: what runs where, with which words, ports and waits."""
    lines = [f"{of.address}: {of.engine}, {of.url}, gate {of.gate.address}:{of.gate.port}{of.gate.path}"]
    lines.append(f"  serves {of.gate.served_name or 'anything'}, boots {' then '.join(map(_wave, of.boot_order))}")
    for rank in of.ranks:
        box = rank.container
        ready = f", ready at {rank.ready.port}" if rank.ready else ""
        ports = " ".join(map(str, rank.ports)) or "none"
        lines.append("")
        lines.append(f"  rank {rank.index} {rank.role} on {rank.node} ({rank.address}), ports {ports}{ready}")
        lines.append(f"    run     {' '.join((*(box.entrypoint or ('(image)',)), '|', *box.command))}")
        env = ((key, f"(secret {value.secret})" if isinstance(value, SecretRef) else value) for key, value in box.env)
        lines += [f"    env     {key}={value}" for key, value in env]
        lines += [f"    mount   {m.source} -> {m.target}{'' if m.read_only else ' rw'}" for m in box.mounts]
        memory = "" if rank.memory_bytes is None else f", needs {rank.memory_bytes} bytes of memory"
        lines += [f"    device  {device}" for device in box.devices]
        shm = "" if box.shm_bytes is None else f", shared memory {box.shm_bytes // 2**20} MiB"
        limits = "".join(f", {name} {value}" for name, value in box.ulimits)
        lines.append(f"    limits  gpus {box.gpus}{shm}{limits}, stops within {rank.stop_grace_s:g} s{memory}")
        lines += [f"    answers http://{page.address}:{page.port}{page.path}" for page in rank.endpoints]
    if of.preflight is not None:
        words = " ".join(of.preflight.command[1:])
        lines += ["", f"  preflight of rank {of.preflight.rank}: {' '.join(of.preflight.entrypoint)} ... {words}"]
    return "\n".join(lines) + "\n"
