"""A small valid spec, edits of it, and loading that returns the faults as lines."""

from pathlib import Path

from specs import Spec, SpecErrors, load

DIGEST = "sha256:" + "ab" * 32

BASE = f"""\
fleet: lab
nodes:
  n1: {{ssh: {{host: n1.lan}}, platform: linux/arm64, gpus: 1, memory: 64GiB, interfaces: {{f0: {{name: e0, address: 10.0.0.1}}}}, paths: {{models: /m}}}}
  n2: {{ssh: {{host: n2.lan}}, platform: linux/arm64, gpus: 1, memory: 64GiB, interfaces: {{f0: {{name: e0, address: 10.0.0.2}}}}, paths: {{models: /m}}}}
  n3: {{ssh: {{host: n3.lan}}, platform: linux/arm64, gpus: 1, memory: 64GiB}}
clusters:
  pair: {{nodes: [n1, n2], interface: f0}}
  trio: {{nodes: [n1, n2, n3], port: 30001}}
models:
  m: {{path: "{{paths.models}}/m"}}
lanes:
  duo:
    engine: vllm
    image: ghcr.io/owner/engine@{DIGEST}
    nodes: 2
    model: m
  solo:
    engine: vllm
    image: ghcr.io/owner/engine@{DIGEST}
placements:
  - {{lane: duo, cluster: pair}}
"""  # noqa: E501 - one node a line keeps the columns of the expectations short


def edited(*edits: tuple[str, str], text: str = BASE) -> str:
    """Return the spec with each old text, which must be there, replaced once by the new one."""
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def write(folder: Path, text: str | bytes, name: str = "fleet.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def loaded(folder: Path, text: str | bytes) -> Spec:
    return load(write(folder, text))


def errors(folder: Path, text: str | bytes) -> SpecErrors:
    try:
        spec = loaded(folder, text)
    except SpecErrors as found:
        return found
    raise AssertionError(f"no fault was found in {spec}")


def faults(folder: Path, text: str | bytes) -> list[str]:
    """Return one line a fault: LINE:COLUMN: SUMMARY, with the file in front unless it is the main one."""
    lines = []
    for d in errors(folder, text).diagnostics:
        name = d.path.relative_to(folder).as_posix()
        where = f"{d.line}:{d.column}" if name == "fleet.yaml" else f"{name}:{d.line}:{d.column}"
        lines.append(f"{where}: {d.summary}")
    return lines


def messages(folder: Path, text: str | bytes) -> str:
    """Return everything that is said about a spec, without the folder."""
    return str(errors(folder, text)).replace(f"{folder}/", "")
