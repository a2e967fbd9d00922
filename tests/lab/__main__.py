"""The lab by hand: `python -m tests.lab up`, `down`, `status`, `env`, `node NAME off|on|cut|mend|exec -- CMD`."""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from . import packages, specfile
from .config import cache_dir
from .lab import Lab
from .node import Node
from .shell import LabError, Progress


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    ours, command = split(words)
    options = parser().parse_args(ours)
    options.command = command
    try:
        packages.require_supported()
        code: int = options.act(options)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    return code


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is before `--` is ours, what is after it runs in a node."""
    place = words.index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place + 1 :])


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    verbs = made.add_subparsers(required=True, metavar="VERB")
    up = verb(verbs, "up", "have the lab: made, mended or already there", act_up)
    up.add_argument(
        "--subnet",
        default=os.environ.get("FLEET_LAB_SUBNET"),
        help="default: as the lab of this name has, else 10.77.0.0/24",
    )
    up.add_argument("--nodes", type=int, help="default: as many as the lab of this name has, else 4")
    up.add_argument("--spec", type=Path, metavar="FOLDER", help="write a spec for this lab there")
    up.add_argument("--small-disk", action="append", default=[], metavar="NODE=MB", help="a small Docker disk")
    verb(verbs, "down", "take it away, whole", act_down)
    verb(verbs, "status", "what is on and what is off", act_status)
    verb(verbs, "env", "where things are, as lines KEY=value for a shell", act_env)
    node = verb(verbs, "node", "one node's switches", act_node)
    node.add_argument("node")
    node.add_argument("what", choices=[*SWITCHES, "exec"])
    return made


def verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    words: str,
    act: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    made = verbs.add_parser(name, help=words)
    made.add_argument(
        "--name", default=os.environ.get("FLEET_LAB_NAME", "fleetlab"), help="the lab's name (default: %(default)s)"
    )
    made.set_defaults(act=act)
    return made


def act_up(options: argparse.Namespace) -> int:
    disks = {node: int(size) for node, _, size in (word.partition("=") for word in options.small_disk)} or None
    progress = Progress()
    lab = Lab.up(options.name, options.subnet, options.nodes, small_disk_mb=disks, progress=progress)
    if options.spec is not None:
        inventory = specfile.for_lab(lab)
        placements = specfile.fitting(inventory, specfile.PAIR_AND_SOLO)
        main_file = specfile.write(options.spec, inventory, placements)
        progress.say(f"a spec for it is {main_file}: try `{fleet_command()} plan --file {main_file}`")
    progress.say(f"{lab.name} is up: {lab.folder}/lab.json says what is where; ssh -F {lab.ssh_config} node1")
    return 0


def fleet_command() -> str:
    """The command of this very environment, as one types it here."""
    path = Path(sys.executable).with_name("fleet")
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def act_down(options: argparse.Namespace) -> int:
    Progress().step(f"{options.name} is down", lambda: Lab.remove(options.name))
    return 0


def act_status(options: argparse.Namespace) -> int:
    print("\n".join(Lab.attach(options.name).status()))
    return 0


def act_env(options: argparse.Namespace) -> int:
    lab = Lab.attach(options.name)
    print(f"FLEET_LAB_CACHE={cache_dir()}\nFLEET_LAB_FOLDER={lab.folder}\nFLEET_LAB_JSON={lab.record.path}")
    print(f"FLEET_LAB_IDENTITY={lab.identity_file}\nFLEET_LAB_KNOWN_HOSTS={lab.known_hosts}")
    print(f"FLEET_LAB_SSH_CONFIG={lab.ssh_config}\nFLEET_LAB_REGISTRY={lab.registry.endpoint}")
    return 0


SWITCHES: dict[str, Callable[[Node], None]] = {
    "off": Node.power_off,
    "on": Node.power_on,
    "cut": Node.cut_link,
    "mend": Node.mend,
}


def act_node(options: argparse.Namespace) -> int:
    nodes = Lab.attach(options.name).nodes
    if options.node not in nodes:
        raise LabError(f"{options.node}: no such node (there are {', '.join(nodes)})")
    node = nodes[options.node]
    if options.what != "exec":
        SWITCHES[options.what](node)
        return 0
    if not options.command:
        raise LabError("exec needs a command after `--`")
    return subprocess.run(node.enter(options.command), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
