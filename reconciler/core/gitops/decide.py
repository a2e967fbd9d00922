"""The one door: from what was seen to what is done next. Pure.

The agent calls it again with what a `Look` asked for, and after each `Adopt` and `GiveUp`, until it says to act or to
wait.
"""

from reconciler.core.gitops.decision import Adopt, Apply, Decision, Look, Nothing, Seen
from reconciler.core.gitops.forward import forward
from reconciler.core.gitops.healing import healing


def decide(seen: Seen) -> Decision:
    """What to do now. A commit goes before repairs; what holds a commit up does not hold up repairs."""
    ahead = forward(seen)
    if isinstance(ahead, Look | Apply | Adopt):
        return ahead
    repair = healing(seen)
    if repair is None or (isinstance(repair, Nothing) and not isinstance(ahead, Nothing)):
        return ahead
    return repair
