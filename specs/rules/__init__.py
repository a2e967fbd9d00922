"""What must hold between the objects of a spec. Each rule takes a draft and yields a diagnostic per fault."""

from collections.abc import Callable, Iterator

from specs.diagnostics import Diagnostic
from specs.draft import Draft
from specs.rules.capacity import (
    cluster_is_large_enough,
    gpus_fit,
    memory_fits,
    named_nodes_fit,
    parallel_fits,
    shared_memory_fits,
)
from specs.rules.conflicts import lane_is_placed_once, nodes_are_not_shared, ports_differ
from specs.rules.fabric import (
    addresses_differ,
    args_leave_the_fabric_alone,
    env_leaves_the_fabric_alone,
    hosts_differ,
    interfaces_differ,
    rdma_is_there,
    rendezvous_is_reachable,
)
from specs.rules.gitops import protected_lanes_exist
from specs.rules.references import (
    cluster_interface_exists,
    cluster_nodes_exist,
    draft_model_exists,
    lane_model_exists,
    parked_lane_is_not_placed,
    paths_resolve,
    placement_names_exist,
)
from specs.rules.requirements import requirements_are_met
from specs.rules.silences import ignored_places_exist, silenced_places_exist

Rule = Callable[[Draft], Iterator[Diagnostic]]

RULES: tuple[Rule, ...] = (
    cluster_nodes_exist,
    cluster_interface_exists,
    lane_model_exists,
    draft_model_exists,
    placement_names_exist,
    parked_lane_is_not_placed,
    paths_resolve,
    cluster_is_large_enough,
    named_nodes_fit,
    memory_fits,
    gpus_fit,
    parallel_fits,
    shared_memory_fits,
    lane_is_placed_once,
    nodes_are_not_shared,
    ports_differ,
    env_leaves_the_fabric_alone,
    args_leave_the_fabric_alone,
    hosts_differ,
    addresses_differ,
    interfaces_differ,
    rdma_is_there,
    rendezvous_is_reachable,
    requirements_are_met,
    silenced_places_exist,
    protected_lanes_exist,
    ignored_places_exist,
)
"""Every rule; their order does not matter, for diagnostics are sorted."""
