"""What the spec, and the command line over it, let the agent do by itself at a moment."""

from dataclasses import dataclass, replace

import specs
from reconciler.core.gitops.settings import DEFAULTS, Heal, Settings
from reconciler.core.gitops.windows import OPEN, Opening
from reconciler.gitops.guards import opening_at, settings_of


@dataclass(frozen=True)
class Rules:
    """The settings, and whether it may act now."""

    settings: Settings = DEFAULTS
    opening: Opening = OPEN


def rules_of(spec: specs.Spec | None, now_s: float, heal: str | None) -> Rules:
    """What holds at `now_s` (seconds since 1970). `heal` takes the place of what the spec says."""
    rules = Rules() if spec is None else Rules(settings_of(spec.gitops), opening_at(spec.gitops, now_s))
    return rules if heal is None else replace(rules, settings=replace(rules.settings, heal=Heal(heal)))
