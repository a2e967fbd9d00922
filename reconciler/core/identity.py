"""Names and labels: how a container, and an image, says whose it is.

The nodes carry the truth. All that a later run needs to know is on the container: whose, which rank, what was asked,
which operation made it. The one thing labels cannot say (they never change) is whether the gang was proved: that is in
the name, by a suffix that `confirm` takes away.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from reconciler.core.canonical import canonical_json, plain
from reconciler.core.desired import Gang, RankSpec
from reconciler.core.observed import Owner
from reconciler.core.secret_marks import SecretMarks, marks_from

PREFIX = "fleet."
UNPROVED = ".unproved"
"""Suffix of a container's name from its creation until its gang's health gate has passed."""

LONGEST_GRACE_S = 366 * 86400.0
"""No label of ours says more: a spec has at most a year."""


def container_name(lane: str, rank: int, revision: int) -> str:
    """The final name. Deterministic, so that a lost reply is settled by looking."""
    return f"fleet-{lane}-r{rank}-v{revision}"


def unproved_name(name: str) -> str:
    """The name before the gate has passed."""
    return name if name.endswith(UNPROVED) else name + UNPROVED


def proved_name(name: str) -> str:
    """The name after the gate has passed."""
    return name.removesuffix(UNPROVED)


def is_proved(name: str) -> bool:
    """Whether the gang of this container once passed its gate."""
    return not name.endswith(UNPROVED)


def keep_tag(digest: str) -> str:
    """The tag that keeps an image from `docker image prune`, which takes what was pulled by digest alone.

    It is given after the content was verified, so it also says that `fleet` brought the image.
    """
    return f"sha-{digest.removeprefix('sha256:')[:12]}"


def labels(fleet: str, gang: Gang, rank: RankSpec, revision: int, operation: str, image_id: str) -> dict[str, str]:
    """The labels of one rank's container."""
    return {
        PREFIX + "fleet": fleet,
        PREFIX + "lane": gang.lane,
        PREFIX + "cluster": gang.cluster,
        PREFIX + "rank": str(rank.index),
        PREFIX + "size": str(len(gang.ranks)),
        PREFIX + "fingerprint": rank.fingerprint,
        PREFIX + "revision": str(revision),
        PREFIX + "operation": operation,
        PREFIX + "image": rank.container.image.reference,
        PREFIX + "image-id": image_id,
        PREFIX + "ports": ",".join(str(port) for port in rank.ports),
        PREFIX + "stop-grace": f"{rank.stop_grace_s:g}",
        PREFIX + "spec": canonical_json(rank.container),
        PREFIX + "gang": recipe(gang),
    }


def recipe(gang: Gang) -> str:
    """The gang without its containers, and the fingerprint of each rank: what `recorded_gang` makes it of again.

    Nor does it say what is looked for before a boot: models, which a gang that comes back has read already.
    """
    ranks = [{**plain(replace(rank, models=())), "container": None} for rank in gang.ranks]
    fields = {**plain(replace(gang, shelves=())), "ranks": ranks}
    return canonical_json({**fields, "fingerprints": [rank.fingerprint for rank in gang.ranks]})


def secrets_label(marks: SecretMarks) -> dict[str, str]:
    """The label that tells which secrets a container was made with; none without a mark."""
    return {PREFIX + "secrets": marks.text()} if marks.marks else {}


def made_by(run_id: str, owner: Owner) -> bool:
    """Whether a run made the container: its operation begins with the run."""
    return owner.operation.startswith(f"{run_id}/")


def owner_of(found: Mapping[str, str]) -> Owner | None:
    """Whose a container with these labels is; None for a foreign one. Half-written labels make it foreign."""
    try:
        return Owner(
            fleet=found[PREFIX + "fleet"],
            lane=found[PREFIX + "lane"],
            cluster=found[PREFIX + "cluster"],
            rank=int(found[PREFIX + "rank"]),
            size=int(found[PREFIX + "size"]),
            fingerprint=found[PREFIX + "fingerprint"],
            revision=int(found[PREFIX + "revision"]),
            operation=found[PREFIX + "operation"],
            pin=found[PREFIX + "image"],
            image_id=found[PREFIX + "image-id"],
            ports=tuple(int(port) for port in found[PREFIX + "ports"].split(",") if port),
            stop_grace_s=_seconds(found[PREFIX + "stop-grace"]),
            declared_env=tuple(key for key, _ in _declared_env(found)),
            secrets=marks_from(found.get(PREFIX + "secrets", "")),
            container_text=found.get(PREFIX + "spec", ""),
            recipe=found.get(PREFIX + "gang", ""),
        )
    except (KeyError, ValueError):
        return None


def owner_by(name: str, found: Mapping[str, str]) -> Owner | None:
    """Whose a container with this name and these labels is; None for a foreign one.

    One whose name is not what its labels ask for is a copy, or was renamed by hand: nobody's to stop or to remove.
    """
    owner = owner_of(found)
    if owner is None or proved_name(name) != container_name(owner.lane, owner.rank, owner.revision):
        return None
    return owner


def secret_references(found: Mapping[str, str]) -> dict[str, str]:
    """Env keys whose values are secrets, with the reference each came from, read from the rank's own spec label."""
    declared = _declared_env(found)
    return {key: str(value["secret"]) for key, value in declared if isinstance(value, dict) and "secret" in value}


def _seconds(text: str) -> float:
    """A time to wait; `inf`, `nan` and negative numbers, which Docker takes for ever, are none."""
    seconds = float(text)
    if not 0 <= seconds <= LONGEST_GRACE_S:
        raise ValueError(text)
    return seconds


def _declared_env(found: Mapping[str, str]) -> list[tuple[str, object]]:
    try:
        spec = json.loads(found.get(PREFIX + "spec", "{}"))
        return [(str(key), value) for key, value in spec.get("env", [])]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return []
