"""The operator's fleet on simulated nodes: production, the evening that needs all eight nodes, and the way back."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

import specs
from examples import simulated
from reconciler.cli.main import run
from reconciler.core.models import BadLink
from reconciler.core.plan import Op, Plan
from reconciler.engines import RULES
from reconciler.fleet import Fleet
from reconciler.testing import run_simulated

EXAMPLE = Path(__file__).parents[2] / "examples/dgx-lab"
README = (EXAMPLE / "README.md").read_text(encoding="utf-8")
PRODUCTION, PAIR = "4nodes-switch/mimo26-flash-mopd-4x", "dgx56-switch/glm53-kindling-2x"
PRO = "8nodes-switch/mimo26-pro-mopd-8x-sparkring"


class Lab:
    """Eight simulated nodes and the commands on them."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.spec = specs.load(EXAMPLE / "fleet.yaml", RULES)
        self.nodes = simulated.simulated(self.spec, simulated.images_of(self.spec))
        self._capsys = capsys

    def __call__(self, main: str, *words: str) -> tuple[int, str]:
        """Run `fleet WORDS --file MAIN.yaml`: the exit code, and all that was said with runs of blanks as one."""
        self._capsys.readouterr()
        code = run([*words, "--file", str(EXAMPLE / f"{main}.yaml")], simulated.wiring(self.nodes))
        printed = self._capsys.readouterr()
        return code, re.sub(r" +", " ", printed.out + printed.err)

    def running(self) -> set[str]:
        """The lanes whose containers run, each as many times as it has ranks."""
        facts = [node.facts() for node in self.nodes.nodes]
        found = (item for fact in facts for item in fact.containers if item.is_running and item.owner)
        return {item.owner.gang for item in found if item.owner}


@pytest.fixture
def lab(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("FLEET_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("FLEET_VAULT", str(tmp_path / "vault"))
    return Lab(capsys)


def test_production_comes_up_and_is_settled(lab: Lab) -> None:
    code, said = lab("fleet", "plan", "--detailed-exitcode")
    assert (2, True) == (code, "Plan: 2 boot." in said)
    assert 0 == lab("fleet", "apply", "--yes")[0]
    assert {PRODUCTION, PAIR} == lab.running()
    assert 0 == lab("fleet", "plan", "--detailed-exitcode")[0]
    assert (0, True) == (lab("fleet", "drift")[0], "2 lanes wanted: 2 healthy" in lab("fleet", "status")[1])
    code, said = lab("fleet", "status")
    assert "http://dgx1.lan:30000/v1 model mimo-v2.6-flash" in said


def test_production_goes_down_for_eight_nodes_and_the_plan_says_so_first(lab: Lab) -> None:
    assert 0 == lab("fleet", "apply", "--yes")[0]
    code, said = lab("evening", "plan")
    assert 0 == code
    dark = "dgx1 dgx2 dgx3 dgx4 dgx5 dgx6 dgx7 dgx8 go dark for at most 50m"
    lines = said.splitlines()
    first = next(index for index, line in enumerate(lines) if dark in line)
    assert f"- stop {PRODUCTION} makes room for {PRO}" == lines[first + 1].strip()
    assert f"- stop {PAIR} makes room for {PRO}" in said
    assert f"+ boot {PRO} wanted, not running" in said
    assert "Plan: 1 boot, 2 stop." in said


def test_nothing_stops_before_the_image_is_on_all_eight_nodes(lab: Lab) -> None:
    assert 0 == lab("fleet", "apply", "--yes")[0]

    async def early() -> list[str]:
        async with Fleet.load(EXAMPLE / "evening.yaml", lambda spec: lab.nodes) as fleet:
            plan = fleet.plan(await fleet.observe())
        stops = [step for step in plan.steps if step.op is Op.STOP]
        pulls = {step.id for step in plan.steps if step.op is Op.PULL}
        assert 8 == len(pulls)
        assert 6 == len(stops)
        return [step.id for step in stops if not pulls <= _before(plan, step.id)]

    assert [] == run_simulated(early())


def _before(plan: Plan, last: str) -> set[str]:
    """Everything a step waits for, directly or not."""
    needs = {step.id: set(step.requires) for step in plan.steps}
    found: set[str] = set()
    ahead = [last]
    while ahead:
        new = needs[ahead.pop()] - found
        found |= new
        ahead.extend(new)
    return found


def test_the_evening_ends_with_production_back_as_it_was(lab: Lab) -> None:
    assert 0 == lab("fleet", "apply", "--yes")[0]
    assert 0 == lab("evening", "apply", "--yes")[0]
    assert {PRO} == lab.running()
    assert 0 == lab("evening", "drift")[0]
    assert 0 == lab("fleet", "apply", "--yes")[0]
    assert {PRODUCTION, PAIR} == lab.running()
    assert 0 == lab("fleet", "plan", "--detailed-exitcode")[0]
    assert () == lab.nodes.overlaps()


def test_the_fast_line_falls_back_to_sglang(lab: Lab) -> None:
    fast = "4nodes-switch/mimo26-flash-mopd-4x-sparkring"
    assert 0 == lab("fleet", "apply", "--yes")[0]
    assert 0 == lab("fastline", "apply", "--yes")[0]
    assert {fast, PAIR} == lab.running()
    assert 0 == lab("fastline", "drift")[0]
    code, said = lab("fleet", "plan")
    assert 0 == code
    assert f"- stop {fast} makes room for {PRODUCTION}" in said
    assert f"+ boot {PRODUCTION}" in said
    assert f"unchanged: {PAIR}" in said
    assert 0 == lab("fleet", "apply", "--yes")[0]
    assert {PRODUCTION, PAIR} == lab.running()


def test_an_image_for_amd64_alone_is_refused_before_anything_stops(lab: Lab) -> None:
    digest = lab.spec.lanes["mimo26-pro-mopd-8x-sparkring"].image.digest
    amd64 = (("linux/amd64", 10**10),)
    images = [
        replace(image, bytes_by_platform=amd64) if image.digest == digest else image
        for image in simulated.images_of(lab.spec)
    ]
    lab.nodes = simulated.simulated(lab.spec, images)
    assert 0 == lab("fleet", "apply", "--yes")[0]
    assert "is made for linux/amd64; dgx1 is linux/arm64" in lab("evening", "plan")[1]
    assert 3 == lab("evening", "apply", "--yes")[0]
    assert {PRODUCTION, PAIR} == lab.running()


def test_a_model_whose_links_leave_the_mounts_is_refused_before_anything_stops(lab: Lab) -> None:
    assert 0 == lab("fleet", "apply", "--yes")[0]
    shelf = lab.nodes.node("dgx3").models.models
    path = next(path for path in shelf if path.endswith("MiMo-V2.6-Pro-MOPD/snapshots/adea8e2c5373" + "0" * 28))
    link = BadLink("model.safetensors", "/mnt/nas/ai/huggingface/hub/blobs/61/61be", is_outside=True)
    shelf[path] = replace(shelf[path], bad_links=(link,))
    code, said = lab("evening", "plan")
    assert 3 == code
    assert "model mimo-v26-pro-mopd on dgx3 breaks in the container" in said
    assert "leads to /mnt/nas/ai/huggingface/hub/blobs/61/61be, where nothing is mounted" in said
    assert "make the links relative and within one mounted folder" in said
    assert 3 == lab("evening", "apply", "--yes")[0]
    assert {PRODUCTION, PAIR} == lab.running()


def test_heads_are_read_from_the_node_where_the_spec_does_not_say(lab: Lab) -> None:
    shelf = lab.nodes.node("dgx6").models.models
    path = next(path for path in shelf if path.endswith("glm-5.3-flash-nvfp4"))
    shelf[path] = replace(shelf[path], config='{"num_attention_heads": 63}')
    said = lab("fleet", "plan")[1]
    assert "by its config.json on dgx6: 63 attention heads cannot be divided by tensor 2: tensor can be 1" in said


COMMANDS = [shlex.split(line) for line in README.splitlines() if line.startswith("python -m examples.simulated")]


@pytest.mark.parametrize("words", COMMANDS, ids=range(len(COMMANDS)))
def test_the_commands_of_its_page_work(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(EXAMPLE.parents[1])
    monkeypatch.setattr("sys.argv", words[2:])
    for name in ("FLEET_STATE", "FLEET_VAULT", "FLEET_FILE"):
        monkeypatch.setenv(name, "unused")
    assert 0 == simulated.main()
    ended = re.findall(r"^\(exit (\d+)\)$", capsys.readouterr().out, re.MULTILINE)
    assert ["0"] * len(words[4:]) == ended


def test_what_the_page_shows_is_what_is_said(lab: Lab) -> None:
    lab("fleet", "apply", "--yes")
    said = [line.strip() for line in lab("evening", "plan")[1].splitlines()]
    shown = [re.sub(r" +", " ", line).strip() for line in README.splitlines() if re.match(r"  [-+] ", line)]
    assert 3 == len(shown)
    assert set(shown) <= set(said)
