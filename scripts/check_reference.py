"""Writes docs/checks.md, the reference of every check, from the registry: `make spec-reference`."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from reconciler.core.checks import CHECKS, NODE_CHECKS, AnyCheck

PAGE = Path(__file__).parents[1] / "docs/checks.md"

HEAD = """\
# Checks

Made from the registry by `make spec-reference`; do not edit. `fleet doctor` asks all of them, `fleet plan` those that
concern a lane that is to boot. A check that fails is a refusal of the plan, before anything is touched. One that warns
is told, and keeps nothing from being done. A fact that could not be had, because a tool or a right is missing on the
node, is unknown, and refuses nothing.

| exit code of `fleet doctor` | when |
|---|---|
| 0 | nothing fails; warnings alone are no failure |
| 3 | a boot would be refused |
| 4 | nothing fails, and some nodes could not be read |
"""

TAIL = """
## Letting one pass

```yaml
checks:
  silence:
    - check: hca            # an id; * stands for any text
      address: dgx7         # a node, or a placement as cluster/lane; * stands for any text
      reason: the card is replaced on Friday, the lane does without
      until: 2026-12-24     # the last day
```

Reason and last day are required. What is let pass is still shown, by plan and doctor, with both. After its last day it
refuses again, and the silence itself is warned of, under the id `silence`; so is one that names no check. Checks that
are marked "always" cannot be silenced.

## Adding one

A package that is installed beside fleet offers a `Check` (asked of each rank of a gang) or a `NodeCheck` (asked of each
node), or a tuple of them, as an entry point of the group `fleet.checks`:

```python
from collections.abc import Iterator

from reconciler.core.checks import Finding, NodeCheck, Result, Site


def large(site: Site) -> Iterator[Finding]:
    memory = site.facts.memory_total_bytes
    if memory is None:
        yield site.found("large", Result.UNKNOWN, "its memory is not told")
    elif memory < 96 * 2**30:
        yield site.found("large", Result.FAIL, f"{site.node} has {memory / 2**30:.0f} GiB")


CHECK = NodeCheck("large", "Has the node 96 GiB or more?", "Take it out of the clusters.", large, holds_up_boots=True)
```

```toml
[project.entry-points."fleet.checks"]
large = "my_package:CHECK"
```

With `holds_up_boots` a failure refuses boots on that node; a finding that says no `mend` gets the check's. A check is a
pure function over facts: it contacts nothing. One that breaks, or hangs for 5 s, is shown as unknown, and no
other check suffers from it.
"""


def reference() -> str:
    """The whole page."""
    lanes = _section("Of each rank of a lane", CHECKS)
    nodes = _section("Of each node", NODE_CHECKS)
    return "\n".join([HEAD, *lanes, "", *nodes, TAIL])


def _section(title: str, checks: Iterable[AnyCheck]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield "| id | asks | what to do | refuses |"
    yield "|---|---|---|---|"
    for check in checks:
        mend, only_told = check.mend.removesuffix(" It is only told."), check.mend.endswith("It is only told.")
        yield f"| `{check.id}` | {check.title} | {mend} | {_refuses(check, only_told=only_told)} |"


def _refuses(check: AnyCheck, *, only_told: bool) -> str:
    if check.guards:
        return "always"
    return "no: it is told" if only_told or (check in NODE_CHECKS and not check.holds_up_boots) else "yes"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
