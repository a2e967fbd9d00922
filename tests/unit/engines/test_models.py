"""Which models a lane's ranks look for, and where: by its mounts, on each node by that node's own paths."""

from pathlib import Path

import pytest

import specs
from reconciler.core.desired import Gang
from reconciler.core.models import Degrees, ModelPlace
from reconciler.engines import RULES, desired_fleet

SPEC = """
fleet: lab
nodes:
  dgx1: {{ssh: {{host: dgx1, user: ops}}, platform: linux/arm64, gpus: 2, paths: {{models: /mnt/1}}}}
  dgx2: {{ssh: {{host: dgx2, user: ops}}, platform: linux/arm64, gpus: 2, paths: {{models: /mnt/2}}}}
  dgx3: {{ssh: {{host: dgx3, user: ops}}, platform: linux/arm64, gpus: 2}}
clusters: {{all: {{nodes: [dgx1, dgx2, dgx3], port: 30000}}}}
models:
  main: {{path: "{main}", draft: small, revision: abc, sync: true, verify: {{config.json: "sha256:{sum}"}}}}
  small: {{path: "{draft}"}}
lanes:
  a:
    engine: custom
    image: ghcr.io/x/y@sha256:{sum}
    model: main
    nodes: 1
    parallel: {{tensor: 2}}
    argv: [serve, "{{model}}"]
    mounts: [{{source: "{{paths.models}}/hf", target: /root/hf}}]
placements: [{{lane: a, cluster: all}}]
"""


def load(folder: Path, main: str = "{paths.models}/hf/main", draft: str = "{paths.models}/hf/small") -> Gang:
    path = folder / "fleet.yaml"
    path.write_text(SPEC.format(main=main, draft=draft, sum="1" * 64))
    (gang,) = desired_fleet(specs.load(path, RULES)).gangs
    return gang


def test_a_model_and_its_draft_are_looked_for_where_the_mounts_show_them(tmp_path: Path) -> None:
    main, draft = load(tmp_path).ranks[0].models
    assert ("main", "small") == (main.name, draft.name)
    assert ModelPlace("/mnt/1/hf/main", "/root/hf/main", (("/mnt/1/hf", "/root/hf"),)) == main.place
    assert ("abc", True, (("config.json", f"sha256:{'1' * 64}"),)) == (main.revision, main.sync, main.verify)
    assert (Degrees(tensor=2), Degrees()) == (main.degrees, draft.degrees)
    assert [False, True] == [main.is_draft, draft.is_draft]
    assert "/mnt/1/hf" == main.place.base


def test_the_rest_of_the_cluster_is_known_by_its_own_paths(tmp_path: Path) -> None:
    shelves = load(tmp_path).shelves
    assert ["dgx2"] == [shelf.node for shelf in shelves]  # dgx3 has no such path
    assert "/mnt/2/hf/main" == shelves[0].wants[0].place.path


def test_a_model_that_no_mount_shows_may_be_in_the_image_and_a_draft_may_not(tmp_path: Path) -> None:
    gang = load(tmp_path, main="/opt/main", draft="/opt/small")
    assert [("small", False)] == [(want.name, want.is_mounted) for want in gang.ranks[0].models]


def test_a_draft_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    text = SPEC.format(main="{paths.models}/hf/main", draft="/x", sum="1" * 64)
    path.write_text(text.replace("draft: small", "draft: smal"))
    with pytest.raises(specs.SpecErrors) as raised:
        specs.load(path, RULES)
    assert "no model is named 'smal'" in str(raised.value)
