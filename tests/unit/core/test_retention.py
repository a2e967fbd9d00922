"""Which images stay, and why; and what of the vault goes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.desired import ImagePin
from reconciler.core.garbage import PART_S, TRANSFER_S, Blob, GcPlan, Stock, VaultFacts, VaultPlan, gc_plan
from reconciler.core.identity import keep_tag
from reconciler.core.observed import Container, LocalImage, Owner, Unknown, UnknownKind
from reconciler.core.retention import Rules, Standing, Wanted, is_brought, judged, repository_of

REPO = "ghcr.io/acme/engine"


def digest(number: int) -> str:
    """A digest that differs from others in its first digits, as real ones do."""
    return f"sha256:{number:012x}{number:052x}"


def brought(number: int, repo: str = REPO, day: int = 1) -> LocalImage:
    """An image of the classic store that fleet brought: pulled by digest, and tagged to be kept."""
    top = digest(number)
    tag = f"{repo}:{keep_tag(top)}"
    return LocalImage(
        f"sha256:c{number:063x}", (top,), (tag,), size_bytes=number, tagged_at=f"2026-11-{day:02}T00:00:00Z"
    )


def wanted(number: int, lane: str = "solo") -> Wanted:
    return Wanted(ImagePin(f"{REPO}@{digest(number)}", digest(number), "digest", "ghcr.io", "acme/engine"), (lane,))


def container(name: str, image: LocalImage, state: str = "exited") -> Container:
    return Container(f"id-{name}", name, state, image.id)


NOTHING = Rules(())


def standings(
    images: list[LocalImage], containers: tuple[Container, ...] = (), rules: Rules = NOTHING
) -> list[Standing]:
    """Of each image, in the order given."""
    found = {item.image.id: item.standing for item in judged("n1", images, containers, rules)}
    return [found[image.id] for image in images]


def reason(image: LocalImage, containers: tuple[Container, ...] = (), rules: Rules = NOTHING) -> str:
    return judged("n1", [image], containers, rules)[0].reason


NONE_KEPT = Rules((), retain=0)


def test_what_nobody_needs_is_spare() -> None:
    assert [Standing.SPARE] == standings([brought(1)], rules=NONE_KEPT)


def test_a_lane_pins_its_image_under_whatever_name_and_even_when_it_is_incomplete() -> None:
    pinned = Rules((wanted(1),), retain=0)
    for image in (brought(1), replace(brought(1), names=("mine:v1",)), replace(brought(1), usable=False)):
        assert [Standing.PINNED] == standings([image], rules=pinned)
    assert "lane solo" == reason(brought(1), rules=pinned)


def test_the_lock_finds_what_was_loaded_without_its_digest() -> None:
    loaded = replace(brought(1), digests=(), names=())
    pin = replace(wanted(1).pin, configs=(loaded.id,))
    assert [Standing.PINNED] == standings([loaded], rules=Rules((Wanted(pin, ("solo",)),)))


@pytest.mark.parametrize("state", ["running", "exited", "created", "dead"])
def test_a_container_in_any_state_keeps_its_image(state: str) -> None:
    assert [Standing.USED] == standings([brought(1)], (container("x", brought(1), state),), NONE_KEPT)
    assert "container x" == reason(brought(1), (container("x", brought(1), state),), NONE_KEPT)


def test_a_container_of_ours_keeps_the_image_it_was_pinned_by() -> None:
    owner = Owner("lab", "solo", "c", 0, 1, "f", 1, "op", f"{REPO}@{digest(1)}", "")
    ours = Container("id", "fleet-solo-r0-v1", "exited", "sha256:other", owner)
    assert [Standing.USED] == standings([brought(1)], (ours,), NONE_KEPT)


def test_the_newest_unused_images_of_each_repository_are_kept_for_a_rollback() -> None:
    images = [brought(1, day=3), brought(2, day=9), brought(3, day=5), brought(4, "ghcr.io/acme/other", day=1)]
    kept, spare = Standing.KEPT, Standing.SPARE
    assert [spare, kept, spare, kept] == standings(images, rules=Rules((), retain=1))
    assert [spare, kept, kept, kept] == standings(images, rules=Rules((), retain=2))
    assert [spare] * 4 == standings(images, rules=NONE_KEPT)


def test_what_is_in_use_takes_no_place_among_the_kept() -> None:
    images = [brought(1, day=1), brought(2, day=2), brought(3, day=3)]
    users = (container("x", images[2]),)
    assert [Standing.KEPT, Standing.PINNED, Standing.USED] == standings(images, users, Rules((wanted(2),), retain=1))


def test_an_incomplete_image_is_no_rollback() -> None:
    broken = replace(brought(2, day=9), usable=False)
    assert [Standing.KEPT, Standing.SPARE] == standings([brought(1, day=1), broken], rules=Rules((), retain=1))


@pytest.mark.parametrize(
    "pattern",
    [
        "ghcr.io/acme/*",
        "*",
        "ghcr.io/acme/engin?",
        REPO,
        f"{REPO}:sha-*",
        f"{REPO}@{digest(1)}",
        f"*@{digest(1)[:19]}*",
    ],
)
def test_the_spec_protects_by_pattern(pattern: str) -> None:
    rules = Rules((), retain=0, protect=("/srv", pattern))
    assert [Standing.PROTECTED] == standings([brought(1)], rules=rules)
    assert f"images.protect: {pattern}" == reason(brought(1), rules=rules)


@pytest.mark.parametrize(
    "pattern", ["/", "/ghcr.io/*", "ghcr.io/acme/engine-2", "acme/engine", "ghcr.io", f"{REPO}@{digest(2)}"]
)
def test_what_no_pattern_matches_is_not_protected(pattern: str) -> None:
    assert [Standing.SPARE] == standings([brought(1)], rules=Rules((), retain=0, protect=(pattern,)))


def test_names_of_docker_hub_match_short_and_in_full() -> None:
    image = brought(1, "redis")
    for pattern in ("redis", "docker.io/library/redis", "docker.io/*"):
        assert [Standing.PROTECTED] == standings([image], rules=Rules((), retain=0, protect=(pattern,)))


def test_what_the_lock_names_stays_on_the_nodes_and_in_the_vault() -> None:
    pin = wanted(1).pin
    rules = Rules((), retain=0, locked=(pin,))
    assert [Standing.LOCKED, Standing.SPARE] == standings([brought(1), brought(2)], rules=rules)
    assert "in fleet.lock" == reason(brought(1), rules=rules)
    facts = VaultFacts("/v", NOW, {"lab": (pin.digest, digest(2))})
    assert (digest(2),) == vault_plan(facts, rules=rules).released


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("nginx:1.27",), "fleet did not bring it"),
        ((), "fleet did not bring it"),
        ((f"{REPO}:sha-000000000000",), "fleet did not bring it"),
        ((f"{REPO}:{keep_tag(digest(2))}",), "fleet did not bring it"),
        ((*brought(1).names, "mine:v1"), "also named mine:v1"),
    ],
)
def test_what_others_brought_or_named_is_foreign(names: tuple[str, ...], why: str) -> None:
    image = replace(brought(1), names=names)
    assert [Standing.FOREIGN] == standings([image], rules=NONE_KEPT)
    assert why == reason(image, rules=NONE_KEPT)


def test_a_name_by_digest_is_nobodys_tag() -> None:
    """The containerd store lists what was pulled by digest under that name, too."""
    assert is_brought(replace(brought(1), names=(*brought(1).names, f"127.0.0.1:5999/{REPO}@{digest(1)}")))


def test_an_image_kept_for_two_repositories_counts_for_both() -> None:
    both = replace(brought(1, day=9), names=(*brought(1).names, *brought(1, "ghcr.io/acme/other").names))
    images = [both, brought(2, day=2), brought(3, "ghcr.io/acme/other", day=3)]
    assert [Standing.KEPT, Standing.SPARE, Standing.SPARE] == standings(images, rules=Rules((), retain=1))


def test_repositories_keep_the_port_of_their_registry() -> None:
    assert "127.0.0.1:5000/a/b" == repository_of("127.0.0.1:5000/a/b:v1")
    assert "127.0.0.1:5000/a/b" == repository_of("127.0.0.1:5000/a/b@sha256:00")
    assert "redis" == repository_of("redis:7")


# the plan

TOP, MANIFEST, CONFIG, LAYER, OTHER, LOST = (digest(number) for number in range(100, 106))
NOW = 10_000_000.0
LONG_AGO = NOW - 10 * PART_S
BELOW = {TOP: (MANIFEST,), MANIFEST: (CONFIG, LAYER)}


def blobs(*digests: str, changed_s: float = LONG_AGO) -> tuple[Blob, ...]:
    return tuple(Blob(item, 7, changed_s) for item in digests)


def vault(**changes: object) -> VaultFacts:
    facts = VaultFacts("/v", NOW, {"lab": (TOP,)}, blobs(TOP, MANIFEST, CONFIG, LAYER), (), BELOW)
    return replace(facts, **changes)  # type: ignore[arg-type] # fields by name


def plan(
    facts: VaultFacts | None = None,
    images: tuple[LocalImage, ...] = (),
    rules: Rules = NONE_KEPT,
    unknown: tuple[Unknown, ...] = (),
) -> GcPlan:
    return gc_plan(Stock("lab", rules, judged("n1", images, (), rules), unknown, facts))


def vault_plan(facts: VaultFacts, **more: object) -> VaultPlan:
    made = plan(facts, **more).vault  # type: ignore[arg-type] # fields by name
    assert made is not None
    return made


NEEDS_TOP = Rules((Wanted(ImagePin(f"{REPO}@{TOP}", TOP, "digest", "ghcr.io", "acme/engine"), ("solo",)),), retain=0)
AWAY = Unknown("n2", UnknownKind.TIMEOUT, "no answer")


def test_a_plan_has_the_spare_images_and_says_why_the_others_stay() -> None:
    made = plan(images=(brought(5), replace(brought(6), names=("mine:v1",))))
    assert ([Standing.SPARE], [Standing.FOREIGN]) == (
        [item.standing for item in made.removals],
        [item.standing for item in made.stays],
    )
    assert (5, 0) == (made.bytes_of("n1"), made.bytes_of("n2"))
    assert not made.is_empty


def test_with_nothing_spare_there_is_nothing_to_do() -> None:
    assert plan().is_empty
    assert plan(vault(), rules=NEEDS_TOP).is_empty


def test_what_a_lane_needs_stays_in_the_vault() -> None:
    assert VaultPlan("/v") == vault_plan(vault(), rules=NEEDS_TOP)


def test_what_a_node_keeps_for_a_rollback_stays_in_the_vault() -> None:
    image = replace(brought(1), digests=(TOP,), names=(f"{REPO}:{keep_tag(TOP)}",))
    assert VaultPlan("/v") == vault_plan(vault(), images=(image,), rules=Rules((), retain=1))
    assert (TOP,) == vault_plan(vault(), images=(image,), rules=NONE_KEPT).released


def test_what_nobody_needs_is_released_and_removed() -> None:
    made = vault_plan(vault())
    assert ((TOP,), {TOP, MANIFEST, CONFIG, LAYER}) == (made.released, {item.digest for item in made.blobs})
    assert 28 == made.bytes


def test_what_another_fleet_needs_is_not_removed() -> None:
    assert VaultPlan("/v", released=(TOP,)) == vault_plan(vault(roots={"lab": (TOP,), "other": (TOP,)}))
    assert VaultPlan("/v") == vault_plan(vault(roots={"other": (TOP,)}))


def test_a_layer_that_a_needed_image_shares_stays() -> None:
    facts = vault(
        roots={"lab": (TOP, OTHER)}, blobs=blobs(TOP, MANIFEST, CONFIG, LAYER, OTHER), below=BELOW | {OTHER: (LAYER,)}
    )
    made = vault_plan(facts, rules=NEEDS_TOP)
    assert ((OTHER,), [OTHER]) == (made.released, [item.digest for item in made.blobs])


def test_a_young_blob_may_be_part_of_a_transfer() -> None:
    young, old = blobs(LOST, changed_s=NOW - TRANSFER_S), blobs(OTHER, changed_s=NOW - TRANSFER_S - 1)
    made = vault_plan(vault(roots={}, blobs=(*young, *old)))
    assert ([OTHER], 1) == ([item.digest for item in made.blobs], made.young)


def test_a_half_transfer_is_resumed_within_a_day() -> None:
    young, old = blobs("a.part", changed_s=NOW - PART_S), blobs("b.part", changed_s=NOW - PART_S - 1)
    assert old == vault_plan(vault(parts=(*young, *old)), rules=NEEDS_TOP).parts


def test_while_a_node_is_unknown_its_images_stay_in_the_vault_and_the_rest_is_collected() -> None:
    made = vault_plan(vault(blobs=blobs(TOP, MANIFEST, CONFIG, LAYER, LOST)), unknown=(AWAY,))
    assert ((), [LOST]) == (made.released, [item.digest for item in made.blobs])
    assert "what n2 may need of it is not known, so its images stay" == made.note


def test_behind_a_damaged_manifest_anything_may_be_needed() -> None:
    facts = vault(blobs=blobs(TOP, MANIFEST, CONFIG, LAYER), below={TOP: (MANIFEST,)}, damaged=(MANIFEST,))
    made = vault_plan(facts, rules=NEEDS_TOP)
    assert made.is_empty
    assert "is damaged" in made.note


def test_a_damaged_manifest_that_nobody_needs_keeps_nothing() -> None:
    facts = vault(blobs=blobs(TOP, MANIFEST), below={TOP: (MANIFEST,)}, damaged=(MANIFEST,))
    assert {TOP, MANIFEST} == {item.digest for item in vault_plan(facts).blobs}


def test_a_protected_vault_is_not_touched() -> None:
    made = vault_plan(vault(protected_by="/srv", parts=blobs("a.part")))
    assert VaultPlan("/v", note="protected: images.protect: /srv") == made


def test_without_a_vault_there_is_no_plan_for_one() -> None:
    assert plan().vault is None


# safety, whatever there is

REPOS = (REPO, "ghcr.io/acme/other", "redis")
images_of_a_node = st.lists(
    st.builds(
        lambda number, repo, day, usable, extra: replace(
            brought(number, repo, day), usable=usable, names=(*brought(number, repo).names, *extra)
        ),
        st.integers(1, 9),
        st.sampled_from(REPOS),
        st.integers(1, 28),
        st.booleans(),
        st.sampled_from([(), (), ("mine:v1",)]),
    ),
    unique_by=lambda image: image.id,
)
rules_of_a_spec = st.builds(
    lambda pins, retain, protect: Rules(tuple(wanted(number) for number in pins), retain, protect),
    st.sets(st.integers(1, 9), max_size=3),
    st.integers(0, 3),
    st.sampled_from([(), ("redis",), ("ghcr.io/acme/*",)]),
)


@given(images_of_a_node, st.sets(st.integers(1, 9), max_size=3), rules_of_a_spec)
def test_whatever_is_spare_is_ours_and_nobody_needs_it(images: list[LocalImage], used: set[int], rules: Rules) -> None:
    containers = tuple(container(f"c{number}", brought(number)) for number in used)
    found = judged("n1", images, containers, rules)
    assert sorted(image.id for image in images) == sorted(item.image.id for item in found)
    pinned = {item.pin.digest for item in rules.wanted}
    for item in (item for item in found if item.standing is Standing.SPARE):
        assert not pinned & set(item.image.digests)
        assert item.image.id not in {box.image_id for box in containers}
        assert "mine:v1" not in item.image.names
        newer = [
            other
            for other in found
            if other.standing is Standing.KEPT
            and other.image.tagged_at >= item.image.tagged_at
            and set(map(repository_of, other.image.names)) & set(map(repository_of, item.image.names))
        ]
        assert not item.image.usable or rules.retain <= len(newer)


DIGESTS = [digest(number) for number in range(1, 9)]
graphs = st.dictionaries(st.sampled_from(DIGESTS), st.lists(st.sampled_from(DIGESTS), max_size=3).map(tuple))
roots_of_a_vault = st.dictionaries(
    st.sampled_from(["lab", "other"]), st.lists(st.sampled_from(DIGESTS), unique=True, max_size=3).map(tuple)
)


@given(graphs, roots_of_a_vault, rules_of_a_spec, st.booleans())
def test_whatever_goes_from_the_vault_no_image_that_stays_refers_to(
    below: dict[str, tuple[str, ...]], roots: dict[str, tuple[str, ...]], rules: Rules, is_away: bool
) -> None:
    facts = VaultFacts("/v", NOW, roots, blobs(*DIGESTS), (), below)
    made = vault_plan(facts, rules=rules, unknown=(AWAY,) if is_away else ())
    stay = [top for owner, tops in roots.items() for top in tops if owner != "lab" or top not in made.released]
    for _ in DIGESTS:  # far enough to get to the end of every chain
        stay += [child for item in set(stay) for child in below.get(item, ())]
    assert not set(stay) & {item.digest for item in made.blobs}
    assert not set(made.released) & {item.pin.digest for item in rules.wanted}
    assert not (is_away and made.released)
