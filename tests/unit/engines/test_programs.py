"""The programs that run in the lane's image, run here with engines that are only played."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reconciler.core.desired import Preflight
from reconciler.engines import parsing, ray

PARSER = """\
import argparse
class FlexibleArgumentParser(argparse.ArgumentParser): pass
"""
ARGUMENTS = """\
def make_arg_parser(parser):
    parser.add_argument("model_tag")
    parser.add_argument("--port", type=int)
    parser.add_argument("--tools", action="store_true")
    return parser
def validate_parsed_serve_args(args):
    if args.tools:
        raise TypeError("Error: --tools requires more")
"""
SERVER_ARGS = """\
class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path")
"""
NEW, OLD = "vllm/entrypoints/launchers/cli_args.py", "vllm/entrypoints/openai/cli_args.py"


def asked(preflight: Preflight, packages: Path) -> subprocess.CompletedProcess[str]:
    """The preflight as it runs in a container, with the Python of these tests and the packages of a folder."""
    env = {**os.environ, "PYTHONPATH": str(packages)}
    words = [sys.executable, *preflight.entrypoint[1:], *preflight.command]
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False)


def package(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for parent in path.relative_to(folder).parents:
            (folder / parent / "__init__.py").touch()
        path.write_text(text, encoding="utf-8")
    return folder


def vllm(
    folder: Path, *, module: str = NEW, utils: str = "vllm/utils/argparse_utils.py", text: str = ARGUMENTS
) -> Path:
    return package(folder, {utils: PARSER, module: text})


@pytest.mark.parametrize(("module", "utils"), [(NEW, "vllm/utils/argparse_utils.py"), (OLD, "vllm/utils/__init__.py")])
def test_the_parser_of_either_place_is_asked(module: str, utils: str, tmp_path: Path) -> None:
    found = asked(
        parsing.vllm_preflight(("vllm", "serve"), ("m", "--port", "1")), vllm(tmp_path, module=module, utils=utils)
    )
    assert (0, "the arguments are well-formed\n") == (found.returncode, found.stdout), found.stderr


REFUSED = [
    (("m", "--prot", "1", "--nope"), 2, "vllm serve: error: unrecognized arguments: --prot 1 --nope"),
    (("m", "--port", "x"), 2, "vllm serve: error: argument --port: invalid int value: 'x'"),
    (("m", "--tools"), 1, "vllm refuses the arguments: Error: --tools requires more"),
]


@pytest.mark.parametrize(("words", "code", "said"), REFUSED)
def test_what_the_parser_refuses_is_the_last_line(words: tuple[str, ...], code: int, said: str, tmp_path: Path) -> None:
    found = asked(parsing.vllm_preflight(("vllm", "serve"), words), vllm(tmp_path))
    assert (code, said) == (found.returncode, found.stderr.splitlines()[-1])


NO_GPU = [
    'def make_arg_parser(parser): raise RuntimeError("Failed to infer device type")\nvalidate_parsed_serve_args = 1\n',
    'raise ImportError("libcuda.so.1: cannot open shared object file: No such file or directory")\n',
]


@pytest.mark.parametrize("text", NO_GPU)
def test_a_parser_that_needs_a_gpu_refuses_nothing(text: str, tmp_path: Path) -> None:
    found = asked(parsing.vllm_preflight(("vllm", "serve"), ("m",)), vllm(tmp_path, text=text))
    assert 0 == found.returncode, found.stderr
    assert found.stdout.startswith("not checked: vllm does not parse arguments without a GPU")


def test_an_import_that_fails_for_another_reason_refuses(tmp_path: Path) -> None:
    found = asked(parsing.vllm_preflight(("vllm", "serve"), ("m",)), vllm(tmp_path, text="import no_such_thing\n"))
    assert 1 == found.returncode


def test_an_image_without_the_engine_is_told(tmp_path: Path) -> None:
    found = asked(parsing.sglang_preflight(("python3",), ()), package(tmp_path, {"other/x.py": ""}))
    assert (1, f"this image has no sglang for {sys.executable}\n") == (found.returncode, found.stderr)


def test_sglangs_parser_is_asked(tmp_path: Path) -> None:
    folder = package(tmp_path, {"sglang/srt/server_args.py": SERVER_ARGS})
    assert 0 == asked(parsing.sglang_preflight(("python3",), ("--model-path", "m")), folder).returncode
    assert 2 == asked(parsing.sglang_preflight(("python3",), ("--tp", "2")), folder).returncode


PYTHONS = [
    (("vllm", "serve"), "python3"),
    (("/opt/venv/bin/vllm", "serve"), "/opt/venv/bin/python3"),
    (("/usr/bin/python3.12", "-m", "sglang.launch_server"), "/usr/bin/python3.12"),
    (("toolchain.py", "serve"), "python3"),
    (("/opt/wrapper/toolchain.py", "serve"), "python3"),
]


@pytest.mark.parametrize(("program", "expected"), PYTHONS)
def test_the_python_that_has_the_engine(program: tuple[str, ...], expected: str) -> None:
    assert (expected, "-c") == parsing.vllm_preflight(program, ()).entrypoint


def head(folder: Path, alive: str, wait_s: int) -> subprocess.Popen[str]:
    """The head of a Ray cluster of three, where `ray` does nothing and `python3` says how many nodes are there."""
    for name, text in (("ray", 'echo "$@"'), ("python3", alive)):
        program = folder / name
        program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        program.chmod(0o755)
    start, words = ray.head("10.0.0.1", 6379, 3, ("echo", "serves", "a b", '{"x": 1}'))
    script, name, address, port, nodes, _, *engine = words
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    return subprocess.Popen(
        [*start, script, name, address, port, nodes, str(wait_s), *engine],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_the_head_becomes_the_engine_when_all_have_joined(tmp_path: Path) -> None:
    with head(tmp_path, "echo 3", 0) as run:
        out, _ = run.communicate(timeout=60)
    expected = [
        "start --head --node-ip-address=10.0.0.1 --port=6379 --disable-usage-stats",
        "ray: all 3 nodes have joined",
        'serves a b {"x": 1}',
    ]
    assert (0, expected) == (run.returncode, out.splitlines())


@pytest.mark.parametrize("alive", ["echo 2", "exit 1"])
def test_the_head_ends_when_not_all_join(alive: str, tmp_path: Path) -> None:
    with head(tmp_path, alive, 0) as run:
        out, _ = run.communicate(timeout=60)
    assert 1 == run.returncode
    assert f"ray: only {2 if alive == 'echo 2' else 0} of 3 nodes joined within 0 s" == out.splitlines()[-1]


def test_the_head_that_waits_can_be_stopped(tmp_path: Path) -> None:
    with head(tmp_path, "echo 1", 600) as run:
        assert run.stdout is not None
        while "1 of 3 nodes have joined" not in run.stdout.readline():
            time.sleep(0.01)
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=60)
    assert 143 == run.returncode
