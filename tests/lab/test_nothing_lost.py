"""Nothing is ever lost: controllers that are killed, race or fail, and nodes that go away, in the middle of an apply.

All tests share one lane of two ranks over both kinds of image store, and leave it in sync. Its second rank does not
depend on what is changed, so that both versions have that container in common.
"""

import functools
import itertools
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from . import Lab, serving
from .fleet_cli import Desk, Ran, checked, desk, names, read_until
from .shell import side_by_side

pytestmark = pytest.mark.lab

PAIR = ("pair", "pair-a")
HEAD, OTHER = "node2", "node3"
SIZES = itertools.count(64, 8)
"""A context size for each version, all different."""


class Event(NamedTuple):
    """What Docker did with a container."""

    action: str
    container: str
    name: str


@pytest.fixture(scope="module")
def shared(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A pair that serves in its third version."""
    lab.reset()
    lab.preload("llamacpp", [HEAD, OTHER])
    made = pair_desk(lab, tmp_path_factory.mktemp("lost"))
    for _ in range(3):
        resize(made)
        made.apply()
    yield made
    lab.reset()


@pytest.fixture
def serving_pair(shared: Desk) -> Desk:
    """The pair in sync, whatever the test before left."""
    shared.lab.mend()
    use(shared, "good")
    resize(shared)
    shared.apply("--retry", "--wait", "30")
    return shared


def pair_desk(lab: Lab, folder: Path) -> Desk:
    made = desk(lab, folder, PAIR)
    made.edit("inventory.yaml", lambda content: content["clusters"]["pair-a"].update(nodes=[HEAD, OTHER]))
    return made


def resize(made: Desk) -> None:
    """Another version, as good as the one before."""
    made.edit_lane("pair", args={"ctx-size": next(SIZES)})


def use(made: Desk, model: str) -> None:
    path = f"{{paths.models}}/{model}.gguf"
    made.edit("lanes.yaml", lambda content: content["models"]["bigram"].update(path=path))


def running(lab: Lab) -> dict[str, dict[str, str]]:
    """The names of all running containers by their ids, by node."""
    form = ["ps", "--no-trunc", "--format", "{{.ID}} {{.Names}}"]
    pairs = {name: [line.split() for line in lab.nodes[name].docker(*form).splitlines()] for name in (HEAD, OTHER)}
    return {name: dict(there) for name, there in pairs.items()}


def happened(lab: Lab, node: str, since: float) -> list[Event]:
    form = ["--filter", "type=container", "--format", "{{.Action}} {{.Actor.ID}} {{.Actor.Attributes.name}}"]
    window = ["--since", f"{since:.3f}", "--until", f"{time.time():.3f}"]
    return [Event(*line.split()) for line in lab.nodes[node].docker("events", *window, *form).splitlines()]


class Watch:
    """What happens on the nodes from now on."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.since, self.before = lab, time.time(), running(lab)

    def assert_one_at_a_time(self) -> None:
        """No two containers ran at once on a node."""
        for node, there in self.before.items():
            up = set(there)
            for event in happened(self.lab, node, self.since):
                if event.action == "start":
                    up.add(event.container)
                elif event.action == "die":
                    up.discard(event.container)
                assert len(up) <= 1, (node, event)

    def made(self) -> Counter[str]:
        """How many containers were created, by node."""
        every = ((node, event) for node in self.before for event in happened(self.lab, node, self.since))
        return Counter(node for node, event in every if event.action == "create")


def assert_serves(made: Desk) -> None:
    """One proved container on each node, nothing left to do, and a right answer."""
    assert made.fleet("plan", "--detailed-exitcode").rc == 0
    assert {HEAD: 1, OTHER: 1} == {name: len(there) for name, there in names(made.lab).items()}
    assert not any("unproved" in name for there in names(made.lab).values() for name in there)
    assert_answers(made.lab)


def assert_answers(lab: Lab) -> None:
    assert "Paris" in serving.ask(f"http://{lab.nodes[HEAD].address}:30000")


def killed_at(made: Desk, moment: str) -> None:
    """Apply, and kill the controller as soon as it has said so far."""
    with made.started("apply", "--yes") as process:
        read_until(process, moment)
        process.send_signal(signal.SIGKILL)
        process.wait(10)


def with_fault(made: Desk, moment: str, fault: Callable[[], object], *args: str) -> Ran:
    """Apply, and have something happen as soon as it has said so far."""
    with made.started("apply", "--yes", *args) as process:
        read = read_until(process, moment)
        fault()
        out, err = process.communicate(timeout=90)
    return checked(Ran(process.returncode, read + out, err))


# controllers that die


@pytest.mark.parametrize(
    "moment", ["run ", "ok  creating", "... stopping", "ok  starting", "... proving", "confirming"]
)
def test_a_killed_controller_loses_nothing_and_nothing_is_made_twice(serving_pair: Desk, moment: str) -> None:
    """The lease of the dead one ends with its connection, so nobody has to wait for it."""
    made = serving_pair
    resize(made)
    watch = Watch(made.lab)
    killed_at(made, moment)
    made.apply()
    assert_serves(made)
    watch.assert_one_at_a_time()
    assert {HEAD: 1} == watch.made()


def test_what_served_comes_back_though_another_controller_began(serving_pair: Desk) -> None:
    """The first one is killed while it proves garbage; the second one finds out and goes back."""
    made = serving_pair
    before = running(made.lab)
    use(made, "garbage")
    killed_at(made, "... proving")
    ran = made.fleet("apply", "--yes")
    assert ran.rc == 6, ran.said
    assert before == running(made.lab), ran.said
    assert_answers(made.lab)


# controllers that race


@pytest.mark.parametrize("options", [(), ("--wait", "60")], ids=["stands back", "waits"])
def test_two_controllers_without_a_common_state(serving_pair: Desk, tmp_path: Path, options: Sequence[str]) -> None:
    """They want different versions; each may win, and then whoever applies last has it as wanted."""
    first, second = serving_pair, pair_desk(serving_pair.lab, tmp_path)
    for made in (first, second):
        resize(made)
    watch = Watch(first.lab)
    ends = side_by_side(functools.partial(made.fleet, "apply", "--yes", *options) for made in (first, second))
    assert 0 in {ran.rc for ran in ends}
    for ran in ends:
        assert ran.rc in {0, 3, 5}, ran.said
        assert ran.rc != 5 or ("is leased by" in ran.said and not options), ran.said
    first.apply()
    assert_serves(first)
    watch.assert_one_at_a_time()


# replacements that fail


def test_garbage_is_rolled_back_put_aside_and_tried_again_only_when_told_so(serving_pair: Desk) -> None:
    made = serving_pair
    before = running(made.lab)
    use(made, "garbage")
    failed = made.fleet("apply", "--yes")
    assert failed.rc == 6
    assert "rolled back; what ran before serves again" in failed.out
    assert before == running(made.lab)
    left_alone = made.fleet("apply", "--yes")
    assert left_alone.rc == 3
    assert "this version was put aside at" in left_alone.out
    assert "expected 'Paris'" in left_alone.out
    assert "fleet apply --retry" in left_alone.out
    assert made.fleet("apply", "--yes", "--retry").rc == 6
    assert before == running(made.lab)
    assert_answers(made.lab)
    use(made, "good")
    made.apply()
    assert before == running(made.lab)
    assert_serves(made)


# nodes and links that go away


def test_a_node_that_is_booted_in_the_middle_of_a_boot_gets_back_what_ran(serving_pair: Desk) -> None:
    made = serving_pair
    before, node = running(made.lab), made.lab.nodes[OTHER]
    resize(made)

    def reboot() -> None:
        node.power_off()
        node.power_on()

    ran = with_fault(made, "ok  starting", reboot)
    assert ran.rc == 6, ran.said
    assert before == running(made.lab), ran.said
    assert_answers(made.lab)
    made.apply("--retry")
    assert_serves(made)


def test_a_link_that_is_cut_for_a_while_in_the_proof(serving_pair: Desk) -> None:
    """The proof goes on when the node can be reached again; an engine that bears no cut itself is rolled back."""
    made, node = serving_pair, serving_pair.lab.nodes[HEAD]
    before = running(made.lab)
    resize(made)

    def cut() -> None:
        node.cut_link()
        time.sleep(8)
        node.mend_link()

    ran = with_fault(made, "... proving", cut)
    assert ran.rc in {0, 6}, ran.said
    assert (ran.rc == 6) == (before == running(made.lab)), ran.said
    assert_answers(made.lab)
    made.apply("--retry")
    assert_serves(made)


# back and forth


def argument(made: Desk) -> Any:
    """The context size that the head runs with."""
    (container,) = running(made.lab)[HEAD]
    argv = made.lab.nodes[HEAD].docker("inspect", "--format", '{{join .Config.Cmd " "}}', container).split()
    return argv[argv.index("--ctx-size") + 1]


def test_rollback_goes_back_and_apply_goes_forth_when_told_so(serving_pair: Desk) -> None:
    made, then = serving_pair, argument(serving_pair)
    resize(made)
    made.apply()
    now = argument(made)
    back = made.fleet("rollback", "pair-a/pair", "--yes", "--reason", "slow")
    assert back.rc == 0, back.said
    assert then == argument(made)
    assert made.fleet("apply", "--yes").rc == 3
    assert then == argument(made)
    made.apply("--retry")
    assert now == argument(made)
    assert_serves(made)


def test_a_saved_plan_is_carried_out_once_and_only_while_it_holds(serving_pair: Desk) -> None:
    made = serving_pair
    resize(made)
    for name in ("stale.json", "plan.json"):
        assert made.fleet("plan", "--out", name).rc == 0
    assert made.fleet("apply", "plan.json", "--yes").rc == 0
    assert_serves(made)
    before = running(made.lab)
    for name in ("plan.json", "stale.json"):
        again = made.fleet("apply", name, "--yes")
        assert again.rc == 3, again.said
    assert before == running(made.lab)
