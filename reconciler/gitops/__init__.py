"""The agent that follows a branch: effects. What it does next is decided by `reconciler.core.gitops`."""
