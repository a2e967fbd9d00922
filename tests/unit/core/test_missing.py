"""What a node lacks of an image: by content, by store, and what that takes of its disk."""

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.missing import Missing, Store, missing, missing_on
from reconciler.core.observed import SourceImage, SourceUnknown
from tests.unit.core.build import GIB, PLATFORM, digest, facts, holding, layer, observed, pin, platform_of, source

BASE, CUDA, TOP = layer("base", 100), layer("cuda", 200), layer("top", 30)
IMAGE = platform_of(BASE, CUDA, TOP)


def test_a_node_without_any_of_it_lacks_all_of_it() -> None:
    assert Missing(330, 693, 0, 3) == missing(IMAGE, (), "classic")


def test_layers_count_from_the_base_upwards_until_one_differs() -> None:
    assert Missing(30, 63, 2, 3) == missing(IMAGE, [holding(BASE, CUDA, layer("old"))], "containerd")
    assert Missing(330, 693, 0, 3) == missing(IMAGE, [holding(layer("old"), CUDA, TOP)], "containerd")


def test_the_image_that_shares_the_most_counts() -> None:
    images = [holding(BASE, name="one"), holding(BASE, CUDA, name="two"), holding(name="three")]
    assert 2 == missing(IMAGE, images, "classic").layers_shared


def test_the_classic_store_does_not_recognise_layers_that_came_by_load() -> None:
    loaded = holding(BASE, CUDA, digests=())
    assert 0 == missing(IMAGE, [loaded], "classic").layers_shared
    assert 2 == missing(IMAGE, [loaded], "containerd").layers_shared


def test_an_image_that_is_listed_and_not_usable_shares_nothing() -> None:
    assert 0 == missing(IMAGE, [holding(BASE, CUDA, usable=False)], "containerd").layers_shared


def test_the_same_content_under_another_name_moves_nothing() -> None:
    expected = Missing(0, 0, 3, 3)
    assert expected == missing(IMAGE, [holding(BASE, CUDA, TOP)], "containerd")
    assert expected == missing(IMAGE, [holding(id=IMAGE.config, digests=())], "classic")
    assert expected.is_there


def test_an_image_that_begins_with_all_of_its_layers_moves_nothing_either() -> None:
    assert missing(IMAGE, [holding(BASE, CUDA, TOP, layer("more"))], "containerd").is_there


def test_a_config_is_no_proof_in_the_containerd_store() -> None:
    assert not missing(IMAGE, [holding(id=IMAGE.config)], "containerd").is_there


def test_a_blob_that_is_two_layers_is_fetched_once_and_unpacked_twice() -> None:
    assert Missing(130, 483, 0, 3) == missing(platform_of(BASE, TOP, BASE), (), "classic")


def test_told_sizes_of_unpacked_layers_win_over_the_assumption() -> None:
    assert 5 + 63 == missing(platform_of(layer("x", 100, 5), TOP), (), "classic").unpacked_bytes


def test_an_image_known_by_its_size_alone_is_missing_whole() -> None:
    told = SourceImage(digest(), (("linux/amd64", 9), (PLATFORM, 100)))
    found = missing_on(facts(images=()), pin(), observed(sources=[told]))
    assert Missing(100, 210) == found
    assert found is not None
    assert not found.is_there


def test_nothing_is_known_of_an_image_whose_source_was_not_asked_or_has_another_platform() -> None:
    for told in (SourceUnknown(digest(), "timeout"), SourceImage(digest(), (("linux/amd64", 9),))):
        assert missing_on(facts(images=()), pin(), observed(sources=[told])) is None


def test_a_known_image_is_looked_at_layer_by_layer() -> None:
    node = facts(images=(), store="classic")
    assert Missing(330, 693, 0, 3) == missing_on(node, pin(), observed(sources=[source("a", BASE, CUDA, TOP)]))


def test_the_containerd_store_keeps_what_was_fetched() -> None:
    lacks = Missing(10 * GIB, 21 * GIB, 0, 3)
    assert round(31 * GIB * 1.05) == lacks.peak_bytes
    assert 21 * GIB == lacks.kept_bytes("classic")
    assert 31 * GIB == lacks.kept_bytes("containerd")


LAYERS = st.lists(
    st.sampled_from([layer(name, size) for name, size in zip("abcdef", (1, 7, 50, 400, 9, 0), strict=True)])
)
STORES = st.sampled_from(("classic", "containerd"))


@given(LAYERS, st.lists(LAYERS, max_size=3), STORES)
def test_what_is_missing_lies_between_nothing_and_all(wanted: list, there: list, store: Store) -> None:  # type: ignore[type-arg]
    image = platform_of(*wanted)
    found = missing(image, [holding(*layers, name=str(number)) for number, layers in enumerate(there)], store)
    assert 0 <= found.compressed_bytes <= image.compressed_bytes
    assert 0 <= found.kept_bytes(store) <= found.peak_bytes
    assert 0 <= found.layers_shared <= found.layers == len(wanted)


@given(LAYERS, st.data(), STORES)
def test_the_more_layers_are_shared_the_less_is_missing(wanted: list, data: st.DataObject, store: Store) -> None:  # type: ignore[type-arg]
    image = platform_of(*wanted)
    few = data.draw(st.integers(0, len(wanted)))
    more = data.draw(st.integers(few, len(wanted)))
    some, most = (missing(image, [holding(*wanted[:count])], store) for count in (few, more))
    assert most.compressed_bytes <= some.compressed_bytes
    assert most.peak_bytes <= some.peak_bytes
