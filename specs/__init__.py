"""What the user may write: models, loading with located diagnostics, cross-object rules, JSON Schema."""

from specs.diagnostics import Diagnostic, Place, SpecErrors, did_you_mean
from specs.draft import Draft, Placed
from specs.drift import Drift, Ignore
from specs.environment import Secret
from specs.forge import Forge
from specs.gitops import Budget, Gitops, HealBudget, Window
from specs.health import Health, HttpProbe, Limits, Performance, Probe
from specs.hooks import Hook, Hooks
from specs.image_texts import ImageText, image_texts, rewritten
from specs.images import ImageRef
from specs.inventory import Cluster, Docker, Images, Interface, Nccl, Node, Off, Registry, Ssh
from specs.lanes import Lane, Model, Mount, Parallel, Parked, Placement, Preflight
from specs.loader import load, load_inventory
from specs.model import Spec
from specs.policies import Policies, Protected
from specs.quantities import parse_duration, parse_size
from specs.requirements import Requirement
from specs.roles import Role, Roles
from specs.rules import Rule
from specs.schema import json_schema
from specs.silences import Checks, Silence

__all__ = [
    "Budget",
    "Checks",
    "Cluster",
    "Diagnostic",
    "Docker",
    "Draft",
    "Drift",
    "Forge",
    "Gitops",
    "HealBudget",
    "Health",
    "Hook",
    "Hooks",
    "HttpProbe",
    "Ignore",
    "ImageRef",
    "ImageText",
    "Images",
    "Interface",
    "Lane",
    "Limits",
    "Model",
    "Mount",
    "Nccl",
    "Node",
    "Off",
    "Parallel",
    "Parked",
    "Performance",
    "Place",
    "Placed",
    "Placement",
    "Policies",
    "Preflight",
    "Probe",
    "Protected",
    "Registry",
    "Requirement",
    "Role",
    "Roles",
    "Rule",
    "Secret",
    "Silence",
    "Spec",
    "SpecErrors",
    "Ssh",
    "Window",
    "did_you_mean",
    "image_texts",
    "json_schema",
    "load",
    "load_inventory",
    "parse_duration",
    "parse_size",
    "rewritten",
]
