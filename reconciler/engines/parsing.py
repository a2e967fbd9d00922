"""Preflights: an engine's own parser on the rendered arguments, in the lane's image, before anything stops.

The programs run in the image with `python3 -c`, without GPU and model. They end with 0 where the parser takes the
arguments, and also where it cannot be asked without a GPU: what is not known is no refusal.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from reconciler.core.desired import Preflight

DEADLINE_S = 300.0
"""Importing an engine takes 5 to 60 s, on a cold disk minutes."""

_ASK = """\
import sys
def ask(name, parse):
    import importlib.util
    if importlib.util.find_spec(name) is None:
        sys.exit(f"this image has no {name} for {sys.executable}")
    try:
        parse(sys.argv[1:])
    except (TypeError, ValueError) as error:
        sys.exit(f"{name} refuses the arguments: {error}")
    except (ImportError, RuntimeError) as error:
        chain = [error]
        while chain[-1].__context__ is not None:
            chain.append(chain[-1].__context__)
        text = "; ".join(f"{type(item).__name__}: {item}" for item in reversed(chain))
        marks = ("libcuda", "libnvidia", "NVIDIA driver", "infer device type", "No accelerator", "is not available")
        if not any(mark in text for mark in marks):
            raise
        print(f"not checked: {name} does not parse arguments without a GPU ({text})")
        return
    print("the arguments are well-formed")
"""

_VLLM = """\
def parse(words):
    try:
        from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
    except ImportError:
        from vllm.entrypoints.openai.cli_args import make_arg_parser, validate_parsed_serve_args
    try:
        from vllm.utils.argparse_utils import FlexibleArgumentParser
    except ImportError:
        from vllm.utils import FlexibleArgumentParser
    parser = make_arg_parser(FlexibleArgumentParser(prog="vllm serve", usage="vllm serve MODEL [options]"))
    validate_parsed_serve_args(parser.parse_args(words))
ask("vllm", parse)
"""

_SGLANG = """\
def parse(words):
    import argparse
    from sglang.srt.server_args import ServerArgs
    parser = argparse.ArgumentParser(prog="sglang.launch_server", usage="sglang.launch_server [options]")
    ServerArgs.add_cli_args(parser)
    parser.parse_args(words)
ask("sglang", parse)
"""


def vllm_preflight(program: Sequence[str], words: Sequence[str]) -> Preflight:
    """Ask vLLM. `vllm.entrypoints.openai.cli_args` became `vllm.entrypoints.launchers.cli_args` in 2026."""
    return _preflight(program, _VLLM, words)


def sglang_preflight(program: Sequence[str], words: Sequence[str]) -> Preflight:
    """Ask SGLang: only its parser, for its `ServerArgs` look for a GPU when they are made."""
    return _preflight(program, _SGLANG, words)


def _preflight(program: Sequence[str], parse: str, words: Sequence[str]) -> Preflight:
    return Preflight(0, (_python(program), "-c"), (_ASK + parse, *words), DEADLINE_S)


def _python(program: Sequence[str]) -> str:
    """The Python of the program: itself, or the one beside it where it is named with its folder."""
    first = PurePosixPath(program[0])
    if first.name.startswith("python"):
        return program[0]
    return str(first.with_name("python3")) if first.name in {"vllm", "sglang"} and len(first.parts) > 1 else "python3"
